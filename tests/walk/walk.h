/* The walk: fixed scenes that together call every public function, each run again and again with another step
 * failing (a call of the backend, an event, the device, an allocation of the host, the start of a thread).
 *
 * A scene does its work with GO() and returns the first failure; what it made lies in the walker, which is
 * emptied afterwards whatever happened. Then nothing may be left, and what was heard must be a sentence. */
#ifndef WALK_H
#define WALK_H

#include "drupe/cache.h"
#include "drupe/check.h"
#include "drupe/drupe.h"
#include "drupe/trace.h"
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND       UINT64_C(1000000000)
#define LONG         (20 * SECOND)
#define ELEMENTS     1000

struct walker {
    const char *filter, *other_filter; /* of the device, and of one of another backend or NULL */
    drupe_language language;
    const char *source;
    drupe_device *device, *other, *parts[4];
    drupe_context *context, *second;
    drupe_queue *queue, *aside, *timed;
    drupe_memory *memory[6];
    drupe_event *events[12];
    drupe_program *program;
    drupe_kernel *kernel;
    drupe_array arrays[7];
    void *bytes[4]; /* malloc'ed */
    drupe_watch *watch;
    drupe_event *turn;     /* of drupe_submit_turn() */
    bool checked;          /* drupe_check_begin() was called */
    drupe_status expected; /* a failure that belongs to the scene */
};

typedef struct walk_scene {
    const char *name;
    drupe_status (*run)(struct walker *w);
    bool builds; /* programs, which takes a driver long: not every step is walked, see walk.c */
} walk_scene;

extern const walk_scene walk_device_scenes[], walk_queue_scenes[], walk_memory_scenes[],
    walk_program_scenes[], walk_array_scenes[], walk_pending_scenes[], walk_native_scenes[],
    walk_view_scenes[]; /* each ends with a NULL name */

/* Judge the failure of a call and pass it on. */
drupe_status walk_heard(drupe_status status, const char *call);
#define GO(call)                                                                                             \
    do {                                                                                                     \
        drupe_status go_status_ = (call);                                                                    \
        if (go_status_ != DRUPE_OK) return walk_heard(go_status_, #call);                                    \
    } while (0)
/* A call that must fail like this; other failures are passed on, success is a defect. */
drupe_status walk_refused(drupe_status status, drupe_status expected, const char *call);
#define REFUSED(call, expected)                                                                              \
    do {                                                                                                     \
        drupe_status go_status_ = walk_refused((call), (expected), #call);                                   \
        if (go_status_ != DRUPE_OK) return go_status_;                                                       \
    } while (0)

/* Device, context and queue; with memory[0] and memory[1] of ELEMENTS doubles. */
drupe_status walk_open(struct walker *w);
drupe_status walk_open_memory(struct walker *w);
drupe_status walk_open_kernel(struct walker *w);
/* out[i] = start + i. */
drupe_status walk_submit(struct walker *w, drupe_queue *queue, drupe_memory *out, double start,
                         drupe_event *const *waits, size_t nwaits, drupe_event **event);

#endif
