#include "array_fixture.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

drupe_queue *queues[2];
size_t queue_count;

int queues_open(void **state)
{
    static const char *const filters[] = {"host", "opencl:cpu"};
    /* A filter: to run again what concerns one backend only, or on a GPU. */
    const char *only = getenv("DRUPE_ARRAY_TEST_DEVICE");
    (void)state;
    setenv("DRUPE_CACHE", "0", 0); /* what is tested is built */
    drupe_array_eager(1);          /* tests look at memory themselves */
    for (size_t i = 0; i < 2; i++) {
        drupe_device *device = NULL;
        if (only && i > 0) break;
        if (drupe_device_select(only ? only : filters[i], &device) != DRUPE_OK) continue;
        if (drupe_device_queue(device, &queues[queue_count]) == DRUPE_OK) queue_count++;
        drupe_device_release(device);
    }
    if (queue_count == 0) return -1;
    print_message("on %zu devices\n", queue_count);
    return 0;
}

int queues_close(void **state)
{
    (void)state;
    drupe_array_eager(-1);
    for (size_t i = 0; i < queue_count; i++) {
        if (drupe_queue_wait(queues[i], DRUPE_FOREVER) != DRUPE_OK) return -1;
        drupe_queue_release(queues[i]);
    }
    queue_count = 0;
    drupe_array_forget();
    const size_t left = drupe_library_close(DRUPE_FOREVER);
    if (left) print_error("%zu objects are left\n", left);
    return left ? -1 : 0;
}

bool queue_is_host(const drupe_queue *queue)
{
    return strcmp(drupe_device_backend(drupe_queue_device(queue)), "host") == 0;
}

/* --- Samples -------------------------------------------------------------------------------------------- */

static number sample_number(drupe_dtype dtype, unsigned k, bool special)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 1e30, -1e-30};
    const int64_t small = (int64_t)(k * 2654435761u >> 16) % 15 - 7;
    const char kind = drupe_dtype_kind(dtype);
    const double scale = special ? 0.75 : 1;
    if (special && k % 7 == 3 && kind == 'f')
        return number_cast((number){.dtype = DRUPE_FLOAT64, .f = odd[k / 7 % 6]}, dtype);
    if (special && k % 11 == 5 && (kind == 'i' || kind == 'u'))
        return number_identity(k % 2 ? DRUPE_OP_MAX : DRUPE_OP_MIN, dtype);
    if (kind == 'c')
        return number_cast((number){.dtype = DRUPE_COMPLEX128,
                                    .f = (double)small * scale,
                                    .im = (double)(int)(k % 5) * scale - 1.5},
                           dtype);
    if (kind == 'f') return number_cast((number){.dtype = DRUPE_FLOAT64, .f = (double)small * scale}, dtype);
    const int64_t whole = kind == 'b' ? small & 1 : kind == 'u' ? small + 7 : small;
    return number_cast((number){.dtype = DRUPE_INT64, .i = whole}, dtype);
}

/* The shape in memory, of which the sample is a view. */
static int base_shape(sample_layout layout, int ndim, const size_t *shape, size_t *base)
{
    for (int d = 0; d < ndim; d++) base[d] = layout == TRANSPOSED ? shape[ndim - 1 - d] : shape[d];
    if (layout == ZERO_D) return 0;
    if (ndim == 0) return 0;
    if (layout == STRIDED) base[ndim - 1] = 2 * shape[ndim - 1];
    if (layout == BROADCAST) base[ndim - 1] = 1;
    if (layout == ROW) {
        base[0] = shape[ndim - 1];
        return 1;
    }
    return ndim;
}

static void view_sample(sample_layout layout, drupe_array *array)
{
    drupe_slice slices[DRUPE_MAX_DIMS];
    for (int d = 0; d < array->ndim; d++) {
        const ptrdiff_t length = (ptrdiff_t)array->shape[d];
        slices[d] = (drupe_slice){0, 1, array->shape[d], false};
        if (layout == NEGATIVE) slices[d] = (drupe_slice){length - 1, -1, array->shape[d], false};
        if (layout == STRIDED && d == array->ndim - 1)
            slices[d] = (drupe_slice){1, 2, array->shape[d] / 2, false};
    }
    if (layout == NEGATIVE || layout == STRIDED) CHECK(drupe_array_slice(array, slices));
    if (layout == TRANSPOSED) CHECK(drupe_array_permute(array, NULL));
}

void sample_make(drupe_queue *queue, drupe_dtype dtype, sample_layout layout, int ndim, const size_t *shape,
                 unsigned seed, bool special, sample *s)
{
    size_t base[DRUPE_MAX_DIMS];
    const int base_ndim = base_shape(layout, ndim, shape, base);
    const size_t size = drupe_dtype_size(dtype);
    memset(s, 0, sizeof(*s));
    CHECK(drupe_array_empty(queue, DRUPE_MEM_DEVICE, dtype, base_ndim, base, &s->array));
    s->base = malloc(s->array.size * size + 1);
    assert_non_null(s->base);
    for (size_t k = 0; k < s->array.size; k++)
        number_store(s->base + k * size, sample_number(dtype, (unsigned)k + seed, special));
    CHECK(drupe_array_from_host(&s->array, s->base, false, NULL));
    view_sample(layout, &s->array);
}

void sample_clear(sample *s)
{
    CHECK(drupe_queue_wait(s->array.queue, DRUPE_FOREVER));
    drupe_array_clear(&s->array);
    free(s->base);
}

number sample_at(const sample *s, int ndim, const size_t *index)
{
    const drupe_array *a = &s->array;
    ptrdiff_t at = (ptrdiff_t)a->offset;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != 1) at += (ptrdiff_t)index[ndim - a->ndim + d] * a->strides[d];
    return number_load(s->base + at * (ptrdiff_t)drupe_dtype_size(a->dtype), a->dtype);
}

void *array_fetch(const drupe_array *array)
{
    drupe_event *event = NULL;
    void *bytes = malloc(array->size * drupe_dtype_size(array->dtype) + 1);
    assert_non_null(bytes);
    CHECK(drupe_array_to_host(array, bytes, NULL, &event));
    CHECK(drupe_event_wait(event, DRUPE_FOREVER));
    drupe_event_release(event);
    return bytes;
}

bool index_next(int ndim, const size_t *shape, size_t *index)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++index[d] < shape[d]) return true;
        index[d] = 0;
    }
    return false;
}
