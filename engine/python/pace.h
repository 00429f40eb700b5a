/* pause() of the engine's observer, and what has to be over before memory is touched past the engine. */
#ifndef DRUPE_PYTHON_PACE_H
#define DRUPE_PYTHON_PACE_H

#include "state.h"

void drupe_py_pace_open(drupe_py_state *state);
/* Of drupe_observer; with or without the GIL. After DRUPE_E_CANCELLED an exception is set. */
drupe_status drupe_py_pause(drupe_queue *queue, uint64_t timeout_ns);

/* Before an address in the memory is handed to somebody who does not submit through the engine: wait for what
 * else may use its bytes. False with an exception. */
bool drupe_py_address_leaves(drupe_py_state *state, drupe_memory *memory);
/* Whether it holds what was to be written there, as far as that is over; else false with the first cause. */
bool drupe_py_contents_good(drupe_py_state *state, drupe_memory *memory);
/* Take the contents as they are; waits for the memory's queue. None, or NULL when it was interrupted. */
PyObject *drupe_py_contents_accept(drupe_py_state *state, drupe_memory *memory);
#define DRUPE_PY_ACCEPT_DOC                                                                                  \
    "accept_contents($self)\n--\n\n"                                                                         \
    "Accept the elements as they are although work that was to write them failed or did not run. Waits "     \
    "for the queue; a failure there is still raised by the next wait."
/* Drop what finished work of all queues has kept. Runs Python code. */
void drupe_py_collect_all(void);
/* Wait until no work of any queue uses the memory; failures stay to be told. False when interrupted. */
bool drupe_py_memory_idle(drupe_memory *memory);

#endif
