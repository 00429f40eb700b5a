/* What living with vendors' drivers takes: their signal handlers, their compilers and what these print.
 * guarded.h has the memory that device work writes to.
 *
 * Locks: signals.c and quiet.c have one each; neither is held while another is taken. Threads: quiet.c's
 * reads the pipe that stands in for descriptor 2, from the first build on. */
#ifndef DRUPE_DRIVER_H
#define DRUPE_DRIVER_H

#include "base/file.h"
#include <signal.h>

/* --- signals.c: keep the process's signal dispositions ---------------------------------------------------
 */

/* Some drivers install handlers when they are loaded and again with every build. Calls that may do so stand
 * between a save and a restore: SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP and SIGPIPE get back the handlers
 * they had when the outermost save was made, and a SIGINT for this thread waits for them. So do SIGSEGV,
 * SIGBUS and the other signals of crashes where a driver gave them the handler that it gave SIGABRT. Pairs
 * may nest and overlap between threads; each is one thread's. Thread-safe. */
void drupe_signals_save(void);
void drupe_signals_restore(void);

/* For a thread that waits while another one makes such calls. Between the two a SIGINT for this thread waits;
 * drupe_interrupts_look() lets one that has come reach the handler that was there before any such call, not
 * the driver's, which would take the files of its build away. What was held back before stays so. */
typedef struct drupe_interrupts {
    sigset_t mask;
    struct sigaction action;
} drupe_interrupts;
void drupe_interrupts_hold(drupe_interrupts *held);
void drupe_interrupts_look(const drupe_interrupts *held);
void drupe_interrupts_let_go(const drupe_interrupts *held); /* looks, too */

/* --- quiet.c -------------------------------------------------------------------------------------------- */

/* Between the two, lines on descriptor 2 that say no more than "2 errors generated." are dropped: compilers
 * inside of drivers write them there although the log has everything. All other bytes pass on. Pairs may nest
 * and overlap between threads. Thread-safe; does nothing where it cannot work. */
void drupe_quiet_begin(void);
void drupe_quiet_end(void);

/* --- compiler_run.c: compilers that are programs of the machine
 * ----------------------------------------------
 */

/* From now on a compiler may take so many seconds and so many bytes of memory; 0: all that it wants. At first
 * 120 s and 4 GiB. Thread-safe. */
void drupe_compiler_limits(uint64_t most_seconds, uint64_t most_memory);
void drupe_compiler_limits_get(uint64_t *most_seconds, uint64_t *most_memory);

/* drupe_process_run() within these limits: who exceeds one is DRUPE_E_BUILD_FAILED, and the error says what
 * to do. */
drupe_status drupe_compiler_run(const char *const *argv, drupe_span input,
                                drupe_text *output) DRUPE_MUST_CHECK;

#endif
