/* Matrix products against the definition; numbers are small, so that they are exact. */
#include "array_fixture.h"
#include "base/base.h"
#include <stdlib.h>
#include <string.h>

static void check_product(const sample *a, const sample *b, size_t m, size_t n, size_t k,
                          const drupe_array *out)
{
    const size_t size = drupe_dtype_size(out->dtype);
    const drupe_dtype compute = computed_in(out->dtype);
    char *bytes = array_fetch(out);
    assert_int_equal(out->size, m * n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            number sum = number_identity(DRUPE_OP_SUM, compute);
            for (size_t l = 0; l < k; l++) {
                const size_t left[] = {i, l}, right[] = {l, j};
                const number x =
                    number_cast(sample_at(a, a->array.ndim, a->array.ndim == 2 ? left : left + 1), compute);
                const number y = number_cast(sample_at(b, b->array.ndim, right), compute);
                sum = number_apply(DRUPE_OP_ADD, sum, number_apply(DRUPE_OP_MULTIPLY, x, y));
            }
            const number got = number_load(bytes + (i * n + j) * size, out->dtype);
            if (!number_close(got, number_cast(sum, out->dtype), 1))
                fail_msg("matmul of %s, %zux%zux%zu, element (%zu, %zu): %.17g %" PRId64
                         ", not %.17g %" PRId64,
                         drupe_dtype_name(out->dtype), m, n, k, i, j, got.f, got.i, sum.f, sum.i);
        }
    free(bytes);
}

/* Of int32, each element by the definition. */
static void check_stack(const sample *a, const sample *b, const drupe_array *out)
{
    const int ndim = out->ndim, last = ndim - 1;
    const size_t k = a->array.shape[a->array.ndim - 1];
    int32_t *got = (int32_t *)array_fetch(out);
    for (size_t e = 0; e < out->size; e++) {
        size_t at[4], left[4], right[4], rest = e;
        int64_t sum = 0;
        for (int d = last; d >= 0; rest /= out->shape[d--]) at[d] = rest % out->shape[d];
        for (int d = 0; d < a->array.ndim; d++) {
            const int from = d + ndim - a->array.ndim;
            left[d] = a->array.shape[d] == 1 ? 0 : at[from];
        }
        for (int d = 0; d < b->array.ndim; d++) {
            const int from = d + ndim - b->array.ndim;
            right[d] = b->array.shape[d] == 1 ? 0 : at[from];
        }
        for (size_t l = 0; l < k; l++) {
            left[a->array.ndim - 1] = right[b->array.ndim - 2] = l;
            sum += number_cast(sample_at(a, a->array.ndim, left), DRUPE_INT64).i *
                   number_cast(sample_at(b, b->array.ndim, right), DRUPE_INT64).i;
        }
        assert_int_equal(got[e], (int32_t)sum);
    }
    free(got);
}

/* 0 as m or n: that operand is a vector. */
static void multiply(drupe_queue *queue, drupe_dtype ta, drupe_dtype tb, sample_layout la, sample_layout lb,
                     size_t m, size_t n, size_t k, bool a_vector, bool b_vector)
{
    const size_t left[] = {m, k}, right[] = {k, n};
    sample a, b;
    drupe_array out = {0};
    sample_make(queue, ta, la, a_vector ? 1 : 2, a_vector ? left + 1 : left, 1, false, &a);
    sample_make(queue, tb, lb, b_vector ? 1 : 2, right, 4, false, &b);
    CHECK(drupe_array_matmul(&a.array, &b.array, &out));
    assert_int_equal(out.ndim, 2 - a_vector - b_vector);
    assert_int_equal(out.dtype, drupe_dtype_promote(ta, tb));
    check_product(&a, &b, a_vector ? 1 : m, b_vector ? 1 : n, k, &out);
    drupe_array_clear(&out);
    sample_clear(&b);
    sample_clear(&a);
}

static void test_types(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int a = 0; a < DRUPE_DTYPE_COUNT; a++)
            for (int b = 0; b < DRUPE_DTYPE_COUNT; b++) {
                if (!queue_is_host(queues[q]) && a != b && (a + b) % 7) continue;
                multiply(queues[q], (drupe_dtype)a, (drupe_dtype)b, CONTIGUOUS, CONTIGUOUS, 7, 9, 11, false,
                         false);
            }
}

static void test_shapes(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1},    {17, 70, 5}, {1, 130, 3}, {130, 1, 3},
                                      {64, 65, 66}, {3, 4, 0},   {0, 3, 4},   {3, 0, 4}};
    static const drupe_dtype types[] = {DRUPE_INT32, DRUPE_FLOAT32, DRUPE_FLOAT64};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (size_t t = 0; t < 3; t++)
            for (size_t i = 0; i < 8; i++)
                for (int x = 0; x < BROADCAST; x++)
                    for (int y = 0; y < BROADCAST; y++) {
                        const size_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
                        multiply(queues[q], types[t], types[t], (sample_layout)x, (sample_layout)y, m, n, k,
                                 false, false);
                    }
}

static void test_vectors(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int dtype = 0; dtype < DRUPE_DTYPE_COUNT; dtype++)
            for (int x = 0; x < BROADCAST; x++)
                for (int y = 0; y < BROADCAST; y++)
                    for (int which = 1; which < 4; which++)
                        multiply(queues[q], (drupe_dtype)dtype, (drupe_dtype)dtype, (sample_layout)x,
                                 (sample_layout)y, 33, 20, 50, which & 1, which & 2);
}

/* Tiles of each size, whole and cut off, of GPUs' kernels, and sums that these divide. */
static void test_tiles(void **state)
{
    static const size_t sizes[][3] = {{70, 130, 20}, {140, 150, 40}, {128, 256, 32}, {40, 90, 37},
                                      {5, 3, 9000},  {1, 1, 20000},  {4, 1, 9000},   {1, 4, 9000}};
    static const drupe_dtype types[] = {DRUPE_INT16, DRUPE_FLOAT32, DRUPE_COMPLEX64, DRUPE_COMPLEX128};
    static const sample_layout layouts[] = {CONTIGUOUS, TRANSPOSED, NEGATIVE};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (size_t t = 0; t < DRUPE_COUNT_OF(types); t++)
            for (size_t i = 0; i < DRUPE_COUNT_OF(sizes); i++)
                multiply(queues[q], types[t], types[t], layouts[(i + t) % 3], layouts[(i + t + i / 3) % 3],
                         sizes[i][0], sizes[i][1], sizes[i][2], false, false);
}

/* Stacks that one stride describes, and such that none does; each operand's first matrix is repeated or not.
 */
static void test_stacks(void **state)
{
    static const struct {
        int na, nb;
        size_t a[4], b[4];
    } cases[] = {{3, 3, {6, 4, 5}, {6, 5, 7}},       {3, 2, {6, 4, 5}, {5, 7}},
                 {4, 4, {2, 3, 4, 5}, {2, 3, 5, 7}}, {4, 4, {2, 1, 4, 5}, {1, 3, 5, 7}},
                 {4, 3, {2, 3, 1, 5}, {3, 5, 7}},    {3, 3, {6, 4, 5}, {1, 5, 1}}};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
            sample a, b;
            drupe_array out = {0};
            sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, cases[i].na, cases[i].a, 1, false, &a);
            sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, cases[i].nb, cases[i].b, 4, false, &b);
            CHECK(drupe_array_matmul(&a.array, &b.array, &out));
            check_stack(&a, &b, &out);
            drupe_array_clear(&out);
            sample_clear(&b);
            sample_clear(&a);
        }
}

/* The same product as a new array and into one that is there, in one block or not, and where the operands
 * are. */
static void test_given(void **state)
{
    static const size_t left[] = {7, 7}, right[] = {7, 9}, whole[] = {9, 20};
    const drupe_slice all[] = {{0, 1, 7, false}, {0, 1, 9, false}},
                      some[] = {{1, 1, 7, false}, {2, 2, 9, false}};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int kind = 0; kind < 3; kind++) {
            sample a, b;
            drupe_array fresh = {0}, store = {0}, out = {0};
            sample_make(queues[q], DRUPE_FLOAT32, CONTIGUOUS, 2, left, 1, false, &a);
            sample_make(queues[q], DRUPE_FLOAT32, CONTIGUOUS, 2, kind == 2 ? left : right, 4, false, &b);
            CHECK(drupe_array_matmul(&a.array, &b.array, &fresh));
            CHECK(drupe_array_empty(queues[q], DRUPE_MEM_DEVICE, DRUPE_FLOAT32, 2, kind ? whole : right,
                                    &store));
            drupe_array_view(kind == 2 ? &a.array : &store, &out);
            if (kind < 2) CHECK(drupe_array_slice(&out, kind ? some : all));
            CHECK(drupe_array_matmul(&a.array, &b.array, &out));
            char *wanted = array_fetch(&fresh), *got = array_fetch(&out);
            assert_memory_equal(wanted, got, fresh.size * sizeof(float));
            free(got);
            free(wanted);
            assert_int_equal(drupe_array_matmul(&a.array, &b.array, &a.array),
                             kind == 2 ? DRUPE_OK : DRUPE_E_INVALID);
            drupe_array_clear(&out);
            drupe_array_clear(&store);
            drupe_array_clear(&fresh);
            sample_clear(&b);
            sample_clear(&a);
        }
}

static void test_errors(void **state)
{
    static const size_t shape[] = {2, 3, 4};
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        sample a, b, c;
        drupe_array out = {0};
        sample_make(queues[q], DRUPE_FLOAT32, CONTIGUOUS, 2, shape, 0, false, &a);
        sample_make(queues[q], DRUPE_FLOAT32, CONTIGUOUS, 3, shape, 0, false, &b);
        sample_make(queues[q], DRUPE_FLOAT32, ZERO_D, 1, shape, 0, false, &c);
        assert_int_equal(drupe_array_matmul(&a.array, &a.array, &out), DRUPE_E_INVALID);
        assert_non_null(strstr(drupe_error_last()->text, "(2, 3) and (2, 3)"));
        assert_int_equal(drupe_array_matmul(&b.array, &b.array, &out), DRUPE_E_INVALID);
        assert_non_null(strstr(drupe_error_last()->text, "last but one axis"));
        assert_int_equal(drupe_array_matmul(&a.array, &c.array, &out), DRUPE_E_INVALID);
        assert_null(out.memory);
        sample_clear(&c);
        sample_clear(&b);
        sample_clear(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),  cmocka_unit_test(test_shapes), cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_tiles),  cmocka_unit_test(test_stacks), cmocka_unit_test(test_given),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
