/* The room of waits: the GIL is given up and Ctrl-C noticed; what work in flight uses is kept alive
 * meanwhile.
 *
 * Owns: what is held for work in flight, queues with unfinished work that nobody has any more. Locks: the
 * GIL; the list of what the engine has let go of has its own. Threads: any; nobody waits but with the GIL
 * given up. */
#ifndef DRUPE_PYTHON_WAITS_ROOM_H
#define DRUPE_PYTHON_WAITS_ROOM_H

#include "engine/python/errors/errors_room.h"

/* --- wait.c -------------------------------------------------------------------------------------------- */

/* At the start of whatever touches the engine: refuses in a forked child, and drops what finished while the
 * GIL was not held. */
bool drupe_py_enter(drupe_py_state *state);
/* True in a child of fork() of a process that had used the engine: engine objects must not be touched. */
bool drupe_py_forked(void);
/* Whether the engine was ever entered. */
bool drupe_py_used(void);

/* Wait for an event or a queue. False with the work's error, WaitTimeoutError, or what a signal handler
 * raised; the work itself goes on in the last two cases. The queue's finished references are dropped. */
bool drupe_py_event_wait(drupe_py_state *state, drupe_event *event, uint64_t timeout_ns);
bool drupe_py_queue_wait(drupe_py_state *state, drupe_queue *queue, uint64_t timeout_ns);

/* Memory of a Python object that work in flight reads or writes. */
typedef struct drupe_py_keepalive {
    struct drupe_py_keepalive *next;
    Py_buffer view;  /* released if view.obj is set */
    PyObject *owner; /* dropped if set */
} drupe_py_keepalive;

/* Have a view lie elsewhere, so that `from` has nothing to be released any more. One of bytes has its length for
 * its shape and its item size for its strides, and what releases it may look at them (a __release_buffer__()
 * does). */
void drupe_py_view_move(Py_buffer *to, Py_buffer *from);
/* A zeroed keepalive. What the engine drops of drupe_py_keepalive_keep() waits on a list for
 * drupe_py_keepalive_drain(); drupe_py_keepalive_free() drops one at once that the engine was not given. */
drupe_py_keepalive *drupe_py_keepalive_new(void);
drupe_keep drupe_py_keepalive_keep(drupe_py_keepalive *keepalive);
void drupe_py_keepalive_free(drupe_py_keepalive *keepalive); /* runs Python code */
/* One of `owner` for a submission to `queue`, which takes it also when it fails. Who waits for the work holds
 * `owner`, too, but the wait may end first: by Ctrl-C, or with an error that came before the work was over.
 * False with MemoryError. */
bool drupe_py_keepalive_of(PyObject *owner, drupe_queue *queue, drupe_keep *keep);
/* Drop what the engine has let go of; an exception that is set stays. Runs Python code. */
void drupe_py_keepalive_drain(void);
/* Remember a queue that has keepalives in flight, so that drupe_py_keepalive_collect() drops the finished
 * ones. */
void drupe_py_keepalive_watch(drupe_queue *queue);
void drupe_py_keepalive_collect(void); /* runs Python code */
/* The same, and look at `queue` (NULL: at no other) too. Runs Python code. */
void drupe_py_collect(drupe_queue *queue);

/* Drop a reference to a queue. Never waits: the last one of a queue with unfinished work is kept until that
 * is over. NULL-safe, runs no Python code, and does nothing in a forked child. */
void drupe_py_queue_release(drupe_queue *queue);
/* The same with an object that may hold the last reference to `queue` (borrowed, or NULL). */
void drupe_py_release_on(drupe_queue *queue, void (*release)(void *object), void *object);

/* Whether an exception is set now: by a signal's handler in the main thread, or by another thread for this
 * one. Runs Python code. */
bool drupe_py_interrupted(const drupe_py_state *state);

/* True when a submission of this kind was made before; false marks it, and the caller gives up the GIL once,
 * since a program may have to be built for it. Safe to be wrong. */
bool drupe_py_warm(drupe_py_state *state, uint64_t key);
/* Take the mark back: the submission failed before its program was built. */
void drupe_py_cool(drupe_py_state *state, uint64_t key);

/* --- pause.c -------------------------------------------------------------------------------------------- */

/* pause() of the engine's observer, and what has to be over before memory is touched past the engine. */

void drupe_py_pause_open(drupe_py_state *state);
/* Of drupe_observer; with or without the GIL. After DRUPE_E_CANCELLED an exception is set. */
drupe_status drupe_py_pause(drupe_queue *queue, uint64_t timeout_ns);

/* Before an address in the memory is handed to somebody who does not submit through the engine: wait for what
 * else may use its bytes. False with an exception. */
bool drupe_py_address_leaves(drupe_py_state *state, drupe_memory *memory);
/* The same for an address that comes back: drupe_memory_view() says when. Until it was called, no Python code
 * may run. */
bool drupe_py_address_lent(drupe_py_state *state, drupe_memory *memory);
/* Whether it holds what was to be written there, as far as that is over; else false with the first cause. */
bool drupe_py_contents_good(drupe_py_state *state, drupe_memory *memory);
/* Take the contents as they are; waits for the memory's queue. None, or NULL when it was interrupted. */
PyObject *drupe_py_contents_accept(drupe_py_state *state, drupe_memory *memory);
#define DRUPE_PY_ACCEPT_DOC                                                                                  \
    "accept_contents($self)\n--\n\n"                                                                         \
    "Accept the elements as they are although work that was to write them failed or did not run. Waits "     \
    "for the queue; a failure there is still raised by the next wait.\n\n"                                   \
    ">>> x = drupe.array.zeros(2)\n>>> x.accept_contents()\n>>> x.tolist()\n[0.0, 0.0]"
/* Drop what finished work of all queues has kept. Runs Python code. */
void drupe_py_collect_all(void);
/* Wait until no work of any queue uses the memory; failures stay to be told. False when interrupted. */
bool drupe_py_memory_idle(drupe_memory *memory);

/* --- py_check.c ---------------------------------------------------------------------------------------- */

/* Checked mode from Python: see drupe/check.h. */

/* The host is about to get at this memory. 0, or -1 with CheckError when unfinished work uses it. */
int drupe_py_check_host(drupe_py_state *state, const drupe_memory *memory, bool writes);

/* --- For the module ------------------------------------------------------------------------------------ */

extern PyMethodDef drupe_py_wait_functions[], drupe_py_check_functions[];

#endif
