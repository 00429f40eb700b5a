/* One thread in the background: started on first need, it works, sleeps until it is woken or a time has come,
 * and ends when it is asked to. Who owns one writes a step of its work, and nothing else of all that.
 *
 * The owner's lock guards the service and what its steps work on; all functions are called with it held, and
 * from any thread. A step is called with it held, too, and may give it up meanwhile.
 *
 * After a fork the child has the service, but not its thread: there it does not run, and may be started anew.
 * What a fork found in the middle of a step is the owner's to judge, and so is its lock. */
#ifndef DRUPE_BASE_SERVICE_H
#define DRUPE_BASE_SERVICE_H

#include "base/base.h"

typedef struct drupe_service {
    /* The owner's, set before the first use. */
    const char *name; /* at most 15 characters */
    pthread_mutex_t *lock;
    /* A step. Returns the time until which to sleep unless woken: 0 calls it again at once, UINT64_MAX sleeps
     * until somebody wakes it. Who wakes it while it runs has it called again. */
    uint64_t (*step)(void *user);
    void *user;
    void (*rouse)(
        void *user); /* (opt) for steps that sleep elsewhere: have such a sleep end, or the next one */
    bool finishes;   /* asked to end, it goes on until a step wants to sleep */
    /* The service's own. A step may look at the first two. */
    bool stopping; /* it is to end: a long step returns */
    bool woken;    /* since the step began */
    bool prepared, running, over, joining;
    unsigned serial; /* of the thread: one that was abandoned ends although another one runs */
    unsigned forks;
    pthread_t thread;
    pthread_cond_t wake, changed;
} drupe_service;

/* Start its thread unless it runs; the first step is made at once. DRUPE_E_BUSY while it is being ended,
 * DRUPE_E_NO_MEMORY without a thread. */
drupe_status drupe_service_start(drupe_service *service) DRUPE_MUST_CHECK;
/* Have the next step begin, if it runs. */
void drupe_service_wake(drupe_service *service);
bool drupe_service_runs(drupe_service *service);
/* In a step: sleep until woken, asked to end, or `deadline`; false when that has passed. */
bool drupe_service_sleep(drupe_service *service, uint64_t deadline);
/* Ask it to end and wait, without the lock, until `deadline`. DRUPE_OK: it does not run, and may be started
 * again. DRUPE_E_TIMEOUT: it still does, and starts no further step. DRUPE_E_INVALID on its own thread, which
 * cannot wait for itself: nothing has happened. */
drupe_status drupe_service_end(drupe_service *service, uint64_t deadline) DRUPE_MUST_CHECK;
/* The same without a time, for owners that do not call it from a step. */
void drupe_service_stop(drupe_service *service);
/* After DRUPE_E_TIMEOUT: wait no more for a thread that may hang for good. It ends after its step, if that
 * ever returns; what it works on stays. */
void drupe_service_abandon(drupe_service *service);
/* Before the memory of one that has ended is given back. Without the lock. */
void drupe_service_clear(drupe_service *service);

#endif
