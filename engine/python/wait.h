/* Waits that give up the GIL and notice Ctrl-C, and what is kept alive for work in flight. */
#ifndef DRUPE_PYTHON_WAIT_H
#define DRUPE_PYTHON_WAIT_H

#include "state.h"

/* Wait for an event or a queue. False with the work's error, WaitTimeoutError, or what a signal handler
 * raised; the work itself goes on in the last two cases. The queue's finished references are dropped. */
bool drupe_py_event_wait(drupe_py_state *state, drupe_event *event, uint64_t timeout_ns);
bool drupe_py_queue_wait(drupe_py_state *state, drupe_queue *queue, uint64_t timeout_ns);

/* Memory of a Python object that work in flight reads or writes. */
typedef struct drupe_py_hold {
    struct drupe_py_hold *next;
    Py_buffer view;  /* released if view.obj is set */
    PyObject *owner; /* dropped if set */
} drupe_py_hold;

/* A zeroed hold. What the engine drops of drupe_py_hold_keep() waits on a list for drupe_py_hold_drain();
 * drupe_py_hold_free() drops one at once that the engine was not given. */
drupe_py_hold *drupe_py_hold_new(void);
drupe_keep drupe_py_hold_keep(drupe_py_hold *hold);
void drupe_py_hold_free(drupe_py_hold *hold); /* runs Python code */
/* Drop what the engine has let go of; an exception that is set stays. Runs Python code. */
void drupe_py_hold_drain(void);
/* Remember a queue that has holds in flight, so that drupe_py_hold_collect() drops the finished ones. */
void drupe_py_hold_watch(drupe_queue *queue);
void drupe_py_hold_collect(void); /* runs Python code */
/* The same, and look at `queue` (NULL: at no other) too. Runs Python code. */
void drupe_py_collect(drupe_queue *queue);

/* Wait for `event`, which writes to or reads from memory of `owner`. When the wait ends early, `owner` is
 * kept alive until the work on its in-order queue is done. */
bool drupe_py_event_wait_holding(drupe_py_state *state, drupe_event *event, PyObject *owner);

/* Drop a reference to a queue. Never waits: the last one of a queue with unfinished work is kept until that
 * is over. NULL-safe, runs no Python code, and does nothing in a forked child. */
void drupe_py_queue_release(drupe_queue *queue);
/* The same with an object that may hold the last reference to `queue` (borrowed, or NULL). */
void drupe_py_release_on(drupe_queue *queue, void (*release)(void *object), void *object);

/* Whether an exception is set now: by a signal's handler in the main thread, or by another thread for this
 * one. Runs Python code. */
bool drupe_py_interrupted(const drupe_py_state *state);
/* Call a function without arguments (NULL: none any more) again and again while this thread waits. */
void drupe_py_serve(PyObject *function);

/* True when a submission of this kind was made before; false marks it, and the caller gives up the GIL once,
 * since a program may have to be built for it. Safe to be wrong. */
bool drupe_py_warm(drupe_py_state *state, uint64_t key);
/* Take the mark back: the submission failed before its program was built. */
void drupe_py_cool(drupe_py_state *state, uint64_t key);

#endif
