/* Fourier transforms of arrays: checks, and calls of math/fft.h as work of the queue. */
#include "array/loop.h"
#include "drupe/array_fft.h"
#include "math/fft.h"

static drupe_status fft_run(void *const *pointers, const void *params)
{
    return drupe_fft_run(params, pointers[0], pointers[1]);
}

/* In place. */
static drupe_status fft_run_over(void *const *pointers, const void *params)
{
    return drupe_fft_run(params, pointers[0], pointers[0]);
}

static drupe_status check(const drupe_array *in, int axis, size_t n, drupe_fft_result result)
{
    if (axis < 0 || axis >= in->ndim)
        return drupe_error_set(DRUPE_E_INVALID,
                               "axis %d of a Fourier transform is none of an array of %d dimensions", axis,
                               in->ndim);
    if (n == 0)
        return drupe_error_set(DRUPE_E_INVALID,
                               "Invalid number of FFT data points (0) specified: a transform has one "
                               "at least");
    if (result == DRUPE_FFT_HALF && drupe_dtype_kind(in->dtype) == 'c')
        return drupe_error_set(DRUPE_E_INVALID, "a real transform does not take %s: use fft(), or x.real",
                               drupe_dtype_name(in->dtype));
    return DRUPE_OK;
}

static bool wide_of(const drupe_array *in, const drupe_target *target)
{
    const drupe_dtype dtype = in->dtype;
    return target->fp64 && dtype != DRUPE_FLOAT16 && dtype != DRUPE_FLOAT32 && dtype != DRUPE_COMPLEX64;
}

static void fft_describe(const drupe_array *in, int axis, drupe_fft *fft)
{
    fft->outer = fft->inner = 1;
    fft->length = in->shape[axis];
    for (int i = 0; i < in->ndim; i++) {
        if (i < axis) fft->outer *= in->shape[i];
        if (i > axis) fft->inner *= in->shape[i];
    }
}

static drupe_status submit(const drupe_fft *fft, const drupe_array *in, const drupe_array *out)
{
    const drupe_array *arrays[] = {in, out};
    const bool over = in->memory == out->memory;
    const drupe_call call = {.label = "fft",
                             .fn = over ? fft_run_over : fft_run,
                             .params = fft,
                             .params_size = sizeof *fft,
                             .arrays = arrays,
                             .count = over ? 1 : 2,
                             .reads = 1,
                             .writes = over ? 1 : 2};
    return drupe_array_call(&call);
}

/* `in` in the type that the loops take, C-contiguous; `fft` complete but for its scale. */
static drupe_status prepare(const drupe_array *in, int axis, size_t n, drupe_fft_result result,
                            drupe_fft *fft, drupe_array *taken)
{
    drupe_target *target;
    DRUPE_TRY(drupe_target_get(in->queue, &target));
    const bool real = result != DRUPE_FFT_REALS && drupe_dtype_kind(in->dtype) != 'c';
    fft->wide = wide_of(in, target);
    fft->n = n;
    fft->kind = result == DRUPE_FFT_REALS  ? DRUPE_FFT_HALF_REAL
                : result == DRUPE_FFT_HALF ? DRUPE_FFT_REAL_HALF
                : real                     ? DRUPE_FFT_REAL
                                           : DRUPE_FFT_COMPLEX;
    fft_describe(in, axis, fft);
    const drupe_dtype reals = fft->wide ? DRUPE_FLOAT64 : DRUPE_FLOAT32;
    return drupe_array_contiguous_as(in,
                                     real        ? reals
                                     : fft->wide ? DRUPE_COMPLEX128
                                                 : DRUPE_COMPLEX64,
                                     taken);
}

drupe_status drupe_array_fft(const drupe_array *in, int axis, size_t n, drupe_fft_result result, bool inverse,
                             double scale, bool spent, drupe_array *out)
{
    drupe_fft fft = {.inverse = inverse, .scale = scale};
    drupe_array taken = {0};
    size_t shape[DRUPE_MAX_DIMS];
    DRUPE_TRY(check(in, axis, n, result));
    DRUPE_TRY(prepare(in, axis, n, result, &fft, &taken));
    for (int i = 0; i < in->ndim; i++) shape[i] = i == axis ? drupe_fft_result_length(&fft) : in->shape[i];
    const bool own = spent || taken.memory != in->memory;
    drupe_status status = DRUPE_OK;
    if (own && fft.kind == DRUPE_FFT_COMPLEX && n == fft.length) {
        drupe_array_view(&taken, out);
    } else {
        const drupe_dtype reals = fft.wide ? DRUPE_FLOAT64 : DRUPE_FLOAT32;
        const drupe_dtype pairs = fft.wide ? DRUPE_COMPLEX128 : DRUPE_COMPLEX64;
        status = drupe_array_result(in->queue, DRUPE_MEM_DEVICE, result == DRUPE_FFT_REALS ? reals : pairs,
                                    in->ndim, shape, out);
    }
    if (status == DRUPE_OK && out->size)
        status = taken.size ? submit(&fft, &taken, out) : drupe_array_zero(out);
    drupe_array_clear(&taken);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}
