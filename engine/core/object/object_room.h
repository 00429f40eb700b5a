/* What all objects of the engine have in common: references, a place for native state, and what a forked
 * child may not do; and the embedding program, which observes.
 *
 * Files: object.c (objects, fork, numbers of submissions), observer.c (the embedding program).
 *
 * Owns: drupe_core_forked, the counter of submissions, the observer. No locks, no threads.
 *
 * Fork: after a fork of a process with an open library, the child's locks may be held by threads that it
 * does not have. Every entry begins with drupe_core_check(), releases do nothing there. */
#ifndef DRUPE_CORE_OBJECT_ROOM_H
#define DRUPE_CORE_OBJECT_ROOM_H

#include "backends/services.h"
#include "base/base.h"
#include "drupe/postpone.h"
#include "drupe/trace.h"

extern _Atomic(bool) drupe_core_forked;
/* DRUPE_OK, or the error of a forked child. */
drupe_status drupe_core_check(void) DRUPE_MUST_CHECK;

/* The number of the latest submission of the process. */
extern _Atomic(uint64_t) drupe_inflight_last;
static inline uint64_t drupe_inflight_latest(void)
{
    return atomic_load(&drupe_inflight_last);
}
/* The number of the next one. Sequentially consistent: see trace_wake.c. */
static inline uint64_t drupe_inflight_next(void)
{
    return atomic_fetch_add(&drupe_inflight_last, 1) + 1;
}
/* Submissions in checked mode count while this is not 0; check/ changes it. */
extern _Atomic(unsigned) drupe_check_depth;
static inline bool drupe_check_on(void)
{
    return __builtin_expect(atomic_load_explicit(&drupe_check_depth, memory_order_relaxed) != 0, 0);
}

/* A zeroed object of `size` bytes with `native` bytes behind it and one reference; counted in `live` (NULL:
 * nowhere). NULL without memory, with the error set. */
void *drupe_object_new(_Atomic(size_t) *live, const drupe_backend *backend, size_t size, size_t native);
void drupe_object_free(_Atomic(size_t) *live, void *object);
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
/* Wait for work of the queue on the program's behalf: see pause() of drupe_observer. False: the observer has
 * no such function. */
bool drupe_core_pause(drupe_queue *queue, uint64_t timeout_ns, drupe_status *status);
/* The observer is told of a build for the device of that name; NULL-safe. */
void *drupe_core_building(const drupe_source *source, const char *device);
void drupe_core_built(void *shown, bool good);
uint32_t drupe_core_cell_number(void *cell); /* 0: none */
uint32_t drupe_core_cell_here(void);         /* that of this thread's cell */
/* The observer's number for the place that this thread's program is at, or 0. */
uint32_t drupe_core_site(void);

#endif
