/* See test_builtins.h. Items share the n elements as the real kernels do. */
#include "test_builtins.h"
#include "backends/builtin.h"
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

uint64_t test_spin_result(uint64_t item, uint64_t rounds)
{
    uint64_t x = item + 1;
    for (uint64_t i = 0; i < rounds; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static void *pointer_arg(const void *const *args, int i)
{
    return *(void *const *)args[i];
}

static uint64_t value_arg(const void *const *args, int i)
{
    uint64_t value;
    memcpy(&value, args[i], sizeof value);
    return value;
}

/* Elements of one item's share. */
static size_t share(uint64_t n, size_t item, size_t size)
{
    return (size_t)(n / size * item + (n % size < item ? n % size : item));
}

static void add(size_t begin, size_t end, size_t size, const void *const *args)
{
    const float *a = pointer_arg(args, 0), *b = pointer_arg(args, 1);
    float *out = pointer_arg(args, 2);
    uint64_t n = value_arg(args, 3);
    for (size_t i = share(n, begin, size); i < share(n, end, size); i++) out[i] = a[i] + b[i];
}

static void mad(size_t begin, size_t end, size_t size, const void *const *args)
{
    uint64_t *out = pointer_arg(args, 0), n = value_arg(args, 2);
    const uint64_t *in = pointer_arg(args, 1);
    uint64_t mul = value_arg(args, 3), plus = value_arg(args, 4);
    for (size_t i = share(n, begin, size); i < share(n, end, size); i++) out[i] = in[i] * mul + plus;
}

/* To fault where it is told to is what tests want of it. */
__attribute__((no_sanitize("undefined"))) static void spin(size_t begin, size_t end, size_t size,
                                                           const void *const *args)
{
    (void)size;
    uint64_t *out = pointer_arg(args, 0);
    for (size_t i = begin; i < end; i++) out[i] = test_spin_result(i, value_arg(args, 1));
}

static void gid(size_t begin, size_t end, size_t size, const void *const *args)
{
    (void)size;
    uint64_t *out = pointer_arg(args, 0);
    for (size_t i = begin; i < end; i++) out[i] = i;
}

static void worker(size_t begin, size_t end, size_t size, const void *const *args)
{
    (void)size;
    uint64_t *out = pointer_arg(args, 0);
    for (size_t i = begin; i < end; i++) {
        volatile uint64_t sink = test_spin_result(i, value_arg(args, 1));
        (void)sink;
        out[i] = (uint64_t)gettid();
    }
}

static void gate(size_t begin, size_t end, size_t size, const void *const *args)
{
    (void)begin;
    (void)end;
    (void)size;
    _Atomic(uint64_t) *word = pointer_arg(args, 0);
    while (!atomic_load(word)) sched_yield();
}

const drupe_builtin *drupe_builtin_find(const char *name)
{
    static const drupe_builtin kernels[] = {
        {"test_add", 4, add}, {"test_mad", 5, mad},       {"test_spin", 2, spin},
        {"test_gid", 1, gid}, {"test_worker", 2, worker}, {"test_gate", 1, gate},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(name, kernels[i].name) == 0) return &kernels[i];
    }
    return NULL;
}

const char *drupe_builtin_variant(void)
{
    return "test";
}
