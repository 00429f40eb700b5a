/* Elements of every type: random ones among which many are equal, and an order of any two. */
#ifndef ELEMENT_FIXTURE_H
#define ELEMENT_FIXTURE_H

#include "drupe/status.h"
#include "math/element.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
/* cmocka's header needs the four above. */
#include <cmocka.h>

#define CHECK(expression)                                                                                    \
    do {                                                                                                     \
        if ((expression) != DRUPE_OK) fail_msg("%s: %s", #expression, drupe_error_last()->text);             \
    } while (0)

uint64_t random_next(void);
/* n elements, malloc'ed. `special`: also NaNs, infinities, both zeros and the extremes. */
void *elements_make(drupe_element type, size_t n, bool special);
/* An element as numbers: integers exactly in `whole`, everything else in `re` and `im`. */
typedef struct element_value {
    bool is_whole, is_signed, nan;
    uint64_t whole;
    double re, im;
} element_value;
element_value element_at(drupe_element type, const void *elements, size_t i);
/* -1, 0 or 1 in the order of sorts: NaNs last, of complex numbers the imaginary ones first. */
int element_compare(drupe_element type, const void *a, size_t i, const void *b, size_t j);
/* The same as bits. */
bool element_same(drupe_element type, const void *a, size_t i, const void *b, size_t j);

#endif
