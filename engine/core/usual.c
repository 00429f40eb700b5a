/* The usual launch of a kernel, checked in one go.
 *
 * Most launches have nothing to complain about: the arguments are as declared, their memory is at hand, the
 * range divides. This finds out by a few comparisons and goes on at once. Whatever is unusual, or wrong, is
 * left to the steps of submit.c, which check the same things one by one and say what is the matter. */
#include "core/check.h"
#include <string.h>

/* What the arguments come to. */
typedef struct usual {
    drupe_keep refs[DRUPE_BRIEF_ARGS + 1]; /* the memory, then the kernel */
    size_t nrefs;
    size_t bytes;                     /* of that memory */
    size_t values;                    /* bytes of all arguments */
    uint64_t words[DRUPE_BRIEF_ARGS]; /* each argument's first eight bytes */
    bool narrow;                      /* no argument has more */
} usual;

static void release_kernel(void *object)
{
    drupe_kernel_release(object);
}

/* The memory of an argument, retained, or NULL. */
static inline drupe_memory *memory_of(const drupe_submission *s, size_t index, uint64_t address)
{
    drupe_memory *memory = s->memories ? s->memories[index] : NULL;
    if (memory) {
        if (address - (uintptr_t)memory->base >= memory->size || memory->context != s->queue->context)
            return NULL;
        drupe_object_retain(memory);
        return memory;
    }
    if (drupe_registry_find((void *)(uintptr_t)address, 0, "", &memory) != DRUPE_OK || !memory) return NULL;
    if (memory->context == s->queue->context) return memory;
    drupe_memory_release(memory);
    return NULL;
}

static inline bool add_pointer(const drupe_submission *s, size_t index, const drupe_arg *arg, usual *all)
{
    void *pointer;
    memcpy(&pointer, arg->value, sizeof pointer);
    all->words[index] = (uintptr_t)pointer;
    all->values += sizeof pointer;
    if (!pointer) return true;
    drupe_memory *memory = memory_of(s, index, (uintptr_t)pointer);
    if (!memory) return false;
    all->refs[all->nrefs++] = (drupe_keep){memory, drupe_memory_unref};
    all->bytes += memory->size;
    return true;
}

static inline bool add_value(size_t index, const drupe_arg *arg, usual *all)
{
    uint64_t word = 0;
    if (arg->size == 4)
        memcpy(&word, arg->value, 4);
    else if (arg->size == 8)
        memcpy(&word, arg->value, 8);
    else
        memcpy(&word, arg->value, arg->size < 8 ? arg->size : 8);
    all->words[index] = word;
    all->values += arg->size;
    all->narrow = all->narrow && arg->size <= 8;
    return arg->size != 0;
}

static bool gather(const drupe_submission *s, const drupe_kernel *kernel, const drupe_arg *args, usual *all)
{
    all->nrefs = all->bytes = all->values = 0;
    all->narrow = kernel->forms != NULL;
    for (size_t i = 0; i < kernel->nargs; i++) {
        const drupe_arg *arg = &args[i];
        const drupe_form *form = kernel->forms ? &kernel->forms[i] : NULL;
        if (!arg->value || (form && form->kind != arg->kind)) return false;
        if (arg->kind == DRUPE_ARG_POINTER) {
            if (!add_pointer(s, i, arg, all)) return false;
            continue;
        }
        if (arg->kind != DRUPE_ARG_VALUE || (form && form->size && form->size != arg->size)) return false;
        if (!add_value(i, arg, all)) return false;
    }
    return true;
}

static inline bool divides(size_t local, size_t global)
{
    /* Wide divisions are slow. */
    if (((local | global) >> 32) == 0) return (uint32_t)global % (uint32_t)local == 0;
    return global % local == 0;
}

static bool check_range(const drupe_device *device, const drupe_kernel *kernel, const drupe_range *range)
{
    if (!range || range->dims < 1 || range->dims > 3) return false;
    size_t given = 0, items = 1;
    for (uint32_t d = 0; d < range->dims; d++) {
        given |= range->local[d];
        if (range->global[d] == 0) return false;
    }
    if (!given) return true;
    const uint64_t *most = drupe_info_ready(device, DRUPE_INFO_MAX_WORK_ITEM_SIZES);
    for (uint32_t d = 0; d < range->dims; d++) {
        size_t local = range->local[d];
        if (!most || local == 0 || local > most[d] || !divides(local, range->global[d])) return false;
        items *= local;
    }
    return kernel->group_size == 0 || items <= kernel->group_size;
}

/* A limit that is known and not reached. */
static inline bool below(const drupe_device *device, drupe_info key, uint64_t size)
{
    const uint64_t *most = drupe_info_ready(device, key);
    return most && size <= *most;
}

static bool fits(const drupe_submission *s, const drupe_kernel *kernel, const drupe_range *range,
                 size_t nargs)
{
    const drupe_queue *queue = s->queue;
    const drupe_program *program = kernel->program;
    bool known = nargs == kernel->nargs && nargs <= DRUPE_BRIEF_ARGS && !kernel->prints;
    if (!known || s->nkeeps || (s->nwaits && !s->waits)) return false;
    if (program->context != queue->context || program->device->root != queue->device->root) return false;
    if (kernel->local_size && !below(queue->device, DRUPE_INFO_LOCAL_MEM_SIZE, kernel->local_size))
        return false;
    return check_range(queue->device, kernel, range);
}

bool drupe_submit_usual(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                        const drupe_arg *args, size_t nargs, drupe_event **event, drupe_status *status)
{
    usual all;
    if (atomic_load_explicit(&drupe_core_forked, memory_order_relaxed) || !fits(s, kernel, range, nargs))
        return false;
    if (!gather(s, kernel, args, &all) ||
        !below(s->queue->device, DRUPE_INFO_MAX_PARAMETER_SIZE, all.values)) {
        drupe_keeps_drop(all.refs, all.nrefs);
        return false;
    }
    all.refs[all.nrefs++] = (drupe_keep){drupe_kernel_retain(kernel), release_kernel};
    const drupe_ticket ticket = {
        .queue = s->queue,
        .waits = s->waits,
        .nwaits = s->nwaits,
        .label = s->label ? s->label : kernel->name,
        .label_static = !s->label,
        .refs = all.refs,
        .nrefs = all.nrefs,
        .bytes = all.bytes,
        .accesses = s->accesses,
        .naccesses = s->naccesses,
        .ordered = s->ordered,
        .site = s->site ? s->site : drupe_core_site(),
    };
    const drupe_work work = {.kind = DRUPE_WORK_KERNEL,
                             .kernel = kernel,
                             .range = range,
                             .args = args,
                             .nargs = nargs,
                             .words = all.narrow ? all.words : NULL};
    *status = drupe_queue_submit(&ticket, &work, event);
    return true;
}
