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

/* A zeroed hold. Dropped by drupe_py_hold_release(), which drupe_py_hold_keep() passes to the engine; without
 * the GIL it puts the hold on a list that drupe_py_hold_drain() empties. */
drupe_py_hold *drupe_py_hold_new(void);
void drupe_py_hold_release(void *hold);
drupe_keep drupe_py_hold_keep(drupe_py_hold *hold);
void drupe_py_hold_drain(void);
/* Remember a queue that has holds in flight, so that drupe_py_hold_collect() drops the finished ones. */
void drupe_py_hold_watch(drupe_queue *queue);
void drupe_py_hold_collect(void);

/* Wait for `event`, which writes to or reads from memory of `owner`. When the wait ends early, `owner` is
 * kept alive until the work on its in-order queue is done. */
bool drupe_py_event_wait_holding(drupe_py_state *state, drupe_event *event, PyObject *owner);

/* Drop a reference to a queue, or to an object that may hold the last one to `queue` (borrowed), without
 * keeping the GIL while the queue's work is waited for. Nothing happens in a forked child. */
void drupe_py_release_on(drupe_queue *queue, void (*release)(void *object), void *object);

/* True when a submission of this kind was made before; false marks it, and the caller gives up the GIL once,
 * since a program may have to be built for it. Safe to be wrong. */
bool drupe_py_warm(drupe_py_state *state, uint64_t key);
/* Take the mark back: the submission failed before its program was built. */
void drupe_py_cool(drupe_py_state *state, uint64_t key);

#endif
