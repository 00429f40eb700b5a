/* Routines of our own with the interface of LAPACK, for machines without a library. */
#include "math/provider.h"
#include <complex.h>
#include <math.h>

#define SCALAR    float
#define REAL      float
#define CONJ(x)   (x)
#define SIZE(x)   fabsf(x)
#define NUMBER(x) (x)
#define ROOT(x)   sqrtf(x)
#define FN(name)  own_s##name
#include "math/own_factor.h"

#define SCALAR    double
#define REAL      double
#define CONJ(x)   (x)
#define SIZE(x)   fabs(x)
#define NUMBER(x) (x)
#define ROOT(x)   sqrt(x)
#define FN(name)  own_d##name
#include "math/own_factor.h"

#define SCALAR    float complex
#define REAL      float
#define CONJ(x)   conjf(x)
#define SIZE(x)   cabsf(x)
#define NUMBER(x) crealf(x)
#define ROOT(x)   sqrtf(x)
#define FN(name)  own_c##name
#include "math/own_factor.h"

#define SCALAR    double complex
#define REAL      double
#define CONJ(x)   conj(x)
#define SIZE(x)   cabs(x)
#define NUMBER(x) creal(x)
#define ROOT(x)   sqrt(x)
#define FN(name)  own_z##name
#include "math/own_factor.h"

#define FOUR(name)                                                                                           \
    {                                                                                                        \
        (drupe_routine_fn) own_s##name, (drupe_routine_fn)own_d##name, (drupe_routine_fn)own_c##name,        \
            (drupe_routine_fn)own_z##name                                                                    \
    }

drupe_routine_fn drupe_own_routine(drupe_routine routine, drupe_blas_type type)
{
    static const drupe_routine_fn functions[DRUPE_ROUTINE_COUNT][DRUPE_BLAS_TYPES] = {
        [DRUPE_ROUTINE_GETRF] = FOUR(getrf), [DRUPE_ROUTINE_GETRS] = FOUR(getrs),
        [DRUPE_ROUTINE_GETRI] = FOUR(getri), [DRUPE_ROUTINE_POTRF] = FOUR(potrf),
        [DRUPE_ROUTINE_GEQRF] = FOUR(geqrf), [DRUPE_ROUTINE_ORGQR] = FOUR(orgqr),
    };
    return functions[routine][type];
}
