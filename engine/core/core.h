/* What the files of core share: the objects behind the public handles, and the steps of a submission.
 *
 * A reading tour: library.c (what is loaded) -> device.c, filter.c, path.c, selector.c, info.c, split.c,
 * lost.c, contain.c -> context.c, program.c, memory.c over pool.c and registry.c -> submit.c (checks) ->
 * queue.c, unordered.c and flight.c (order, keep-alive) -> event.c, event_memory.c, failure.c (how it ended),
 * trace.c (what is remembered of it) -> hold.c (work that must wait for another context), worker.c, watch.c
 * (who is told of its end) -> stage.c, pinned.c (copies in several steps).
 *
 * Locks, in the order in which they may be taken:
 *   slot->lock       opening and closing one backend
 *   library.lock     default contexts and queues
 *   `serving`        of watch.c: the waiter looks at what is watched
 *   queue->lock      one queue's flights; held during its backend calls, never while references are dropped
 *   kernel->lock     calls with one kernel
 *   hold_lock        the list of queues with held work, and waiting for held events
 *   registry lock, pool->lock, info_lock, failure lock, list locks: leaves
 *
 * Two of the leaves have leaves below them: the list of contexts while pools are trimmed, and zone.c's lock
 * while a finding is written down. No thread holds two queue locks. The waiter and the workers never drop
 * what a caller gave.
 *
 * Fork: after a fork of a process with an open library, the child's locks may be held by threads that it does
 * not have. Every entry begins with drupe_core_check(), releases do nothing there. */
#ifndef DRUPE_CORE_CORE_H
#define DRUPE_CORE_CORE_H

#include "backends/backend.h"
#include "base/base.h"
#include "core/brief.h"
#include "core/kernel.h"
#include "drupe/trace.h"
#include <limits.h>

typedef struct drupe_slot drupe_slot;
typedef struct drupe_flight drupe_flight;
typedef struct drupe_cause drupe_cause;
typedef struct drupe_mark drupe_mark;

/* Something for a worker to do; part of what it is about. */
typedef struct drupe_job {
    struct drupe_job *next;
    void (*run)(struct drupe_job *job);
    void (*fail)(
        struct drupe_job *job); /* instead of the rest of run(), with the thread's error: it faulted */
    _Atomic(int) *busy;         /* the worker's: not 0 while run() is in the caller's code */
    const char *what;           /* static: what faulted, "host function" or the like */
} drupe_job;

/* --- library.c ------------------------------------------------------------------------------------------ */

/* One backend and what is known of it. */
struct drupe_slot {
    const drupe_backend *backend; /* `base` with its layers; set when it is loaded */
    const drupe_backend *base;
    pthread_mutex_t lock; /* loading and unloading */
    _Atomic(int) loaded;  /* 1: `state` and `devices` are valid */
    bool failed;          /* load() failed: `error` says why; tried again after drupe_library_close() */
    void *state;
    drupe_device **devices; /* the library's references */
    uint32_t ndevices;
    drupe_error error;
    _Atomic(size_t) live; /* objects of this backend; not root devices, nor memory, which its queue keeps */
};

enum drupe_object_kind {
    DRUPE_OBJECT_DEVICE = 1,
    DRUPE_OBJECT_CONTEXT,
    DRUPE_OBJECT_QUEUE,
    DRUPE_OBJECT_EVENT,
    DRUPE_OBJECT_MEMORY,
    DRUPE_OBJECT_PROGRAM,
    DRUPE_OBJECT_KERNEL
};

extern _Atomic(bool) drupe_core_forked;
/* DRUPE_OK, or the error of a forked child. */
drupe_status drupe_core_check(void) DRUPE_MUST_CHECK;

size_t drupe_slot_count(void);
drupe_slot *drupe_slot_at(size_t index);
/* Open the vendor library and its devices if that has not been done. The error is remembered. */
drupe_status drupe_slot_load(drupe_slot *slot) DRUPE_MUST_CHECK;
/* Opens what the library needs before its first object: the fork handler. */
void drupe_library_start(void);
/* Guards default contexts and queues of devices. */
void drupe_library_lock(void);
void drupe_library_unlock(void);

/* A zeroed object of `size` bytes with `native` bytes behind it and one reference; counted in slot->live
 * unless `slot` is NULL. NULL without memory, with the error set. */
void *drupe_object_new(drupe_slot *slot, const drupe_backend *backend, uint32_t kind, size_t size,
                       size_t native);
void drupe_object_free(drupe_slot *slot, void *object);
static inline void drupe_object_retain(void *object)
{
    atomic_fetch_add_explicit(&((drupe_object *)object)->references, 1, memory_order_relaxed);
}
/* The same for an object that no other thread can see yet. */
static inline void drupe_object_retain_unshared(void *object)
{
    _Atomic(uint32_t) *references = &((drupe_object *)object)->references;
    atomic_store_explicit(references, atomic_load_explicit(references, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}
/* A reference, unless the last one is gone already. */
static inline bool drupe_object_try_retain(void *object)
{
    _Atomic(uint32_t) *references = &((drupe_object *)object)->references;
    uint32_t seen = atomic_load_explicit(references, memory_order_relaxed);
    while (seen) {
        if (atomic_compare_exchange_weak_explicit(references, &seen, seen + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}
/* True when that was the last reference: the caller destroys the object. False in a forked child. */
static inline bool drupe_object_release(void *object)
{
    if (atomic_load_explicit(&drupe_core_forked, memory_order_relaxed)) return false;
    return atomic_fetch_sub_explicit(&((drupe_object *)object)->references, 1, memory_order_acq_rel) == 1;
}

/* The observer's cell of this thread, retained, or NULL; and its release. */
void *drupe_core_cell(void);
void drupe_core_cell_release(void *cell);
void *drupe_core_cell_share(void *cell); /* another reference, or NULL when the observer gives none */
/* A line for the observer's log. */
void drupe_core_note(const char *format, ...) DRUPE_PRINTF(1, 2);
/* Whether the observer has shown this failure. */
bool drupe_core_failed(const drupe_failure *failure);
/* Whether the observer wants to know whose work prints; and what it is told. */
bool drupe_core_prints(void);
void drupe_core_printing(void *cell);
/* Wait for work of the queue on the program's behalf: see pause() of drupe_observer. */
drupe_status drupe_core_pause(drupe_queue *queue, uint64_t timeout_ns) DRUPE_MUST_CHECK;
/* The observer is told of a build; NULL-safe. */
void *drupe_core_building(const drupe_source *source, const drupe_device *device);
/* Whether this thread is that of a build (background.c), which was told of before it began. */
bool drupe_build_here(void);
void drupe_core_built(void *shown, bool good);
uint32_t drupe_core_cell_number(void *cell); /* 0: none */
/* The observer's number for the place that this thread's program is at, or 0. */
uint32_t drupe_core_site(void);
/* The observer's words for a place, "" when there is nothing to say. Async-signal-safe. */
void drupe_core_site_text(uint32_t site, uint32_t cell, char *text, size_t size);

/* --- device.c, info.c ----------------------------------------------------------------------------------- */

enum { DRUPE_INFO_UNASKED, DRUPE_INFO_KNOWN, DRUPE_INFO_MEANINGLESS };

typedef struct drupe_info_entry {
    _Atomic(int) state; /* of the next enum; the rest is fixed once it is not UNASKED */
    uint64_t number[3];
    char *text;
} drupe_info_entry;

/* Bytes of a root device, over all its contexts. */
typedef struct drupe_use {
    _Atomic(uint64_t) used, reserved, peak, count;
    _Atomic(uint64_t) flying; /* of pieces whose handle is gone, and which work in flight uses */
} drupe_use;

/* Why a device is lost; see drupe_core_device_lost(). */
typedef struct drupe_loss {
    drupe_error error;
    bool silent;
} drupe_loss;

/* Whose context a device's parts live in. */
typedef enum drupe_parts { DRUPE_PARTS_UNTRIED, DRUPE_PARTS_SHARE, DRUPE_PARTS_ALONE } drupe_parts;

struct drupe_device {
    drupe_object object;
    drupe_slot *slot;
    drupe_device *parent; /* retained; NULL for a root */
    drupe_device *root;   /* itself for a root */
    drupe_device_type type;
    bool opened;               /* the backend has seen it: device_close() is due */
    bool listed;               /* one of slot->devices */
    const char *filter;        /* malloc'ed; "" until it has a name */
    drupe_partition_kind made; /* how a sub-device was made, and along which domain */
    drupe_domain made_along;
    drupe_device *sub_prev, *sub_next; /* all living sub-devices; device.c's lock */
    pthread_mutex_t info_lock;
    drupe_info_entry info[DRUPE_INFO_COUNT];
    /* The default one: retained by a listed device, borrowed by a part that needs its own; library lock. */
    drupe_context *context;
    int parts;          /* of a root: drupe_parts; library lock */
    drupe_queue *queue; /* the default one, retained by a listed device, else borrowed; library lock */
    /* Of a root. */
    drupe_use use, kinds[3];                 /* `use` over all kinds, its count not kept */
    _Atomic(uint64_t) limit;                 /* most bytes that may be reserved; 0: not looked up yet */
    _Atomic(uint64_t) free_then, free_asked; /* bytes that were free, and when */
    _Atomic(uint64_t) stuck;    /* bytes in flight when waiting for some did not help; see pace.c */
    _Atomic(uint32_t) wipe;     /* drupe_wipe, and DRUPE_WIPE_ASKED once the environment was looked at */
    _Atomic(drupe_loss *) loss; /* of a root, once it is lost */
};

/* The numbers of a property that was asked for before and is fixed, or NULL; for hot paths. */
static inline const uint64_t *drupe_info_ready(const drupe_device *device, drupe_info key)
{
    const drupe_info_entry *entry = &device->info[key];
    bool known =
        atomic_load_explicit(&((drupe_info_entry *)entry)->state, memory_order_acquire) == DRUPE_INFO_KNOWN;
    return known ? entry->number : NULL;
}

/* A device whose native state is still to be filled. `parent` NULL: a root. */
drupe_status drupe_device_new(drupe_slot *slot, drupe_device *parent, drupe_device **device) DRUPE_MUST_CHECK;
void drupe_info_clear(drupe_device *device);
/* Give it another name, *taken* and malloc'ed; NULL is DRUPE_E_NO_MEMORY. Before others see the device. */
drupe_status drupe_device_rename(drupe_device *device, char *filter) DRUPE_MUST_CHECK;
/* A sub-device is complete: filters may find it. And the end of that. */
void drupe_device_announce(drupe_device *device);
void drupe_device_conceal(drupe_device *device);
/* The living sub-device of that filter, retained, or NULL. */
drupe_device *drupe_device_living(const drupe_slot *slot, const char *filter);
/* The division that a filter's step means when it says nothing else. `how->units` points to `unit`. False: it
 * is indivisible. */
bool drupe_split_plain(drupe_device *device, drupe_partition *how, uint32_t *unit);
/* The filter of part `index` of a division, appended. */
void drupe_split_name(drupe_device *device, const drupe_partition *partition, size_t index, drupe_text *text);
/* Give up the default queue and context of a device, and the library's reference with it. */
void drupe_device_forget(drupe_device *device);

/* --- lost.c, contain.c ---------------------------------------------------------------------------------- */

/* NULL while the device lives. */
static inline const drupe_loss *drupe_device_loss(const drupe_device *device)
{
    return atomic_load_explicit(&device->root->loss, memory_order_acquire);
}
/* Whether its driver must not be called any more. */
static inline bool drupe_device_silent(const drupe_device *device)
{
    const drupe_loss *loss = drupe_device_loss(device);
    return loss && loss->silent;
}
/* DRUPE_OK, or the error of a lost device. */
drupe_status drupe_loss_check(const drupe_device *device) DRUPE_MUST_CHECK;

/* --- filter.c, path.c ----------------------------------------------------------------------------------- */

#define DRUPE_FILTER_ABSENT INT_MAX /* a backend that is known, but not built in */

/* One alternative of a filter. */
typedef struct drupe_filter {
    int backend;      /* slot index, DRUPE_FILTER_ABSENT, or -1 */
    int type;         /* drupe_device_type, or -1 */
    long number;      /* or -1 */
    const char *path; /* the steps into the device: ".1", "{2}.0.1"; borrowed from the text */
    size_t path_size; /* 0 = none */
} drupe_filter;
/* Parse the alternative that begins at `*text` and move `*text` behind it and its comma. */
drupe_status drupe_filter_next(const char **text, drupe_filter *filter) DRUPE_MUST_CHECK;
/* Whether this device matches, its number and path apart. */
bool drupe_filter_match(const drupe_filter *filter, const drupe_device *device);
/* Whether this backend, loaded or not, could have a device that matches. */
bool drupe_filter_possible(const drupe_filter *filter, size_t slot);
/* A number of at most 6 digits that is the whole word. */
bool drupe_filter_number(const char *word, size_t length, long *number);
/* The slot of a backend's name, DRUPE_FILTER_ABSENT, or -1; a type's number, or -1. */
int drupe_filter_backend(const char *word, size_t length);
int drupe_filter_type(const char *word, size_t length);

/* Whether a path is well-formed. */
bool drupe_path_valid(const char *path, size_t size);
/* The sub-device that the path leads to, retained; the device itself for an empty path. */
drupe_status drupe_path_walk(drupe_device *device, const char *path, size_t size,
                             drupe_device **found) DRUPE_MUST_CHECK;

/* --- selector.c: what the environment leaves of the devices ----------------------------------------------
 */

/* DRUPE_OK, or what is wrong in the variable that is set. */
drupe_status drupe_selector_check(void) DRUPE_MUST_CHECK;
/* Whether any device of this backend can be left: else its library need not be opened. */
bool drupe_selector_possible(size_t slot);
/* Replace slot->devices by what is left of them and their parts, each with a reference. */
drupe_status drupe_selector_apply(drupe_slot *slot) DRUPE_MUST_CHECK;

/* --- context.c ------------------------------------------------------------------------------------------ */

typedef struct drupe_pool drupe_pool;
typedef struct drupe_ring drupe_ring;

struct drupe_context {
    drupe_object object;
    drupe_slot *slot;
    drupe_device **devices; /* retained */
    size_t ndevices;
    bool is_default; /* a part points to it; library lock */
    bool opened;
    drupe_pool *pools;          /* one per device and kind */
    drupe_ring *ring;           /* pinned memory for the next large copy; pinned.c's lock */
    drupe_context *prev, *next; /* all contexts, context.c's lock */
};

/* The index of the member that is `device` or an ancestor of it, or -1. */
long drupe_context_member(const drupe_context *context, const drupe_device *device);
/* Call fn for every context; fn must not open or release one. */
void drupe_context_each(void (*fn)(drupe_context *context, void *user), void *user);

#include "core/memory.h"

/* --- settings.c ------------------------------------------------------------------------------------------
 */

/* DRUPE_OK, or what is wrong in a variable of the environment. All but the selector and amounts
 * of memory are looked at once, until drupe_settings_forget(). */
drupe_status drupe_settings_check(void) DRUPE_MUST_CHECK;
void drupe_settings_forget(void);
/* "256M": false when it is no number of bytes. */
bool drupe_settings_bytes(const char *text, uint64_t *bytes);
/* "alloc,free": DRUPE_WIPE_ bits; false when it is no list of these words. */
bool drupe_settings_wipe(const char *value, uint32_t *when);

/* --- event.c -------------------------------------------------------------------------------------------- */

typedef enum drupe_phase {
    DRUPE_PHASE_HELD,     /* core has it */
    DRUPE_PHASE_RUNNING,  /* a host task on core's worker */
    DRUPE_PHASE_NATIVE,   /* the backend has it */
    DRUPE_PHASE_SETTLING, /* a thread is writing down why it failed */
    DRUPE_PHASE_COMPLETE,
    DRUPE_PHASE_FAILED
} drupe_phase;

/* What is the backend's begins on a cache line of its own: other threads write to it. */
struct drupe_event {
    _Alignas(64) drupe_object object;
    drupe_queue *queue;     /* kept, see `counted`; NULL: the caller ends it */
    _Atomic(int) phase;     /* drupe_phase */
    _Atomic(bool) notified; /* event_notify() was asked for */
    bool opened;            /* the backend has seen it: event_close() is due */
    bool turn;              /* of drupe_submit_turn(): the caller ends it */
    bool brisk;             /* while it runs, watching it costs less than being woken */
    bool inserted;          /* `behind` is set */
    bool counted;           /* it has an inner reference to its queue; else the queue counts it in `events` */
    /* Its device was lost before it was over: what it uses may still be written to. */
    _Atomic(bool) abandoned;
    uint64_t number;
    union {
        drupe_flight *flight;    /* borrowed, valid until the event has settled; without a queue its own */
        drupe_event *next_spare; /* among the free ones */
    };
    /* On another line, and 0 in all free ones, as only few events write to it: */
    uint64_t behind; /* of a barrier that core put between others: the number of what is before it; else 0 */
    drupe_event *settle_next;     /* of the thread that settles it */
    const drupe_failure *failure; /* once FAILED; malloc'ed unless it is that of the cause */
    drupe_cause *cause;           /* retained, once FAILED */
    drupe_event *older_spares;    /* of the first of a list of free ones: another such list */
};

/* --- flight.c: what a queue has submitted and not yet dropped ------------------------------------------- */

/* What a submission does. Everything in it is borrowed, except in a held flight, which owns `args`. */
struct drupe_work { /* of at most 96 bytes, which are cleared in a few moves */
    drupe_work_kind kind;
    uint32_t advice;
    drupe_kernel *kernel;
    const drupe_range *range;
    const drupe_arg *args;
    size_t nargs;
    const uint64_t *words; /* as in drupe_submit */
    void *dst;             /* or the memory that a hint is about */
    const void *src;       /* COPY: the source; FILL: the pattern */
    size_t bytes;
    uint32_t pattern_size;
    bool to_host, from_host; /* COPY: that end is plain host memory */
    drupe_host_fn fn;
    void *user;
};

/* Call the release functions of keeps that were taken; NULL functions are skipped. */
void drupe_keeps_drop(const drupe_keep *keeps, size_t count);

#define DRUPE_FLIGHT_REFS  8
#define DRUPE_FLIGHT_WAITS 4

/* What every submission needs comes first, on few cache lines. */
struct drupe_flight {
    _Alignas(64) drupe_flight *next;
    drupe_event *event; /* retained; NULL: nobody looks */
    uint64_t number;
    void *cell;        /* retained by the observer, or NULL */
    const char *label; /* static, the kernel's name, or label_copy */
    uint32_t site;
    uint32_t cell_number; /* the observer's, 0 = none */
    bool held;
    bool fallible;     /* may fail for a reason that core knows: what follows must wait for it by name */
    bool early;        /* the driver may read its source at once: see launch.c */
    bool done;         /* it was over when it was launched, and is on no list */
    bool passed;       /* its references belong to the flight behind it, which uses the same */
    bool event_passed; /* so does that to its event, to one that waits for it */
    uint32_t nrefs, nwaits;
    drupe_keep *refs;    /* dropped when it is over */
    drupe_event **waits; /* retained */
    uint32_t refs_capacity, waits_capacity;
    union {
        void *work_copy;            /* malloc'ed: what `work` points to */
        drupe_flight *older_spares; /* of the first of a list of free ones: another such list */
    };
    drupe_event *marker; /* retained: before a host task, the end of what stands before it on the queue */
    /* Which of `refs` it writes, as far as they are memory (those from 64 on all), until they were marked. */
    _Atomic(uint64_t) written;
    uint64_t replaced; /* those of them of which no byte stays */
    drupe_cause *doom; /* borrowed while it is being placed: why what it reads was not written, or NULL */
    drupe_event *waits_inline[DRUPE_FLIGHT_WAITS];
    drupe_brief brief;
    drupe_keep refs_inline[DRUPE_FLIGHT_REFS];
    char label_copy[64];
    drupe_work work; /* of a held one */
    drupe_job job;   /* of a host task that core runs */
};

/* What is the backend's begins on a cache line of its own. */
struct drupe_queue {
    _Alignas(64) drupe_object object; /* references: the caller's handles */
    _Atomic(uint32_t) inner; /* events, memory, the waiter, and one for all handles: keeps the struct */
    drupe_slot *slot;
    drupe_context *context;  /* retained */
    drupe_device *device;    /* retained */
    _Atomic(uint32_t) flags; /* drupe_queue_flags; TIMED and PROFILING may be added later */
    uint32_t number;         /* process-wide, from 1 */
    uint32_t trace_device;   /* drupe_trace_device() of its device */
    bool opened;
    pthread_mutex_t lock;
    drupe_flight *head, *tail; /* in the order of submission */
    drupe_flight *held;        /* the first that the backend does not have, or NULL */
    drupe_flight *held_tail;   /* of an out-of-order queue, where the held ones are a list of their own */
    drupe_flight *scan;        /* of an out-of-order queue: what was looked at last */
    drupe_flight *gate; /* of an in-order queue: the first flight with an event that is not over, if known */
    drupe_flight *looked;       /* of an in-order queue: the last that a look has told to be over; or NULL */
    drupe_flight *spare;        /* free records: a list, */
    drupe_flight *older_spares; /* and a list of such lists, each by its first one */
    _Atomic(drupe_flight *) returned;         /* free records, given back without the lock */
    drupe_event *spare_events, *older_events; /* the same of events */
    _Atomic(uintptr_t) returned_events;       /* and a bit once all events are counted */
    size_t events;                            /* that are not counted, the spare ones among them */
    _Atomic(size_t) flights;                  /* changed under the lock */
    _Atomic(uint64_t) stuck; /* the oldest submission when waiting did not help; see pace.c */
    size_t unmarked;         /* submissions without an event since the last one with one */
    size_t unmarked_bytes;   /* what they keep alive */
    uint64_t proven;         /* submissions with numbers up to this one are over */
    uint64_t timed_from;     /* of PROFILING that came later: events of those before have no times */
    drupe_event *guard; /* the last fallible submission that is not known to be over; its flight keeps it */
    drupe_event *fetch; /* of an in-order queue: the last copy to plain host memory; its flight keeps it */
    drupe_event
        *fence; /* of an out-of-order queue: its last barrier, until it is dropped; its flight keeps it */
    drupe_cause *breach; /* retained: why the last barrier failed, once it was dropped */
    unsigned polls, takes;
    size_t unlooked_bytes; /* what submissions since the last look keep alive */
    uint64_t ticks;        /* of a submission: when it looked at what was over, or 0 */
    bool unflushed;
    bool shared;                  /* others may give work to the driver's queue */
    bool silent;                  /* work without an event was launched since the last wait */
    bool leaps;                   /* a kernel that is complete proves those before it: see flight.c */
    bool is_default;              /* a device points to it; library lock */
    _Atomic(drupe_cause *) cause; /* the latest failure, retained; set under the failure lock */
    uint64_t cause_from;          /* what was submitted after this stands behind it; failure lock */
    _Atomic(unsigned) marks_due; /* how often it was blamed since what stands behind was marked: see mark.c */
    drupe_queue *prev, *next;    /* all queues, queue.c's lock */
    drupe_queue *hold_next;      /* queues with held work, hold lock */
    bool on_hold;
};

/* Everything about one submission but its work; `refs` are taken. */
typedef struct drupe_ticket {
    drupe_queue *queue;
    drupe_event *const *waits; /* borrowed */
    size_t nwaits;
    const char *label; /* borrowed */
    bool label_static; /* it outlives the submission */
    bool kept;         /* the host memory that it uses is among `refs` */
    bool ordered;
    uint32_t site;
    drupe_keep *refs; /* the array is borrowed, the objects are taken */
    size_t nrefs;
    size_t bytes;                 /* what they keep alive */
    uint64_t written, replaced;   /* as in drupe_flight */
    uint64_t read;                /* those of them whose contents count, as far as they were looked at */
    unsigned marks_seen;          /* drupe_marks_version before that */
    drupe_cause *doom;            /* borrowed, as in drupe_flight */
    const drupe_access *accesses; /* borrowed */
    size_t naccesses;
} drupe_ticket;

/* Whether it is a barrier to an out-of-order queue. */
static inline bool drupe_ticket_fences(const drupe_ticket *ticket, const drupe_work *work)
{
    return ticket->ordered || work->kind == DRUPE_WORK_BARRIER;
}

/* The longest single wait in a driver: then the device is looked at. */
#define DRUPE_SLICE_NS UINT64_C(100000000)

#include "core/steps.h"

#endif
