/* Searches, distinct elements and counts of every type, against loops over single elements. */
#include "element_fixture.h"
#include "math/counting.h"
#include "math/search.h"
#include "math/sort.h"
#include "math/unique.h"
#include <math.h>
#include <stdlib.h>

typedef struct sorted {
    void *elements;
    int64_t *places;
    void *in;
} sorted;

static sorted sorted_make(drupe_element type, size_t n, bool special)
{
    sorted s = {malloc(n * drupe_element_size(type) + 1), malloc(n * sizeof(int64_t) + 1),
                elements_make(type, n, special)};
    const drupe_sort sort = {
        .in = s.in, .out = s.elements, .indices = s.places, .rows = 1, .n = n, .type = type};
    CHECK(drupe_sort_run(&sort));
    return s;
}

static void sorted_clear(sorted *s)
{
    free(s->elements);
    free(s->places);
    free(s->in);
}

/* --- Searches --------------------------------------------------------------------------------------------
 */

static void check_place(const drupe_search *s, size_t i)
{
    const size_t at = (size_t)s->places[i];
    assert_true(at <= s->n);
    const int below = s->right ? 1 : 0;
    if (at > 0) assert_true(element_compare(s->type, s->sorted, at - 1, s->values, i) < below);
    if (at < s->n) assert_true(element_compare(s->type, s->sorted, at, s->values, i) >= below);
    if (!s->found) return;
    const bool there = at < s->n && element_compare(s->type, s->sorted, at, s->values, i) == 0 &&
                       !element_at(s->type, s->values, i).nan;
    assert_int_equal(s->found[i], there != s->absent);
}

static void search_and_check(drupe_element type, size_t n, size_t m, bool special)
{
    sorted s = sorted_make(type, n, special);
    void *values = elements_make(type, m, special);
    int64_t *places = malloc(m * sizeof *places + 1);
    uint8_t *found = malloc(m + 1);
    for (int what = 0; what < 3; what++) {
        const drupe_search search = {.sorted = s.elements,
                                     .values = values,
                                     .n = n,
                                     .m = m,
                                     .type = type,
                                     .right = what == 0,
                                     .places = places,
                                     .found = what ? found : NULL,
                                     .absent = what == 2};
        drupe_search_run(&search);
        for (size_t i = 0; i < m; i++) check_place(&search, i);
    }
    free(found);
    free(places);
    free(values);
    sorted_clear(&s);
}

static void test_search(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{0, 5}, {1, 40}, {2, 17}, {33, 1}, {1000, 100}, {700, 9000}};
    for (int type = 0; type < DRUPE_ELEMENT_COUNT; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int special = 0; special < 2; special++)
                search_and_check((drupe_element)type, sizes[i][0], sizes[i][1], special);
}

/* --- Distinct elements -----------------------------------------------------------------------------------
 */

static bool differs(const drupe_unique *u, size_t i)
{
    const bool nan = element_at(u->type, u->sorted, i).nan,
               before = element_at(u->type, u->sorted, i - 1).nan;
    if (nan || before) return !(u->equal_nan && nan && before);
    return element_compare(u->type, u->sorted, i - 1, u->sorted, i) != 0;
}

static void check_unique(const drupe_unique *u)
{
    size_t k = 0, from = 0;
    for (size_t i = 0; i < u->n; i++) {
        if (i == 0 || differs(u, i)) {
            if (i) assert_int_equal(u->counts[k - 1], i - from);
            assert_true(element_same(u->type, u->values, k, u->sorted, i));
            assert_int_equal(u->firsts[k], u->places[i]);
            from = i;
            k++;
        }
        assert_int_equal(u->inverse[u->places[i]], k - 1);
    }
    if (u->n) assert_int_equal(u->counts[k - 1], u->n - from);
    assert_int_equal(*u->count, k);
}

static void unique_and_check(drupe_element type, size_t n, bool special)
{
    sorted s = sorted_make(type, n, special);
    void *values = malloc(n * drupe_element_size(type) + 1);
    int64_t count, *results = malloc(3 * n * sizeof *results + 1);
    for (int equal = 0; equal < 2; equal++) {
        if (equal && type >= DRUPE_ELEMENT_C64) continue;
        const drupe_unique u = {.sorted = s.elements,
                                .places = s.places,
                                .n = n,
                                .type = type,
                                .equal_nan = equal,
                                .values = values,
                                .firsts = results,
                                .inverse = results + n,
                                .counts = results + 2 * n,
                                .count = &count};
        CHECK(drupe_unique_run(&u));
        check_unique(&u);
    }
    free(results);
    free(values);
    sorted_clear(&s);
}

static void test_unique(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 100, 40000};
    for (int type = 0; type < DRUPE_ELEMENT_COUNT; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int special = 0; special < 2; special++)
                unique_and_check((drupe_element)type, sizes[i], special);
}

/* Runs that go through several parts, and parts without the first of any run. */
static void test_long_runs(void **state)
{
    (void)state;
    enum { N = 100000 };
    int64_t *x = malloc(N * sizeof *x), *counts = malloc(N * sizeof *counts), count;
    for (size_t run = 1; run <= N; run *= 10) {
        for (size_t i = 0; i < N; i++) x[i] = (int64_t)(i / run);
        const drupe_unique u = {
            .sorted = x, .n = N, .type = DRUPE_ELEMENT_I64, .counts = counts, .count = &count};
        CHECK(drupe_unique_run(&u));
        assert_int_equal(count, N / run);
        for (size_t i = 0; i < N / run; i++) assert_int_equal(counts[i], run);
    }
    free(counts);
    free(x);
}

/* --- Counts and lines ------------------------------------------------------------------------------------
 */

static void count_and_check(size_t n, size_t bins)
{
    int64_t *numbers = malloc(n * sizeof *numbers + 1), *counts = malloc(bins * sizeof *counts);
    int64_t *expected = calloc(bins, sizeof *expected);
    double *weights = malloc(n * sizeof *weights + 1), *sums = malloc(bins * sizeof *sums);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (int64_t)(random_next() % (bins + 2)) - 1; /* one below and one above are passed by */
        weights[i] = 2.0;
        if (numbers[i] >= 0 && (size_t)numbers[i] < bins) expected[numbers[i]]++;
    }
    CHECK(drupe_counting_run(&(drupe_counting){numbers, NULL, n, bins, counts, NULL}));
    CHECK(drupe_counting_run(&(drupe_counting){numbers, weights, n, bins, NULL, sums}));
    for (size_t i = 0; i < bins; i++) {
        assert_int_equal(counts[i], expected[i]);
        assert_true(sums[i] == 2.0 * (double)expected[i]);
    }
    free(sums);
    free(weights);
    free(expected);
    free(counts);
    free(numbers);
}

static void test_counting(void **state)
{
    (void)state;
    count_and_check(0, 3);
    count_and_check(1000, 1);
    count_and_check(100000, 50);
    count_and_check(100000, 90000);
}

static void test_interp(void **state)
{
    (void)state;
    enum { M = 10000 };
    static const double xp[] = {-1, 0, 2, 3}, fp[] = {5, 1, INFINITY, 4};
    static double x[M], out[M];
    for (size_t i = 0; i < M; i++) x[i] = -2.0 + 6.0 * (double)i / M;
    x[7] = NAN;
    drupe_interp_run(&(drupe_interp){x, xp, fp, M, 4, -7, 7, out});
    for (size_t i = 0; i < M; i++) {
        if (i == 7)
            assert_true(isnan(out[i]));
        else if (x[i] < -1 || x[i] > 3)
            assert_true(out[i] == (x[i] < 0 ? -7 : 7));
        else if (x[i] <= 0)
            assert_true(fabs(out[i] - (1 - 4 * x[i])) < 1e-12);
        else
            assert_true(x[i] == 3 ? out[i] == 4 : isinf(out[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search),   cmocka_unit_test(test_unique), cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_counting), cmocka_unit_test(test_interp),
    };
    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
