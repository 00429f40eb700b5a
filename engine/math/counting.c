/* See counting.h. */
#include "math/counting.h"
#include "base/base.h"
#include "base/parallel.h"
#include <stdlib.h>
#include <string.h>

#define COUNTING_GRAIN 16384
#define COUNTING_PARTS 64

typedef struct counting_parts {
    const drupe_counting *c;
    size_t parts;
    int64_t *counts; /* [parts - 1][bins]: of all parts but the first */
    double *sums;
} counting_parts;

static void count_part(size_t i, void *user)
{
    const counting_parts *p = user;
    const drupe_counting *c = p->c;
    const size_t begin = drupe_parallel_begin(c->n, i, p->parts),
                 end = drupe_parallel_begin(c->n, i + 1, p->parts);
    if (c->weights) {
        double *sums = i ? p->sums + (i - 1) * c->bins : c->sums;
        for (size_t at = begin; at < end; at++)
            if ((uint64_t)c->numbers[at] < c->bins) sums[c->numbers[at]] += c->weights[at];
        return;
    }
    int64_t *counts = i ? p->counts + (i - 1) * c->bins : c->counts;
    for (size_t at = begin; at < end; at++)
        if ((uint64_t)c->numbers[at] < c->bins) counts[c->numbers[at]]++;
}

drupe_status drupe_counting_run(const drupe_counting *counting)
{
    const drupe_counting *c = counting;
    counting_parts p = {.c = c, .parts = drupe_parallel_parts(c->n, COUNTING_GRAIN)};
    if (p.parts > COUNTING_PARTS) p.parts = COUNTING_PARTS;
    if (c->bins > c->n / p.parts) p.parts = 1; /* adding up would take longer than counting */
    void *others = p.parts > 1 ? calloc((p.parts - 1) * c->bins, sizeof(int64_t)) : NULL;
    if (p.parts > 1 && !others)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for bincount.");
    p.counts = others;
    p.sums = others;
    if (c->weights)
        memset(c->sums, 0, c->bins * sizeof *c->sums);
    else
        memset(c->counts, 0, c->bins * sizeof *c->counts);
    drupe_parallel(p.parts, count_part, &p);
    for (size_t i = 0; i < (p.parts - 1) * c->bins; i++) {
        if (c->weights)
            c->sums[i % c->bins] += p.sums[i];
        else
            c->counts[i % c->bins] += p.counts[i];
    }
    free(others);
    return DRUPE_OK;
}

/* --- Lines through points --------------------------------------------------------------------------------
 */

typedef struct interp_parts {
    const drupe_interp *interp;
    size_t parts;
} interp_parts;

/* NaN in a slope of infinite points: then the line from the other end, as NumPy does. */
static double between(const drupe_interp *p, size_t j, double x)
{
    const double slope = (p->fp[j + 1] - p->fp[j]) / (p->xp[j + 1] - p->xp[j]);
    double y = slope * (x - p->xp[j]) + p->fp[j];
    if (y != y) y = slope * (x - p->xp[j + 1]) + p->fp[j + 1];
    if (y != y && p->fp[j] == p->fp[j + 1]) y = p->fp[j];
    return y;
}

static double interpolate(const drupe_interp *p, double x)
{
    if (x != x) return x;
    if (x < p->xp[0]) return p->left;
    if (x > p->xp[p->n - 1]) return p->right;
    size_t low = 0; /* the last point that is not behind x */
    for (size_t left = p->n; left > 1;) {
        const size_t half = left / 2;
        low += p->xp[low + half] <= x ? half : 0;
        left -= half;
    }
    return low + 1 == p->n || p->xp[low] == x ? p->fp[low] : between(p, low, x);
}

static void interp_part(size_t i, void *user)
{
    const interp_parts *p = user;
    const size_t end = drupe_parallel_begin(p->interp->m, i + 1, p->parts);
    for (size_t at = drupe_parallel_begin(p->interp->m, i, p->parts); at < end; at++)
        p->interp->out[at] = interpolate(p->interp, p->interp->x[at]);
}

void drupe_interp_run(const drupe_interp *interp)
{
    interp_parts p = {interp, drupe_parallel_parts(interp->m, 4096)};
    drupe_parallel(p.parts, interp_part, &p);
}
