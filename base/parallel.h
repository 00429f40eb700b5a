/* Loops of the host on several processors, for functions that run as work of a queue.
 *
 * Threads: from any. One loop has the helping threads at a time; another one that begins meanwhile runs on
 * its caller's thread alone, which is right, since the processors are busy. */
#ifndef DRUPE_BASE_PARALLEL_H
#define DRUPE_BASE_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>

/* Run part(i, user) once for each i below `parts`, on this thread and the helping ones, in no order. Returns
 * when all are over; what they wrote is seen then. A part must not wait for another one; a loop that it runs
 * itself has its thread alone. */
void drupe_parallel(size_t parts, void (*part)(size_t i, void *user), void *user);

/* How many threads share such a loop, the caller's included: 1 or more. */
size_t drupe_parallel_width(void);

/* Into how many parts to cut `n` elements: one per thread, but none of less than `grain` elements, and 1 at
 * least. */
size_t drupe_parallel_parts(size_t n, size_t grain);

/* Where part `i` of `parts` of n elements begins; part `parts` begins at n. */
static inline size_t drupe_parallel_begin(size_t n, size_t i, size_t parts)
{
    const size_t each = n / parts, rest = n % parts;
    return i * each + (i < rest ? i : rest);
}

/* What isolates faults of the helping threads, set once by the room that does. A fault in a part is one of
 * the loop's caller: the helping thread is parked, the other parts are given up, and the caller ends as it
 * did. */
typedef struct drupe_parallel_guard {
    /* On helping thread `helper`, before its first loop and behind its last: its faults are contained while
     * `*busy` is not 0. */
    void (*enter)(unsigned helper, const _Atomic(int) *busy);
    void (*leave)(void);
    bool (*contained)(void); /* whether a fault of the calling thread would be contained now */
    /* On the caller's thread, once nobody works on its loop: end as that helper did. Does not return. */
    void (*share)(unsigned helper);
} drupe_parallel_guard;
void drupe_parallel_guard_set(const drupe_parallel_guard *guard);
/* A helping thread has faulted in its part and is parked for good. Wakes the loop's caller. */
void drupe_parallel_lost(unsigned helper);
/* Its caller has read what was noted of the fault: another thread may take its number. */
void drupe_parallel_replace(unsigned helper);

#define DRUPE_PARALLEL_HELPERS 63

/* End the helping threads, while no loop runs: the next loop starts them again. */
void drupe_parallel_stop(void);

#endif
