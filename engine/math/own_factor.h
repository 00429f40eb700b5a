/* LAPACK's routines without iteration for one element type, for machines without a library: straightforward,
 * column by column. Before including it: SCALAR, REAL, CONJ(x), SIZE(x) (a measure of the absolute value),
 * NUMBER(x) (the real part), FN(name).
 *
 * Meaning and arguments are LAPACK's; the comments there say more. Sizes are right, so nothing is refused. */

static void FN(getrf)(const drupe_fint *m, const drupe_fint *n, SCALAR *a, const drupe_fint *lda,
                      drupe_fint *pivots, drupe_fint *info)
{
    const drupe_fint ld = *lda, least = *m < *n ? *m : *n;
    *info = 0;
    for (drupe_fint j = 0; j < least; j++) {
        SCALAR *column = a + j * ld;
        drupe_fint best = j;
        for (drupe_fint i = j + 1; i < *m; i++)
            if (SIZE(column[i]) > SIZE(column[best])) best = i;
        pivots[j] = best + 1;
        if (column[best] == 0) {
            if (!*info) *info = j + 1;
            continue;
        }
        for (drupe_fint c = 0; best != j && c < *n; c++) {
            const SCALAR x = a[c * ld + j];
            a[c * ld + j] = a[c * ld + best];
            a[c * ld + best] = x;
        }
        for (drupe_fint i = j + 1; i < *m; i++) column[i] /= column[j];
        for (drupe_fint c = j + 1; c < *n; c++) {
            const SCALAR x = a[c * ld + j];
            for (drupe_fint i = j + 1; i < *m; i++) a[c * ld + i] -= column[i] * x;
        }
    }
}

/* Of trans "N" alone. */
static void FN(getrs)(const char *trans, const drupe_fint *n, const drupe_fint *nrhs, const SCALAR *a,
                      const drupe_fint *lda, const drupe_fint *pivots, SCALAR *b, const drupe_fint *ldb,
                      drupe_fint *info, size_t ltrans)
{
    (void)trans;
    (void)ltrans;
    *info = 0;
    for (drupe_fint c = 0; c < *nrhs; c++) {
        SCALAR *x = b + c * *ldb;
        for (drupe_fint i = 0; i < *n; i++) {
            const SCALAR kept = x[i];
            x[i] = x[pivots[i] - 1];
            x[pivots[i] - 1] = kept;
        }
        for (drupe_fint j = 0; j < *n; j++)
            for (drupe_fint i = j + 1; i < *n; i++) x[i] -= a[j * *lda + i] * x[j];
        for (drupe_fint j = *n - 1; j >= 0; j--) {
            x[j] /= a[j * *lda + j];
            for (drupe_fint i = 0; i < j; i++) x[i] -= a[j * *lda + i] * x[j];
        }
    }
}

/* Solves for the columns of the identity in the work memory, of n*n elements. */
static void FN(getri)(const drupe_fint *n, SCALAR *a, const drupe_fint *lda, const drupe_fint *pivots,
                      SCALAR *work, const drupe_fint *lwork, drupe_fint *info)
{
    *info = 0;
    if (*lwork == -1) {
        work[0] = (REAL)(*n * *n);
        return;
    }
    for (drupe_fint i = 0; i < *n * *n; i++) work[i] = i % (*n + 1) == 0;
    FN(getrs)("N", n, n, a, lda, pivots, work, n, info, 1);
    for (drupe_fint j = 0; j < *n; j++)
        for (drupe_fint i = 0; i < *n; i++) a[j * *lda + i] = work[j * *n + i];
}

/* Element (i, j), i >= j, of the lower factor, wherever that lies. */
static SCALAR FN(lower)(const SCALAR *a, drupe_fint ld, bool upper, drupe_fint i, drupe_fint j)
{
    return upper ? CONJ(a[i * ld + j]) : a[j * ld + i];
}

static void FN(potrf)(const char *uplo, const drupe_fint *n, SCALAR *a, const drupe_fint *lda,
                      drupe_fint *info, size_t luplo)
{
    const bool upper = *uplo == 'U';
    const drupe_fint ld = *lda;
    (void)luplo;
    *info = 0;
    for (drupe_fint j = 0; j < *n; j++)
        for (drupe_fint i = j; i < *n; i++) {
            SCALAR sum = FN(lower)(a, ld, upper, i, j);
            for (drupe_fint c = 0; c < j; c++)
                sum -= FN(lower)(a, ld, upper, i, c) * CONJ(FN(lower)(a, ld, upper, j, c));
            if (i == j && !(NUMBER(sum) > 0)) {
                *info = j + 1;
                return;
            }
            sum = i == j ? (SCALAR)ROOT(NUMBER(sum)) : sum / NUMBER(FN(lower)(a, ld, upper, j, j));
            if (upper)
                a[i * ld + j] = CONJ(sum);
            else
                a[j * ld + i] = sum;
        }
}

/* Column `to` becomes (1 - factor v v^H) times itself, where v[0] counts as 1. */
static void FN(reflect)(SCALAR *to, const SCALAR *v, SCALAR factor, drupe_fint length)
{
    SCALAR sum = to[0];
    for (drupe_fint i = 1; i < length; i++) sum += CONJ(v[i]) * to[i];
    sum *= factor;
    to[0] -= sum;
    for (drupe_fint i = 1; i < length; i++) to[i] -= v[i] * sum;
}

static void FN(geqrf)(const drupe_fint *m, const drupe_fint *n, SCALAR *a, const drupe_fint *lda, SCALAR *tau,
                      SCALAR *work, const drupe_fint *lwork, drupe_fint *info)
{
    const drupe_fint ld = *lda, least = *m < *n ? *m : *n;
    *info = 0;
    work[0] = 1;
    if (*lwork == -1) return;
    for (drupe_fint j = 0; j < least; j++) {
        SCALAR *v = a + j * ld + j;
        const drupe_fint length = *m - j;
        REAL below = 0;
        for (drupe_fint i = 1; i < length; i++) below += NUMBER(v[i] * CONJ(v[i]));
        const REAL whole = ROOT(below + NUMBER(v[0] * CONJ(v[0])));
        tau[j] = 0;
        if (below == 0 && NUMBER(v[0]) == v[0]) continue;
        const REAL beta = NUMBER(v[0]) > 0 ? -whole : whole;
        const SCALAR scale = v[0] - beta;
        tau[j] = (beta - v[0]) / beta;
        for (drupe_fint i = 1; i < length; i++) v[i] /= scale;
        v[0] = beta;
        for (drupe_fint c = j + 1; c < *n; c++) FN(reflect)(a + c * ld + j, v, CONJ(tau[j]), length);
    }
}

static void FN(orgqr)(const drupe_fint *m, const drupe_fint *n, const drupe_fint *k, SCALAR *a,
                      const drupe_fint *lda, const SCALAR *tau, SCALAR *work, const drupe_fint *lwork,
                      drupe_fint *info)
{
    const drupe_fint ld = *lda;
    *info = 0;
    work[0] = 1;
    if (*lwork == -1) return;
    for (drupe_fint c = *k; c < *n; c++)
        for (drupe_fint i = 0; i < *m; i++) a[c * ld + i] = i == c;
    for (drupe_fint j = *k - 1; j >= 0; j--) {
        SCALAR *v = a + j * ld + j;
        const drupe_fint length = *m - j;
        for (drupe_fint c = j + 1; c < *n; c++) FN(reflect)(a + c * ld + j, v, tau[j], length);
        for (drupe_fint i = 1; i < length; i++) v[i] *= -tau[j];
        v[0] = 1 - tau[j];
        for (drupe_fint i = 0; i < j; i++) a[j * ld + i] = 0;
    }
}

#undef SCALAR
#undef REAL
#undef CONJ
#undef SIZE
#undef NUMBER
#undef ROOT
#undef FN
