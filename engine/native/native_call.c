/* Calls: a frame for each, with what its thread needs. */
#include "native/native_room.h"
#include <stdlib.h>
#include <string.h>

#define KEEPS_FEW 24u

/* What a call needs on its thread: it is copied as it is, so nothing in it points into itself. */
typedef struct call_frame {
    drupe_native_function *function; /* kept by the submission */
    ffi_cif *cif;
    size_t count, result_size;
    void *result;    /* where it goes, or NULL */
    uint64_t inside; /* which arguments are the addresses of their words */
    _Alignas(16) uint64_t words[][2];
} call_frame;

#define FRAME_SIZE(count) (sizeof(call_frame) + (count)*2 * sizeof(uint64_t))

static void frame_fill(call_frame *frame, const drupe_native_call *call)
{
    frame->function = call->function;
    frame->cif = drupe_native_interface(call->function, call->count);
    frame->count = call->count;
    frame->result = call->result;
    frame->result_size = call->result ? drupe_dtype_size(call->function->result) : 0;
    frame->inside = 0;
    for (size_t i = 0; i < call->count; i++) {
        const drupe_native_arg *arg = &call->args[i];
        frame->words[i][0] = arg->words[0];
        frame->words[i][1] = arg->words[1];
        frame->inside |= (uint64_t)arg->inside << i;
    }
}

/* A thread that faults in the function does not come back: `inside` stays. */
static drupe_status frame_run(void *user)
{
    call_frame *frame = user;
    drupe_native_function *function = frame->function;
    _Alignas(16) unsigned char answer[32]; /* libffi writes whole registers */
    void *values[DRUPE_NATIVE_MOST], *addresses[DRUPE_NATIVE_MOST];
    for (size_t i = 0; i < frame->count; i++) {
        const bool inside = frame->inside >> i & 1;
        addresses[i] = frame->words[i];
        values[i] = inside ? (void *)&addresses[i] : (void *)frame->words[i];
    }
    atomic_fetch_add_explicit(&function->library->inside, 1, memory_order_relaxed);
    ffi_call(frame->cif, function->code, answer, values);
    atomic_fetch_sub_explicit(&function->library->inside, 1, memory_order_release);
    if (frame->result) memcpy(frame->result, answer, frame->result_size);
    return DRUPE_OK;
}

/* What a submission keeps of a function: the library stays mapped for it, too. */
static void hold_function(void *user)
{
    drupe_native_function *function = user;
    atomic_fetch_add(&function->library->calls, 1);
    drupe_native_function_retain(function);
}

static void drop_function(void *user)
{
    drupe_native_function *function = user;
    drupe_native_end(function->library);
    drupe_native_function_leave(function);
}

/* A frame that the submission keeps. */
static void frame_drop(void *user)
{
    call_frame *frame = user;
    drop_function(frame->function);
    free(frame);
}

/* --- Submission ---------------------------------------------------------------------------------------- */

static drupe_status check(const drupe_submission *s, const drupe_native_call *call)
{
    const drupe_native_function *function = call ? call->function : NULL;
    if (!s || !s->queue || !function || (call->count && !call->args))
        return drupe_error_set(DRUPE_E_INVALID, "A call needs a queue, a function and its arguments.");
    if (function->declared ? call->count != function->count : call->count > DRUPE_NATIVE_PLAIN)
        return drupe_error_set(DRUPE_E_INVALID, "'%s' takes %s%zu arguments, %zu were given.", function->name,
                               function->declared ? "" : "at most ",
                               function->declared ? function->count : (size_t)DRUPE_NATIVE_PLAIN,
                               call->count);
    if (call->result && function->result == DRUPE_DTYPE_NONE)
        return drupe_error_set(DRUPE_E_INVALID, "'%s' was not declared to have a result.", function->name);
    return DRUPE_OK;
}

typedef struct call_keeps {
    drupe_keep few[KEEPS_FEW], *list;
    size_t count;
    drupe_effects effects;
} call_keeps;

static void add_memory(call_keeps *all, const drupe_queue *queue, drupe_memory *memory, bool reads,
                       bool writes)
{
    if (!memory) return;
    const uint64_t bit = UINT64_C(1) << all->count;
    if (reads) all->effects.reads |= bit;
    if (writes) all->effects.writes |= bit;
    all->list[all->count++] = drupe_memory_keep(memory, queue);
}

/* The frame's, the memory's, then the caller's: effects have bits for the first 64. */
static void gather(const drupe_submission *s, const drupe_native_call *call, call_frame *frame,
                   call_keeps *all)
{
    all->count = 0;
    all->effects = (drupe_effects){0};
    all->list[all->count++] = (drupe_keep){frame, frame_drop};
    for (size_t i = 0; i < call->count; i++) {
        const drupe_native_arg *arg = &call->args[i];
        add_memory(all, s->queue, arg->memory, true, !arg->reads_only);
    }
    add_memory(all, s->queue, call->result_memory, false, true);
    for (size_t i = 0; i < s->nkeeps; i++) all->list[all->count++] = s->keeps[i];
}

static drupe_status refuse(const drupe_submission *s, drupe_status status)
{
    for (size_t i = 0; s && i < s->nkeeps; i++)
        if (s->keeps[i].release) s->keeps[i].release(s->keeps[i].object);
    return status;
}

static drupe_status submit(const drupe_submission *s, const drupe_native_call *call, call_keeps *all,
                           drupe_event **event)
{
    DRUPE_TRY(drupe_native_begin(call->function));
    call_frame *frame = malloc(FRAME_SIZE(call->count));
    if (!frame) {
        drupe_native_end(call->function->library);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a call of '%s'.", call->function->name);
    }
    drupe_native_function_retain(call->function);
    frame_fill(frame, call);
    gather(s, call, frame, all);
    drupe_submission own = *s;
    own.keeps = all->list;
    own.nkeeps = all->count;
    own.brief = false;
    own.faults_only = true;
    own.effects = &all->effects;
    if (!own.label) own.label = call->function->name;
    const drupe_status status = drupe_submit_host(&own, frame_run, frame, event);
    all->count = 0; /* taken */
    return status;
}

static drupe_status submit_any(const drupe_submission *s, const drupe_native_call *call, drupe_event **event)
{
    call_keeps all;
    const size_t room = call->count + s->nkeeps + 2;
    all.list = room <= KEEPS_FEW ? all.few : malloc(room * sizeof *all.list);
    if (!all.list)
        return refuse(
            s, drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a call of '%s'.", call->function->name));
    all.count = SIZE_MAX;
    const drupe_status status = submit(s, call, &all, event);
    if (all.list != all.few) free(all.list);
    return all.count == SIZE_MAX ? refuse(s, status) : status;
}

/* --- The usual call ------------------------------------------------------------------------------------ */

#define QUICK_MOST 8u

/* The memory that the call works on, and what it does with it. */
static size_t note_memory(const drupe_native_call *call, drupe_memory **memories, drupe_effects *effects)
{
    size_t count = 0;
    for (size_t i = 0; i < call->count; i++) {
        drupe_memory *memory = call->args[i].memory;
        if (!memory) continue;
        effects->reads |= UINT64_C(1) << count;
        if (!call->args[i].reads_only) effects->writes |= UINT64_C(1) << count;
        memories[count++] = memory;
    }
    return count;
}

/* Nothing is in its way, so it is queued like a kernel: its frame travels with the work. False: it has to
 * take the other way, and nothing has happened. */
static bool submit_quick(const drupe_submission *s, const drupe_native_call *call, drupe_event **event,
                         drupe_status *status)
{
    if (call->count > QUICK_MOST || call->result) return false;
    _Alignas(16) unsigned char room[FRAME_SIZE(QUICK_MOST)];
    call_frame *frame = (call_frame *)(void *)room;
    drupe_memory *memories[QUICK_MOST];
    drupe_effects effects = {0};
    const size_t count = note_memory(call, memories, &effects);
    frame_fill(frame, call);
    const drupe_host_call work = {.fn = frame_run,
                                  .bytes = frame,
                                  .size = (uint32_t)FRAME_SIZE(call->count),
                                  .memories = memories,
                                  .nmemories = count,
                                  .name = call->function->name,
                                  .object = call->function,
                                  .hold = hold_function,
                                  .drop = drop_function};
    drupe_submission own = *s;
    own.effects = &effects;
    if (drupe_native_begin(call->function) != DRUPE_OK) return false;
    const bool done = drupe_submit_host_call(&own, &work, event, status);
    drupe_native_end(call->function->library);
    return done;
}

drupe_status drupe_native_submit(const drupe_submission *s, const drupe_native_call *call,
                                 drupe_event **event)
{
    if (event) *event = NULL;
    drupe_status status = check(s, call);
    if (status != DRUPE_OK) return refuse(s, status);
    if (submit_quick(s, call, event, &status)) return status;
    return submit_any(s, call, event);
}
