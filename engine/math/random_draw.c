/* Distributions that need a varying number of words: from streams of their own, one for each stretch of
 * elements.
 *
 * Sources: Marsaglia and Tsang, "The ziggurat method for generating random variables", 2000, with the
 * corrections of Doornik 2005 (place and layer from different bits); Marsaglia and Tsang, "A simple method
 * for generating gamma variables", 2000; Hoermann, "The transformed rejection method for generating Poisson
 * random variables", 1993, and "The generation of binomial random variates", 1993. */
#include "base/parallel.h"
#include "math/random.h"
#include "math/random_laws.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

#define STRETCH 256

/* --- The ziggurat
 * ------------------------------------------------------------------------------------------------ */

/* 256 layers of equal area under a density that falls; layer i reaches to edge[i]. The base layer holds the
 * tail behind edge[1], too. */
#define LAYERS 256
typedef struct ziggurat {
    double edge[LAYERS + 1], height[LAYERS + 1], inside[LAYERS];
} ziggurat;
static ziggurat normals, exponentials;

static double normal_density(double x)
{
    return exp(-0.5 * x * x);
}

static double normal_inverse(double y)
{
    return sqrt(-2 * log(y));
}

static double exponential_density(double x)
{
    return exp(-x);
}

static double exponential_inverse(double y)
{
    return -log(y);
}

/* `r` and `area` are those of Marsaglia and Tsang for 256 layers. */
static void layers_make(ziggurat *z, double r, double area, double (*density)(double),
                        double (*inverse)(double))
{
    z->edge[0] = area / density(r);
    z->edge[1] = r;
    for (int i = 1; i < LAYERS - 1; i++) z->edge[i + 1] = inverse(area / z->edge[i] + density(z->edge[i]));
    z->edge[LAYERS] = 0;
    for (int i = 0; i <= LAYERS; i++) z->height[i] = density(z->edge[i]);
    for (int i = 0; i < LAYERS; i++) z->inside[i] = z->edge[i + 1] / z->edge[i];
}

static void tables_make(void)
{
    layers_make(&normals, 3.6541528853610088, 0.00492867323399, normal_density, normal_inverse);
    layers_make(&exponentials, 7.69711747013104972, 0.0039496598225815571993, exponential_density,
                exponential_inverse);
}

static double normal_tail(drupe_philox *stream)
{
    double x, y;
    do {
        x = -log(drupe_random_open(stream)) / normals.edge[1];
        y = -log(drupe_random_open(stream));
    } while (2 * y <= x * x);
    return normals.edge[1] + x;
}

static double normal(drupe_philox *stream)
{
    const ziggurat *z = &normals;
    for (;;) {
        const uint64_t word = drupe_philox_next64(stream);
        const unsigned layer = word & (LAYERS - 1);
        const double u = ((double)((int64_t)word >> 11) + 0.5) * (1.0 / 4503599627370496.0); /* -1 to 1 */
        const double x = u * z->edge[layer];
        if (fabs(u) < z->inside[layer]) return x;
        if (layer == 0) return copysign(normal_tail(stream), u);
        const double low = z->height[layer], high = z->height[layer + 1];
        if (low + drupe_random_open(stream) * (high - low) < normal_density(x)) return x;
    }
}

static double exponential(drupe_philox *stream)
{
    const ziggurat *z = &exponentials;
    for (;;) {
        const uint64_t word = drupe_philox_next64(stream);
        const unsigned layer = word & (LAYERS - 1);
        const double u = ((double)(word >> 11) + 0.5) * (1.0 / 9007199254740992.0), x = u * z->edge[layer];
        if (u < z->inside[layer]) return x;
        if (layer == 0)
            return z->edge[1] - log(drupe_random_open(stream)); /* the tail is exponential again */
        const double low = z->height[layer], high = z->height[layer + 1];
        if (low + drupe_random_open(stream) * (high - low) < exponential_density(x)) return x;
    }
}

/* --- Gamma and beta
 * ---------------------------------------------------------------------------------------------- */

/* Of shape a >= 1. */
static double gamma_large(drupe_philox *stream, double a)
{
    const double d = a - 1.0 / 3.0, c = 1 / sqrt(9 * d);
    for (;;) {
        double x, v;
        do {
            x = normal(stream);
            v = 1 + c * x;
        } while (v <= 0);
        v = v * v * v;
        const double u = drupe_random_open(stream);
        if (u < 1 - 0.0331 * (x * x) * (x * x)) return d * v;
        if (log(u) < 0.5 * x * x + d * (1 - v + log(v))) return d * v;
    }
}

/* The logarithm, which does not underflow where the shape is small. */
static double gamma_log(drupe_philox *stream, double a)
{
    if (a >= 1) return log(gamma_large(stream, a));
    const double x = gamma_large(stream, a + 1);
    return log(x) + log(drupe_random_open(stream)) / a;
}

static double draw_gamma(drupe_philox *stream, double a)
{
    if (!(a >= 0)) return NAN;
    if (a == 0) return 0;
    if (isinf(a)) return a;
    return a >= 1 ? gamma_large(stream, a) : exp(gamma_log(stream, a));
}

static double draw_beta(drupe_philox *stream, double a, double b)
{
    if (!(a > 0 && b > 0)) return NAN;
    const double x = gamma_log(stream, a), y = gamma_log(stream, b);
    return 1 / (1 + exp(y - x));
}

/* --- Poisson ------------------------------------------------------------------------------------------ */

/* What draws of one mean share; -1 is no mean. */
typedef struct poisson {
    double mean;
    double least;                             /* below a mean of 10 */
    double a, b, log_mean, log_inverse, sure; /* above */
} poisson;

static poisson poisson_make(double mean)
{
    poisson p = {.mean = mean >= 0 && mean < 9.2e18 ? mean : -1};
    if (p.mean < 10) {
        p.least = exp(-p.mean);
        return p;
    }
    p.b = 0.931 + 2.53 * sqrt(mean);
    p.a = -0.059 + 0.02483 * p.b;
    p.log_mean = log(mean);
    p.log_inverse = log(1.1239 + 1.1328 / (p.b - 3.4));
    p.sure = 0.9277 - 3.6224 / (p.b - 2);
    return p;
}

static int64_t poisson_large(drupe_philox *stream, const poisson *p)
{
    for (;;) {
        const double u = drupe_random_open(stream) - 0.5, v = drupe_random_open(stream), us = 0.5 - fabs(u);
        const double k = floor((2 * p->a / us + p->b) * u + p->mean + 0.43);
        if (us >= 0.07 && v <= p->sure) return (int64_t)k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        int sign;
        const double bound = k * p->log_mean - p->mean - lgamma_r(k + 1, &sign);
        if (log(v) + p->log_inverse - log(p->a / (us * us) + p->b) <= bound) return (int64_t)k;
    }
}

static int64_t draw_poisson(drupe_philox *stream, const poisson *p)
{
    if (p->mean <= 0) return p->mean < 0 ? -1 : 0;
    if (p->mean >= 10) return poisson_large(stream, p);
    int64_t k = -1;
    for (double product = 1; k < 0 || product > p->least; k++) product *= drupe_random_open(stream);
    return k;
}

/* --- Binomial ----------------------------------------------------------------------------------------- */

/* What draws of one number of trials and one probability share. */
typedef struct binomial {
    double n, p, q; /* p <= 1/2; -1 trials: no parameters */
    bool turned;    /* failures are counted */
    double first;   /* n p < 10: the chance of 0 */
    double a, b, c, sure, alpha, odds, m, top;
} binomial;

static binomial binomial_make(double n, double p)
{
    binomial law = {.n = -1, .turned = p > 0.5};
    if (!(n >= 0 && n < 9.2e18 && p >= 0 && p <= 1)) return law;
    law.n = floor(n);
    law.p = law.turned ? 1 - p : p;
    law.q = 1 - law.p;
    law.first = exp(law.n * log1p(-law.p));
    if (law.n * law.p < 10) return law;
    int sign;
    const double deviation = sqrt(law.n * law.p * law.q);
    law.b = 1.15 + 2.53 * deviation;
    law.a = -0.0873 + 0.0248 * law.b + 0.01 * law.p;
    law.c = law.n * law.p + 0.5;
    law.sure = 0.92 - 4.2 / law.b;
    law.alpha = (2.83 + 5.1 / law.b) * deviation;
    law.odds = log(law.p / law.q);
    law.m = floor((law.n + 1) * law.p);
    law.top = lgamma_r(law.m + 1, &sign) + lgamma_r(law.n - law.m + 1, &sign);
    return law;
}

/* The distribution is added up. */
static int64_t binomial_small(drupe_philox *stream, const binomial *law)
{
    for (;;) {
        double u = drupe_random_open(stream), chance = law->first, k = 0;
        while (u > chance && k <= law->n && chance > 0) {
            u -= chance;
            k++;
            chance *= (law->n - k + 1) * law->p / (k * law->q);
        }
        if (k <= law->n && u <= chance) return (int64_t)k; /* else what rounding left over */
    }
}

static int64_t binomial_large(drupe_philox *stream, const binomial *law)
{
    int sign;
    for (;;) {
        const double u = drupe_random_open(stream) - 0.5, v = drupe_random_open(stream), us = 0.5 - fabs(u);
        const double k = floor((2 * law->a / us + law->b) * u + law->c);
        if (us >= 0.07 && v <= law->sure) return (int64_t)k;
        if (k < 0 || k > law->n) continue;
        const double bound =
            law->top - lgamma_r(k + 1, &sign) - lgamma_r(law->n - k + 1, &sign) + (k - law->m) * law->odds;
        if (log(v * law->alpha / (law->a / (us * us) + law->b)) <= bound) return (int64_t)k;
    }
}

static int64_t draw_binomial(drupe_philox *stream, const binomial *law)
{
    if (law->n < 0) return -1;
    int64_t k = 0;
    if (law->n > 0 && law->p > 0)
        k = law->n * law->p < 10 ? binomial_small(stream, law) : binomial_large(stream, law);
    return law->turned ? (int64_t)law->n - k : k;
}

/* --- Stretches
 * --------------------------------------------------------------------------------------------------- */

typedef struct draw_job {
    const drupe_random_law *law;
    uint64_t key[2];
    size_t n, parts;
    void *out;
} draw_job;

static void draw_real(const drupe_random_law *law, drupe_philox *stream, size_t i, size_t end, void *out)
{
    for (; i < end; i++) {
        const double x = law->kind == DRUPE_RANDOM_NORMAL ? normal(stream) : exponential(stream);
        if (law->wide)
            ((double *)out)[i] = x;
        else
            ((float *)out)[i] = (float)x;
    }
}

static void draw_shaped(const drupe_random_law *law, drupe_philox *stream, size_t i, size_t end, double *out)
{
    for (; i < end; i++) {
        const double a = law->a[i * law->a_step];
        if (law->kind == DRUPE_RANDOM_GAMMA)
            out[i] = draw_gamma(stream, a);
        else if (law->kind == DRUPE_RANDOM_BETA)
            out[i] = draw_beta(stream, a, law->b[i * law->b_step]);
        else
            out[i] = drupe_random_vonmises(stream, a, normal);
    }
}

static void draw_counts(const drupe_random_law *law, drupe_philox *stream, size_t i, size_t end, int64_t *out)
{
    const bool varies = law->a_step || law->b_step || law->c_step;
    poisson p = {0};
    binomial b = {0};
    drupe_hypergeometric h = {0};
    for (const size_t first = i; i < end; i++) {
        const double *x = law->a + i * law->a_step, *y = law->b + i * law->b_step;
        const bool fresh = varies || i == first;
        switch (law->kind) {
        case DRUPE_RANDOM_POISSON:
            if (fresh) p = poisson_make(*x);
            out[i] = draw_poisson(stream, &p);
            break;
        case DRUPE_RANDOM_BINOMIAL:
            if (fresh) b = binomial_make(*x, *y);
            out[i] = draw_binomial(stream, &b);
            break;
        case DRUPE_RANDOM_HYPERGEOMETRIC:
            if (fresh) h = drupe_hypergeometric_make(*x, *y, law->c[i * law->c_step]);
            out[i] = drupe_random_hypergeometric(stream, &h);
            break;
        default: out[i] = drupe_random_zipf(stream, *x);
        }
    }
}

static void draw_stretch(const draw_job *job, size_t stretch)
{
    const drupe_random_law *law = job->law;
    const size_t first = stretch * STRETCH, end = job->n - first < STRETCH ? job->n : first + STRETCH;
    drupe_philox stream = {.key = {job->key[0], job->key[1]}, .counter = {0, stretch, 0, 0}, .taken = 4};
    if (law->kind <= DRUPE_RANDOM_EXPONENTIAL) {
        draw_real(law, &stream, first, end, job->out);
        return;
    }
    if (law->kind <= DRUPE_RANDOM_VONMISES)
        draw_shaped(law, &stream, first, end, job->out);
    else
        draw_counts(law, &stream, first, end, job->out);
}

static void draw_part(size_t part, void *user)
{
    const draw_job *job = user;
    const size_t stretches = (job->n + STRETCH - 1) / STRETCH;
    const size_t end = drupe_parallel_begin(stretches, part + 1, job->parts);
    for (size_t s = drupe_parallel_begin(stretches, part, job->parts); s < end; s++) draw_stretch(job, s);
}

void drupe_random_draw(drupe_philox *state, const drupe_random_law *law, size_t n, void *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, tables_make);
    draw_job job = {.law = law, .n = n, .out = out};
    for (int i = 0; i < 2; i++) job.key[i] = drupe_philox_next64(state);
    job.parts = drupe_parallel_parts((n + STRETCH - 1) / STRETCH, 8);
    drupe_parallel(job.parts, draw_part, &job);
}
