/* Linear algebra as functions of the host, and the table of who computes what. */
#include "array/loop.h"
#include "drupe/array_linalg.h"
#include "math/linear.h"
#include "math/product.h"
#include <string.h>

/* The types that LAPACK has, in the order of drupe_blas_type. */
static const drupe_dtype types[DRUPE_BLAS_TYPES] = {DRUPE_FLOAT32, DRUPE_FLOAT64, DRUPE_COMPLEX64,
                                                    DRUPE_COMPLEX128};

static drupe_blas_type type_of(drupe_dtype dtype)
{
    for (int t = 0; t < DRUPE_BLAS_TYPES; t++)
        if (types[t] == dtype) return (drupe_blas_type)t;
    return DRUPE_BLAS_NONE;
}

static drupe_dtype dtype_of(drupe_blas_type type, drupe_linear_element element)
{
    const bool narrow = drupe_blas_real_size(type) == 4;
    switch (element) {
    case DRUPE_LINEAR_SAME: break;
    case DRUPE_LINEAR_REAL: return narrow ? DRUPE_FLOAT32 : DRUPE_FLOAT64;
    case DRUPE_LINEAR_COMPLEX: return narrow ? DRUPE_COMPLEX64 : DRUPE_COMPLEX128;
    case DRUPE_LINEAR_INT64: return DRUPE_INT64;
    }
    return types[type];
}

const char *drupe_array_linear_name(drupe_linear_op op)
{
    return (int)op >= 0 && op < DRUPE_LINEAR_COUNT ? drupe_linear_name(op) : NULL;
}

/* --- Arguments ------------------------------------------------------------------------------------------ */

static drupe_status check_matrices(const char *name, const drupe_array *a, bool square)
{
    char text[192];
    drupe_shape_text(a->ndim, a->shape, text, sizeof text);
    if (type_of(a->dtype) == DRUPE_BLAS_NONE)
        return drupe_error_set(DRUPE_E_INVALID, "%s takes float32, float64, complex64 and complex128, not %s",
                               name, drupe_dtype_name(a->dtype));
    if (a->ndim < 2)
        return drupe_error_set(
            DRUPE_E_INVALID, "%s takes matrices, with 2 dimensions or more, and the shape is %s", name, text);
    if (square && a->shape[a->ndim - 2] != a->shape[a->ndim - 1])
        return drupe_error_set(DRUPE_E_INVALID, "%s takes square matrices, and the shape is %s", name, text);
    return DRUPE_OK;
}

static drupe_status check_second(const char *name, const drupe_array *a, const drupe_array *b)
{
    char first[128], second[128];
    bool good = a->ndim == b->ndim;
    for (int d = 0; good && d < a->ndim - 1; d++) good = a->shape[d] == b->shape[d];
    if (a->queue != b->queue)
        return drupe_error_set(
            DRUPE_E_PLACEMENT,
            "the operands of %s are on different queues: bring them together with to_device()", name);
    if (good && a->dtype == b->dtype) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID,
                           "%s of shapes %s and %s, %s and %s: rows, stacks and types must be equal", name,
                           drupe_shape_text(a->ndim, a->shape, first, sizeof first),
                           drupe_shape_text(b->ndim, b->shape, second, sizeof second),
                           drupe_dtype_name(a->dtype), drupe_dtype_name(b->dtype));
}

static drupe_status describe(drupe_linear_op op, const drupe_array *const *in, drupe_linear *linear)
{
    const char *name = drupe_linear_name(op);
    const drupe_array *a = in[0];
    const bool square = op != DRUPE_LINEAR_QR && op != DRUPE_LINEAR_SVD && op != DRUPE_LINEAR_LSTSQ;
    DRUPE_TRY(check_matrices(name, a, square));
    if (drupe_linear_inputs(op) == 2) {
        DRUPE_TRY(check_second(name, a, in[1]));
        linear->k = in[1]->shape[a->ndim - 1];
    }
    linear->type = type_of(a->dtype);
    linear->m = a->shape[a->ndim - 2];
    linear->n = a->shape[a->ndim - 1];
    linear->count = 1;
    for (int d = 0; d < a->ndim - 2; d++) linear->count *= a->shape[d];
    return drupe_linear_check(linear);
}

/* --- The call ------------------------------------------------------------------------------------------- */

static drupe_status results_make(const drupe_linear *linear, const drupe_array *a, drupe_array *out,
                                 int *count)
{
    drupe_linear_result results[DRUPE_LINEAR_RESULTS];
    const int most = drupe_linear_results(linear, results);
    const int stack = a->ndim - 2;
    for (*count = 0; *count < most; ++*count) {
        const drupe_linear_result *r = &results[*count];
        size_t shape[DRUPE_MAX_DIMS];
        memcpy(shape, a->shape, (size_t)stack * sizeof *shape);
        for (int d = 0; d < r->ndim; d++) shape[stack + d] = r->shape[d];
        DRUPE_TRY(drupe_array_result_beside(a, dtype_of(linear->type, r->element), stack + r->ndim, shape,
                                            &out[*count]));
    }
    return DRUPE_OK;
}

static drupe_status run(const drupe_linear *linear, const drupe_array *inputs, const drupe_array *out,
                        int count)
{
    const int ninputs = drupe_linear_inputs(linear->op);
    const drupe_array *arrays[DRUPE_CALL_ARRAYS];
    bool any = false;
    for (int i = 0; i < ninputs; i++) arrays[i] = &inputs[i];
    for (int i = 0; i < count; i++) {
        arrays[ninputs + i] = &out[i];
        any = any || out[i].size;
    }
    if (!any) return DRUPE_OK;
    const drupe_call call = {.label = drupe_linear_name(linear->op),
                             .fn = drupe_linear_run,
                             .params = linear,
                             .params_size = sizeof *linear,
                             .arrays = arrays,
                             .count = (size_t)(ninputs + count),
                             .reads = (1u << ninputs) - 1,
                             .writes = ((1u << count) - 1) << ninputs};
    return drupe_array_call(&call);
}

drupe_status drupe_array_linear(drupe_linear_op op, unsigned flags, double cutoff,
                                const drupe_array *const *in, drupe_array out[DRUPE_LINEAR_RESULTS],
                                int *count)
{
    drupe_linear linear = {.op = op, .flags = flags, .cutoff = cutoff};
    drupe_array inputs[2] = {{0}};
    *count = 0;
    if ((int)op < 0 || op >= DRUPE_LINEAR_COUNT)
        return drupe_error_set(DRUPE_E_INVALID, "%d is no operation of linear algebra", (int)op);
    DRUPE_TRY(describe(op, in, &linear));
    const double edge = (double)(linear.m > linear.n ? linear.m : linear.n);
    DRUPE_TRY(drupe_queue_pace_heavy(in[0]->queue, (double)linear.count * edge * edge * edge));
    drupe_status status = DRUPE_OK;
    for (int i = 0; status == DRUPE_OK && i < drupe_linear_inputs(op); i++)
        status = drupe_array_contiguous_as(in[i], in[i]->dtype, &inputs[i]);
    if (status == DRUPE_OK) status = results_make(&linear, in[0], out, count);
    if (status == DRUPE_OK) status = run(&linear, inputs, out, *count);
    for (int i = 0; i < 2; i++) drupe_array_clear(&inputs[i]);
    for (int i = 0; status != DRUPE_OK && i < DRUPE_LINEAR_RESULTS; i++) drupe_array_clear(&out[i]);
    return status;
}

/* --- Who serves what ------------------------------------------------------------------------------------ */

static void provider_of_matmul(drupe_dtype dtype, drupe_provider_row *row)
{
    const drupe_blas_type type = type_of(dtype);
    const drupe_provider *provider = NULL;
    if (type != DRUPE_BLAS_NONE) drupe_routine_get(DRUPE_ROUTINE_GEMM, type, &provider);
    *row = (drupe_provider_row){"matmul", dtype, provider ? provider->name : "Drupe",
                                provider ? provider->path : ""};
}

bool drupe_array_provider(size_t index, drupe_provider_row *row)
{
    if (index < DRUPE_DTYPE_COUNT) {
        provider_of_matmul((drupe_dtype)index, row);
        return true;
    }
    index -= DRUPE_DTYPE_COUNT;
    for (int op = 0; op < DRUPE_LINEAR_COUNT; op++)
        for (int t = 0; t < DRUPE_BLAS_TYPES; t++) {
            if (index-- > 0) continue;
            const drupe_provider *provider = drupe_linear_provider((drupe_linear_op)op, (drupe_blas_type)t);
            *row = (drupe_provider_row){drupe_linear_name((drupe_linear_op)op), types[t],
                                        provider ? provider->name : NULL, provider ? provider->path : ""};
            return true;
        }
    return false;
}

void drupe_array_provider_suggest(const char *path, const char *name)
{
    drupe_provider_suggest(path, name);
}
