/* What the recorder's view tells the kernel, and the kernel the recorder. */
#ifndef DRUPE_PYTHON_ANSWER_H
#define DRUPE_PYTHON_ANSWER_H

#include "drupe_link.h"

/* Start the recorder and join it to the kernel: it is told of cells and answers "drupe/" commands. Needs the
 * GIL. A kernel that is too old, and a recorder that cannot start, change nothing else. */
void drupe_py_answer_open(const drupe_link *link);
/* The end of that, and of a recorder that somebody else has started. Needs no GIL; waits for the recorder. */
void drupe_py_answer_close(void);

#endif
