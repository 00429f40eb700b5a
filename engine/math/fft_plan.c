/* Plans of Fourier transforms, and their cache. */
#include "math/fft_plan.h"
#include "base/base.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_PLANS 64
#define CACHE_BYTES ((size_t)64 << 20)

/* The angle lies within an octant when sine and cosine are taken, so both are correct to the last place or
 * two. What the angle loses by rounding to double comes back through the derivative. */
void drupe_fft_root(size_t k, size_t n, double *re, double *im)
{
    const long double tau = 6.283185307179586476925286766559005768L;
    const unsigned octant = (unsigned)(8 * k / n);
    const size_t rest = 8 * k - octant * n; /* in eighths of a step */
    /* Odd octants are counted from their end, so that the angle is at most an eighth of a turn. */
    const long double exact = tau / 8 * (long double)(octant & 1 ? n - rest : rest) / (long double)n;
    const double angle = (double)exact, lost = (double)(exact - angle);
    const double c = cos(angle), s = sin(angle), cosine = c - s * lost, sine = s + c * lost;
    const bool swap = (octant + 1) / 2 & 1; /* octants 1, 2, 5, 6: sine and cosine change places */
    const double x = swap ? sine : cosine, y = swap ? cosine : sine;
    *re = octant >= 2 && octant < 6 ? -x : x;
    *im = octant < 4 ? -y : y;
}

/* --- Tables
 * ----------------------------------------------------------------------------------------------------- */

static size_t real_size(const fft_plan *plan)
{
    return plan->wide ? sizeof(double) : sizeof(float);
}

static void put(const fft_plan *plan, void *table, size_t i, double value)
{
    if (plan->wide)
        ((double *)table)[i] = value;
    else
        ((float *)table)[i] = (float)value;
}

static void put_root(const fft_plan *plan, void *table, size_t i, size_t k, size_t n)
{
    double re, im;
    drupe_fft_root(k, n, &re, &im);
    put(plan, table, 2 * i, re);
    put(plan, table, 2 * i + 1, im);
}

/* The tables lie one behind the other: the first round over them, without memory, adds up their sizes. */
static void *table_take(fft_plan *plan, size_t *at, size_t reals)
{
    void *table = plan->memory ? (char *)plan->memory + *at : NULL;
    *at += (reals * real_size(plan) + 63) & ~(size_t)63;
    return table;
}

static void passes_tables(fft_plan *plan, size_t *at)
{
    for (int i = 0; i < plan->npasses; i++) {
        fft_pass *pass = &plan->passes[i];
        const size_t r = pass->radix, length = r * pass->groups;
        void *roots = table_take(plan, at, 2 * pass->groups * (r - 1));
        pass->roots = roots;
        if (roots)
            for (size_t p = 0; p < pass->groups; p++)
                for (size_t k = 1; k < r; k++) put_root(plan, roots, p * (r - 1) + k - 1, p * k, length);
        if (r == 2 || r == 3 || r == 4 || r == 5 || r == 8) continue;
        void *turns = table_take(plan, at, 2 * r);
        pass->turns = turns;
        if (turns)
            for (size_t k = 0; k < r; k++) put_root(plan, turns, k, k, r);
    }
}

static void matrix_tables(fft_plan *plan, size_t *at)
{
    const size_t n1 = plan->rows->n, n2 = plan->columns->n, lanes = fft_lanes(plan->wide);
    const size_t chunks = (n2 + lanes - 1) / lanes;
    void *outer = table_take(plan, at, 2 * chunks * n1), *inner = table_take(plan, at, 2 * n1 * lanes);
    plan->outer = outer;
    plan->inner = inner;
    if (!outer) return;
    for (size_t c = 0; c < chunks; c++)
        for (size_t k = 0; k < n1; k++) put_root(plan, outer, c * n1 + k, k * c * lanes, plan->n);
    for (size_t k = 0; k < n1; k++)
        for (size_t v = 0; v < lanes; v++) {
            double re, im;
            drupe_fft_root(k * v % plan->n, plan->n, &re, &im);
            put(plan, inner, 2 * k * lanes + v, re);
            put(plan, inner, (2 * k + 1) * lanes + v, im);
        }
}

static void chirp_tables(fft_plan *plan, size_t *at)
{
    void *chirp = table_take(plan, at, 2 * plan->n);
    plan->chirp = chirp;
    plan->filter = table_take(plan, at, 2 * plan->rows->n);
    size_t square = 0; /* j^2 modulo 2n */
    for (size_t j = 0; chirp && j < plan->n; j++) {
        put_root(plan, chirp, j, square, 2 * plan->n);
        square = (square + 2 * j + 1) % (2 * plan->n);
    }
}

static void all_tables(fft_plan *plan, size_t *at)
{
    *at = 0;
    if (plan->form == FFT_LANES) passes_tables(plan, at);
    if (plan->form == FFT_MATRIX) matrix_tables(plan, at);
    if (plan->form == FFT_CHIRP) chirp_tables(plan, at);
    if (!plan->real) return;
    void *half = table_take(plan, at, 2 * (plan->n / 2 + 1));
    plan->half = half;
    for (size_t k = 0; half && k <= plan->n / 2; k++) put_root(plan, half, k, k, 2 * plan->n);
}

/* --- Division of lengths
 * ---------------------------------------------------------------------------------------- */

/* Large radices first: a first pass of 8 has the shortest runs, and the fewest passes are wanted. */
static bool passes_choose(fft_plan *plan)
{
    static const size_t radices[] = {
        8, 4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, FFT_LARGEST_PRIME};
    size_t rest = plan->n, run = 1;
    for (size_t i = 0; i < DRUPE_COUNT_OF(radices); i++)
        while (rest % radices[i] == 0) {
            size_t radix = radices[i];
            /* 16 is 4 times 4 rather than 8 times 2. */
            if (radix == 8 && rest % 16 == 0 && rest % 32 != 0) radix = 4;
            rest /= radix;
            plan->passes[plan->npasses++] = (fft_pass){radix, rest, run, NULL, NULL};
            run *= radix;
        }
    return rest == 1;
}

static bool smooth(size_t n)
{
    for (size_t p = 2; p <= FFT_LARGEST_PRIME; p++)
        while (n % p == 0) n /= p;
    return n == 1;
}

/* The divisor next to the square root; both halves as multiples of the lanes where that is possible. */
static size_t matrix_rows(size_t n, size_t lanes)
{
    const size_t root = (size_t)sqrt((double)n);
    size_t plain = 1;
    for (size_t d = root; d >= 2; d--) {
        if (n % d) continue;
        if (plain == 1) plain = d;
        if (d % lanes == 0 && n / d % lanes == 0) return d;
        if (plain > 1 && d * 4 < root) break;
    }
    return plain;
}

/* A length of few and small factors for a convolution of `least` elements. */
static size_t convolution_length(size_t least)
{
    static const size_t odd[] = {1, 3, 5, 9, 15};
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < DRUPE_COUNT_OF(odd); i++) {
        size_t n = odd[i];
        while (n < least) n *= 2;
        if (n < best) best = n;
    }
    return best;
}

static drupe_status shape_choose(fft_plan *plan, fft_form form)
{
    const size_t rows = matrix_rows(plan->n, fft_lanes(plan->wide));
    plan->form = !smooth(plan->n) ? FFT_CHIRP : form == FFT_MATRIX && rows > 1 ? FFT_MATRIX : FFT_LANES;
    if (plan->form == FFT_LANES) {
        passes_choose(plan);
        return DRUPE_OK;
    }
    if (plan->form == FFT_CHIRP) {
        const size_t length = convolution_length(2 * plan->n - 1);
        return drupe_fft_plan_get(length, plan->wide, length < 256 ? FFT_LANES : FFT_MATRIX, false,
                                  &plan->rows);
    }
    DRUPE_TRY(drupe_fft_plan_get(rows, plan->wide, FFT_LANES, false, &plan->rows));
    return drupe_fft_plan_get(plan->n / rows, plan->wide, FFT_LANES, false, &plan->columns);
}

/* --- Life
 * ------------------------------------------------------------------------------------------------------- */

void drupe_fft_plan_release(fft_plan *plan)
{
    if (!plan || atomic_fetch_sub(&plan->references, 1) > 1) return;
    drupe_fft_plan_release(plan->rows);
    drupe_fft_plan_release(plan->columns);
    free(plan->memory);
    free(plan);
}

static drupe_status plan_make(size_t n, bool wide, fft_form form, bool real, fft_plan **out)
{
    fft_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a Fourier transform of %zu elements.", n);
    plan->n = n;
    plan->wide = wide;
    plan->real = real;
    atomic_init(&plan->references, 1);
    drupe_status status = shape_choose(plan, form);
    if (status == DRUPE_OK) {
        all_tables(plan, &plan->bytes);
        plan->memory = aligned_alloc(64, plan->bytes ? plan->bytes : 64);
        if (plan->memory)
            all_tables(plan, &plan->bytes);
        else
            status =
                drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a Fourier transform of %zu elements.", n);
    }
    if (status == DRUPE_OK && plan->form == FFT_CHIRP) status = drupe_fft_filter_make(plan);
    if (status == DRUPE_OK)
        *out = plan;
    else
        drupe_fft_plan_release(plan);
    return status;
}

/* --- The cache
 * -------------------------------------------------------------------------------------------------- */

typedef struct plan_key {
    size_t n;
    bool wide, real;
    fft_form form; /* as it was asked for */
} plan_key;

static struct {
    pthread_mutex_t lock;
    plan_key keys[CACHE_PLANS];
    fft_plan *plans[CACHE_PLANS]; /* each with a reference of the cache's */
    size_t bytes;
    unsigned long clock;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool same_key(const plan_key *a, const plan_key *b)
{
    return a->n == b->n && a->wide == b->wide && a->real == b->real && a->form == b->form;
}

/* Under the lock. */
static fft_plan *cache_find(const plan_key *key)
{
    for (size_t i = 0; i < CACHE_PLANS; i++)
        if (cache.plans[i] && same_key(&cache.keys[i], key)) {
            cache.plans[i]->used = ++cache.clock;
            atomic_fetch_add(&cache.plans[i]->references, 1);
            return cache.plans[i];
        }
    return NULL;
}

/* Under the lock: the place of the plan that was used longest ago, or of none. */
static size_t cache_oldest(void)
{
    size_t oldest = 0;
    for (size_t i = 0; i < CACHE_PLANS; i++) {
        if (!cache.plans[i]) continue;
        if (!cache.plans[oldest] || cache.plans[i]->used < cache.plans[oldest]->used) oldest = i;
    }
    return oldest;
}

static void cache_drop(size_t place)
{
    if (!cache.plans[place]) return;
    cache.bytes -= cache.plans[place]->bytes;
    drupe_fft_plan_release(cache.plans[place]);
    cache.plans[place] = NULL;
}

static void cache_keep(const plan_key *key, fft_plan *plan)
{
    if (plan->bytes > CACHE_BYTES / 2) return;
    pthread_mutex_lock(&cache.lock);
    while (cache.bytes + plan->bytes > CACHE_BYTES) cache_drop(cache_oldest());
    size_t place = 0;
    while (place < CACHE_PLANS && cache.plans[place]) place++;
    if (place == CACHE_PLANS) cache_drop(place = cache_oldest());
    atomic_fetch_add(&plan->references, 1);
    plan->used = ++cache.clock;
    cache.keys[place] = *key;
    cache.plans[place] = plan;
    cache.bytes += plan->bytes;
    pthread_mutex_unlock(&cache.lock);
}

drupe_status drupe_fft_plan_get(size_t n, bool wide, fft_form form, bool real, fft_plan **plan)
{
    const plan_key key = {n, wide, real, form};
    pthread_mutex_lock(&cache.lock);
    *plan = cache_find(&key);
    pthread_mutex_unlock(&cache.lock);
    if (*plan) return DRUPE_OK;
    DRUPE_TRY(plan_make(n, wide, form, real, plan));
    cache_keep(&key, *plan);
    return DRUPE_OK;
}
