/* A line in the cell that launches a kernel over far more work-items than its arrays have elements: on some
 * devices that ends the process. */
#ifndef DRUPE_PYTHON_REACH_H
#define DRUPE_PYTHON_REACH_H

#include "submit.h"

/* Look at a launch from the place `site` (not 0), whose arguments need not be valid. Runs no Python code. */
void drupe_py_reach_look(const drupe_py_state *state, const drupe_py_launch *launch, const drupe_range *range,
                         uint32_t site);
/* The kernel that publishes; borrowed for good. */
struct drupe_link;
void drupe_py_reach_join(const struct drupe_link *link);

#endif
