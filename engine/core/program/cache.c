/* The folder of built programs, and of what callers made, and the thread that fills it.
 *
 * Looking happens in the build's own thread and is one read of one file. Writing never does: some drivers
 * compile everything once more when they are asked for a binary (PoCL: a tenth of a second per kernel), so
 * such a job waits until nothing was submitted for a while, and is dropped when the process ends before that.
 * A job holds a reference to its program; drupe_cache_stop() gives all of them up. */
#include "base/service.h"
#include "core/program/program_room.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LIMIT_BYTES (UINT64_C(256) << 20)
#define ENTRY_BYTES ((size_t)1 << 28)
#define QUIET_NS    UINT64_C(500000000) /* nothing submitted for so long: the device is idle */
#define LOOK_NS     UINT64_C(50000000)
#define JOBS_MOST   64u
#define KERNELS_MOST                                                                                         \
    40u /* PoCL takes a tenth of a second for each: the process's end would wait too long                    \
         */
#define SECOND_NS INT64_C(1000000000)

typedef struct job {
    struct job *next;
    drupe_program *program; /* retained; NULL: it is of `bytes` */
    drupe_text where, key, log, bytes;
    size_t kernels;
    bool compiles; /* the driver may compile for it */
} job;

static uint64_t work(void *unused);

/* `lock` guards all but the counters of builds. More than 20 members, with those of the service and of what
 * callers are told: all of it begins and ends with the folder. */
static struct cache {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* jobs, `working` */
    drupe_service writer;
    job *jobs, **jobs_end;
    size_t njobs;
    bool working;
    const drupe_device *asked_device; /* of the program whose binary is being asked for */
    unsigned flushing;
    uint64_t seen, since; /* the last activity that the writer saw, and when */
    bool asked;           /* the environment was read */
    int folder;
    uint64_t room; /* bytes that may be written before the folder is looked through again */
    drupe_cache_info known;
    _Atomic(uint64_t) builds;  /* that have ended */
    _Atomic(uint32_t) running; /* builds */
} cache = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    /* At its end it still writes what needs no compiler. */
    .writer = {.name = "drupe-cache", .lock = &cache.lock, .step = work, .finishes = true},
    .jobs_end = &cache.jobs,
    .folder = -1,
};

/* --- The folder ----------------------------------------------------------------------------------------- */

static uint64_t limit_of_environment(void)
{
    const char *text = getenv("DRUPE_CACHE_SIZE");
    uint64_t bytes;
    return text && drupe_amount_parse(text, NULL, &bytes) ? bytes : LIMIT_BYTES;
}

static bool folder_name(char *path, size_t size)
{
    const char *own = getenv("DRUPE_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (own && *own)
        length = snprintf(path, size, "%s/programs", own);
    else if (xdg && *xdg == '/')
        length = snprintf(path, size, "%s/drupe/programs", xdg);
    else if (home && *home == '/')
        length = snprintf(path, size, "%s/.cache/drupe/programs", home);
    bool fits = (size_t)length < size; /* as a failure does not */
    if (!fits) path[0] = '\0';
    return fits;
}

static void note_reason(const char *reason)
{
    snprintf(cache.known.reason, sizeof cache.known.reason, "%.255s", reason);
    drupe_core_note("programs are not kept: %s", cache.known.reason);
}

/* Read the environment and open the folder once; the lock is held. */
static void settle_locked(void)
{
    if (cache.asked) return;
    const char *wanted = getenv("DRUPE_CACHE");
    drupe_error kept = *drupe_error_last();
    cache.asked = true;
    cache.known.limit = limit_of_environment();
    cache.room = 0;
    cache.known.on = false;
    cache.known.reason[0] = '\0';
    bool named = folder_name(cache.known.folder, sizeof cache.known.folder);
    if (wanted && (strcmp(wanted, "0") == 0 || strcasecmp(wanted, "off") == 0))
        note_reason("DRUPE_CACHE switches it off.");
    else if (!named)
        note_reason("Neither DRUPE_CACHE_DIR nor HOME names a folder.");
    else if (drupe_folder_open(cache.known.folder, true, &cache.folder) != DRUPE_OK)
        note_reason(drupe_error_last()->text);
    else
        cache.known.on = true;
    if (cache.known.on) drupe_cache_mark(cache.folder);
    drupe_error_restore(&kept);
}

/* A descriptor of the folder for the caller to close, or -1 while the cache is off. */
static int folder_get(void)
{
    if (drupe_core_check() != DRUPE_OK) return -1;
    pthread_mutex_lock(&cache.lock);
    settle_locked();
    int fd = cache.known.on ? fcntl(cache.folder, F_DUPFD_CLOEXEC, 0) : -1;
    pthread_mutex_unlock(&cache.lock);
    return fd;
}

static void entry_name(char name[48], const drupe_text *where, const drupe_text *key)
{
    drupe_span parts[] = {{where->data, where->length}, {key->data, key->length}};
    drupe_cache_name(name, parts, 2, DRUPE_CACHE_ENTRY);
}

/* --- Looking -------------------------------------------------------------------------------------------- */

static bool same(drupe_span part, const drupe_text *text)
{
    return part.size == text->length && memcmp(part.bytes, text->data, part.size) == 0;
}

static void count(uint64_t *counter)
{
    pthread_mutex_lock(&cache.lock);
    ++*counter;
    pthread_mutex_unlock(&cache.lock);
}

/* drupe_cache_find(), of a kind of entries. DRUPE_E_UNAVAILABLE: the cache is off; DRUPE_E_NOT_FOUND;
 * DRUPE_E_INVALID. */
static drupe_status look(uint32_t kind, const drupe_text *where, const drupe_text *key, void **bytes,
                         drupe_record *record)
{
    char name[48];
    size_t size = 0;
    drupe_error kept = *drupe_error_last();
    *bytes = NULL;
    int fd = folder_get();
    if (fd < 0) return DRUPE_E_UNAVAILABLE;
    entry_name(name, where, key);
    drupe_status status = drupe_file_read(fd, name, ENTRY_BYTES, true, bytes, &size);
    close(fd);
    drupe_error_restore(&kept);
    if (status == DRUPE_OK && drupe_record_open(*bytes, size, kind, record) &&
        same(record->parts[DRUPE_PART_WHERE], where) && same(record->parts[DRUPE_PART_KEY], key))
        return DRUPE_OK;
    free(*bytes);
    *bytes = NULL;
    return status == DRUPE_E_NOT_FOUND ? status : DRUPE_E_INVALID;
}

bool drupe_cache_find(const drupe_text *where, const drupe_text *key, void **bytes, drupe_record *record)
{
    drupe_status status = look(DRUPE_RECORD_PROGRAM, where, key, bytes, record);
    if (status != DRUPE_E_UNAVAILABLE)
        count(status == DRUPE_OK            ? &cache.known.hits
              : status == DRUPE_E_NOT_FOUND ? &cache.known.misses
                                            : &cache.known.rejected);
    return status == DRUPE_OK;
}

/* Where bytes of callers belong: to the engine's version. With the key as a text; false for lack of memory.
 */
static bool name_bytes(const void *key, size_t size, drupe_text *where, drupe_text *text)
{
    drupe_text_printf(where, "drupe %s\n", drupe_version());
    drupe_text_append(text, key, size);
    return !where->failed && !text->failed;
}

bool drupe_cache_bytes_find(const void *key, size_t key_size, void **bytes, size_t *size)
{
    drupe_text where = {0}, text = {0};
    drupe_record record;
    void *whole = NULL;
    *bytes = NULL;
    *size = 0;
    if (name_bytes(key, key_size, &where, &text) &&
        look(DRUPE_RECORD_BYTES, &where, &text, &whole, &record) == DRUPE_OK) {
        drupe_span body = record.parts[DRUPE_PART_BODY];
        *size = body.size;
        memmove(whole, body.bytes, body.size);
        *bytes = whole;
    }
    drupe_text_clear(&where);
    drupe_text_clear(&text);
    return *bytes != NULL;
}

void drupe_cache_reject(const drupe_text *where, const drupe_text *key)
{
    char name[48];
    int fd = folder_get();
    if (fd < 0) return;
    entry_name(name, where, key);
    (void)unlinkat(fd, name, 0);
    close(fd);
    pthread_mutex_lock(&cache.lock);
    cache.known.hits--;
    cache.known.rejected++;
    pthread_mutex_unlock(&cache.lock);
}

/* --- Whether anything is submitted or built: what the background waits for ------------------------------ */

void drupe_activity_begin(void)
{
    atomic_fetch_add_explicit(&cache.running, 1, memory_order_relaxed);
}

void drupe_activity_end(void)
{
    atomic_fetch_add_explicit(&cache.builds, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&cache.running, 1, memory_order_release);
}

/* Another number after every submission and during every build. */
static uint64_t activity_now(void)
{
    /* Who sees that a build has ended counts it, too. */
    if (atomic_load_explicit(&cache.running, memory_order_acquire)) return drupe_now_ns();
    return drupe_inflight_latest() + atomic_load_explicit(&cache.builds, memory_order_relaxed);
}

/* --- Writing -------------------------------------------------------------------------------------------- */

/* Keep to the limit, of which an eighth is free afterwards. To look through a folder of many small entries
 * takes longer than to write one, so it is done again after a sixty-fourth of the limit: what other processes
 * have written meanwhile is counted then. */
static void keep_to(uint64_t limit, int fd, size_t written)
{
    uint64_t all = 0, most = limit - limit / 8, step = limit / 64;
    pthread_mutex_lock(&cache.lock);
    const bool room = written <= cache.room;
    cache.room -= room ? written : 0;
    pthread_mutex_unlock(&cache.lock);
    if (room) return;
    const bool known = drupe_cache_make_room(fd, limit, NULL, &all) == DRUPE_OK && all < most;
    pthread_mutex_lock(&cache.lock);
    cache.room = !known ? 0 : most - all < step ? most - all : step;
    pthread_mutex_unlock(&cache.lock);
}

static drupe_status write_record(int fd, const char *name, const drupe_record *record)
{
    void *bytes;
    size_t size;
    DRUPE_TRY(drupe_record_pack(record, &bytes, &size));
    drupe_span part = {bytes, size};
    pthread_mutex_lock(&cache.lock);
    uint64_t limit = cache.known.limit;
    pthread_mutex_unlock(&cache.lock);
    drupe_status status =
        size > limit || size > ENTRY_BYTES
            ? drupe_error_set(DRUPE_E_NO_MEMORY, "An entry of %zu bytes is larger than the limit.", size)
            : drupe_file_replace(fd, name, &part, 1);
    free(bytes);
    if (status == DRUPE_OK) keep_to(limit, fd, size);
    return status;
}

static drupe_status store_bytes(const job *one, int fd)
{
    char name[48];
    drupe_record record = {DRUPE_RECORD_BYTES,
                           {[DRUPE_PART_WHERE] = {one->where.data, one->where.length},
                            [DRUPE_PART_KEY] = {one->key.data, one->key.length},
                            [DRUPE_PART_BODY] = {one->bytes.data, one->bytes.length}}};
    entry_name(name, &one->where, &one->key);
    return write_record(fd, name, &record);
}

static drupe_status store(const job *one, int fd)
{
    char name[48];
    void *bytes = NULL;
    size_t size = 0;
    DRUPE_TRY(drupe_loss_check(one->program->device));
    drupe_text args = {0};
    drupe_status status = drupe_args_pack(one->program, &args);
    if (status == DRUPE_OK)
        status = one->program->object.backend->program_binary(one->program, &bytes, &size);
    if (status != DRUPE_OK) {
        drupe_text_clear(&args);
        return status;
    }
    drupe_record record = {DRUPE_RECORD_PROGRAM,
                           {{one->where.data, one->where.length},
                            {one->key.data, one->key.length},
                            {one->log.data, one->log.length},
                            {args.data, args.length},
                            {bytes, size}}};
    entry_name(name, &one->where, &one->key);
    status = write_record(fd, name, &record);
    free(bytes);
    drupe_text_clear(&args);
    return status;
}

static void run_job(const job *one)
{
    int fd = folder_get();
    if (fd < 0) return;
    drupe_status status = one->program ? store(one, fd) : store_bytes(one, fd);
    close(fd);
    pthread_mutex_lock(&cache.lock);
    if (status == DRUPE_OK && one->program) cache.known.stored++;
    note_reason(status == DRUPE_OK ? "" : drupe_error_last()->text);
    pthread_mutex_unlock(&cache.lock);
}

static void job_free(job *one)
{
    drupe_program_release(one->program);
    drupe_text_clear(&one->where);
    drupe_text_clear(&one->key);
    drupe_text_clear(&one->log);
    drupe_text_clear(&one->bytes);
    free(one);
}

static job *take_first(void)
{
    job *one = cache.jobs;
    cache.jobs = one->next;
    if (!cache.jobs) cache.jobs_end = &cache.jobs;
    cache.njobs--;
    return one;
}

/* When to look at the first job again; 0: it is to be done now. The lock is held. */
static uint64_t time_of_first(void)
{
    uint64_t now = drupe_now_ns(), activity = activity_now();
    if (!cache.jobs->compiles || cache.flushing || cache.writer.stopping) return 0;
    if (activity != cache.seen) {
        cache.seen = activity;
        cache.since = now;
    }
    return now - cache.since >= QUIET_NS ? 0 : now + LOOK_NS;
}

static uint64_t work(void *unused)
{
    (void)unused;
    uint64_t until = cache.jobs ? time_of_first() : UINT64_MAX;
    if (until) return until;
    job *one = take_first();
    bool skip = one->compiles && (cache.writer.stopping || (!cache.flushing && one->kernels > KERNELS_MOST));
    cache.working = true;
    cache.asked_device = one->program ? one->program->device : NULL;
    pthread_mutex_unlock(&cache.lock);
    if (!skip) run_job(one);
    pthread_mutex_lock(&cache.lock);
    cache.asked_device = NULL;
    pthread_mutex_unlock(&cache.lock);
    job_free(one);
    pthread_mutex_lock(&cache.lock);
    cache.working = false;
    pthread_cond_broadcast(&cache.changed);
    return 0;
}

static job *job_new(drupe_program *program, drupe_language language, const drupe_text *where,
                    const drupe_text *key, const char *log)
{
    job *one = calloc(1, sizeof *one);
    if (!one) return NULL;
    one->program = drupe_program_retain(program);
    drupe_text_append(&one->where, where->data, where->length);
    drupe_text_append(&one->key, key->data, key->length);
    if (log) drupe_text_append(&one->log, log, strlen(log));
    /* The library that C became is at hand. */
    one->compiles = program->device->type == DRUPE_DEVICE_CPU && language != DRUPE_LANG_C;
    one->kernels = 1;
    for (const char *at = drupe_program_kernel_names(program); *at; at++) one->kernels += *at == ';';
    if (!one->where.failed && !one->key.failed && !one->log.failed) return one;
    job_free(one);
    return NULL;
}

void drupe_cache_add(drupe_program *program, drupe_language language, const drupe_text *where,
                     const drupe_text *key, const char *log)
{
    int fd = folder_get();
    if (fd < 0) return;
    close(fd);
    job *one = job_new(program, language, where, key, log), *dropped = NULL;
    if (!one) return;
    pthread_mutex_lock(&cache.lock);
    if (drupe_service_start(&cache.writer) != DRUPE_OK) {
        dropped = one;
    } else {
        *cache.jobs_end = one;
        cache.jobs_end = &one->next;
        if (++cache.njobs > JOBS_MOST) dropped = take_first();
        drupe_service_wake(&cache.writer);
    }
    pthread_mutex_unlock(&cache.lock);
    if (dropped) job_free(dropped);
}

/* Bytes cost nothing to write, so they do not wait behind what waits for a device at rest. Where many wait
 * nevertheless, the writer waits for a driver, and more of them are not kept. */
void drupe_cache_bytes_add(const void *key, size_t key_size, const void *bytes, size_t size)
{
    int fd = folder_get();
    if (fd < 0) return;
    close(fd);
    job *one = calloc(1, sizeof *one);
    if (!one) return;
    drupe_text_append(&one->bytes, bytes, size);
    bool good = name_bytes(key, key_size, &one->where, &one->key) && !one->bytes.failed;
    pthread_mutex_lock(&cache.lock);
    good = good && cache.njobs < 2 * JOBS_MOST && drupe_service_start(&cache.writer) == DRUPE_OK;
    if (good) {
        one->next = cache.jobs;
        if (!cache.jobs) cache.jobs_end = &one->next;
        cache.jobs = one;
        cache.njobs++;
        drupe_service_wake(&cache.writer);
    }
    pthread_mutex_unlock(&cache.lock);
    if (!good) job_free(one);
}

drupe_status drupe_cache_flush(uint64_t timeout_ns)
{
    DRUPE_TRY(drupe_core_check());
    uint64_t deadline = drupe_deadline(timeout_ns);
    pthread_mutex_lock(&cache.lock);
    cache.flushing++;
    drupe_service_wake(&cache.writer);
    bool in_time = true;
    while ((cache.jobs || cache.working) && in_time)
        in_time = drupe_cond_wait_until(&cache.changed, &cache.lock, deadline);
    cache.flushing--;
    bool done = !cache.jobs && !cache.working;
    pthread_mutex_unlock(&cache.lock);
    return done ? DRUPE_OK
                : drupe_error_set(DRUPE_E_TIMEOUT, "Programs still wait to be written to the cache.");
}

void drupe_cache_stop(void)
{
    pthread_mutex_lock(&cache.lock);
    /* A driver whose device was lost meanwhile may never answer. */
    while (drupe_service_end(&cache.writer, drupe_deadline(LOOK_NS)) == DRUPE_E_TIMEOUT) {
        if (cache.asked_device && drupe_device_silent(cache.asked_device))
            drupe_service_abandon(&cache.writer);
    }
    cache.asked = false;
    if (cache.folder >= 0) close(cache.folder);
    cache.folder = -1;
    cache.known.on = false;
    pthread_mutex_unlock(&cache.lock);
}

/* --- Seen from outside ---------------------------------------------------------------------------------- */

bool drupe_cache_is_on(void)
{
    if (drupe_core_check() != DRUPE_OK) return false;
    pthread_mutex_lock(&cache.lock);
    settle_locked();
    const bool on = cache.known.on;
    pthread_mutex_unlock(&cache.lock);
    return on;
}

void drupe_cache_info_get(drupe_cache_info *info)
{
    *info = (drupe_cache_info){.on = false};
    if (drupe_core_check() != DRUPE_OK) {
        snprintf(info->reason, sizeof info->reason, "%.255s", drupe_error_last()->text);
        return;
    }
    int fd = folder_get();
    pthread_mutex_lock(&cache.lock);
    *info = cache.known;
    pthread_mutex_unlock(&cache.lock);
    info->entries = info->bytes = 0;
    drupe_file_entry *entries;
    size_t nentries;
    if (fd >= 0 && drupe_folder_list(fd, &entries, &nentries) == DRUPE_OK) {
        for (size_t i = 0; i < nentries; i++) {
            info->entries += drupe_cache_is_entry(entries[i].name);
            if (drupe_cache_is_ours(entries[i].name)) info->bytes += entries[i].bytes;
        }
        drupe_folder_list_free(entries, nentries);
    }
    if (fd >= 0) close(fd);
}

static drupe_status folder_for_user(int *fd)
{
    DRUPE_TRY(drupe_core_check());
    *fd = folder_get();
    if (*fd >= 0) return DRUPE_OK;
    pthread_mutex_lock(&cache.lock);
    drupe_status status = drupe_error_set(DRUPE_E_UNAVAILABLE, "The cache is off. %s", cache.known.reason);
    pthread_mutex_unlock(&cache.lock);
    return status;
}

/* The rest of the line that begins with `begin`, which is "\nNAME ", or "". */
static void line_of(drupe_span text, const char *begin, char *value, size_t size)
{
    const char *end = (const char *)text.bytes + text.size;
    const char *at = memmem(text.bytes, text.size, begin, strlen(begin));
    value[0] = '\0';
    if (!at) return;
    at += strlen(begin);
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop) snprintf(value, size, "%.*s", (int)(stop - at), at);
}

static bool visit_file(int fd, const drupe_file_entry *file, bool (*visit)(const drupe_cache_entry *, void *),
                       void *user)
{
    void *bytes = NULL;
    size_t size = 0;
    drupe_record record = {0};
    char device[200] = "", backend[32], name[96], driver[32];
    bool whole = drupe_file_read(fd, file->name, ENTRY_BYTES, false, &bytes, &size) == DRUPE_OK;
    bool program = whole && drupe_record_open(bytes, size, DRUPE_RECORD_PROGRAM, &record);
    bool valid = program || (whole && drupe_record_open(bytes, size, DRUPE_RECORD_BYTES, &record));
    if (program) {
        drupe_span where = record.parts[DRUPE_PART_WHERE];
        line_of(where, "\nbackend ", backend, sizeof backend);
        line_of(where, "\ndevice ", name, sizeof name);
        line_of(where, "\ndriver ", driver, sizeof driver);
        snprintf(device, sizeof device, "%s %s (driver %s)", backend, name, driver);
    }
    free(bytes);
    drupe_cache_entry entry = {file->name, device, file->bytes, file->used / SECOND_NS, valid};
    return visit(&entry, user);
}

drupe_status drupe_cache_each(bool (*visit)(const drupe_cache_entry *entry, void *user), void *user)
{
    int fd;
    drupe_file_entry *entries;
    size_t nentries;
    DRUPE_TRY(folder_for_user(&fd));
    drupe_status status = drupe_folder_list(fd, &entries, &nentries);
    bool more = true;
    for (size_t i = nentries; i-- > 0 && more;)
        if (drupe_cache_is_entry(entries[i].name)) more = visit_file(fd, &entries[i], visit, user);
    drupe_folder_list_free(entries, nentries);
    close(fd);
    return status;
}

drupe_status drupe_cache_clear(uint64_t *bytes)
{
    int fd;
    if (bytes) *bytes = 0;
    DRUPE_TRY(folder_for_user(&fd));
    drupe_status status = drupe_cache_make_room(fd, 0, bytes, NULL);
    close(fd);
    return status;
}
