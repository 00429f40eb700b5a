/* One vocabulary for kernels in OpenCL C and in C99.
 *
 * A shape file is included once per kernel. Before that, these are defined:
 *   NAME             the kernel's name
 *   TC, TS           the compute type, and its suffix in numeric.h (_f32)
 *   TO, TI0, TI1     stored types of output and inputs (OpenCL C; the host's kernels see TC only)
 *   LOAD, STORE      casts from a stored type to TC and from TC's result to TO
 *   OP(a), OP(a, b)  the operation
 * and, for OpenCL C, the form: FORM_GPU is 0 for CPU devices, 1 for the others. */
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
typedef uint u32;
typedef ulong u64;
#define KERNEL    __kernel void
#define GLOBAL    __global
#define LOCAL     __local
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#if defined(__clang__) && !FORM_GPU
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

#else /* C99: host_block.h has the headers */
typedef int32_t i32;
typedef int64_t i64;
typedef uint32_t u32;
typedef uint64_t u64;
#define GLOBAL
#define min(a, b) ((a) < (b) ? (a) : (b))
/* Iterations touch no common element, so that operations in place vectorise as well. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#define UNROLL
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
#define copysign(x, y)         DRUPE_GENERIC(copysignf, copysign, x)(x, y)
#endif
