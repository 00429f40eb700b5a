/* Philox4x64-10: the vectors that its authors published, the order of words, and many at a time against one
 * by one. */
#include "math/random.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

static void test_vectors(void **state)
{
    static const struct {
        uint64_t counter[4], key[2], block[4];
    } known[] = {
        {{0, 0, 0, 0},
         {0, 0},
         {0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b}},
        {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
         {UINT64_MAX, UINT64_MAX},
         {0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0}},
        {{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
         {0x452821e638d01377, 0xbe5466cf34e90c6c},
         {0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint64_t block[4];
        drupe_philox_block(known[i].key, known[i].counter, block);
        assert_memory_equal(block, known[i].block, sizeof block);
    }
}

static void test_counter_carries(void **state)
{
    uint64_t counter[4] = {UINT64_MAX - 2, UINT64_MAX, UINT64_MAX, 7};
    const uint64_t wanted[4] = {1, 0, 0, 8};
    (void)state;
    drupe_philox_advance(counter, 4);
    assert_memory_equal(counter, wanted, sizeof counter);
    drupe_philox_advance(counter, 0);
    assert_memory_equal(counter, wanted, sizeof counter);
}

static drupe_philox begin(void)
{
    return (drupe_philox){.key = {123, 456}, .counter = {UINT64_MAX - 100, 5, 0, 0}, .taken = 4};
}

/* Draws of all lengths, one behind the other: the same as word by word, and so is the state. */
static void test_many_are_one_by_one(void **state)
{
    drupe_philox many = begin(), single = begin();
    double *out = malloc(9000 * sizeof *out);
    float *floats = malloc(9000 * sizeof *floats);
    (void)state;
    for (size_t n = 0; n < 9000; n += n < 20 ? 1 : 2983) {
        drupe_random_doubles(&many, n, out);
        for (size_t i = 0; i < n; i++)
            assert_true(out[i] == drupe_philox_double(drupe_philox_next64(&single)));
        assert_memory_equal(&many, &single, sizeof many);
        drupe_random_floats(&many, n, floats);
        for (size_t i = 0; i < n; i++)
            assert_true(floats[i] == (float)(drupe_philox_next32(&single) >> 8) / 16777216.0f);
        assert_memory_equal(&many, &single, sizeof many);
    }
    free(floats);
    free(out);
}

/* Ranges of which many words, few, and none are refused. */
static void test_integers(void **state)
{
    static const uint64_t ranges[] = {0,
                                      1,
                                      6,
                                      999999,
                                      UINT32_MAX / 2 + 1,
                                      UINT32_MAX - 1,
                                      UINT32_MAX,
                                      (uint64_t)UINT32_MAX + 1,
                                      UINT64_MAX / 2 + 1,
                                      UINT64_MAX};
    drupe_philox many = begin(), single = begin();
    uint64_t *out = malloc(70001 * sizeof *out);
    (void)state;
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        for (size_t n = 1; n <= 70001; n += n == 1 ? 999 : 69001) {
            drupe_random_integers(&many, 8, 17, ranges[r], n, out);
            for (size_t i = 0; i < n; i++) assert_true(out[i] == 17 + drupe_philox_below(&single, ranges[r]));
            assert_true(many.taken == single.taken && many.counter[0] == single.counter[0]);
            assert_true(many.has32 == single.has32);
        }
    free(out);
}

/* A draw of other distributions takes two words, however long it is, and begins with the same elements. */
static void test_laws(void **state)
{
    const double a = 3, b = 0.25, c = 2;
    double *few = malloc(100 * sizeof *few), *many = malloc(10000 * sizeof *many);
    (void)state;
    for (int kind = 0; kind <= DRUPE_RANDOM_HYPERGEOMETRIC; kind++) {
        const drupe_random_law law = {
            .kind = (drupe_random_kind)kind, .wide = true, .a = &a, .b = &b, .c = &c};
        drupe_philox first = begin(), second = begin(), words = begin();
        drupe_random_draw(&first, &law, 100, few);
        drupe_random_draw(&second, &law, 10000, many);
        drupe_philox_next64(&words);
        drupe_philox_next64(&words);
        assert_memory_equal(few, many, 100 * sizeof *few);
        assert_memory_equal(&first, &words, sizeof words);
        assert_memory_equal(&second, &words, sizeof words);
    }
    free(many);
    free(few);
}

static void test_orders(void **state)
{
    int64_t order[1000], seen[1000] = {0}, sample[300];
    drupe_philox philox = begin();
    (void)state;
    drupe_random_permutation(&philox, 1000, order);
    for (size_t i = 0; i < 1000; i++) seen[order[i]]++;
    for (size_t i = 0; i < 1000; i++) assert_int_equal(seen[i], 1);
    for (int deal = 0; deal < 2; deal++) {
        memset(seen, 0, sizeof seen);
        assert_true(deal ? drupe_random_deal(&philox, 1000, 300, sample)
                         : drupe_random_sample(&philox, 1000, 300, true, sample));
        for (size_t i = 0; i < 300; i++) assert_int_equal(++seen[sample[i]], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_counter_carries),
        cmocka_unit_test(test_many_are_one_by_one),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_laws),
        cmocka_unit_test(test_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
