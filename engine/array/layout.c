/* Index spaces: broadcasting, merging of axes, overlap.
 *
 * Merging turns most arrays into one or two axes, so that kernels rarely pay for more dimensions than the
 * memory has breaks. */
#include "array/array_room.h"
#include <stdio.h>

size_t drupe_layout_c_order(int ndim, const size_t *shape, ptrdiff_t *strides)
{
    size_t size = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = (ptrdiff_t)size;
        size *= shape[d];
    }
    return size;
}

ptrdiff_t drupe_layout_stride(const drupe_array *array, int ndim, int axis)
{
    const int own = axis - (ndim - array->ndim);
    return own < 0 || array->shape[own] == 1 ? 0 : array->strides[own];
}

bool drupe_layout_same_shape(const drupe_array *a, const drupe_array *b)
{
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

bool drupe_layout_same_view(const drupe_array *a, const drupe_array *b)
{
    if (a->memory != b->memory || a->offset != b->offset ||
        drupe_dtype_size(a->dtype) != drupe_dtype_size(b->dtype))
        return false;
    if (!drupe_layout_same_shape(a, b)) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] > 1 && a->strides[d] != b->strides[d]) return false;
    return true;
}

/* The bytes [*from, *to) that the elements of a non-empty array lie within. */
static void byte_range(const drupe_array *a, ptrdiff_t *from, ptrdiff_t *to)
{
    ptrdiff_t low = (ptrdiff_t)a->offset, high = low;
    for (int d = 0; d < a->ndim; d++) {
        const ptrdiff_t reach = ((ptrdiff_t)a->shape[d] - 1) * a->strides[d];
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    const ptrdiff_t size = (ptrdiff_t)drupe_dtype_size(a->dtype);
    *from = low * size;
    *to = (high + 1) * size;
}

drupe_access drupe_layout_access(const drupe_array *array, bool writes)
{
    ptrdiff_t from, to;
    byte_range(array, &from, &to);
    const char *base = drupe_memory_pointer(array->memory);
    return (drupe_access){base + from, (size_t)(to - from), writes};
}

/* By addresses, since memory that was borrowed in several pieces may have bytes in common. */
bool drupe_layout_overlap(const drupe_array *a, const drupe_array *b)
{
    ptrdiff_t a_from, a_to, b_from, b_to;
    if ((a->memory != b->memory && a->queue != b->queue) || a->size == 0 || b->size == 0) return false;
    byte_range(a, &a_from, &a_to);
    byte_range(b, &b_from, &b_to);
    const uintptr_t a_base = (uintptr_t)drupe_memory_pointer(a->memory);
    const uintptr_t b_base = (uintptr_t)drupe_memory_pointer(b->memory);
    return a_base + (uintptr_t)a_from < b_base + (uintptr_t)b_to &&
           b_base + (uintptr_t)b_from < a_base + (uintptr_t)a_to;
}

drupe_status drupe_layout_writable(const drupe_array *out)
{
    for (int d = 0; d < out->ndim; d++)
        if (out->shape[d] > 1 && out->strides[d] == 0 && out->size)
            return drupe_error_set(
                DRUPE_E_INVALID,
                "a broadcast view cannot be written to, since several of its elements are one "
                "in memory: copy it first");
    return DRUPE_OK;
}

static void drop_axis(drupe_layout *l, int axis)
{
    for (int d = axis; d + 1 < l->ndim; d++) {
        l->shape[d] = l->shape[d + 1];
        for (int k = 0; k < l->noperands; k++) l->strides[k][d] = l->strides[k][d + 1];
    }
    l->ndim--;
}

static void flip_axis(drupe_layout *l, int axis)
{
    for (int k = 0; k < l->noperands; k++) {
        l->offsets[k] += ((ptrdiff_t)l->shape[axis] - 1) * l->strides[k][axis];
        l->strides[k][axis] = -l->strides[k][axis];
    }
}

static void swap_axes(drupe_layout *l, int a, int b)
{
    const size_t length = l->shape[a];
    l->shape[a] = l->shape[b];
    l->shape[b] = length;
    for (int k = 0; k < l->noperands; k++) {
        const ptrdiff_t stride = l->strides[k][a];
        l->strides[k][a] = l->strides[k][b];
        l->strides[k][b] = stride;
    }
}

/* Whether axis `d` continues where axis d + 1 ends, for every operand. */
static bool mergeable(const drupe_layout *l, int d)
{
    for (int k = 0; k < l->noperands; k++)
        if (l->strides[k][d] != l->strides[k][d + 1] * (ptrdiff_t)l->shape[d + 1]) return false;
    return true;
}

void drupe_layout_merge(drupe_layout *l)
{
    for (int d = l->ndim - 2; d >= 0; d--) {
        if (!mergeable(l, d)) continue;
        l->shape[d + 1] *= l->shape[d];
        drop_axis(l, d);
    }
}

void drupe_layout_simplify(drupe_layout *l)
{
    for (int d = l->ndim - 1; d >= 0; d--)
        if (l->shape[d] == 1) drop_axis(l, d);
    for (int d = 0; d < l->ndim; d++)
        if (l->strides[0][d] < 0) flip_axis(l, d);
    for (int d = 1; d < l->ndim; d++)
        for (int e = d; e > 0 && l->strides[0][e - 1] < l->strides[0][e]; e--) swap_axes(l, e - 1, e);
    drupe_layout_merge(l);
}

const char *drupe_shape_text(int ndim, const size_t *shape, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int d = 0; d < ndim && used + 1 < size; d++) {
        const int n = snprintf(text + used, size - used, "%s%zu", d ? ", " : "(", shape[d]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used + 1 < size) snprintf(text + used, size - used, "%s", ndim == 0 ? "()" : ndim == 1 ? ",)" : ")");
    return text;
}

static drupe_status shapes_clash(const drupe_array *a, const drupe_array *b)
{
    char first[128], second[128];
    return drupe_error_set(
        DRUPE_E_INVALID,
        "operands of shapes %s and %s do not broadcast together: counted from the last axis, "
        "lengths must be equal or 1",
        drupe_shape_text(a->ndim, a->shape, first, sizeof(first)),
        drupe_shape_text(b->ndim, b->shape, second, sizeof(second)));
}

drupe_status drupe_shape_broadcast(const drupe_array *const *arrays, size_t count, int *ndim,
                                   size_t shape[DRUPE_MAX_DIMS])
{
    *ndim = 0;
    for (size_t i = 0; i < count; i++)
        if (arrays[i]->ndim > *ndim) *ndim = arrays[i]->ndim;
    for (int d = 0; d < *ndim; d++) {
        size_t setter = 0;
        shape[d] = 1;
        for (size_t i = 0; i < count; i++) {
            const int own = d - (*ndim - arrays[i]->ndim);
            if (own < 0 || arrays[i]->shape[own] == 1 || arrays[i]->shape[own] == shape[d]) continue;
            if (shape[d] != 1) return shapes_clash(arrays[setter], arrays[i]);
            shape[d] = arrays[i]->shape[own];
            setter = i;
        }
    }
    return DRUPE_OK;
}
