/* Arrays with known elements, seen through every kind of layout, and arithmetic on single numbers to hold the
 * engine's results against. */
#ifndef ARRAY_FIXTURE_H
#define ARRAY_FIXTURE_H

#include "drupe/drupe.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka's header needs the four above. */
#include <cmocka.h>

#define CHECK(expression)                                                                                    \
    do {                                                                                                     \
        if ((expression) != DRUPE_OK) fail_msg("%s: %s", #expression, drupe_error_last()->text);             \
    } while (0)

/* The queues under test: of `host`, and of OpenCL's CPU where there is one. */
extern drupe_queue *queues[2];
extern size_t queue_count;
/* cmocka group fixtures. The teardown also checks that nothing is left over. */
int queues_open(void **state);
int queues_close(void **state);
bool queue_is_host(const drupe_queue *queue);

/* One number of some element type; `f` counts for floats, with `im` for complex numbers, `i` otherwise: of
 * uint64 its bits. */
typedef struct number {
    drupe_dtype dtype;
    int64_t i;
    double f, im;
} number;
number number_cast(number value, drupe_dtype dtype);
number number_load(const void *bytes, drupe_dtype dtype);
void number_store(void *bytes, number value);
/* What stands for a Python scalar: float64, complex128, or the integer type that holds it. */
number number_of(const drupe_scalar *scalar);
bool is_float(drupe_dtype dtype); /* of real ones */
bool is_complex(drupe_dtype dtype);
bool is_whole(drupe_dtype dtype); /* bool and integers */
/* What a type is computed in: float16 in float32. */
drupe_dtype computed_in(drupe_dtype dtype);
/* Equal, or both NaN, or within `ulps` units in the last place; complex numbers: of their size, or both not
 * finite.
 */
bool number_close(number a, number b, int ulps);
/* op in the compute type of a (and b, which has the same). */
number number_apply(drupe_op op, number a, number b);
number number_combine(drupe_op op, number a, number b); /* a reduction's step */
number number_identity(drupe_op op, drupe_dtype dtype);

typedef enum sample_layout {
    CONTIGUOUS,
    STRIDED,    /* every second element of the last axis */
    NEGATIVE,   /* all axes backwards */
    TRANSPOSED, /* axes reversed in memory */
    BROADCAST,  /* length 1 in the last axis */
    ROW,        /* only the last axis */
    ZERO_D,
    LAYOUT_COUNT
} sample_layout;

typedef struct sample {
    drupe_array array;
    char *base; /* the allocation's content as the test knows it */
} sample;

/* Small numbers that follow from `seed`, with `special` also NaN, infinities and extremes. `shape` is that of
 * the full array; the layout decides which axes the sample has. */
void sample_make(drupe_queue *queue, drupe_dtype dtype, sample_layout layout, int ndim, const size_t *shape,
                 unsigned seed, bool special, sample *s);
void sample_clear(sample *s);
/* The element at `index` of an ndim-dimensional space over which the sample is broadcast. */
number sample_at(const sample *s, int ndim, const size_t *index);

/* The elements of a device array in C order, malloc'ed. */
void *array_fetch(const drupe_array *array);

/* Step an index in C order; false after the last one. */
bool index_next(int ndim, const size_t *shape, size_t *index);

#endif
