/* Unsigned keys that are ordered as elements are. */
#ifndef DRUPE_MATH_SORT_KEYS_H
#define DRUPE_MATH_SORT_KEYS_H

#include "math/element.h"
#include <stdbool.h>

/* The keys of elements of a real type: of 32 bits for types of at most 4 bytes, else of 64. Descending: they
 * are ordered the other way round. NaN has the largest key either way, and -0.0 that of 0.0; whether there
 * was a -0.0 is returned. */
bool drupe_keys_narrow(drupe_element type, const void *in, size_t n, bool descending, uint32_t *keys);
bool drupe_keys_wide(drupe_element type, const void *in, size_t n, bool descending, uint64_t *keys);
/* The elements back again; `out` may be `keys`. */
void drupe_keys_narrow_back(drupe_element type, const uint32_t *keys, size_t n, bool descending, void *out);
void drupe_keys_wide_back(drupe_element type, const uint64_t *keys, size_t n, bool descending, void *out);

#endif
