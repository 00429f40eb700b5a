/* Radix sort of items by unsigned keys: stable, from the highest digit that differs on down.
 *
 * `a` holds n items, `other` is room for as many. Afterwards the items are in `other` if `to_other`, else in
 * `a`. The serial ones call nothing; the others share the work as parallel.h says, and are not to be called
 * from within such a loop. */
#ifndef DRUPE_MATH_RADIX_H
#define DRUPE_MATH_RADIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct drupe_keyed {
    uint64_t key, value;
} drupe_keyed;

void drupe_radix_u32(uint32_t *a, uint32_t *other, size_t n, bool to_other);
void drupe_radix_u64(uint64_t *a, uint64_t *other, size_t n, bool to_other);
/* By the upper 32 bits alone. */
void drupe_radix_upper(uint64_t *a, uint64_t *other, size_t n, bool to_other);
void drupe_radix_keyed(drupe_keyed *a, drupe_keyed *other, size_t n, bool to_other);

void drupe_radix_u32_parallel(uint32_t *a, uint32_t *other, size_t n, bool to_other);
void drupe_radix_u64_parallel(uint64_t *a, uint64_t *other, size_t n, bool to_other);
void drupe_radix_upper_parallel(uint64_t *a, uint64_t *other, size_t n, bool to_other);
void drupe_radix_keyed_parallel(drupe_keyed *a, drupe_keyed *other, size_t n, bool to_other);

#endif
