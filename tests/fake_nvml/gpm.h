/* GPM: a card has it with "value gpm 1"; "value gpm2 4150" is 41.5 % of metric 2, as a mean of its values at both samples, so that
 * a test sees which two moments were compared. "error gpm2 CODE" fails that metric alone. */
typedef struct { double time; int card; } gpm_sample;
typedef struct { u32 version, supported; } gpm_support;
typedef struct { u32 id; int result; double value; const char *text[3]; } gpm_metric;
typedef struct { u32 version, count; gpm_sample *first, *second; gpm_metric metrics[]; } gpm_request;
static int gpm_samples;
int fake_nvml_gpm_samples(void) { return gpm_samples; }
int nvmlGpmQueryDeviceSupport(device d, gpm_support *s) {
    FAIL(*d);
    if (s->version != 1) return VERSION_MISMATCH;
    s->supported = (u32)value(*d, "gpm", 0);
    return SUCCESS;
}
int nvmlGpmSampleAlloc(gpm_sample **s) {
    FAIL_SYSTEM(SYSTEM);
    *s = calloc(1, sizeof **s);
    pthread_mutex_lock(&lock);
    gpm_samples++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}
int nvmlGpmSampleFree(gpm_sample *s) {
    if (!s) return INVALID_ARGUMENT;
    free(s);
    pthread_mutex_lock(&lock);
    gpm_samples--;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}
int nvmlGpmSampleGet(device d, gpm_sample *s) {
    FAIL(*d);
    u64 mig;
    if (!value(*d, "gpm", 0) || (has_value(*d, "mig", &mig) && mig)) return NOT_SUPPORTED;
    *s = (gpm_sample){now(), *d};
    return SUCCESS;
}
int nvmlGpmMigSampleGet(device d, u32 gpu_instance, gpm_sample *s) {
    FAIL(*d);
    if (!value(*d, "gpm", 0)) return NOT_SUPPORTED;
    for (int i = 0; i < (int)value(*d, "instances", 0); i++) {
        int instance = MAX_CARDS + *d * MAX_INSTANCES + i;
        if (gpu_instance_of(instance) != gpu_instance) continue;
        *s = (gpm_sample){now(), instance};
        return SUCCESS;
    }
    return NOT_FOUND;
}
int nvmlGpmMetricsGet(gpm_request *r) {
    FAIL_SYSTEM(SYSTEM);
    if (r->version != 1) return VERSION_MISMATCH;
    gpm_sample *first = r->first, *second = r->second;
    if (!first || !second || first->card != second->card || !(first->time < second->time)) return INVALID_ARGUMENT;
    for (u32 i = 0; i < r->count; i++) {
        char key[24];
        u64 found[2];
        snprintf(key, sizeof key, "gpm%u", r->metrics[i].id);
        r->metrics[i].result = error(second->card, key, NONE);
        if (r->metrics[i].result) continue;
        value_at = first->time;
        int given = has_value(second->card, key, &found[0]);
        value_at = second->time;
        given = given && has_value(second->card, key, &found[1]);
        value_at = -1.0;
        if (!given) r->metrics[i].result = NOT_SUPPORTED;
        else if (found[1] == NONE) r->metrics[i].value = 0.0 / 0.0;
        else r->metrics[i].value = ((double)found[0] + (double)found[1]) / 200.0;
    }
    return SUCCESS;
}
