/* An element has the same result wherever it stands in an array: at its end, by itself, between others. */
#include "backends/builtin.h"
#include "fused_program.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

enum { N = 700, ITEM = 16 };
static const drupe_i64 lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33, 47, 64, 65, 100, 513};
static const drupe_i64 starts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 30, 63, 64, 65, 100};
#define COUNT(array) (sizeof(array) / sizeof(array[0]))

typedef struct launch {
    const drupe_builtin *kernel;
    int arity;
    drupe_i32 dtypes[DRUPE_KERNEL_INPUTS + 1]; /* as stored; the result's is the first */
    _Alignas(64) char arrays[DRUPE_KERNEL_INPUTS + 1][N * ITEM];
} launch;

/* Elements [at, at + n) into the beginning of `out`. */
static void run(const launch *l, drupe_i64 at, drupe_i64 n, char *out)
{
    drupe_map_head head = {.n = n};
    const void *pointers[DRUPE_KERNEL_INPUTS + 1] = {out};
    const void *args[DRUPE_KERNEL_INPUTS + 2];
    memcpy(head.dtypes, l->dtypes, sizeof(head.dtypes));
    for (int i = 1; i <= l->arity; i++)
        pointers[i] = l->arrays[i] + (size_t)at * element_types[l->dtypes[i]].size;
    for (int i = 0; i <= l->arity; i++) args[i] = &pointers[i];
    args[l->arity + 1] = &head;
    l->kernel->fn(0, 1, 1, args);
}

static void check(launch *l, uint64_t seed)
{
    static _Alignas(64) char part[N * ITEM];
    const size_t size = element_types[l->dtypes[0]].size;
    seed = 2 * seed + 1;
    for (int i = 1; i <= l->arity; i++) random_elements(&seed, l->dtypes[i], l->arrays[i], N);
    run(l, 0, N, l->arrays[0]);
    for (size_t s = 0; s < COUNT(starts); s++)
        for (size_t k = 0; k < COUNT(lengths); k++) {
            const size_t n = (size_t)lengths[k];
            run(l, starts[s], lengths[k], part);
            if (memcmp(part, l->arrays[0] + (size_t)starts[s] * size, n * size) == 0) continue;
            size_t i = 0;
            while (memcmp(part + i * size, l->arrays[0] + ((size_t)starts[s] + i) * size, size) == 0) i++;
            print_error("%s from type %d to %d: element %zu of [%d, %d) differs from that of the whole\n",
                        l->kernel->name, l->dtypes[1], l->dtypes[0], (size_t)starts[s] + i, (int)starts[s],
                        (int)(starts[s] + lengths[k]));
            fail();
        }
}

/* Every operation in every type that it is computed in, its result as that. */
static void test_operations(void **state)
{
    static launch l;
    (void)state;
    for (int op = 0; op < operation_count; op++)
        for (int compute = 0; compute < DTYPES; compute++) {
            l.kernel = operation_kernel(op, compute);
            if (!l.kernel) continue;
            l.arity = operations[op].arity;
            for (int i = 0; i <= l.arity; i++) l.dtypes[i] = compute;
            check(&l, (uint64_t)(op * DTYPES + compute + 1));
        }
}

/* From every type to every other. */
static void test_casts(void **state)
{
    static launch l;
    (void)state;
    l.arity = 1;
    for (int from = 0; from < DTYPES; from++)
        for (int to = 0; to < DTYPES; to++) {
            l.kernel = operation_kernel(operation_number("copy"), to == FLOAT16 ? FLOAT32 : to);
            l.dtypes[1] = from;
            l.dtypes[0] = to;
            check(&l, (uint64_t)(from * DTYPES + to + 1));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_operations), cmocka_unit_test(test_casts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
