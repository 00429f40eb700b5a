/* Launches of instrumented kernels.
 *
 * Four submissions in order: the bounds go to the device, the kernel runs, they come back, and a host
 * function looks whether the kernel has found something. It fails as any host function does, so the finding
 * takes the ways of all failures. */
#include "core/submit/submit_room.h"
#include <stdlib.h>
#include <string.h>

struct watch {
    _Atomic(uint32_t) references; /* one for each submission, and the caller's */
    drupe_bounds bounds;
    drupe_check_place here;
    drupe_check_place there[DRUPE_BOUNDS_OPERANDS]; /* where the operands' memory was allocated */
    const void *pointers[DRUPE_BOUNDS_OPERANDS];
};

static void watch_release(void *object)
{
    struct watch *watch = object;
    if (atomic_fetch_sub(&watch->references, 1) == 1) free(watch);
}

static drupe_keep keep(struct watch *watch)
{
    atomic_fetch_add(&watch->references, 1);
    return (drupe_keep){watch, watch_release};
}

/* --- Before --------------------------------------------------------------------------------------------- */

static void note_memory(struct watch *watch, size_t k)
{
    drupe_check_place *there = &watch->there[k];
    drupe_memory *memory = drupe_memory_find(watch->pointers[k]);
    if (!memory) return;
    there->site = memory->site;
    there->cell = memory->cell;
    strcpy(there->label, "allocation");
    drupe_memory_release(memory);
}

static void fill_bounds(struct watch *watch, const drupe_submission *s, const drupe_arg *args,
                        const size_t *elements)
{
    for (size_t k = 0; k < DRUPE_BOUNDS_OPERANDS; k++) {
        watch->bounds.high[k] = -1;
        if (k >= s->naccesses || !s->accesses[k].bytes) continue;
        const drupe_access *access = &s->accesses[k];
        int64_t size = (int64_t)elements[k], offset;
        memcpy(&watch->pointers[k], args[k].value, sizeof(void *));
        offset = (int64_t)((uintptr_t)access->pointer - (uintptr_t)watch->pointers[k]);
        watch->bounds.low[k] = offset / size;
        watch->bounds.high[k] = offset / size + (int64_t)access->bytes / size - 1;
        note_memory(watch, k);
    }
}

static drupe_status watch_new(const drupe_submission *s, const drupe_kernel *kernel, const drupe_arg *args,
                              size_t nargs, const size_t *elements, struct watch **watch)
{
    if (s->naccesses > DRUPE_BOUNDS_OPERANDS || s->naccesses > nargs || s->nwaits || s->nkeeps)
        return drupe_error_set(DRUPE_E_INVALID, "This is no launch of an instrumented kernel.");
    for (size_t k = 0; k < s->naccesses; k++) {
        if (args[k].kind != DRUPE_ARG_POINTER || !elements[k])
            return drupe_error_set(DRUPE_E_INVALID, "Argument %zu is no operand.", k);
    }
    *watch = calloc(1, sizeof **watch);
    if (!*watch) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to check a kernel.");
    (*watch)->references = 1;
    drupe_check_here(&(*watch)->here, s->label ? s->label : kernel->name);
    if (s->site) (*watch)->here.site = s->site;
    strncpy((*watch)->here.device, s->queue->base.device->filter, sizeof(*watch)->here.device - 1);
    fill_bounds(*watch, s, args, elements);
    return DRUPE_OK;
}

/* --- Afterwards ----------------------------------------------------------------------------------------- */

static drupe_status look(void *user)
{
    const struct watch *watch = user;
    const drupe_bounds *bounds = &watch->bounds;
    if (bounds->operand < 1 || bounds->operand > DRUPE_BOUNDS_OPERANDS) return DRUPE_OK;
    const size_t k = (size_t)bounds->operand - 1;
    const drupe_check_place *here = &watch->here, *there = &watch->there[k];
    if (!watch->pointers[k]) {
        return drupe_check_found(false, here, there,
                                 "Out of bounds: '%s' on %s would use argument %zu, which it does not have.",
                                 here->label, here->device, k);
    }
    return drupe_check_found(false, here, there,
                             "Out of bounds: '%s' on %s would use element %lld of argument %zu, which has "
                             "the elements %lld to %lld from its pointer %p on. The access was skipped.",
                             here->label, here->device, (long long)bounds->index, k,
                             (long long)bounds->low[k], (long long)bounds->high[k], watch->pointers[k]);
}

/* --- The four steps ------------------------------------------------------------------------------------- */

static drupe_status run(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                        const drupe_arg *args, size_t nargs, drupe_memory *memory)
{
    drupe_arg *all = malloc((nargs + 1) * sizeof *all);
    if (!all) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for %zu arguments.", nargs + 1);
    void *pointer = memory->base;
    drupe_access accesses[DRUPE_BOUNDS_OPERANDS + 1];
    drupe_submission own = *s;
    for (size_t i = 0; i < nargs; i++) all[i] = args[i];
    all[nargs] = (drupe_arg){DRUPE_ARG_POINTER, sizeof pointer, &pointer};
    for (size_t k = 0; k < s->naccesses; k++) accesses[k] = s->accesses[k];
    accesses[s->naccesses] = (drupe_access){pointer, sizeof(drupe_bounds), true};
    own.accesses = accesses;
    own.naccesses = s->naccesses + 1;
    own.memories = NULL; /* it has none for the added argument */
    drupe_effects effects = {0};
    if (s->effects) {
        effects = *s->effects;
        effects.reads |= UINT64_C(1) << nargs;
        effects.writes |= UINT64_C(1) << nargs;
        own.effects = &effects;
    }
    drupe_status status = drupe_submit_kernel(&own, kernel, range, all, nargs + 1, NULL);
    free(all);
    return status;
}

drupe_status drupe_check_submit(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                                const drupe_arg *args, size_t nargs, const size_t *elements)
{
    struct watch *watch;
    drupe_memory *memory;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(watch_new(s, kernel, args, nargs, elements, &watch));
    drupe_status status = drupe_memory_alloc(s->queue, DRUPE_MEM_DEVICE, sizeof watch->bounds, 0, &memory);
    if (status != DRUPE_OK) {
        watch_release(watch);
        return status;
    }
    void *there = drupe_memory_pointer(memory), *here = &watch->bounds;
    drupe_submission step = {.queue = s->queue, .label = watch->here.label, .site = s->site, .ordered = true};
    drupe_keep keeps[1] = {keep(watch)};
    step.keeps = keeps;
    step.nkeeps = 1;
    status = drupe_submit_copy(&step, there, here, sizeof watch->bounds, NULL);
    if (status == DRUPE_OK) status = run(s, kernel, range, args, nargs, memory);
    if (status == DRUPE_OK) {
        keeps[0] = keep(watch);
        status = drupe_submit_copy(&step, here, there, sizeof watch->bounds, NULL);
    }
    if (status == DRUPE_OK) {
        keeps[0] = keep(watch);
        status = drupe_submit_host(&step, look, watch, NULL);
    }
    drupe_memory_release(memory);
    watch_release(watch);
    return status;
}
