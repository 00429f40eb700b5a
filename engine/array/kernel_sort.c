/* Sorts as kernels for GPUs: keys with the places of their elements go through a pass for each digit. */
#include "array/kernel_room.h"

enum { KEYS, HISTOGRAM, MOVE, ELEMENTS, PLACES };
#define SORT_DIGIT  4
#define SORT_DIGITS 16

/* Keys and places, and where a pass puts them; the two change roles. */
typedef struct sorter {
    drupe_target *target;
    drupe_queue *queue;
    drupe_dtype dtype, key;
    drupe_sort_params p;
    size_t size, tile;
    drupe_array keys, places, next_keys, next_places, counts, before;
} sorter;

bool drupe_kernel_sorts(const drupe_target *target, const drupe_sort *sort)
{
    return drupe_target_remote(target) && sort->n < INT32_MAX / 2 && target->group >= SORT_DIGITS;
}

static drupe_status launch(const sorter *s, int variant, const drupe_array *const *arrays, size_t count,
                           uint32_t writes, size_t items)
{
    /* Those that do not look into elements serve all types of a size. */
    const drupe_dtype dtype = variant == KEYS       ? s->dtype
                              : variant == ELEMENTS ? drupe_dtype_bytes(drupe_dtype_size(s->dtype))
                                                    : s->key;
    drupe_kernel_call call = {.parts = drupe_kernel_parts(SHAPE_SORT, variant, dtype),
                              .count = count,
                              .reads = ((1u << count) - 1) & ~writes,
                              .writes = writes,
                              .params = &s->p,
                              .params_size = sizeof s->p,
                              .items = items};
    if (variant == KEYS && s->p.placed) call.reads |= 2;
    for (size_t i = 0; i < count; i++) call.arrays[i] = arrays[i];
    return drupe_array_kernel(s->target, &call);
}

static drupe_status sorter_array(const sorter *s, drupe_dtype dtype, size_t size, drupe_array *array)
{
    return drupe_array_result(s->queue, DRUPE_MEM_DEVICE, dtype, 1, &size, array);
}

static drupe_status sorter_open(sorter *s)
{
    const size_t counts = (size_t)(s->p.rows * s->p.tiles) * SORT_DIGITS;
    DRUPE_TRY(sorter_array(s, s->key, s->size, &s->keys));
    DRUPE_TRY(sorter_array(s, s->key, s->size, &s->next_keys));
    DRUPE_TRY(sorter_array(s, DRUPE_INT32, s->size, &s->places));
    DRUPE_TRY(sorter_array(s, DRUPE_INT32, s->size, &s->next_places));
    DRUPE_TRY(sorter_array(s, DRUPE_INT32, counts, &s->counts));
    return sorter_array(s, DRUPE_INT32, counts + (size_t)s->p.rows, &s->before);
}

static void sorter_close(sorter *s)
{
    drupe_array *const arrays[] = {&s->keys,        &s->places, &s->next_keys,
                                   &s->next_places, &s->counts, &s->before};
    for (size_t i = 0; i < DRUPE_COUNT_OF(arrays); i++) drupe_array_clear(arrays[i]);
}

static void swap(drupe_array *a, drupe_array *b)
{
    const drupe_array kept = *a;
    *a = *b;
    *b = kept;
}

static drupe_status pass(sorter *s, int shift)
{
    const drupe_array *const counted[] = {&s->counts, &s->keys};
    const drupe_array *const moved[] = {&s->next_keys, &s->next_places, &s->keys, &s->places, &s->before};
    const drupe_scan scan = {.outer = (size_t)s->p.rows,
                             .n = (size_t)s->p.tiles * SORT_DIGITS,
                             .inner = 1,
                             .type = DRUPE_ELEMENT_I32,
                             .initial = true};
    const size_t items = (size_t)(s->p.rows * s->p.tiles) * s->target->group;
    s->p.shift = shift;
    DRUPE_TRY(launch(s, HISTOGRAM, counted, 2, 1, items));
    DRUPE_TRY(drupe_kernel_scan(s->target, &scan, &s->counts, &s->before));
    DRUPE_TRY(launch(s, MOVE, moved, 5, 3, items));
    swap(&s->keys, &s->next_keys);
    swap(&s->places, &s->next_places);
    return DRUPE_OK;
}

/* By one key of the elements, of so many bits. */
static drupe_status sort_by(sorter *s, const drupe_array *in, int part, int bits)
{
    const drupe_array *const arrays[] = {&s->keys, &s->places, in};
    s->p.part = part;
    DRUPE_TRY(launch(s, KEYS, arrays, 3, 3, s->size));
    for (int shift = 0; shift < bits; shift += SORT_DIGIT) DRUPE_TRY(pass(s, shift));
    s->p.placed = 1;
    return DRUPE_OK;
}

static drupe_status sort_places(sorter *s, const drupe_array *in)
{
    const int bits = 8 * (int)drupe_dtype_size(s->dtype);
    if (drupe_dtype_row(s->dtype)->kind != KIND_COMPLEX)
        return sort_by(s, in, 0, s->dtype == DRUPE_BOOL ? SORT_DIGIT : bits);
    DRUPE_TRY(sort_by(s, in, 0, bits / 2));
    DRUPE_TRY(sort_by(s, in, 1, bits / 2));
    return sort_by(s, in, 2, SORT_DIGIT); /* what has no NaN comes first, whatever its numbers */
}

drupe_status drupe_kernel_sort(drupe_target *target, const drupe_sort *sort, const drupe_array *in,
                               const drupe_array *values, const drupe_array *indices)
{
    sorter s = {.target = target, .queue = in->queue, .dtype = in->dtype, .size = sort->rows * sort->n};
    const bool wide = drupe_dtype_size(drupe_dtype_row(in->dtype)->real) == 8;
    s.key = wide ? DRUPE_UINT64 : DRUPE_UINT32;
    s.tile = target->group * (wide ? 4 : 8); /* SORT_EACH of sort_gpu.cl */
    s.p = (drupe_sort_params){.rows = (drupe_i64)sort->rows,
                              .n = (drupe_i64)sort->n,
                              .tiles = (drupe_i64)((sort->n + s.tile - 1) / s.tile),
                              .descending = sort->descending};
    drupe_status status = sorter_open(&s);
    if (status == DRUPE_OK) status = sort_places(&s, in);
    if (status == DRUPE_OK && values) {
        const drupe_array *const arrays[] = {values, &s.places, in};
        status = launch(&s, ELEMENTS, arrays, 3, 1, s.size);
    }
    if (status == DRUPE_OK && indices) {
        const drupe_array *const arrays[] = {indices, &s.places};
        status = launch(&s, PLACES, arrays, 2, 1, s.size);
    }
    sorter_close(&s);
    return status;
}
