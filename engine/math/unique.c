/* See unique.h. Each part first marks the elements that differ from the one before them, and counts them;
 * then it knows where its results begin. */
#include "math/unique.h"
#include "base/base.h"
#include "base/parallel.h"
#include "math/scratch.h"

#define UNIQUE_GRAIN 16384
#define UNIQUE_PARTS 64

typedef struct unique_parts {
    const drupe_unique *u;
    uint8_t *marks; /* [n] whether an element is the first of its kind */
    size_t parts;
    size_t counts[UNIQUE_PARTS]; /* of marks in each part, then in front of it */
    size_t last[UNIQUE_PARTS];   /* where the last mark of each part is, if it has one */
} unique_parts;

#define MARK(type, differs)                                                                                  \
    do {                                                                                                     \
        const type *x = u->sorted;                                                                           \
        for (size_t i = begin; i < end; i++) {                                                               \
            const type a = x[i - 1], b = x[i];                                                               \
            marks[i] = (differs);                                                                            \
        }                                                                                                    \
    } while (0)

#define IS_NAN(a)   ((a) != (a))
#define HALF_NAN(a) (((a)&0x7fff) > 0x7c00)

/* `begin` is 1 at least. */
static void mark(const drupe_unique *u, size_t begin, size_t end, uint8_t *marks)
{
    const bool one = u->equal_nan;
    switch (u->type) {
    case DRUPE_ELEMENT_F16:
        MARK(uint16_t, drupe_half_float(a) != drupe_half_float(b) && !(one && HALF_NAN(a) && HALF_NAN(b)));
        break;
    case DRUPE_ELEMENT_F32: MARK(float, a != b && !(one && IS_NAN(a) && IS_NAN(b))); break;
    case DRUPE_ELEMENT_F64: MARK(double, a != b && !(one && IS_NAN(a) && IS_NAN(b))); break;
    case DRUPE_ELEMENT_C64: MARK(drupe_pair32, a.re != b.re || a.im != b.im); break;
    case DRUPE_ELEMENT_C128: MARK(drupe_pair64, a.re != b.re || a.im != b.im); break;
    case DRUPE_ELEMENT_I64:
    case DRUPE_ELEMENT_U64: MARK(uint64_t, a != b); break;
    case DRUPE_ELEMENT_I32:
    case DRUPE_ELEMENT_U32: MARK(uint32_t, a != b); break;
    case DRUPE_ELEMENT_I16:
    case DRUPE_ELEMENT_U16: MARK(uint16_t, a != b); break;
    default: MARK(uint8_t, a != b); break;
    }
}

static void mark_part(size_t i, void *user)
{
    unique_parts *p = user;
    const size_t begin = drupe_parallel_begin(p->u->n, i, p->parts),
                 end = drupe_parallel_begin(p->u->n, i + 1, p->parts);
    size_t count = 0;
    if (begin == 0) p->marks[0] = 1;
    mark(p->u, begin ? begin : 1, end, p->marks);
    for (size_t at = begin; at < end; at++) count += p->marks[at];
    p->counts[i] = count;
    if (!count) return;
    size_t last = end - 1;
    while (!p->marks[last]) last--;
    p->last[i] = last;
}

#define KEEP(type)                                                                                           \
    do {                                                                                                     \
        const type *x = u->sorted;                                                                           \
        type *out = u->values;                                                                               \
        for (size_t at = begin; at < end; at++)                                                              \
            if (marks[at]) out[k++] = x[at];                                                                 \
    } while (0)

static void keep(const drupe_unique *u, const uint8_t *marks, size_t begin, size_t end, size_t k)
{
    switch (drupe_element_size(u->type)) {
    case 1: KEEP(uint8_t); break;
    case 2: KEEP(uint16_t); break;
    case 4: KEEP(uint32_t); break;
    case 8: KEEP(uint64_t); break;
    default: KEEP(drupe_pair64); break;
    }
}

/* The count of an element is told by the next mark: the last one of a part by a later part. */
static void count_runs(const unique_parts *p, size_t i, size_t begin, size_t end, size_t k)
{
    size_t from = 0;
    for (size_t before = i; before-- && k;)
        if (p->last[before] || before == 0) {
            from = p->last[before];
            break;
        }
    for (size_t at = begin; at < end; at++) {
        if (!p->marks[at]) continue;
        if (k) p->u->counts[k - 1] = (int64_t)(at - from);
        from = at;
        k++;
    }
    if (i + 1 == p->parts) p->u->counts[k - 1] = (int64_t)(end - from);
}

static void write_part(size_t i, void *user)
{
    const unique_parts *p = user;
    const drupe_unique *u = p->u;
    const size_t begin = drupe_parallel_begin(u->n, i, p->parts),
                 end = drupe_parallel_begin(u->n, i + 1, p->parts);
    const size_t first = p->counts[i];
    if (u->values) keep(u, p->marks, begin, end, first);
    if (u->firsts)
        for (size_t at = begin, k = first; at < end; at++)
            if (p->marks[at]) u->firsts[k++] = u->places[at];
    if (u->inverse)
        for (size_t at = begin, k = first; at < end; at++) {
            k += p->marks[at];
            u->inverse[u->places[at]] = (int64_t)k - 1;
        }
    if (u->counts) count_runs(p, i, begin, end, first);
}

drupe_status drupe_unique_run(const drupe_unique *unique)
{
    unique_parts p = {.u = unique, .parts = drupe_parallel_parts(unique->n, UNIQUE_GRAIN)};
    *unique->count = 0;
    if (unique->n == 0) return DRUPE_OK;
    if (p.parts > UNIQUE_PARTS) p.parts = UNIQUE_PARTS;
    p.marks = drupe_scratch_get(unique->n);
    if (!p.marks)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for finding distinct elements.");
    drupe_parallel(p.parts, mark_part, &p);
    size_t sum = 0;
    for (size_t i = 0; i < p.parts; i++) {
        const size_t count = p.counts[i];
        p.counts[i] = sum;
        sum += count;
    }
    *unique->count = (int64_t)sum;
    drupe_parallel(p.parts, write_part, &p);
    drupe_scratch_release(p.marks, unique->n);
    return DRUPE_OK;
}
