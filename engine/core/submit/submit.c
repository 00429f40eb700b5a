/* The public submissions: everything is checked here, so that backends need not. */
#include "core/queue/valid.h"
#include "core/submit/submit_room.h"
#include <string.h>

/* --- Beginning and end of every submission ---------------------------------------------------------------
 */

/* Takes the caller's keeps, all of them also on failure. */
drupe_status drupe_submission_begin(const drupe_submission *s, drupe_refs *refs)
{
    drupe_status status = drupe_core_check();
    if (status == DRUPE_OK && (!s || !s->queue)) {
        drupe_error_set(DRUPE_E_INVALID, "A submission needs a queue.");
        status = DRUPE_E_INVALID;
    }
    if (status == DRUPE_OK) status = drupe_queue_let_go(s->queue);
    if (status == DRUPE_OK) status = drupe_gate_enter(s->queue->base.device->root);
    for (size_t i = 0; s && i < s->nkeeps; i++) {
        drupe_status added = status == DRUPE_OK
                                 ? drupe_refs_add_keep(refs, s, i)
                                 : drupe_refs_add(refs, s->keeps[i].object, s->keeps[i].release);
        if (status == DRUPE_OK) status = added;
    }
    if (status != DRUPE_OK) return status;
    if (s->nwaits && !s->waits) return drupe_error_set(DRUPE_E_INVALID, "The list of events is missing.");
    return DRUPE_OK;
}

/* Whether the caller has it keep something of its own alive, and not only the engine's memory. */
static inline bool keeps_host_memory(const drupe_submission *s)
{
    for (size_t i = 0; i < s->nkeeps; i++)
        if (s->keeps[i].release != drupe_uses_drop) return true;
    return false;
}

drupe_submit_info drupe_submission_info(const drupe_submission *s, const drupe_operands *uses,
                                        const char *name)
{
    return (drupe_submit_info){
        .queue = s->queue,
        .waits = s->waits,
        .nwaits = s->nwaits,
        .label = s->label ? s->label : name,
        .label_static = !s->label,
        .accesses = s->accesses,
        .naccesses = s->naccesses,
        .kept = keeps_host_memory(s),
        .ordered = s->ordered,
        .site = s->site ? s->site : drupe_core_site(),
        .uses = *uses,
    };
}

drupe_status drupe_submission_make_info(const drupe_submission *s, drupe_refs *refs, const char *name,
                                        drupe_submit_info *info)
{
    for (size_t i = 0; refs->nbefore && i < s->nwaits; i++)
        DRUPE_TRY(drupe_refs_add_wait(refs, drupe_event_retain(s->waits[i])));
    const drupe_operands uses = drupe_refs_pass(refs);
    *info = drupe_submission_info(s, &uses, name);
    if (refs->nbefore) {
        info->waits = refs->before;
        info->nwaits = refs->nbefore;
    }
    return DRUPE_OK;
}

drupe_status drupe_submission_finish(const drupe_submission *s, drupe_refs *refs, const drupe_work *work,
                                     const char *name, drupe_event **event)
{
    drupe_submit_info info;
    DRUPE_TRY(drupe_submission_make_info(s, refs, name, &info));
    return drupe_queue_submit(&info, work, event);
}

/* The thread's last error refused this submission: its record for drupe_failure_last(). */
static void tell_refused(const drupe_submission *s, const char *label, const drupe_work *work,
                         const drupe_refs *refs)
{
    drupe_arg_summary summary = {0};
    if (!s) return;
    void *cell = drupe_core_cell();
    const drupe_subject what = {.label = s->label ? s->label : label,
                                .refs = refs->all.refs,
                                .nrefs = (uint32_t)refs->all.nrefs,
                                .site = s->site ? s->site : drupe_core_site(),
                                .cell_number = drupe_core_cell_number(cell),
                                .summary = &summary};
    drupe_core_cell_release(cell);
    drupe_arg_summary_take(&summary, work);
    drupe_failure failure;
    drupe_failure_describe(&failure, drupe_error_last(), s->queue, &what);
    drupe_failure_tell_refused(&failure);
}

drupe_status drupe_submission_end(const drupe_submission *s, const char *name, const drupe_work *work,
                                  drupe_refs *refs, drupe_status status)
{
    if (status != DRUPE_OK && !refs->passed_on) tell_refused(s, name, work, refs);
    drupe_refs_drop(refs);
    return status;
}

drupe_status drupe_submission_run(const drupe_submission *s, const drupe_work *work, const char *name,
                                  drupe_submission_check check, drupe_event **event)
{
    if (event) *event = NULL;
    drupe_refs refs;
    drupe_refs_init(&refs);
    drupe_status status = drupe_submission_begin(s, &refs);
    if (status == DRUPE_OK && check) status = check(s, work, name, &refs);
    if (status == DRUPE_OK) status = drupe_submission_finish(s, &refs, work, name, event);
    return drupe_submission_end(s, name, work, &refs, status);
}

/* --- Kernels -------------------------------------------------------------------------------------------- */

static drupe_status check_kernel(const drupe_queue *queue, const drupe_kernel *kernel, size_t nargs)
{
    if (!drupe_valid_home(kernel, queue)) {
        return drupe_error_set(
            DRUPE_E_INVALID,
            "The kernel '%s' was built for %s in another context; this queue is for %s. Build "
            "the program for the queue's context and device.",
            kernel->name, kernel->program->device->filter, queue->base.device->filter);
    }
    if (nargs == kernel->nargs) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID, "The kernel '%s' takes %u argument%s, %zu %s given.",
                           kernel->name, kernel->nargs, kernel->nargs == 1 ? "" : "s", nargs,
                           nargs == 1 ? "was" : "were");
}

static drupe_status check_local(const drupe_queue *queue, const drupe_kernel *kernel,
                                const drupe_range *range)
{
    uint64_t product = 1, most[3];
    if (drupe_device_info(queue->base.device, DRUPE_INFO_MAX_WORK_ITEM_SIZES, most, sizeof most, NULL))
        most[0] = most[1] = most[2] = UINT64_MAX;
    for (uint32_t d = 0; d < range->dims; d++) {
        size_t local = range->local[d];
        if (!drupe_valid_local(local, most[d])) {
            return drupe_error_set(DRUPE_E_INVALID,
                                   "'%s': the local size of dimension %u is %zu; it must be from 1 "
                                   "to %llu.%s",
                                   kernel->name, d, local, (unsigned long long)most[d],
                                   most[d] == 1
                                       ? " Leave the local size out: where the device has groups, they "
                                         "are those that the program was built for."
                                       : "");
        }
        if (!drupe_valid_division(local, range->global[d])) {
            return drupe_error_set(
                DRUPE_E_INVALID,
                "'%s': the local size %zu does not divide the global size %zu of dimension %u. "
                "Round the global size up and test the index in the kernel.",
                kernel->name, local, range->global[d], d);
        }
        product *= local;
    }
    if (drupe_valid_group(kernel, product)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID,
                           "'%s': a work-group of %llu work-items is too large; at most %llu.", kernel->name,
                           (unsigned long long)product, (unsigned long long)kernel->group_size);
}

static drupe_status check_range(const drupe_queue *queue, const drupe_kernel *kernel,
                                const drupe_range *range)
{
    if (!drupe_valid_range(range)) {
        return drupe_error_set(DRUPE_E_INVALID, "'%s': a range has 1 to 3 dimensions.", kernel->name);
    }
    return drupe_range_grouped(range) ? check_local(queue, kernel, range) : DRUPE_OK;
}

/* Against what the compiler tells of the argument, if it does. */
static drupe_status check_declared(const drupe_kernel *kernel, size_t index, const drupe_arg *arg)
{
    static const char *const kinds[] = {"a pointer", "a value", "local memory"};
    if (!kernel->forms) return DRUPE_OK;
    const drupe_arg_info *info = &kernel->args[index];
    if (!drupe_valid_form_kind(kernel, index, arg)) {
        return drupe_error_set(DRUPE_E_INVALID, "Argument %zu of '%s' (%s %s) is %s, %s was given.", index,
                               kernel->name, info->type_name, info->name, kinds[info->kind],
                               kinds[arg->kind]);
    }
    if (drupe_valid_form_size(kernel, index, arg)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID, "Argument %zu of '%s' (%s %s) has %u bytes, %zu were given.",
                           index, kernel->name, info->type_name, info->name, kernel->forms[index].size,
                           arg->size);
}

/* What the caller says that it points into, retained, or NULL. */
static drupe_memory *given_memory(const drupe_submission *s, size_t index, const void *pointer)
{
    drupe_memory *memory = s->memories ? s->memories[index] : NULL;
    bool inside = memory && (uintptr_t)pointer - (uintptr_t)memory->base < memory->size;
    return inside ? drupe_memory_retain(memory) : NULL;
}

static drupe_status check_pointer(const drupe_submission *s, const drupe_kernel *kernel, size_t index,
                                  const drupe_arg *arg, drupe_refs *refs)
{
    const drupe_queue *queue = s->queue;
    void *pointer;
    memcpy(&pointer, arg->value, sizeof pointer);
    if (!pointer) return DRUPE_OK;
    drupe_memory *memory = given_memory(s, index, pointer);
    if (!memory) DRUPE_TRY(drupe_registry_find(pointer, 0, kernel->name, &memory));
    if (!memory) {
        return drupe_error_set(
            DRUPE_E_INVALID,
            "Argument %zu of '%s' is the address %p, which is not in USM. Kernels take memory "
            "of drupe.memory; copy host data there first.",
            index, kernel->name, pointer);
    }
    if (!drupe_valid_memory(memory, queue)) {
        drupe_error_set(
            DRUPE_E_INVALID,
            "Argument %zu of '%s' is memory of another context (made for %s); this queue is for %s. "
            "Copy it to memory of this queue's context.",
            index, kernel->name, memory->queue->base.device->filter, queue->base.device->filter);
        drupe_memory_release(memory);
        return DRUPE_E_INVALID;
    }
    drupe_status status = drupe_refs_add_memory(refs, memory, s, drupe_arg_touch(s, kernel, index));
    drupe_memory_release(memory); /* the caller has it */
    return status;
}

static drupe_status check_arg(const drupe_submission *s, const drupe_kernel *kernel, size_t index,
                              const drupe_arg *arg, drupe_refs *refs)
{
    if (!drupe_valid_kind(arg)) {
        return drupe_error_set(DRUPE_E_INVALID, "Argument %zu of '%s' has no known kind.", index,
                               kernel->name);
    }
    if (!drupe_valid_value(arg)) {
        return drupe_error_set(DRUPE_E_INVALID, "Argument %zu of '%s' has no value.", index, kernel->name);
    }
    if (!drupe_valid_size(arg)) {
        return drupe_error_set(DRUPE_E_INVALID, "Argument %zu of '%s' has no size.", index, kernel->name);
    }
    DRUPE_TRY(check_declared(kernel, index, arg));
    return arg->kind == DRUPE_ARG_POINTER ? check_pointer(s, kernel, index, arg, refs) : DRUPE_OK;
}

static drupe_status check_args(const drupe_submission *s, const drupe_kernel *kernel, const drupe_arg *args,
                               size_t nargs, drupe_refs *refs)
{
    const drupe_queue *queue = s->queue;
    uint64_t local = kernel->local_size, values = 0;
    for (size_t i = 0; i < nargs; i++) {
        DRUPE_TRY(check_arg(s, kernel, i, &args[i], refs));
        if (args[i].kind == DRUPE_ARG_LOCAL) local = drupe_size_sum(local, args[i].size);
        values = drupe_size_sum(values, drupe_arg_room(&args[i]));
    }
    /* Some drivers end the process instead of answering these two. */
    if (local) {
        uint64_t most = drupe_device_number(queue->base.device, DRUPE_INFO_LOCAL_MEM_SIZE, UINT64_MAX);
        if (local > most) {
            return drupe_error_set(
                DRUPE_E_OUT_OF_RANGE, "'%s' would use %llu bytes of local memory, %s has %llu.", kernel->name,
                (unsigned long long)local, queue->base.device->filter, (unsigned long long)most);
        }
    }
    uint64_t most = drupe_device_number(queue->base.device, DRUPE_INFO_MAX_PARAMETER_SIZE, UINT64_MAX);
    if (values <= most) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "The arguments of '%s' have %llu bytes, %s allows %llu.",
                           kernel->name, (unsigned long long)values, queue->base.device->filter,
                           (unsigned long long)most);
}

/* Work of a kernel that prints has an event in any case. */
static drupe_status finish_kernel(const drupe_submission *s, drupe_refs *refs, const drupe_work *work,
                                  drupe_event **event)
{
    const char *name = work->kernel->name;
    drupe_kernel_enter(work->kernel, s->queue);
    if (!work->kernel->prints) return drupe_submission_finish(s, refs, work, name, event);
    drupe_event *own = NULL, **told = event ? event : &own, *predecessor = drupe_prints_predecessor(s->queue);
    drupe_status status = predecessor ? drupe_refs_add_wait(refs, predecessor) : DRUPE_OK;
    if (status == DRUPE_OK) status = drupe_submission_finish(s, refs, work, name, told);
    if (status == DRUPE_OK) drupe_prints_begin(*told);
    drupe_event_release(own);
    return status;
}

static drupe_status check_launch(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                                 const drupe_arg *args, size_t nargs, drupe_refs *refs)
{
    DRUPE_TRY(drupe_submission_begin(s, refs));
    if (!kernel || (nargs && !args)) {
        return drupe_error_set(DRUPE_E_INVALID, "The kernel or its arguments are missing.");
    }
    DRUPE_TRY(drupe_refs_add(refs, drupe_kernel_retain(kernel), drupe_kernel_drop));
    DRUPE_TRY(check_kernel(s->queue, kernel, nargs));
    DRUPE_TRY(check_range(s->queue, kernel, range));
    return check_args(s, kernel, args, nargs, refs);
}

drupe_status drupe_submit_kernel(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                                 const drupe_arg *args, size_t nargs, drupe_event **event)
{
    if (event) *event = NULL;
    drupe_refs refs;
    drupe_status status;
    if (drupe_fast_launch(s, kernel, range, args, nargs, event, &status)) return status;
    drupe_refs_init(&refs);
    status = check_launch(s, kernel, range, args, nargs, &refs);
    drupe_work work = {
        .kind = DRUPE_WORK_KERNEL, .kernel = kernel, .range = range, .args = args, .nargs = nargs};
    if (status == DRUPE_OK && drupe_range_empty(range)) work.kind = DRUPE_WORK_MARK;
    if (status == DRUPE_OK) status = finish_kernel(s, &refs, &work, event);
    return drupe_submission_end(s, kernel ? kernel->name : "kernel", &work, &refs, status);
}

/* --- Barrier and host function -------------------------------------------------------------------------- */

/* Whether a barrier of this submission would be over at once, if nothing is on the queue, and say no more
 * than that. Others may have given the driver's queue work, and layers and profiling want to see barriers. */
static bool is_plain_mark(const drupe_submission *s)
{
    if (!s || !s->queue || s->nwaits || s->nkeeps || s->label || drupe_check_on()) return false;
    const drupe_queue *queue = s->queue;
    return !(queue->base.flags & (DRUPE_QUEUE_OUT_OF_ORDER | DRUPE_QUEUE_PROFILING)) &&
           queue->base.slot->backend == queue->base.slot->base &&
           !atomic_load_explicit(&drupe_core_forked, memory_order_relaxed);
}

/* The queue's lock. */
static bool has_nothing(const drupe_queue *queue)
{
    return !queue->order.head && !queue->shared && !drupe_device_loss(queue->base.device) &&
           !atomic_load_explicit(&queue->base.cause, memory_order_acquire);
}

/* An event, a number and a record. Needs the lock; false: no memory. */
static inline bool make_mark(drupe_queue *queue, uint32_t site, uint32_t cell_number, drupe_event **event)
{
    uint64_t number = drupe_inflight_next();
    if (drupe_event_next(queue, number, NULL, event) != DRUPE_OK) {
        drupe_trace_skip(number);
        return false;
    }
    drupe_trace_barrier(&queue->traced, number, site, cell_number);
    drupe_queue_proven(queue, number);
    drupe_event_enter(*event, DRUPE_PHASE_COMPLETE);
    return true;
}

/* A barrier with nothing before it leaves nothing for anybody to do. False, and nothing has happened: it is
 * not one of these. */
static bool mark_nothing(const drupe_submission *s, drupe_event **event)
{
    if (!is_plain_mark(s)) return false;
    drupe_queue *queue = s->queue;
    uint32_t cell_number = drupe_core_cell_here(), site = s->site ? s->site : drupe_core_site();
    pthread_mutex_lock(&queue->lock);
    bool made = has_nothing(queue) && make_mark(queue, site, cell_number, event);
    pthread_mutex_unlock(&queue->lock);
    return made;
}

drupe_status drupe_submit_barrier(const drupe_submission *s, drupe_event **event)
{
    if (event) *event = NULL;
    if (s && s->queue) DRUPE_TRY(drupe_queue_let_go(s->queue));
    if (event && mark_nothing(s, event)) return DRUPE_OK;
    const drupe_work work = {.kind = DRUPE_WORK_BARRIER};
    return drupe_submission_run(s, &work, drupe_label_barrier, NULL, event);
}

drupe_status drupe_submit_turn(const drupe_submission *s, drupe_event **event)
{
    const drupe_work work = {.kind = DRUPE_WORK_HOST};
    return drupe_submission_run(s, &work, "work of the caller", NULL, event);
}

static drupe_status check_host(const drupe_submission *s, const drupe_work *work, const char *name,
                               drupe_refs *refs)
{
    (void)s;
    (void)name;
    (void)refs;
    return work->fn ? DRUPE_OK : drupe_error_set(DRUPE_E_INVALID, "The host function is missing.");
}

drupe_status drupe_submit_host(const drupe_submission *s, drupe_host_fn fn, void *user, drupe_event **event)
{
    const drupe_work work = {.kind = DRUPE_WORK_HOST,
                             .brief = s && s->brief,
                             .checks_first = s && s->checks_first,
                             .faults_only = s && s->faults_only,
                             .fn = fn,
                             .user = user};
    return drupe_submission_run(s, &work, drupe_label_host, check_host, event);
}
