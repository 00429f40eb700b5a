/* One vocabulary for kernels in OpenCL C and in C99.
 *
 * A shape file is included once per kernel. Before that, these are defined:
 *   NAME             the kernel's name
 *   TC, TS, TREAL    the compute type, its suffix in numeric.h (_f32), and the type of its real part
 *   TC0, TC1, TC2    what the inputs are computed in: TC, or that of bool
 *   TR               the type of the result before it is stored
 *   WHOLE            1 where functions of libm come in vectors of several widths (C99; see map_whole())
 *   TO, TI0, TI1 ... stored types of output and inputs (OpenCL C; the host's kernels see TC only), and TV,
 * TV0, TV1 ... what an element of them is in a register: a float of a half READ1, ZERO1 ... element i of
 * input 0, and what stands for one that is not there; WRITE0 stores one LOAD             what a stored TC
 * counts as: any byte but 0 is true LOAD0, LOAD1 ... casts from TI0 to TC0 and so on; TRUTH0 and TRUTH1 are
 * the part of them that vectors of TI0 and TI1 need before they are converted (OpenCL C) STORE cast from TR
 * to TV OP(a), OP(a, b), OP(a, b, c)  the operation and, for OpenCL C, the form: FORM_GPU is 0 for CPU
 * devices, 1 for the others.
 *
 * DRUPE_CHECKED is 1 in instrumented kernels, for checked mode: each load and store of an operand asks INSIDE
 * first, and is left out when it is not. Otherwise none of that is in the kernel. */
#define CAT_(a, b) a##b
#define CAT(a, b)  CAT_(a, b)
#define T(name)    CAT(num_##name, TS)

#define CAST_BOOL(x) ((x) != 0)

#ifdef __OPENCL_VERSION__
#if HAS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF
typedef int i32;
typedef long i64;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
#if FORM_GPU /* in groups of GROUP work-items, a power of 2, for which the compiler has to find registers */
#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
#else
#define KERNEL __kernel void
#endif
#define GLOBAL     __global
#define LOCAL      __local
#define INT8_MIN   SCHAR_MIN
#define INT8_MAX   SCHAR_MAX
#define UINT8_MAX  UCHAR_MAX
#define INT16_MIN  SHRT_MIN
#define INT16_MAX  SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN  INT_MIN
#define INT32_MAX  INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN  LONG_MIN
#define INT64_MAX  LONG_MAX
#define UINT64_MAX ULONG_MAX
/* C leaves open what becomes of negative ones; NumPy wraps them round. */
#define FLOAT_TO_U64(x) ((x) < 0 ? (ulong)(long)(x) : (ulong)(x))
#if defined(__clang__) && !FORM_GPU && !DRUPE_CHECKED
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define UNROLL      _Pragma("unroll")
#else
#define INDEPENDENT
#define UNROLL _Pragma("unroll")
#endif
/* This work-item's contiguous share [begin, end) of n, in steps of 16. */
#define SPAN(begin, end, n)                                                                                  \
    i64 begin##_per = (((n) + get_global_size(0) - 1) / get_global_size(0) + 15) / 16 * 16;                  \
    i64 begin = min((i64)(get_global_id(0) * begin##_per), (i64)(n)), end = min(begin + begin##_per, (i64)(n))

/* Element i of operand k, and `w` neighbours from it on, a multiple of w, as a vector of TYPE. */
#define READ(k, p, i)                  CAT(READ, k)(p, i)
#define WRITE(k, p, i, value)          CAT(WRITE, k)(p, i, value)
#define READ_PLAIN(p, i)               (p)[i]
#define WRITE_PLAIN(p, i, value)       (p)[i] = value
#define READ_HALF(p, i)                vload_half(i, p)
#define WRITE_HALF(p, i, value)        vstore_half_rte(value, i, p)
#define READ_WIDE_PLAIN(w, p, i)       CAT(vload, w)(0, (p) + (i))
#define READ_WIDE_HALF(w, p, i)        CAT(vload_half, w)((i) / w, p)
#define PUT_WIDE_PLAIN(w, p, i, value) CAT(vstore, w)(value, 0, (p) + (i))
#define PUT_WIDE_HALF(w, p, i, value)  CAT(CAT(vstore_half, w), _rte)(value, (i) / w, p)
#if DRUPE_CHECKED
static inline int drupe_inside(GLOBAL drupe_kernel_bounds *bounds, int k, i64 i, i64 n)
{
    if (i >= bounds->low[k] && i + n - 1 <= bounds->high[k]) return 1;
    if (atomic_cmpxchg(&bounds->operand, 0, k + 1) == 0) bounds->index = i < bounds->low[k] ? i : i + n - 1;
    return 0;
}
#define BOUNDS       , GLOBAL drupe_kernel_bounds *bounds
#define GET(k, p, i) (drupe_inside(bounds, k, i, 1) ? READ(k, p, i) : CAT(ZERO, k))
#define PUT(k, p, i, value)                                                                                  \
    {                                                                                                        \
        if (drupe_inside(bounds, k, i, 1)) WRITE(k, p, i, value);                                            \
    }
#define GET_WIDE(k, p, i, w, TYPE)                                                                           \
    (drupe_inside(bounds, k, i, w) ? CAT(READ_WIDE, k)(w, p, i) : (CAT(TYPE, w))(0))
#define PUT_WIDE(k, p, i, w, value)                                                                          \
    {                                                                                                        \
        if (drupe_inside(bounds, k, i, w)) CAT(PUT_WIDE, k)(w, p, i, value);                                 \
    }
#else
#define BOUNDS
#define GET(k, p, i)                READ(k, p, i)
#define PUT(k, p, i, value)         WRITE(k, p, i, value);
#define GET_WIDE(k, p, i, w, TYPE)  CAT(READ_WIDE, k)(w, p, i)
#define PUT_WIDE(k, p, i, w, value) CAT(PUT_WIDE, k)(w, p, i, value);
#endif

#else /* C99: host_block.h has the headers */
typedef int32_t i32;
typedef int64_t i64;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#define GLOBAL
#define min(a, b) ((a) < (b) ? (a) : (b))
/* Iterations touch no common element, so that operations in place vectorise as well. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define VECTORWISE  _Pragma("clang loop vectorize(assume_safety) interleave_count(1)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#define VECTORWISE                                                                                           \
    INDEPENDENT /* one vector at a time, so that none of whole vectors is left to a scalar loop */
#endif
#define UNROLL
/* In front of a function that is compiled by itself: no copy of it may be made for one call. */
#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))
#endif
/* Whether elements first, first + stride ... of operand k, n of them, may be touched; the argument behind the
 * kernel's own tells. */
#if DRUPE_CHECKED
static int drupe_inside(drupe_kernel_bounds *bounds, int k, i64 first, i64 stride, i64 n)
{
    const i64 last = first + (n - 1) * stride, low = min(first, last), high = first + last - low;
    int none = 0;
    if (n <= 0 || (low >= bounds->low[k] && high <= bounds->high[k])) return 1;
    if (__atomic_compare_exchange_n(&bounds->operand, &none, k + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        bounds->index = low < bounds->low[k] ? low : high;
    return 0;
}
#define BOUNDS_ARG(args, i)         drupe_kernel_bounds *bounds = *(drupe_kernel_bounds *const *)(args)[i];
#define INSIDE(k, first, stride, n) drupe_inside(bounds, k, first, stride, n)
#else
#define BOUNDS_ARG(args, i)
#define INSIDE(k, first, stride, n) 1
#endif
/* The generic names of OpenCL C. */
#define DRUPE_GENERIC(f, d, x) _Generic((x), float : f, default : d)
#define exp(x)                 DRUPE_GENERIC(expf, exp, x)(x)
#define log(x)                 DRUPE_GENERIC(logf, log, x)(x)
#define sin(x)                 DRUPE_GENERIC(sinf, sin, x)(x)
#define cos(x)                 DRUPE_GENERIC(cosf, cos, x)(x)
#define sqrt(x)                DRUPE_GENERIC(sqrtf, sqrt, x)(x)
#define fabs(x)                DRUPE_GENERIC(fabsf, fabs, x)(x)
#define floor(x)               DRUPE_GENERIC(floorf, floor, x)(x)
#define pow(x, y)              DRUPE_GENERIC(powf, pow, x)(x, y)
#define fmod(x, y)             DRUPE_GENERIC(fmodf, fmod, x)(x, y)
#define fma(x, y, z)           DRUPE_GENERIC(fmaf, fma, x)(x, y, z)
#define copysign(x, y)         DRUPE_GENERIC(copysignf, copysign, x)(x, y)
#define tan(x)                 DRUPE_GENERIC(tanf, tan, x)(x)
#define asin(x)                DRUPE_GENERIC(asinf, asin, x)(x)
#define acos(x)                DRUPE_GENERIC(acosf, acos, x)(x)
#define atan(x)                DRUPE_GENERIC(atanf, atan, x)(x)
#define sinh(x)                DRUPE_GENERIC(sinhf, sinh, x)(x)
#define cosh(x)                DRUPE_GENERIC(coshf, cosh, x)(x)
#define tanh(x)                DRUPE_GENERIC(tanhf, tanh, x)(x)
#define asinh(x)               DRUPE_GENERIC(asinhf, asinh, x)(x)
#define acosh(x)               DRUPE_GENERIC(acoshf, acosh, x)(x)
#define atanh(x)               DRUPE_GENERIC(atanhf, atanh, x)(x)
#define expm1(x)               DRUPE_GENERIC(expm1f, expm1, x)(x)
#define log1p(x)               DRUPE_GENERIC(log1pf, log1p, x)(x)
#define log2(x)                DRUPE_GENERIC(log2f, log2, x)(x)
#define log10(x)               DRUPE_GENERIC(log10f, log10, x)(x)
#define ceil(x)                DRUPE_GENERIC(ceilf, ceil, x)(x)
#define trunc(x)               DRUPE_GENERIC(truncf, trunc, x)(x)
#define rint(x)                DRUPE_GENERIC(rintf, rint, x)(x)
#define atan2(x, y)            DRUPE_GENERIC(atan2f, atan2, x)(x, y)
#define hypot(x, y)            DRUPE_GENERIC(hypotf, hypot, x)(x, y)
#define nextafter(x, y)        DRUPE_GENERIC(nextafterf, nextafter, x)(x, y)
#endif
