/* The kernels for GPUs of what is a loop of the host elsewhere. */
#include "array/kernel_room.h"
#include "oclgrind/runner.h"

enum { N = 37, GROUP = 16 };

static void run(runner *r, int shape, int variant, int dtype, const span *spans, size_t count,
                const void *params, size_t params_size)
{
    launch l = {.key = drupe_kernel_parts(shape, variant, (drupe_dtype)dtype),
                .params = params,
                .params_size = params_size,
                .local = shape == SHAPE_PRODUCT ? DRUPE_PRODUCT_LEAST : GROUP,
                .global = 2 * (shape == SHAPE_PRODUCT ? DRUPE_PRODUCT_LEAST : GROUP)};
    if (shape == SHAPE_SCAN && variant & SCAN_SUMS) l.key.out = l.key.compute;
    for (size_t i = 0; i < count; i++) l.spans[i] = spans[i];
    runner_launch(r, &l);
}
#define RUN(shape, variant, dtype, params, ...)                                                              \
    run(r, shape, variant, dtype, (const span[]){__VA_ARGS__},                                               \
        sizeof((const span[]){__VA_ARGS__}) / sizeof(span), &(params), sizeof(params))

static void run_arg(runner *r, int dtype)
{
    const drupe_arg_params rows = {3, N, N, 1, 1, 4, 0}, columns = {5, 7, 7, 5, 2, 1, 0},
                           listed = {5, 2, 7, 5, 1, 2, 1};
    RUN(SHAPE_ARG, 0, dtype, rows, {DRUPE_INT64, 3, 0}, {dtype, 3 * N, 0}, {-1, 1, 0});
    RUN(SHAPE_ARG, 0, dtype, columns, {DRUPE_INT64, 10, 0}, {dtype, 35, 0}, {-1, 1, 0});
    RUN(SHAPE_ARG, 1, dtype, listed, {DRUPE_INT64, 5, 0}, {dtype, 35, 0}, {DRUPE_INT64, 10, CONTENT_ZERO});
}

static void run_scan(runner *r, int dtype)
{
    const int sums = (int)drupe_dtype_row((drupe_dtype)dtype)->compute;
    const drupe_scan_params row = {2, 200, 1, 8 * GROUP, 2, 1, 0}, column = {2, 7, 5, 4, 2, 0, 0};
    RUN(SHAPE_SCAN, SCAN_SUMS, dtype, row, {sums, 4, 0}, {dtype, 400, 0}, {-1, 1, 0});
    RUN(SHAPE_SCAN, SCAN_PRODUCT, dtype, row, {dtype, 402, 0}, {dtype, 400, 0}, {sums, 4, 0});
    RUN(SHAPE_SCAN, SCAN_COLUMN | SCAN_SUMS, dtype, column, {sums, 20, 0}, {dtype, 70, 0}, {-1, 1, 0});
    RUN(SHAPE_SCAN, SCAN_COLUMN, dtype, column, {dtype, 70, 0}, {dtype, 70, 0}, {sums, 20, 0});
}

static void run_product(runner *r, int dtype)
{
    /* Two of the smallest tiles down, one across. The last part of the sum has 3 steps. */
    drupe_product_params p = {19, 7, N, 2 * N, 2, 7, 1, 0, 7 * N, 2, 2, N - 3, 1, 0, 1, 0};
    const span out = {dtype, 2 * 2 * 19 * 7, 0}, a = {dtype, 38 * N - 1, 0}, b = {dtype, 2 * 7 * N, 0};
    for (int each = 2; each <= (drupe_dtype_size((drupe_dtype)dtype) < 16 ? 8 : 4); each *= 2)
        RUN(SHAPE_PRODUCT, each, dtype, p, out, a, b);
    RUN(SHAPE_PRODUCT, 2 | PRODUCT_FAR, dtype, p, out, a, b);
    for (int along = 0; along < 2; along++) {
        p.n = 1;
        p.a_along = along;
        p.team = along ? 8 : 2;
        RUN(SHAPE_PRODUCT, 0, dtype, p, {dtype, 2 * 2 * 19, 0}, a, b);
    }
}

static void run_sort(runner *r, int dtype)
{
    const int keys =
        drupe_dtype_size(drupe_dtype_row((drupe_dtype)dtype)->real) == 8 ? DRUPE_UINT64 : DRUPE_UINT32;
    const int bytes = (int)drupe_dtype_bytes(drupe_dtype_size((drupe_dtype)dtype));
    const drupe_sort_params fresh = {2, N, 1, 0, 0, 0, 0}, placed = {2, N, 1, 4, 1, 1, 2},
                            one = {1, N, 1, 0, 0, 0, 0};
    const span elements = {dtype, 2 * N, 0}, places = {DRUPE_INT32, 2 * N, CONTENT_ZERO};
    RUN(SHAPE_SORT, 0, dtype, fresh, {keys, 2 * N, 0}, {DRUPE_INT32, 2 * N, 0}, elements);
    RUN(SHAPE_SORT, 0, dtype, placed, {keys, 2 * N, 0}, places, elements);
    RUN(SHAPE_SORT, 1, keys, fresh, {DRUPE_INT32, 32, 0}, {keys, 2 * N, 0});
    RUN(SHAPE_SORT, 2, keys, one, {keys, N, 0}, {DRUPE_INT32, N, 0}, {keys, N, CONTENT_ZERO},
        {DRUPE_INT32, N, 0}, {DRUPE_INT32, 17, CONTENT_ZERO});
    RUN(SHAPE_SORT, 3, bytes, fresh, {bytes, 2 * N, 0}, places, {bytes, 2 * N, 0});
    RUN(SHAPE_SORT, 4, keys, fresh, {DRUPE_INT64, 2 * N, 0}, places);
}

static void run_type(runner *r, int dtype)
{
    const drupe_search_params search = {N, 20, 1, 0};
    const drupe_unique_params unique = {N, 1, 0};
    run_arg(r, dtype);
    run_sort(r, dtype);
    if (dtype != DRUPE_FLOAT16) run_product(r, dtype);
    if (dtype != DRUPE_BOOL) run_scan(r, dtype);
    RUN(SHAPE_SEARCH, 0, dtype, search, {DRUPE_INT64, 20, 0}, {dtype, N, CONTENT_NUMBERS}, {dtype, 20, 0});
    RUN(SHAPE_SEARCH, 1, dtype, search, {DRUPE_BOOL, 20, 0}, {dtype, N, CONTENT_NUMBERS}, {dtype, 20, 0});
    RUN(SHAPE_UNIQUE, 0, dtype, unique, {DRUPE_INT64, N, 0}, {dtype, N, 0});
}

static void run_index(runner *r, int bytes)
{
    drupe_index_params p = {
        .count = N, .length = {6, 6}, .step = {1, 1}, .ndim = 1, .points = 1, .claimed = 1};
    p.shape[0] = N;
    p.other[0] = p.index[0][0] = p.index[1][0] = 1;
    const span index = {DRUPE_INT64, N, 0}, report = {DRUPE_INT64, 3, CONTENT_ZERO};
    RUN(SHAPE_INDEX, 0, bytes, p, {bytes, N, 0}, {bytes, 6, 0}, index, report);
    RUN(SHAPE_INDEX, 1, bytes, p, {bytes, 6, 0}, {bytes, N, 0}, index, report,
        {DRUPE_INT32, 6, CONTENT_ZERO});
    p.length[0] = 5; /* so that some lead nowhere */
    RUN(SHAPE_INDEX, 0, bytes, p, {bytes, N, 0}, {bytes, 5, 0}, index, report);
    RUN(SHAPE_INDEX, 2, DRUPE_INT64, p, {DRUPE_INT64, N, 0}, index, index, report);
    RUN(SHAPE_INDEX, 3, DRUPE_INT32, p, {DRUPE_INT32, 5, CONTENT_ZERO}, index, report);
}

void run_gpu_kernels(runner *r, bool all)
{
    /* The first ones differ most. */
    static const int types[] = {DRUPE_FLOAT32, DRUPE_BOOL,    DRUPE_INT16,     DRUPE_UINT64,
                                DRUPE_FLOAT16, DRUPE_FLOAT64, DRUPE_COMPLEX64, DRUPE_COMPLEX128};
    const size_t count = all ? DRUPE_COUNT_OF(types) : 2;
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    const drupe_mask_params mask = {.n = N, .block = 64, .room = N, .ndim = 2, .shape = {1, N}};
    const drupe_unique_params unique = {N, 0, 0};
    const drupe_random_params floats = {N, 0, 0}, doubles = {N, 1, 0};
    const span ranks = {DRUPE_INT64, N, CONTENT_NUMBERS}, state = {DRUPE_UINT64, 13, CONTENT_ZERO};
    for (size_t i = 0; i < count; i++) run_type(r, types[i]);
    for (size_t i = 0; i < DRUPE_COUNT_OF(sizes); i++) run_index(r, (int)drupe_dtype_bytes(sizes[i]));
    RUN(SHAPE_MASK, 0, DRUPE_UINT8, mask, {DRUPE_INT64, 1, 0}, {DRUPE_UINT8, N, 0});
    RUN(SHAPE_MASK, 1, DRUPE_UINT8, mask, {DRUPE_INT64, 2 * N, 0}, {DRUPE_UINT8, N, 0},
        {DRUPE_INT64, 2, CONTENT_ZERO});
    RUN(SHAPE_UNIQUE, 1, DRUPE_UINT8, unique, {DRUPE_UINT8, N, 0}, {DRUPE_UINT8, N, 0}, ranks);
    RUN(SHAPE_UNIQUE, 2, DRUPE_INT64, unique, {DRUPE_INT64, N, 0}, {-1, 1, 0}, ranks);
    RUN(SHAPE_UNIQUE, 3, DRUPE_INT64, unique, {DRUPE_INT64, N + 1, 0}, ranks, ranks);
    RUN(SHAPE_UNIQUE, 4, DRUPE_INT64, unique, {DRUPE_INT64, N, 0}, ranks, ranks);
    RUN(SHAPE_RANDOM, 0, DRUPE_FLOAT32, floats, {DRUPE_FLOAT32, N, 0}, state);
    RUN(SHAPE_RANDOM, 0, DRUPE_FLOAT64, doubles, {DRUPE_FLOAT64, N, 0}, state);
    RUN(SHAPE_RANDOM, 1, DRUPE_INT64, floats, state, {DRUPE_UINT64, 13, 0});
}
