/* Matrix products as kernels for GPUs: the size of tiles, and parts of long sums.
 *
 * Large tiles need fewer loads for each multiplication, small ones are more for a small matrix to occupy the
 * device with. Where even those are too few, the sum is divided, and the partial results are added in turn.
 */
#include "array/kernel_room.h"

#define VECTOR_CHUNK 4096 /* steps of a sum that are worth a part of their own, of a row */
#define TILE_CHUNK   1024 /* and of a tile */
#define VECTOR_GRAIN 16   /* steps for a work-item of a row */
#define TILE_LINES   128  /* the most that a tile has, and more than it is deep */
#define VECTOR_LEAST 8    /* rows side by side that memory is read well with */

static drupe_i64 magnitude(drupe_i64 stride)
{
    return stride < 0 ? -stride : stride;
}

static drupe_i64 ceiling(drupe_i64 a, drupe_i64 b)
{
    return (a + b - 1) / b;
}

/* Sums of integers are the same in any order, too, but wrap in a type that a reduction would widen. */
static bool divides(drupe_dtype dtype)
{
    return drupe_dtype_row(dtype)->kind >= KIND_FLOAT;
}

static void split(const drupe_target *target, drupe_product_params *p, drupe_dtype dtype, drupe_i64 tasks,
                  drupe_i64 least)
{
    const drupe_i64 wanted = ceiling(2 * (drupe_i64)target->units, tasks), most = p->k / least;
    p->splits = 1;
    p->chunk = p->k;
    if (tasks >= (drupe_i64)target->units || wanted < 2 || most < 2 || !divides(dtype)) return;
    p->chunk = ceiling(ceiling(p->k, wanted < most ? wanted : most), 64) * 64;
    p->splits = ceiling(p->k, p->chunk);
}

static drupe_i64 tiles_of(const drupe_product_params *p, drupe_i64 lines)
{
    return ceiling(p->m, lines) * ceiling(p->n, lines) * p->count;
}

/* EACH of matmul_gpu.cl: the largest that leaves no unit without work, or half of them where the next size
 * would not be faster, and of which most is not past the matrix's end. */
static int tile_each(const drupe_target *target, const drupe_product_params *p, drupe_dtype dtype)
{
    const drupe_i64 side = (drupe_i64)drupe_product_side(target), units = (drupe_i64)target->units;
    const drupe_i64 parts = divides(dtype) && p->k >= 2 * TILE_CHUNK ? p->k / TILE_CHUNK : 1;
    const drupe_i64 least = p->m < p->n ? p->m : p->n;
    if (drupe_dtype_size(dtype) < 16 && least > 4 * side && tiles_of(p, 8 * side) * parts >= units) return 8;
    return least > 2 * side && tiles_of(p, 4 * side) * parts >= ceiling(units, 2) ? 4 : 2;
}

/* Whether the elements of a tile are too far from its first one for 32 bits. */
static bool is_far(const drupe_product_params *p)
{
    const drupe_i64 a = magnitude(p->a_row) + magnitude(p->a_column),
                    b = magnitude(p->b_row) + magnitude(p->b_column);
    return (a > b ? a : b) > INT32_MAX / TILE_LINES;
}

/* A row's team: as many as each has VECTOR_GRAIN steps for, and more where rows are few. */
static void choose_team(const drupe_target *target, drupe_product_params *p, drupe_i64 group)
{
    const drupe_i64 wanted = (drupe_i64)target->units * 1024, rows = p->m * p->count;
    const drupe_i64 most = p->a_along || group < VECTOR_LEAST ? group : group / VECTOR_LEAST;
    const drupe_i64 usual = p->a_along ? group : group / 32;
    p->team = 1;
    while (2 * p->team <= most && p->team < p->k &&
           ((p->team < usual && p->team * VECTOR_GRAIN < p->k) || rows * p->team < wanted))
        p->team *= 2;
}

static drupe_status launch(drupe_target *target, drupe_dtype dtype, const drupe_product_params *p, int each,
                           const drupe_array *a, const drupe_array *b, const drupe_array *out)
{
    const drupe_i64 side = (drupe_i64)drupe_product_side(target), group = side * side;
    const drupe_i64 groups =
        (each ? tiles_of(p, side * each) : ceiling(p->m, group / p->team) * p->count) * p->splits;
    const int variant = each | (each && is_far(p) ? PRODUCT_FAR : 0);
    const drupe_kernel_call call = {.parts = drupe_kernel_parts(SHAPE_PRODUCT, variant, dtype),
                                    .arrays = {out, a, b},
                                    .count = 3,
                                    .reads = 6,
                                    .writes = 1,
                                    .params = p,
                                    .params_size = sizeof *p,
                                    .group = (size_t)group,
                                    .items = (size_t)(groups * group)};
    return drupe_array_kernel(target, &call);
}

/* Partial results, one set after the other, and their sum into `out`. */
static drupe_status launch_parts(drupe_target *target, drupe_dtype dtype, const drupe_product_params *p,
                                 int each, const drupe_array *a, const drupe_array *b, const drupe_array *out)
{
    drupe_array partial = {0}, sum = {0}, flat = *out; /* borrowed */
    const size_t shape[] = {(size_t)p->splits, out->size};
    flat.ndim = 1;
    flat.shape[0] = out->size;
    flat.strides[0] = 1;
    DRUPE_TRY(drupe_array_result(out->queue, DRUPE_MEM_DEVICE, dtype, 2, shape, &partial));
    drupe_status status = launch(target, dtype, p, each, a, b, &partial);
    if (status == DRUPE_OK) status = drupe_array_reduce(DRUPE_OP_SUM, &partial, 1, false, dtype, &sum);
    if (status == DRUPE_OK) status = drupe_array_assign(&flat, &(drupe_operand){.array = &sum});
    drupe_array_clear(&sum);
    drupe_array_clear(&partial);
    return status;
}

/* The same product with the operands' parts exchanged: of a vector and a matrix, the matrix comes first. */
static drupe_product_params exchanged(const drupe_product_params *p)
{
    drupe_product_params q = *p;
    q.m = p->n;
    q.n = p->m;
    q.a_row = p->b_column;
    q.a_column = p->b_row;
    q.b_row = p->a_column;
    q.b_column = p->a_row;
    q.a_stack = p->b_stack;
    q.b_stack = p->a_stack;
    return q;
}

drupe_status drupe_kernel_product(drupe_target *target, drupe_dtype dtype,
                                  const drupe_product_params *product, const drupe_array *a,
                                  const drupe_array *b, const drupe_array *out)
{
    const drupe_i64 side = (drupe_i64)drupe_product_side(target), group = side * side;
    const bool exchange = product->m == 1 && product->n > 1;
    drupe_product_params p = exchange ? exchanged(product) : *product;
    const drupe_array *first = exchange ? b : a, *second = exchange ? a : b;
    int each = 0;
    p.a_along = magnitude(p.a_column) <= magnitude(p.a_row);
    p.b_along = magnitude(p.b_row) < magnitude(p.b_column);
    if (p.n == 1) {
        choose_team(target, &p, group);
        split(target, &p, dtype, ceiling(p.m, group / p.team) * p.count, VECTOR_CHUNK);
    } else {
        each = tile_each(target, &p, dtype);
        split(target, &p, dtype, tiles_of(&p, side * each), TILE_CHUNK);
    }
    if (p.splits > 1) return launch_parts(target, dtype, &p, each, first, second, out);
    return launch(target, dtype, &p, each, first, second, out);
}
