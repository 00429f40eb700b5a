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

#include "kernels/host_move.h"
