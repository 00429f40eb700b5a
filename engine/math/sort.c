/* See sort.h. Elements become unsigned keys, which a radix sort orders, and elements again. For indices the
 * place goes with the key: in the lower half of a word where both fit, else beside it.
 *
 * A long row is sorted by all threads; of many short ones each thread sorts its share, with buffers of its
 * own. */
#include "math/sort.h"
#include "base/base.h"
#include "base/parallel.h"
#include "math/radix.h"
#include "math/scratch.h"
#include "math/sort_keys.h"
#include "math/sort_pairs.h"
#include <stdatomic.h>

#define SORT_GRAIN 16384 /* elements that are worth another thread */
#define SORT_CHUNK 256   /* keys that are made on the stack */

typedef enum sort_items { ITEMS_NARROW, ITEMS_WIDE, ITEMS_PACKED, ITEMS_KEYED } sort_items;

typedef struct sort_row {
    const drupe_sort *sort;
    sort_items items;
    bool narrow, parallel;
    size_t parts;
    const char *in;
    char *out;
    int64_t *indices;
    void *a, *other;
    _Atomic(bool) zeros; /* a -0.0 was met */
} sort_row;

static size_t item_size(sort_items items)
{
    return items == ITEMS_NARROW ? 4 : items == ITEMS_KEYED ? sizeof(drupe_keyed) : 8;
}

static bool is_narrow(drupe_element type)
{
    return drupe_element_size(type) <= 4;
}

static sort_items items_of(const drupe_sort *sort)
{
    const bool narrow = is_narrow(sort->type);
    if (!sort->indices) return narrow ? ITEMS_NARROW : ITEMS_WIDE;
    return narrow && sort->n <= UINT32_MAX ? ITEMS_PACKED : ITEMS_KEYED;
}

/* Whether `out` or `indices` can hold the items while they are sorted. */
static bool sorts_in_place(const drupe_sort *sort, sort_items items)
{
    if (items == ITEMS_PACKED) return true;
    return items != ITEMS_KEYED && item_size(items) == drupe_element_size(sort->type);
}

/* --- Elements to items and back ---------------------------------------------------------------------------
 */

static bool load_keys(const sort_row *r, size_t begin, size_t count, uint64_t *keys)
{
    const drupe_sort *s = r->sort;
    const char *in = r->in + begin * drupe_element_size(s->type);
    uint32_t few[SORT_CHUNK];
    if (!r->narrow) return drupe_keys_wide(s->type, in, count, s->descending, keys);
    const bool zeros = drupe_keys_narrow(s->type, in, count, s->descending, few);
    for (size_t i = 0; i < count; i++) keys[i] = few[i];
    return zeros;
}

static bool load_indexed(const sort_row *r, size_t begin, size_t end)
{
    uint64_t keys[SORT_CHUNK];
    bool zeros = false;
    for (size_t at = begin, count; at < end; at += count) {
        count = end - at < SORT_CHUNK ? end - at : SORT_CHUNK;
        zeros |= load_keys(r, at, count, keys);
        if (r->items == ITEMS_PACKED)
            for (size_t i = 0; i < count; i++) ((uint64_t *)r->a)[at + i] = keys[i] << 32 | (at + i);
        else
            for (size_t i = 0; i < count; i++) ((drupe_keyed *)r->a)[at + i] = (drupe_keyed){keys[i], at + i};
    }
    return zeros;
}

static void load_part(size_t i, void *user)
{
    sort_row *r = user;
    const drupe_sort *s = r->sort;
    const size_t begin = drupe_parallel_begin(s->n, i, r->parts),
                 end = drupe_parallel_begin(s->n, i + 1, r->parts);
    const char *in = r->in + begin * drupe_element_size(s->type);
    bool zeros;
    if (r->items == ITEMS_NARROW)
        zeros = drupe_keys_narrow(s->type, in, end - begin, s->descending, (uint32_t *)r->a + begin);
    else if (r->items == ITEMS_WIDE)
        zeros = drupe_keys_wide(s->type, in, end - begin, s->descending, (uint64_t *)r->a + begin);
    else
        zeros = load_indexed(r, begin, end);
    if (zeros) atomic_store_explicit(&r->zeros, true, memory_order_relaxed);
}

/* The elements of indexed items. */
static void store_elements(const sort_row *r, size_t begin, size_t end)
{
    const drupe_sort *s = r->sort;
    uint64_t wide[SORT_CHUNK];
    uint32_t narrow[SORT_CHUNK];
    for (size_t at = begin, count; at < end; at += count) {
        count = end - at < SORT_CHUNK ? end - at : SORT_CHUNK;
        char *out = r->out + at * drupe_element_size(s->type);
        for (size_t i = 0; i < count; i++)
            wide[i] = r->items == ITEMS_PACKED ? ((uint64_t *)r->a)[at + i] >> 32
                                               : ((drupe_keyed *)r->a)[at + i].key;
        for (size_t i = 0; i < count; i++) narrow[i] = (uint32_t)wide[i];
        if (r->narrow)
            drupe_keys_narrow_back(s->type, narrow, count, s->descending, out);
        else
            drupe_keys_wide_back(s->type, wide, count, s->descending, out);
    }
}

static void store_part(size_t i, void *user)
{
    const sort_row *r = user;
    const drupe_sort *s = r->sort;
    const size_t begin = drupe_parallel_begin(s->n, i, r->parts),
                 end = drupe_parallel_begin(s->n, i + 1, r->parts);
    char *out = r->out + begin * drupe_element_size(s->type);
    if (r->items == ITEMS_NARROW) {
        drupe_keys_narrow_back(s->type, (uint32_t *)r->a + begin, end - begin, s->descending, out);
        return;
    }
    if (r->items == ITEMS_WIDE) {
        drupe_keys_wide_back(s->type, (uint64_t *)r->a + begin, end - begin, s->descending, out);
        return;
    }
    if (s->out) store_elements(r, begin, end);
    if (r->items == ITEMS_PACKED)
        for (size_t at = begin; at < end; at++)
            r->indices[at] = (int64_t)(((uint64_t *)r->a)[at] & UINT32_MAX);
    else
        for (size_t at = begin; at < end; at++) r->indices[at] = (int64_t)((drupe_keyed *)r->a)[at].value;
}

/* Keys do not tell -0.0 from 0.0: the zeros of the row come back in the order they had. */
#define RETURN_ZEROS(type, sign)                                                                             \
    do {                                                                                                     \
        const type *in = (const type *)r->in;                                                                \
        type *out = (type *)r->out;                                                                          \
        size_t to = 0;                                                                                       \
        while ((out[to] & (type) ~(sign)) != 0) to++;                                                        \
        for (size_t i = 0; i < r->sort->n; i++)                                                              \
            if ((in[i] & (type) ~(sign)) == 0) out[to++] = in[i];                                            \
    } while (0)

static void return_zeros(const sort_row *r)
{
    switch (r->sort->type) {
    case DRUPE_ELEMENT_F16: RETURN_ZEROS(uint16_t, 0x8000u); break;
    case DRUPE_ELEMENT_F32: RETURN_ZEROS(uint32_t, UINT32_C(1) << 31); break;
    default: RETURN_ZEROS(uint64_t, UINT64_C(1) << 63); break;
    }
}

/* --- Rows ------------------------------------------------------------------------------------------------
 */

static void sort_by_keys(const sort_row *r)
{
    const size_t n = r->sort->n;
    switch (r->items) {
    case ITEMS_NARROW: drupe_radix_u32(r->a, r->other, n, r->parallel); break;
    case ITEMS_WIDE: drupe_radix_u64(r->a, r->other, n, r->parallel); break;
    case ITEMS_PACKED: drupe_radix_upper(r->a, r->other, n, r->parallel); break;
    case ITEMS_KEYED: drupe_radix_keyed(r->a, r->other, n, r->parallel); break;
    }
}

/* `buffer`: room for the items once if they are sorted in place, else twice. */
static void sort_one(const drupe_sort *s, size_t row, void *buffer, bool parallel)
{
    const size_t size = drupe_element_size(s->type);
    sort_row r = {.sort = s, .items = items_of(s), .narrow = is_narrow(s->type), .parallel = parallel};
    r.in = (const char *)s->in + row * s->n * size;
    r.out = s->out ? (char *)s->out + row * s->n * size : NULL;
    r.indices = s->indices ? s->indices + row * s->n : NULL;
    r.parts = parallel ? drupe_parallel_parts(s->n, SORT_GRAIN) : 1;
    r.other = buffer;
    r.a = !sorts_in_place(s, r.items) ? (char *)buffer + s->n * item_size(r.items)
          : r.indices                 ? (void *)r.indices
                                      : (void *)r.out;
    if (parallel)
        drupe_parallel(r.parts, load_part, &r);
    else
        load_part(0, &r);
    sort_by_keys(&r);
    if (parallel)
        drupe_parallel(r.parts, store_part, &r);
    else
        store_part(0, &r);
    if (r.zeros && r.out) return_zeros(&r);
}

typedef struct sort_share {
    const drupe_sort *sort;
    size_t parts;
    _Atomic(bool) failed;
} sort_share;

static size_t buffer_size(const drupe_sort *s)
{
    const sort_items items = items_of(s);
    return s->n * item_size(items) * (sorts_in_place(s, items) ? 1 : 2);
}

static void sort_rows(size_t i, void *user)
{
    sort_share *share = user;
    const drupe_sort *s = share->sort;
    const size_t size = buffer_size(s), end = drupe_parallel_begin(s->rows, i + 1, share->parts);
    void *buffer = drupe_scratch_get(size);
    if (!buffer)
        atomic_store(&share->failed, true);
    else
        for (size_t row = drupe_parallel_begin(s->rows, i, share->parts); row < end; row++)
            sort_one(s, row, buffer, false);
    drupe_scratch_release(buffer, size);
}

static drupe_status no_memory(void)
{
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for the buffers of a sort.");
}

drupe_status drupe_sort_run(const drupe_sort *sort)
{
    if (sort->n == 0 || sort->rows == 0) return DRUPE_OK;
    if (sort->type >= DRUPE_ELEMENT_C64) return drupe_sort_pairs(sort);
    sort_share share = {.sort = sort, .parts = drupe_parallel_parts(sort->n * sort->rows, SORT_GRAIN)};
    if (sort->rows >= share.parts) {
        drupe_parallel(share.parts, sort_rows, &share);
        return share.failed ? no_memory() : DRUPE_OK;
    }
    const size_t size = buffer_size(sort);
    void *buffer = drupe_scratch_get(size);
    if (!buffer) return no_memory();
    for (size_t row = 0; row < sort->rows; row++) sort_one(sort, row, buffer, true);
    drupe_scratch_release(buffer, size);
    return DRUPE_OK;
}
