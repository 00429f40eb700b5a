/* The kernel "fused": the steps of a drupe_fused (fused.h), block by block. Included behind host_reduce.h. */
#include "kernels/host_fused_plan.h"

/* --- Blocks --------------------------------------------------------------------------------------------- */

/* As map_block(). */
static i64 fused_block(const fused_run *r, i64 at, i64 until)
{
    i64 n = min(r->length, until - at);
    if (r->f->ndim) {
        const i64 row = r->f->shape[r->f->ndim - 1];
        if (row >= r->length / 4) n = min(n, row - at % row);
    }
    return n;
}

/* Between an operand and a buffer of its type: the elements of the block, at most `n` from `at` on. */
static void fused_move(const fused_run *r, const operand *o, i64 at, i64 n, char *buffer, int to_operand)
{
    if (!r->tiled)
        operand_move(o, at, n, buffer, to_operand);
    else if (to_operand)
        tile_store(&r->tiles, &r->tile, o, buffer);
    else
        tile_load(&r->tiles, &r->tile, o, buffer);
}

/* The operands of the block: where they are, or in their buffers. */
static void fused_fetch(fused_run *r, i64 at, i64 n)
{
    for (int i = 0; i < r->f->noperands; i++) {
        const operand *o = &r->operands[i];
        char *where = r->tiled ? NULL : operand_neighbours(o, at, n), *own = r->own[AT_OPERANDS + i];
        const int same = r->as[i] < 0 || SAME(r->as[i], o->dtype);
        if (where && same) {
            r->at[AT_OPERANDS + i] = where;
            continue;
        }
        r->at[AT_OPERANDS + i] = own;
        if (r->as[i] < 0) continue;
        if (!where) fused_move(r, o, at, n, where = same ? own : r->own[AT_RAW], 0);
        if (!same) CASTS[o->dtype][r->as[i]](n, own, where);
    }
}

static void fused_steps(const fused_run *r, i64 at, i64 n)
{
    const fused_code *end = r->code + r->f->nsteps;
    for (const fused_code *c = r->code; c < end; c++) {
        const void *in[DRUPE_KERNEL_INPUTS];
        char *out = r->at[c->out];
        for (int i = 0; i < c->arity; i++) {
            in[i] = r->at[c->in[i]];
            if (!c->casts[i]) continue;
            c->casts[i](n, r->own[AT_INPUTS + i], in[i]);
            in[i] = r->own[AT_INPUTS + i];
        }
        if (c->round) {
            const void *result = in[0];
            if (c->loop) c->loop(n, r->own[AT_RESULT], in);
            if (c->loop) result = r->own[AT_RESULT];
            c->round(n, out, result);
        } else {
            c->loop(n, out, in);
        }
        if (c->store >= 0 && (c->out == AT_REDUCED || out == r->own[c->out]))
            fused_move(r, &r->operands[c->store], at, n, out, 1);
    }
}

/* All steps of elements [at, until); `reduced`: where the value that is reduced is to be, if it is not an
 * operand. */
static void fused_elements(fused_run *r, i64 at, i64 until, char *reduced)
{
    for (i64 n; at < until; at += n) {
        n = fused_block(r, at, until);
        fused_fetch(r, at, n);
        r->at[AT_REDUCED] = reduced;
        fused_steps(r, at, n);
        if (reduced) reduced += n * SIZES[r->f->reduction.params.in_dtype];
    }
}

static void fused_tiles(fused_run *r, i64 from, i64 until)
{
    for (i64 number = from; number < until; number++) {
        tile_at(&r->tiles, number, &r->tile);
        const i64 n = r->tile.rows * r->tile.columns;
        fused_fetch(r, 0, n);
        fused_steps(r, 0, n);
    }
}

#include "kernels/host_fused_reduce.h"

static void fused(size_t begin, size_t end, size_t size, const void *const *args)
{
    const drupe_fused *f = *(const drupe_fused *const *)args[0];
    fused_run r;
    fused_prepare(&r, f);
    if (f->reduction.op >= 0) {
        fused_reduce(&r, begin, end, size);
        return;
    }
    const i64 count = r.tiled ? tiling_count(&r.tiles) : f->n;
    const i64 from = share(count, (i64)begin, (i64)size), until = share(count, (i64)end, (i64)size);
    if (r.tiled)
        fused_tiles(&r, from, until);
    else
        fused_elements(&r, from, until, NULL);
}
