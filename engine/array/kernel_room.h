/* What the loops of the host are replaced by on GPUs: kernel_index.c, kernel_mask.c, kernel_order.c. Arrays
 * are those that the loops would get; results exist. Statuses as in drupe/status.h. */
#ifndef DRUPE_KERNEL_ROOM_H
#define DRUPE_KERNEL_ROOM_H

#include "array/array_room.h"
#include "drupe/array_order.h"
#include "math/argreduce.h"
#include "math/gather.h"
#include "math/scan.h"
#include "math/search.h"
#include "math/sort.h"

/* Whether there are kernels for this space, which is prepared: one index array, or two to be folded. */
bool drupe_kernel_indexes(const drupe_target *target, const drupe_gather *g);
/* An index that is out of bounds fails the queue as the host's function does; a scatter writes nothing then.
 */
drupe_status drupe_kernel_gather(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                                 const drupe_array *from, const drupe_array *index);
drupe_status drupe_kernel_scatter(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                                  const drupe_array *from, const drupe_array *index);
drupe_status drupe_kernel_fold(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                               const drupe_array *first, const drupe_array *second);
/* A scatter to positions of which no two are the same; nothing unless the first word of `report` is `wanted`.
 */
drupe_status drupe_kernel_scatter_known(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                                        const drupe_array *from, const drupe_array *index,
                                        const drupe_array *report, size_t wanted);

/* As in math/compact.h. */
drupe_status drupe_kernel_mask_count(drupe_target *target, const drupe_array *mask,
                                     const drupe_array *counts);
drupe_status drupe_kernel_mask_positions(drupe_target *target, const drupe_array *mask, int ndim,
                                         const size_t *shape, const drupe_array *counts,
                                         const drupe_array *to);
drupe_status drupe_kernel_mask_compact(drupe_target *target, const drupe_array *mask,
                                       const drupe_array *counts, const drupe_array *from,
                                       const drupe_array *to);
/* DRUPE_E_INVALID, late, unless there is a row of `from` for each true element. */
drupe_status drupe_kernel_mask_expand(drupe_target *target, const drupe_array *mask, const drupe_array *from,
                                      size_t values, const drupe_array *to);

/* index_mask.c: the error of an assignment of so many values to `count` true elements. */
drupe_status drupe_mask_mismatch(size_t values, size_t count);

drupe_status drupe_kernel_scan(drupe_target *target, const drupe_scan *scan, const drupe_array *in,
                               const drupe_array *out);
drupe_status drupe_kernel_argreduce(drupe_target *target, const drupe_argreduce *work, const drupe_array *in,
                                    const drupe_array *out);
drupe_status drupe_kernel_search(drupe_target *target, const drupe_search *search, const drupe_array *sorted,
                                 const drupe_array *values, const drupe_array *out);
/* Of the members up to `count`; the rest is filled in. `out` is C-contiguous, all in type `dtype`. */
drupe_status drupe_kernel_product(drupe_target *target, drupe_dtype dtype,
                                  const drupe_product_params *product, const drupe_array *a,
                                  const drupe_array *b, const drupe_array *out);
/* A result of bools takes whether each value is in the set, which is sorted first. */
drupe_status drupe_kernel_isin(drupe_target *target, const drupe_search *search, const drupe_array *set,
                               const drupe_array *values, const drupe_array *out);
/* `values`, `indices`: each may be NULL. */
bool drupe_kernel_sorts(const drupe_target *target, const drupe_sort *sort);
drupe_status drupe_kernel_sort(drupe_target *target, const drupe_sort *sort, const drupe_array *in,
                               const drupe_array *values, const drupe_array *indices);
/* Of a contiguous array that may be sorted so. */
drupe_status drupe_kernel_unique(drupe_target *target, const drupe_array *in, bool equal_nan,
                                 const drupe_distinct *out);

/* A product's group has the square of so many work-items: 16, or 8 where the target's groups have 64 to 255;
 * the kernels take no smaller ones. */
#define DRUPE_PRODUCT_LEAST 64
static inline size_t drupe_product_side(const drupe_target *target)
{
    return target->group >= 256 ? 16 : 8;
}

#endif
