/* Places of extremes of every type, against a loop over single elements. */
#include "element_fixture.h"
#include "math/argreduce.h"
#include <stdlib.h>

/* Whether element i comes before element `best`, which stands in front of it. NaNs come before everything. */
static bool beats(drupe_element type, const void *in, size_t i, size_t best, bool least)
{
    const bool nan = element_at(type, in, i).nan, best_nan = element_at(type, in, best).nan;
    if (nan || best_nan) return nan && !best_nan;
    const int order = element_compare(type, in, i, in, best);
    return least ? order < 0 : order > 0;
}

static void check(const drupe_argreduce *w)
{
    for (size_t o = 0; o < w->outer; o++)
        for (size_t c = 0; c < w->inner; c++) {
            const size_t first = o * w->n * w->inner + c;
            size_t best = 0;
            for (size_t i = 1; i < w->n; i++)
                if (beats(w->type, w->in, first + i * w->inner, first + best * w->inner, w->least)) best = i;
            if (w->out[o * w->inner + c] != (int64_t)best)
                fail_msg("type %d, [%zu][%zu][%zu]: %" PRId64 " instead of %zu", (int)w->type, w->outer, w->n,
                         w->inner, w->out[o * w->inner + c], best);
        }
}

static void run_and_check(drupe_element type, size_t outer, size_t n, size_t inner, bool special)
{
    void *in = elements_make(type, outer * n * inner, special);
    int64_t *out = malloc(outer * inner * sizeof *out);
    for (int least = 0; least < 2; least++) {
        const drupe_argreduce w = {in, out, outer, n, inner, type, least};
        CHECK(drupe_argreduce_run(&w));
        check(&w);
    }
    free(out);
    free(in);
}

static void test_every_type(void **state)
{
    (void)state;
    static const size_t blocks[][3] = {
        {1, 1, 1},     {4, 3, 1},    {2, 131, 1},   {3, 1500, 1}, {1, 70000, 1}, {5, 7, 3},   {2, 30, 700},
        {1, 40000, 2}, {2, 9000, 5}, {1, 3, 40000}, {1, 70, 600}, {20000, 3, 1}, {9000, 2, 2}};
    for (int type = 0; type < DRUPE_ELEMENT_COUNT; type++)
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
            for (int special = 0; special < 2; special++)
                run_and_check((drupe_element)type, blocks[i][0], blocks[i][1], blocks[i][2], special);
}

/* One extreme, at every place of a row that ends within a block. */
static void test_every_place(void **state)
{
    (void)state;
    enum { N = 1100 };
    double x[N];
    int64_t at;
    for (size_t i = 0; i < N; i++) x[i] = (double)(i % 7);
    for (size_t i = 0; i < N; i++) {
        const double before = x[i];
        const drupe_argreduce w = {x, &at, 1, N, 1, DRUPE_ELEMENT_F64, i % 2};
        x[i] = i % 2 ? -1.0 : 9.0;
        CHECK(drupe_argreduce_run(&w));
        assert_int_equal(at, i);
        x[i] = before;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_type), cmocka_unit_test(test_every_place)};
    return cmocka_run_group_tests_name("argreduce", tests, NULL, NULL);
}
