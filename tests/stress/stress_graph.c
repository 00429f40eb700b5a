/* See stress_graph.h. */
#include "stress/stress_graph.h"
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#define PATIENCE (120ull * SECOND)

static uint64_t dice(struct script *script, uint64_t sides)
{
    script->random = script->random * 6364136223846793005u + 1442695040888963407u;
    return (script->random >> 33) % sides;
}

/* --- Sets of steps -------------------------------------------------------------------------------------- */

static bool has(const uint64_t *set, size_t step)
{
    return set[step / 64] >> step % 64 & 1;
}

static void add(uint64_t *set, size_t step)
{
    set[step / 64] |= UINT64_C(1) << step % 64;
}

static void join(uint64_t *set, const uint64_t *other)
{
    for (size_t w = 0; w < WORDS; w++) set[w] |= other[w];
}

/* --- What is known before a step ------------------------------------------------------------------------ */

static bool touch(const struct part *a, const struct part *b)
{
    return a->place && a->place == b->place && a->first < b->first + b->count &&
           b->first < a->first + a->count;
}

static bool conflict(const struct step *a, const struct step *b)
{
    return touch(&a->out, &b->out) || touch(&a->out, &b->in) || touch(&a->in, &b->out);
}

static void add_wait(struct script *script, struct step *step, size_t wait)
{
    add(step->waits, wait);
    add(step->before, wait);
    join(step->before, script->steps[wait].before);
}

/* A step behind a failed one may start although what the failed one waited for is not over: with failures the
 * order of a queue says nothing about other queues. */
static void know_order(struct script *script, struct step *step, size_t number)
{
    const struct lane *lane = &script->world->lanes[step->lane];
    bool all = lane->ordered || step->kind == BARRIER;
    join(step->before, script->known);
    for (size_t i = 0; i < number; i++) {
        if (script->steps[i].lane != step->lane || !(all || script->steps[i].kind == BARRIER)) continue;
        add(step->before, i);
        if (!script->world->failures) join(step->before, script->steps[i].before);
    }
}

static void know(struct script *script, struct step *step, size_t number)
{
    know_order(script, step, number);
    step->needed = -1;
    for (size_t i = number; i-- > 0;) {
        if (!conflict(step, &script->steps[i]) || has(step->before, i)) continue;
        add_wait(script, step, i);
        if (step->needed < 0) step->needed = (long)i;
    }
    /* More than needed may cover it. */
    if (script->world->checked) return;
    for (uint64_t more = dice(script, 4); number && more == 3; more = dice(script, 4)) {
        add_wait(script, step, dice(script, number));
    }
}

/* --- Choosing ------------------------------------------------------------------------------------------- */

static struct part choose_part(struct script *script, struct place *place)
{
    struct part part = {.place = place, .count = 2 + 2 * dice(script, ELEMENTS / 2 - 1)};
    part.first = 2 * dice(script, (ELEMENTS - part.count) / 2 + 1);
    return part;
}

static struct place *choose_place(struct script *script, const struct bench *bench, bool host)
{
    for (;;) {
        struct place *place = &script->places[dice(script, PLACES)];
        if (bench && place->bench != bench) continue;
        if (!host || place->elements) return place;
    }
}

/* `in` has as many elements as `out` and does not overlap it, or is the same part. */
static void choose_input(struct script *script, struct step *step, const struct bench *bench, bool host)
{
    step->in = choose_part(script, choose_place(script, bench, host));
    size_t count = step->in.count < step->out.count ? step->in.count : step->out.count;
    step->in.count = step->out.count = count;
    if (!touch(&step->in, &step->out)) return;
    step->in = step->out;
    if (step->kind == COPY || step->kind == SCRATCH) step->kind = HOST;
    if (step->kind == HOST && !step->out.place->elements) step->kind = BARRIER;
}

static void choose(struct script *script, struct step *step)
{
    static const enum kind kinds[] = {MAD,  MAD,  MAD,  MAD,  COPY, COPY,    COPY,
                                      FILL, FILL, HOST, HOST, HOST, SCRATCH, BARRIER};
    *step = (struct step){.kind = kinds[dice(script, COUNT(kinds))]};
    step->lane = dice(script, script->world->nlanes);
    const struct bench *bench = script->world->lanes[step->lane].line->bench;
    if (script->world->failures && dice(script, 25) == 0) step->kind = FAILURE;
    step->mul = dice(script, 7);
    step->add = dice(script, 256) * 0x0101010101010101u;
    step->pause = dice(script, 4) ? 0 : dice(script, 200);
    if (step->kind == BARRIER || step->kind == FAILURE) return;
    /* A copy between contexts is made of several submissions, which may order more than the copy asked for.
     */
    bool staged = !script->world->checked || script->world->lanes[step->lane].ordered;
    bool anywhere = (step->kind == COPY && staged) || step->kind == HOST;
    step->out = choose_part(script, choose_place(script, anywhere ? NULL : bench, step->kind == HOST));
    if (step->kind == FILL) return;
    choose_input(script, step, anywhere ? NULL : bench, step->kind == HOST);
    if (step->kind == BARRIER) step->in.place = step->out.place = NULL;
}

/* --- Doing ---------------------------------------------------------------------------------------------- */

static uint64_t *at(const struct part *part)
{
    return part->place ? part->place->address + part->first : NULL;
}

static drupe_memory *memory_of(const struct part *part)
{
    return part->place ? part->place->memory : NULL;
}

static void compute(uint64_t *out, const uint64_t *in, const struct step *step)
{
    for (size_t i = 0; i < step->out.count; i++) out[i] = in[i] * step->mul + step->add;
}

static drupe_status host_function(void *user)
{
    const struct step *step = user;
    struct timespec pause = {.tv_nsec = (long)step->pause * 1000};
    if (step->pause) nanosleep(&pause, NULL);
    if (step->kind == FAILURE) return drupe_error_set(DRUPE_E_INVALID, PLANNED);
    compute(at(&step->out), at(&step->in), step);
    return DRUPE_OK;
}

static drupe_status submit_kernel(const drupe_submission *s, const struct bench *bench, struct step *step)
{
    void *to = at(&step->out), *from = at(&step->in);
    uint64_t count = step->out.count;
    drupe_arg args[] = {
        {DRUPE_ARG_POINTER, 0, &to},      {DRUPE_ARG_POINTER, 0, &from},    {DRUPE_ARG_VALUE, 8, &count},
        {DRUPE_ARG_VALUE, 8, &step->mul}, {DRUPE_ARG_VALUE, 8, &step->add},
    };
    drupe_range range = {.dims = 1, .global = {1 + count % 9}};
    drupe_submission with = *s;
    const drupe_effects effects = {.reads = step->in.place == step->out.place ? 3 : 2, .writes = 1};
    with.effects = &effects;
    if (step->add % 2 || !drupe_kernel_words(bench->mad))
        return drupe_submit_kernel(&with, bench->mad, &range, args, COUNT(args), &step->event);
    drupe_memory *const memories[] = {memory_of(&step->out), memory_of(&step->in), NULL, NULL, NULL};
    const uint64_t words[] = {(uintptr_t)to, (uintptr_t)from, count, step->mul, step->add};
    with.memories = memories;
    return drupe_submit_words(&with, bench->mad, &range, words, &step->event);
}

static drupe_status submit_function(const drupe_submission *s, struct step *step)
{
    drupe_memory *const used[] = {memory_of(&step->out), memory_of(&step->in)};
    drupe_keep keeps[2];
    drupe_submission with = *s;
    with.keeps = keeps;
    drupe_effects effects = {0};
    with.effects = &effects;
    for (size_t i = 0; i < 2; i++) {
        if (!used[i]) continue;
        *(i ? &effects.reads : &effects.writes) |= UINT64_C(1) << with.nkeeps;
        keeps[with.nkeeps++] = drupe_memory_keep(used[i], s->queue);
    }
    return drupe_submit_host(&with, host_function, step, &step->event);
}

/* From `*memory`, behind `*last`, to new memory that takes its place; so does the event. */
static drupe_status pass_on(drupe_queue *queue, size_t bytes, drupe_memory **memory, drupe_event **last)
{
    drupe_memory *next;
    drupe_event *event;
    DRUPE_TRY(drupe_memory_alloc_result(queue, DRUPE_MEM_DEVICE, bytes, &next));
    const drupe_submission s = {.queue = queue, .waits = last, .nwaits = 1, .ordered = true};
    drupe_status status =
        drupe_submit_copy(&s, drupe_memory_pointer(next), drupe_memory_pointer(*memory), bytes, &event);
    drupe_memory_release(status == DRUPE_OK ? *memory : next);
    if (status != DRUPE_OK) return status;
    drupe_event_release(*last);
    *memory = next;
    *last = event;
    return DRUPE_OK;
}

/* Through memory that nobody but the copies holds, which may take a detour over another queue of the device.
 */
static drupe_status submit_scratch(struct script *script, const drupe_submission *s, struct step *step)
{
    const struct world *world = script->world;
    const struct lane *lane = &world->lanes[step->lane], *other = &world->lanes[step->add % world->nlanes];
    size_t bytes = step->out.count * 8;
    drupe_memory *memory;
    drupe_event *last;
    drupe_submission first = *s;
    /* In checked mode nothing is handed on, and order that the script does not know of would hide races. */
    first.ordered = !world->checked;
    DRUPE_TRY(first.ordered ? drupe_memory_alloc_result(s->queue, DRUPE_MEM_DEVICE, bytes, &memory)
                            : drupe_memory_alloc(s->queue, DRUPE_MEM_DEVICE, bytes, 0, &memory));
    drupe_status status =
        drupe_submit_copy(&first, drupe_memory_pointer(memory), at(&step->in), bytes, &last);
    /* Where nothing fails: what fails on the other queue would be no reason of this step's. */
    bool detour = !world->failures && !world->checked && world->alone && other->line == lane->line;
    if (status == DRUPE_OK) {
        if (detour) status = pass_on(other->queue, bytes, &memory, &last);
        drupe_submission second = {.queue = s->queue, .waits = &last, .nwaits = 1};
        if (status == DRUPE_OK)
            status =
                drupe_submit_copy(&second, at(&step->out), drupe_memory_pointer(memory), bytes, &step->event);
        drupe_event_release(last);
    }
    drupe_memory_release(memory);
    return status;
}

static drupe_status submit(struct script *script, struct step *step, const drupe_submission *s)
{
    size_t bytes = step->out.count * 8;
    switch (step->kind) {
    case MAD: return submit_kernel(s, script->world->lanes[step->lane].line->bench, step);
    case COPY: return drupe_submit_copy(s, at(&step->out), at(&step->in), bytes, &step->event);
    case FILL: {
        uint64_t pattern[2] = {step->add, step->mul * 3};
        size_t size = step->mul < 2 ? 1 : step->mul < 4 ? 8 : 16;
        return drupe_submit_fill(s, at(&step->out), pattern, size, bytes, &step->event);
    }
    case SCRATCH: return submit_scratch(script, s, step);
    case BARRIER: return drupe_submit_barrier(s, &step->event);
    default: return submit_function(s, step);
    }
}

static void check(struct script *script, bool right, const char *what, size_t number)
{
    if (right || script->failed) return;
    const drupe_error *error = drupe_error_last();
    printf("seed %" PRIu64 ": step %zu: %s (last error: %s)\n", script->seed, number, what, error->text);
    script->failed = true;
}

/* All waits of the step but `left_out`. */
static drupe_status submit_with(struct script *script, size_t number, long left_out)
{
    struct step *step = &script->steps[number];
    drupe_event *waits[STEPS];
    size_t nwaits = 0;
    for (size_t i = 0; i < number; i++) {
        if (has(step->waits, i) && (long)i != left_out) waits[nwaits++] = script->steps[i].event;
    }
    drupe_access accesses[2] = {{NULL, 0, false}, {NULL, 0, false}};
    if (step->out.place) accesses[0] = (drupe_access){at(&step->out), step->out.count * 8, true};
    if (step->in.place) accesses[1] = (drupe_access){at(&step->in), step->in.count * 8, false};
    drupe_submission s = {.queue = script->world->lanes[step->lane].queue, .waits = waits, .nwaits = nwaits};
    if (script->world->checked && (step->kind == MAD || step->kind == HOST)) {
        s.accesses = accesses;
        s.naccesses = 2;
    }
    return submit(script, step, &s);
}

/* In checked mode: without a wait that it needs, a step is refused. */
static void forget_wait(struct script *script, size_t number)
{
    const struct step *step = &script->steps[number];
    bool staged = step->kind == SCRATCH || step->kind == COPY;
    if (!script->world->checked || staged || step->needed < 0 || dice(script, 2)) return;
    drupe_status status = submit_with(script, number, step->needed);
    if (script->world->failures && status == DRUPE_E_DEPENDENCY) return; /* for another reason */
    check(script, status == DRUPE_E_CHECK, "it was not refused without a wait that it needs", number);
}

/* Whether a step before `number` that was to write the place has failed, or may still fail: what stands
 * behind a failure is marked before its own event is over. */
static bool may_be_marked(const struct script *script, const struct place *place, size_t number)
{
    for (size_t i = 0; i < number; i++) {
        const struct step *step = &script->steps[i];
        if (step->out.place == place && drupe_event_state_of(step->event) != DRUPE_EVENT_COMPLETE)
            return true;
    }
    return false;
}

static void accept_place(struct place *place)
{
    if (!place || !place->memory) return;
    drupe_memory_accept(place->memory);
    place->accepted = true;
}

/* A step that reads what holds no result is refused; then the script takes the contents as they are. */
static drupe_status submit_or_accept(struct script *script, size_t number)
{
    struct step *step = &script->steps[number];
    if (script->world->failures && dice(script, 2)) {
        accept_place(step->in.place);
        accept_place(step->out.place);
    }
    drupe_status status = submit_with(script, number, -1);
    if (!script->world->failures || (status != DRUPE_E_DEPENDENCY && status != DRUPE_E_CANCELLED))
        return status;
    check(script,
          may_be_marked(script, step->in.place, number) || may_be_marked(script, step->out.place, number),
          "it was refused, though nothing failed that was to write what it reads", number);
    /* More of what was to write it may be found to have failed meanwhile. */
    for (size_t i = 0; i <= number && (status == DRUPE_E_DEPENDENCY || status == DRUPE_E_CANCELLED); i++) {
        accept_place(step->in.place);
        accept_place(step->out.place);
        status = submit_with(script, number, -1);
    }
    return status;
}

static void do_step(struct script *script)
{
    size_t number = script->nsteps;
    choose(script, &script->steps[number]);
    know(script, &script->steps[number], number);
    forget_wait(script, number);
    drupe_status status = submit_or_accept(script, number);
    check(script, status == DRUPE_OK, "the submission was refused", number);
    if (status == DRUPE_OK) script->nsteps++;
}

/* --- What the host does between --------------------------------------------------------------------------
 */

static void settle(struct script *script, size_t number, drupe_event_state state)
{
    struct step *step = &script->steps[number];
    bool failed = state == DRUPE_EVENT_FAILED;
    check(script, state == DRUPE_EVENT_COMPLETE || failed, "a wait is over, but not its event", number);
    check(script, !step->over || step->failed == failed, "an event has changed its mind", number);
    step->over = true;
    step->failed = failed;
    add(script->known, number);
    if (!failed) join(script->known, step->before);
}

static void wait_step(struct script *script, size_t number)
{
    struct step *step = &script->steps[number];
    drupe_status status = drupe_event_wait(step->event, PATIENCE);
    check(script, status != DRUPE_E_TIMEOUT, "it does not end", number);
    if (status == DRUPE_E_TIMEOUT) return;
    drupe_event_state state = drupe_event_state_of(step->event);
    check(script, (status != DRUPE_OK) == (state == DRUPE_EVENT_FAILED), "wait and state disagree", number);
    settle(script, number, state);
}

static void poll_step(struct script *script, size_t number)
{
    uint64_t deadline = drupe_deadline(PATIENCE);
    drupe_event_state state;
    while ((state = drupe_event_state_of(script->steps[number].event)) < DRUPE_EVENT_COMPLETE) {
        check(script, drupe_now_ns() < deadline, "it is never seen to end", number);
        if (script->failed) return;
        sched_yield();
    }
    settle(script, number, state);
}

static void wait_lane(struct script *script, size_t lane)
{
    drupe_status status = drupe_queue_wait(script->world->lanes[lane].queue, PATIENCE);
    check(script, status == DRUPE_OK || script->world->failures, "the wait for a queue failed", lane);
    check(script, status != DRUPE_E_TIMEOUT, "a queue does not end", lane);
    for (size_t i = 0; i < script->nsteps && !script->failed; i++) {
        if (script->steps[i].lane == lane) settle(script, i, drupe_event_state_of(script->steps[i].event));
    }
}

/* The last release of a queue waits for what is in flight; its events live on. */
static void replace_lane(struct script *script, size_t number)
{
    struct lane *lane = &script->world->lanes[number];
    drupe_queue_release(lane->queue);
    for (size_t i = 0; i < script->nsteps; i++) {
        if (script->steps[i].lane == number) wait_step(script, i);
    }
    lane_open(lane, dice(script, 1000));
}

static void act(struct script *script)
{
    size_t lane = dice(script, script->world->nlanes), number = dice(script, script->nsteps);
    switch (dice(script, 24)) {
    case 0: wait_lane(script, lane); break;
    case 1: wait_step(script, number); break;
    case 2: poll_step(script, number); break;
    case 3: drupe_queue_collect(script->world->lanes[lane].queue); break;
    case 4:
        if (script->world->alone && dice(script, 4) == 0) replace_lane(script, lane);
        break;
    default: break;
    }
}

void script_run(struct script *script)
{
    while (script->nsteps < script->wanted && !script->failed) {
        do_step(script);
        if (script->nsteps && !script->failed) act(script);
    }
    for (size_t i = 0; i < script->nsteps && !script->failed; i++) wait_step(script, i);
}

/* --- The oracle ----------------------------------------------------------------------------------------- */

static void replay(const struct step *step)
{
    if (!step->out.place) return;
    uint64_t *out = step->out.place->oracle + step->out.first;
    const uint64_t *in = step->in.place ? step->in.place->oracle + step->in.first : NULL;
    if (step->kind == FILL) {
        const uint64_t pattern[2] = {step->add, step->mul * 3};
        for (size_t i = 0; i < step->out.count; i++) out[i] = pattern[step->mul < 4 ? 0 : i % 2];
    } else if (step->kind == MAD || step->kind == HOST) {
        compute(out, in, step);
    } else if (in) {
        memmove(out, in, step->out.count * 8);
    }
}

/* A failed step has a reason: it was meant to fail, or names one that failed, or stands behind one on its
 * queue, or reads what one was to write. A step that names a failed one has failed. */
static void check_outcome(struct script *script, size_t number)
{
    const struct step *step = &script->steps[number];
    bool behind = false, named = false, stale = false;
    for (size_t i = 0; i < number; i++) {
        const struct step *other = &script->steps[i];
        if (!other->failed) continue;
        named = named || has(step->waits, i);
        behind = behind || other->lane == step->lane;
        stale = stale || (other->out.place &&
                          (other->out.place == step->in.place || other->out.place == step->out.place));
    }
    if (step->failed)
        check(script, step->kind == FAILURE || named || behind || stale, "it failed without a reason",
              number);
    else
        check(script, step->kind != FAILURE && !named, "it ran although it had to fail", number);
}

/* Whether all that was to write the place has come about: the last to replace all of it, and what came then.
 */
static void check_mark(struct script *script, const struct place *place, size_t number)
{
    bool failed = false, any = false;
    for (size_t i = 0; i < script->nsteps; i++) {
        const struct step *step = &script->steps[i];
        if (step->out.place != place) continue;
        bool whole = step->out.count == ELEMENTS && step->kind != MAD && step->kind != HOST;
        any = any || step->failed;
        failed = step->failed || (failed && !whole);
    }
    bool marked = drupe_memory_contents(place->memory) != DRUPE_OK;
    check(script, !marked || any, "it holds no result, though nothing failed", number);
    check(script, marked == failed || place->accepted, "what failed to write it left no mark", number);
}

static void check_place(struct script *script, size_t number)
{
    struct place *place = &script->places[number];
    uint64_t found[ELEMENTS];
    if (place->bench) check_mark(script, place, number);
    if (place->bench)
        read_memory(place->bench->queue, place->memory, found, sizeof found);
    else
        memcpy(found, place->elements, sizeof found);
    for (size_t i = 0; i < ELEMENTS && !script->failed; i++) {
        if (found[i] == place->oracle[i]) continue;
        printf("seed %" PRIu64 ": place %zu, element %zu is %" PRIx64 ", not %" PRIx64 "\n", script->seed,
               number, i, found[i], place->oracle[i]);
        script->failed = true;
    }
}

/* --- Opening and closing -------------------------------------------------------------------------------- */

static void open_place(struct script *script, size_t number)
{
    const struct world *world = script->world;
    struct place *place = &script->places[number];
    size_t kind = number / world->nlines;
    for (size_t i = 0; i < ELEMENTS; i++) place->oracle[i] = number * 1000 + i;
    if (number >= PLACES - 2) {
        place->address = place->elements = malloc(sizeof place->oracle);
        assert_non_null(place->address);
        memcpy(place->address, place->oracle, sizeof place->oracle);
        return;
    }
    place->bench = world->lines[number % world->nlines].bench;
    drupe_mem_kind wanted = (drupe_mem_kind)(kind % 3);
    if (drupe_memory_alloc(place->bench->queue, wanted, sizeof place->oracle, 0, &place->memory) != DRUPE_OK)
        place->memory = new_memory(place->bench->queue, DRUPE_MEM_DEVICE, sizeof place->oracle);
    place->address = drupe_memory_pointer(place->memory);
    if (drupe_memory_kind(place->memory) != DRUPE_MEM_DEVICE) place->elements = place->address;
    write_memory(place->bench->queue, place->memory, place->oracle, sizeof place->oracle);
}

void script_open(struct script *script, struct world *world, uint64_t seed, size_t steps)
{
    memset(script, 0, sizeof *script);
    script->world = world;
    script->seed = seed;
    script->random = seed * 0x9e3779b97f4a7c15u + 1;
    script->wanted = steps < STEPS ? steps : STEPS;
    for (size_t i = 0; i < PLACES; i++) open_place(script, i);
}

bool script_close(struct script *script)
{
    if (!script->failed) {
        for (size_t i = 0; i < script->nsteps; i++) {
            check_outcome(script, i);
            if (!script->steps[i].failed) replay(&script->steps[i]);
        }
        for (size_t i = 0; i < PLACES; i++) check_place(script, i);
    }
    for (size_t i = 0; i < script->nsteps; i++) drupe_event_release(script->steps[i].event);
    for (size_t i = 0; i < PLACES; i++) {
        drupe_memory_release(script->places[i].memory);
        if (!script->places[i].bench) free(script->places[i].address);
    }
    return !script->failed;
}
