/* Threads whose faults are isolated: those of core and of the host device, and the threads of drivers.
 *
 * Files: fault_isolation.c (the table, the signal handler's part, the thread that serves faults),
 * register_thread.c (threads that a driver starts), loop_faults.c (threads that help in loops of the host),
 * handlers.c (for programs without handlers).
 *
 * Owns: the table of threads and their stacks for signals.
 *
 * Locks, both fault_isolation.c's: `delivering` is held while somebody is told of a fault, and comes before
 * all locks of slots, devices and queues; `lock` is a leaf.
 *
 * Thread: drupe-faults, which sleeps until a thread has faulted, and asks whoever is registered whose it
 * was. */
#ifndef DRUPE_CORE_FAULT_ROOM_H
#define DRUPE_CORE_FAULT_ROOM_H

#include "core/object/object_room.h"
#include <pthread.h>
#include <signal.h>

enum { DRUPE_REG_THREAD_FREE = 0, DRUPE_REG_THREAD_TAKEN = -1 };

/* An entry of the table, of a thread or of nobody. What stands before `thread` was written before that. */
typedef struct drupe_reg_thread {
    _Atomic(int) thread; /* its id, or one of the above */
    uint64_t started;    /* clock ticks after the machine's start; 0: unknown */
    const void *owner;
    uint32_t index;
    const _Atomic(int) *busy;  /* NULL: always */
    drupe_recovery *recovery;  /* NULL: it is parked */
    _Atomic(void *) stack;     /* for signals: of a driver's thread, mapped by us; or NULL */
    _Atomic(uint64_t) faulted; /* 0: not; else the faults are served in this order */
    drupe_fault fault;         /* written before that */
} drupe_reg_thread;

#define DRUPE_SIGNAL_STACK (64u << 10)

/* --- fault_isolation.c ---------------------------------------------------------------------------------- */

/* The entry of a thread, or NULL. Async-signal-safe. */
drupe_reg_thread *drupe_reg_thread_find(int thread);
/* The same; an earlier thread that had its id is forgotten. */
drupe_reg_thread *drupe_reg_thread_living(int thread);
/* Give a thread an entry: `entry` without thread, start and fault. NULL when all are taken. */
drupe_reg_thread *drupe_reg_thread_enter(int thread, const drupe_reg_thread *entry);
/* The entry of number `i`; NULL behind the last. */
drupe_reg_thread *drupe_reg_thread_at(size_t i);
/* Have the thread started that serves faults, once they are contained. */
void drupe_isolation_start(void);
/* End the thread that serves faults; it starts again with the next registered thread. */
void drupe_isolation_stop(void);
/* Tell of all faults so far; on return nobody is being told of one. Hold no lock: those who are told take
 * some. For who is about to unload what they look at. */
void drupe_isolation_settle(void);
/* Whether the faults of registered threads are, or will be, contained. */
bool drupe_isolation_active(void);
/* Who is told of a fault after which a thread does not go on, on the thread that serves faults. Faults before
 * the first call wait for it. */
void drupe_isolation_tell(void (*spread)(const drupe_fault *fault));

/* Whether a fault of the calling thread would be contained now. */
bool drupe_isolation_contains(void);
/* The calling thread, whose faults are contained, is parked as if this fault had been its own. */
_Noreturn void drupe_isolation_share(const drupe_fault *fault);

/* --- loop_faults.c -------------------------------------------------------------------------------------- */

/* Have the threads of base/parallel.h registered from now on. */
void drupe_loop_faults_open(void);
/* False: the fault is not of such a thread. Else the loop's caller shares it, and is told of as the one who
 * faulted. */
bool drupe_loop_fault(const drupe_fault *fault);

/* --- handlers.c ----------------------------------------------------------------------------------------- */

/* Hand a signal to the handler that was there before; the default is reached by faulting again. */
void drupe_signal_pass_on(const struct sigaction *to, int signal, siginfo_t *info, void *context);

#endif
