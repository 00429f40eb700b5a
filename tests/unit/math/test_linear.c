/* Factorisations by whoever is found, and by our own routines with DRUPE_BLAS=none: what they give is
 * multiplied together again. */
#include "math/linear.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

enum { N = 5, COUNT = 3 };

static bool none(void)
{
    const char *set = getenv("DRUPE_BLAS");
    return set && strcmp(set, "none") == 0;
}

/* Diagonally dominant and symmetric if `symmetric`, so that all is well conditioned. */
static void matrices(double a[COUNT][N][N], bool symmetric)
{
    for (int c = 0; c < COUNT; c++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                a[c][i][j] = (i == j ? 9 : 0) + 1.0 / (1 + c + (symmetric ? i + j : 2 * i + j));
}

static drupe_status run(drupe_linear_op op, unsigned flags, size_t k, void *a, void *b, void *x, void *y)
{
    const drupe_linear linear = {op, flags, DRUPE_BLAS_DOUBLE, COUNT, N, N, k, -1};
    void *const with[] = {a, b, x}, *const without[] = {a, x, y};
    return drupe_linear_run(b ? with : without, &linear);
}

static void close_to(double got, double expected)
{
    if (!(fabs(got - expected) < 1e-12 * (1 + fabs(expected)))) fail_msg("%.17g, not %.17g", got, expected);
}

static void test_providers(void **state)
{
    (void)state;
    assert_false(drupe_provider_opened());
    drupe_provider_suggest("/nonexistent/libscipy_openblas64_.so", "what is not there");
    const drupe_provider *provider = drupe_linear_provider(DRUPE_LINEAR_INV, DRUPE_BLAS_DOUBLE);
    assert_true(drupe_provider_opened());
    assert_non_null(provider);
    assert_true(!none() || strcmp(provider->name, "Drupe") == 0);
    const drupe_provider *svd = drupe_linear_provider(DRUPE_LINEAR_SVD, DRUPE_BLAS_DOUBLE);
    if (strcmp(provider->name, "Drupe") == 0) {
        assert_null(svd);
        assert_non_null(strstr(drupe_error_last()->text, "install NumPy"));
        assert_int_equal(drupe_error_last()->status, DRUPE_E_UNAVAILABLE);
    } else {
        assert_ptr_equal(svd, provider);
    }
    for (int type = 0; type < DRUPE_BLAS_TYPES; type++)
        for (int routine = DRUPE_ROUTINE_GETRF; routine <= DRUPE_ROUTINE_ORGQR; routine++)
            assert_non_null(drupe_routine_get((drupe_routine)routine, (drupe_blas_type)type, NULL));
}

static void test_inverse(void **state)
{
    (void)state;
    double a[COUNT][N][N], x[COUNT][N][N], b[COUNT][N][2], y[COUNT][N][2], det[COUNT], sign[COUNT],
        log_size[COUNT];
    matrices(a, false);
    for (int i = 0; i < COUNT * N * 2; i++) (&b[0][0][0])[i] = i;
    assert_int_equal(run(DRUPE_LINEAR_INV, 0, 0, a, NULL, x, NULL), DRUPE_OK);
    assert_int_equal(run(DRUPE_LINEAR_SOLVE, 0, 2, a, b, y, NULL), DRUPE_OK);
    assert_int_equal(run(DRUPE_LINEAR_DET, 0, 0, a, NULL, det, NULL), DRUPE_OK);
    assert_int_equal(run(DRUPE_LINEAR_SLOGDET, 0, 0, a, NULL, sign, log_size), DRUPE_OK);
    for (int c = 0; c < COUNT; c++) {
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double one = 0, right = 0;
                for (int l = 0; l < N; l++) {
                    one += a[c][i][l] * x[c][l][j];
                    if (j < 2) right += a[c][i][l] * y[c][l][j];
                }
                close_to(one, i == j);
                if (j < 2) close_to(right, b[c][i][j]);
            }
        close_to(sign[c] * exp(log_size[c]) / det[c], 1);
    }
}

static void test_cholesky(void **state)
{
    (void)state;
    double a[COUNT][N][N], x[COUNT][N][N];
    matrices(a, true);
    for (unsigned upper = 0; upper < 2; upper++) {
        assert_int_equal(run(DRUPE_LINEAR_CHOLESKY, upper ? DRUPE_LINEAR_UPPER : 0, 0, a, NULL, x, NULL),
                         DRUPE_OK);
        for (int c = 0; c < COUNT; c++)
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++) {
                    double sum = 0;
                    for (int l = 0; l < N; l++)
                        sum += upper ? x[c][l][i] * x[c][l][j] : x[c][i][l] * x[c][j][l];
                    close_to(sum, a[c][i][j]);
                    if (upper ? i > j : i < j) assert_true(x[c][i][j] == 0);
                }
    }
}

static void test_qr(void **state)
{
    (void)state;
    double a[COUNT][N][N], q[COUNT][N][N], r[COUNT][N][N];
    matrices(a, false);
    assert_int_equal(run(DRUPE_LINEAR_QR, 0, 0, a, NULL, q, r), DRUPE_OK);
    for (int c = 0; c < COUNT; c++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0, unit = 0;
                for (int l = 0; l < N; l++) {
                    sum += q[c][i][l] * r[c][l][j];
                    unit += q[c][l][i] * q[c][l][j];
                }
                close_to(sum, a[c][i][j]);
                close_to(unit, i == j);
                if (i > j) assert_true(r[c][i][j] == 0);
            }
}

static void test_failures(void **state)
{
    (void)state;
    double a[COUNT][N][N], x[COUNT][N][N];
    matrices(a, true);
    memset(a[1], 0, sizeof a[1]);
    assert_int_equal(run(DRUPE_LINEAR_INV, 0, 0, a, NULL, x, NULL), DRUPE_E_LINALG);
    assert_non_null(strstr(drupe_error_last()->text, "inv: matrix 1 of the 3 is singular"));
    assert_int_equal(run(DRUPE_LINEAR_CHOLESKY, 0, 0, a, NULL, x, NULL), DRUPE_E_LINALG);
    assert_non_null(strstr(drupe_error_last()->text, "positive definite"));
    double det[COUNT];
    assert_int_equal(run(DRUPE_LINEAR_DET, 0, 0, a, NULL, det, NULL), DRUPE_OK);
    assert_true(det[1] == 0 && det[0] != 0);
}

static void test_shapes(void **state)
{
    (void)state;
    drupe_linear_result results[DRUPE_LINEAR_RESULTS];
    drupe_linear linear = {DRUPE_LINEAR_SVD, 0, DRUPE_BLAS_CDOUBLE, 1, 4, 2, 0, 0};
    assert_int_equal(drupe_linear_results(&linear, results), 3);
    assert_int_equal(results[0].shape[1], 2);
    assert_int_equal(results[1].element, DRUPE_LINEAR_REAL);
    linear.flags = DRUPE_LINEAR_FULL;
    assert_int_equal(drupe_linear_results(&linear, results), 3);
    assert_int_equal(results[0].shape[1], 4);
    linear.op = DRUPE_LINEAR_COUNT;
    assert_int_equal(drupe_linear_results(&linear, results), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_providers), cmocka_unit_test(test_inverse),  cmocka_unit_test(test_cholesky),
        cmocka_unit_test(test_qr),        cmocka_unit_test(test_failures), cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
