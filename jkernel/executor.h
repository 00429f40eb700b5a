/* What the protocol needs from a language, and what it gives back.
 *
 * The server (jkernel/server) speaks the Jupyter messaging protocol and knows no language; an executor
 * (jkernel/pyexec for CPython, tests/support/fake_executor.c for tests) runs code and knows no sockets. This
 * header, the server's functions, and executor_table.h, the executor's, are all they share.
 *
 * Life of a request: the io thread receives it, verifies it and queues it; the main thread, woken through
 * jk_server_request_fd(), calls jk_server_next(); the server publishes `status: busy`; the executor performs
 * the request, publishes outputs and ends with exactly one jk_request_reply(), now or later; the server sends
 * the reply and publishes `status: idle`. Everything published goes through one ordered queue, so the order
 * seen by clients is the order of the calls. The io thread publishes the busy of the first cell when nothing
 * was dispatched before it (jk_shell_announce()).
 *
 * Strings: every `jk_bytes` is borrowed for the call unless said otherwise, and JSON text is UTF-8.
 * Threads: each function says who may call it. None of them needs or takes Python's GIL.
 *
 * Source: Jupyter messaging protocol 5.6 (jupyter_client, "Messaging in Jupyter"). */
#ifndef JK_EXECUTOR_H
#define JK_EXECUTOR_H

#include "jkernel/executor_table.h"

#include <pthread.h>

/* --- The server's life: called by the main thread ------------------------------------------------------- */

/* Read the connection file, bind the sockets, start the io, control and heartbeat threads. kernel_info and
 * heartbeats are answered from here on. On failure returns NULL and writes one line of what to do into
 * `problem`. The executor struct is borrowed until jk_server_close(). */
jk_server *jk_server_open(const char *connection_file, const jk_executor *executor, char *problem,
                          size_t problem_size);

/* Redirect file descriptors 1 and 2 into the server, so that text written by C code and by child processes
 * reaches the running cell. Returns 0, or -1 with errno. Undone by jk_server_close(). */
int jk_server_capture_stdio(jk_server *server);

/* Tell clients that the kernel has started: publishes the one `status: starting`. */
void jk_server_started(jk_server *server);

/* Flush what is queued (bounded by 1 s), stop the threads, close the sockets, restore the descriptors. */
void jk_server_close(jk_server *server);

/* Have the kernel end as after a shutdown_request. When a reply has told the client to ask for that
 * (`client_told`), its request is waited for, for a second. executor.shutdown() has returned then, called
 * here or on the control thread. Any thread but the server's own. */
void jk_server_leave(jk_server *server, bool client_told);

/* The session id in the headers of this process, and the path of its connection file. Any thread; valid until
 * jk_server_close(). */
const char *jk_server_session(const jk_server *server);
const char *jk_server_connection_file(const jk_server *server);

/* Report crashes: install handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP and SIGSYS in this
 * process, for the signals that end a process by default (SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGQUIT,
 * SIGALRM) where nobody handles them, for exit(), and a signal stack for the calling thread. On such a
 * signal, in any thread, the running cell (else the last one) receives an `error`; within 2 s the process
 * ends by that signal. What could not be shown is told by the next kernel with this connection file, in its
 * first cell.
 *
 * A handler that was there before is called after the report; one that is installed later stays in front of
 * ours and is expected to pass on what is not its own. Calling this again puts ours in front once more. A
 * forked child that crashes just dies. `hooks` is borrowed for good. Returns 0, 1 in a build with a
 * sanitizer, which reports faults itself, or -1 with errno. Main thread. */
int jk_server_report_crashes(jk_server *server, const jk_crash_hooks *hooks);

/* The program is about to end the process by `call` ("os._exit(3)": at most 31 bytes, borrowed for good): the
 * cell is told as of a crash, and the process ends with `status`. It returns only in a forked child, without
 * jk_server_report_crashes(), before the first cell and after a shutdown; nothing is told then. Any thread.
 */
void jk_server_leaving(const char *call, int status);
/* The same for C's exit(), from one of its handlers, but it returns for exit() to go on: what is left of it
 * has a second. Where the first of several such handlers has told it, the others tell nothing. */
void jk_server_exiting(int status);

/* Give the calling thread a stack of its own for signals, without which a crash by a full stack cannot be
 * reported; freed when the thread ends. Threads of the server have one. Any thread; costs a few microseconds
 * once. */
void jk_thread_signal_stack(void);

/* A descriptor that polls readable while requests wait to be dispatched, or the executor must look again. */
int jk_server_request_fd(const jk_server *server);

/* Clear the descriptor and take the next request, for which `status: busy` is published. NULL: there is none.
 * While an execute_request is unfinished (a cell that awaits), further ones stay queued and other requests
 * overtake them. One thread at a time, usually the main one. */
jk_request *jk_server_next(jk_server *server);

/* Make jk_server_request_fd() readable: for the executor's own shutdown and interrupt. Any thread,
 * async-signal-safe; not during jk_server_close(). */
void jk_server_wake(jk_server *server);

/* Append one line to the kernel's log (DRUPE_LOG). Any thread. */
void jk_server_note(const char *text);
/* What the next kernel tells of this one's devices if this one is killed: see drupe_link.h. One thread at a
 * time. */
void jk_server_keep(jk_server *server, const char *text, size_t size);
/* What arrives on descriptor 1 from now on belongs to `owner` (borrowed; NULL: the running cell). */
void jk_server_give_text(jk_server *server, jk_parent *owner);

/* drupe_thread_start() of a thread that has a stack for signals, and the process's name. Any thread. Returns
 * 0 or -1. */
int jk_thread_start(pthread_t *thread, void *(*body)(void *), void *argument);

/* --- Subshells: the thread that serves one ----------------------------------------------------------------
 */

/* Its functions may be called at any time while a reference is held, also after the server was closed. */
jk_subshell *jk_subshell_retain(jk_subshell *subshell); /* NULL-safe */
void jk_subshell_release(jk_subshell *subshell);        /* NULL-safe */
const char *jk_subshell_id(const jk_subshell *subshell);
/* From 1, in the order in which they were made; how many there have been. */
unsigned jk_subshell_number(const jk_subshell *subshell);
unsigned jk_subshells_made(jk_server *server);
/* A descriptor that polls readable while requests wait, or the subshell has ended. */
int jk_subshell_fd(const jk_subshell *subshell);
/* Clear the descriptor and take the next request, for which `status: busy` is published; NULL when there is
 * none. `*ended` tells that the subshell was deleted, or that the server goes down, and no request will
 * follow; an unfinished one is still replied to. As in jk_server_next(), one execute_request at a time is
 * out. The subshell's thread. */
jk_request *jk_subshell_next(jk_subshell *subshell, bool *ended);
/* As delete_subshell_request does: its id is unknown from now on, what is queued is answered as aborted, or
 * as failed for this reason, what runs may finish. Any thread; never blocks. */
void jk_subshell_end(jk_subshell *subshell, const char *why);
/* End all, and the debugger's; no more are made. Any thread. */
void jk_server_end_shells(jk_server *server);

/* --- One request: main thread unless said otherwise ----------------------------------------------------- */

const char *jk_request_type(const jk_request *request);            /* "execute_request", ... */
jk_bytes jk_request_part(const jk_request *request, jk_part part); /* as received */
size_t jk_request_buffer_count(const jk_request *request);
jk_bytes jk_request_buffer(const jk_request *request, size_t index);
jk_parent *jk_request_parent(const jk_request *request); /* borrowed from the request */

/* Reply flags. */
#define JK_REPLY_ABORT_QUEUED 1u /* a failed cell: abort the execute_requests that were already queued */
#define JK_REPLY_NONE         2u /* this type has no reply (comm_open, comm_msg, comm_close): only `idle` */

/* Send the reply (its type follows from the request's) and publish `idle`; consumes the request. `metadata`
 * may be empty, meaning {}. Aborting: the io thread first takes what is already in the socket; each aborted
 * request is answered {"status":"aborted","execution_count":n} between busy and idle, with n as given by
 * jk_server_set_execution_count(). Any thread. */
void jk_request_reply(jk_request *request, jk_bytes content, jk_bytes metadata, unsigned flags);

/* An interrupt has reached the main thread. Async-signal-safe. */
void jk_server_interrupted(jk_server *server);
/* The executor serves the interrupts that came so far, and tells itself what does not end by them. Any
 * thread. */
void jk_server_interrupt_taken(jk_server *server);
/* Where a signal found its thread: "f() of lib.so", the innermost function that is neither the C library's
 * nor of the library that `interpreter`, an address, belongs to; "C code of the interpreter", or "" where it
 * runs the language's own code or that cannot be seen. Async-signal-safe. */
void jk_server_c_function(const void *ucontext, const void *interpreter, char *text, size_t size);

/* The counter that aborted replies carry. Any thread. */
void jk_server_set_execution_count(jk_server *server, long count);

/* --- Names of cells: any thread --------------------------------------------------------------------------
 */

#define JK_CELL_NAME_SIZE 256
/* The file name by which debuggers know a cell with this text (UTF-8). The file need not exist, nor its
 * folder, which is the same for all cells. */
void jk_server_cell_name(const jk_server *server, jk_bytes code, char name[JK_CELL_NAME_SIZE]);

/* --- Output: any thread --------------------------------------------------------------------------------- */

/* A parent for outputs that belong to another request than the one that runs: `header` is its header, a JSON
 * object. NULL: no memory. */
jk_parent *jk_parent_create(jk_bytes header);
jk_parent *jk_parent_retain(jk_parent *parent); /* NULL-safe */
void jk_parent_release(jk_parent *parent);      /* NULL-safe */
jk_bytes jk_parent_header(const jk_parent *parent);
/* From now on discard what is published and written for this parent, by whomever, but not its statuses, its
 * reply and its comm messages: these keep two sides in step, whether anybody looks or not. */
void jk_parent_silence(jk_parent *parent, bool silent);
bool jk_parent_silent(const jk_parent *parent);
/* The number by which the user knows the cell, In[number]; 0: none, which it is at first. */
void jk_parent_set_number(jk_parent *parent, unsigned number);
unsigned jk_parent_number(const jk_parent *parent);

/* The cell that is executing now, retained; NULL between cells. Where several run, in as many shells, the one
 * that began last. */
jk_parent *jk_server_current_cell(jk_server *server);
/* Work of devices goes on, whether a cell runs or not, or is over. Returns whether the kernel wants to know:
 * the same for all its life. Any thread; waits for nothing. */
bool jk_server_work(jk_server *server, bool goes_on);
/* Whether this cell executes. Any thread. */
bool jk_server_cell_runs(jk_server *server, const jk_parent *cell);

/* Publish a message on iopub: `content` and `metadata` are JSON objects (metadata may be empty = {}); buffers
 * are copied. `parent` NULL means no parent ({}). Blocks the caller while the queue is over its limit, at
 * most 10 s; never drops. Returns 0, also for a silent parent, or -1 after the server was closed or in a
 * forked child. */
int jk_publish(jk_server *server, jk_parent *parent, const char *msg_type, jk_bytes content,
               jk_bytes metadata, const jk_bytes *buffers, size_t nbuffers);

/* Whether jk_publish() and jk_stream_write() go through without blocking now: a caller that holds a lock of
 * its language lets go of it first when they may not. */
bool jk_server_has_room(jk_server *server);

/* Append text (UTF-8, any length) to a stream of a cell. Consecutive text of the same parent and stream is
 * coalesced: the first chunk leaves at once (text without a line end within 2 ms), later ones within 30 ms,
 * while no request is served within 300 ms. After a burst no more than 600 stream messages leave in a second,
 * which only streams that alternate come to. Text pending in C's stdout and on the captured descriptors is
 * taken first, so that Python's and C's output keep their order. `parent` NULL means the running cell, else
 * the last one. In a forked child the text goes to C's stdout, by lines, or to descriptor 2 instead. */
int jk_stream_write(jk_server *server, jk_parent *parent, jk_stream stream, const char *text, size_t size);

/* Wait until everything published so far was handed to the transport, at most `timeout_ms`. Text written
 * while no request is served is not hurried: it leaves by itself every 300 ms, so that a client which waits
 * for silence finds it. Returns 0, or -1 on timeout. */
int jk_server_flush(jk_server *server, int timeout_ms);

/* --- Input: one thread at a time --------------------------------------------------------------------------
 */

/* Ask the client that sent `request` for a line (input_request). Stale answers are discarded first. Returns
 * 0, or -1 when the server is closed or memory is out. */
int jk_input_ask(jk_server *server, const jk_request *request, jk_bytes content);

#define JK_INPUT_TIMEOUT 1 /* nothing yet: look for signals, then call again */
#define JK_INPUT_CLOSED  2 /* the server is shutting down */
/* Wait at most `timeout_ms` for the answer. Returns 0 and the content of input_reply in a malloc'ed,
 * NUL-ended
 * `*content` (*taken* by the caller), or a JK_INPUT_ value. Returns early when a signal arrives. */
int jk_input_wait(jk_server *server, int timeout_ms, char **content, size_t *size);

#endif
