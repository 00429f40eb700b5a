/* Gather and scatter.
 *
 * The axes that lead through index arrays are walked in blocks of points, whose positions are computed and
 * checked first, in loops that compilers vectorise; then the block's elements are moved, for each position
 * along the other axes. Rows along those are moved at once where they are long.
 *
 * A gather is cut among processors by its points or along another axis. A scatter may meet a position twice,
 * and the last one must win, so it is cut by where elements go: each part looks at all points, in order, and
 * takes those of its own stretch of memory. */
#include "math/gather.h"
#include "base/parallel.h"
#include "math/gather_line.h"
#include <inttypes.h>
#include <string.h>

#define BLOCK     512u   /* points */
#define GRAIN     32768u /* elements that are worth another processor */
#define PARTS     16u    /* at most */
#define SHORT_ROW 8u     /* elements: shorter rows are not moved one by one */

/* An index that leads nowhere. */
typedef struct stray {
    bool found;
    int array;
    int64_t index;
} stray;

/* What each part of a job does. */
typedef enum job_kind { JOB_GATHER, JOB_SCATTER, JOB_CHECK, JOB_FOLD } job_kind;
/* How a job is cut. */
typedef enum job_cut { CUT_POINTS, CUT_AXIS, CUT_MEMORY } job_cut;

typedef struct job {
    const drupe_gather *g;
    job_kind kind;
    job_cut cut;
    int axis; /* CUT_AXIS */
    size_t parts, points;
    ptrdiff_t low, high; /* CUT_MEMORY: all positions of points */
    const int64_t *const *indices;
    const char *from;
    char *to;
    stray strays[PARTS];
} job;

/* A block of points: where each is in the indexed array, and in the other one. */
typedef struct block {
    size_t count;
    ptrdiff_t at[BLOCK], other[BLOCK];
} block;

/* --- The index space ------------------------------------------------------------------------------------ */

static bool leads(const drupe_gather *g, int d)
{
    for (int k = 0; k < g->arrays; k++)
        if (g->index[k][d]) return true;
    return false;
}

static void axis_copy(drupe_gather *g, int to, const drupe_gather *from, int d)
{
    g->shape[to] = from->shape[d];
    g->at[to] = from->at[d];
    g->other[to] = from->other[d];
    for (int k = 0; k < g->arrays; k++) g->index[k][to] = from->index[k][d];
}

/* Whether axis `d` continues where axis d + 1 ends. */
static bool mergeable(const drupe_gather *g, int d)
{
    const ptrdiff_t length = (ptrdiff_t)g->shape[d + 1];
    if (g->at[d] != g->at[d + 1] * length || g->other[d] != g->other[d + 1] * length) return false;
    for (int k = 0; k < g->arrays; k++)
        if (g->index[k][d] != g->index[k][d + 1] * length) return false;
    return true;
}

static void merge(drupe_gather *g)
{
    for (int d = g->ndim - 2; d >= 0; d--) {
        if (d + 1 == g->points || !mergeable(g, d)) continue;
        g->shape[d + 1] *= g->shape[d];
        for (int e = d; e + 1 < g->ndim; e++) axis_copy(g, e, g, e + 1);
        g->ndim--;
        if (d < g->points) g->points--;
    }
}

void drupe_gather_prepare(drupe_gather *g)
{
    const drupe_gather all = *g;
    g->ndim = 0;
    for (int d = 0; d < all.ndim; d++)
        if (all.shape[d] != 1 && leads(&all, d)) axis_copy(g, g->ndim++, &all, d);
    g->points = g->ndim;
    for (int d = 0; d < all.ndim; d++)
        if (all.shape[d] != 1 && !leads(&all, d)) axis_copy(g, g->ndim++, &all, d);
    merge(g);
}

static size_t product(const drupe_gather *g, int from, int to)
{
    size_t n = 1;
    for (int d = from; d < to; d++) n *= g->shape[d];
    return n;
}

/* --- Points --------------------------------------------------------------------------------------------- */

/* at[i] += step * index, for `count` indices; false when one of them leads nowhere. */
static bool add_checked(const int64_t *index, ptrdiff_t stride, int64_t length, ptrdiff_t step, size_t count,
                        ptrdiff_t *at)
{
    uint64_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t v = index[(ptrdiff_t)i * stride];
        v += v < 0 ? length : 0;
        bad |= (uint64_t)v >= (uint64_t)length;
        /* Unsigned, since an index that leads nowhere may be any number. */
        at[i] = (ptrdiff_t)((uint64_t)at[i] + (uint64_t)v * (uint64_t)step);
    }
    return !bad;
}

static void add_wrapped(const int64_t *index, ptrdiff_t stride, int64_t length, ptrdiff_t step, size_t count,
                        ptrdiff_t *at)
{
    for (size_t i = 0; i < count; i++) {
        int64_t v = index[(ptrdiff_t)i * stride] % length;
        v += v < 0 ? length : 0;
        at[i] += v * step;
    }
}

static void add_clipped(const int64_t *index, ptrdiff_t stride, int64_t length, ptrdiff_t step, size_t count,
                        ptrdiff_t *at)
{
    for (size_t i = 0; i < count; i++) {
        int64_t v = index[(ptrdiff_t)i * stride];
        v = v < 0 ? 0 : v >= length ? length - 1 : v;
        at[i] += v * step;
    }
}

static void stray_find(const int64_t *index, ptrdiff_t stride, int64_t length, size_t count, int array,
                       stray *lost)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t v = index[(ptrdiff_t)i * stride];
        if (v >= -length && v < length) continue;
        *lost = (stray){true, array, v};
        return;
    }
    *lost = (stray){true, array, length}; /* it was changed meanwhile */
}

/* Points of one row of the last axis of index arrays, the first of them at `place`. */
static bool row_resolve(const job *j, const size_t *place, size_t count, ptrdiff_t *at, ptrdiff_t *other,
                        stray *lost)
{
    const drupe_gather *g = j->g;
    const int last = g->points - 1;
    ptrdiff_t from = g->base, to = 0;
    for (int d = 0; d <= last; d++) {
        from += (ptrdiff_t)place[d] * g->at[d];
        to += (ptrdiff_t)place[d] * g->other[d];
    }
    const ptrdiff_t step = last < 0 ? 0 : g->at[last], other_step = last < 0 ? 0 : g->other[last];
    for (size_t i = 0; i < count; i++) {
        at[i] = from + (ptrdiff_t)i * step;
        other[i] = to + (ptrdiff_t)i * other_step;
    }
    for (int k = 0; k < g->arrays; k++) {
        const int64_t *index = j->indices[k];
        for (int d = 0; d <= last; d++) index += (ptrdiff_t)place[d] * g->index[k][d];
        const ptrdiff_t stride = last < 0 ? 0 : g->index[k][last];
        if (g->mode == DRUPE_INDEX_WRAP) {
            add_wrapped(index, stride, g->length[k], g->step[k], count, at);
        } else if (g->mode == DRUPE_INDEX_CLIP) {
            add_clipped(index, stride, g->length[k], g->step[k], count, at);
        } else if (!add_checked(index, stride, g->length[k], g->step[k], count, at)) {
            stray_find(index, stride, g->length[k], count, k, lost);
            return false;
        }
    }
    return true;
}

/* The points from number `first` on, at most `most` of them. */
static bool block_resolve(const job *j, size_t first, size_t most, block *b, stray *lost)
{
    const drupe_gather *g = j->g;
    size_t place[DRUPE_MAX_DIMS] = {0}, rest = first;
    const size_t count = most < BLOCK ? most : BLOCK;
    for (int d = g->points - 1; d >= 0; d--) {
        place[d] = rest % g->shape[d];
        rest /= g->shape[d];
    }
    for (b->count = 0; b->count < count;) {
        size_t run = count - b->count;
        const int last = g->points - 1;
        if (last >= 0 && run > g->shape[last] - place[last]) run = g->shape[last] - place[last];
        if (!row_resolve(j, place, run, b->at + b->count, b->other + b->count, lost)) return false;
        b->count += run;
        if (last < 0) break;
        place[last] += run;
        for (int d = last; d > 0 && place[d] == g->shape[d]; d--) {
            place[d] = 0;
            place[d - 1]++;
        }
    }
    return true;
}

/* Leave the points whose memory lies within [low, high). */
static void block_filter(block *b, ptrdiff_t low, ptrdiff_t high)
{
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        const ptrdiff_t at = b->at[i];
        b->at[count] = at;
        b->other[count] = b->other[i];
        count += at >= low && at < high;
    }
    b->count = count;
}

/* --- Moving elements ------------------------------------------------------------------------------------ */

typedef struct bytes16 {
    uint64_t halves[2];
} bytes16;

#define MOVES(name, type)                                                                                    \
    static void points_##name(const void *from, const ptrdiff_t *at, void *to, const ptrdiff_t *other,       \
                              size_t count)                                                                  \
    {                                                                                                        \
        const type *source = from;                                                                           \
        type *target = to;                                                                                   \
        for (size_t i = 0; i < count; i++) target[other[i]] = source[at[i]];                                 \
    }                                                                                                        \
    static void row_##name(const void *from, ptrdiff_t step, void *to, ptrdiff_t other, size_t count)        \
    {                                                                                                        \
        const type *source = from;                                                                           \
        type *target = to;                                                                                   \
        if (step == 1 && other == 1) {                                                                       \
            memcpy(to, from, count * sizeof(type));                                                          \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t i = 0; i < count; i++) target[(ptrdiff_t)i * other] = source[(ptrdiff_t)i * step];       \
    }

MOVES(1, uint8_t)
MOVES(2, uint16_t)
MOVES(4, uint32_t)
MOVES(8, uint64_t)
MOVES(16, bytes16)

typedef struct moves {
    void (*points)(const void *from, const ptrdiff_t *at, void *to, const ptrdiff_t *other, size_t count);
    void (*row)(const void *from, ptrdiff_t step, void *to, ptrdiff_t other, size_t count);
} moves;

static const moves *moves_of(size_t element)
{
    static const moves table[] = {
        {points_1, row_1}, {points_2, row_2}, {points_4, row_4}, {points_8, row_8}, {points_16, row_16}};
    return &table[element == 1 ? 0 : element == 2 ? 1 : element == 4 ? 2 : element == 8 ? 3 : 4];
}

/* Whether rows along the last axis, which leads through no index array, are moved point by point. */
static bool by_rows(const drupe_gather *g)
{
    if (g->ndim == g->points) return false;
    if (g->points == 0) return true;
    return g->shape[g->ndim - 1] >= SHORT_ROW &&
           (g->at[g->ndim - 1] == 1 || g->points == 0 || g->step[0] > 1);
}

/* The elements of a block for one position along the axes of no index array, or a row of them. */
static void block_move(const job *j, const block *b, ptrdiff_t at, ptrdiff_t other, bool rows)
{
    const drupe_gather *g = j->g;
    const moves *move = moves_of(g->element);
    const ptrdiff_t size = (ptrdiff_t)g->element, last = g->ndim - 1;
    const bool gather = j->kind == JOB_GATHER;
    const ptrdiff_t read = (gather ? at : other) * size, written = (gather ? other : at) * size;
    const ptrdiff_t *reads = gather ? b->at : b->other, *writes = gather ? b->other : b->at;
    if (!rows) {
        move->points(j->from + read, reads, j->to + written, writes, b->count);
        return;
    }
    const ptrdiff_t read_step = gather ? g->at[last] : g->other[last];
    const ptrdiff_t write_step = gather ? g->other[last] : g->at[last];
    for (size_t i = 0; i < b->count; i++)
        move->row(j->from + read + reads[i] * size, read_step, j->to + written + writes[i] * size, write_step,
                  g->shape[last]);
}

/* All positions along the axes of no index array. */
static void block_spread(const job *j, const block *b)
{
    const drupe_gather *g = j->g;
    const bool rows = by_rows(g);
    const int end = g->ndim - (rows ? 1 : 0);
    size_t place[DRUPE_MAX_DIMS] = {0};
    ptrdiff_t at = 0, other = 0;
    if (b->count == 0) return;
    for (;;) {
        block_move(j, b, at, other, rows);
        int d = end - 1;
        for (; d >= g->points; d--) {
            at += g->at[d];
            other += g->other[d];
            if (++place[d] < g->shape[d]) break;
            at -= (ptrdiff_t)g->shape[d] * g->at[d];
            other -= (ptrdiff_t)g->shape[d] * g->other[d];
            place[d] = 0;
        }
        if (d < g->points) return;
    }
}

/* --- Lines ---------------------------------------------------------------------------------------------- */

/* Whether the space is one axis, which one index array leads through without gaps. */
static bool is_line(const drupe_gather *g)
{
    return g->ndim == 1 && g->points == 1 && g->arrays == 1 && g->at[0] == 0 && g->index[0][0] == 1 &&
           g->mode == DRUPE_INDEX_RAISE;
}

/* Part `i`: of the points, or of the places along the axis. */
static void line_part(size_t i, void *user)
{
    job *j = user;
    const drupe_gather *g = j->g;
    const drupe_line line = {g->element, g->length[0], g->step[0], g->other[0]};
    const ptrdiff_t size = (ptrdiff_t)g->element;
    const int64_t *index = j->indices[0];
    const size_t begin = drupe_parallel_begin(j->points, i, j->parts);
    const size_t count = drupe_parallel_begin(j->points, i + 1, j->parts) - begin;
    stray *lost = &j->strays[i];
    bool good = true;
    if (j->kind == JOB_CHECK)
        good = drupe_line_check(index + begin, count, line.length, &lost->index);
    else if (j->kind == JOB_GATHER)
        good = drupe_line_gather(&line, j->from + g->base * size, index + begin, count,
                                 j->to + (ptrdiff_t)begin * line.other * size, &lost->index);
    else
        drupe_line_scatter(&line, j->to + g->base * size, index, j->points, j->from,
                           (int64_t)drupe_parallel_begin((size_t)line.length, i, j->parts),
                           (int64_t)drupe_parallel_begin((size_t)line.length, i + 1, j->parts));
    lost->found = !good;
}

/* --- Jobs ----------------------------------------------------------------------------------------------- */

static void job_walk(const job *j, size_t first, size_t end, ptrdiff_t low, ptrdiff_t high, stray *lost)
{
    block b;
    for (size_t p = first; p < end; p += BLOCK) {
        if (!block_resolve(j, p, end - p, &b, lost)) return;
        if (j->kind == JOB_FOLD) memcpy((int64_t *)(void *)j->to + p, b.at, b.count * sizeof(int64_t));
        if (j->kind != JOB_GATHER && j->kind != JOB_SCATTER) continue;
        if (j->cut == CUT_MEMORY) block_filter(&b, low, high);
        block_spread(j, &b);
    }
}

static void job_part(size_t i, void *user)
{
    job *j = user;
    stray *lost = &j->strays[i];
    if (j->cut == CUT_POINTS) {
        job_walk(j, drupe_parallel_begin(j->points, i, j->parts),
                 drupe_parallel_begin(j->points, i + 1, j->parts), 0, 0, lost);
    } else if (j->cut == CUT_MEMORY) {
        const size_t reach = (size_t)(j->high - j->low);
        job_walk(j, 0, j->points, j->low + (ptrdiff_t)drupe_parallel_begin(reach, i, j->parts),
                 j->low + (ptrdiff_t)drupe_parallel_begin(reach, i + 1, j->parts), lost);
    } else {
        drupe_gather own = *j->g;
        job mine = {.g = &own,
                    .kind = j->kind,
                    .cut = j->cut,
                    .points = j->points,
                    .indices = j->indices,
                    .from = j->from,
                    .to = j->to};
        const size_t begin = drupe_parallel_begin(own.shape[j->axis], i, j->parts);
        const ptrdiff_t size = (ptrdiff_t)own.element, skip = (ptrdiff_t)begin * own.other[j->axis] * size;
        own.shape[j->axis] = drupe_parallel_begin(own.shape[j->axis], i + 1, j->parts) - begin;
        own.base += (ptrdiff_t)begin * own.at[j->axis];
        if (j->kind == JOB_GATHER)
            mine.to += skip;
        else
            mine.from += skip;
        job_walk(&mine, 0, j->points, 0, 0, lost);
    }
}

/* The longest of the axes of no index array, or -1. */
static int longest_axis(const drupe_gather *g)
{
    int longest = -1;
    for (int d = g->points; d < g->ndim; d++)
        if (longest < 0 || g->shape[d] > g->shape[longest]) longest = d;
    return longest;
}

static drupe_status job_run(job *j)
{
    const drupe_gather *g = j->g;
    j->points = product(g, 0, g->points);
    const size_t total = j->kind == JOB_CHECK ? j->points : j->points * product(g, g->points, g->ndim);
    if (total == 0) return DRUPE_OK;
    j->parts = drupe_parallel_parts(total, GRAIN);
    if (j->parts > PARTS) j->parts = PARTS;
    const int longest = longest_axis(g);
    const bool order = j->kind == JOB_SCATTER, few = j->points < j->parts * 64;
    if (j->kind == JOB_CHECK || j->kind == JOB_FOLD) {
        j->cut = CUT_POINTS;
    } else if (longest >= 0 && (order || few) && g->shape[longest] >= j->parts * 16) {
        j->cut = CUT_AXIS;
        j->axis = longest;
    } else {
        /* All parts look at all points, which two of them do not make up for. */
        j->cut = order && j->parts > 2 ? CUT_MEMORY : CUT_POINTS;
        if (order && j->cut == CUT_POINTS) j->parts = 1;
    }
    if (j->cut == CUT_POINTS && j->parts > j->points) j->parts = j->points;
    drupe_parallel(j->parts, is_line(g) && j->kind != JOB_FOLD ? line_part : job_part, j);
    for (size_t i = 0; i < j->parts; i++) {
        const stray *lost = &j->strays[i];
        if (lost->found)
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                                   "index %" PRId64 " is out of bounds for axis %d with size %" PRId64,
                                   lost->index, g->axis[lost->array], g->length[lost->array]);
    }
    return DRUPE_OK;
}

drupe_status drupe_gather_run(const drupe_gather *g, const void *from, const int64_t *const *indices,
                              void *to)
{
    job j = {.g = g, .kind = JOB_GATHER, .indices = indices, .from = from, .to = to};
    return job_run(&j);
}

/* The stretch of memory that points may lie in. */
static void reach_find(const drupe_gather *g, ptrdiff_t *low, ptrdiff_t *high)
{
    *low = *high = g->base;
    for (int d = 0; d < g->points; d++) {
        const ptrdiff_t reach = ((ptrdiff_t)g->shape[d] - 1) * g->at[d];
        *(reach < 0 ? low : high) += reach;
    }
    for (int k = 0; k < g->arrays; k++) {
        const ptrdiff_t reach = (ptrdiff_t)(g->length[k] - 1) * g->step[k];
        *(reach < 0 ? low : high) += reach;
    }
    ++*high;
}

drupe_status drupe_scatter_run(const drupe_gather *g, void *to, const int64_t *const *indices,
                               const void *from)
{
    job check = {.g = g, .kind = JOB_CHECK, .indices = indices};
    if (g->mode == DRUPE_INDEX_RAISE) DRUPE_TRY(job_run(&check));
    job j = {.g = g, .kind = JOB_SCATTER, .indices = indices, .from = from, .to = to};
    reach_find(g, &j.low, &j.high);
    return job_run(&j);
}

drupe_status drupe_gather_fold(const drupe_gather *g, const int64_t *const *indices, int64_t *to)
{
    job j = {.g = g, .kind = JOB_FOLD, .indices = indices, .to = (char *)to};
    return job_run(&j);
}
