/* Builds that take long are shown in the cell that waits for them: see drupe_observer in drupe/device.h. So
 * are first launches, for which some drivers compile once more. */
#ifndef DRUPE_PYTHON_BUILDING_H
#define DRUPE_PYTHON_BUILDING_H

#include "state.h"

/* A build begins; what drupe_py_built() takes, or NULL. Any thread, with or without the GIL. */
void *drupe_py_building(const drupe_source *source, const char *device);
void drupe_py_built(void *shown, bool good);

/* A kernel is launched for the first time; what drupe_py_launched() takes, or NULL: nobody would see it. */
void *drupe_py_launching(const char *name, const drupe_queue *queue);
/* The call has returned, with this event (borrowed; NULL: it failed). */
void drupe_py_launched(void *shown, const drupe_event *event);

/* A cell (borrowed) is about to end: first launches that are shown tell it how they stand. With the GIL,
 * which may be given away meanwhile. */
void drupe_py_launches_tell(void *cell);

/* Whether the calling thread's builds and launches show nothing; what was before. */
bool drupe_py_building_quiet(bool on);

/* The kernel that publishes; borrowed for good. */
struct drupe_link;
void drupe_py_building_join(const struct drupe_link *link);

#endif
