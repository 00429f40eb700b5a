/* A layer between core and the backends that fails their calls as planned, for tests.
 *
 * A layered backend is a copy of the table below in which this layer has replaced the entries that can fail.
 * An entry that is NULL below stays NULL, since core decides by it what to emulate.
 *
 * Threads: all functions may be called from any thread. */
#ifndef DRUPE_TEST_FAULT_LAYER_H
#define DRUPE_TEST_FAULT_LAYER_H

#include "drupe/status.h"
#include <stdbool.h>
#include <stdint.h>

/* Whether backends that are loaded from now on have the layer. */
DRUPE_API void drupe_fault_layer(bool on);

/* clang-format off */
/* What shall fail, from now on, with all counters back at 0; NULL or "" = nothing. It counts only for
 * backends that have the layer. DRUPE_FAULT holds the plan that a process starts with. A plan is a list of
 * rules, with commas or spaces between:
 *
 *   submit_kernel:3=NO_MEMORY   the third call of this entry of backend.h; the status is one of
 *                               drupe_status_name(), INTERNAL if left out. `any` counts all entries that can
 *                               fail
 *   mem_alloc:3+=NO_MEMORY      the third and all later ones
 *   event:5=late                the event of the fifth submission that has one fails, after its work has
 *                               run; a status may stand in place of `late`, and 5+ is understood
 *   device:lost@7               the devices are lost from the seventh submission on
 *   random:SEED:RATE            every call fails with the probability RATE, the same ones for the same SEED
 *                               as long as the calls come in the same order
 *
 * Calls that wait (queue_wait, event_wait) do wait, and fail then. A rule that cannot be read is
 * DRUPE_E_INVALID and leaves the plan as it was. */
/* clang-format on */
DRUPE_API drupe_status drupe_fault_plan(const char *plan) DRUPE_MUST_CHECK;
/* Calls of an entry since the plan was made, failed ones included; NULL or "any": of all that can fail. */
DRUPE_API uint64_t drupe_fault_calls(const char *entry);
/* How many failures the plan has made. */
DRUPE_API uint64_t drupe_fault_made(void);

#endif
