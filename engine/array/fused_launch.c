/* Launches of fused kernels: what the text leaves open is filled in. */
#include "array/fused_room.h"
#include <string.h>

#define GRAIN_CPU 16384 /* elements for which starting another work-item pays */
/* Measured on an H100: work-items with one piece of work each are ahead of fewer ones that go on. */
#define GROUPS_MOST     ((size_t)1 << 20)
#define ROW_GROUPS_MOST ((size_t)1 << 15) /* in the second dimension, where drivers have less room */
#define TILE_WIDTH      ((size_t)32)

static size_t divided_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* --- The struct ----------------------------------------------------------------------------------------- */

static void put_index(const fused_form *form, drupe_i64 value, unsigned char **to)
{
    const int32_t narrow = (int32_t)value;
    const size_t size = form->wide ? sizeof(value) : sizeof(narrow);
    memcpy(*to, form->wide ? (const void *)&value : &narrow, size);
    *to += size;
}

static drupe_i64 length_of(const drupe_fused *f)
{
    return f->ndim ? f->shape[f->ndim - 1] : f->n;
}

size_t drupe_fused_fill(const drupe_fused *f, const fused_form *form, size_t each,
                        uint64_t params[FUSED_PARAMS_MOST])
{
    uint64_t *to = params;
    memset(params, 0, FUSED_PARAMS_MOST * sizeof(*params));
    *to++ = (uint64_t)f->n;
    *to++ = (uint64_t)(f->n / length_of(f));
    *to++ = each;
    for (int k = 0; k < f->nconstants; k++, to += 2)
        memcpy(to, f->constants[k].value, sizeof(f->constants[k].value));
    unsigned char *bytes = (unsigned char *)to;
    for (int d = 0; d < f->ndim; d++) put_index(form, f->shape[d], &bytes);
    for (int k = 0; k < f->noperands && f->ndim; k++)
        for (int d = 0; d < f->ndim; d++) put_index(form, f->operands[k].strides[d], &bytes);
    return divided_up((size_t)(bytes - (unsigned char *)params), sizeof(*params)) * sizeof(*params);
}

/* --- Launch --------------------------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Groups are as wide as rows, up to their size, and so high that they are full. An operand that lies
 * otherwise is read in lines of the cache, which groups share that are a part of some rows. */
static void rows_range(const drupe_target *t, const drupe_fused *f, const fused_form *form, size_t *each,
                       drupe_range *range)
{
    const size_t rows = (size_t)(f->n / length_of(f)), packs = divided_up((size_t)length_of(f), form->lanes);
    size_t widest = t->group, wide = 1;
    for (int k = 0; k < f->noperands; k++)
        if (form->along[k] == FUSED_STRIDED && widest > TILE_WIDTH) widest = TILE_WIDTH;
    while (wide < widest && wide < packs) wide *= 2;
    const size_t high = t->group / wide, across = least(divided_up(packs, wide), GROUPS_MOST);
    *each = divided_up(rows, high * ROW_GROUPS_MOST);
    *range = (drupe_range){
        .dims = 2, .local = {wide, high}, .global = {across * wide, divided_up(rows, high * *each) * high}};
}

static void range_of(const drupe_target *t, const drupe_fused *f, const fused_form *form, size_t *each,
                     drupe_range *range)
{
    *each = 1;
    if (t->gpu_form && f->ndim) {
        rows_range(t, f, form, each, range);
    } else if (t->gpu_form) {
        const size_t groups = divided_up(divided_up((size_t)f->n, form->lanes), t->group);
        *range =
            (drupe_range){.dims = 1, .local = {t->group}, .global = {least(groups, GROUPS_MOST) * t->group}};
    } else {
        drupe_target_range(t, (size_t)f->n, GRAIN_CPU, range);
    }
}

drupe_status drupe_fused_launch(drupe_target *target, const drupe_fused *f, const drupe_submission *s,
                                struct drupe_memory *const *memories, bool *launched)
{
    uint64_t params[FUSED_PARAMS_MOST];
    drupe_arg args[DRUPE_FUSED_OPERANDS + 1];
    struct drupe_memory *listed[DRUPE_FUSED_OPERANDS + 1] = {NULL};
    drupe_submission own = *s;
    fused_form form;
    drupe_range range;
    drupe_kernel *kernel;
    drupe_fused_ready(target, f, &kernel);
    *launched = kernel != NULL;
    if (!kernel) return DRUPE_OK;
    drupe_fused_form(target, f, &form);
    for (int k = 0; k < f->noperands; k++) {
        listed[k] = memories[k];
        args[k] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &f->operands[k].base};
    }
    size_t each;
    range_of(target, f, &form, &each, &range);
    args[f->noperands] = (drupe_arg){DRUPE_ARG_VALUE, drupe_fused_fill(f, &form, each, params), params};
    own.memories = listed;
    const drupe_status status =
        drupe_submit_kernel(&own, kernel, &range, args, (size_t)f->noperands + 1, NULL);
    drupe_kernel_release(kernel);
    return status;
}
