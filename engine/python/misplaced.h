/* A kernel for one device that was given arguments on another. */
#ifndef DRUPE_PYTHON_MISPLACED_H
#define DRUPE_PYTHON_MISPLACED_H

#include "submit.h"

/* Of a launch on `queue` that the engine has refused: true with an exception that tells what to type, false
 * when there is another reason. */
bool drupe_py_misplaced(drupe_py_state *state, const drupe_py_launch *launch, drupe_queue *queue);

#endif
