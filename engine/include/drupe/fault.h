/* Faults: a device kernel that touches memory it may not, divides by zero, or runs into an illegal
 * instruction on one of this machine's processors.
 *
 * Such a fault ends a process, unless it happens on a thread that does nothing but device work: a worker of
 * `host`, or a thread that a driver has started while its devices were opened.
 *
 * On `host` the work fails with DRUPE_E_DEVICE_LOST, and the device goes on, as often as you like. A worker
 * that ran a kernel leaves it and takes the next; one that faulted inside of the C library, called by a
 * kernel that may hold a lock then, ends and is replaced. One that ran code of which nothing is known (a host
 * function, a kernel that starts threads) is *parked*: it sleeps for the rest of the process, because others
 * may need its stack. A process in which 512 threads were parked may end at the next fault of that kind.
 *
 * A driver cannot be repaired: its thread is parked, its devices are lost for the process, everything on them
 * fails with DRUPE_E_DEVICE_LOST, and so does what is submitted later.
 *
 * Not contained, because other threads need what the thread may hold: SIGABRT (a C library that found its
 * heap damaged), a signal that somebody sent, a thread that runs Python. */
#ifndef DRUPE_FAULT_H
#define DRUPE_FAULT_H

#include "drupe/status.h"

/* Take faults from now on. The caller's handler of SIGSEGV, SIGBUS, SIGFPE and SIGILL calls
 * drupe_fault_claim(). */
DRUPE_API void drupe_fault_contain(void);

/* What the handler is to do with the calling thread's fault. */
typedef enum drupe_fault_verdict {
    DRUPE_FAULT_NOT_OURS = 0, /* it is not the engine's */
    DRUPE_FAULT_PARK = 1,     /* never return, nor end the process */
    DRUPE_FAULT_RETURN = 2    /* return: the thread goes on elsewhere, `ucontext` says where */
} drupe_fault_verdict;

/* A drupe_fault_verdict. Async-signal-safe. The last two are the handler's siginfo_t and ucontext_t; without
 * the context (NULL) a fault is never one to return from. */
DRUPE_API int drupe_fault_claim(int signal, void *siginfo, void *ucontext);

/* drupe_fault_contain() for a program without such handlers: they are installed in front of what is there,
 * which gets all faults that are not claimed. `claim` decides, NULL: drupe_fault_claim(). Repeated calls do
 * nothing. */
DRUPE_API drupe_status drupe_fault_install(int (*claim)(int signal, void *siginfo,
                                                        void *ucontext)) DRUPE_MUST_CHECK;

#endif
