/* Who computes where the system's OpenBLAS was made for an older processor. */
#include "math/provider.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_old_openblas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
