/* The loops of math/product.h for one instruction set; LOOPS names their table.
 *
 * Columns of the result are taken COLUMNS at a time: as much of `b` as belongs to them and to INNER elements
 * of the sum is put side by side, then four rows of `a` go over it, whose sums stay in registers. The inner
 * loop always has COLUMNS steps, so that compilers make vectors of it; what lies behind the last column is 0.
 */
#include "math/product.h"

#include <string.h>

#define INNER 128
#ifndef COLUMNS
#define COLUMNS 16 /* whose sums fill the registers */
#endif
#define ROWS 4

#define WRAPPING(x, y) ((x) += (y))
#define EITHER(x, y)   ((x) |= (y))
#define TIMES(x, y)    ((x) * (y))
#define BOTH(x, y)     ((x) & (y))
#define SMALL_OF(tile) ((tile)->n < 8)

/* ELEMENT: the type in memory; WORK: what sums are of, unsigned for integers. */
#define LOOP(NAME, ELEMENT, WORK, ADD, MULTIPLY)                                                             \
    static void NAME##_small(const drupe_product_tile *t)                                                    \
    {                                                                                                        \
        for (size_t i = 0; i < t->m; i++)                                                                    \
            for (size_t j = 0; j < t->n; j++) {                                                              \
                const ELEMENT *a = (const ELEMENT *)t->a + (ptrdiff_t)i * t->a_row;                          \
                const ELEMENT *b = (const ELEMENT *)t->b + (ptrdiff_t)j * t->b_column;                       \
                WORK sum = 0;                                                                                \
                for (size_t l = 0; l < t->k; l++, a += t->a_column, b += t->b_row)                           \
                    ADD(sum, MULTIPLY((WORK)*a, (WORK)*b));                                                  \
                ((ELEMENT *)t->out)[i * t->ld + j] = (ELEMENT)sum;                                           \
            }                                                                                                \
    }                                                                                                        \
    static void NAME##_rows(const drupe_product_tile *t, size_t i, size_t j, size_t l, size_t inner,         \
                            const WORK *packed)                                                              \
    {                                                                                                        \
        const size_t rows = t->m - i < ROWS ? t->m - i : ROWS;                                               \
        const size_t columns = t->n - j < COLUMNS ? t->n - j : COLUMNS;                                      \
        WORK sums[ROWS][COLUMNS] = {{0}};                                                                    \
        const ELEMENT *a[ROWS];                                                                              \
        for (size_t r = 0; r < ROWS; r++) {                                                                  \
            const size_t row = r < rows ? i + r : i;                                                         \
            a[r] = (const ELEMENT *)t->a + (ptrdiff_t)row * t->a_row + (ptrdiff_t)l * t->a_column;           \
        }                                                                                                    \
        for (size_t s = 0; s < inner; s++, packed += COLUMNS)                                                \
            for (size_t r = 0; r < ROWS; r++) {                                                              \
                const WORK x = (WORK)a[r][(ptrdiff_t)s * t->a_column];                                       \
                for (size_t c = 0; c < COLUMNS; c++) ADD(sums[r][c], MULTIPLY(x, packed[c]));                \
            }                                                                                                \
        for (size_t r = 0; r < rows; r++) {                                                                  \
            ELEMENT *out = (ELEMENT *)t->out + (i + r) * t->ld + j;                                          \
            for (size_t c = 0; c < columns; c++) {                                                           \
                WORK sum = l ? (WORK)out[c] : 0;                                                             \
                ADD(sum, sums[r][c]);                                                                        \
                out[c] = (ELEMENT)sum;                                                                       \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void NAME(const drupe_product_tile *t)                                                            \
    {                                                                                                        \
        WORK packed[INNER * COLUMNS];                                                                        \
        if (SMALL_OF(t)) {                                                                                   \
            NAME##_small(t);                                                                                 \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t j = 0; j < t->n; j += COLUMNS)                                                           \
            for (size_t l = 0; l < t->k; l += INNER) {                                                       \
                const size_t inner = t->k - l < INNER ? t->k - l : INNER;                                    \
                const size_t columns = t->n - j < COLUMNS ? t->n - j : COLUMNS;                              \
                for (size_t s = 0; s < inner; s++) {                                                         \
                    const ELEMENT *b =                                                                       \
                        (const ELEMENT *)t->b + (ptrdiff_t)(l + s) * t->b_row + (ptrdiff_t)j * t->b_column;  \
                    WORK *line = packed + s * COLUMNS;                                                       \
                    for (size_t c = 0; c < columns; c++) line[c] = (WORK)b[(ptrdiff_t)c * t->b_column];      \
                    for (size_t c = columns; c < COLUMNS; c++) line[c] = 0;                                  \
                }                                                                                            \
                for (size_t i = 0; i < t->m; i += ROWS) NAME##_rows(t, i, j, l, inner, packed);              \
            }                                                                                                \
    }

LOOP(loop_bool, uint8_t, uint8_t, EITHER, BOTH)
LOOP(loop_int8, uint8_t, uint8_t, WRAPPING, TIMES)
LOOP(loop_int16, uint16_t, uint32_t, WRAPPING, TIMES)
LOOP(loop_int32, uint32_t, uint32_t, WRAPPING, TIMES)
LOOP(loop_int64, uint64_t, uint64_t, WRAPPING, TIMES)
LOOP(loop_float, float, float, WRAPPING, TIMES)
LOOP(loop_double, double, double, WRAPPING, TIMES)

/* Complex elements are pairs. They come here only where there is no BLAS, so they have the plain loops. */
#define COMPLEX_LOOP(NAME, REAL)                                                                             \
    static void NAME(const drupe_product_tile *t)                                                            \
    {                                                                                                        \
        for (size_t i = 0; i < t->m; i++) {                                                                  \
            REAL *out = (REAL *)t->out + 2 * i * t->ld;                                                      \
            memset(out, 0, 2 * t->n * sizeof(REAL));                                                         \
            for (size_t l = 0; l < t->k; l++) {                                                              \
                const REAL *a =                                                                              \
                    (const REAL *)t->a + 2 * ((ptrdiff_t)i * t->a_row + (ptrdiff_t)l * t->a_column);         \
                const REAL *b = (const REAL *)t->b + 2 * (ptrdiff_t)l * t->b_row;                            \
                for (size_t j = 0; j < t->n; j++, b += 2 * t->b_column) {                                    \
                    out[2 * j] += a[0] * b[0] - a[1] * b[1];                                                 \
                    out[2 * j + 1] += a[0] * b[1] + a[1] * b[0];                                             \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

COMPLEX_LOOP(loop_cfloat, float)
COMPLEX_LOOP(loop_cdouble, double)

drupe_product_loop *const LOOPS[DRUPE_PRODUCT_TYPES] = {loop_bool,   loop_int8,   loop_int16,
                                                        loop_int32,  loop_int64,  loop_float,
                                                        loop_double, loop_cfloat, loop_cdouble};
