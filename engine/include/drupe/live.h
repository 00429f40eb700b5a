/* Displays that change while the caller's interpreter may be stuck.
 *
 * One thread, "drupe-live", asks each open display now and then to show itself: as often as the display
 * wants, at most ten times a second for all together, and less when showing takes long, so that it costs at
 * most half a percent of a processor, or one, where half would be less than a picture in two seconds. It
 * sleeps while nothing is open.
 *
 * Threads: every function may be called from any thread, but for drupe_live_stop(), which nothing else may
 * run beside; none may be called inside `show` or `release`. */
#ifndef DRUPE_LIVE_H
#define DRUPE_LIVE_H

#include "drupe/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef enum drupe_live_answer {
    DRUPE_LIVE_SAME,  /* nothing changed: nothing was shown */
    DRUPE_LIVE_SHOWN, /* something was */
    DRUPE_LIVE_OVER   /* it will not change any more: close it */
} drupe_live_answer;

/* Why a display is asked. */
typedef enum drupe_live_reason {
    DRUPE_LIVE_TIME,  /* its time has come */
    DRUPE_LIVE_ASKED, /* drupe_live_show() */
    DRUPE_LIVE_LAST   /* it is closed: what is shown now stays */
} drupe_live_reason;

typedef struct drupe_live_source {
    /* Show what has changed. Never called twice at the same time; on TIME and, if a step was going on for too
     * long, LAST by the thread of this module, else by the caller. Must not call the interpreter. */
    drupe_live_answer (*show)(void *user, drupe_live_reason reason);
    /* Called once, when it is closed; NULL is allowed. Must not call the interpreter. */
    void (*release)(void *user);
    void *user;
} drupe_live_source;

/* Open a display, which is asked for the first time after `period_ns`. `*id` is never 0. The source is copied
 * and its `user` *taken*, also on failure. */
DRUPE_API drupe_status drupe_live_open(const drupe_live_source *source, uint64_t period_ns,
                                       uint64_t *id) DRUPE_MUST_CHECK;
/* Have a display (0: every one) shown now, by the caller. What is being shown at this moment is waited for,
 * for one second at most, then it is left out. */
DRUPE_API void drupe_live_show(uint64_t id);
/* Show it for the last time and forget it; 0: all. Unknown numbers are left alone. */
DRUPE_API void drupe_live_close(uint64_t id);
/* Close all and end the thread. drupe_live_open() starts it again. */
DRUPE_API void drupe_live_stop(void);
/* The numbers of those that are open, oldest first, at most `capacity`; returns how many there are. */
DRUPE_API size_t drupe_live_list(uint64_t *ids, size_t capacity);

#endif
