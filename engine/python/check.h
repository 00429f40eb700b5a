/* Checked mode from Python: see drupe/check.h. */
#ifndef DRUPE_PYTHON_CHECK_H
#define DRUPE_PYTHON_CHECK_H

#include "state.h"

/* The host is about to get at this memory. 0, or -1 with CheckError when unfinished work uses it. */
int drupe_py_check_host(drupe_py_state *state, const drupe_memory *memory, bool writes);

#endif
