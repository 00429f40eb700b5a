/* The room of the notebook: what is shown in cells and in the panel without Python code, and keeps itself up
 * to date there.
 *
 * Owns: displays that move, the lines about builds, excerpts of programs, the answers to the panel.
 * Locks: each file its own, taken alone. Threads: any; the engine's thread of displays calls back without the
 * GIL. The kernel's functions come by drupe_link.h, which the module joins. */
#ifndef DRUPE_PYTHON_NOTEBOOK_ROOM_H
#define DRUPE_PYTHON_NOTEBOOK_ROOM_H

#include "drupe/live.h"
#include "drupe/view.h"
#include "drupe_link.h"
#include "engine/python/errors/errors_room.h"

/* --- mime_bundle.c, py_live.c --------------------------------------------------------------------------- */

/* Displays in the output of a cell that change without Python: what they need of the front-end's side. How
 * often they are shown is drupe/live.h's affair. */

#define DRUPE_PY_DISPLAY_ID 48

/* What a front-end may choose from; NUL-ended, NULL: not there. The caller's, allocated with malloc. */
typedef struct drupe_py_mime_bundle {
    char *text;       /* text/plain */
    char *html;       /* text/html */
    char *trace;      /* application/vnd.drupe.trace+json, a JSON object */
    const char *kind; /* what the trace is about, for its metadata; static */
    bool live;        /* more is to come, for its metadata */
} drupe_py_mime_bundle;

void drupe_py_mime_bundle_clear(drupe_py_mime_bundle *mime);

/* A name for a display that no other kernel has used. */
void drupe_py_display_id(char id[DRUPE_PY_DISPLAY_ID]);

/* Publish as an output of `cell` (borrowed): display_data, or with `update` what takes the place of the
 * display of that name. `id` NULL: a display that stays as it is. 0, or -1: no kernel, or no memory. Any
 * thread, without the GIL; waits, ten seconds at most, for a client that reads nothing. */
int drupe_py_mime_bundle_publish(void *cell, const char *id, bool update, const drupe_py_mime_bundle *mime);

/* `send` what a display shows that does not change any more, from inside its drupe_live_source. Clients may
 * listen to nothing but the cell that runs: if that is not the display's (`cell`, borrowed), the display
 * stays open, and is shown once more to the next cell that ends. `*told` is the display's, false at first. */
drupe_live_answer drupe_py_live_last(bool *told, void *cell, void (*send)(void *user, void *cell),
                                     void *user);
/* Show all displays for a cell (borrowed), with the GIL, which is given away meanwhile. */
void drupe_py_live_show(void *cell);

/* Have all views that keep themselves up to date published once more, each when its turn comes: somebody may
 * have missed what they show. Any thread. */
void drupe_py_live_wish(void);

/* --- building.c ---------------------------------------------------------------------------------------- */

/* Builds that take long are shown in the cell that waits for them: see drupe_observer in drupe/device.h. So
 * are first launches, for which some drivers compile once more. */

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

/* --- excerpt.c ----------------------------------------------------------------------------------------- */

/* The lines around a place of the program, for those who may not ask Python for them. */

#define DRUPE_PY_EXCERPT_MOST 2560u /* bytes that drupe_py_excerpt_add() writes at most */

/* Note the lines of all places that were submitted from since the last call, and whether texts are to be
 * coloured. Needs the GIL; leaves no exception. */
void drupe_py_excerpts_prepare(void);
/* Whether they are to be coloured, as it was noted. Any thread, without the GIL. */
bool drupe_py_excerpts_colour(void);
/* Where the place is, and the lines around it with an arrow at its own, as IPython shows them. False, and
 * nothing is added, when they were not noted or are forgotten. Any thread, without the GIL. */
bool drupe_py_excerpt_add(drupe_py_strbuf *to, uint32_t site);
void drupe_py_excerpts_clear(void);

/* --- answer.c ------------------------------------------------------------------------------------------ */

/* What the recorder's view tells the kernel, and the kernel the recorder. */

/* Start the recorder and join it to the kernel: it is told of cells and answers "drupe/" commands. Needs the
 * GIL. A kernel that is too old, and a recorder that cannot start, change nothing else. */
void drupe_py_answer_open(void);
/* The end of that, and of a recorder that somebody else has started. Needs no GIL; waits for the recorder. */
void drupe_py_answer_close(void);

/* --- view.c -------------------------------------------------------------------------------------------- */

/* "events", "table" and so on. */
const char *drupe_py_frame_name(drupe_frame_kind kind);
/* The frame of such a name: a converter for PyArg_ParseTuple()'s "O&". */
int drupe_py_frame_kind(PyObject *object, void *kind);

/* --- For the module ------------------------------------------------------------------------------------ */

extern PyMethodDef drupe_py_live_functions[], drupe_py_event_display_functions[], drupe_py_view_functions[];
extern PyType_Spec drupe_py_View_spec;

#endif
