/* Threads whose faults are contained, inside of core: contain.c keeps them, adopt.c adds those of drivers,
 * blame.c tells what a fault was, handlers.c is for programs without handlers. */
#ifndef DRUPE_CONTAIN_H
#define DRUPE_CONTAIN_H

#include "core/check.h"

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

/* --- blame.c -------------------------------------------------------------------------------------------- */

/* Tell those whose thread it was, on the thread that serves faults. */
void drupe_fault_spread(const drupe_fault *fault);

#endif
