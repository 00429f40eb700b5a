/* Faults: a device kernel that touches memory it may not, divides by zero, or runs into an illegal
 * instruction on one of this machine's processors.
 *
 * Such a fault ends a process, unless it happens on a thread that does nothing but device work: a worker of
 * `host`, or a thread that a driver has started while its devices were opened. That thread is then *parked*:
 * it sleeps for the rest of the process. On `host` another worker takes its place, the work fails with
 * DRUPE_E_DEVICE_LOST, and the device goes on. A driver cannot be repaired: its devices are lost for the
 * process, everything on them fails with DRUPE_E_DEVICE_LOST, and so does what is submitted later.
 *
 * Not contained, because other threads need what the thread may hold: SIGABRT (a C library that found its
 * heap damaged), a signal that somebody sent, a thread that runs Python, a stack that a driver's thread has
 * used up. */
#ifndef DRUPE_FAULT_H
#define DRUPE_FAULT_H

#include "drupe/status.h"

/* Take faults from now on. The caller's handler of SIGSEGV, SIGBUS, SIGFPE and SIGILL calls
 * drupe_fault_claim(). */
DRUPE_API void drupe_fault_contain(void);

/* Whether the calling thread's fault is contained (1): then the handler must never return, nor end the
 * process; 0: it is not the engine's. Async-signal-safe. The last two are the handler's siginfo_t and
 * ucontext_t. */
DRUPE_API int drupe_fault_claim(int signal, void *siginfo, void *ucontext);

/* drupe_fault_contain() for a program without such handlers: they are installed in front of what is there,
 * which gets all faults that are not claimed. `claim` decides, NULL: drupe_fault_claim(). Repeated calls do
 * nothing. */
DRUPE_API drupe_status drupe_fault_install(int (*claim)(int signal, void *siginfo,
                                                        void *ucontext)) DRUPE_MUST_CHECK;

#endif
