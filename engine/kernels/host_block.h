/* The host's side of the kernels: elements in blocks of one type.
 *
 * Kernels are instantiated per operation and compute type only. Operands of other types or with strides pass
 * block by block through buffers that stay in the L1 cache, so that neither element types nor layouts
 * multiply the code. Included by the generated file, once per instruction set; everything is static. */
#include "backends/builtin.h"
#include "kernels/params.h"
#include <complex.h>
#include <math.h>
#include <string.h>
#undef I

/* glibc's vector functions: its headers offer them under -ffast-math only, which would spoil NaN and
 * infinity here. Clang is told by -fveclib instead. */
#if defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if defined(__x86_64__) || (defined(__aarch64__) && __GLIBC_PREREQ(2, 38))
#define VECTOR_FUNCTION(name)                                                                                \
    extern __attribute__((simd("notinbranch"))) double name(double);                                         \
    extern __attribute__((simd("notinbranch"))) float name##f(float)
VECTOR_FUNCTION(exp);
VECTOR_FUNCTION(log);
VECTOR_FUNCTION(sin);
VECTOR_FUNCTION(cos);
extern __attribute__((simd("notinbranch"))) double pow(double, double);
extern __attribute__((simd("notinbranch"))) float powf(float, float);
#endif
#if defined(__x86_64__) && __GLIBC_PREREQ(2, 35)
VECTOR_FUNCTION(acos);
VECTOR_FUNCTION(acosh);
VECTOR_FUNCTION(asin);
VECTOR_FUNCTION(asinh);
VECTOR_FUNCTION(atan);
VECTOR_FUNCTION(atanh);
VECTOR_FUNCTION(cosh);
VECTOR_FUNCTION(expm1);
VECTOR_FUNCTION(log10);
VECTOR_FUNCTION(log1p);
VECTOR_FUNCTION(log2);
VECTOR_FUNCTION(sinh);
VECTOR_FUNCTION(tan);
VECTOR_FUNCTION(tanh);
extern __attribute__((simd("notinbranch"))) double atan2(double, double);
extern __attribute__((simd("notinbranch"))) float atan2f(float, float);
extern __attribute__((simd("notinbranch"))) double hypot(double, double);
extern __attribute__((simd("notinbranch"))) float hypotf(float, float);
#endif
#endif

#include "kernels/dialect.h"
#include "kernels/half.h"
#include "kernels/numeric.h"
#define TC    float _Complex
#define TREAL float
#define TS    _c64
#include "kernels/complex.cl"
#undef TC
#undef TREAL
#undef TS
#define TC    double _Complex
#define TREAL double
#define TS    _c128
#include "kernels/complex.cl"
#undef TC
#undef TREAL
#undef TS

/* Elements of a block. Five buffers of numbers of 8 bytes fit a 32 KiB cache. */
#define BLOCK      512
#define ITEM_BYTES 16

typedef struct block {
    _Alignas(64) char bytes[BLOCK * ITEM_BYTES];
} block;

#include "kernels/host_cast.h"

/* Where the share of work-item `item` of `items` begins: whole cache lines of any type, so that neighbours do
 * not write to one line. */
static inline i64 share(i64 n, i64 item, i64 items)
{
    const i64 per = n < 64 * items ? (n + items - 1) / items : ((n + items - 1) / items + 63) / 64 * 64;
    return min(n, item * per);
}

typedef struct pair {
    uint64_t low, high;
} pair;

#define STRIDED_COPY(name, type)                                                                             \
    static void name(void *to_, i64 to_stride, const void *from_, i64 from_stride, i64 n)                    \
    {                                                                                                        \
        type *to = to_;                                                                                      \
        const type *from = from_;                                                                            \
        if (to_stride == 1 && from_stride == 0) {                                                            \
            const type value = *from;                                                                        \
            for (i64 i = 0; i < n; i++) to[i] = value;                                                       \
        } else if (to_stride == 1) {                                                                         \
            INDEPENDENT                                                                                      \
            for (i64 i = 0; i < n; i++) to[i] = from[i * from_stride];                                       \
        } else {                                                                                             \
            for (i64 i = 0; i < n; i++) to[i * to_stride] = from[i * from_stride];                           \
        }                                                                                                    \
    }
STRIDED_COPY(strided_copy_1, uint8_t)
STRIDED_COPY(strided_copy_2, uint16_t)
STRIDED_COPY(strided_copy_4, uint32_t)
STRIDED_COPY(strided_copy_8, uint64_t)
STRIDED_COPY(strided_copy_16, pair)

/* n elements of `size` bytes; strides in elements. */
static void strided_copy(void *to, i64 to_stride, const void *from, i64 from_stride, i64 n, i64 size)
{
    if (to_stride == 1 && from_stride == 1)
        memcpy(to, from, (size_t)(n * size));
    else if (size == 4)
        strided_copy_4(to, to_stride, from, from_stride, n);
    else if (size == 8)
        strided_copy_8(to, to_stride, from, from_stride, n);
    else if (size == 16)
        strided_copy_16(to, to_stride, from, from_stride, n);
    else if (size == 2)
        strided_copy_2(to, to_stride, from, from_stride, n);
    else
        strided_copy_1(to, to_stride, from, from_stride, n);
}

/* One operand in memory, seen as a sequence of elements in C order of `shape`. */
typedef struct operand {
    char *base;
    int dtype, ndim; /* ndim 0: contiguous */
    i64 size;        /* bytes of an element */
    const i64 *shape, *strides;
#if DRUPE_CHECKED
    drupe_kernel_bounds *bounds;
    int index;
#endif
} operand;

#if DRUPE_CHECKED
#define OPERAND_INSIDE(o, first, stride, n) drupe_inside((o)->bounds, (o)->index, first, stride, n)
#else
#define OPERAND_INSIDE(o, first, stride, n) 1
#endif

/* Where elements of an operand are, for a block. Instrumented kernels use memory of nobody instead of what is
 * outside. */
static char *operand_address(const operand *o, i64 first, i64 n)
{
#if DRUPE_CHECKED
    static _Thread_local block nobodys;
    if (!OPERAND_INSIDE(o, first, 1, n)) return nobodys.bytes;
#endif
    (void)n;
    return o->base + first * o->size;
}

typedef struct cursor {
    i64 index[DRUPE_KERNEL_DIMS];
    i64 offset; /* elements */
} cursor;

static void cursor_seek(cursor *c, const operand *o, i64 at)
{
    c->offset = 0;
    for (int d = o->ndim - 1; d >= 0; d--) {
        const i64 rest = at / o->shape[d];
        c->index[d] = at - rest * o->shape[d];
        c->offset += c->index[d] * o->strides[d];
        at = rest;
    }
}

/* Forward by n elements that do not cross the end of the row. */
static void cursor_advance(cursor *c, const operand *o, i64 n)
{
    int d = o->ndim - 1;
    c->index[d] += n;
    c->offset += n * o->strides[d];
    while (d > 0 && c->index[d] == o->shape[d]) {
        c->offset -= o->shape[d] * o->strides[d];
        c->index[d] = 0;
        d--;
        c->index[d]++;
        c->offset += o->strides[d];
    }
}

/* Rows as short as this are moved column by column: a call for each would take longer than their elements. */
#define SHORT_ROW 6

#define ROWS_MOVE(name, type)                                                                                \
    static void name(void *operand_, void *buffer_, i64 rows, i64 n, i64 down, i64 right, int to_operand)    \
    {                                                                                                        \
        for (i64 i = 0; i < n; i++) {                                                                        \
            type *element = (type *)operand_ + i * right, *buffer = (type *)buffer_ + i;                     \
            if (to_operand)                                                                                  \
                for (i64 r = 0; r < rows; r++) element[r * down] = buffer[r * n];                            \
            else                                                                                             \
                for (i64 r = 0; r < rows; r++) buffer[r * n] = element[r * down];                            \
        }                                                                                                    \
    }
ROWS_MOVE(rows_move_1, uint8_t)
ROWS_MOVE(rows_move_2, uint16_t)
ROWS_MOVE(rows_move_4, uint32_t)
ROWS_MOVE(rows_move_8, uint64_t)
ROWS_MOVE(rows_move_16, pair)

/* A row that is broadcast, again and again. */
static void row_repeat(const operand *o, const char *element, i64 rows, i64 n, i64 right, char *buffer)
{
    const i64 all = rows * n * o->size;
    strided_copy(buffer, 1, element, right, n, o->size);
    for (i64 done = n * o->size; done < all; done *= 2)
        memcpy(buffer + done, buffer, (size_t)min(done, all - done));
}

/* As many whole rows as there are at once, up to n elements, where they are short or all the same; how many
 * elements that were, 0 where they are neither. Moves the cursor. */
static i64 operand_rows(const operand *o, cursor *c, i64 n, char *buffer, int to_operand)
{
    const int last = o->ndim - 1;
    const i64 length = o->shape[last];
    if (DRUPE_CHECKED || last < 1 || c->index[last] || n < 2 * length) return 0;
    const i64 rows = min(n / length, o->shape[last - 1] - c->index[last - 1]);
    const i64 down = o->strides[last - 1], right = o->strides[last];
    const int same = !to_operand && down == 0;
    if (rows < 2 || (!same && length > SHORT_ROW)) return 0;
    char *element = o->base + c->offset * o->size;
    if (same)
        row_repeat(o, element, rows, length, right, buffer);
    else if (o->size == 1)
        rows_move_1(element, buffer, rows, length, down, right, to_operand);
    else if (o->size == 2)
        rows_move_2(element, buffer, rows, length, down, right, to_operand);
    else if (o->size == 4)
        rows_move_4(element, buffer, rows, length, down, right, to_operand);
    else if (o->size == 8)
        rows_move_8(element, buffer, rows, length, down, right, to_operand);
    else
        rows_move_16(element, buffer, rows, length, down, right, to_operand);
    c->index[last - 1] += rows - 1;
    c->offset += (rows - 1) * down;
    cursor_advance(c, o, length);
    return rows * length;
}

/* Between elements [at, at + n) of a strided operand and a contiguous buffer of its type. */
static void operand_move(const operand *o, i64 at, i64 n, char *buffer, int to_operand)
{
    cursor c;
    cursor_seek(&c, o, at);
    const int last = o->ndim - 1;
    const i64 stride = o->strides[last];
    while (n > 0) {
        const i64 moved = operand_rows(o, &c, n, buffer, to_operand);
        buffer += moved * o->size;
        n -= moved;
        if (moved) continue;
        const i64 run = min(n, o->shape[last] - c.index[last]);
        char *element = o->base + c.offset * o->size;
        const int good = OPERAND_INSIDE(o, c.offset, stride, run);
        if (good && to_operand)
            strided_copy(element, stride, buffer, 1, run, o->size);
        else if (good)
            strided_copy(buffer, 1, element, stride, run, o->size);
        buffer += run * o->size;
        n -= run;
        if (n > 0) cursor_advance(&c, o, run);
    }
}

/* The address of element `at` if [at, at + n) are neighbours, else NULL. */
static char *operand_neighbours(const operand *o, i64 at, i64 n)
{
    if (o->ndim == 0) return operand_address(o, at, n);
    if (o->strides[o->ndim - 1] != 1) return NULL;
    i64 length = 1; /* of the rows that lie one behind the other, as one */
    for (int d = o->ndim - 1; d >= 0 && o->strides[d] == length; d--) length *= o->shape[d];
    if (at % length + n > length) return NULL;
    cursor c;
    cursor_seek(&c, o, at);
    return operand_address(o, c.offset, n);
}
