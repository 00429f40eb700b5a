/* See sort_pairs.h: merges from the bottom up, of pairs that know their places. The rows are shared among
 * threads; one long row is merged by one thread at its end. */
#include "math/sort_pairs.h"
#include "base/base.h"
#include "base/parallel.h"
#include "math/scratch.h"
#include <stdatomic.h>

#define PAIR_RUN   16
#define PAIR_GRAIN 4096

typedef struct pair_item {
    drupe_pair64 value;
    uint64_t place;
} pair_item;

typedef struct pair_sort {
    const drupe_sort *sort;
    pair_item *a, *other; /* of one row */
    size_t row, parts;
    _Atomic(bool) failed;
} pair_sort;

static bool before(const pair_item *a, const pair_item *b, bool descending)
{
    if (!descending) return drupe_pair_less(a->value, b->value);
    const bool a_nan = a->value.re != a->value.re || a->value.im != a->value.im;
    const bool b_nan = b->value.re != b->value.re || b->value.im != b->value.im;
    if (a_nan || b_nan) return drupe_pair_less(a->value, b->value); /* NaNs last, as otherwise */
    return drupe_pair_less(b->value, a->value);
}

static void insert_run(pair_item *a, size_t n, bool descending)
{
    for (size_t i = 1; i < n; i++) {
        const pair_item x = a[i];
        size_t j = i;
        for (; j > 0 && before(&x, &a[j - 1], descending); j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

static void merge(const pair_item *a, size_t middle, size_t n, bool descending, pair_item *out)
{
    size_t i = 0, j = middle;
    for (size_t k = 0; k < n; k++)
        out[k] = j == n || (i < middle && !before(&a[j], &a[i], descending)) ? a[i++] : a[j++];
}

/* Merge sorted runs of `run` items until there is one; whether it is in `other`. */
static bool merge_runs(pair_item *a, pair_item *other, size_t n, size_t run, bool descending)
{
    bool in_other = false;
    for (; run < n; run *= 2, in_other = !in_other) {
        const pair_item *from = in_other ? other : a;
        pair_item *to = in_other ? a : other;
        for (size_t at = 0; at < n; at += 2 * run) {
            const size_t left = n - at, count = left < 2 * run ? left : 2 * run;
            merge(from + at, count < run ? count : run, count, descending, to + at);
        }
    }
    return in_other;
}

/* Sort items [begin, end) of a row in place. */
static void sort_span(const pair_sort *p, size_t begin, size_t end)
{
    const bool descending = p->sort->descending;
    for (size_t at = begin; at < end; at += PAIR_RUN)
        insert_run(p->a + at, end - at < PAIR_RUN ? end - at : PAIR_RUN, descending);
    if (merge_runs(p->a + begin, p->other + begin, end - begin, PAIR_RUN, descending))
        memcpy(p->a + begin, p->other + begin, (end - begin) * sizeof *p->a);
}

static void load_row(const pair_sort *p)
{
    const drupe_sort *s = p->sort;
    const drupe_pair32 *narrow = (const drupe_pair32 *)s->in + p->row * s->n;
    const drupe_pair64 *wide = (const drupe_pair64 *)s->in + p->row * s->n;
    for (size_t i = 0; i < s->n; i++) {
        const bool is_wide = s->type == DRUPE_ELEMENT_C128;
        p->a[i] = (pair_item){is_wide ? wide[i] : (drupe_pair64){narrow[i].re, narrow[i].im}, i};
    }
}

static void store_row(const pair_sort *p, const pair_item *items)
{
    const drupe_sort *s = p->sort;
    const size_t at = p->row * s->n;
    for (size_t i = 0; s->indices && i < s->n; i++) s->indices[at + i] = (int64_t)items[i].place;
    if (!s->out) return;
    const char *in = (const char *)s->in;
    const size_t size = drupe_element_size(s->type);
    for (size_t i = 0; i < s->n; i++)
        memcpy((char *)s->out + (at + i) * size, in + (at + items[i].place) * size, size);
}

/* A share of one row, as long as a power of two times the run, so that the merges go on from there. */
static size_t share_length(const pair_sort *p)
{
    size_t length = PAIR_RUN;
    while (length * p->parts < p->sort->n) length *= 2;
    return length;
}

static void share_part(size_t i, void *user)
{
    const pair_sort *p = user;
    const size_t length = share_length(p), begin = i * length, n = p->sort->n;
    if (begin < n) sort_span(p, begin, n - begin < length ? n : begin + length);
}

static bool row_buffers(pair_sort *p)
{
    p->a = drupe_scratch_get(2 * p->sort->n * sizeof *p->a);
    p->other = p->a ? p->a + p->sort->n : NULL;
    return p->a;
}

static void rows_part(size_t i, void *user)
{
    pair_sort *all = user;
    const drupe_sort *s = all->sort;
    pair_sort own = {.sort = s};
    if (!row_buffers(&own)) {
        atomic_store(&all->failed, true);
        return;
    }
    const size_t end = drupe_parallel_begin(s->rows, i + 1, all->parts);
    for (own.row = drupe_parallel_begin(s->rows, i, all->parts); own.row < end; own.row++) {
        load_row(&own);
        sort_span(&own, 0, s->n);
        store_row(&own, own.a);
    }
    drupe_scratch_release(own.a, 2 * s->n * sizeof *own.a);
}

static drupe_status no_memory(void)
{
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for the buffers of a sort.");
}

drupe_status drupe_sort_pairs(const drupe_sort *sort)
{
    pair_sort p = {.sort = sort, .parts = drupe_parallel_parts(sort->n * sort->rows, PAIR_GRAIN)};
    if (sort->rows >= p.parts) {
        drupe_parallel(p.parts, rows_part, &p);
        return p.failed ? no_memory() : DRUPE_OK;
    }
    if (!row_buffers(&p)) return no_memory();
    for (p.row = 0; p.row < sort->rows; p.row++) {
        load_row(&p);
        drupe_parallel(p.parts, share_part, &p);
        const bool in_other = merge_runs(p.a, p.other, sort->n, share_length(&p), sort->descending);
        store_row(&p, in_other ? p.other : p.a);
    }
    drupe_scratch_release(p.a, 2 * sort->n * sizeof *p.a);
    return DRUPE_OK;
}
