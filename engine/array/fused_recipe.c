/* What decides the text of a fused kernel. */
#include "array/fused_room.h"
#include "base/file.h"
#include <stdio.h>
#include <string.h>

/* Measured on an H100: twice as much in a work-item's hand is a tenth less of the bandwidth. */
#define PACK_BYTES  16
#define LANES_APART 2
#define WEIGHT_MOST                                                                                          \
    256 /* elements of a work-item, times what their steps weigh: registers and text have an end */
#define STEP_HEAVY 8
/* And so many more that work-items look ahead still fit int. */
#define INT_ELEMENTS (((drupe_i64)1 << 30) - (1 << 20))

_Static_assert(DRUPE_FUSED_STEPS <= 64 && DRUPE_FUSED_CONSTANTS <= 64, "numbers of references have a byte");

/* --- How it goes through the operands ------------------------------------------------------------------- */

static drupe_i64 reach(const drupe_fused *f, const drupe_fused_operand *operand)
{
    drupe_i64 sum = 0;
    for (int d = 0; d < f->ndim; d++) {
        const drupe_i64 stride = operand->strides[d];
        sum += (stride < 0 ? -stride : stride) * f->shape[d];
    }
    return sum;
}

static bool is_wide(const drupe_fused *f)
{
    bool wide = f->n >= INT_ELEMENTS;
    for (int k = 0; k < f->noperands; k++) wide = wide || reach(f, &f->operands[k]) >= INT_ELEMENTS;
    return wide;
}

static int weight_of(const drupe_fused_step *step)
{
    const op_row *row = drupe_op_row(step->op);
    const bool function = row->result == RESULT_FLOAT || row->result == RESULT_FLOAT_REAL;
    if (drupe_dtype_row((drupe_dtype)step->compute)->kind == KIND_COMPLEX) return STEP_HEAVY;
    switch (step->op) {
    case DRUPE_OP_DIVIDE:
    case DRUPE_OP_SQRT: return 2;
    case DRUPE_OP_FLOOR_DIVIDE:
    case DRUPE_OP_REMAINDER:
    case DRUPE_OP_POW:
    case DRUPE_OP_GCD:
    case DRUPE_OP_LCM: return STEP_HEAVY;
    default: return function ? STEP_HEAVY : 1;
    }
}

/* So many elements at most have room in a work-item. */
static int lanes_most(const drupe_fused *f, int most)
{
    int weight = 0;
    for (int i = 0; i < f->nsteps; i++) weight += weight_of(&f->steps[i]);
    while (most > 1 && most * weight > WEIGHT_MOST) most /= 2;
    return most;
}

static size_t largest(const drupe_fused *f)
{
    size_t size = 1;
    for (int k = 0; k < f->noperands; k++) {
        const size_t own = drupe_dtype_size((drupe_dtype)f->operands[k].dtype);
        if (own > size) size = own;
    }
    return size;
}

/* Whether packs of so many elements begin at multiples of their size, in each row. */
static bool is_aligned(const drupe_fused *f, const fused_form *form, int width)
{
    for (int k = 0; k < f->noperands; k++) {
        const drupe_fused_operand *operand = &f->operands[k];
        const size_t bytes = (size_t)width * drupe_dtype_size((drupe_dtype)operand->dtype);
        if (form->along[k] == FUSED_STRIDED) return false;
        if (form->along[k] == FUSED_BROADCAST) continue;
        if ((uintptr_t)operand->base % bytes) return false;
        for (int d = 0; d + 1 < f->ndim; d++)
            if (f->shape[d] > 1 && operand->strides[d] % width) return false;
    }
    return f->ndim == 0 || f->shape[f->ndim - 1] % width == 0;
}

void drupe_fused_form(const drupe_target *target, const drupe_fused *f, fused_form *form)
{
    *form = (fused_form){.wide = is_wide(f), .width = 1, .lanes = 1};
    for (int k = 0; k < f->noperands; k++) {
        const drupe_i64 stride = f->ndim ? f->operands[k].strides[f->ndim - 1] : 1;
        form->along[k] = stride == 0 ? FUSED_BROADCAST : stride == 1 ? FUSED_NEIGHBOURS : FUSED_STRIDED;
    }
    if (!target->gpu_form) return;
    form->lanes = (uint8_t)lanes_most(f, PACK_BYTES / (int)largest(f));
    for (form->width = form->lanes; form->width > 1 && !is_aligned(f, form, form->width);) form->width /= 2;
    if (form->width == 1) form->lanes = (uint8_t)lanes_most(f, LANES_APART);
}

/* --- Recipes -------------------------------------------------------------------------------------------- */

void drupe_fused_recipe(const drupe_fused *f, const fused_form *form, fused_recipe *recipe)
{
    uint8_t *to = recipe->bytes;
    const uint8_t head[] = {
        SHAPE_FUSED,           form->wide,         form->width,           form->lanes, (uint8_t)f->ndim,
        (uint8_t)f->noperands, (uint8_t)f->nsteps, (uint8_t)f->nconstants};
    memcpy(to, head, sizeof(head));
    to += sizeof(head);
    for (int k = 0; k < f->noperands; k++) {
        *to++ = (uint8_t)(f->operands[k].dtype << 1 | (f->operands[k].output != 0));
        *to++ = form->along[k];
    }
    for (int k = 0; k < f->nconstants; k++) *to++ = (uint8_t)f->constants[k].dtype;
    for (int i = 0; i < f->nsteps; i++) {
        const drupe_fused_step *step = &f->steps[i];
        *to++ = step->op;
        *to++ = step->compute;
        *to++ = step->dtype;
        *to++ = (uint8_t)step->store;
        for (int k = 0; k < drupe_op_row(step->op)->arity; k++) {
            *to++ = step->in[k].source;
            *to++ = step->in[k].index;
        }
    }
    recipe->size = (size_t)(to - recipe->bytes);
}

void drupe_fused_name(const fused_recipe *recipe, char name[FUSED_NAME_SIZE])
{
    drupe_hash hash = {0, 0};
    drupe_hash_add(&hash, recipe->bytes, recipe->size);
    snprintf(name, FUSED_NAME_SIZE, "fused_%012llx", (unsigned long long)(hash.a >> 16));
}
