/* Opening in advance the programs that a notebook used the last time.
 *
 * A note in the disk cache lists them. The thread opens one program after another, each only when nothing was
 * submitted or built for a moment, and only from the cache: a few milliseconds each, so that what comes
 * meanwhile waits no longer than that. Then it sleeps until there is something new to write down. Names and
 * numbers of the note are checked before they choose anything. */
#include "array/array_room.h"
#include "base/service.h"
#include "drupe/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_NS UINT64_C(100000000)
#define LOOK_NS UINT64_C(20000000)
#define MOST    64u

/* A program of a device. No padding: it is stored as it is. */
typedef struct wish {
    uint64_t device;
    kernel_key key;
} wish;
_Static_assert(sizeof(wish) == sizeof(uint64_t) + sizeof(kernel_key), "stored as it is");

typedef struct job {
    drupe_target *target;
    kernel_key key;
} job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t work(void *unused);
static drupe_service opener = {.name = "drupe-warm", .lock = &lock, .step = work};
static uint64_t seen, since; /* what was going on, and when that was new */
static bool unsaved, loaded;
static char *note;        /* its name; NULL: no warm-up */
static wish wishes[MOST]; /* used now, and below those used only the last time */
static size_t nwishes;
static job jobs[MOST];
static size_t njobs;

/* --- The list ------------------------------------------------------------------------------------------- */

/* FNV-1a over what tells devices apart; a wrong device costs a look into the cache. */
static uint64_t device_number(const drupe_target *target)
{
    char text[512] = "";
    uint64_t hash = UINT64_C(14695981039346656037);
    if (drupe_device_info(target->device, DRUPE_INFO_NAME, text, sizeof text - 2, NULL) != DRUPE_OK)
        text[0] = '\0';
    text[strlen(text)] = target->gpu_form ? '1' : '0';
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    return hash;
}

/* The same for all keys of a program. */
static kernel_key program_of(const kernel_key *key)
{
    kernel_key one = *key;
    one.layout = 0;
    if (one.shape == SHAPE_COLUMN) one.shape = SHAPE_ROW;
    if (one.shape != SHAPE_MAP && one.shape != SHAPE_ROW) return one;
    const op_row *row = drupe_op_row(key->op), *other;
    for (one.op = 0; one.op < key->op; one.op++) {
        other = drupe_op_row(one.op);
        if (other->family == row->family && other->arity == row->arity) break;
    }
    return one;
}

static bool key_is_sound(const kernel_key *key)
{
    bool good = key->shape >= SHAPE_MAP && key->shape <= SHAPE_MATMUL && key->layout >= 0 &&
                key->layout <= LAYOUT_STRIDED && drupe_op_row(key->op) && key->compute >= 0 &&
                key->compute < DRUPE_DTYPE_COUNT && key->out >= 0 && key->out < DRUPE_DTYPE_COUNT;
    for (int i = 0; i < DRUPE_KERNEL_INPUTS; i++)
        good = good && key->in[i] >= DRUPE_DTYPE_NONE && key->in[i] < DRUPE_DTYPE_COUNT;
    return good;
}

/* Read the note once; the lock is held. */
static void load_locked(void)
{
    void *bytes;
    size_t size;
    if (loaded) return;
    loaded = true;
    if (drupe_cache_note_read(note, &bytes, &size) != DRUPE_OK) return;
    for (size_t at = 0; size % sizeof(wish) == 0 && at < size && nwishes < MOST; at += sizeof(wish)) {
        wish one;
        memcpy(&one, (const char *)bytes + at, sizeof one);
        if (key_is_sound(&one.key)) wishes[nwishes++] = one;
    }
    free(bytes);
}

/* Put a program in front of the list; false when it stood there. */
static bool move_to_front(const wish *one)
{
    size_t at = 0;
    while (at < nwishes && memcmp(&wishes[at], one, sizeof *one) != 0) at++;
    if (at == 0 && nwishes) return false;
    if (at == nwishes && nwishes < MOST) nwishes++;
    if (at == MOST) at--;
    memmove(&wishes[1], &wishes[0], at * sizeof *wishes);
    wishes[0] = *one;
    return true;
}

/* --- The thread ----------------------------------------------------------------------------------------- */

/* The lock is held, and given up meanwhile. */
static void save(void)
{
    wish copy[MOST];
    size_t count = nwishes;
    char *name = strdup(note);
    memcpy(copy, wishes, count * sizeof *copy);
    unsaved = false;
    pthread_mutex_unlock(&lock);
    if (name) drupe_cache_note_write(name, copy, count * sizeof *copy); /* the next time may do better */
    free(name);
    pthread_mutex_lock(&lock);
}

/* The lock is held, and given up meanwhile. */
static void run_first(void)
{
    job one = jobs[0];
    memmove(&jobs[0], &jobs[1], --njobs * sizeof *jobs);
    pthread_mutex_unlock(&lock);
    drupe_program *program = NULL;
    if (drupe_target_program(one.target, &one.key, DRUPE_SOURCE_CACHED, &program) == DRUPE_OK)
        drupe_program_release(program); /* the target keeps it */
    pthread_mutex_lock(&lock);
}

/* The lock is held. */
static bool nothing_happens(void)
{
    uint64_t now = drupe_now_ns(), activity = drupe_library_activity();
    if (activity != seen) {
        seen = activity;
        since = now;
    }
    return now - since >= IDLE_NS;
}

static uint64_t work(void *unused)
{
    (void)unused;
    if (!njobs && !unsaved) return UINT64_MAX;
    if (!nothing_happens()) return drupe_deadline(LOOK_NS);
    if (njobs)
        run_first();
    else
        save();
    return 0;
}

static void wake_locked(void)
{
    if (!drupe_service_runs(&opener)) since = drupe_now_ns();
    if (drupe_service_start(&opener) == DRUPE_OK) drupe_service_wake(&opener);
}

/* --- Seen from outside ---------------------------------------------------------------------------------- */

void drupe_array_warm(const char *name)
{
    pthread_mutex_lock(&lock);
    free(note);
    note = NULL;
    size_t size = name ? strlen(name) + sizeof "warm " : 0;
    if (name && (note = malloc(size))) snprintf(note, size, "warm %s", name);
    nwishes = njobs = 0;
    unsaved = loaded = false;
    pthread_mutex_unlock(&lock);
}

void drupe_warm_begin(drupe_target *target)
{
    pthread_mutex_lock(&lock);
    if (note) {
        uint64_t device = device_number(target);
        load_locked();
        for (size_t i = 0; i < nwishes && njobs < MOST; i++)
            if (wishes[i].device == device) jobs[njobs++] = (job){target, wishes[i].key};
        if (njobs) wake_locked();
    }
    pthread_mutex_unlock(&lock);
}

void drupe_warm_note(const drupe_target *target, const kernel_key *key)
{
    pthread_mutex_lock(&lock);
    if (note) {
        wish one = {device_number(target), program_of(key)};
        load_locked();
        if (move_to_front(&one)) {
            unsaved = true;
            wake_locked();
        }
    }
    pthread_mutex_unlock(&lock);
}

void drupe_warm_stop(void)
{
    pthread_mutex_lock(&lock);
    njobs = 0;
    drupe_service_stop(&opener);
    if (unsaved && note) save();
    pthread_mutex_unlock(&lock);
}
