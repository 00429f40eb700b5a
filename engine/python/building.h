/* Builds that take long are shown in the cell that waits for them: see drupe_observer in drupe/device.h. */
#ifndef DRUPE_PYTHON_BUILDING_H
#define DRUPE_PYTHON_BUILDING_H

#include "state.h"

/* A build begins; what drupe_py_built() takes, or NULL. Any thread, with or without the GIL. */
void *drupe_py_building(const drupe_source *source, const char *device);
void drupe_py_built(void *shown, bool good);

/* The kernel that publishes; borrowed for good. */
struct drupe_link;
void drupe_py_building_join(const struct drupe_link *link);

#endif
