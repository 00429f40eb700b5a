/* The fast launch of a kernel, checked in one go.
 *
 * Most launches have nothing to complain about: the arguments are as declared, their memory is at hand, the
 * range divides. This finds out by a few comparisons and goes on at once. Whatever is unusual, or wrong, is
 * left to the steps of submit.c, which check the same things one by one and say what is the matter. */
#include "core/submit/fast.h"
#include <string.h>

/* --- Checks --------------------------------------------------------------------------------------------- */

/* A limit that is known and not reached. */
static inline bool below(const drupe_device *device, drupe_info key, uint64_t size)
{
    const uint64_t *most = drupe_info_ready(device, key);
    return most && size <= *most;
}

static inline bool check_range(const drupe_device *device, const drupe_kernel *kernel,
                               const drupe_range *range)
{
    if (!drupe_valid_range(range) || drupe_range_empty(range)) return false;
    if (!drupe_range_grouped(range)) return true;
    const uint64_t *most = drupe_info_ready(device, DRUPE_INFO_MAX_WORK_ITEM_SIZES);
    uint64_t items = 1;
    for (uint32_t d = 0; d < range->dims; d++) {
        size_t local = range->local[d];
        if (!most || !drupe_valid_local(local, most[d]) || !drupe_valid_division(local, range->global[d]))
            return false;
        items *= local;
    }
    return drupe_valid_group(kernel, items);
}

/* Everything but the arguments. */
static inline bool fits(const drupe_submission *s, const drupe_kernel *kernel, const drupe_range *range)
{
    const drupe_queue *queue = s->queue;
    if (!drupe_fast_possible(s) || kernel->prints || (s->nwaits && !s->waits)) return false;
    if (!drupe_valid_home(kernel, queue)) return false;
    if (kernel->local_size && !below(queue->base.device, DRUPE_INFO_LOCAL_MEM_SIZE, kernel->local_size))
        return false;
    return check_range(queue->base.device, kernel, range);
}

/* --- Arguments ------------------------------------------------------------------------------------------ */

/* The memory of an argument, with a use of it unless it is borrowed, or NULL. */
static inline drupe_memory *memory_of(drupe_fast *one, size_t index, uint64_t address)
{
    const drupe_submission *s = one->s;
    drupe_memory *memory = s->memories ? s->memories[index] : NULL;
    if (memory) {
        if (address - (uintptr_t)memory->base >= memory->size || !drupe_fast_at_hand(memory, s)) return NULL;
        if (!one->borrowed) drupe_uses_add(memory, s->queue);
        return memory;
    }
    drupe_fast_retain(one); /* what is found is kept here */
    if (drupe_registry_find((void *)(uintptr_t)address, 0, "", &memory) != DRUPE_OK || !memory) return NULL;
    bool good = drupe_fast_at_hand(memory, s);
    if (good) drupe_uses_add(memory, s->queue);
    drupe_memory_release(memory); /* the caller has it */
    return good ? memory : NULL;
}

static inline bool add_pointer(drupe_fast *one, size_t index, uint64_t address)
{
    if (!address) return true;
    drupe_memory *memory = memory_of(one, index, address);
    if (!memory) return false;
    drupe_fast_add(one, memory, drupe_arg_touch(one->s, one->work.kernel, index));
    return true;
}

static inline uint64_t first_word(const drupe_arg *arg)
{
    uint64_t word = 0;
    /* The size of a pointer is not asked for. */
    if (arg->kind == DRUPE_ARG_POINTER || arg->size == 8)
        memcpy(&word, arg->value, 8);
    else if (arg->size == 4)
        memcpy(&word, arg->value, 4);
    else
        memcpy(&word, arg->value, arg->size < 8 ? arg->size : 8);
    return word;
}

static bool gather(drupe_fast *one, const drupe_kernel *kernel, const drupe_arg *args, size_t nargs)
{
    uint64_t values = 0;
    bool narrow = kernel->forms != NULL;
    for (size_t i = 0; i < nargs; i++) {
        const drupe_arg *arg = &args[i];
        if (!drupe_valid_kind(arg) || arg->kind == DRUPE_ARG_LOCAL || !drupe_valid_value(arg) ||
            !drupe_valid_size(arg) || !drupe_valid_form_kind(kernel, i, arg) ||
            !drupe_valid_form_size(kernel, i, arg))
            return false;
        one->words[i] = first_word(arg);
        values = drupe_size_sum(values, drupe_arg_room(arg));
        if (arg->kind == DRUPE_ARG_POINTER) {
            if (!add_pointer(one, i, one->words[i])) return false;
            continue;
        }
        narrow = narrow && arg->size <= 8;
    }
    one->work.args = args;
    one->work.words = narrow ? one->words : NULL;
    return below(one->s->queue->base.device, DRUPE_INFO_MAX_PARAMETER_SIZE, values);
}

/* --- Entries -------------------------------------------------------------------------------------------- */

static void hold_kernel(void *kernel)
{
    drupe_kernel_retain(kernel);
}

static drupe_status submit_any(drupe_fast *one, drupe_event **event)
{
    const drupe_work work = {.kind = DRUPE_WORK_KERNEL,
                             .kernel = one->work.kernel,
                             .range = one->work.range,
                             .args = one->work.args,
                             .nargs = one->work.nargs,
                             .words = one->work.words};
    const drupe_submit_info info = drupe_submission_info(one->s, &one->uses, one->work.kernel->name);
    return drupe_queue_submit(&info, &work, event);
}

static drupe_status submit(drupe_fast *one, drupe_event **event)
{
    const drupe_submission *s = one->s;
    drupe_status status = DRUPE_OK;
    drupe_kernel_enter(one->work.kernel, s->queue);
    if (!one->borrowed) drupe_kernel_retain(one->work.kernel);
    one->refs[one->uses.nrefs++] = (drupe_keep){one->work.kernel, drupe_kernel_drop};
    bool plain = !s->nwaits && !s->label && !drupe_queue_unordered(s->queue) && !drupe_check_on();
    if (plain && drupe_fast_submit(one, event, &status)) return status;
    drupe_fast_retain(one);
    return submit_any(one, event);
}

bool drupe_fast_launch(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                       const drupe_arg *args, size_t nargs, drupe_event **event, drupe_status *status)
{
    if (!s || !s->queue || !kernel || !args) return false;
    if (nargs != kernel->nargs || nargs > DRUPE_ARG_SUMMARY_MOST || !fits(s, kernel, range)) return false;
    drupe_fast one; /* clearing all of it would take as long as the checks */
    drupe_fast_begin(&one, s, kernel->name, hold_kernel);
    one.work.kind = DRUPE_WORK_KERNEL;
    one.work.kernel = kernel;
    one.work.range = range;
    one.work.nargs = nargs;
    one.borrowed = s->memories != NULL;
    if (!gather(&one, kernel, args, nargs)) {
        if (!one.borrowed) drupe_keeps_drop(one.refs, one.uses.nrefs);
        return false;
    }
    *status = submit(&one, event);
    return true;
}

drupe_status drupe_submit_words(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                                const uint64_t *words, drupe_event **event)
{
    drupe_arg args[DRUPE_ARG_SUMMARY_MOST];
    if (event) *event = NULL;
    if (!kernel || !words || !kernel->worded)
        return drupe_error_set(DRUPE_E_INVALID,
                               "This kernel does not take its arguments as words, or no words were given.");
    for (uint32_t i = 0; i < kernel->nargs; i++) {
        const drupe_form *form = &kernel->forms[i];
        args[i] = (drupe_arg){(drupe_arg_kind)form->kind, form->size, &words[i]};
    }
    return drupe_submit_kernel(s, kernel, range, args, kernel->nargs, event);
}
