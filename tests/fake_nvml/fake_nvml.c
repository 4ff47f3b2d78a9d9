/* A stand-in for NVIDIA's driver library, for tests: up to 16 cards, every value, failure and latency settable while it runs
 * (see script.h). Struct versions are checked as the driver does. With -DOLD_DRIVER the newer symbols are not there at all.
 */
#include "script.h"

typedef int *device; /* points at the number of a card or MIG instance, in the generation of handles it belongs to */
#define GENERATIONS 8
static int numbers[GENERATIONS][NUMBERS];
#define MIB (1024ull * 1024ull)

static device handle_of(int card) {
    device d = &numbers[generation % GENERATIONS][card];
    *d = card;
    return d;
}

/* Handles of before a shutdown or reload no longer count. */
static int stale(device d) { return d < numbers[generation % GENERATIONS] || d >= numbers[generation % GENERATIONS] + NUMBERS; }

#define FAIL_SYSTEM(gpu) do { int code = enter(__func__, gpu, 0); if (code) return code; } while (0)
#define FAIL(gpu) do { int code = enter(__func__, gpu, 0); if (code) return code; if (stale(d)) return INVALID_ARGUMENT; } while (0)
int nvmlInitWithFlags(u32 flags) {
    (void)flags;
    int code = enter(__func__, SYSTEM, 1);
    if (code) return code;
    pthread_mutex_lock(&lock);
    if (!initialised || reloads() != reloads_seen) generation++;
    reloads_seen = reloads();
    initialised++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) {
    int code = enter(__func__, SYSTEM, 0);
    pthread_mutex_lock(&lock);
    if (waiting && initialised == 1) { fprintf(stderr, "fake_nvml: shut down while a call waits for events\n"); abort(); } /* the driver crashes too */
    if (initialised) initialised--;
    pthread_mutex_unlock(&lock);
    return code;
}
const char *nvmlErrorString(int code) { (void)code; return "fake error"; }

int nvmlSystemGetDriverVersion(char *text, u32 size) {
    FAIL_SYSTEM(SYSTEM);
    copy_text(SYSTEM, "driver", "570.86.10", text, size);
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion(int *version) { FAIL_SYSTEM(SYSTEM); *version = 12080; return SUCCESS; }
int nvmlDeviceGetCount_v2(u32 *count) { FAIL_SYSTEM(SYSTEM); *count = (u32)value(-1, "count", 1); return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(u32 index, device *d) {
    int card = index < MAX_CARDS ? (int)nth_value(SYSTEM, "order", (int)index, index) : MAX_CARDS;
    if (card >= MAX_CARDS) return INVALID_ARGUMENT;
    FAIL_SYSTEM(card);
    *d = handle_of(card);
    return SUCCESS;
}
int nvmlDeviceGetUUID(device d, char *text, u32 size) {
    FAIL(*d);
    char usual[64];
    if (*d < MAX_CARDS) snprintf(usual, sizeof usual, "GPU-%08d-1111-2222-3333-444444444444", *d);
    else snprintf(usual, sizeof usual, "MIG-%08d-1111-2222-3333-444444444444", *d - MAX_CARDS);
    copy_text(*d, "uuid", usual, text, size);
    return SUCCESS;
}
int nvmlDeviceGetName(device d, char *text, u32 size) {
    FAIL(*d);
    copy_text(*d, "name", "NVIDIA GeForce RTX 3060", text, size);
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
    u64 mode;
    if (!has_value(*d, "mig", &mode)) return NOT_SUPPORTED;
    *now = *later = (u32)mode;
    return SUCCESS;
}
int nvmlDeviceGetDriverModel_v2(device d, u32 *now, u32 *later) {
    FAIL(*d);
    u64 mode;
    if (!has_value(*d, "driver_model", &mode)) return NOT_SUPPORTED;
    *now = *later = (u32)mode;
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
    static const char *const KEYS[] = {"threshold_shutdown", "threshold_slowdown", "threshold_memory", "threshold_operating"};
    static const u32 USUAL[] = {98, 95, 0, 93};
    u64 found;
    if (which > 3) return INVALID_ARGUMENT;
    if (!has_value(*d, KEYS[which], &found) && which == 2) return NOT_SUPPORTED;
    *t = (u32)value(*d, KEYS[which], USUAL[which]);
    return SUCCESS;
}
typedef struct { u32 gpu, memory; } utilization;
int nvmlDeviceGetUtilizationRates(device d, utilization *u) {
    FAIL(*d);
    if (*d >= MAX_CARDS) return NOT_SUPPORTED; /* a MIG instance */
    u->gpu = (u32)value(*d, "util", 97);
    u->memory = (u32)value(*d, "memory_util", 41);
    return SUCCESS;
}
int nvmlDeviceGetClockInfo(device d, u32 type, u32 *mhz) {
    FAIL(*d);
    static const char *const KEYS[] = {"graphics_clock", "sm_clock", "memory_clock", "video_clock"};
    static const u32 USUAL[] = {1905, 1890, 7501, 1665};
    if (type > 3) return INVALID_ARGUMENT;
    *mhz = (u32)value(*d, KEYS[type], USUAL[type]);
    return SUCCESS;
}
int nvmlDeviceGetMaxClockInfo(device d, u32 type, u32 *mhz) {
    FAIL(*d);
    *mhz = (u32)(type == 2 ? value(*d, "memory_clock_max", 7501) : value(*d, "clock_max", 2145));
    return SUCCESS;
}
int nvmlDeviceGetPowerUsage(device d, u32 *mw) { FAIL(*d); *mw = (u32)value(*d, "power", 150250); return SUCCESS; }
int nvmlDeviceGetEnforcedPowerLimit(device d, u32 *mw) { FAIL(*d); *mw = (u32)value(*d, "power_enforced", 170000); return SUCCESS; }
int nvmlDeviceGetPowerManagementLimitConstraints(device d, u32 *low, u32 *high) {
    FAIL(*d);
    *low = (u32)value(*d, "power_min", 100000);
    *high = (u32)value(*d, "power_max", 190000);
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
    return has_value(*d, "ecc", count) ? SUCCESS : NOT_SUPPORTED;
}
int nvmlDeviceGetCurrPcieLinkGeneration(device d, u32 *generation) { FAIL(*d); *generation = (u32)value(*d, "pcie_generation", 4); return SUCCESS; }
int nvmlDeviceGetCurrPcieLinkWidth(device d, u32 *width) { FAIL(*d); *width = (u32)value(*d, "pcie_width", 16); return SUCCESS; }
typedef struct { u64 total, free, used; } bar1;
int nvmlDeviceGetBAR1MemoryInfo(device d, bar1 *b) { FAIL(*d); b->total = value(*d, "bar1_total", 256 * MIB); b->used = value(*d, "bar1_used", 5 * MIB); b->free = b->total - b->used; return SUCCESS; }

/* Field values: mW, bytes (32 bits), ns, °C, degrees of margin. Keys: "field197"; of one link or module "field186.1"; of
 * all links together (scope: all ones) "field138.all". What has no usual answer is not supported unless it is given. */
typedef struct {
    u32 id, scope;
    long long timestamp, latency;
    u32 type;
    int result;
    union { double d; u32 u; unsigned long ul; u64 ull; long long sll; int si; unsigned short us; } value;
} field;
typedef struct { u32 id, type; int always; u64 usual; } known_field; /* type: 1 unsigned, 3 unsigned in 64 bits, 5 signed */
static const known_field KNOWN_FIELDS[] = {
#ifndef OLD_DRIVER
    {185, 1, 1, 148000}, {186, 1, 1, 151500}, {193, 5, 1, (u64)-8}, {194, 5, 1, (u64)-2}, {196, 5, 1, 0}, {197, 1, 1, 1000}, {198, 1, 1, 2000},
    {138, 3, 0, 0}, {139, 3, 0, 0}, {202, 3, 0, 0}, {204, 3, 0, 0},
#endif
    {3, 3, 0, 0}, {5, 3, 0, 0}, {6, 3, 0, 0}, {29, 3, 0, 0}, {30, 3, 0, 0}, {74, 3, 1, 10}, {75, 3, 1, 20}, {76, 3, 1, 30}, {77, 3, 1, 40},
    {78, 3, 1, 50}, {79, 3, 1, 60}, {82, 1, 1, 78}, {91, 1, 0, 0}, {94, 1, 1, 7}, {142, 1, 0, 0}, {143, 1, 0, 0}, {144, 1, 0, 0}, {145, 1, 0, 0},
};
static void fill(field *f, int gpu) {
    char key[24];
    u64 found = 0;
    const known_field *known = NULL;
    if (!f->scope) snprintf(key, sizeof key, "field%u", f->id);
    else if (f->scope == ~0u) snprintf(key, sizeof key, "field%u.all", f->id);
    else snprintf(key, sizeof key, "field%u.%u", f->id, f->scope);
    f->result = error(gpu, key, NONE);
    if (f->result) return;
    for (u32 i = 0; i < sizeof KNOWN_FIELDS / sizeof *KNOWN_FIELDS; i++) if (KNOWN_FIELDS[i].id == f->id) known = &KNOWN_FIELDS[i];
    int given = known && has_value(gpu, key, &found);
    if (!given && !(known && known->always && !f->scope)) {
        f->result = value(gpu, "silent_fields", 0) ? SUCCESS : NOT_SUPPORTED;
        return;
    }
    f->timestamp = 1700000000000000ll;
    f->latency = 3;
    f->type = known->type;
    if (!given) found = known->usual;
    if (known->type == 1) f->value.u = (u32)found;
    else if (known->type == 5) f->value.si = (int)found;
    else f->value.ull = found;
}
int nvmlDeviceGetFieldValues(device d, int count, field *fields) {
    FAIL(*d);
    for (int i = 0; i < count; i++) fill(&fields[i], *d);
    return SUCCESS;
}

#include "events.h"

/* Processes: one by FAKE_NVML_VALUES with a bogus one behind it, as some drivers give; any number by the script. */
typedef struct { u32 pid; u64 memory; u32 gpu_instance, compute_instance; } process;
static int processes(int gpu, const char *kind, u32 *count, process *list) {
    char pid_key[32], memory_key[32];
    snprintf(pid_key, sizeof pid_key, "%s_pid", kind);
    snprintf(memory_key, sizeof memory_key, "%s_memory", kind);
    process found[64];
    u32 there = 0;
    if (find("FAKE_NVML_VALUES", gpu, pid_key)) {
        found[there++] = (process){(u32)value(gpu, pid_key, 0), value(gpu, memory_key, 512 * MIB), ~0u, ~0u};
        found[there++] = (process){0, 64 * MIB, ~0u, ~0u};
    }
    pthread_mutex_lock(&lock);
    double t = now();
    for (int i = 0; i < line_count && there < 64; i++) {
        const line *l = &lines[i];
        if (l->kind == PROCESS && strcmp(l->name, kind) == 0 && holds(l, gpu, t))
            found[there++] = (process){(u32)l->values[0], l->values[1], l->count > 2 ? (u32)l->values[2] : ~0u, l->count > 3 ? (u32)l->values[3] : ~0u};
    }
    pthread_mutex_unlock(&lock);
    int fits = *count >= there && (list || !there);
    *count = there;
    if (!fits) return INSUFFICIENT_SIZE;
    if (there) memcpy(list, found, there * sizeof *list);
    return SUCCESS;
}
#define PROCESS_CALL(name, kind) \
    int name(device d, u32 *count, process *list) { FAIL(*d); return processes(*d, kind, count, list); }
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")

/* Utilisation by process: the older call, and the newer one with a version. */
typedef struct { u32 pid; u64 time; u32 sm, memory, encoder, decoder; } usage_v1;
typedef struct { u64 time; u32 pid, sm, memory, encoder, decoder, jpeg, ofa; } usage_v2;
typedef struct { u32 version, count; u64 since; usage_v2 *list; } usage_list;
#define USAGES 256
static u32 usages(int gpu, u64 since, usage_v2 *list) {
    u32 there = 0;
    pthread_mutex_lock(&lock);
    double t = now();
    for (int i = 0; i < line_count; i++) {
        const line *l = &lines[i];
        if (l->kind != USAGE || !holds(l, gpu, t)) continue;
        for (u64 more = 0; more < (l->count > 6 ? l->values[6] : 1) && there < USAGES; more++)
            if (l->values[5] + more > since)
                list[there++] = (usage_v2){l->values[5] + more, (u32)l->values[0], (u32)l->values[1], (u32)l->values[2], (u32)l->values[3], (u32)l->values[4], 0, 0};
    }
    pthread_mutex_unlock(&lock);
    return there;
}
int nvmlDeviceGetProcessUtilization(device d, usage_v1 *list, u32 *count, u64 since) {
    FAIL(*d);
    usage_v2 found[USAGES];
    u32 there = usages(*d, since, found), room = *count;
    *count = there;
    if (!there) return NOT_FOUND;
    if (!list || room < there) return INSUFFICIENT_SIZE;
    for (u32 i = 0; i < there; i++)
        list[i] = (usage_v1){found[i].pid, found[i].time, found[i].sm, found[i].memory, found[i].encoder, found[i].decoder};
    return SUCCESS;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetProcessesUtilizationInfo(device d, usage_list *asked) {
    FAIL(*d);
    if (asked->version != (sizeof(usage_list) | 1u << 24)) return VERSION_MISMATCH;
    usage_v2 found[USAGES];
    u32 there = usages(*d, asked->since, found), room = asked->count;
    asked->count = there;
    if (!there) return NOT_FOUND;
    if (!asked->list || room < there) return INSUFFICIENT_SIZE;
    memcpy(asked->list, found, there * sizeof *found);
    return SUCCESS;
}
#endif

/* What is a number and nothing else: with the usual answer, or only when the test gives one. */
#define NUMBER(function, type, key, usual) \
    int function(device d, type *answer) { FAIL(*d); *answer = (type)value(*d, key, usual); return SUCCESS; }
#define NUMBER_IF_GIVEN(function, type, key) \
    int function(device d, type *answer) { FAIL(*d); u64 found; if (!has_value(*d, key, &found)) return NOT_SUPPORTED; *answer = (type)found; return SUCCESS; }
NUMBER(nvmlDeviceGetPersistenceMode, u32, "persistence", 1)
NUMBER(nvmlDeviceGetComputeMode, u32, "compute_mode", 0)
NUMBER(nvmlDeviceGetDisplayMode, u32, "display", 0)
NUMBER(nvmlDeviceGetDisplayActive, u32, "display", 0)
NUMBER(nvmlDeviceGetMinorNumber, u32, "minor_number", (u64)*d)
NUMBER(nvmlDeviceGetIndex, u32, "index", (u64)*d)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, u32, "pcie_generation_max", 4)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, u32, "pcie_width_max", 16)
NUMBER(nvmlDeviceGetPowerManagementLimit, u32, "power_limit", 170000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, u32, "power_limit_default", 170000)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "throttle_reasons", 0)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "throttle_reasons", 0)
NUMBER(nvmlDeviceGetNumFans, u32, "fans", 2)
NUMBER(nvmlDeviceGetMemoryBusWidth, u32, "bus_width", 192)
NUMBER_IF_GIVEN(nvmlDeviceGetNumaNodeId, int, "numa_node")
/* A MIG instance has an id of its own on its card: 1, 2, 3 … unless the script says otherwise. */
static u64 gpu_instance_of(int instance) { return value(instance, "gpu_instance", (u64)((instance - MAX_CARDS) % MAX_INSTANCES) + 1); }
int nvmlDeviceGetGpuInstanceId(device d, u32 *id) { FAIL(*d); if (*d < MAX_CARDS) return NOT_SUPPORTED; *id = (u32)gpu_instance_of(*d); return SUCCESS; }
int nvmlDeviceGetComputeInstanceId(device d, u32 *id) { FAIL(*d); if (*d < MAX_CARDS) return NOT_SUPPORTED; *id = (u32)value(*d, "compute_instance", 0); return SUCCESS; }
typedef struct { u32 sms, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices; u64 memory_mib; } attributes;
int nvmlDeviceGetAttributes_v2(device d, attributes *a) {
    FAIL(*d);
    if (*d < MAX_CARDS) return NOT_SUPPORTED;
    *a = (attributes){(u32)value(*d, "sms", 14), 1, 0, 0, 0, 0, 1, 1, TOTAL / MIB};
    return SUCCESS;
}
int nvmlDeviceGetNvLinkState(device d, u32 link, u32 *active) {
    FAIL(*d);
    char key[24];
    u64 found;
    snprintf(key, sizeof key, "link%u", link);
    if (link >= value(*d, "field91", 0)) return INVALID_ARGUMENT;
    if (error(*d, key, NONE)) return error(*d, key, NONE);
    *active = has_value(*d, key, &found) ? (u32)found : 1;
    return SUCCESS;
}
#define LOAD_IF_GIVEN(function, key) \
    int function(device d, u32 *percent, u32 *us) { FAIL(*d); u64 found; if (!has_value(*d, key, &found)) return NOT_SUPPORTED; *percent = (u32)found; *us = 167000; return SUCCESS; }
LOAD_IF_GIVEN(nvmlDeviceGetJpgUtilization, "jpeg")
LOAD_IF_GIVEN(nvmlDeviceGetOfaUtilization, "optical_flow")
int nvmlDeviceGetEncoderStats(device d, u64 *sessions, u64 *frames_per_s, u64 *latency_us) {
    FAIL(*d);
    *sessions = value(*d, "encoder_sessions", 0);
    *frames_per_s = *latency_us = 0;
    return SUCCESS;
}
int nvmlDeviceGetFanSpeed_v2(device d, u32 fan, u32 *percent) { (void)fan; FAIL(*d); *percent = (u32)value(*d, "fan", 55); return SUCCESS; }
int nvmlDeviceGetEccMode(device d, u32 *current, u32 *pending) {
    FAIL(*d);
    u64 mode;
    if (!has_value(*d, "ecc_mode", &mode)) return NOT_SUPPORTED;
    *current = *pending = (u32)mode;
    return SUCCESS;
}
int nvmlDeviceGetPcieThroughput(device d, u32 direction, u32 *kib_per_s) {
    FAIL(*d);
    pause_ms(20.0); /* as the driver: it measures for 20 ms */
    *kib_per_s = (u32)value(*d, direction ? "pcie_rx_kib" : "pcie_tx_kib", 100);
    return SUCCESS;
}
int nvmlDeviceGetSerial(device d, char *text, u32 size) { (void)text; (void)size; FAIL(*d); return NOT_SUPPORTED; }
int nvmlSystemGetNVMLVersion(char *text, u32 size) { FAIL_SYSTEM(SYSTEM); snprintf(text, size, "12.570.86.10"); return SUCCESS; }

/* The driver's own buffer: 100 samples, one each sixth of a second of the clock (type 0: mW, 1: load, 2: memory load, 5 and 6: clocks). */
typedef struct { u64 time; union { u32 u; u64 ull; double d; } value; } sample;
#define SAMPLES 100
#define SAMPLE_US 166667ull
int nvmlDeviceGetSamples(device d, int type, u64 since, int *value_type, u32 *count, sample *list) {
    FAIL(*d);
    static const char *const KEYS[] = {"field186", "util", "memory_util", NULL, NULL, "sm_clock", "memory_clock"};
    static const u64 USUAL[] = {151500, 97, 41, 0, 0, 1890, 7501};
    if (type < 0 || type > 6 || !KEYS[type]) return NOT_SUPPORTED;
    u64 last = (u64)(now() * 1e6) / SAMPLE_US;
    u32 there = 0;
    *value_type = 1;
    for (u64 i = last >= SAMPLES ? last - SAMPLES + 1 : 1; i <= last; i++) {
        if (i * SAMPLE_US <= since) continue;
        if (list && there < *count) {
            value_at = (double)(i * SAMPLE_US) * 1e-6;
            list[there] = (sample){i * SAMPLE_US, {.ull = value(*d, KEYS[type], USUAL[type])}};
            value_at = -1.0;
        }
        there++;
    }
    if (list && *count < there) return INSUFFICIENT_SIZE;
    *count = there;
    return there ? SUCCESS : NOT_FOUND;
}

static int find_card(const char *asked, u32 length, int (*ask)(device, char *, u32), device *d) {
    u32 count = (u32)value(SYSTEM, "count", 1);
    for (u32 i = 0; i < count && i < MAX_CARDS; i++) {
        char own[96];
        device card = handle_of((int)nth_value(SYSTEM, "order", (int)i, i));
        if (ask(card, own, sizeof own) == SUCCESS && strncmp(own, asked, length) == 0) { *d = card; return SUCCESS; }
    }
    return NOT_FOUND;
}
static int bus_id_of(device d, char *text, u32 size) { snprintf(text, size, "00000000:%02X:00.0", *d + 1); return SUCCESS; }
int nvmlDeviceGetHandleByUUID(const char *uuid, device *d) { FAIL_SYSTEM(SYSTEM); return find_card(uuid, 40, nvmlDeviceGetUUID, d); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, device *d) { FAIL_SYSTEM(SYSTEM); return find_card(id, 32, bus_id_of, d); }

/* MIG instances: "0 value instances 2"; their own values under "0.0", "0.1". */
int nvmlDeviceGetMaxMigDeviceCount(device d, u32 *count) { FAIL(*d); *count = (u32)value(*d, "instances", 0); return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(device d, u32 index, device *instance) {
    FAIL(*d);
    if (index >= value(*d, "instances", 0) || index >= MAX_INSTANCES) return NOT_FOUND;
    *instance = handle_of(MAX_CARDS + *d * MAX_INSTANCES + (int)index);
    return SUCCESS;
}
int nvmlDeviceIsMigDeviceHandle(device d, u32 *is) { FAIL(*d); *is = *d >= MAX_CARDS; return SUCCESS; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device d, device *parent) {
    FAIL(*d);
    if (*d < MAX_CARDS) return INVALID_ARGUMENT;
    *parent = handle_of((*d - MAX_CARDS) / MAX_INSTANCES);
    return SUCCESS;
}

#ifndef OLD_DRIVER
#include "gpm.h"
#endif
