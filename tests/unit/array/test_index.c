/* Gathers, scatters, masks and repeats: their loops against plain ones, and the functions over arrays. */
#include "array_fixture.h"
#include "math/compact.h"
#include "math/gather.h"
#include <stdlib.h>
#include <string.h>

static uint32_t seed = 1;

static size_t below(size_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void *room(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);
    assert_non_null(memory);
    return memory;
}

/* --- Loops ---------------------------------------------------------------------------------------------- */

/* An index space of up to four axes over an array of two, x[X_ROWS][X_COLUMNS], by one or two index arrays
 * with an axis each, or one that has both. */
enum { X_ROWS = 50, X_COLUMNS = 40, X_SIZE = X_ROWS * X_COLUMNS };

typedef struct space {
    drupe_gather g, plain; /* prepared, and as it was */
    int64_t *arrays[2];
    size_t size;
} space;

static void space_make(space *s, size_t element, int arrays, const size_t *lengths, bool stray)
{
    memset(s, 0, sizeof *s);
    drupe_gather *g = &s->g;
    g->element = element;
    g->arrays = arrays;
    g->ndim = arrays + (arrays == 1);
    s->size = 1;
    for (int d = 0; d < g->ndim; d++) {
        g->shape[d] = lengths[d];
        s->size *= lengths[d];
    }
    for (int k = 0; k < arrays; k++) {
        const size_t count = lengths[k];
        g->length[k] = k == 0 ? X_ROWS : X_COLUMNS;
        g->step[k] = k == 0 ? X_COLUMNS : 1;
        g->axis[k] = k;
        g->index[k][k] = 1;
        s->arrays[k] = room(count * sizeof(int64_t));
        for (size_t i = 0; i < count; i++)
            s->arrays[k][i] = (int64_t)below((size_t)g->length[k] * 2) - g->length[k];
    }
    if (stray) s->arrays[arrays - 1][lengths[arrays - 1] - 1] = g->length[arrays - 1];
    if (arrays == 1) g->at[1] = 1;
    g->other[g->ndim - 1] = 1;
    for (int d = g->ndim - 2; d >= 0; d--) g->other[d] = g->other[d + 1] * (ptrdiff_t)lengths[d + 1];
    s->plain = *g;
    drupe_gather_prepare(g);
}

static void space_clear(space *s)
{
    for (int k = 0; k < 2; k++) free(s->arrays[k]);
}

/* Where element `i` of the space, in C order, is in x. */
static size_t place_of(const space *s, size_t i)
{
    const drupe_gather *g = &s->plain;
    ptrdiff_t at = 0;
    for (int d = g->ndim - 1; d >= 0; d--) {
        const size_t place = i % g->shape[d];
        i /= g->shape[d];
        at += (ptrdiff_t)place * g->at[d];
        if (d >= g->arrays) continue;
        const int64_t index = s->arrays[d][place];
        at += (ptrdiff_t)(index < 0 ? index + g->length[d] : index) * g->step[d];
    }
    return (size_t)at;
}

static void check_space(size_t element, int arrays, const size_t *lengths)
{
    space s;
    space_make(&s, element, arrays, lengths, false);
    const int64_t *const indices[] = {s.arrays[0], s.arrays[1]};
    unsigned char *x = room(X_SIZE * element), *out = room(s.size * element), *y = room(X_SIZE * element);
    for (size_t i = 0; i < X_SIZE * element; i++) x[i] = y[i] = (unsigned char)below(256);
    assert_int_equal(drupe_gather_run(&s.g, x, indices, out), DRUPE_OK);
    for (size_t i = 0; i < s.size; i++)
        assert_memory_equal(out + i * element, x + place_of(&s, i) * element, element);
    for (size_t i = 0; i < s.size * element; i++) out[i] = (unsigned char)below(256);
    assert_int_equal(drupe_scatter_run(&s.g, x, indices, out), DRUPE_OK);
    for (size_t i = 0; i < s.size; i++) memcpy(y + place_of(&s, i) * element, out + i * element, element);
    assert_memory_equal(x, y, X_SIZE * element);
    free(y);
    free(out);
    free(x);
    space_clear(&s);
}

static void test_loops(void **state)
{
    (void)state;
    static const size_t lengths[][2] = {{1, 1},     {3, 5},      {7, 40}, {600, 3},
                                        {2000, 40}, {100000, 1}, {0, 4},  {5, 0}};
    for (size_t element = 1; element <= 16; element *= 2)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            if (lengths[k][1] <= X_COLUMNS) check_space(element, 1, lengths[k]);
            check_space(element, 2, lengths[k]);
        }
}

/* A line: what one index array alone picks. */
static void test_lines(void **state)
{
    (void)state;
    const size_t n = 200000;
    const ptrdiff_t steps[] = {1, 2, -1};
    int64_t *index = room(n * sizeof *index), *x = room(1000 * 8), *out = room(n * 8), *y = room(1000 * 8);
    const int64_t *const indices[] = {index};
    for (size_t i = 0; i < n; i++) index[i] = (int64_t)below(800) - 400;
    for (size_t i = 0; i < 1000; i++) x[i] = y[i] = (int64_t)i;
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        drupe_gather g = {.element = 8,
                          .ndim = 1,
                          .points = 1,
                          .arrays = 1,
                          .shape = {n},
                          .other = {1},
                          .index = {{1}},
                          .length = {400},
                          .step = {steps[k]},
                          .base = steps[k] < 0 ? 399 : 0};
        drupe_gather_prepare(&g);
        assert_int_equal(drupe_gather_run(&g, x, indices, out), DRUPE_OK);
        for (size_t i = 0; i < n; i++) {
            const int64_t place = index[i] < 0 ? index[i] + 400 : index[i];
            assert_int_equal(out[i], x[g.base + place * steps[k]]);
            y[g.base + place * steps[k]] = -(int64_t)i;
        }
        for (size_t i = 0; i < n; i++) out[i] = -(int64_t)i;
        assert_int_equal(drupe_scatter_run(&g, x, indices, out), DRUPE_OK);
        assert_memory_equal(x, y, 1000 * 8);
    }
    free(y);
    free(out);
    free(x);
    free(index);
}

static void test_strays(void **state)
{
    (void)state;
    for (int arrays = 1; arrays <= 2; arrays++)
        for (size_t n = 1; n < 100000; n *= 10) {
            const size_t lengths[] = {n, arrays == 1 ? 3 : 2};
            space s;
            space_make(&s, 8, arrays, lengths, true);
            const int64_t *const indices[] = {s.arrays[0], s.arrays[1]};
            int64_t *x = room(X_SIZE * 8), *out = room(s.size * 8);
            for (size_t i = 0; i < s.size; i++) out[i] = 1;
            assert_int_equal(drupe_scatter_run(&s.g, x, indices, out), DRUPE_E_OUT_OF_RANGE);
            for (size_t i = 0; i < X_SIZE; i++) assert_int_equal(x[i], 0);
            assert_int_equal(drupe_gather_run(&s.g, x, indices, out), DRUPE_E_OUT_OF_RANGE);
            assert_string_equal(drupe_error_last()->text,
                                arrays == 1 ? "index 50 is out of bounds for axis 0 with size 50"
                                            : "index 40 is out of bounds for axis 1 with size 40");
            s.g.mode = DRUPE_INDEX_CLIP;
            assert_int_equal(drupe_gather_run(&s.g, x, indices, out), DRUPE_OK);
            s.g.mode = DRUPE_INDEX_WRAP;
            assert_int_equal(drupe_gather_run(&s.g, x, indices, out), DRUPE_OK);
            free(out);
            free(x);
            space_clear(&s);
        }
}

static void test_fold(void **state)
{
    (void)state;
    const size_t lengths[] = {300, 200};
    space s;
    space_make(&s, 8, 2, lengths, false);
    const int64_t *const indices[] = {s.arrays[0], s.arrays[1]};
    int64_t *places = room(s.size * 8);
    assert_int_equal(drupe_gather_fold(&s.g, indices, places), DRUPE_OK);
    for (size_t i = 0; i < s.size; i++) assert_int_equal(places[i], place_of(&s, i));
    free(places);
    space_clear(&s);
}

/* --- Masks ---------------------------------------------------------------------------------------------- */

/* Masks with few, many and long stretches of true elements, which may be any byte but 0. */
static void mask_fill(uint8_t *mask, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++)
        mask[i] = (uint8_t)(kind == 0   ? 0
                            : kind == 1 ? 1
                            : kind == 2 ? below(2) * (1 + below(255))
                            : kind == 3 ? below(50) == 0
                                        : i / 1000 % 2);
}

static void check_mask(size_t n, int kind, size_t row)
{
    uint8_t *mask = room(n);
    char *from = room(n * row), *to = room(n * row), *back = room(n * row);
    int64_t *counts = room((drupe_mask_blocks(n) + 1) * sizeof *counts),
            *places = room(n * 2 * sizeof *places);
    mask_fill(mask, n, kind);
    for (size_t i = 0; i < n * row; i++) from[i] = (char)below(256);
    drupe_mask_count(mask, n, counts);
    drupe_mask_compact(mask, n, counts, row, from, to);
    const size_t shape[] = {n / 100, 100}, total = (size_t)counts[drupe_mask_blocks(n)];
    const bool square = n % 100 == 0;
    drupe_mask_positions(mask, square ? 2 : 1, square ? shape : &n, counts, places);
    drupe_mask_expand(mask, n, counts, row, to, back);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (!mask[i]) {
            for (size_t b = 0; b < row; b++) assert_int_equal(back[i * row + b], 0);
            continue;
        }
        assert_memory_equal(to + k * row, from + i * row, row);
        assert_memory_equal(back + i * row, from + i * row, row);
        assert_int_equal(places[k], square ? i / 100 : i);
        if (square) assert_int_equal(places[total + k], i % 100);
        k++;
    }
    assert_int_equal(total, k);
    free(places);
    free(counts);
    free(back);
    free(to);
    free(from);
    free(mask);
}

static void test_masks(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 7, 8, 64, 100, 999, 32768, 32769, 100000};
    static const size_t rows[] = {1, 2, 4, 8, 16, 3};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int kind = 0; kind < 5; kind++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) check_mask(sizes[s], kind, rows[r]);
}

/* A mask that somebody writes between the count and the use: nothing outside of what was counted is written,
 * which sanitizers see. */
static void test_mask_that_changes(void **state)
{
    (void)state;
    const size_t n = 1000, count = 10;
    uint8_t *mask = room(n);
    int64_t counts[2], *from = room(n * 8), *to = room(count * 8), *places = room(count * 8);
    for (size_t i = 0; i < n; i++) from[i] = (int64_t)i;
    memset(mask, 1, count);
    drupe_mask_count(mask, n, counts);
    memset(mask, 1, n);
    drupe_mask_compact(mask, n, counts, 8, from, to);
    drupe_mask_positions(mask, 1, &n, counts, places);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(to[i], i);
        assert_int_equal(places[i], i);
    }
    drupe_mask_expand(mask, n, counts, 8, to, from);
    assert_int_equal(from[n - 1], n - 1);
    free(places);
    free(to);
    free(from);
    free(mask);
}

static void test_repeats(void **state)
{
    (void)state;
    const int64_t repeats[] = {2, 0, 3}, negative[] = {1, -4}, huge[] = {INT64_MAX, 1};
    int64_t total, out[7];
    assert_int_equal(drupe_repeat_count(repeats, 3, &total), DRUPE_OK);
    assert_int_equal(total, 5);
    drupe_repeat_positions(repeats, 3, 7, out); /* two more than there are */
    const int64_t expected[] = {0, 0, 2, 2, 2, 0, 0};
    assert_memory_equal(out, expected, sizeof expected);
    assert_int_equal(drupe_repeat_count(negative, 2, &total), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "-4"));
    assert_int_equal(drupe_repeat_count(huge, 2, &total), DRUPE_E_INVALID);
}

/* --- Arrays --------------------------------------------------------------------------------------------- */

static const drupe_scalar ZERO = {.kind = DRUPE_SCALAR_KIND_INT},
                          ONE = {.kind = DRUPE_SCALAR_KIND_INT, .i = 1};

static void counting(drupe_queue *queue, drupe_dtype dtype, size_t n, drupe_array *array)
{
    CHECK(drupe_array_empty(queue, DRUPE_MEM_DEVICE, dtype, 1, &n, array));
    CHECK(drupe_array_sequence(array, ZERO, ONE));
}

static void expect(const drupe_array *array, const int64_t *expected, size_t n)
{
    assert_int_equal(array->size, n);
    int64_t *got = array_fetch(array);
    for (size_t i = 0; i < n; i++) assert_int_equal(got[i], expected[i]);
    free(got);
}

static void test_arrays(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        drupe_array x = {0}, index = {0}, out = {0};
        counting(queues[q], DRUPE_INT64, 10, &x);
        counting(queues[q], DRUPE_INT32, 3, &index);
        drupe_index along = {&index, 0, 0};
        const drupe_selection selection = {&along, 1, 0, DRUPE_INDEX_RAISE};
        const drupe_slice backwards = {9, -2, 5, false};
        CHECK(drupe_array_slice(&x, &backwards)); /* 9 7 5 3 1 */
        CHECK(drupe_array_gather(&x, &selection, &out));
        expect(&out, (const int64_t[]){9, 7, 5}, 3);
        CHECK(drupe_array_scatter(&x, &selection, &(drupe_operand){.scalar = ONE}));
        expect(&x, (const int64_t[]){1, 1, 1, 3, 1}, 5);
        drupe_array_clear(&out);
        CHECK(drupe_array_gather_along(&x, &index, 0, DRUPE_INDEX_RAISE, &out));
        expect(&out, (const int64_t[]){1, 1, 1}, 3);
        CHECK(drupe_array_scatter_along(&x, &index, 0, &(drupe_operand){.array = &index}));
        expect(&x, (const int64_t[]){0, 1, 2, 3, 1}, 5);
        along.array = &out;
        drupe_array_clear(&out);
        CHECK(drupe_array_empty(queues[q], DRUPE_MEM_DEVICE, DRUPE_FLOAT64, 1, (const size_t[]){3}, &out));
        drupe_array none = {0};
        assert_int_equal(drupe_array_gather(&x, &selection, &none), DRUPE_E_INVALID);
        drupe_array_clear(&out);
        drupe_array_clear(&index);
        drupe_array_clear(&x);
    }
}

static void test_arrays_by_mask(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        drupe_array x = {0}, mask = {0}, counts = {0}, out = {0}, places = {0};
        counting(queues[q], DRUPE_INT64, 6, &x);
        const drupe_operand above[] = {{.array = &x}, {.scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = 2}}};
        CHECK(drupe_array_apply(DRUPE_OP_GREATER, above, 2, &mask));
        CHECK(drupe_array_mask_count(&mask, &counts));
        expect(&counts, (const int64_t[]){0, 3}, 2);
        CHECK(drupe_array_mask_pick(&x, &mask, &counts, 3, &out));
        expect(&out, (const int64_t[]){3, 4, 5}, 3);
        CHECK(drupe_array_mask_positions(&mask, &counts, 3, &places));
        expect(&places, (const int64_t[]){3, 4, 5}, 3);
        const drupe_slice backwards = {2, -1, 3, false};
        CHECK(drupe_array_slice(&out, &backwards));
        CHECK(drupe_array_mask_assign(&x, &mask, &(drupe_operand){.array = &out}));
        expect(&x, (const int64_t[]){0, 1, 2, 5, 4, 3}, 6);
        CHECK(drupe_array_mask_assign(&x, &mask, &(drupe_operand){.scalar = ONE}));
        expect(&x, (const int64_t[]){0, 1, 2, 1, 1, 1}, 6);
        drupe_array_clear(&out);
        CHECK(drupe_array_repeat_count(&x, &out));
        expect(&out, (const int64_t[]){6}, 1);
        drupe_array_clear(&out);
        CHECK(drupe_array_repeat_positions(&x, 6, &out));
        expect(&out, (const int64_t[]){1, 2, 2, 3, 4, 5}, 6);
        drupe_array_clear(&out);
        assert_int_equal(drupe_array_mask_pick(&mask, &x, &counts, 3, &out), DRUPE_E_INVALID);
        drupe_array_clear(&places);
        drupe_array_clear(&counts);
        drupe_array_clear(&mask);
        drupe_array_clear(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),         cmocka_unit_test(test_lines),
        cmocka_unit_test(test_strays),        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_masks),         cmocka_unit_test(test_mask_that_changes),
        cmocka_unit_test(test_repeats),       cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_arrays_by_mask)};
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
