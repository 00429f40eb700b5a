/* The room of control: what breaks a cell, and what ends the process. Nothing here waits for the language.
 *
 * Owns: the watchdog, the memory of interrupts that a cell survives, the watch over the parent process.
 * Locks: watchdog.lock, taken alone.
 * Threads: interrupts and shutdowns come from any; stuck_cell.c is the control thread's. The watchdog is a
 * thread only after a shutdown: it ends the process when the main thread does not. */
#ifndef JK_CONTROL_ROOM_H
#define JK_CONTROL_ROOM_H

#include "base/service.h"
#include "jkernel/server/process/process_room.h"
#include "jkernel/server/requests/requests_room.h"

/* --- shutdown.c ---------------------------------------------------------------------------------------- */

/* Break the running cell and what it started. Any thread. */
void jk_interrupt(jk_server *server);
/* End: tell the executor, the child processes and the watchdog. Any thread; does its work once. */
void jk_shutdown(jk_server *server, bool restart, int exit_code);
/* After jk_shutdown(): descendants that ignore SIGTERM are killed when their time is over. */
void jk_shutdown_children(jk_server *server);

/* --- watchdog.c ---------------------------------------------------------------------------------------- */

typedef struct jk_watchdog {
    pthread_mutex_t lock;
    drupe_service service;
    bool cancelled;
    int64_t deadline;
    int64_t starved, given; /* ns the main thread had waited for a processor; by how much `deadline` grew */
    int exit_code;
} jk_watchdog;

void jk_watchdog_open(jk_watchdog *watchdog);
void jk_watchdog_start(jk_watchdog *watchdog, int64_t patience, int exit_code);
void jk_watchdog_clear(jk_watchdog *watchdog); /* cancels it */

/* --- stuck_cell.c --------------------------------------------------------------------------------------- */

/* Interrupts that a cell survives: the control thread's own, but what is atomic. */
typedef struct jk_stuck_cell {
    atomic_uint came;             /* interrupts so far */
    atomic_uint told_by_executor; /* of these */
    unsigned seen;                /* of these */
    int64_t last;                 /* when the latest one was seen */
    int64_t look;                 /* when to look whether the cell still runs; 0: never */
    jk_parent *cell;              /* that ran then, retained */
    jk_parent *told;              /* the last one that was told, retained */
} jk_stuck_cell;

/* Control thread: once around its loop. Returns the ms until it is to be called again, -1 for "when woken".
 */
int jk_stuck_cell_look(jk_server *server);

/* --- The room as a whole: shutdown.c ------------------------------------------------------------------- */

typedef struct jk_control {
    _Atomic(int64_t) children_until; /* after a shutdown: when descendants that ignore SIGTERM are killed */
    atomic_bool told;                /* the executor knows of the shutdown, and begins no cell any more */
    jk_watchdog watchdog;
    jk_stuck_cell stuck_cell;
    jk_parent_watch parent; /* the control thread's own */
} jk_control;

void jk_control_open(jk_server *server);
void jk_control_clear(jk_server *server); /* after the threads have ended */
void jk_stuck_cell_clear(jk_stuck_cell *stuck_cell);

#endif
