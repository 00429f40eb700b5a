/* Matrix products, of stacks too.
 *
 * Where the host can address the memory, the whole stack is one function of the host, work of the queue like
 * any other: by BLAS, or by loops of the host (math/product.h). On GPUs it is one kernel for the whole stack,
 * where its matrices follow each other by one stride, else one after the other. Operands that neither can
 * address are copied first; float16 is computed in float32. */
#include "array/kernel_room.h"
#include "array/loop.h"
#include "math/product.h"
#include <stdlib.h>
#include <string.h>

typedef struct product {
    drupe_target *target;
    drupe_dtype dtype; /* that it is computed in */
    int ndim;          /* of the stack */
    size_t shape[DRUPE_MAX_DIMS], count;
    size_t m, n, k;
    drupe_array a, b; /* of `dtype`, with two dimensions or more; their stacks broadcast */
} product;

/* --- By the host ---------------------------------------------------------------------------------------- */

static drupe_status host_run(void *user)
{
    drupe_product_run(user);
    return DRUPE_OK;
}

static drupe_product_type product_type(drupe_dtype dtype)
{
    const size_t size = drupe_dtype_size(dtype);
    const int kind = drupe_dtype_row(dtype)->kind;
    if (kind == KIND_BOOL) return DRUPE_PRODUCT_BOOL;
    if (kind == KIND_FLOAT) return size == 4 ? DRUPE_PRODUCT_FLOAT : DRUPE_PRODUCT_DOUBLE;
    if (kind == KIND_COMPLEX) return size == 8 ? DRUPE_PRODUCT_CFLOAT : DRUPE_PRODUCT_CDOUBLE;
    return size == 1   ? DRUPE_PRODUCT_INT8
           : size == 2 ? DRUPE_PRODUCT_INT16
           : size == 4 ? DRUPE_PRODUCT_INT32
                       : DRUPE_PRODUCT_INT64;
}

static void describe(const product *p, const drupe_array *array, drupe_product_operand *operand)
{
    operand->data = drupe_array_pointer(array);
    operand->row = array->strides[array->ndim - 2];
    operand->column = array->strides[array->ndim - 1];
    for (int d = 0; d < p->ndim; d++) operand->stack[d] = drupe_layout_stride(array, p->ndim + 2, d);
}

static drupe_status host_operand(const product *p, drupe_array *array, drupe_product *job,
                                 drupe_product_operand *operand)
{
    drupe_array packed = {0};
    describe(p, array, operand);
    if (drupe_product_blas(job->type) == DRUPE_BLAS_NONE ||
        drupe_product_addressable(operand, array->shape[array->ndim - 2], array->shape[array->ndim - 1]))
        return DRUPE_OK;
    DRUPE_TRY(drupe_array_contiguous_as(array, array->dtype, &packed));
    drupe_array_clear(array);
    *array = packed;
    describe(p, array, operand);
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

static drupe_status multiply_on_host(product *p, const drupe_array *out)
{
    drupe_product *job = calloc(1, sizeof(*job));
    if (!job) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a matrix product.");
    job->type = product_type(p->dtype);
    job->m = p->m;
    job->n = p->n;
    job->k = p->k;
    job->ndim = p->ndim;
    memcpy(job->shape, p->shape, (size_t)p->ndim * sizeof *p->shape);
    drupe_status status = host_operand(p, &p->a, job, &job->a);
    if (status == DRUPE_OK) status = host_operand(p, &p->b, job, &job->b);
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
    return drupe_submit_host(&s, host_run, job, NULL);
}

/* --- By kernels ----------------------------------------------------------------------------------------- */

static drupe_status multiply_matrix(product *p, const drupe_array *out)
{
    drupe_range range;
    const int last = p->b.ndim - 1;
    kernel_parts key = {SHAPE_MATMUL, 0, 0, (int32_t)p->dtype, (int32_t)p->dtype, {-1, -1, -1}};
    const drupe_matmul_params params = {(drupe_i64)p->m,
                                        (drupe_i64)p->n,
                                        (drupe_i64)p->k,
                                        p->a.strides[p->a.ndim - 2],
                                        p->a.strides[p->a.ndim - 1],
                                        p->b.strides[last - 1]};
    void *pointers[] = {drupe_array_pointer(out), drupe_array_pointer(&p->a), drupe_array_pointer(&p->b)};
    drupe_arg args[4];
    for (int i = 0; i < 3; i++) args[i] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &pointers[i]};
    args[3] = (drupe_arg){DRUPE_ARG_VALUE, sizeof(params), &params};
    drupe_target_range(p->target, p->m * ((p->n + 63) / 64), 16384 / (p->k < 16384 ? p->k : 16384), &range);
    drupe_access accesses[3];
    struct drupe_memory *const memories[] = {out->memory, p->a.memory, p->b.memory, NULL};
    const drupe_effects effects = {
        .reads = 2 | 4, .writes = 1, .replaces = p->count == 1 && drupe_array_covers(out)};
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

/* Matrix number `index` of a stack, borrowed. */
static drupe_array matrix_at(const product *p, const drupe_array *stack, size_t index)
{
    drupe_array matrix = *stack;
    ptrdiff_t offset = 0;
    for (int d = p->ndim - 1; d >= 0; d--) {
        offset += (ptrdiff_t)(index % p->shape[d]) * drupe_layout_stride(stack, p->ndim + 2, d);
        index /= p->shape[d];
    }
    matrix.offset = (size_t)((ptrdiff_t)stack->offset + offset);
    matrix.ndim = 2;
    for (int d = 0; d < 2; d++) {
        matrix.shape[d] = stack->shape[stack->ndim - 2 + d];
        matrix.strides[d] = stack->strides[stack->ndim - 2 + d];
    }
    matrix.size = matrix.shape[0] * matrix.shape[1];
    return matrix;
}

static drupe_status multiply_by_kernels(product *p, const drupe_array *out)
{
    if (p->n > 1 && p->b.strides[p->b.ndim - 1] != 1) {
        drupe_array packed = {0};
        DRUPE_TRY(drupe_array_contiguous_as(&p->b, p->dtype, &packed));
        drupe_array_clear(&p->b);
        p->b = packed;
    }
    for (size_t i = 0; i < p->count; i++) {
        product one = *p;
        one.a = matrix_at(p, &p->a, i);
        one.b = matrix_at(p, &p->b, i);
        const drupe_array result = matrix_at(p, out, i);
        DRUPE_TRY(multiply_matrix(&one, &result));
    }
    return DRUPE_OK;
}

/* The stride by which the matrices of a stack follow each other; false: there is no such. */
static bool stack_stride(const product *p, const drupe_array *array, drupe_i64 *stride)
{
    bool first = true;
    ptrdiff_t next = 0;
    *stride = 0;
    for (int d = p->ndim - 1; d >= 0; d--) {
        const ptrdiff_t step = drupe_layout_stride(array, p->ndim + 2, d);
        if (p->shape[d] == 1) continue;
        if (!first && step != next) return false;
        if (first) *stride = step;
        first = false;
        next = step * (ptrdiff_t)p->shape[d];
    }
    return true;
}

static drupe_status multiply_on_gpu(product *p, const drupe_array *out)
{
    const drupe_array *a = &p->a, *b = &p->b;
    drupe_product_params params = {.m = (drupe_i64)p->m,
                                   .n = (drupe_i64)p->n,
                                   .k = (drupe_i64)p->k,
                                   .a_row = a->strides[a->ndim - 2],
                                   .a_column = a->strides[a->ndim - 1],
                                   .b_row = b->strides[b->ndim - 2],
                                   .b_column = b->strides[b->ndim - 1],
                                   .count = (drupe_i64)p->count};
    if (stack_stride(p, a, &params.a_stack) && stack_stride(p, b, &params.b_stack))
        return drupe_kernel_product(p->target, p->dtype, &params, a, b, out);
    params.count = 1;
    for (size_t i = 0; i < p->count; i++) {
        const drupe_array left = matrix_at(p, a, i), right = matrix_at(p, b, i),
                          result = matrix_at(p, out, i);
        DRUPE_TRY(drupe_kernel_product(p->target, p->dtype, &params, &left, &right, &result));
    }
    return DRUPE_OK;
}

/* --- The whole ------------------------------------------------------------------------------------------ */

static drupe_status check_operands(const drupe_array *a, const drupe_array *b, const drupe_array *out)
{
    char first[128], second[128];
    if (a->ndim == 0 || b->ndim == 0)
        return drupe_error_set(DRUPE_E_INVALID,
                               "matmul does not take zero-dimensional operands: use multiply");
    if (a->shape[a->ndim - 1] != b->shape[b->ndim == 1 ? 0 : b->ndim - 2])
        return drupe_error_set(
            DRUPE_E_INVALID,
            "matmul of shapes %s and %s: the last axis of the first must be as long as the "
            "%s axis of the second",
            drupe_shape_text(a->ndim, a->shape, first, sizeof(first)),
            drupe_shape_text(b->ndim, b->shape, second, sizeof(second)),
            b->ndim > 2 ? "last but one" : "first");
    DRUPE_TRY(drupe_array_same_queue("the operands of matmul", a, b));
    return out->memory ? drupe_array_same_queue("the operands of matmul", a, out) : DRUPE_OK;
}

/* Whether one matrix has more elements than its memory, as a broadcast one may have: up to 2^62 in one
 * byte. It is computed on a copy, so that whether there is memory for it bounds how long a product takes. */
static bool exceeds_memory(const drupe_array *array)
{
    size_t elements = 1;
    for (int d = array->ndim > 2 ? array->ndim - 2 : 0; d < array->ndim; d++) elements *= array->shape[d];
    return elements > drupe_memory_size(array->memory) / drupe_dtype_size(array->dtype);
}

/* A view in the product's type: a vector on the left is a row, on the right a column. */
static drupe_status as_matrices(const drupe_array *array, drupe_dtype dtype, bool left, drupe_array *matrices)
{
    if (array->dtype == dtype && !exceeds_memory(array))
        drupe_array_view(array, matrices);
    else
        DRUPE_TRY(drupe_array_contiguous_as(array, dtype, matrices));
    if (matrices->ndim > 1) return DRUPE_OK;
    return drupe_array_insert_axis(matrices, left ? 0 : 1);
}

/* The shape of the stack, that both broadcast to. */
static drupe_status stack_shape(const drupe_array *a, const drupe_array *b, product *p)
{
    drupe_array stacks[2] = {*a, *b};
    const drupe_array *const pair[] = {&stacks[0], &stacks[1]};
    for (int i = 0; i < 2; i++) stacks[i].ndim = stacks[i].ndim > 2 ? stacks[i].ndim - 2 : 0;
    p->count = 1;
    DRUPE_TRY(drupe_shape_broadcast(pair, 2, &p->ndim, p->shape));
    for (int d = 0; d < p->ndim; d++) p->count *= p->shape[d];
    return DRUPE_OK;
}

/* The result may be stored in another type than the product is computed in. */
static drupe_status multiply(product *p, const drupe_array *a, const drupe_array *b, const drupe_array *out)
{
    drupe_array wide = {0};
    drupe_status status = as_matrices(a, p->dtype, true, &p->a);
    if (status == DRUPE_OK) status = as_matrices(b, p->dtype, false, &p->b);
    if (status == DRUPE_OK && out->dtype != p->dtype)
        status = drupe_array_result(out->queue, DRUPE_MEM_DEVICE, p->dtype, out->ndim, out->shape, &wide);
    if (status != DRUPE_OK) return status;
    drupe_array target = wide.memory ? wide : *out; /* borrowed */
    /* As kernels see it, with rows and columns. */
    const drupe_array whole = target;
    if (a->ndim == 1) status = drupe_array_insert_axis(&target, p->ndim);
    if (status == DRUPE_OK && b->ndim == 1) status = drupe_array_insert_axis(&target, p->ndim + 1);
    if (status == DRUPE_OK && p->target->cpu && !p->target->gpu_form)
        status = multiply_on_host(p, &whole);
    else if (status == DRUPE_OK && p->target->gpu_form && p->target->group >= DRUPE_PRODUCT_LEAST)
        status = multiply_on_gpu(p, &target);
    else if (status == DRUPE_OK)
        status = multiply_by_kernels(p, &target);
    if (status == DRUPE_OK && wide.memory) status = drupe_array_assign(out, &(drupe_operand){.array = &wide});
    drupe_array_clear(&wide);
    return status;
}

/* Into an array of the product's shape, and of a type that `p` may have to be cast to. */
static drupe_status fill(product *p, const drupe_array *a, const drupe_array *b, const drupe_array *out)
{
    drupe_status status = DRUPE_OK;
    if (out->size && p->k == 0)
        status = drupe_array_assign(out, &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_INT}});
    else if (out->size)
        status = multiply(p, a, b, out);
    drupe_array_clear(&p->b);
    drupe_array_clear(&p->a);
    return status;
}

/* The product goes to where it is wanted if that is one block of memory beside the operands, else through a
 * copy. */
static drupe_status fill_given(product *p, const drupe_array *a, const drupe_array *b, drupe_dtype dtype,
                               const drupe_array *out)
{
    if (out->dtype == dtype && drupe_array_contiguous(out) && !drupe_layout_overlap(out, a) &&
        !drupe_layout_overlap(out, b))
        return fill(p, a, b, out);
    drupe_array result = {0};
    DRUPE_TRY(drupe_array_result(out->queue, DRUPE_MEM_DEVICE, dtype, out->ndim, out->shape, &result));
    drupe_status status = fill(p, a, b, &result);
    if (status == DRUPE_OK) status = drupe_array_assign(out, &(drupe_operand){.array = &result});
    drupe_array_clear(&result);
    return status;
}

drupe_status drupe_array_matmul(const drupe_array *a, const drupe_array *b, drupe_array *out)
{
    product p = {0};
    size_t shape[DRUPE_MAX_DIMS + 2];
    DRUPE_TRY(check_operands(a, b, out));
    DRUPE_TRY(drupe_target_get(a->queue, &p.target));
    DRUPE_TRY(stack_shape(a, b, &p));
    const drupe_dtype dtype = drupe_dtype_available(drupe_dtype_promote(a->dtype, b->dtype), p.target->fp64);
    p.dtype = drupe_dtype_row(dtype)->compute;
    p.m = a->ndim > 1 ? a->shape[a->ndim - 2] : 1;
    p.n = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
    p.k = a->shape[a->ndim - 1];
    int ndim = p.ndim;
    memcpy(shape, p.shape, (size_t)ndim * sizeof *shape);
    if (a->ndim > 1) shape[ndim++] = p.m;
    if (b->ndim > 1) shape[ndim++] = p.n;
    if (out->memory) DRUPE_TRY(drupe_array_check_out("matmul", out, dtype, ndim, shape));
    DRUPE_TRY(drupe_queue_pace_heavy(a->queue, (double)p.count * (double)p.m * (double)p.n * (double)p.k));
    if (out->memory) return fill_given(&p, a, b, dtype, out);
    const drupe_mem_kind kind_a = drupe_memory_kind(a->memory), kind_b = drupe_memory_kind(b->memory);
    DRUPE_TRY(drupe_array_result(a->queue, kind_a < kind_b ? kind_a : kind_b, dtype, ndim, shape, out));
    drupe_status status = fill(&p, a, b, out);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}
