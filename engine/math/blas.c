/* BLAS by dlopen, so that the engine needs none to build or to start.
 *
 * The C interface is used; its enumerations are fixed numbers of the standard.
 *
 * OpenBLAS chooses its routines by the processor's model when it is loaded, and takes its oldest ones for a
 * model newer than itself: six times slower, measured with 0.3.21 on a processor of 2023. It can be told only
 * by an environment variable, which is therefore set while it is being loaded. */
#include "math/blas.h"
#include "base/base.h"
#include <stdlib.h>
#include <string.h>

#define CORE_VARIABLE "OPENBLAS_CORETYPE"

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

struct drupe_blas {
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                  int);
    void (*dgemm)(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                  double *, int);
    void (*sgemv)(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
    void (*dgemv)(int, int, int, int, double, const double *, int, const double *, int, double, double *,
                  int);
};

static struct drupe_blas functions;
static bool present;

/* The OpenBLAS name for what this processor can do; NULL = let it choose. */
static const char *blas_core(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
    return NULL;
}

static void blas_open(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libblas.so.3", NULL};
    static const drupe_dl_symbol symbols[] = {
        {"cblas_sgemm", offsetof(struct drupe_blas, sgemm), false},
        {"cblas_dgemm", offsetof(struct drupe_blas, dgemm), false},
        {"cblas_sgemv", offsetof(struct drupe_blas, sgemv), false},
        {"cblas_dgemv", offsetof(struct drupe_blas, dgemv), false},
    };
    void *handle;
    const char *wanted = getenv("DRUPE_BLAS");
    if (wanted && strcmp(wanted, "none") == 0) return;
    const char *core = getenv(CORE_VARIABLE) ? NULL : blas_core();
    if (core) setenv(CORE_VARIABLE, core, 0);
    present = drupe_dl_open(names, "install the package libopenblas0", symbols, DRUPE_COUNT_OF(symbols),
                            &functions, &handle) == DRUPE_OK;
    if (core) unsetenv(CORE_VARIABLE);
}

const drupe_blas *drupe_blas_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, blas_open);
    return present ? &functions : NULL;
}

/* out = matrix times vector; `rows` and `columns` are those of the product, the vector's elements lie
 * `stride` apart. */
static void times_vector(const drupe_blas *blas, bool wide, size_t rows, size_t columns, drupe_matrix a,
                         const void *vector, size_t stride, void *out)
{
    const int operation = a.transposed ? TRANSPOSE : NO_TRANSPOSE;
    const int m = (int)(a.transposed ? columns : rows), n = (int)(a.transposed ? rows : columns);
    if (wide)
        blas->dgemv(ROW_MAJOR, operation, m, n, 1.0, a.data, (int)a.ld, vector, (int)stride, 0.0, out, 1);
    else
        blas->sgemv(ROW_MAJOR, operation, m, n, 1.0f, a.data, (int)a.ld, vector, (int)stride, 0.0f, out, 1);
}

void drupe_blas_matmul(const drupe_blas *blas, bool wide, size_t m, size_t n, size_t k, drupe_matrix a,
                       drupe_matrix b, void *out)
{
    if (n == 1) {
        times_vector(blas, wide, m, k, a, b.data, b.transposed ? 1 : b.ld, out);
        return;
    }
    if (m == 1) {
        b.transposed = !b.transposed;
        times_vector(blas, wide, n, k, b, a.data, a.transposed ? a.ld : 1, out);
        return;
    }
    const int ta = a.transposed ? TRANSPOSE : NO_TRANSPOSE, tb = b.transposed ? TRANSPOSE : NO_TRANSPOSE;
    if (wide)
        blas->dgemm(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, 1.0, a.data, (int)a.ld, b.data, (int)b.ld, 0.0,
                    out, (int)n);
    else
        blas->sgemm(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, 1.0f, a.data, (int)a.ld, b.data, (int)b.ld,
                    0.0f, out, (int)n);
}
