/* The public submissions: what the caller gives is checked here, so that nothing below need do it.
 *
 * Files: submit.c (the steps of every submission; kernels), fast.h, fast_launch.c, fast_call.c
 * (work with which nothing is wrong), at_once.c (copies that are over within the call), copy.c (copies,
 * fills, hints), bounds.c (instrumented kernels).
 *
 * Owns nothing; no locks, no threads. */
#ifndef DRUPE_CORE_SUBMIT_ROOM_H
#define DRUPE_CORE_SUBMIT_ROOM_H

#include "core/check/check_room.h"
#include "core/services/services_room.h"
#include "core/transfer/transfer_room.h"

/* fast_launch.c: submit a kernel launch that is valid, has at most DRUPE_ARG_SUMMARY_MOST arguments, no LOCAL
 * one and no `keeps`, does not print, and whose memory need not be waited for. It may be deferred or fail
 * there. False: nothing has happened, and the steps launch it or say what is wrong. */
bool drupe_fast_launch(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                       const drupe_arg *args, size_t nargs, drupe_event **event,
                       drupe_status *status) DRUPE_MUST_CHECK;

static inline bool drupe_ranges_overlap(const void *a, const void *b, size_t bytes)
{
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    return first < second ? second - first < bytes : first - second < bytes;
}

/* --- The beginning and the end of every submission -------------------------------------------------------
 */

/* Takes the caller's keeps, all of them also on failure. */
drupe_status drupe_submission_begin(const drupe_submission *s, drupe_refs *refs) DRUPE_MUST_CHECK;
/* What there is to be told of a submission beside its work. `name` outlives the work. */
drupe_submit_info drupe_submission_info(const drupe_submission *s, const drupe_operands *uses,
                                        const char *name);
/* The same; what the memory waits for joins what the caller named, and the references are passed on. */
drupe_status drupe_submission_make_info(const drupe_submission *s, drupe_refs *refs, const char *name,
                                        drupe_submit_info *info) DRUPE_MUST_CHECK;
/* Both, and the submission itself. */
drupe_status drupe_submission_finish(const drupe_submission *s, drupe_refs *refs, const drupe_work *work,
                                     const char *name, drupe_event **event) DRUPE_MUST_CHECK;
/* A submission from beginning to end, whose work needs nothing but `check` (NULL: nothing). */
typedef drupe_status (*drupe_submission_check)(const drupe_submission *s, const drupe_work *work,
                                               const char *name, drupe_refs *refs);
drupe_status drupe_submission_run(const drupe_submission *s, const drupe_work *work, const char *name,
                                  drupe_submission_check check, drupe_event **event) DRUPE_MUST_CHECK;
/* Give back what is left, and write down why a submission was refused. Returns `status`. */
drupe_status drupe_submission_end(const drupe_submission *s, const char *name, const drupe_work *work,
                                  drupe_refs *refs, drupe_status status) DRUPE_MUST_CHECK;

#endif
