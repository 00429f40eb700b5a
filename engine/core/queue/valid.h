/* What makes a launch valid: every question once. The fast path (fast_launch.c) asks them all and leaves a
 * launch to the steps where an answer is no; the steps (submit.c) ask the same ones and say what is the
 * matter. tests/unit/core/queue/test_valid.c holds the two against each other. */
#ifndef DRUPE_CORE_VALID_H
#define DRUPE_CORE_VALID_H

#include "core/queue/launch.h"

/* --- The kernel and its range --------------------------------------------------------------------------- */

/* Built for the queue's device, or a part of the same one, in the queue's context. */
static inline bool drupe_valid_home(const drupe_kernel *kernel, const drupe_queue *queue)
{
    const drupe_program *program = kernel->program;
    return program->context == queue->base.context && program->device->root == queue->base.device->root;
}

static inline bool drupe_valid_range(const drupe_range *range)
{
    return range && range->dims >= 1 && range->dims <= 3;
}

/* Nothing is to run. */
static inline bool drupe_range_empty(const drupe_range *range)
{
    bool empty = false;
    for (uint32_t d = 0; d < range->dims; d++) empty |= range->global[d] == 0;
    return empty;
}

/* The caller chooses the work-groups. */
static inline bool drupe_range_grouped(const drupe_range *range)
{
    size_t given = 0;
    for (uint32_t d = 0; d < range->dims; d++) given |= range->local[d];
    return given != 0;
}

/* The size of a work-group in one dimension: from 1 to `most`. */
static inline bool drupe_valid_local(size_t local, uint64_t most)
{
    return local != 0 && local <= most;
}

static inline bool drupe_valid_division(size_t local, size_t global)
{
    /* Wide divisions are slow. */
    if (((local | global) >> 32) == 0) return (uint32_t)global % (uint32_t)local == 0;
    return global % local == 0;
}

static inline bool drupe_valid_group(const drupe_kernel *kernel, uint64_t items)
{
    return kernel->group_size == 0 || items <= kernel->group_size;
}

/* --- Arguments ------------------------------------------------------------------------------------------ */

static inline bool drupe_valid_kind(const drupe_arg *arg)
{
    return (unsigned)arg->kind <= DRUPE_ARG_LOCAL;
}

static inline bool drupe_valid_value(const drupe_arg *arg)
{
    return arg->value || arg->kind == DRUPE_ARG_LOCAL;
}

static inline bool drupe_valid_size(const drupe_arg *arg)
{
    return arg->size != 0 || arg->kind == DRUPE_ARG_POINTER;
}

/* Of what the compiler tells about the argument, if it does: its kind, then its size. */
static inline bool drupe_valid_form_kind(const drupe_kernel *kernel, size_t index, const drupe_arg *arg)
{
    return !kernel->forms || kernel->forms[index].kind == (uint32_t)arg->kind;
}

static inline bool drupe_valid_form_size(const drupe_kernel *kernel, size_t index, const drupe_arg *arg)
{
    const drupe_form *form = kernel->forms ? &kernel->forms[index] : NULL;
    return !form || form->size == 0 || arg->kind != DRUPE_ARG_VALUE || form->size == arg->size;
}

/* Memory that the queue's devices may use. */
static inline bool drupe_valid_memory(const drupe_memory *memory, const drupe_queue *queue)
{
    return memory->context == queue->base.context;
}

/* Bytes among the device's parameters. */
static inline uint64_t drupe_arg_room(const drupe_arg *arg)
{
    return arg->kind == DRUPE_ARG_POINTER ? sizeof(void *) : arg->kind == DRUPE_ARG_VALUE ? arg->size : 0;
}

/* Sums of sizes that callers give end at the top instead of beginning anew. */
static inline uint64_t drupe_size_sum(uint64_t sum, uint64_t size)
{
    return sum > UINT64_MAX - size ? UINT64_MAX : sum + size;
}

static inline bool drupe_effect_bit(uint64_t bits, size_t index)
{
    return index >= 64 || bits >> index & 1;
}

/* What `effects` say of the memory of that index; without them it is read and, if `writes`, written. */
static inline drupe_touch drupe_effect_touch(const drupe_effects *effects, size_t index, bool writes)
{
    if (!effects) return (drupe_touch){.reads = true, .writes = writes};
    return (drupe_touch){drupe_effect_bit(effects->reads, index), drupe_effect_bit(effects->writes, index),
                         index < 64 && drupe_effect_bit(effects->replaces, index)};
}

/* What the launch does with the memory of an argument. */
static inline drupe_touch drupe_arg_touch(const drupe_submission *s, const drupe_kernel *kernel, size_t index)
{
    return drupe_effect_touch(s->effects, index, drupe_effect_bit(kernel->writes, index));
}

#endif
