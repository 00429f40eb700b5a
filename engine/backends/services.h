/* What core offers to backends. */
#ifndef DRUPE_BACKEND_SERVICES_H
#define DRUPE_BACKEND_SERVICES_H

#include "backends/backend.h"

/* Tell the waiter that `event` may have finished. Any thread of a driver; takes no lock that core holds while
 * it calls a backend. */
void drupe_core_notify(drupe_event *event);

/* The calling thread begins with, or is done with, the work of submission `number` (drupe_submit; 0: nothing
 * happens): each reads the clock. Of several threads that share work the first to begin counts, and the first
 * end. The end is told before the event's. Any thread, no locks. */
void drupe_core_began(uint64_t number);
void drupe_core_ran(uint64_t number);

/* During a submission: the event of the one before it on an in-order queue, if it has one and core keeps it,
 * else NULL. Borrowed; nobody closes it before the submission returns. */
drupe_event *drupe_queue_newest(const drupe_queue *queue);

/* Work of this queue has failed, with or without an event: whoever reads memory next asks for it first. Told
 * before what stands behind it begins. Any thread, no locks. */
void drupe_core_trouble(drupe_queue *queue);

/* The device is lost, for the reason in `error`: unfinished work on it fails with it, later calls fail at
 * once. `silent`: its driver may still touch memory or never answer, so it is not called again, and memory of
 * unfinished work is never returned; hold no lock of core's. Otherwise the driver fails the unfinished work.
 */
void drupe_core_device_lost(drupe_device *device, const drupe_error *error, bool silent);

/* --- Faults --- */

/* What becomes of a thread that faults in what it runs. */
typedef enum drupe_way {
    DRUPE_WAY_PARK,      /* nobody knows what it holds */
    DRUPE_WAY_END,       /* it may hold locks, but nobody else uses its stack */
    DRUPE_WAY_ON_INSIDE, /* at an instruction inside of `code` it holds nothing, elsewhere as END */
    DRUPE_WAY_ON         /* it holds nothing */
} drupe_way;

/* The owner's, written by the thread itself, before its `busy`. */
typedef struct drupe_recovery {
    drupe_way way;
    uintptr_t code;
    size_t code_size;
    /* A thread that goes on runs this, on the stack from `stack` downwards, with `fault` filled in. It never
     * returns. The state of the floating-point unit is that of the fault. */
    void (*resume)(void *recovery);
    uintptr_t stack;
    drupe_fault fault;
} drupe_recovery;

/* The calling thread works for `owner`: while `*busy` is not 0 its faults are contained. device_fault() is
 * called for each after which it does not go on. `owner` is any address by which the backend knows the
 * device, `index` the backend's affair, `recovery` (borrowed until it is disowned) how it goes on; NULL: it
 * is parked. */
void drupe_core_register_thread(const void *owner, uint32_t index, const _Atomic(int) *busy,
                                drupe_recovery *recovery);
void drupe_core_disown(void);
/* The same for the threads that a driver starts between the two calls. They get larger stacks than others,
 * and one for signals. */
typedef struct drupe_threads drupe_threads;
drupe_threads *drupe_core_adoption_begin(void);
void drupe_core_adoption_end(drupe_threads *before, const void *owner); /* `before` is taken */
/* "SIGSEGV at address 0x10", cut to fit. Returns what the work fails with: DRUPE_E_DEVICE_LOST, or
 * DRUPE_E_CHECK when checked mode knows which memory it ran out of, which the text tells then. */
drupe_status drupe_core_fault_text(const drupe_fault *fault, char *text, size_t size);

#endif
