/* Radix sort of items by unsigned keys: stable, from the highest digit that differs on down.
 *
 * `a` holds n items, `other` is room for as many. If `parallel`, the work is shared as parallel.h says, and
 * the call is not to be made from within such a loop. */
#ifndef DRUPE_MATH_RADIX_H
#define DRUPE_MATH_RADIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct drupe_keyed {
    uint64_t key, value;
} drupe_keyed;

void drupe_radix_u32(uint32_t *a, uint32_t *other, size_t n, bool parallel);
void drupe_radix_u64(uint64_t *a, uint64_t *other, size_t n, bool parallel);
/* By the upper 32 bits alone. */
void drupe_radix_upper(uint64_t *a, uint64_t *other, size_t n, bool parallel);
void drupe_radix_keyed(drupe_keyed *a, drupe_keyed *other, size_t n, bool parallel);

#endif
