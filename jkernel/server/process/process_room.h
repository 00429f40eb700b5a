/* The room of the process around the server: what it must have before libzmq starts, the signals that ask it
 * to end, its children, its parent and its forks.
 *
 * Owns: the handlers of SIGTERM and SIGHUP, the list of the kernel's addresses, the watch over the parent.
 * Locks: none. Threads: none; each function says who may call it. */
#ifndef JK_PROCESS_ROOM_H
#define JK_PROCESS_ROOM_H

#include "jkernel/server/usage/usage_room.h"

/* --- process_limits.c ---------------------------------------------------------------------------------- */

/* Open what is closed of the descriptors 0 to 2, and see that there is room for the server's descriptors and
 * threads. Returns 0, or -1 by jk_fail(). */
int jk_process_prepare(void);

/* --- ending_signals.c ---------------------------------------------------------------------------------- */

/* Have SIGTERM and SIGHUP, unless somebody handles or ignores them, raise `wake`, an eventfd. */
void jk_ending_watch(int wake);
/* The signal that came since the last call, or 0. */
int jk_ending_asked(void);
/* Give the signals back. Async-signal-safe. */
void jk_ending_forget(void);
/* Around a fork, on the thread that forks: hold the signals back, let them come. Async-signal-safe. */
void jk_ending_hold(void);
void jk_ending_resume(void);

/* --- forked_child.c ------------------------------------------------------------------------------------ */

/* The addresses of the kernel's sockets; NULL: none any more. */
void jk_bound_remember(const jk_config *config);
/* In a forked child: close every socket with one of these addresses. Async-signal-safe. */
void jk_bound_close(void);

/* --- descendants.c ------------------------------------------------------------------------------------- */

/* The descendants of this process, parents before their children. */
void jk_descendants(jk_processes *found);
/* `same_group` leaves out those in other process groups than ours. */
void jk_processes_signal(const jk_processes *processes, int signal, bool same_group);
/* Send a signal to the descendants of this process. */
void jk_children_signal(int signal, bool same_group);
/* From now on whoever loses its parent among the descendants becomes a child of this process. */
void jk_children_adopt(void);
/* Wait until the descendants have ended; those that have not by `deadline` are killed. */
void jk_children_end(int64_t deadline);

/* --- parent_watch.c ------------------------------------------------------------------------------------ */

typedef struct jk_parent_watch {
    int pidfd;     /* of the process named in JPY_PARENT_PID; -1: none, look at getppid() */
    long named;    /* 0: nothing to watch, or its end was told */
    long original; /* getppid() at the start */
    bool lost;     /* it had ended before the watch began */
} jk_parent_watch;

void jk_parent_watch_open(jk_parent_watch *watch);
void jk_parent_watch_clear(jk_parent_watch *watch);
/* Whether the parent has ended, which is told once. */
bool jk_parent_watch_gone(jk_parent_watch *watch);

#endif
