/* Uniform random numbers, integers and permutations: the numbers that NumPy makes of the same words. */
#include "math/random.h"
#include "base/parallel.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void take_doubles(void *user, size_t first, const uint64_t *words, size_t count)
{
    double *out = (double *)user + first;
    for (size_t i = 0; i < count; i++) out[i] = drupe_philox_double(words[i]);
}

void drupe_random_doubles(drupe_philox *state, size_t n, double *out)
{
    drupe_philox_words(state, n, take_doubles, out);
}

/* Whole words were taken for halves: the state is as if the halves had been given out one by one. */
static void last_half(drupe_philox *state)
{
    state->word32 = state->block[state->taken - 1] >> 32;
}

static float float_of(uint32_t half)
{
    return (float)(half >> 8) * (1.0f / 16777216.0f);
}

static void take_floats(void *user, size_t first, const uint64_t *words, size_t count)
{
    float *out = (float *)user + 2 * first;
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = float_of((uint32_t)words[i]);
        out[2 * i + 1] = float_of((uint32_t)(words[i] >> 32));
    }
}

void drupe_random_floats(drupe_philox *state, size_t n, float *out)
{
    if (n && state->has32) {
        *out++ = float_of(drupe_philox_next32(state));
        n--;
    }
    drupe_philox_words(state, n / 2, take_floats, out);
    if (n / 2) last_half(state);
    if (n % 2) out[n - 1] = float_of(drupe_philox_next32(state));
}

/* --- Integers of 32 and 64 bits
 * ---------------------------------------------------------------------------------- */

/* A word, or each half of one, is a number or is refused, whatever the others are. So threads make numbers of
 * stretches of words and note which were refused; those are taken out afterwards, and as many made up for
 * behind. */
typedef struct integer_job {
    uint64_t low, range, choices; /* choices = range + 1 in the width of the draw: 0 is all of them */
    uint64_t least;               /* a product whose lower half is below is refused */
    unsigned bytes;
    void *out;
    size_t *refused; /* their places */
    size_t most;     /* how many places there are */
    _Atomic(size_t) count;
} integer_job;

__extension__ typedef unsigned __int128 wide_product;

static void put(const integer_job *job, size_t i, uint64_t value)
{
    if (job->bytes == 8)
        ((uint64_t *)job->out)[i] = value;
    else
        ((uint32_t *)job->out)[i] = (uint32_t)value;
}

static void refuse(integer_job *job, size_t i)
{
    const size_t place = atomic_fetch_add(&job->count, 1);
    if (place < job->most) job->refused[place] = i;
}

static void take_halves(void *user, size_t first, const uint64_t *words, size_t count)
{
    integer_job *job = user;
    const uint64_t factor = job->choices ? job->choices : UINT64_C(1) << 32;
    for (size_t i = 0; i < 2 * count; i++) {
        const uint64_t product = (i % 2 ? words[i / 2] >> 32 : words[i / 2] & UINT32_MAX) * factor;
        if ((uint32_t)product < job->least) refuse(job, 2 * first + i);
        put(job, 2 * first + i, job->low + (product >> 32));
    }
}

static void take_words(void *user, size_t first, const uint64_t *words, size_t count)
{
    integer_job *job = user;
    for (size_t i = 0; i < count; i++) {
        const wide_product product = (wide_product)words[i] * job->choices;
        if ((uint64_t)product < job->least) refuse(job, first + i);
        put(job, first + i, job->low + (job->choices ? (uint64_t)(product >> 64) : words[i]));
    }
}

static int in_order(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Take out what was refused of `n` numbers; how many are left. */
static size_t close_gaps(const integer_job *job, size_t n)
{
    const size_t count = atomic_load(&job->count), size = job->bytes;
    if (count == 0) return n;
    char *out = job->out;
    qsort(job->refused, count, sizeof *job->refused, in_order);
    size_t to = job->refused[0];
    for (size_t i = 0; i < count; i++) {
        const size_t from = job->refused[i] + 1, end = i + 1 < count ? job->refused[i + 1] : n;
        memmove(out + to * size, out + from * size, (end - from) * size);
        to += end - from;
    }
    return to;
}

static void one_by_one(drupe_philox *state, const integer_job *job, size_t from, size_t n)
{
    for (size_t i = from; i < n; i++) put(job, i, job->low + drupe_philox_below(state, job->range));
}

/* `from`: how many numbers are there already. Returns how many there are then: none when too many were
 * refused. */
static size_t by_stretches(drupe_philox *state, const integer_job *wanted, size_t from, size_t n)
{
    const bool halves = wanted->range <= UINT32_MAX;
    const size_t words = halves ? (n - from) / 2 : n - from;
    integer_job job = {.low = wanted->low, .range = wanted->range, .bytes = wanted->bytes};
    job.out = (char *)wanted->out + from * job.bytes;
    job.most = n / 64 + 64;
    job.refused = malloc(job.most * sizeof *job.refused);
    if (!job.refused) return from;
    atomic_init(&job.count, 0);
    job.choices = halves ? (uint32_t)(job.range + 1) : job.range + 1;
    if (job.choices) job.least = ((halves ? UINT32_MAX : UINT64_MAX) - job.range) % job.choices;
    const drupe_philox before = *state;
    drupe_philox_words(state, words, halves ? take_halves : take_words, &job);
    if (halves && words) last_half(state);
    if (atomic_load(&job.count) <= job.most)
        from += close_gaps(&job, halves ? 2 * words : words);
    else
        *state = before;
    free(job.refused);
    return from;
}

static void integers_large(drupe_philox *state, const integer_job *job, size_t n)
{
    size_t from = 0;
    if (n >= 1024 && job->range) {
        while (job->range <= UINT32_MAX && state->has32) { /* until numbers begin with words */
            one_by_one(state, job, from, from + 1);
            from++;
            if (from == n) return;
        }
        from = by_stretches(state, job, from, n);
    }
    one_by_one(state, job, from, n);
}

/* --- Integers of 1, 8 and 16 bits
 * -------------------------------------------------------------------------------- */

/* Numbers of `bits` bits from those of 32, lowest first; what is left at the end of a call is not used. */
typedef struct small_source {
    drupe_philox *state;
    uint32_t rest;
    unsigned bits, left;
} small_source;

static uint32_t small_next(small_source *source)
{
    if (source->left == 0) {
        source->rest = drupe_philox_next32(source->state);
        source->left = 32 / source->bits;
    } else {
        source->rest >>= source->bits;
    }
    source->left--;
    return source->rest & ((UINT32_C(1) << source->bits) - 1);
}

static uint32_t small_below(small_source *source, uint32_t range)
{
    const uint32_t mask = (UINT32_C(1) << source->bits) - 1, choices = range + 1;
    if (range == mask) return small_next(source);
    uint32_t product = small_next(source) * choices;
    if ((product & mask) < choices) {
        const uint32_t least = (mask - range) % choices;
        while ((product & mask) < least) product = small_next(source) * choices;
    }
    return product >> source->bits;
}

static void put_small(void *out, unsigned bytes, size_t i, uint64_t value)
{
    if (bytes == 2)
        ((uint16_t *)out)[i] = (uint16_t)value;
    else
        ((uint8_t *)out)[i] = (uint8_t)value;
}

void drupe_random_integers(drupe_philox *state, unsigned bytes, uint64_t low, uint64_t range, size_t n,
                           void *out)
{
    if (bytes >= 4) {
        integer_job job = {.low = low, .range = range, .bytes = bytes, .out = out};
        integers_large(state, &job, n);
        return;
    }
    small_source source = {.state = state, .bits = bytes ? 8 * bytes : 1};
    for (size_t i = 0; i < n; i++)
        put_small(out, bytes, i, low + (range ? small_below(&source, (uint32_t)range) : 0));
}

void drupe_random_integers_each(drupe_philox *state, unsigned bytes, const uint64_t *low, size_t low_step,
                                const uint64_t *range, size_t range_step, size_t n, void *out)
{
    small_source source = {.state = state, .bits = bytes ? 8 * bytes : 1};
    integer_job job = {.bytes = bytes, .out = out};
    for (size_t i = 0; i < n; i++) {
        const uint64_t from = low[i * low_step], most = range[i * range_step];
        if (bytes >= 4)
            put(&job, i, from + drupe_philox_below(state, most));
        else
            put_small(out, bytes, i, from + (most ? small_below(&source, (uint32_t)most) : 0));
    }
}

/* --- Permutations
 * ------------------------------------------------------------------------------------------------ */

/* An integer of 0 ... range by the lowest bits of numbers of 32 or 64 bits, until one is not too large: what
 * NumPy takes for permutations. */
static uint64_t masked_below(drupe_philox *state, uint64_t range)
{
    uint64_t mask = range, value;
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    do value = (range <= UINT32_MAX ? drupe_philox_next32(state) : drupe_philox_next64(state)) & mask;
    while (value > range);
    return value;
}

/* Fisher and Yates, from the end. */
static void shuffle_end(drupe_philox *state, uint64_t (*below)(drupe_philox *, uint64_t), size_t n,
                        size_t count, int64_t *out)
{
    const size_t end = count < n ? n - count : 1;
    for (size_t i = n; i-- > end;) {
        const size_t j = (size_t)below(state, i);
        const int64_t kept = out[i];
        out[i] = out[j];
        out[j] = kept;
    }
}

void drupe_random_permutation(drupe_philox *state, size_t n, int64_t *out)
{
    for (size_t i = 0; i < n; i++) out[i] = (int64_t)i;
    shuffle_end(state, masked_below, n, n, out);
}

bool drupe_random_deal(drupe_philox *state, size_t n, size_t count, int64_t *out)
{
    int64_t *all = malloc(n * sizeof *all);
    if (!all) return false;
    for (size_t i = 0; i < n; i++) all[i] = (int64_t)i;
    shuffle_end(state, drupe_philox_below, n, count, all);
    memcpy(out, all + (n - count), count * sizeof *all);
    free(all);
    return true;
}

/* Floyd's algorithm: Bentley and Floyd, "A sample of brilliance", 1987. The set is a table of open addresses.
 */
bool drupe_random_sample(drupe_philox *state, uint64_t n, size_t count, bool shuffle, int64_t *out)
{
    size_t size = 4;
    while (size < 2 * count) size *= 2;
    uint64_t *set = malloc(size * sizeof *set);
    if (!set) return false;
    memset(set, 0xFF, size * sizeof *set);
    for (uint64_t j = n - count; j < n; j++) {
        uint64_t value = drupe_philox_below(state, j);
        for (int again = 0; again < 2; again++) {
            size_t at = value & (size - 1);
            while (set[at] != UINT64_MAX && set[at] != value) at = (at + 1) & (size - 1);
            if (set[at] == UINT64_MAX) {
                set[at] = value;
                break;
            }
            value = j; /* which is new to the set */
        }
        out[j - (n - count)] = (int64_t)value;
    }
    free(set);
    if (shuffle) shuffle_end(state, drupe_philox_below, count, count, out);
    return true;
}
