/* Prints one line a card through whatever libnvidia-ml.so.1 is in reach, as nvidia-smi does: for measuring what a spawn costs. */
#include <dlfcn.h>
#include <stdio.h>

typedef void *device;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int gpu, memory; } utilization;
#define CALL(name, ...) ((int (*)())(dlsym(library, name)))(__VA_ARGS__)

int main(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    unsigned int count = 0;
    if (!library || CALL("nvmlInitWithFlags", 0u) || CALL("nvmlDeviceGetCount_v2", &count)) return 1;
    for (unsigned int i = 0; i < count; i++) {
        device d;
        memory m;
        utilization u;
        unsigned int watts, celsius, sm, mem;
        if (CALL("nvmlDeviceGetHandleByIndex_v2", i, &d) || CALL("nvmlDeviceGetMemoryInfo", d, &m) ||
            CALL("nvmlDeviceGetUtilizationRates", d, &u) || CALL("nvmlDeviceGetPowerUsage", d, &watts) ||
            CALL("nvmlDeviceGetTemperature", d, 0u, &celsius) || CALL("nvmlDeviceGetClockInfo", d, 1u, &sm) ||
            CALL("nvmlDeviceGetClockInfo", d, 2u, &mem)) return 2;
        printf("%u, %u %%, %u %%, %llu MiB, %.2f W, %u, %u MHz, %u MHz\n", i, u.gpu, u.memory, m.used >> 20, watts / 1e3, celsius, sm, mem);
    }
    return CALL("nvmlShutdown");
}
