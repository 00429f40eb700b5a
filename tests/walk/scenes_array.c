/* Arrays. */
#include "walk.h"
#include <string.h>

static const size_t shape[2] = {20, 30};

static drupe_status fresh(struct walker *w, int i, drupe_dtype dtype)
{
    GO(drupe_array_empty(w->queue, DRUPE_MEM_DEVICE, dtype, 2, shape, &w->arrays[i]));
    return DRUPE_OK;
}

static drupe_status compute(struct walker *w)
{
    static float values[20 * 30];
    drupe_scalar zero = {.kind = DRUPE_SCALAR_KIND_INT}, one = {.kind = DRUPE_SCALAR_KIND_INT, .i = 1};
    GO(walk_open(w));
    for (int i = 0; i < 3; i++) GO(fresh(w, i, DRUPE_FLOAT32));
    size_t whole = 20 * 30;
    drupe_array flat;
    drupe_array_view(&w->arrays[0], &flat);
    drupe_array_staging_allow(false);
    if (drupe_array_staging_allowed() || drupe_array_staged()) return DRUPE_E_INTERNAL;
    drupe_array_staging_allow(true);
    drupe_status status = drupe_array_reshape(&flat, 1, &whole);
    if (status == DRUPE_OK) status = drupe_array_sequence(&flat, zero, one);
    drupe_array_clear(&flat);
    GO(status);
    drupe_operand in[2] = {{.array = &w->arrays[0]}, {.scalar = one}};
    GO(drupe_array_assign(&w->arrays[1], &in[1]));
    in[1] = (drupe_operand){.array = &w->arrays[1]};
    GO(drupe_array_apply(DRUPE_OP_ADD, in, 2, &w->arrays[2]));
    GO(drupe_array_apply_over(DRUPE_OP_ADD,
                              &(drupe_operand[2]){{.array = &w->arrays[2]}, {.scalar = zero}}[0], 2, 0,
                              &w->arrays[6]));
    if (drupe_memory_sole(w->arrays[2].memory, w->queue)) return DRUPE_E_INTERNAL; /* a view has it, too */
    drupe_array_clear(&w->arrays[6]);
    GO(drupe_array_reduce(DRUPE_OP_SUM, &w->arrays[2], 3, false, DRUPE_DTYPE_NONE, &w->arrays[3]));
    if (!drupe_array_to_host_now(&w->arrays[2], values)) {
        GO(drupe_array_to_host(&w->arrays[2], values, NULL, &w->events[0]));
        GO(drupe_event_wait(w->events[0], LONG));
    }
    if (values[0] != 1 || values[whole - 1] != (float)whole) return DRUPE_E_INTERNAL;
    if (!drupe_array_from_host_now(&w->arrays[1], values))
        GO(drupe_array_from_host(&w->arrays[1], values, true, NULL));
    int axes[2] = {1, 0};
    GO(drupe_array_permute(&w->arrays[1], axes));
    GO(drupe_array_matmul(&w->arrays[0], &w->arrays[1], &w->arrays[4]));
    GO(drupe_array_result(w->queue, DRUPE_MEM_DEVICE, DRUPE_FLOAT32, 2, shape, &w->arrays[5]));
    GO(drupe_array_assign(&w->arrays[5], &(drupe_operand){.scalar = one}));
    GO(drupe_queue_wait(w->queue, LONG));
    return DRUPE_OK;
}

static drupe_status linear(struct walker *w)
{
    static const size_t square[2] = {2, 2};
    static float values[4];
    const drupe_scalar two = {.kind = DRUPE_SCALAR_KIND_INT, .i = 2};
    drupe_array results[DRUPE_LINEAR_RESULTS] = {{0}};
    drupe_provider_row row;
    size_t rows = 0;
    int count;
    GO(walk_open(w));
    drupe_array_provider_suggest("libnone.so.0", "nobody");
    while (drupe_array_provider(rows, &row)) rows++;
    if (!rows || strcmp(drupe_array_linear_name(DRUPE_LINEAR_INV), "inv") != 0) return DRUPE_E_INTERNAL;
    GO(drupe_array_empty(w->queue, DRUPE_MEM_DEVICE, DRUPE_FLOAT32, 2, square, &w->arrays[0]));
    GO(drupe_array_assign(&w->arrays[0], &(drupe_operand){.scalar = two}));
    drupe_array_view(&w->arrays[0], &w->arrays[1]);
    static const drupe_slice first[2] = {{.count = 1, .step = 1}, {.count = 1, .step = 1}};
    GO(drupe_array_slice(&w->arrays[1], first));
    const drupe_array *in[] = {&w->arrays[1]};
    GO(drupe_array_linear(DRUPE_LINEAR_INV, 0, 0, in, results, &count));
    w->arrays[2] = results[0];
    GO(drupe_array_to_host(&w->arrays[2], values, NULL, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    return count == 1 && values[0] == 0.5f ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* The same by instrumented kernels. */
static drupe_status compute_checked(struct walker *w)
{
    drupe_check_begin();
    w->checked = true;
    return compute(w);
}

static drupe_status views(struct walker *w)
{
    GO(walk_open(w));
    GO(fresh(w, 0, DRUPE_INT64));
    drupe_array_view(&w->arrays[0], &w->arrays[1]);
    drupe_slice slices[2] = {{.start = 1, .step = 2, .count = 5}, {.start = 0, .step = 1, .count = 30}};
    GO(drupe_array_slice(&w->arrays[1], slices));
    GO(drupe_array_insert_axis(&w->arrays[1], 0));
    size_t larger[4] = {2, 3, 5, 30}, together[DRUPE_MAX_DIMS];
    GO(drupe_array_broadcast(&w->arrays[1], 4, larger));
    const drupe_array *both[2] = {&w->arrays[1], &w->arrays[1]};
    int ndim;
    GO(drupe_shape_broadcast(both, 2, &ndim, together));
    drupe_scalar one = {.kind = DRUPE_SCALAR_KIND_INT, .i = 1};
    drupe_operand scalar = {.scalar = one};
    GO(drupe_array_assign(&w->arrays[0], &scalar));
    static int64_t values[2 * 3 * 5 * 30];
    GO(drupe_array_to_host(&w->arrays[1], values, NULL,
                           &w->events[0])); /* not contiguous: packed on the device */
    GO(drupe_event_wait(w->events[0], LONG));
    GO(drupe_array_over(w->arrays[0].memory, w->queue, DRUPE_INT64, 1, &shape[0], NULL, 0, &w->arrays[2]));
    (void)drupe_array_host_reaches(&w->arrays[2]);
    bool right = !drupe_array_contiguous(&w->arrays[1]) && drupe_array_pointer(&w->arrays[2]) &&
                 values[0] == 1 && drupe_dtype_size(DRUPE_INT64) == 8 &&
                 drupe_dtype_find("int64") == DRUPE_INT64 && *drupe_dtype_name(DRUPE_INT64) &&
                 *drupe_op_name(DRUPE_OP_ADD) && drupe_op_arity(DRUPE_OP_ADD) == 2 &&
                 drupe_op_kind_of(DRUPE_OP_ADD) == DRUPE_OP_ELEMENTWISE &&
                 drupe_dtype_promote(DRUPE_INT32, DRUPE_INT64) == DRUPE_INT64 &&
                 drupe_op_result(DRUPE_OP_ADD, &scalar, 1) != DRUPE_INT32;
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status indexing(struct walker *w)
{
    const drupe_scalar zero = {.kind = DRUPE_SCALAR_KIND_INT}, one = {.kind = DRUPE_SCALAR_KIND_INT, .i = 1};
    const drupe_operand scalar = {.scalar = one};
    const size_t n = 30;
    GO(walk_open(w));
    drupe_array *x = &w->arrays[0], *index = &w->arrays[1], *mask = &w->arrays[2], *counts = &w->arrays[3];
    drupe_array *out = &w->arrays[4], *values = &w->arrays[5];
    GO(drupe_array_empty(w->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &n, x));
    GO(drupe_array_empty(w->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &n, index));
    GO(drupe_array_sequence(x, zero, one));
    GO(drupe_array_sequence(index, zero, one));
    const drupe_index along = {index, 0, 0};
    const drupe_selection selection = {&along, 1, 0, DRUPE_INDEX_RAISE};
    GO(drupe_array_gather(x, &selection, out));
    GO(drupe_array_scatter(x, &selection, &scalar));
    drupe_array_clear(out);
    GO(drupe_array_gather_along(x, index, 0, DRUPE_INDEX_CLIP, out));
    GO(drupe_array_scatter_along(x, index, 0, &(drupe_operand){.array = out}));
    drupe_array_clear(out);
    GO(drupe_array_apply(DRUPE_OP_GREATER, (drupe_operand[2]){{.array = x}, {.scalar = zero}}, 2, mask));
    GO(drupe_array_mask_count(mask, counts));
    GO(drupe_array_mask_pick(x, mask, counts, n, values));
    GO(drupe_array_mask_assign(x, mask, &(drupe_operand){.array = values}));
    GO(drupe_array_mask_assign(x, mask, &scalar));
    GO(drupe_array_mask_positions(mask, counts, n, out));
    drupe_array_clear(out);
    drupe_array_clear(counts);
    GO(drupe_array_repeat_count(x, counts));
    GO(drupe_array_repeat_positions(x, n, out));
    static int64_t numbers[30];
    GO(drupe_array_to_host(out, numbers, NULL, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    GO(drupe_queue_wait(w->queue, LONG));
    return numbers[29] == 29 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* Random numbers, and their spectrum and back. */
static drupe_status numbers(struct walker *w)
{
    static float values[2][20 * 30];
    const size_t words = DRUPE_RANDOM_WORDS;
    const drupe_random_request uniform = {.what = DRUPE_RANDOM_UNIFORM};
    GO(walk_open(w));
    GO(drupe_array_empty(w->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &words, &w->arrays[0]));
    GO(drupe_array_assign(&w->arrays[0], &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_INT}}));
    GO(drupe_array_random(&w->arrays[0], &uniform, DRUPE_FLOAT32, 2, shape, &w->arrays[1]));
    GO(drupe_array_fft(&w->arrays[1], 1, shape[1], DRUPE_FFT_HALF, false, 1, false, &w->arrays[2]));
    GO(drupe_array_fft(&w->arrays[2], 1, shape[1], DRUPE_FFT_REALS, true, 1.0 / 30, true, &w->arrays[3]));
    for (int i = 0; i < 2; i++)
        GO(drupe_array_to_host(&w->arrays[1 + 2 * i], values[i], NULL, &w->events[i]));
    for (int i = 0; i < 2; i++) GO(drupe_event_wait(w->events[i], LONG));
    for (size_t i = 0; i < shape[0] * shape[1]; i++)
        if (values[0][i] - values[1][i] > 1e-5f || values[1][i] - values[0][i] > 1e-5f)
            return DRUPE_E_INTERNAL;
    return DRUPE_OK;
}

/* Types and numbers: none of these works on a device. */
static drupe_status numbers_alone(void)
{
    float one[2];
    drupe_scalar scalar = {.kind = DRUPE_SCALAR_KIND_COMPLEX, .f = 1, .im = 2};
    GO(drupe_scalar_bytes(&scalar, DRUPE_COMPLEX64, one));
    drupe_scalar_load(one, DRUPE_COMPLEX64, &scalar);
    const bool right = scalar.f == 1 && scalar.im == 2 && drupe_dtype_kind(DRUPE_UINT8) == 'u' &&
                       drupe_dtype_real(DRUPE_COMPLEX64) == DRUPE_FLOAT32;
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* Numbers from 29 down: their order, places and sets. */
static drupe_status order(struct walker *w)
{
    const drupe_scalar most = {.kind = DRUPE_SCALAR_KIND_INT, .i = 29},
                       down = {.kind = DRUPE_SCALAR_KIND_INT, .i = -1};
    const size_t n = 30;
    static int64_t last, count; /* a copy that nobody waits for any more writes there, too */
    drupe_array *x = &w->arrays[0], *out = &w->arrays[1], *indices = &w->arrays[2], *sorted = &w->arrays[3];
    drupe_array *number = &w->arrays[4];
    GO(walk_open(w));
    GO(numbers_alone());
    GO(drupe_array_empty(w->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &n, x));
    GO(drupe_array_sequence(x, most, down));
    GO(drupe_array_cumulate(x, 0, DRUPE_DTYPE_NONE, false, false, out));
    drupe_array_clear(out);
    GO(drupe_array_argreduce(x, -1, false, true, out));
    drupe_array_clear(out);
    GO(drupe_array_sort(x, 0, false, sorted, indices));
    GO(drupe_array_search(x, sorted, false, indices, out));
    drupe_array_clear(out);
    GO(drupe_array_isin(x, sorted, false, out));
    drupe_array_clear(out);
    GO(drupe_array_bincount(x, NULL, n, out));
    GO(drupe_array_unique(out, true, &(drupe_distinct){.count = number}));
    GO(drupe_array_to_host(number, &count, NULL, &w->events[0]));
    drupe_array_clear(out);
    GO(drupe_array_slice(sorted, &(drupe_slice){29, 1, 1, false}));
    GO(drupe_array_to_host(sorted, &last, NULL, &w->events[1]));
    for (int i = 0; i < 2; i++) GO(drupe_event_wait(w->events[i], LONG));
    return last == 29 && count == 1 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* Between points: in float64. */
static drupe_status between(struct walker *w)
{
    const drupe_scalar zero = {.kind = DRUPE_SCALAR_KIND_INT}, one = {.kind = DRUPE_SCALAR_KIND_INT, .i = 1};
    const size_t n = 30;
    static double values[30];
    GO(walk_open(w));
    if (!drupe_device_number(w->device, DRUPE_INFO_HAS_FP64, 0)) return DRUPE_OK;
    GO(drupe_array_empty(w->queue, DRUPE_MEM_DEVICE, DRUPE_FLOAT64, 1, &n, &w->arrays[0]));
    GO(drupe_array_sequence(&w->arrays[0], zero, one));
    const drupe_array *x = &w->arrays[0];
    GO(drupe_array_interp(x, x, x, -1, -1, &w->arrays[1]));
    GO(drupe_array_to_host(&w->arrays[1], values, NULL, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    return values[29] == 29 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

const walk_scene walk_array_scenes[] = {{"order", order, true},
                                        {"between", between, false},
                                        {"compute", compute, true},
                                        {"numbers", numbers, false},
                                        {"compute checked", compute_checked, true},
                                        {"views", views, true},
                                        {"indexing", indexing, true},
                                        {"linear", linear, true},
                                        {NULL, NULL, false}};
