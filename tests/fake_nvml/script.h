/* What the fake driver says, and when: lines of a script file, read again whenever the file changes.
 *
 *   CARDS [@FROM..TO] [#FIRST..LAST] KIND NAME ARGUMENTS      later lines win; "#" at the start of a line is a comment
 *
 *   CARDS   "*", "0", "0,2", "0-3", "0.1" (MIG instance 1 of card 0), "-" (the library itself)
 *   @ and # only from FROM to before TO seconds of the fake clock; only for these calls of a function (from 1 on)
 *   KIND    value KEY V [V …] [every S | rate R]   one value; one after the other, S seconds each; V + R × seconds
 *           error NAME CODE                        NAME: a function, "fieldN", or "*"
 *           sleep NAME MS                          the call takes this long (real time)
 *           stall NAME SECONDS                     the call takes this long by fake_nvml_clock()
 *           block NAME                             the call comes back when the line no longer holds
 *           process compute|graphics|mps PID BYTES [GPU_INSTANCE COMPUTE_INSTANCE]
 *           usage PID SM MEMORY ENCODER DECODER TIMESTAMP [COUNT]   with COUNT: so many, a microsecond apart
 *           xid NUMBER [COUNT]                     at FROM: the driver pushes this error, so many times
 *           text KEY WORD                          a string, "_" for a space
 *           reload                                 at FROM: every call fails with 1 until the library is initialised again
 *
 * Numbers are C's; "none" is all ones. The clock: FAKE_NVML_CLOCK names a file with one double that is mapped; without
 * it fake_nvml_set_clock() or, until that is called, the machine's own. FAKE_NVML_SCRIPT names the script.
 * Before the script, for one test at a time: FAKE_NVML_VALUES "util=97,gpu1:temperature=0", FAKE_NVML_ERRORS
 * "nvmlDeviceGetFanSpeed=3,field186=3,gpu1:*=15". FAKE_NVML_STILL: the script does not change, and is not looked for again
 * at each call (for measuring what a reader costs).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10,
       VERSION_MISMATCH = 25 };
#define NONE (~0ull)
#define SYSTEM (-1)
#define MAX_CARDS 16
#define MAX_INSTANCES 8
#define NUMBERS (MAX_CARDS * (1 + MAX_INSTANCES)) /* cards, then their MIG instances */
#define MAX_LINES 512
#define MAX_VALUES 12
#define FOREVER 1e300

typedef enum { VALUE, ERROR, SLEEP, BLOCK, PROCESS, USAGE, TEXT, STALL, RELOAD, XID } kind;
typedef struct {
    unsigned char cards[NUMBERS];
    int system;
    double from, to;
    u64 first, last;
    kind kind;
    char name[64];
    u64 values[MAX_VALUES];
    int count;
    double every, rate;
    char text[96];
} line;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static line lines[MAX_LINES];
static int line_count;
static struct timespec script_time;
static off_t script_size = -1;
static double own_clock = -1.0;
static const double *mapped_clock;
static int initialised, generation, reloads_seen, waiting; /* waiting: calls in a wait for events */
static u64 total_calls;
static struct { const char *name; u64 count[NUMBERS + 1]; } calls[192]; /* by __func__, whose address is its own */

static _Thread_local double value_at = -1.0; /* values of another moment, for the driver's buffer */

static double now(void) {
    struct timespec t;
    if (value_at >= 0.0) return value_at;
    if (mapped_clock) return *(volatile const double *)mapped_clock;
    if (own_clock >= 0.0) return own_clock;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_ms(double ms) {
    struct timespec t = {(time_t)(ms / 1000.0), (long)((ms - 1000.0 * (double)(long)(ms / 1000.0)) * 1e6)};
    nanosleep(&t, NULL);
}

static u64 number(const char *text) {
    return strcmp(text, "none") == 0 ? NONE : *text == '-' ? (u64)strtoll(text, NULL, 0) : strtoull(text, NULL, 0);
}

static void choose_cards(line *l, char *text) {
    char *rest;
    for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        int low, high, instance;
        if (strcmp(part, "*") == 0) { memset(l->cards, 1, sizeof l->cards); l->system = 1; }
        else if (strcmp(part, "-") == 0) l->system = 1;
        else if (sscanf(part, "%d.%d", &low, &instance) == 2) l->cards[MAX_CARDS + low * MAX_INSTANCES + instance] = 1;
        else {
            int n = sscanf(part, "%d-%d", &low, &high);
            for (int card = low; n > 0 && card <= (n == 2 ? high : low) && card < MAX_CARDS; card++) l->cards[card] = 1;
        }
    }
}

static const char *const KINDS[] = {"value", "error", "sleep", "block", "process", "usage", "text", "stall", "reload", "xid"};

static void parse_line(char *text) {
    char *rest, *word = strtok_r(text, " \t", &rest);
    if (!word || *word == '#' || line_count == MAX_LINES) return;
    line *l = &lines[line_count];
    memset(l, 0, sizeof *l);
    l->from = -FOREVER; l->to = FOREVER; l->last = NONE; l->every = 0;
    choose_cards(l, word);
    word = strtok_r(NULL, " \t", &rest);
    for (; word && (*word == '@' || *word == '#'); word = strtok_r(NULL, " \t", &rest)) {
        char *dots = strstr(word, "..");
        if (dots) *dots = 0;
        if (*word == '@') { if (word[1]) l->from = atof(word + 1); if (dots && dots[2]) l->to = atof(dots + 2); }
        else { l->first = strtoull(word + 1, NULL, 0); if (dots && dots[2]) l->last = strtoull(dots + 2, NULL, 0); }
    }
    int known = -1;
    for (int k = 0; word && k < 10; k++) if (strcmp(word, KINDS[k]) == 0) known = k;
    if (known < 0) { fprintf(stderr, "fake_nvml: unknown line %d\n", line_count + 1); abort(); }
    l->kind = (kind)known;
    if (l->kind != RELOAD && l->kind != USAGE && l->kind != XID && (word = strtok_r(NULL, " \t", &rest))) snprintf(l->name, sizeof l->name, "%s", word);
    if (l->kind == TEXT && (word = strtok_r(NULL, " \t", &rest))) {
        snprintf(l->text, sizeof l->text, "%s", word);
        for (char *c = l->text; *c; c++) if (*c == '_') *c = ' ';
    }
    while ((word = strtok_r(NULL, " \t", &rest))) {
        if (strcmp(word, "every") == 0 && (word = strtok_r(NULL, " \t", &rest))) l->every = atof(word);
        else if (word && strcmp(word, "rate") == 0 && (word = strtok_r(NULL, " \t", &rest))) l->rate = atof(word);
        else if (word && l->count < MAX_VALUES) l->values[l->count++] = number(word);
    }
    line_count++;
}

static void parse(const char *script) {
    char *copy = strdup(script), *rest;
    line_count = 0;
    for (char *text = strtok_r(copy, "\n", &rest); text; text = strtok_r(NULL, "\n", &rest)) parse_line(text);
    free(copy);
}

static void read_script(void) {
    const char *path = getenv("FAKE_NVML_SCRIPT"), *clock_path = getenv("FAKE_NVML_CLOCK");
    struct stat s;
    if (clock_path && !mapped_clock) {
        int f = open(clock_path, O_RDONLY);
        void *map = f < 0 ? MAP_FAILED : mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, f, 0);
        if (map != MAP_FAILED) mapped_clock = map;
        if (f >= 0) close(f);
    }
    if (script_size >= 0 && getenv("FAKE_NVML_STILL")) return;
    if (!path || stat(path, &s) != 0) return;
    if (s.st_size == script_size && s.st_mtim.tv_sec == script_time.tv_sec && s.st_mtim.tv_nsec == script_time.tv_nsec) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    char *text = calloc(1, (size_t)s.st_size + 1);
    if (fread(text, 1, (size_t)s.st_size, file) > 0) parse(text);
    free(text);
    fclose(file);
    script_time = s.st_mtim;
    script_size = s.st_size;
}

/* For tests in one process: the script as text, the clock, and how often the driver was called. */
void fake_nvml_play(const char *script) {
    pthread_mutex_lock(&lock);
    parse(script);
    reloads_seen = 0;
    memset(calls, 0, sizeof calls);
    pthread_mutex_unlock(&lock);
}
void fake_nvml_set_clock(double seconds) { own_clock = seconds; }
double fake_nvml_clock(void) { return now(); }
u64 fake_nvml_calls(void) { return total_calls; }

static int holds(const line *l, int card, double t) {
    return (card == SYSTEM ? l->system : l->cards[card]) && t >= l->from && t < l->to;
}

/* The newest line of a kind and name (or "*") that holds; `call` counts the calls of the function so far. */
static const line *find_line(kind k, int card, const char *name, u64 call) {
    double t = now();
    for (int i = line_count - 1; i >= 0; i--) {
        const line *l = &lines[i];
        if (l->kind == k && holds(l, card, t) && call >= l->first && call <= l->last &&
            (strcmp(l->name, name) == 0 || (k != VALUE && k != TEXT && strcmp(l->name, "*") == 0))) return l;
    }
    return NULL;
}

/* The text after "key=" (or "gpuN:key="), or NULL. */
static const char *find(const char *variable, int gpu, const char *key) {
    const char *text = getenv(variable);
    char own[96];
    const char *general = NULL;
    if (!text || !*text) return NULL;
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

static u64 *counter(const char *function, int card) {
    for (int i = 0; i < 192; i++) {
        if (!calls[i].name) calls[i].name = function;
        if (calls[i].name == function) return &calls[i].count[card + 1];
    }
    return &calls[191].count[card + 1];
}

/* Whether there is a value for the key, and which. */
static int has_value(int card, const char *key, u64 *found) {
    const char *text = find("FAKE_NVML_VALUES", card, key);
    if (text) { *found = strtoull(text, NULL, 0); return 1; }
    pthread_mutex_lock(&lock);
    const line *l = find_line(VALUE, card, key, 0);
    if (l && l->count) {
        double since = now() - (l->from > -FOREVER ? l->from : 0.0);
        int i = l->every > 0 ? (int)((since + 1e-9) / l->every) % l->count : 0;
        *found = l->values[i] + (u64)(long long)(l->rate * since);
    }
    pthread_mutex_unlock(&lock);
    return l && l->count;
}

static u64 value(int card, const char *key, u64 usual) {
    u64 found;
    return has_value(card, key, &found) ? found : usual;
}

/* The n-th number of a value line, e.g. the order of cards. */
static u64 nth_value(int card, const char *key, int n, u64 usual) {
    pthread_mutex_lock(&lock);
    const line *l = find_line(VALUE, card, key, NONE);
    u64 found = l && n < l->count ? l->values[n] : usual;
    pthread_mutex_unlock(&lock);
    return found;
}

/* A string of the script, of FAKE_NVML_VALUES (up to 9 characters: a driver version), or the usual one. */
static void copy_text(int card, const char *key, const char *usual, char *text, u32 size) {
    const char *found = find("FAKE_NVML_VALUES", card, key);
    if (found) { snprintf(text, size, "%.9s", found); return; }
    pthread_mutex_lock(&lock);
    const line *l = find_line(TEXT, card, key, NONE);
    snprintf(text, size, "%s", l ? l->text : usual);
    pthread_mutex_unlock(&lock);
}

static int error(int card, const char *name, u64 call) {
    const char *text = find("FAKE_NVML_ERRORS", card, name);
    if (!text) text = find("FAKE_NVML_ERRORS", card, "*");
    if (text) return atoi(text);
    pthread_mutex_lock(&lock);
    const line *l = find_line(ERROR, card, name, call);
    int code = l && l->count ? (int)l->values[0] : SUCCESS;
    pthread_mutex_unlock(&lock);
    return code;
}

static int reloads(void) {
    int n = 0;
    double t = now();
    for (int i = 0; i < line_count; i++) n += lines[i].kind == RELOAD && t >= lines[i].from;
    return n;
}

/* What happens before a function answers: latency, blocking, a reload, an error. */
static int enter(const char *function, int card, int starts) {
    pthread_mutex_lock(&lock);
    read_script();
    total_calls++;
    u64 call = ++*counter(function, card);
    const line *slow = find_line(SLEEP, card, function, call);
    double ms = slow && slow->count ? (double)slow->values[0] : 0.0;
    const line *stall = find_line(STALL, card, function, call);
    if (stall && stall->count) own_clock = now() + (double)stall->values[0];
    int blocked = find_line(BLOCK, card, function, call) != NULL;
    int gone = !initialised || reloads() != reloads_seen;
    pthread_mutex_unlock(&lock);
    if (ms > 0.0) pause_ms(ms);
    for (int waited = 0; blocked && waited < 30000; waited++) { /* never longer than a test may take */
        pause_ms(1.0);
        pthread_mutex_lock(&lock);
        read_script();
        blocked = find_line(BLOCK, card, function, call) != NULL;
        pthread_mutex_unlock(&lock);
    }
    int code = error(card, function, call);
    return code ? code : gone && !starts ? UNINITIALIZED : SUCCESS;
}
