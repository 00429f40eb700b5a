/* Strided arrays on a device, and the operations on them.
 *
 * An array is a view: an allocation, an offset, a shape and strides (in elements), and the queue its work
 * goes to. Work is queued and nothing waits except drupe_array_to_host(). All operands of one operation share
 * one queue, where the work of arrays runs in order (on an out-of-order queue too: drupe_submission.ordered),
 * so no events are needed.
 *
 * Source of the promotion rules: Python array API standard 2025.12, "Type Promotion Rules", with Python
 * scalars as weakly typed operands.
 *
 * Threads: an array descriptor is the caller's to serialise; the functions may be called from any thread. */
#ifndef DRUPE_ARRAY_H
#define DRUPE_ARRAY_H

#include "drupe/memory.h"
#include <string.h>

#define DRUPE_MAX_DIMS 32

/* In order of promotion within a kind; generated tables index by these values. */
typedef enum drupe_dtype {
    DRUPE_BOOL, /* one byte, 0 or 1 */
    DRUPE_INT8,
    DRUPE_UINT8,
    DRUPE_INT16,
    DRUPE_UINT16,
    DRUPE_INT32,
    DRUPE_UINT32,
    DRUPE_INT64,
    DRUPE_UINT64,
    DRUPE_FLOAT16, /* two bytes; computed in float32 */
    DRUPE_FLOAT32,
    DRUPE_FLOAT64,
    DRUPE_COMPLEX64, /* two floats: real and imaginary part */
    DRUPE_COMPLEX128,
    DRUPE_DTYPE_COUNT,
    DRUPE_DTYPE_NONE = -1
} drupe_dtype;

DRUPE_API size_t drupe_dtype_size(drupe_dtype dtype);
DRUPE_API const char *drupe_dtype_name(drupe_dtype dtype); /* "bool", "int32", ...; static */
DRUPE_API drupe_dtype drupe_dtype_find(const char *name);  /* by name or NumPy type string "<f4"; NONE */
/* 'b', 'i', 'u', 'f' or 'c', as NumPy has it. */
DRUPE_API char drupe_dtype_kind(drupe_dtype dtype);
/* The type of the real part of a complex type; others are their own. */
DRUPE_API drupe_dtype drupe_dtype_real(drupe_dtype dtype);
/* The common type of two; never fails among the types above. */
DRUPE_API drupe_dtype drupe_dtype_promote(drupe_dtype a, drupe_dtype b);

/* Zeroed = empty: drupe_array_clear() of a zeroed or cleared array does nothing. */
typedef struct drupe_array {
    drupe_memory *memory;    /* retained; NULL while it is pending */
    struct drupe_node *node; /* retained; NULL unless it is pending: see drupe/array_pending.h */
    drupe_queue *queue;      /* retained */
    drupe_dtype dtype;
    int ndim;
    size_t offset; /* elements from the allocation's start to element [0, ..., 0] */
    size_t size;   /* product of shape */
    size_t shape[DRUPE_MAX_DIMS];
    ptrdiff_t strides[DRUPE_MAX_DIMS]; /* elements, may be 0 or negative */
} drupe_array;

/* Make it no array. The axes are left alone, since clearing them takes longer than many an operation. */
static inline void drupe_array_none(drupe_array *array)
{
    memset(array, 0, offsetof(drupe_array, shape));
}

/* A Python scalar: weakly typed. */
typedef struct drupe_scalar {
    enum {
        DRUPE_SCALAR_KIND_BOOL,
        DRUPE_SCALAR_KIND_INT,
        DRUPE_SCALAR_KIND_FLOAT,
        DRUPE_SCALAR_KIND_COMPLEX
    } kind;
    int64_t i; /* BOOL and INT */
    double f;  /* FLOAT; the real part of COMPLEX */
    double im; /* COMPLEX */
    bool big;  /* INT: `i` is the bits of a uint64_t above INT64_MAX */
} drupe_scalar;
/* Its value as an element: drupe_dtype_size(dtype) bytes. Floats are cut to integers as C does it.
 * DRUPE_E_OUT_OF_RANGE when an integer type cannot hold it, DRUPE_E_INVALID for a complex number that is to
 * become a real one. */
DRUPE_API drupe_status drupe_scalar_bytes(const drupe_scalar *scalar, drupe_dtype dtype,
                                          void *bytes) DRUPE_MUST_CHECK;
/* The element at `bytes`. */
DRUPE_API void drupe_scalar_load(const void *bytes, drupe_dtype dtype, drupe_scalar *scalar);

/* One operand: an array (borrowed), or a scalar when array is NULL. */
typedef struct drupe_operand {
    const drupe_array *array;
    drupe_scalar scalar;
} drupe_operand;

/* --- Making -------------------------------------------------------------------------------------------- */

/* A new C-contiguous array with undefined content. `array` must be empty. */
DRUPE_API drupe_status drupe_array_empty(drupe_queue *queue, drupe_mem_kind kind, drupe_dtype dtype, int ndim,
                                         const size_t *shape, drupe_array *array) DRUPE_MUST_CHECK;
/* The same for the result of work: the caller's next call that has to do with it submits, on `queue`, what
 * writes all of it; see drupe_memory_alloc_result(). */
DRUPE_API drupe_status drupe_array_result(drupe_queue *queue, drupe_mem_kind kind, drupe_dtype dtype,
                                          int ndim, const size_t *shape, drupe_array *array) DRUPE_MUST_CHECK;
/* A view of existing memory; strides NULL = C order. Every element is checked to lie inside. */
DRUPE_API drupe_status drupe_array_over(drupe_memory *memory, drupe_queue *queue, drupe_dtype dtype, int ndim,
                                        const size_t *shape, const ptrdiff_t *strides, size_t offset,
                                        drupe_array *array) DRUPE_MUST_CHECK;
/* Another view of the same elements. `copy` must be empty. */
DRUPE_API void drupe_array_view(const drupe_array *array, drupe_array *copy);
DRUPE_API void drupe_array_clear(drupe_array *array);

DRUPE_API bool drupe_array_contiguous(const drupe_array *array); /* in C order */
/* The address of element [0, ..., 0]. */
DRUPE_API void *drupe_array_pointer(const drupe_array *array);
/* Whether the host can read and write the elements where they are, once the work on them is over: those in
 * shared and host memory, and all on CPUs. */
DRUPE_API bool drupe_array_host_reaches(const drupe_array *array);

/* --- Views: all in place on a view made by drupe_array_view(); none touches elements ----------------------
 */

/* One axis: [start : start + count*step : step], already clipped by the caller; `drop` removes the axis. */
typedef struct drupe_slice {
    ptrdiff_t start, step;
    size_t count;
    bool drop;
} drupe_slice;
/* One entry per axis. */
DRUPE_API drupe_status drupe_array_slice(drupe_array *array, const drupe_slice *slices) DRUPE_MUST_CHECK;
DRUPE_API drupe_status drupe_array_insert_axis(drupe_array *array, int axis) DRUPE_MUST_CHECK;
/* axes NULL = reversed. */
DRUPE_API drupe_status drupe_array_permute(drupe_array *array, const int *axes) DRUPE_MUST_CHECK;
/* DRUPE_E_INVALID when the sizes differ, DRUPE_E_UNSUPPORTED when a copy would be needed. */
DRUPE_API drupe_status drupe_array_reshape(drupe_array *array, int ndim,
                                           const size_t *shape) DRUPE_MUST_CHECK;
DRUPE_API drupe_status drupe_array_broadcast(drupe_array *array, int ndim,
                                             const size_t *shape) DRUPE_MUST_CHECK;
/* The common shape of several; DRUPE_E_INVALID names the two that clash. */
DRUPE_API drupe_status drupe_shape_broadcast(const drupe_array *const *arrays, size_t count, int *ndim,
                                             size_t shape[DRUPE_MAX_DIMS]) DRUPE_MUST_CHECK;

/* --- Operations ---------------------------------------------------------------------------------------- */

/* Operations are numbered by the generated table; see drupe/ops.def. */
typedef enum drupe_op {
#define DRUPE_OP(id, name, kind, arity, doc) DRUPE_OP_##id,
#include "drupe/ops.def"
#undef DRUPE_OP
    DRUPE_OP_COUNT
} drupe_op;

typedef enum drupe_op_kind { DRUPE_OP_ELEMENTWISE, DRUPE_OP_REDUCTION } drupe_op_kind;

DRUPE_API const char *drupe_op_name(drupe_op op);
DRUPE_API drupe_op_kind drupe_op_kind_of(drupe_op op);
DRUPE_API int drupe_op_arity(drupe_op op);
/* The result type, or NONE with the thread's error set when the operation does not take these types. Scalars
 * are weak. */
DRUPE_API drupe_dtype drupe_op_result(drupe_op op, const drupe_operand *in, size_t nin);

/* Element-wise, with broadcasting and promotion; at least one operand is an array, and all arrays share one
 * queue (else DRUPE_E_PLACEMENT, whose text advises to_device). `out` empty: allocated with the strongest
 * kind of the inputs (device over shared over host). `out` given: its shape must be the broadcast shape and
 * the result type must cast to its type by kind (the in-place rule); it may be one of the inputs. An output
 * that overlaps an input otherwise is handled through a copy. DRUPE_E_INVALID for integers to a negative
 * scalar power; exponents in an array are not looked at, and negative ones give what 1 / x**n truncates to.
 */
DRUPE_API drupe_status drupe_array_apply(drupe_op op, const drupe_operand *in, size_t nin,
                                         drupe_array *out) DRUPE_MUST_CHECK;
/* The same for a caller that drops operand `spent` (its place in `in`) unread afterwards: an empty `out` may
 * become a view of that operand's memory and overwrite it, if nobody else has a reference to it and other
 * queues do not use it. `spent` = nin: no operand. */
DRUPE_API drupe_status drupe_array_apply_over(drupe_op op, const drupe_operand *in, size_t nin, size_t spent,
                                              drupe_array *out) DRUPE_MUST_CHECK;

/* Reduce the axes whose bits are set in `axes`; `dtype` NONE = the rule of the operation (sum of bool and
 * integers gives int64 or uint64). `out` must be empty. An empty reduction gives the identity,
 * or is DRUPE_E_INVALID where there is none (max, min). */
DRUPE_API drupe_status drupe_array_reduce(drupe_op op, const drupe_array *in, uint32_t axes, bool keepdims,
                                          drupe_dtype dtype, drupe_array *out) DRUPE_MUST_CHECK;

/* The same for a caller that drops `in` afterwards, if `spent`. */
DRUPE_API drupe_status drupe_array_reduce_over(drupe_op op, const drupe_array *in, uint32_t axes,
                                               bool keepdims, drupe_dtype dtype, bool spent,
                                               drupe_array *out) DRUPE_MUST_CHECK;

/* dst[...] = src, broadcast to dst's shape and cast to its type (any type to any type). Arrays of one queue,
 * or of different queues, contexts and backends (then copied through). Arrays that borrow the same bytes of
 * somebody else (drupe_memory_borrow()) on different queues are copied through, too; but the order of their
 * other work is the caller's, since queues know each other's handles and not each other's addresses. */
DRUPE_API drupe_status drupe_array_assign(const drupe_array *dst, const drupe_operand *src) DRUPE_MUST_CHECK;

/* A new array on the queue and in the kind of memory of `src`, with its elements in another type, or the
 * same. `out` must be empty. */
DRUPE_API drupe_status drupe_array_cast(const drupe_array *src, drupe_dtype dtype,
                                        drupe_array *out) DRUPE_MUST_CHECK;

/* dst[i] = start + i*step for a one-dimensional dst: integers exactly in int64, floats as start + i*step in
 * double and rounded once. */
DRUPE_API drupe_status drupe_array_sequence(const drupe_array *dst, drupe_scalar start,
                                            drupe_scalar step) DRUPE_MUST_CHECK;

/* a @ b by the array API's rules, of stacks of matrices too, which broadcast. `out` empty: allocated. `out`
 * given: as drupe_array_apply() has it; it may overlap a and b. */
DRUPE_API drupe_status drupe_array_matmul(const drupe_array *a, const drupe_array *b,
                                          drupe_array *out) DRUPE_MUST_CHECK;

/* --- Host and device ----------------------------------------------------------------------------------- */

/* Queue a copy of `size` C-contiguous elements of dst's type from host memory, which must stay valid until
 * the work is done: `keep` (taken, may have a NULL release) is dropped then. `sound`: as in
 * drupe_submission. */
DRUPE_API drupe_status drupe_array_from_host(const drupe_array *dst, const void *host, bool sound,
                                             const drupe_keep *keep) DRUPE_MUST_CHECK;
/* The same within the call, from sound memory. False: nothing has happened, see drupe_copy_at_once(). */
DRUPE_API bool drupe_array_from_host_now(const drupe_array *dst, const void *host) DRUPE_MUST_CHECK;
/* Queue the copy to host memory (C-contiguous) and give the event to wait for. `host` must stay valid until
 * the work is done, when `keep` (taken; may be NULL) is dropped: the event may fail before, for what stood in
 * front of it. A strided array is made contiguous on the device first. */
DRUPE_API drupe_status drupe_array_to_host(const drupe_array *src, void *host, const drupe_keep *keep,
                                           drupe_event **event) DRUPE_MUST_CHECK;

/* The same within the call, to sound memory. False: nothing has happened, see drupe_copy_at_once(). */
DRUPE_API bool drupe_array_to_host_now(const drupe_array *src, void *host) DRUPE_MUST_CHECK;

/* Operations without kernels for a device whose memory the host cannot address are computed by the host, on
 * copies. Whether that is allowed, as it is at first; what is not allowed is DRUPE_E_UNSUPPORTED. */
DRUPE_API void drupe_array_staging_allow(bool allowed);
DRUPE_API bool drupe_array_staging_allowed(void);
/* The first operation of this process that was computed so, told once: NULL afterwards and before. */
DRUPE_API const char *drupe_array_staged(void);

/* --- The library --------------------------------------------------------------------------------------- */

/* Release the programs and kernels kept for reuse, with the contexts and devices they belong to: to be called
 * before drupe_library_close(), while no other function of this header runs. */
DRUPE_API void drupe_array_forget(void);

#endif
