/* A stand-in for NVIDIA's driver library, for tests: as many cards as asked for, every value and every failure settable
 * at run time by environment variables that are read at each call.
 *
 *   FAKE_NVML_VALUES  "count=2,util=97,gpu1:temperature=0"   a value, for all cards or for one
 *   FAKE_NVML_ERRORS  "nvmlDeviceGetFanSpeed=3,field186=3,gpu1:*=15"   a return code by function, field or card
 *
 * Struct versions are checked as the driver does. With -DOLD_DRIVER the newer symbols are not there at all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int *device; /* points at the card's number */

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, VERSION_MISMATCH = 25 };
#define MAX_CARDS 16
static int numbers[MAX_CARDS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#define MIB (1024ull * 1024ull)

/* The text after "key=" (or "gpuN:key="), or NULL. */
static const char *find(const char *variable, int gpu, const char *key) {
    const char *text = getenv(variable);
    char own[96];
    const char *general = NULL;
    snprintf(own, sizeof own, "gpu%d:%s=", gpu, key);
    while (text && *text) {
        size_t n = strlen(key);
        if (strncmp(text, own, strlen(own)) == 0) return text + strlen(own);
        if (strncmp(text, key, n) == 0 && text[n] == '=') general = text + n + 1;
        text = strchr(text, ',');
        if (text) text++;
    }
    return general;
}

static u64 value(int gpu, const char *key, u64 usual) {
    const char *text = find("FAKE_NVML_VALUES", gpu, key);
    return text ? strtoull(text, NULL, 0) : usual;
}

static int error(int gpu, const char *function) {
    const char *text = find("FAKE_NVML_ERRORS", gpu, function);
    if (!text) text = find("FAKE_NVML_ERRORS", gpu, "*");
    return text ? atoi(text) : SUCCESS;
}

#define FAIL(gpu) do { int code = error(gpu, __func__); if (code) return code; } while (0)

int nvmlInitWithFlags(u32 flags) { (void)flags; FAIL(-1); return SUCCESS; }
int nvmlShutdown(void) { FAIL(-1); return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "fake error"; }

int nvmlSystemGetDriverVersion(char *text, u32 size) {
    FAIL(-1);
    const char *version = find("FAKE_NVML_VALUES", -1, "driver");
    snprintf(text, size, "%.9s", version ? version : "570.86.10");
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion(int *version) { FAIL(-1); *version = 12080; return SUCCESS; }
int nvmlDeviceGetCount_v2(u32 *count) { FAIL(-1); *count = (u32)value(-1, "count", 1); return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(u32 index, device *d) {
    if (index >= MAX_CARDS) return INVALID_ARGUMENT;
    FAIL((int)index);
    *d = &numbers[index];
    return SUCCESS;
}
int nvmlDeviceGetUUID(device d, char *text, u32 size) {
    FAIL(*d);
    snprintf(text, size, "GPU-0000000%d-1111-2222-3333-444444444444", *d);
    return SUCCESS;
}
int nvmlDeviceGetName(device d, char *text, u32 size) {
    FAIL(*d);
    snprintf(text, size, "NVIDIA GeForce RTX 3060");
    return SUCCESS;
}
int nvmlDeviceGetVbiosVersion(device d, char *text, u32 size) { FAIL(*d); snprintf(text, size, "94.06.14"); return SUCCESS; }

typedef struct {
    char legacy[16];
    u32 domain, bus, device, id, subsystem;
    char bus_id[32];
} pci_info;
int nvmlDeviceGetPciInfo_v3(device d, pci_info *info) {
    FAIL(*d);
    memset(info, 0, sizeof *info);
    info->bus = (u32)*d + 1;
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", *d + 1);
    return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(device d, int *major, int *minor) {
    FAIL(*d);
    *major = (int)value(*d, "major", 8);
    *minor = (int)value(*d, "minor", 6);
    return SUCCESS;
}
int nvmlDeviceGetArchitecture(device d, u32 *architecture) { FAIL(*d); *architecture = 7; return SUCCESS; }
int nvmlDeviceGetNumGpuCores(device d, u32 *cores) { FAIL(*d); *cores = (u32)value(*d, "cores", 3584); return SUCCESS; }
int nvmlDeviceGetMigMode(device d, u32 *now, u32 *later) {
    FAIL(*d);
    if (!find("FAKE_NVML_VALUES", *d, "mig")) return NOT_SUPPORTED;
    *now = *later = (u32)value(*d, "mig", 0);
    return SUCCESS;
}
int nvmlDeviceGetDriverModel_v2(device d, u32 *now, u32 *later) {
    FAIL(*d);
    if (!find("FAKE_NVML_VALUES", *d, "driver_model")) return NOT_SUPPORTED;
    *now = *later = (u32)value(*d, "driver_model", 1);
    return SUCCESS;
}

/* Memory: v1 books the driver's reserve as used, v2 keeps it apart. */
#define TOTAL value(*d, "total", 12288 * MIB)
#define RESERVED value(*d, "reserved", 368 * MIB)
#define USED value(*d, "used", 2048 * MIB)
typedef struct { u64 total, free, used; } memory_v1;
int nvmlDeviceGetMemoryInfo(device d, memory_v1 *m) {
    FAIL(*d);
    m->total = TOTAL;
    m->used = TOTAL ? USED + RESERVED : USED;
    m->free = m->total - m->used;
    return SUCCESS;
}
#ifndef OLD_DRIVER
typedef struct { u32 version; u64 total, reserved, free, used; } memory_v2;
int nvmlDeviceGetMemoryInfo_v2(device d, memory_v2 *m) {
    FAIL(*d);
    if (m->version != (sizeof(memory_v2) | 2u << 24)) return VERSION_MISMATCH;
    m->total = TOTAL;
    m->reserved = RESERVED;
    m->used = USED;
    m->free = m->total - m->used - m->reserved;
    return SUCCESS;
}
typedef struct { u32 version, sensor; int temperature; } temperature_v1;
int nvmlDeviceGetTemperatureV(device d, temperature_v1 *t) {
    FAIL(*d);
    if (t->version != (sizeof(temperature_v1) | 1u << 24)) return VERSION_MISMATCH;
    t->temperature = (int)value(*d, "temperature", 61);
    return SUCCESS;
}
typedef struct { u32 version; int margin; } margin_v1;
int nvmlDeviceGetMarginTemperature(device d, margin_v1 *m) {
    FAIL(*d);
    if (m->version != (sizeof(margin_v1) | 1u << 24)) return VERSION_MISMATCH;
    m->margin = (int)value(*d, "margin", 32);
    return SUCCESS;
}
#endif
int nvmlDeviceGetTemperature(device d, u32 sensor, u32 *t) {
    (void)sensor;
    FAIL(*d);
    *t = (u32)value(*d, "temperature", 61);
    return SUCCESS;
}
int nvmlDeviceGetTemperatureThreshold(device d, u32 which, u32 *t) {
    FAIL(*d);
    *t = which == 0 ? 98 : 95;
    return SUCCESS;
}
typedef struct { u32 gpu, memory; } utilization;
int nvmlDeviceGetUtilizationRates(device d, utilization *u) {
    FAIL(*d);
    u->gpu = (u32)value(*d, "util", 97);
    u->memory = (u32)value(*d, "memory_util", 41);
    return SUCCESS;
}
int nvmlDeviceGetClockInfo(device d, u32 type, u32 *mhz) {
    FAIL(*d);
    *mhz = (u32)(type == 2 ? value(*d, "memory_clock", 7501) : value(*d, "sm_clock", 1890));
    return SUCCESS;
}
int nvmlDeviceGetMaxClockInfo(device d, u32 type, u32 *mhz) { (void)type; FAIL(*d); *mhz = 2145; return SUCCESS; }
int nvmlDeviceGetPowerUsage(device d, u32 *mw) { FAIL(*d); *mw = (u32)value(*d, "power", 150250); return SUCCESS; }
int nvmlDeviceGetEnforcedPowerLimit(device d, u32 *mw) { FAIL(*d); *mw = 170000; return SUCCESS; }
int nvmlDeviceGetPowerManagementLimitConstraints(device d, u32 *low, u32 *high) {
    FAIL(*d);
    *low = 100000;
    *high = 190000;
    return SUCCESS;
}
int nvmlDeviceGetTotalEnergyConsumption(device d, u64 *mj) { FAIL(*d); *mj = value(*d, "energy", 5000000); return SUCCESS; }
int nvmlDeviceGetFanSpeed(device d, u32 *percent) { FAIL(*d); *percent = (u32)value(*d, "fan", 55); return SUCCESS; }
int nvmlDeviceGetPerformanceState(device d, u32 *state) { FAIL(*d); *state = (u32)value(*d, "pstate", 2); return SUCCESS; }
int nvmlDeviceGetEncoderUtilization(device d, u32 *u, u32 *us) { FAIL(*d); *u = (u32)value(*d, "encoder", 0); *us = 167000; return SUCCESS; }
int nvmlDeviceGetDecoderUtilization(device d, u32 *u, u32 *us) { FAIL(*d); *u = (u32)value(*d, "decoder", 3); *us = 167000; return SUCCESS; }
int nvmlDeviceGetTotalEccErrors(device d, u32 type, u32 counter, u64 *count) {
    (void)type;
    (void)counter;
    FAIL(*d);
    if (!find("FAKE_NVML_VALUES", *d, "ecc")) return NOT_SUPPORTED;
    *count = value(*d, "ecc", 0);
    return SUCCESS;
}
int nvmlDeviceGetCurrPcieLinkGeneration(device d, u32 *generation) { FAIL(*d); *generation = (u32)value(*d, "pcie_generation", 4); return SUCCESS; }
int nvmlDeviceGetCurrPcieLinkWidth(device d, u32 *width) { FAIL(*d); *width = 16; return SUCCESS; }
typedef struct { u64 total, free, used; } bar1;
int nvmlDeviceGetBAR1MemoryInfo(device d, bar1 *b) { FAIL(*d); b->total = 256 * MIB; b->used = 5 * MIB; b->free = b->total - b->used; return SUCCESS; }

/* Field values: mW, bytes (32 bits), ns, °C, degrees of margin. */
typedef struct {
    u32 id, scope;
    long long timestamp, latency;
    u32 type;
    int result;
    union { double d; u32 u; unsigned long ul; u64 ull; long long sll; int si; unsigned short us; } value;
} field;
static void fill(field *f, int gpu) {
    char key[24];
    snprintf(key, sizeof key, "field%u", f->id);
    f->result = error(gpu, key);
    if (f->result) return;
    f->timestamp = 1700000000000000ll;
    f->latency = 3;
    switch (f->id) {
#ifndef OLD_DRIVER
    case 185: f->type = 1; f->value.u = (u32)value(gpu, key, 148000); return;
    case 186: f->type = 1; f->value.u = (u32)value(gpu, key, 151500); return;
    case 193: f->type = 5; f->value.si = -8; return;
    case 194: f->type = 5; f->value.si = -2; return;
    case 197: f->type = 1; f->value.u = (u32)value(gpu, key, 1000); return;
    case 198: f->type = 1; f->value.u = (u32)value(gpu, key, 2000); return;
#endif
    case 74: f->type = 3; f->value.ull = value(gpu, key, 10); return;
    case 75: f->type = 3; f->value.ull = value(gpu, key, 20); return;
    case 82: f->type = 1; f->value.u = (u32)value(gpu, key, 78); return;
    default: f->timestamp = 0; f->latency = 0; f->result = value(gpu, "silent_fields", 0) ? SUCCESS : NOT_SUPPORTED; return;
    }
}
int nvmlDeviceGetFieldValues(device d, int count, field *fields) {
    FAIL(*d);
    for (int i = 0; i < count; i++) fill(&fields[i], *d);
    return SUCCESS;
}

typedef struct { u32 pid; u64 memory; u32 gpu_instance, compute_instance; } process;
static int processes(int gpu, const char *kind, u32 usual, u32 *count, process *list) {
    char pid_key[32], memory_key[32];
    snprintf(pid_key, sizeof pid_key, "%s_pid", kind);
    snprintf(memory_key, sizeof memory_key, "%s_memory", kind);
    u32 there = find("FAKE_NVML_VALUES", gpu, pid_key) ? 2 : usual;
    if (*count < there) { *count = there; return there ? INSUFFICIENT_SIZE : SUCCESS; }
    *count = there;
    if (there) list[0] = (process){(u32)value(gpu, pid_key, 0), value(gpu, memory_key, 512 * MIB), 0xFFFFFFFF, 0xFFFFFFFF};
    if (there) list[1] = (process){0, 64 * MIB, 0xFFFFFFFF, 0xFFFFFFFF}; /* a bogus entry, as some drivers give */
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(device d, u32 *count, process *list) { FAIL(*d); return processes(*d, "compute", 0, count, list); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(device d, u32 *count, process *list) { FAIL(*d); return processes(*d, "graphics", 0, count, list); }
int nvmlDeviceGetComputeRunningProcesses_v2(device d, u32 *count, process *list) { FAIL(*d); return processes(*d, "compute", 0, count, list); }
int nvmlDeviceGetGraphicsRunningProcesses_v2(device d, u32 *count, process *list) { FAIL(*d); return processes(*d, "graphics", 0, count, list); }
