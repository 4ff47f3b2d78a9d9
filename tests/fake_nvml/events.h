/* Event sets: errors that the driver pushes, at the times of "xid" lines, to the sets that hold the card by then. */

typedef struct { int used, cards[MAX_CARDS]; u64 delivered[MAX_LINES]; double since[MAX_CARDS]; } event_set;
typedef struct { device d; u64 type, data; u32 gpu_instance, compute_instance; } event_data;
static event_set event_sets[16];

int nvmlEventSetCreate(event_set **set) {
    FAIL_SYSTEM(SYSTEM);
    for (int i = 0; i < 16; i++)
        if (!event_sets[i].used) {
            memset(&event_sets[i], 0, sizeof event_sets[i]);
            event_sets[i].used = 1;
            *set = &event_sets[i];
            return SUCCESS;
        }
    fprintf(stderr, "fake_nvml: event sets are not given back\n");
    abort();
}
int nvmlEventSetFree(event_set *set) { FAIL_SYSTEM(SYSTEM); set->used = 0; return SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(device d, u64 *types) { FAIL(*d); *types = 0x8; return SUCCESS; }
int nvmlDeviceRegisterEvents(device d, u64 types, event_set *set) {
    FAIL(*d);
    if (*d >= MAX_CARDS || types & ~0x8ull) return NOT_SUPPORTED;
    set->cards[*d] = 1;
    set->since[*d] = now();
    return SUCCESS;
}

static int next_event(event_set *set, event_data *data) {
    double t = now();
    for (int i = 0; i < line_count; i++) {
        const line *l = &lines[i];
        for (int card = 0; l->kind == XID && card < MAX_CARDS; card++) {
            if (!set->cards[card] || !l->cards[card] || t < l->from || l->from < set->since[card]) continue;
            if (set->delivered[i] >= (l->count > 1 ? l->values[1] : 1)) continue;
            set->delivered[i]++;
            *data = (event_data){handle_of(card), 0x8, l->values[0], ~0u, ~0u};
            return 1;
        }
    }
    return 0;
}

/* Waits in real time, at most 20 ms whatever is asked for: scenarios have a clock of their own. */
int nvmlEventSetWait_v2(event_set *set, event_data *data, u32 timeout_ms) {
    waiting++;
    int code = enter(__func__, SYSTEM, 0);
    for (u32 ms = 0; !code; ms++) {
        pthread_mutex_lock(&lock);
        int found = next_event(set, data);
        pthread_mutex_unlock(&lock);
        if (found) break;
        if (ms >= timeout_ms || ms >= 20) code = TIMEOUT;
        else pause_ms(1.0);
    }
    waiting--;
    return code;
}
