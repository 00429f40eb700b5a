/* See radix.h. The digits from the highest down: the parts of the first pass fit into caches, and keys that
 * differ in their upper bits are in order before the lower ones are looked at. Bits that are alike in all
 * keys of a part are skipped. What is small is sorted by insertion. */
#include "math/radix.h"
#include "base/parallel.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RADIX_BITS    11
#define RADIX_DIGITS  (1 << RADIX_BITS)
#define RADIX_SMALL   24
#define RADIX_BLOCKS  64
#define RADIX_GRAIN   16384
#define RADIX_OUTSIDE ((size_t)1 << 18) /* items that do not fit into a core's caches */

typedef struct radix_digit {
    int shift, bits;
} radix_digit;

/* So many bits that a digit has about two items; outside of the caches no more than pages are known. */
static radix_digit radix_choose(size_t n, uint64_t differ)
{
    if (!differ) return (radix_digit){0, 1};
    const int top = 64 - __builtin_clzll(differ), size = 63 - __builtin_clzll((unsigned long long)n | 1);
    int bits = n > RADIX_OUTSIDE ? 10 : size - 1;
    if (bits > RADIX_BITS) bits = RADIX_BITS;
    if (bits < 3) bits = 3;
    if (bits > top) bits = top;
    return (radix_digit){top - bits, bits};
}

/* Counts become where each digit begins; the largest count is returned. */
static size_t radix_sums(size_t *counts, size_t digits)
{
    size_t sum = 0, largest = 0;
    for (size_t i = 0; i < digits; i++) {
        const size_t count = counts[i];
        counts[i] = sum;
        sum += count;
        if (count > largest) largest = count;
    }
    return largest;
}

/* The counts of blocks become where each block puts its first item of a digit; `ends`: where digits end. */
static void radix_block_sums(size_t *counts, size_t blocks, size_t digits, size_t *ends)
{
    size_t sum = 0;
    for (size_t i = 0; i < digits; i++) {
        for (size_t b = 0; b < blocks; b++) {
            const size_t count = counts[b * digits + i];
            counts[b * digits + i] = sum;
            sum += count;
        }
        ends[i] = sum;
    }
}

#define ITSELF(x) (x)
#define UPPER(x)  (uint32_t)((x) >> 32)
#define KEY_OF(x) ((x).key)

#define ITEM     uint32_t
#define KEY_TYPE uint32_t
#define KEY      ITSELF
#define NAME(x)  u32_##x
#include "math/radix_loop.inc"
#define ITEM     uint64_t
#define KEY_TYPE uint64_t
#define KEY      ITSELF
#define NAME(x)  u64_##x
#include "math/radix_loop.inc"
#define ITEM     uint64_t
#define KEY_TYPE uint32_t
#define KEY      UPPER
#define NAME(x)  upper_##x
#include "math/radix_loop.inc"
#define ITEM     drupe_keyed
#define KEY_TYPE uint64_t
#define KEY      KEY_OF
#define NAME(x)  keyed_##x
#include "math/radix_loop.inc"

#define PUBLIC(name, item)                                                                                   \
    void drupe_radix_##name(item *a, item *other, size_t n, bool parallel)                                   \
    {                                                                                                        \
        (parallel ? name##_parallel : name##_sort)(a, other, n, false);                                      \
    }
PUBLIC(u32, uint32_t)
PUBLIC(u64, uint64_t)
PUBLIC(upper, uint64_t)
PUBLIC(keyed, drupe_keyed)
