/* Displays in the output of a cell that change without Python: what they need of the front-end's side. How
 * often they are shown is drupe/live.h's affair. */
#ifndef DRUPE_PYTHON_LIVE_H
#define DRUPE_PYTHON_LIVE_H

#include "drupe/live.h"
#include "state.h"

#define DRUPE_PY_DISPLAY_ID 48

/* What a front-end may choose from; NUL-ended, NULL: not there. The caller's, allocated with malloc. */
typedef struct drupe_py_bundle {
    char *text;       /* text/plain */
    char *html;       /* text/html */
    char *trace;      /* application/vnd.drupe.trace+json, a JSON object */
    const char *kind; /* what the trace is about, for its metadata; static */
    bool live;        /* more is to come, for its metadata */
} drupe_py_bundle;

void drupe_py_bundle_clear(drupe_py_bundle *bundle);

/* A name for a display that no other kernel has used. */
void drupe_py_display_id(char id[DRUPE_PY_DISPLAY_ID]);

/* Publish as an output of `cell` (borrowed): display_data, or with `update` what takes the place of the
 * display of that name. `id` NULL: a display that stays as it is. 0, or -1: no kernel, or no memory. Any
 * thread, without the GIL; waits, ten seconds at most, for a client that reads nothing. */
int drupe_py_bundle_publish(void *cell, const char *id, bool update, const drupe_py_bundle *bundle);

/* While drupe_live_show() or -_close() was called for a cell: that cell, borrowed, which some clients alone
 * listen to. */
void *drupe_py_live_asking(void);
/* drupe_live_show() for a cell (borrowed), with the GIL, which is given away meanwhile. */
void drupe_py_live_show(void *cell, uint64_t id);

/* Have all views that keep themselves up to date published once more, each when its turn comes: somebody may
 * have missed what they show. Any thread. */
void drupe_py_live_wish(void);

/* The kernel that publishes; borrowed for good. */
struct drupe_link;
void drupe_py_live_join(const struct drupe_link *link);
void drupe_py_bundle_link(const struct drupe_link *link); /* parts of it */
void drupe_py_event_display_link(const struct drupe_link *link);

#endif
