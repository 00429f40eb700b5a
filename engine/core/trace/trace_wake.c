/* What those need who follow the trace: to be woken in time.
 *
 * Submitters compare their number with `alarm_at`, which the waiting thread sets and which is UINT64_MAX
 * while it is awake. The first submitter that reaches it takes it away and wakes the thread, so a wait costs
 * one submitter a system call. If the submission with that number is made just before `alarm_at` is set, its
 * submitter wakes nobody. Therefore the thread compares with the latest submission again before it sleeps.
 * Each side stores first and loads the other's value afterwards, sequentially consistent, so at least one of
 * the two sees the other. */
#include "core/trace/trace_room.h"
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
    _Alignas(64) _Atomic(uint64_t) at;
    _Alignas(64) _Atomic(uint32_t) calls; /* the futex: counts the wakings */
    uint32_t heard;                       /* the waiting thread's: those before its last wait */
} wake = {.at = UINT64_MAX};

void drupe_trace_wake(void)
{
    atomic_fetch_add(&wake.calls, 1);
    syscall(SYS_futex, &wake.calls, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void ring_alarm(uint64_t number)
{
    uint64_t at = atomic_load(&wake.at);
    while (number >= at) {
        if (!atomic_compare_exchange_weak(&wake.at, &at, UINT64_MAX)) continue;
        drupe_trace_wake();
        return;
    }
}

void drupe_trace_made(uint64_t number)
{
    if (number >= atomic_load(&wake.at)) ring_alarm(number);
}

void drupe_trace_await(uint64_t number, uint64_t timeout_ns)
{
    atomic_store(&wake.at, number);
    uint32_t seen = atomic_load(&wake.calls);
    if (seen == wake.heard && drupe_inflight_latest() < number) {
        struct timespec span = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                                .tv_nsec = (long)(timeout_ns % 1000000000)};
        syscall(SYS_futex, &wake.calls, FUTEX_WAIT_PRIVATE, seen, timeout_ns == DRUPE_FOREVER ? NULL : &span,
                NULL, 0);
    }
    wake.heard = atomic_load(&wake.calls);
    atomic_store(&wake.at, UINT64_MAX);
}
