/* Sorts of every type, against qsort() of places; equal elements are told apart by them. */
#include "element_fixture.h"
#include "math/sort.h"
#include <stdlib.h>

typedef struct order {
    drupe_element type;
    const void *elements; /* of one row */
    bool descending;
} order;

static order current;

static int compare_places(const void *a, const void *b)
{
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const void *e = current.elements;
    const bool i_nan = element_at(current.type, e, (size_t)i).nan,
               j_nan = element_at(current.type, e, (size_t)j).nan;
    int result = element_compare(current.type, e, (size_t)i, e, (size_t)j);
    if (current.descending && !i_nan && !j_nan) result = -result;
    return result ? result : i < j ? -1 : 1;
}

static void check_values(const drupe_sort *s, const void *row, const int64_t *places, size_t r)
{
    for (size_t i = 0; i < s->n; i++) {
        const size_t at = r * s->n + i;
        const bool nan = s->type < DRUPE_ELEMENT_C64 && element_at(s->type, s->out, at).nan &&
                         element_at(s->type, row, (size_t)places[i]).nan; /* any NaN will do */
        if (!nan && !element_same(s->type, s->out, at, row, (size_t)places[i]))
            fail_msg("type %d, %zu elements: element %zu is wrong", (int)s->type, s->n, i);
    }
}

static void check(const drupe_sort *s)
{
    int64_t *places = malloc(s->n * sizeof *places + 1);
    for (size_t r = 0; r < s->rows; r++) {
        const char *row = (const char *)s->in + r * s->n * drupe_element_size(s->type);
        for (size_t i = 0; i < s->n; i++) places[i] = (int64_t)i;
        current = (order){s->type, row, s->descending};
        qsort(places, s->n, sizeof *places, compare_places);
        for (size_t i = 0; s->indices && i < s->n; i++)
            if (s->indices[r * s->n + i] != places[i])
                fail_msg("type %d, %zu elements: place %zu is %" PRId64 ", not %" PRId64, (int)s->type, s->n,
                         i, s->indices[r * s->n + i], places[i]);
        if (s->out) check_values(s, row, places, r);
    }
    free(places);
}

static void sort_and_check(drupe_element type, size_t rows, size_t n, bool special)
{
    void *in = elements_make(type, rows * n, special);
    void *out = malloc(rows * n * drupe_element_size(type) + 1);
    int64_t *indices = malloc(rows * n * sizeof *indices + 1);
    for (int what = 1; what<8; what += n> 10000 ? 3 : 1) {
        const drupe_sort s = {.in = in,
                              .out = what & 1 ? out : NULL,
                              .indices = what & 2 || !(what & 1) ? indices : NULL,
                              .rows = rows,
                              .n = n,
                              .type = type,
                              .descending = what & 4};
        CHECK(drupe_sort_run(&s));
        check(&s);
    }
    free(indices);
    free(out);
    free(in);
}

static void test_every_type(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{0, 3}, {3, 0}, {1, 1}, {5, 2}, {3, 24}, {1, 25}, {7, 300}, {1, 4000}};
    for (int type = 0; type < DRUPE_ELEMENT_COUNT; type++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            sort_and_check((drupe_element)type, shapes[i][0], shapes[i][1], false);
            sort_and_check((drupe_element)type, shapes[i][0], shapes[i][1], true);
        }
}

static void test_long_rows(void **state)
{
    (void)state;
    for (int type = 0; type < DRUPE_ELEMENT_COUNT; type++)
        sort_and_check((drupe_element)type, 1, 40000, type % 2);
    sort_and_check(DRUPE_ELEMENT_F64, 1, 100000, false);
    sort_and_check(DRUPE_ELEMENT_I32, 40, 2000, true);
}

/* One digit takes nearly all, again and again. */
static void test_skewed_keys(void **state)
{
    (void)state;
    const size_t n = 100000;
    uint64_t *in = malloc(n * sizeof *in), *out = malloc(n * sizeof *out);
    int64_t *indices = malloc(n * sizeof *indices);
    for (size_t i = 0; i < n; i++) in[i] = random_next() >> (random_next() % 64);
    const drupe_sort s = {
        .in = in, .out = out, .indices = indices, .rows = 1, .n = n, .type = DRUPE_ELEMENT_U64};
    CHECK(drupe_sort_run(&s));
    check(&s);
    for (size_t i = 0; i < n; i++) in[i] = 7;
    CHECK(drupe_sort_run(&s));
    check(&s);
    free(indices);
    free(out);
    free(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_skewed_keys),
    };
    return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
