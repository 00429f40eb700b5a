/* The processor's counter as a cheap clock.
 *
 * Its rate is not asked for but measured: a pair of counter and time is taken at the start and another when a
 * time is wanted, and what lies between is on the line through both. */
#include "base/base.h"
#include <stdatomic.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define PAIRS 4 /* each costs two readings of the counter and one of the clock */

static struct {
    _Atomic(uint64_t) ticks, ns; /* one instant */
    _Atomic(bool) counts;        /* the counter is used */
} start;

/* Constant rate in all states, says the processor; where a virtual machine hides that, the time is used. */
static bool counter_is_even(void)
{
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static uint64_t counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return 0;
#endif
}

/* Counter and time of one instant. A thread may lose its processor between two readings, so the closest pair
 * of several is taken. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < PAIRS; i++) {
        uint64_t before = counter(), now = drupe_now_ns(), apart = counter() - before;
        if (apart >= least) continue;
        least = apart;
        *ticks = before + apart / 2;
        *ns = now;
    }
}

static void start_once(void)
{
    uint64_t ticks = 0, ns = 0;
    if (!counter_is_even()) return;
    read_both(&ticks, &ns);
    atomic_store(&start.ns, ns);
    atomic_store(&start.ticks, ticks);
    atomic_store(&start.counts, true);
}

void drupe_ticks_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_once);
}

uint64_t drupe_ticks(void)
{
    return atomic_load_explicit(&start.counts, memory_order_relaxed) ? counter() : drupe_now_ns();
}

drupe_ticks_scale drupe_ticks_scale_now(void)
{
    drupe_ticks_scale scale = {.rate = 1};
    if (!atomic_load_explicit(&start.counts, memory_order_acquire))
        return scale; /* what it began with is there */
    scale.ticks = atomic_load(&start.ticks);
    scale.ns = atomic_load(&start.ns);
    uint64_t ticks = scale.ticks, ns = scale.ns;
    read_both(&ticks, &ns);
    uint64_t passed = ticks - scale.ticks;
    scale.rate = passed ? (double)(ns - scale.ns) / (double)passed : 0;
    return scale;
}
