/* Who computes where the system's OpenBLAS was made for an older processor. */
#include "base/base.h"
#include "math/linear.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the headers above, which it needs */
#include <cmocka.h>

static bool newer(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static void test_old_openblas(void **state)
{
    (void)state;
    const drupe_provider *blas, *lapack;
    char *before = getenv("OPENBLAS_CORETYPE");
    before = before ? strdup(before) : NULL;
    (void)drupe_routine_get(DRUPE_ROUTINE_GEMM, DRUPE_BLAS_DOUBLE, &blas);
    assert_non_null(drupe_routine_get(DRUPE_ROUTINE_GESDD, DRUPE_BLAS_CDOUBLE, &lapack));
    assert_string_equal(lapack->path, "libopenblas.so.0");
    assert_true(lapack->narrow);
    if (newer()) {
        assert_non_null(strstr(lapack->name, "OPENBLAS_CORETYPE"));
        assert_true(!blas || strcmp(blas->path, "libopenblas.so.0") != 0);
    } else {
        assert_string_equal(lapack->name, "OpenBLAS of the system");
        assert_ptr_not_equal(blas, NULL);
    }
    /* The environment is as it was. */
    const char *after = getenv("OPENBLAS_CORETYPE");
    assert_true(!before == !after && (!before || strcmp(before, after) == 0));
    free(before);
}

/* Its integers have 32 bits. What is too large for them is refused before there is a matrix. */
static void test_sizes_of_32_bits(void **state)
{
    (void)state;
    enum { VALUES = DRUPE_LINEAR_VALUES };
    static const struct {
        drupe_linear_op op;
        unsigned flags;
        drupe_blas_type type;
        size_t m, n, k;
        bool good;
    } cases[] = {
        {DRUPE_LINEAR_SVD, 0, DRUPE_BLAS_DOUBLE, 20000, 20000, 0, true},
        {DRUPE_LINEAR_SVD, 0, DRUPE_BLAS_DOUBLE, 24000, 24000, 0, false},
        {DRUPE_LINEAR_SVD, 0, DRUPE_BLAS_CFLOAT, 16000, 16000, 0, false},
        {DRUPE_LINEAR_SVD, VALUES, DRUPE_BLAS_DOUBLE, 24000, 24000, 0, true},
        {DRUPE_LINEAR_EIGH, 0, DRUPE_BLAS_FLOAT, 32000, 32000, 0, true},
        {DRUPE_LINEAR_EIGH, 0, DRUPE_BLAS_FLOAT, 33000, 33000, 0, false},
        {DRUPE_LINEAR_EIGH, VALUES, DRUPE_BLAS_FLOAT, 33000, 33000, 0, true},
        {DRUPE_LINEAR_LSTSQ, 0, DRUPE_BLAS_DOUBLE, 5000, 5000, 1000, true},
        {DRUPE_LINEAR_LSTSQ, 0, DRUPE_BLAS_DOUBLE, 5000, 5000, 1000000, false},
        {DRUPE_LINEAR_QR, 0, DRUPE_BLAS_DOUBLE, 100000000, 10, 0, true},
        {DRUPE_LINEAR_QR, 0, DRUPE_BLAS_DOUBLE, (size_t)INT_MAX + 1, 1, 0, false},
        {DRUPE_LINEAR_SOLVE, 0, DRUPE_BLAS_DOUBLE, 50000, 50000, 1, true},
        {DRUPE_LINEAR_SOLVE, 0, DRUPE_BLAS_DOUBLE, 2, 2, (size_t)INT_MAX + 1, false},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        const drupe_linear l = {cases[i].op, cases[i].flags, cases[i].type, 1,
                                cases[i].m,  cases[i].n,     cases[i].k,    -1};
        const drupe_status status = drupe_linear_check(&l);
        if (status != (cases[i].good ? DRUPE_OK : DRUPE_E_UNSUPPORTED))
            fail_msg("case %zu: %s", i, status ? drupe_error_last()->text : "was allowed");
        if (!cases[i].good) assert_non_null(strstr(drupe_error_last()->text, "libopenblas.so.0"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_old_openblas),
                                       cmocka_unit_test(test_sizes_of_32_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
