/* How the kernel "fused" (host_fused.h) runs the steps of a drupe_fused: what a block needs and where it is.
 *
 * A step is one of the loops that the kernels of single operations have. Values that lie between steps stand
 * in buffers that all fit the first cache together: so a block is short where there are many. */
#include "kernels/fused.h"

/* Bytes that the buffers of a block should have together, and elements of a block. */
#define FUSED_BYTES 24576
#define FUSED_MOST  512 /* as casts take them */
#define FUSED_LEAST 64

/* Where values are: operands, constants and slots by their numbers, and places of this file's own. */
typedef enum fused_place {
    AT_OPERANDS,
    AT_CONSTANTS = AT_OPERANDS + DRUPE_FUSED_OPERANDS,
    AT_SLOTS = AT_CONSTANTS + DRUPE_FUSED_CONSTANTS,
    AT_INPUTS = AT_SLOTS + DRUPE_FUSED_SLOTS,    /* inputs of a step in the types that it takes */
    AT_RESULT = AT_INPUTS + DRUPE_KERNEL_INPUTS, /* what a loop gave, before it is rounded */
    AT_RAW,                                      /* gathered elements before they are converted */
    AT_REDUCED,                                  /* the value that is reduced; it has no buffer among these */
    AT_COUNT
} fused_place;
#define FUSED_POOL (FUSED_BYTES + FUSED_LEAST * AT_COUNT * (ITEM_BYTES + 1))

/* A step, looked up. */
typedef struct fused_code {
    void (*loop)(i64 n, void *out, const void *const *in); /* NULL: the value is the input, rounded */
    cast_fn casts[DRUPE_KERNEL_INPUTS];                    /* of inputs; NULL: as they are */
    cast_fn round;         /* of what the loop gives to the step's type; NULL: it has that type */
    int arity, out, store; /* `store`: the operand to move the value to; -1: none, or it is there already */
    int in[DRUPE_KERNEL_INPUTS];
} fused_code;

typedef struct fused_run {
    const drupe_fused *f;
    int tiled; /* blocks are tiles, of `tiles` */
    tiling tiles;
    tile tile;                    /* the block */
    i64 length;                   /* of a block, at most */
    char *at[AT_COUNT];           /* the values of a block */
    char *own[AT_COUNT];          /* buffers; NULL: there is none */
    i64 widths[AT_COUNT];         /* bytes of their elements, 0: no buffer is needed */
    int as[DRUPE_FUSED_OPERANDS]; /* the type that an input is taken in; -1: no step takes it */
    operand operands[DRUPE_FUSED_OPERANDS];
    fused_code code[DRUPE_FUSED_STEPS];
    _Alignas(64) char pool[FUSED_POOL];
} fused_run;

/* --- Which values there are ----------------------------------------------------------------------------- */

static const map_kernel *fused_kernel(const drupe_fused_step *s)
{
    return FUSED_MAPS[s->op][s->compute];
}

static int fused_is_reduced(const drupe_fused *f, int step)
{
    return f->reduction.op >= 0 && f->reduction.step == step;
}

/* Whether all blocks of an operand are neighbours in memory: none crosses the end of a row then. */
static int fused_is_direct(const fused_run *r, const operand *o)
{
    if (r->tiled) return 0;
    return o->ndim == 0 || (o->strides[o->ndim - 1] == 1 && o->shape[o->ndim - 1] >= FUSED_MOST / 4);
}

/* Where the value of a step is, from there on. */
static int fused_value(const fused_run *r, int step)
{
    const drupe_fused_step *s = &r->f->steps[step];
    const int stored = s->store >= 0;
    if (fused_is_reduced(r->f, step) && !(stored && r->f->ndim == 0)) return AT_REDUCED;
    return stored ? AT_OPERANDS + s->store : AT_SLOTS + s->slot;
}

static int fused_input(const fused_run *r, drupe_fused_ref in, int *dtype)
{
    if (in.source == FUSED_STEP) {
        *dtype = r->f->steps[in.index].dtype;
        return fused_value(r, in.index);
    }
    *dtype = in.source == FUSED_CONSTANT ? r->f->constants[in.index].dtype : r->as[in.index];
    return (in.source == FUSED_CONSTANT ? AT_CONSTANTS : AT_OPERANDS) + in.index;
}

static void fused_need(fused_run *r, int place, int dtype)
{
    if (r->widths[place] < SIZES[dtype]) r->widths[place] = SIZES[dtype];
}

/* The type in which steps take an operand: the one that all convert it to, else its own. */
static void fused_types(fused_run *r)
{
    const drupe_fused *f = r->f;
    for (int k = 0; k < f->noperands; k++) r->as[k] = -1;
    for (int i = 0; i < f->nsteps; i++) {
        const map_kernel *k = fused_kernel(&f->steps[i]);
        for (int j = 0; j < k->arity; j++) {
            const drupe_fused_ref in = f->steps[i].in[j];
            if (in.source != FUSED_OPERAND) continue;
            const int own = f->operands[in.index].dtype, as = r->as[in.index];
            const int wanted = SAME(own, k->compute[j]) ? own : k->compute[j];
            r->as[in.index] = as < 0 || as == wanted ? wanted : own;
        }
    }
}

/* Look for an operand that lies across the others. Elements that are reduced have to stay in their order. */
static void fused_tiling(fused_run *r)
{
    const drupe_fused *f = r->f;
    tiling_begin(&r->tiles, f->n, f->ndim, f->shape);
    for (int i = 0; i < f->noperands && f->ndim > 1 && f->reduction.op < 0; i++)
        if (r->as[i] >= 0) tiling_look(&r->tiles, f->operands[i].strides);
    r->tiled = tiling_cut(&r->tiles, FUSED_MOST);
}

static void fused_operands(fused_run *r)
{
    const drupe_fused *f = r->f;
    for (int i = 0; i < f->noperands; i++) {
        const drupe_fused_operand *from = &f->operands[i];
        r->operands[i] = (operand){.base = from->base,
                                   .dtype = from->dtype,
                                   .ndim = f->ndim,
                                   .size = SIZES[from->dtype],
                                   .shape = f->shape,
                                   .strides = from->strides};
        const int direct = fused_is_direct(r, &r->operands[i]);
        if (from->output && !direct) fused_need(r, AT_OPERANDS + i, from->dtype);
        if (r->as[i] < 0) continue;
        const int same = SAME(r->as[i], from->dtype);
        if (!direct || !same) fused_need(r, AT_OPERANDS + i, r->as[i]);
        if (!direct && !same) fused_need(r, AT_RAW, from->dtype);
    }
}

/* --- What the steps do ---------------------------------------------------------------------------------- */

static void fused_encode(fused_run *r, int step)
{
    const drupe_fused_step *s = &r->f->steps[step];
    const map_kernel *k = fused_kernel(s);
    fused_code *c = &r->code[step];
    int in_place = 0; /* an input of another width would be written over before it is read */
    *c = (fused_code){.loop = k->loop, .arity = k->arity, .out = fused_value(r, step), .store = s->store};
    for (int i = 0; i < k->arity; i++) {
        int dtype;
        c->in[i] = fused_input(r, s->in[i], &dtype);
        if (s->in[i].source == FUSED_CONSTANT) fused_need(r, c->in[i], dtype);
        if (!SAME(dtype, k->compute[i])) {
            c->casts[i] = CASTS[dtype][k->compute[i]];
            fused_need(r, AT_INPUTS + i, k->compute[i]);
        } else {
            in_place |= c->in[i] == c->out && SIZES[dtype] != SIZES[s->dtype];
        }
    }
    if (k->moves && !in_place) c->loop = NULL;
    if (!c->loop || in_place || !SAME(k->result, s->dtype)) c->round = CASTS[k->result][s->dtype];
    if (c->loop && c->round) fused_need(r, AT_RESULT, k->result);
    if (c->out >= AT_SLOTS && c->out < AT_INPUTS) fused_need(r, c->out, s->dtype);
    if (c->store >= 0 && c->out != AT_REDUCED && fused_is_direct(r, &r->operands[c->store])) c->store = -1;
}

/* Cut the pool. A few bytes between buffers keep them from the same sets of the cache. */
static void fused_buffers(fused_run *r)
{
    i64 total = 0;
    char *free = r->pool;
    for (int place = 0; place < AT_COUNT; place++) total += r->widths[place];
    const i64 fit = total ? FUSED_BYTES / total / 64 * 64 : FUSED_MOST;
    r->length = fit > FUSED_MOST ? FUSED_MOST : fit < FUSED_LEAST ? FUSED_LEAST : fit;
    for (int place = 0; place < AT_COUNT; place++) {
        r->own[place] = r->at[place] = r->widths[place] ? free : NULL;
        if (r->widths[place]) free += r->length * r->widths[place] + 64;
    }
    for (int i = 0; i < r->f->nconstants; i++) {
        const drupe_fused_constant *from = &r->f->constants[i];
        char *to = r->own[AT_CONSTANTS + i];
        if (to) strided_copy(to, 1, from->value, 0, min(r->length, r->f->n), SIZES[from->dtype]);
    }
}

static void fused_prepare(fused_run *r, const drupe_fused *f)
{
    r->f = f;
    memset(r->widths, 0, sizeof(r->widths));
    fused_types(r);
    fused_tiling(r);
    fused_operands(r);
    for (int i = 0; i < f->nsteps; i++) fused_encode(r, i);
    fused_buffers(r);
    if (r->tiled) tiling_cut(&r->tiles, r->length);
}
