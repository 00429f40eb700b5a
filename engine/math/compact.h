/* Elements where a mask is true: counted, put side by side, spread again; and numbers that are repeated.
 *
 * A mask is `n` bytes of which 0 alone is false. It is counted in blocks, so that several processors can
 * then work on it by drupe_parallel(). A row is what belongs to one element of the mask. Whatever a mask
 * holds by the time it is read again, nothing is written beyond what was counted.
 *
 * Threads: from any. */
#ifndef DRUPE_MATH_COMPACT_H
#define DRUPE_MATH_COMPACT_H

#include "drupe/array.h"

#define DRUPE_MASK_BLOCK ((size_t)32768)
static inline size_t drupe_mask_blocks(size_t n)
{
    return (n + DRUPE_MASK_BLOCK - 1) / DRUPE_MASK_BLOCK;
}

/* counts[b]: true elements in front of block b; the last of drupe_mask_blocks(n) + 1 is that of all. */
void drupe_mask_count(const uint8_t *mask, size_t n, int64_t *counts);

/* The rows of `from` where the mask is true, side by side. */
void drupe_mask_compact(const uint8_t *mask, size_t n, const int64_t *counts, size_t row, const void *from,
                        void *to);
/* The other way: the rows of `to` where the mask is true become those of `from`, one after the other. */
void drupe_mask_expand(const uint8_t *mask, size_t n, const int64_t *counts, size_t row, const void *from,
                       void *to);
/* The coordinates of what is true in a mask of this shape: `ndim` rows of counts[last] numbers. */
void drupe_mask_positions(const uint8_t *mask, int ndim, const size_t *shape, const int64_t *counts,
                          int64_t *to);

/* The sum of `repeats`. DRUPE_E_INVALID for a negative one or a sum above INT64_MAX. */
drupe_status drupe_repeat_count(const int64_t *repeats, size_t n, int64_t *total) DRUPE_MUST_CHECK;
/* Each number from 0 on, repeats[i] times in a row; `count` of them, no more. */
void drupe_repeat_positions(const int64_t *repeats, size_t n, size_t count, int64_t *to);

#endif
