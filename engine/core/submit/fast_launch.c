/* The fast launch of a kernel, checked in one go.
 *
 * Most launches have nothing to complain about: the arguments are as declared, their memory is at hand, the
 * range divides. This finds out by a few comparisons and goes on at once. Whatever is unusual, or wrong, is
 * left to the steps of submit.c, which check the same things one by one and say what is the matter. */
#include "core/queue/valid.h"
#include "core/submit/submit_room.h"
#include <string.h>

/* A launch that is being checked. */
typedef struct fast {
    const drupe_submission *s;
    drupe_work work; /* only what a kernel's has is set: to clear it takes as long as to check it */
    drupe_operands uses;
    bool borrowed; /* the caller's references keep what `refs` has; else it is kept here */
    drupe_keep refs[DRUPE_ARG_SUMMARY_MOST + 1];
    uint64_t words[DRUPE_ARG_SUMMARY_MOST];
} fast;

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
    if (atomic_load_explicit(&drupe_core_forked, memory_order_relaxed)) return false;
    if (kernel->prints || s->nkeeps || (s->nwaits && !s->waits) || drupe_queue_has_postponed(queue))
        return false;
    if (drupe_gate_closed(queue->base.device->root)) return false;
    if (!drupe_valid_home(kernel, queue)) return false;
    if (kernel->local_size && !below(queue->base.device, DRUPE_INFO_LOCAL_MEM_SIZE, kernel->local_size))
        return false;
    return check_range(queue->base.device, kernel, range);
}

/* --- References -----------------------------------------------------------------------------------------
 *
 * Who launches the same kernel with the same memory again and again would count up and down once each time.
 * On an in-order queue an entry is dropped after those before it, so the references of the last one are
 * passed on to the next that needs the same. Work that is over when its launch returns needs none: the
 * caller's lasted as long. */

static void retain(fast *one)
{
    for (size_t i = 0; one->borrowed && i < one->uses.nrefs; i++) {
        if (one->refs[i].release == drupe_uses_drop)
            drupe_uses_add(one->refs[i].object, one->s->queue);
        else
            drupe_kernel_retain(one->refs[i].object);
    }
    one->borrowed = false;
}

static void drop(const fast *one)
{
    if (!one->borrowed) drupe_keeps_drop(one->refs, one->uses.nrefs);
}

/* --- Arguments ------------------------------------------------------------------------------------------ */

/* Whether the submission may use it without waiting and without asking what it holds. */
static inline bool at_hand(const drupe_memory *memory, const drupe_submission *s)
{
    return drupe_valid_memory(memory, s->queue) && !drupe_mark_possible(memory) &&
           !drupe_memory_elsewhere(memory, s->queue, s->ordered) && !drupe_memory_has_readers(memory);
}

/* The memory of an argument, with a use of it unless it is borrowed, or NULL. */
static inline drupe_memory *memory_of(fast *one, size_t index, uint64_t address)
{
    const drupe_submission *s = one->s;
    drupe_memory *memory = s->memories ? s->memories[index] : NULL;
    if (memory) {
        if (address - (uintptr_t)memory->base >= memory->size || !at_hand(memory, s)) return NULL;
        if (!one->borrowed) drupe_uses_add(memory, s->queue);
        return memory;
    }
    retain(one); /* what is found is kept here */
    if (drupe_registry_find((void *)(uintptr_t)address, 0, "", &memory) != DRUPE_OK || !memory) return NULL;
    bool good = at_hand(memory, s);
    if (good) drupe_uses_add(memory, s->queue);
    drupe_memory_release(memory); /* the caller has it */
    return good ? memory : NULL;
}

static inline bool add_pointer(fast *one, size_t index, uint64_t address)
{
    if (!address) return true;
    drupe_memory *memory = memory_of(one, index, address);
    if (!memory) return false;
    drupe_touch touch = drupe_arg_touch(one->s, one->work.kernel, index);
    uint64_t own_bit = UINT64_C(1) << one->uses.nrefs;
    if (touch.writes) one->uses.written |= own_bit;
    if (touch.reads) one->uses.read |= own_bit;
    if (touch.replaces && !touch.reads) one->uses.replaced |= own_bit;
    one->refs[one->uses.nrefs++] = (drupe_keep){memory, drupe_uses_drop};
    one->uses.bytes += memory->size;
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

static bool gather(fast *one, const drupe_kernel *kernel, const drupe_arg *args, size_t nargs)
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

/* The last entry, if it has the same references, or NULL. The queue's lock is held. */
static inline drupe_inflight *same_before(const fast *one)
{
    drupe_inflight *last = one->s->queue->order.tail;
    bool same = one->borrowed && last && last->what.nrefs == one->uses.nrefs;
    for (size_t i = 0; same && i < one->uses.nrefs; i++)
        same = last->what.refs[i].object == one->refs[i].object &&
               last->what.refs[i].release == one->refs[i].release;
    return same ? last : NULL;
}

/* `entry` keeps what it needs until it is over. Under the lock, so that nobody drops it before. */
static inline void keep(fast *one, drupe_inflight *entry, drupe_inflight *before, bool needed)
{
    if (needed && before)
        drupe_inflight_pass(before);
    else if (needed)
        retain(one);
    else if (one->borrowed)
        drupe_inflight_pass(entry);
}

/* --- The launch ----------------------------------------------------------------------------------------- */

/* Nothing on the queue asks for more than launching. Its lock is held. */
static inline bool is_plain(const drupe_queue *queue, unsigned marks_seen)
{
    if (atomic_load_explicit(&drupe_marks_version, memory_order_relaxed) != marks_seen) return false;
    return !queue->order.deferred && !queue->names.last_fallible && !drupe_device_loss(queue->base.device) &&
           !atomic_load_explicit(&((drupe_queue *)queue)->base.cause, memory_order_acquire);
}

static inline drupe_status launch(const fast *one, drupe_inflight *entry, drupe_event **event, bool *over)
{
    drupe_queue *queue = one->s->queue;
    drupe_kernel *kernel = one->work.kernel;
    drupe_inflight_trace(queue, entry, &one->work, one->uses.bytes);
    if (event || drupe_queue_wants_event(queue, one->uses.bytes))
        DRUPE_TRY(drupe_inflight_attach(queue, entry));
    const drupe_submit submit = {.queue = queue,
                                 .event = entry->event,
                                 .done = queue->base.flags & DRUPE_QUEUE_PROFILING ? NULL : &entry->done,
                                 .number = entry->what.number};
    drupe_event_hand_over(submit.event);
    bool locked = drupe_kernel_lock(kernel, queue);
    drupe_status status = queue->base.slot->backend->submit_kernel(&submit, kernel, one->work.range,
                                                                   one->work.args, one->work.nargs);
    drupe_kernel_unlock(kernel, locked);
    DRUPE_TRY(status);
    drupe_inflight_launched(queue, entry);
    *over = !drupe_inflight_enlist(queue, entry, one->uses.bytes, false);
    if (event) *event = drupe_inflight_give_event(entry);
    return DRUPE_OK;
}

/* A launch on an in-order queue that waits for nothing, in one piece. False: something is in its way, and
 * `refs` are still the caller's. */
static bool submit_plain(fast *one, drupe_event **event, drupe_status *status)
{
    drupe_queue *queue = one->s->queue;
    drupe_inflight *entry = NULL, *finished;
    void *cell = drupe_core_cell();
    bool over = false;
    pthread_mutex_lock(&queue->lock);
    finished = drupe_queue_reap_some(queue, one->uses.bytes);
    if (is_plain(queue, one->uses.marks_seen) && one->uses.nrefs <= DRUPE_INFLIGHT_REFS &&
        drupe_inflight_new(queue, one->work.kernel->name, cell, &entry) == DRUPE_OK) {
        drupe_inflight *before = same_before(one);
        drupe_inflight_fill(entry, one->s->site ? one->s->site : drupe_core_site(), &one->uses, &one->work);
        *status = launch(one, entry, event, &over);
        keep(one, entry, before, *status == DRUPE_OK && !over);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!entry)
        drupe_core_cell_release(cell);
    else if (*status != DRUPE_OK)
        drupe_inflight_refuse(queue, entry);
    else if (over)
        drupe_inflight_drop(queue, entry);
    drupe_inflight_drop(queue, finished);
    return entry != NULL;
}

static drupe_status submit_any(fast *one, drupe_event **event)
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

static drupe_status submit(fast *one, drupe_event **event)
{
    const drupe_submission *s = one->s;
    drupe_status status = DRUPE_OK;
    drupe_kernel_enter(one->work.kernel, s->queue);
    if (!one->borrowed) drupe_kernel_retain(one->work.kernel);
    one->refs[one->uses.nrefs++] = (drupe_keep){one->work.kernel, drupe_kernel_drop};
    bool plain = !s->nwaits && !s->label && !drupe_queue_unordered(s->queue) && !drupe_check_on();
    if (plain && submit_plain(one, event, &status)) return status;
    retain(one);
    return submit_any(one, event);
}

/* --- Entries -------------------------------------------------------------------------------------------- */

bool drupe_fast_launch(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                       const drupe_arg *args, size_t nargs, drupe_event **event, drupe_status *status)
{
    if (!s || !s->queue || !kernel || !args) return false;
    if (nargs != kernel->nargs || nargs > DRUPE_ARG_SUMMARY_MOST || !fits(s, kernel, range)) return false;
    fast one; /* clearing all of it would take as long as the checks */
    one.s = s;
    one.work.kind = DRUPE_WORK_KERNEL;
    one.work.kernel = kernel;
    one.work.range = range;
    one.work.nargs = nargs;
    const unsigned marks = atomic_load_explicit(&drupe_marks_version, memory_order_acquire);
    one.uses = (drupe_operands){.refs = one.refs, .marks_seen = marks};
    one.borrowed = s->memories != NULL;
    if (!gather(&one, kernel, args, nargs)) {
        drop(&one);
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
