/* Matrix products.
 *
 * On a device whose memory is the host's, floats go to a BLAS of the host, as work of the queue like any
 * other; the rest goes to the generated kernels. Operands that neither can address are copied first. */
#include "array/array_room.h"
#include "math/blas.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct product {
    drupe_target *target;
    drupe_dtype dtype;
    size_t m, n, k;
    drupe_array a, b; /* two-dimensional, of `dtype` */
} product;

/* --- By BLAS -------------------------------------------------------------------------------------------- */

typedef struct blas_job {
    const drupe_blas *blas;
    bool wide;
    size_t m, n, k;
    drupe_matrix a, b;
    void *out;
} blas_job;

static drupe_status blas_run(void *user)
{
    const blas_job *job = user;
    drupe_blas_matmul(job->blas, job->wide, job->m, job->n, job->k, job->a, job->b, job->out);
    return DRUPE_OK;
}

/* Whether BLAS can address a matrix: neighbours along one axis, rows that do not overlap along the other. */
static bool blas_matrix(const drupe_array *a, drupe_matrix *matrix)
{
    for (int inner = 1; inner >= 0; inner--) {
        const size_t length = a->shape[inner], rows = a->shape[1 - inner];
        const ptrdiff_t stride = a->strides[inner], ld = a->strides[1 - inner];
        if (length > 1 && stride != 1) continue;
        if (rows > 1 && (ld < (ptrdiff_t)length || ld > INT_MAX)) continue;
        matrix->data = drupe_array_pointer(a);
        matrix->ld = rows > 1 ? (size_t)ld : length;
        matrix->transposed = inner == 0;
        return true;
    }
    return false;
}

static drupe_status blas_operand(drupe_array *a, drupe_matrix *matrix)
{
    drupe_array packed = {0};
    if (blas_matrix(a, matrix)) return DRUPE_OK;
    DRUPE_TRY(drupe_array_contiguous_as(a, a->dtype, &packed));
    drupe_array_clear(a);
    *a = packed;
    blas_matrix(a, matrix);
    return DRUPE_OK;
}

/* What a product touches, for checked mode. */
static size_t list_accesses(const product *p, const drupe_array *out, drupe_access *accesses)
{
    if (!p->target->checked) return 0;
    accesses[0] = drupe_layout_access(out, true);
    accesses[1] = drupe_layout_access(&p->a, false);
    accesses[2] = drupe_layout_access(&p->b, false);
    return 3;
}

static drupe_status multiply_by_blas(product *p, const drupe_array *out)
{
    blas_job *job = calloc(1, sizeof(*job));
    if (!job) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a matrix product.");
    *job = (blas_job){drupe_blas_get(), p->dtype == DRUPE_FLOAT64, p->m, p->n, p->k, {0}, {0}, NULL};
    drupe_status status = blas_operand(&p->a, &job->a);
    if (status == DRUPE_OK) status = blas_operand(&p->b, &job->b);
    if (status != DRUPE_OK) {
        free(job);
        return status;
    }
    job->out = drupe_array_pointer(out);
    const drupe_keep keeps[] = {{job, free},
                                drupe_memory_keep(p->a.memory, out->queue),
                                drupe_memory_keep(p->b.memory, out->queue),
                                drupe_memory_keep(out->memory, out->queue)};
    drupe_access accesses[3];
    const drupe_effects effects = {.reads = 2 | 4, .writes = 8, .replaces = drupe_array_covers(out) ? 8 : 0};
    const drupe_submission s = {.queue = out->queue,
                                .ordered = true,
                                .keeps = keeps,
                                .nkeeps = DRUPE_COUNT_OF(keeps),
                                .label = "matmul",
                                .effects = &effects,
                                .naccesses = list_accesses(p, out, accesses),
                                .accesses = accesses};
    return drupe_submit_host(&s, blas_run, job, NULL);
}

/* --- By kernels ----------------------------------------------------------------------------------------- */

static drupe_status multiply_by_kernel(product *p, const drupe_array *out)
{
    drupe_range range;
    if (p->n > 1 && p->b.strides[1] != 1) {
        drupe_array packed = {0};
        DRUPE_TRY(drupe_array_contiguous_as(&p->b, p->dtype, &packed));
        drupe_array_clear(&p->b);
        p->b = packed;
    }
    kernel_parts key = {SHAPE_MATMUL, 0, 0, (int32_t)p->dtype, (int32_t)p->dtype, {-1, -1, -1}};
    const drupe_matmul_params params = {(drupe_i64)p->m, (drupe_i64)p->n, (drupe_i64)p->k,
                                        p->a.strides[0], p->a.strides[1], p->b.strides[0]};
    void *pointers[] = {drupe_array_pointer(out), drupe_array_pointer(&p->a), drupe_array_pointer(&p->b)};
    drupe_arg args[4];
    for (int i = 0; i < 3; i++) args[i] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &pointers[i]};
    args[3] = (drupe_arg){DRUPE_ARG_VALUE, sizeof(params), &params};
    if (p->target->gpu_form)
        drupe_target_range(p->target, p->m * p->n, 1, &range);
    else
        drupe_target_range(p->target, p->m * ((p->n + 63) / 64), 16384 / (p->k < 16384 ? p->k : 16384),
                           &range);
    drupe_access accesses[3];
    struct drupe_memory *const memories[] = {out->memory, p->a.memory, p->b.memory, NULL};
    const drupe_effects effects = {.reads = 2 | 4, .writes = 1, .replaces = drupe_array_covers(out)};
    const drupe_submission s = {.queue = out->queue,
                                .ordered = true,
                                .naccesses = list_accesses(p, out, accesses),
                                .accesses = accesses,
                                .memories = memories,
                                .effects = &effects};
    const size_t element = drupe_dtype_size(p->dtype), elements[] = {element, element, element};
    kernel_recipe recipe;
    drupe_recipe_make(&key, &recipe);
    return drupe_target_submit(p->target, &recipe, &s, &range, args, 4, elements);
}

/* --- The whole ------------------------------------------------------------------------------------------ */

static drupe_status check_shapes(const drupe_array *a, const drupe_array *b)
{
    char first[128], second[128];
    drupe_shape_text(a->ndim, a->shape, first, sizeof(first));
    drupe_shape_text(b->ndim, b->shape, second, sizeof(second));
    if (a->ndim == 0 || b->ndim == 0)
        return drupe_error_set(DRUPE_E_INVALID,
                               "matmul does not take zero-dimensional operands: use multiply");
    if (a->ndim > 2 || b->ndim > 2)
        return drupe_error_set(
            DRUPE_E_UNSUPPORTED,
            "matmul of stacks of matrices (shapes %s and %s) is not available: loop over them", first,
            second);
    if (a->shape[a->ndim - 1] != b->shape[0])
        return drupe_error_set(
            DRUPE_E_INVALID,
            "matmul of shapes %s and %s: the last axis of the first must be as long as the "
            "first axis of the second",
            first, second);
    if (a->queue != b->queue)
        return drupe_error_set(DRUPE_E_PLACEMENT,
                               "the operands of matmul are on different queues (of %s and %s): bring them "
                               "together with to_device()",
                               drupe_device_filter(drupe_queue_device(a->queue)),
                               drupe_device_filter(drupe_queue_device(b->queue)));
    return DRUPE_OK;
}

/* A two-dimensional view in the product's type: a vector on the left is a row, on the right a column. */
static drupe_status as_matrix(const drupe_array *array, drupe_dtype dtype, bool left, drupe_array *matrix)
{
    if (array->dtype == dtype)
        drupe_array_view(array, matrix);
    else
        DRUPE_TRY(drupe_array_contiguous_as(array, dtype, matrix));
    if (matrix->ndim == 2) return DRUPE_OK;
    return drupe_array_insert_axis(matrix, left ? 0 : 1);
}

static drupe_status multiply(product *p, const drupe_array *out)
{
    const bool is_float = p->dtype == DRUPE_FLOAT32 || p->dtype == DRUPE_FLOAT64;
    const bool fits = p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX;
    if (is_float && fits && p->target->cpu && drupe_blas_get()) return multiply_by_blas(p, out);
    return multiply_by_kernel(p, out);
}

/* The result may be stored in another type than the product is computed in. */
static drupe_status multiply_into(product *p, const drupe_array *out)
{
    drupe_array wide = {0};
    if (out->dtype == p->dtype) return multiply(p, out);
    DRUPE_TRY(drupe_array_result(out->queue, DRUPE_MEM_DEVICE, p->dtype, out->ndim, out->shape, &wide));
    drupe_status status = multiply(p, &wide);
    if (status == DRUPE_OK) status = drupe_array_assign(out, &(drupe_operand){.array = &wide});
    drupe_array_clear(&wide);
    return status;
}

drupe_status drupe_array_matmul(const drupe_array *a, const drupe_array *b, drupe_array *out)
{
    product p = {0};
    size_t shape[2];
    int ndim = 0;
    DRUPE_TRY(check_shapes(a, b));
    DRUPE_TRY(drupe_target_get(a->queue, &p.target));
    const drupe_dtype result = drupe_dtype_available(drupe_dtype_promote(a->dtype, b->dtype), p.target->fp64);
    p.dtype = drupe_dtype_row(result)->compute;
    p.m = a->ndim == 2 ? a->shape[0] : 1;
    p.n = b->ndim == 2 ? b->shape[1] : 1;
    p.k = b->shape[0];
    if (a->ndim == 2) shape[ndim++] = p.m;
    if (b->ndim == 2) shape[ndim++] = p.n;
    DRUPE_TRY(drupe_queue_pace_heavy(a->queue, (double)p.m * (double)p.n * (double)p.k));
    const drupe_mem_kind kind_a = drupe_memory_kind(a->memory), kind_b = drupe_memory_kind(b->memory);
    DRUPE_TRY(drupe_array_result(a->queue, kind_a < kind_b ? kind_a : kind_b, result, ndim, shape, out));
    drupe_status status = DRUPE_OK;
    if (out->size && p.k == 0) {
        status = drupe_array_assign(out, &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_INT}});
    } else if (out->size) {
        status = as_matrix(a, p.dtype, true, &p.a);
        if (status == DRUPE_OK) status = as_matrix(b, p.dtype, false, &p.b);
        if (status == DRUPE_OK) status = multiply_into(&p, out);
    }
    drupe_array_clear(&p.b);
    drupe_array_clear(&p.a);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}
