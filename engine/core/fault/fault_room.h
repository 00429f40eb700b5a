/* Threads whose faults are contained: those of core and of the host device, and the threads of drivers.
 *
 * Files: contain.c (the table, the signal handler's part, the thread that serves faults), adopt.c (threads
 * that a driver starts), handlers.c (for programs without handlers).
 *
 * Owns: the table of threads and their stacks for signals.
 *
 * Lock: contain.c's, a leaf.
 *
 * Thread: drupe-faults, which sleeps until a thread has faulted, and asks whoever is registered whose it
 * was. */
#ifndef DRUPE_CORE_FAULT_ROOM_H
#define DRUPE_CORE_FAULT_ROOM_H

#include "core/object/object_room.h"
#include <pthread.h>

enum { DRUPE_ADOPTED_FREE = 0, DRUPE_ADOPTED_TAKEN = -1 };

/* A place in the table, of a thread or of nobody. What stands before `thread` was written before that. */
typedef struct drupe_adopted {
    _Atomic(int) thread; /* its id, or one of the above */
    uint64_t started;    /* clock ticks after the machine's start; 0: unknown */
    const void *owner;
    uint32_t index;
    const _Atomic(int) *busy;  /* NULL: always */
    drupe_recovery *recovery;  /* NULL: it is parked */
    _Atomic(void *) stack;     /* for signals: of a driver's thread, mapped by us; or NULL */
    _Atomic(uint64_t) faulted; /* 0: not; else the faults are served in this order */
    drupe_fault fault;         /* written before that */
} drupe_adopted;

#define DRUPE_SIGNAL_STACK (64u << 10)

/* --- contain.c ------------------------------------------------------------------------------------------ */

/* The place of a thread, or NULL. Async-signal-safe. */
drupe_adopted *drupe_adopted_find(int thread);
/* The same; an earlier thread that had its id is forgotten. */
drupe_adopted *drupe_adopted_living(int thread);
/* Give a thread a place: `place` without thread, start and fault. NULL when all are taken. */
drupe_adopted *drupe_adopted_enter(int thread, const drupe_adopted *place);
/* The place of number `i`; NULL behind the last. */
drupe_adopted *drupe_adopted_at(size_t i);
/* Have the thread started that serves faults, once they are contained. */
void drupe_contain_start(void);
/* End the thread that serves faults; it starts again with the next adopted thread. */
void drupe_contain_stop(void);
/* Whether the faults of adopted threads are, or will be, contained. */
bool drupe_contain_active(void);
/* Who is told of a fault after which a thread does not go on, on the thread that serves faults. */
void drupe_contain_tell(void (*spread)(const drupe_fault *fault));

#endif
