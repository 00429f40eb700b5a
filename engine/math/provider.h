/* Who computes dense linear algebra: libraries of the host, which are found at run time, else routines of
 * ours.
 *
 * Routines have the Fortran interface of BLAS and LAPACK: matrices lie in column-major order, every argument
 * is a pointer, and the lengths of texts follow at the end. An integer is given as a pointer to a drupe_fint,
 * of which libraries with 32-bit integers read the lower half; so both kinds are called alike on
 * little-endian machines, the only ones that there are libraries for.
 *
 * Libraries are opened on first use and stay open. What they have set for their threads is left alone.
 * Threads: any. */
#ifndef DRUPE_MATH_PROVIDER_H
#define DRUPE_MATH_PROVIDER_H

#include "drupe/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t drupe_fint;

/* Element types, in the order of the letters s, d, c, z; NONE: there are no routines for it. */
typedef enum drupe_blas_type {
    DRUPE_BLAS_FLOAT,
    DRUPE_BLAS_DOUBLE,
    DRUPE_BLAS_CFLOAT,
    DRUPE_BLAS_CDOUBLE,
    DRUPE_BLAS_TYPES,
    DRUPE_BLAS_NONE = -1
} drupe_blas_type;

static inline bool drupe_blas_complex(drupe_blas_type type)
{
    return type >= DRUPE_BLAS_CFLOAT;
}
/* Bytes of an element, and of its real part. */
static inline size_t drupe_blas_size(drupe_blas_type type)
{
    static const size_t sizes[] = {4, 8, 8, 16};
    return sizes[type];
}
static inline size_t drupe_blas_real_size(drupe_blas_type type)
{
    return type == DRUPE_BLAS_FLOAT || type == DRUPE_BLAS_CFLOAT ? 4 : 8;
}

/* ROUTINE(id, name of real types, name of complex types); the first three are BLAS. */
#define DRUPE_ROUTINES(ROUTINE)                                                                              \
    ROUTINE(GEMM, "gemm", "gemm")                                                                            \
    ROUTINE(GEMV, "gemv", "gemv")                                                                            \
    ROUTINE(SYRK, "syrk", "syrk")                                                                            \
    ROUTINE(GETRF, "getrf", "getrf")                                                                         \
    ROUTINE(GETRS, "getrs", "getrs")                                                                         \
    ROUTINE(GETRI, "getri", "getri")                                                                         \
    ROUTINE(POTRF, "potrf", "potrf")                                                                         \
    ROUTINE(GEQRF, "geqrf", "geqrf")                                                                         \
    ROUTINE(ORGQR, "orgqr", "ungqr")                                                                         \
    ROUTINE(GESDD, "gesdd", "gesdd")                                                                         \
    ROUTINE(SYEVD, "syevd", "heevd")                                                                         \
    ROUTINE(GEEV, "geev", "geev")                                                                            \
    ROUTINE(GELSD, "gelsd", "gelsd")

typedef enum drupe_routine {
#define DRUPE_ROUTINE_ENUM(id, real, complex) DRUPE_ROUTINE_##id,
    DRUPE_ROUTINES(DRUPE_ROUTINE_ENUM)
#undef DRUPE_ROUTINE_ENUM
        DRUPE_ROUTINE_COUNT,
    DRUPE_ROUTINE_LAPACK = DRUPE_ROUTINE_GETRF /* the first that is LAPACK */
} drupe_routine;

typedef struct drupe_provider {
    const char *name; /* for people: "OpenBLAS of NumPy" */
    const char *path; /* the library's file, "" for our own routines */
    bool narrow;      /* its integers have 32 bits */
} drupe_provider;

typedef void (*drupe_routine_fn)(void);

/* A routine for a type, to be cast to its own type, and whose it is. NULL with *provider NULL when nobody has
 * it. Of BLAS there are none of our own: math/product.h has the loops. Pivots of DRUPE_ROUTINE_GETRF are
 * understood by GETRS and GETRI, since LAPACK comes from one library. `provider` may be NULL. */
drupe_routine_fn drupe_routine_get(drupe_routine routine, drupe_blas_type type,
                                   const drupe_provider **provider);

/* A library to try before those of the system, and what people call it; both are copied. Up to 4, the first
 * one first; more, and those that come after the first use, are ignored. */
void drupe_provider_suggest(const char *path, const char *name);
/* Whether the libraries have been looked for. */
bool drupe_provider_opened(void);

/* An integer that a provider's routine has written over a drupe_fint of 0, and number `i` of an array of its
 * integers. */
static inline int64_t drupe_provider_int(const drupe_provider *provider, const void *integers, size_t i)
{
    return provider->narrow ? (int64_t)((const int32_t *)integers)[i] : ((const int64_t *)integers)[i];
}

/* own_lapack.c: a routine of ours, or NULL. */
drupe_routine_fn drupe_own_routine(drupe_routine routine, drupe_blas_type type);

#endif
