/* The server's roof: it opens and closes the rooms, and is the three threads that they share.
 *
 * Rooms, bottom up, each with a header that begins with what it is for, what it owns, its locks and threads:
 * tools, life, usage, process, record, outbox, ports, iopub, requests, crash, control, answers.
 *
 * Threads and what each owns:
 *   main       the executor; enqueues, never touches a socket after jk_server_open()
 *   io         shell, stdin and iopub sockets, everything that leaves the outbox
 *   control    the control socket, interrupts, shutdown, the watch over the parent process
 *   heartbeat  its own socket, with encryption in its own context
 *   watchdog   only after a shutdown: ends the process when the main thread does not
 * The captured descriptors are drained by the io thread or whoever enqueues output, under stdio.lock. All but
 * main block every signal that is not raised by a fault.
 *
 * Locks, in the order in which they may nest: stdio.lock, outbox.lock. inbox.lock, input.lock,
 * replies.lock and watchdog.lock are taken alone, subshells.lock before those of the executor. */
#ifndef JK_SERVER_ROOM_H
#define JK_SERVER_ROOM_H

#include "jkernel/server/answers/answers_room.h"
#include "jkernel/server/crash/crash_room.h"

void *jk_io_run(void *server);
void *jk_control_run(void *server);
void *jk_heartbeat_run(void *server);

#endif
