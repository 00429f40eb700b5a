/* What compiled code may call, by name. None of it knows its caller once it has returned, and a thread that
 * faults in it may end there. */
#include "quick/tcc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- What the compiler calls for expressions -------------------------------------------------------------
 */

static unsigned long long from_float(float x)
{
    return (unsigned long long)x;
}

static unsigned long long from_double(double x)
{
    return (unsigned long long)x;
}

static unsigned long long from_long_double(long double x)
{
    return (unsigned long long)x;
}

static long long signed_from_float(float x)
{
    return (long long)x;
}

static long long signed_from_double(double x)
{
    return (long long)x;
}

static long long signed_from_long_double(long double x)
{
    return (long long)x;
}

static float to_float(unsigned long long x)
{
    return (float)x;
}

static double to_double(unsigned long long x)
{
    return (double)x;
}

static long double to_long_double(unsigned long long x)
{
    return (long double)x;
}

/* Memory on the caller's stack, each page touched in turn: where the stack ends there is a fault. The
 * compiler keeps the stack pointer at multiples of 16 between calls, and addresses its variables by the frame
 * pointer. */
void drupe_tcc_alloca(void);
__asm__(".pushsection .text\n"
        ".type drupe_tcc_alloca, @function\n"
        "drupe_tcc_alloca:\n"
        "    pop %rdx\n"
        "    lea 15(%rdi), %rax\n"
        "    and $-16, %rax\n"
        "1:  cmp $4096, %rax\n"
        "    jb 2f\n"
        "    sub $4096, %rsp\n"
        "    orq $0, (%rsp)\n"
        "    sub $4096, %rax\n"
        "    jmp 1b\n"
        "2:  sub %rax, %rsp\n"
        "    orq $0, (%rsp)\n"
        "    mov %rsp, %rax\n"
        "    push %rdx\n"
        "    ret\n"
        ".size drupe_tcc_alloca, . - drupe_tcc_alloca\n"
        ".popsection\n");

/* --- Atomics: the compiler has none ----------------------------------------------------------------------
 */

#define ATOMICS(T, N)                                                                                        \
    static T load##N(const volatile void *at)                                                                \
    {                                                                                                        \
        return __atomic_load_n((const volatile T *)at, __ATOMIC_SEQ_CST);                                    \
    }                                                                                                        \
    static void store##N(volatile void *at, T value)                                                         \
    {                                                                                                        \
        __atomic_store_n((volatile T *)at, value, __ATOMIC_SEQ_CST);                                         \
    }                                                                                                        \
    static T swap##N(volatile void *at, T value)                                                             \
    {                                                                                                        \
        return __atomic_exchange_n((volatile T *)at, value, __ATOMIC_SEQ_CST);                               \
    }                                                                                                        \
    static T add##N(volatile void *at, T value)                                                              \
    {                                                                                                        \
        return __atomic_fetch_add((volatile T *)at, value, __ATOMIC_SEQ_CST);                                \
    }                                                                                                        \
    static T cas##N(volatile void *at, T expected, T value)                                                  \
    {                                                                                                        \
        __atomic_compare_exchange_n((volatile T *)at, &expected, value, 0, __ATOMIC_SEQ_CST,                 \
                                    __ATOMIC_SEQ_CST);                                                       \
        return expected;                                                                                     \
    }
ATOMICS(unsigned, 32)
ATOMICS(unsigned long long, 64)

static void fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* --- All of it -------------------------------------------------------------------------------------------
 */

typedef void (*any)(void);

/* clang-format off */
#define PLAIN(name) {#name, (any)(name)}
#define BOTH(name) PLAIN(name), PLAIN(name##f)
#define SIZES(name) {"drupe_" #name "32_", (any)name##32}, {"drupe_" #name "64_", (any)name##64}

const drupe_tcc_function drupe_tcc_functions[] = {
    {"__fixunssfdi", (any)from_float}, {"__fixunsdfdi", (any)from_double}, {"__fixunsxfdi", (any)from_long_double},
    {"__fixsfdi", (any)signed_from_float}, {"__fixdfdi", (any)signed_from_double},
    {"__fixxfdi", (any)signed_from_long_double},
    {"__floatundisf", (any)to_float}, {"__floatundidf", (any)to_double}, {"__floatundixf", (any)to_long_double},
    {"alloca", drupe_tcc_alloca},
    PLAIN(memcpy), PLAIN(memmove), PLAIN(memset), PLAIN(memcmp), PLAIN(dprintf), PLAIN(printf),
    SIZES(load), SIZES(store), SIZES(swap), SIZES(add), SIZES(cas), {"drupe_fence_", fence},
    BOTH(acos), BOTH(acosh), BOTH(asin), BOTH(asinh), BOTH(atan), BOTH(atan2), BOTH(atanh), BOTH(cbrt), BOTH(ceil),
    BOTH(copysign), BOTH(cos), BOTH(cosh), BOTH(erf), BOTH(erfc), BOTH(exp), BOTH(exp2), BOTH(expm1), BOTH(fabs),
    BOTH(fdim), BOTH(floor), BOTH(fma), BOTH(fmax), BOTH(fmin), BOTH(fmod), BOTH(frexp), BOTH(hypot), BOTH(ilogb),
    BOTH(ldexp), BOTH(lgamma), PLAIN(lgamma_r), PLAIN(lgammaf_r), BOTH(llrint), BOTH(llround), BOTH(log),
    BOTH(log10), BOTH(log1p), BOTH(log2), BOTH(logb), BOTH(lrint), BOTH(lround), BOTH(modf), BOTH(nearbyint),
    BOTH(nextafter), BOTH(pow), BOTH(remainder), BOTH(rint), BOTH(round), BOTH(scalbln), BOTH(scalbn), BOTH(sin),
    PLAIN(sincos), PLAIN(sincosf), BOTH(sinh), BOTH(sqrt), BOTH(tan), BOTH(tanh), BOTH(tgamma), BOTH(trunc),
    {NULL, NULL}};
/* clang-format on */
