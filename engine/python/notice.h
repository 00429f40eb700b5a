/* Python functions that are told when events are over. */
#ifndef DRUPE_PYTHON_NOTICE_H
#define DRUPE_PYTHON_NOTICE_H

#include "state.h"

/* When `function`, called with the event, has its turn. */
typedef enum drupe_py_when { DRUPE_PY_WHEN_OVER, DRUPE_PY_WHEN_TURN } drupe_py_when;

/* Call function(event) once `event`, a drupe.Event, is over or has its turn, where drupe_py_notices_run() is
 * called. The function is quick and waits for nothing, not even a lock that a program may hold. What it
 * raises is shown as unraisable. */
bool drupe_py_notice_add(drupe_py_state *state, PyObject *event, drupe_py_when when, PyObject *function);
/* Call what is due. */
void drupe_py_notices_run(void);
/* The descriptor that is readable while something is due, or -1 with an exception. */
int drupe_py_notices_fd(drupe_py_state *state);
/* Give up what has not been called; work whose turn has not come is cancelled. */
void drupe_py_notices_close(void);
/* drupe._events.<function>(self, *args, **kwargs), for methods that are written in Python. */
PyObject *drupe_py_events_call(const char *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames);

#endif
