/* Sources: Best and Fisher, "Efficient simulation of the von Mises distribution", 1979; Devroye, "Non-uniform
 * random variate generation", 1986, chapter X.6 (Zipf); Stadlober, "The ratio of uniforms approach for
 * generating discrete random variates", 1990 (hypergeometric). */
#include "math/random_laws.h"
#include <math.h>

#define PI 3.14159265358979323846

/* --- Von Mises -----------------------------------------------------------------------------------------
 */

double drupe_random_vonmises(drupe_philox *stream, double kappa, double (*normal)(drupe_philox *stream))
{
    if (!(kappa >= 0)) return NAN;
    if (kappa > 1e6) return normal(stream) / sqrt(kappa);
    if (kappa < 1e-8) return PI * (2 * drupe_random_open(stream) - 1);
    /* The wrapped Cauchy distribution that lies above; 1/kappa + kappa is the series of s where r is
     * nearly 2. */
    const double r = 1 + sqrt(1 + 4 * kappa * kappa), rho = (r - sqrt(2 * r)) / (2 * kappa);
    const double s = kappa < 1e-5 ? 1 / kappa + kappa : (1 + rho * rho) / (2 * rho);
    for (;;) {
        const double z = cos(PI * drupe_random_open(stream)), w = (1 + s * z) / (s + z), y = kappa * (s - w);
        const double v = drupe_random_open(stream);
        if (y * (2 - y) < v && log(y / v) + 1 < y) continue;
        const double angle = acos(fmin(fmax(w, -1), 1));
        return drupe_random_open(stream) < 0.5 ? -angle : angle;
    }
}

/* --- Zipf ----------------------------------------------------------------------------------------------
 */

int64_t drupe_random_zipf(drupe_philox *stream, double a)
{
    const double s = a - 1, most = 9223372036854774784.0;
    if (!(a > 1)) return -1;
    if (a > 1000) return 1;
    /* x is a Pareto number, cut at `most` so that none is in vain. */
    const double share = -expm1(-s * log(most)), beyond = expm1(s * log(2.0));
    for (;;) {
        const double u = drupe_random_open(stream), v = drupe_random_open(stream);
        const double x = fmin(floor(exp(-log1p(-u * share) / s)), most);
        const double step = expm1(s * log1p(1 / x));
        if (v * x * step * (1 + beyond) <= (1 + step) * beyond) return (int64_t)x;
    }
}

/* --- Hypergeometric ------------------------------------------------------------------------------------
 */

/* The logarithm of k!; from 16 on by Stirling's series, which is right to 13 digits there. */
static double factorial_log(int64_t k)
{
    static const double first[] = {0,
                                   0,
                                   0.6931471805599453,
                                   1.791759469228055,
                                   3.1780538303479458,
                                   4.787491742782046,
                                   6.579251212010101,
                                   8.525161361065415,
                                   10.60460290274525,
                                   12.801827480081469,
                                   15.104412573075516,
                                   17.502307845873887,
                                   19.987214495661885,
                                   22.552163853123425,
                                   25.19122118273868,
                                   27.89927138384089};
    if (k < 16) return first[k];
    const double x = (double)k, inverse = 1 / x, square = inverse * inverse;
    const double rest = inverse * (1 / 12.0 - square * (1 / 360.0 - square * (1 / 1260.0 - square / 1680.0)));
    return (x + 0.5) * log(x) - x + 0.91893853320467274178 + rest;
}

/* The logarithm of the probability that k are of the rarer kind, but for a constant. */
static double hypergeometric_log(const drupe_hypergeometric *law, int64_t k)
{
    const int64_t counts[] = {k, law->rare - k, law->drawn - k, law->total - law->rare - law->drawn + k};
    double sum = 0;
    for (int i = 0; i < 4; i++) sum -= factorial_log(counts[i]);
    return sum;
}

drupe_hypergeometric drupe_hypergeometric_make(double good, double bad, double sample)
{
    drupe_hypergeometric law = {.sample = -1};
    if (!(good >= 0 && bad >= 0 && good + bad <= 1e9 && sample >= 0 && sample <= good + bad)) return law;
    law.good = (int64_t)good;
    law.total = law.good + (int64_t)bad;
    if ((int64_t)sample > law.total) return law; /* the fractions made it fit */
    law.sample = (int64_t)sample;
    law.rare = law.good <= law.total / 2 ? law.good : law.total - law.good;
    law.drawn = law.sample <= law.total / 2 ? law.sample : law.total - law.sample;
    if (law.drawn == 0) return law;
    const double total = (double)law.total, share = (double)law.rare / total, drawn = (double)law.drawn;
    const double variance = drawn * share * (1 - share) * (total - drawn) / fmax(total - 1, 1);
    law.centre = drawn * share + 0.5;
    law.spread = 2 * sqrt(2 / exp(1)) * sqrt(variance + 0.5) + 3 - 2 * sqrt(3 / exp(1));
    law.top = hypergeometric_log(&law, (int64_t)((drawn + 1) * ((double)law.rare + 1) / (total + 2)));
    return law;
}

/* One is drawn after the other. */
static int64_t hypergeometric_small(drupe_philox *stream, const drupe_hypergeometric *law)
{
    int64_t rare = law->rare;
    for (int64_t i = 0; i < law->drawn && rare > 0; i++)
        if (drupe_random_open(stream) * (double)(law->total - i) < (double)rare) rare--;
    return law->rare - rare;
}

static int64_t hypergeometric_large(drupe_philox *stream, const drupe_hypergeometric *law)
{
    const double most = (double)(law->rare < law->drawn ? law->rare : law->drawn);
    for (;;) {
        const double u = drupe_random_open(stream), v = drupe_random_open(stream);
        const double k = floor(law->centre + law->spread * (v - 0.5) / u);
        if (!(k >= 0 && k <= most)) continue;
        if (2 * log(u) <= hypergeometric_log(law, (int64_t)k) - law->top) return (int64_t)k;
    }
}

int64_t drupe_random_hypergeometric(drupe_philox *stream, const drupe_hypergeometric *law)
{
    if (law->sample < 0) return -1;
    int64_t k = law->drawn <= 10 ? hypergeometric_small(stream, law) : hypergeometric_large(stream, law);
    if (law->rare != law->good) k = law->drawn - k;       /* the bad ones were counted */
    return law->drawn != law->sample ? law->good - k : k; /* among those that are left */
}
