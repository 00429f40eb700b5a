/* Indexing by arrays of integers.
 *
 * The indexed array goes to the host's function as the stretch of memory that its elements lie in, so that
 * views are neither copied nor, when they are written, copied back. Indices become int64 on the device first,
 * which leaves one loop for all of their types. */
#include "array/index_room.h"
#include "array/kernel_room.h"
#include "array/loop.h"
#include "math/gather.h"
#include <stddef.h>
#include <string.h>

static drupe_status run_gather(void *const *pointers, const void *params)
{
    return drupe_gather_run(params, pointers[1], (const int64_t *const *)(pointers + 2), pointers[0]);
}

static drupe_status run_scatter(void *const *pointers, const void *params)
{
    return drupe_scatter_run(params, pointers[0], (const int64_t *const *)(pointers + 2), pointers[1]);
}

static drupe_status run_fold(void *const *pointers, const void *params)
{
    return drupe_gather_fold(params, (const int64_t *const *)(pointers + 1), pointers[0]);
}

/* An index space with what belongs to it. */
typedef struct job {
    drupe_gather g;
    drupe_array span; /* of the indexed array, where that is not empty */
    int ndim, count;  /* of the space; of packs */
    size_t size;
    size_t shape[DRUPE_MAX_DIMS]; /* of the space */
    index_pack packs[DRUPE_MAX_DIMS];
} job;

/* A job on x that has no index arrays yet. Packs are many bytes, most of which nobody needs. */
static void job_open(job *j, const drupe_array *x)
{
    memset(j, 0, offsetof(job, packs));
    j->g.element = drupe_dtype_size(x->dtype);
    if (x->size) drupe_index_span(x, &j->span, &j->g.base);
}

/* --- Index arrays --------------------------------------------------------------------------------------- */

static drupe_status check_index(const drupe_array *x, const drupe_array *index)
{
    const dtype_row *row = drupe_dtype_row(index->dtype);
    DRUPE_TRY(drupe_array_same_queue("an array and what indexes it", x, index));
    if (row->kind != KIND_BOOL && row->kind < KIND_FLOAT) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID,
                           "indices are integers, and this array holds %s: convert it with astype(int64)",
                           row->name);
}

/* One more index array, for axis `axis` of x. */
static drupe_status job_add(job *j, const drupe_array *x, const drupe_array *index, int axis, int named,
                            drupe_index_mode mode)
{
    index_pack *pack = &j->packs[j->count];
    DRUPE_TRY(check_index(x, index));
    DRUPE_TRY(drupe_index_apart(index, DRUPE_INT64, x, &pack->array));
    pack->length = (int64_t)x->shape[axis];
    pack->step = x->strides[axis];
    pack->named = named;
    j->g.mode = mode;
    j->count++;
    return DRUPE_OK;
}

/* DRUPE_E_OUT_OF_RANGE for points along an axis that has no elements; one number is a point whatever the
 * others are, as it is for NumPy. */
static drupe_status packs_check(const index_pack *packs, int count, int ndim, const size_t *points)
{
    bool none = false;
    for (int d = 0; d < ndim; d++) none = none || points[d] == 0;
    for (int k = 0; k < count; k++)
        if (packs[k].length == 0 && (!none || packs[k].array.ndim == 0))
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                                   "axis %d has no elements, so that every index is out of bounds for it",
                                   packs[k].named);
    return DRUPE_OK;
}

/* Give the packs from `first` on to the function's parameters; the axes of their common shape begin at
 * `begin` among those of the index space and are `ndim` axes. */
static void packs_place(const index_pack *packs, int count, int begin, int ndim, drupe_gather *g)
{
    g->arrays = count;
    for (int k = 0; k < count; k++) {
        g->length[k] = packs[k].length;
        g->step[k] = packs[k].step;
        g->axis[k] = packs[k].named;
        for (int d = 0; d < ndim; d++) g->index[k][begin + d] = drupe_layout_stride(&packs[k].array, ndim, d);
    }
}

static drupe_status packs_broadcast(const index_pack *packs, int count, int *ndim,
                                    size_t shape[DRUPE_MAX_DIMS])
{
    const drupe_array *arrays[DRUPE_MAX_DIMS];
    for (int k = 0; k < count; k++) arrays[k] = &packs[k].array;
    if (drupe_shape_broadcast(arrays, (size_t)count, ndim, shape) == DRUPE_OK) return DRUPE_OK;
    const drupe_error why = *drupe_error_last();
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "index arrays that pick together have one shape: %s",
                           why.text);
}

/* A function over arrays[0], which it writes, and others, which it reads; if `keeps`, over the first one's
 * elements too. */
static drupe_status gather_call(const char *label, drupe_call_fn fn, const drupe_gather *g,
                                const drupe_array *const *arrays, size_t count, bool keeps)
{
    const drupe_call call = {.label = label,
                             .fn = fn,
                             .params = g,
                             .params_size = sizeof *g,
                             .arrays = arrays,
                             .count = count,
                             .checks_first = keeps,
                             .reads = keeps ? ~UINT32_C(0) : ~UINT32_C(1),
                             .writes = 1};
    return drupe_array_call(&call);
}

/* Replace the first packs by one that holds positions in the array's memory, until few enough are left. */
static drupe_status packs_fold(job *j)
{
    drupe_target *target;
    DRUPE_TRY(drupe_target_get(j->packs[0].array.queue, &target));
    const bool remote = drupe_target_remote(target); /* its kernels take one index array, and fold two */
    const int most = remote ? 1 : DRUPE_GATHER_ARRAYS, together = remote ? 2 : DRUPE_GATHER_ARRAYS;
    while (j->count > most) {
        drupe_gather g = {.base = j->g.base, .mode = j->g.mode, .element = 8};
        size_t shape[DRUPE_MAX_DIMS];
        /* Without elements nothing will be picked, wherever the indices lead. */
        index_pack folded = {.length = j->span.size ? (int64_t)j->span.size : INT64_MAX, .step = 1};
        DRUPE_TRY(packs_broadcast(j->packs, together, &g.ndim, shape));
        DRUPE_TRY(drupe_array_result(j->packs[0].array.queue, DRUPE_MEM_DEVICE, DRUPE_INT64, g.ndim, shape,
                                     &folded.array));
        packs_place(j->packs, together, 0, g.ndim, &g);
        memcpy(g.shape, shape, sizeof(shape));
        memcpy(g.other, folded.array.strides, sizeof(g.other));
        const drupe_array *arrays[DRUPE_GATHER_ARRAYS + 1] = {&folded.array};
        for (int k = 0; k < together; k++) arrays[k + 1] = &j->packs[k].array;
        drupe_gather_prepare(&g);
        drupe_status status = DRUPE_OK;
        if (folded.array.size && remote && drupe_kernel_indexes(target, &g))
            status = drupe_kernel_fold(target, &g, arrays[0], arrays[1], arrays[2]);
        else if (folded.array.size)
            status = gather_call("indices", run_fold, &g, arrays, (size_t)together + 1, false);
        if (status != DRUPE_OK) {
            drupe_array_clear(&folded.array);
            return status;
        }
        for (int k = 0; k < together; k++) drupe_array_clear(&j->packs[k].array);
        j->count -= together - 1;
        j->packs[0] = folded;
        memmove(j->packs + 1, j->packs + together, (size_t)(j->count - 1) * sizeof(*j->packs));
        j->g.base = 0;
    }
    return DRUPE_OK;
}

/* --- Index spaces --------------------------------------------------------------------------------------- */

static drupe_status axis_add(job *j, size_t length, ptrdiff_t at)
{
    if (j->ndim == DRUPE_MAX_DIMS)
        return drupe_error_set(DRUPE_E_INVALID, "an array has at most %d dimensions", DRUPE_MAX_DIMS);
    j->shape[j->ndim] = length;
    j->g.at[j->ndim++] = at;
    return DRUPE_OK;
}

/* Axes `from` to before `to` of those of x that are not indexed. */
static drupe_status rest_add(job *j, const drupe_array *x, const bool *indexed, int from, int to)
{
    for (int d = 0, number = 0; d < x->ndim; d++) {
        if (indexed[d]) continue;
        if (number >= from && number < to) DRUPE_TRY(axis_add(j, x->shape[d], x->strides[d]));
        number++;
    }
    return DRUPE_OK;
}

static void job_close(job *j)
{
    j->size = 1;
    for (int d = 0; d < j->ndim; d++) j->size *= j->shape[d];
    j->g.ndim = j->ndim;
    memcpy(j->g.shape, j->shape, sizeof(j->shape));
}

static drupe_status job_of_selection(job *j, const drupe_array *x, const drupe_selection *selection)
{
    bool indexed[DRUPE_MAX_DIMS] = {false};
    size_t points[DRUPE_MAX_DIMS];
    int npoints = 0;
    job_open(j, x);
    for (size_t k = 0; k < selection->count; k++) {
        const drupe_index *index = &selection->indices[k];
        indexed[index->axis] = true;
        DRUPE_TRY(job_add(j, x, index->array, index->axis, index->named, selection->mode));
    }
    DRUPE_TRY(packs_broadcast(j->packs, j->count, &npoints, points));
    DRUPE_TRY(packs_check(j->packs, j->count, npoints, points));
    DRUPE_TRY(packs_fold(j));
    DRUPE_TRY(rest_add(j, x, indexed, 0, selection->place));
    const int begin = j->ndim;
    for (int d = 0; d < npoints; d++) DRUPE_TRY(axis_add(j, points[d], 0));
    DRUPE_TRY(rest_add(j, x, indexed, selection->place, DRUPE_MAX_DIMS));
    packs_place(j->packs, j->count, begin, npoints, &j->g);
    job_close(j);
    return DRUPE_OK;
}

static drupe_status along_clash(const drupe_array *x, const drupe_array *indices)
{
    char first[128], second[128];
    return drupe_error_set(DRUPE_E_INVALID,
                           "an array of shape %s and its indices of shape %s must have the same number of "
                           "dimensions, and lengths that are equal or 1 beside the indexed axis",
                           drupe_shape_text(x->ndim, x->shape, first, sizeof(first)),
                           drupe_shape_text(indices->ndim, indices->shape, second, sizeof(second)));
}

static drupe_status job_along(job *j, const drupe_array *x, const drupe_array *indices, int axis,
                              drupe_index_mode mode)
{
    job_open(j, x);
    if (x->ndim != indices->ndim) return along_clash(x, indices);
    DRUPE_TRY(job_add(j, x, indices, axis, axis, mode));
    for (int d = 0; d < x->ndim; d++) {
        const size_t own = x->shape[d], other = indices->shape[d];
        if (d != axis && own != other && own != 1 && other != 1) return along_clash(x, indices);
        const bool by_index = d == axis || own == 1;
        DRUPE_TRY(axis_add(j, by_index ? other : own, by_index ? 0 : x->strides[d]));
    }
    packs_place(j->packs, 1, 0, j->ndim, &j->g);
    job_close(j);
    return packs_check(j->packs, 1, j->ndim, j->shape);
}

/* --- The work ------------------------------------------------------------------------------------------- */

/* `first` is written, `second` read. */
static drupe_status job_submit(job *j, const char *label, drupe_call_fn fn, const drupe_array *first,
                               bool keeps, const drupe_array *second)
{
    const drupe_array *arrays[DRUPE_GATHER_ARRAYS + 2] = {first, second};
    for (int k = 0; k < j->count; k++) arrays[k + 2] = &j->packs[k].array;
    drupe_target *target;
    drupe_gather_prepare(&j->g);
    DRUPE_TRY(drupe_target_get(first->queue, &target));
    if (drupe_kernel_indexes(target, &j->g))
        return keeps ? drupe_kernel_scatter(target, &j->g, first, second, &j->packs[0].array)
                     : drupe_kernel_gather(target, &j->g, first, second, &j->packs[0].array);
    return gather_call(label, fn, &j->g, arrays, (size_t)j->count + 2, keeps);
}

static drupe_status gather(job *j, const drupe_array *x, drupe_array *out)
{
    DRUPE_TRY(drupe_array_result_beside(x, x->dtype, j->ndim, j->shape, out));
    if (out->size == 0) return DRUPE_OK;
    memcpy(j->g.other, out->strides, sizeof(j->g.other));
    drupe_status status = job_submit(j, "take", run_gather, out, false, &j->span);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}

static drupe_status scatter(job *j, const drupe_array *x, const drupe_operand *value)
{
    drupe_array packed = {0}, view = {0};
    DRUPE_TRY(drupe_layout_writable(x));
    if (value->array) {
        drupe_array_view(value->array, &view);
        drupe_index_drop_leading(&view, j->ndim);
        drupe_status status = drupe_array_broadcast(&view, j->ndim, j->shape);
        drupe_array_clear(&view);
        DRUPE_TRY(status);
    }
    if (j->size == 0) return DRUPE_OK;
    DRUPE_TRY(drupe_index_value(value, x, &packed));
    drupe_array_view(&packed, &view);
    drupe_index_drop_leading(&view, j->ndim);
    for (int d = 0; d < j->ndim; d++) j->g.other[d] = drupe_layout_stride(&view, j->ndim, d);
    drupe_status status = job_submit(j, "put", run_scatter, &j->span, true, &packed);
    drupe_array_clear(&view);
    drupe_array_clear(&packed);
    return status;
}

/* Read into `out`, or write `value`, if the job was made; in any case it is over. */
static drupe_status job_end(job *j, drupe_status made, const drupe_array *x, const drupe_operand *value,
                            drupe_array *out)
{
    if (made == DRUPE_OK) made = value ? scatter(j, x, value) : gather(j, x, out);
    for (int k = 0; k < j->count; k++) drupe_array_clear(&j->packs[k].array);
    drupe_array_clear(&j->span);
    return made;
}

drupe_status drupe_array_gather(const drupe_array *x, const drupe_selection *selection, drupe_array *out)
{
    job j;
    return job_end(&j, job_of_selection(&j, x, selection), x, NULL, out);
}

drupe_status drupe_array_scatter(const drupe_array *x, const drupe_selection *selection,
                                 const drupe_operand *value)
{
    job j;
    return job_end(&j, job_of_selection(&j, x, selection), x, value, NULL);
}

drupe_status drupe_array_gather_along(const drupe_array *x, const drupe_array *indices, int axis,
                                      drupe_index_mode mode, drupe_array *out)
{
    job j;
    return job_end(&j, job_along(&j, x, indices, axis, mode), x, NULL, out);
}

drupe_status drupe_array_scatter_along(const drupe_array *x, const drupe_array *indices, int axis,
                                       const drupe_operand *value)
{
    job j;
    drupe_status status = job_along(&j, x, indices, axis, DRUPE_INDEX_RAISE);
    for (int d = 0; status == DRUPE_OK && d < x->ndim; d++)
        if (d != axis && j.shape[d] != x->shape[d]) status = along_clash(x, indices);
    return job_end(&j, status, x, value, NULL);
}
