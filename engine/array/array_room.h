/* The room of arrays: element types, shapes, and the choice and launch of a kernel for an operation.
 *
 * Owns: what target.c remembers, under its lock, and whether calls may be staged (host_call.c); no thread.
 * Statuses and error details as in drupe/status.h.
 */
#ifndef DRUPE_ARRAY_ROOM_H
#define DRUPE_ARRAY_ROOM_H

#include "array/recipe.h"
#include "base/base.h"
#include "drupe/array.h"
#include "drupe/check.h"
#include "drupe/program.h"

/* --- ops.c: the tables ---------------------------------------------------------------------------------- */

enum { KIND_BOOL, KIND_INT, KIND_UINT, KIND_FLOAT, KIND_COMPLEX, KIND_COUNT }; /* of element types */
#define KIND_BIT(kind) (1u << (kind))

typedef enum op_result_rule {
    RESULT_SAME,
    RESULT_REAL,
    RESULT_FLOAT,
    RESULT_FLOAT_REAL,
    RESULT_BOOL,
    RESULT_LOGICAL,
    RESULT_SUM
} op_result_rule;

typedef struct op_row {
    const char *name;
    drupe_op_kind kind;
    int arity;
    unsigned takes; /* KIND_BITs */
    op_result_rule result;
    unsigned truths; /* bit i: input i counts as a bool, and has no part in the common type */
    int narrow;      /* integers of fewer than four bytes are computed in int32 */
    int vector;
    const char *vector_limit;           /* NULL: none */
    const char *expression[KIND_COUNT]; /* by kind of the compute type; NULL: not computed in it */
    const char *identity;               /* "0", "1", "LOWEST", "HIGHEST"; NULL unless a reduction */
} op_row;

typedef struct dtype_row {
    const char *name, *typestr; /* typestr without the byte order */
    size_t size;
    int kind;
    const char *cl, *suffix, *lowest, *highest;
    drupe_dtype compute; /* the type that it is computed in */
    drupe_dtype real;    /* the type of the real part */
} dtype_row;

/* `op` may also be an internal one, OP_COPY. NULL for a number that is none. */
const op_row *drupe_op_row(int op);
const dtype_row *drupe_dtype_row(drupe_dtype dtype); /* of a valid type */
const char *drupe_multiply_text(int kind);           /* MULTIPLY(r, x, y) of matmul.cl */
const char *drupe_sequence_text(int kind);           /* SEQUENCE(start, step, i) of sequence.cl */

/* --- promote.c ------------------------------------------------------------------------------------------ */

typedef struct op_types {
    drupe_dtype common; /* of the operands; scalars are rounded to it */
    drupe_dtype compute, result;
    unsigned beyond; /* bit i: scalar i is above or below all of its type, and compared as an infinity */
} op_types;
/* What input `i` is computed in. */
static inline drupe_dtype drupe_op_input(const op_row *row, drupe_dtype compute, size_t i)
{
    return row->truths >> i & 1 ? DRUPE_BOOL : compute;
}
/* The types of an operation on these operands; `fp64`: whether the device has float64. */
drupe_status drupe_op_types(int op, const drupe_operand *in, size_t nin, bool fp64, op_types *types);
/* The bytes of operand `i`, a scalar, in the type that it is computed in. */
drupe_status drupe_op_constant(int op, const op_types *types, const drupe_operand *in, size_t i,
                               drupe_u64 bytes[2]);
/* The float type of integers: float32 where the device lacks float64. */
static inline drupe_dtype drupe_float_default(bool fp64)
{
    return fp64 ? DRUPE_FLOAT64 : DRUPE_FLOAT32;
}
/* The same type, or of half the size where it needs float64 and the device lacks it. */
static inline drupe_dtype drupe_dtype_available(drupe_dtype dtype, bool fp64)
{
    if (fp64) return dtype;
    return dtype == DRUPE_FLOAT64 ? DRUPE_FLOAT32 : dtype == DRUPE_COMPLEX128 ? DRUPE_COMPLEX64 : dtype;
}
/* The types of a reduction whose result the caller names. */
void drupe_reduce_types(int op, drupe_dtype dtype, op_types *types);
/* What a copy from one type to another is computed in, which is rounded to `to` once. */
drupe_dtype drupe_copy_type(drupe_dtype from, drupe_dtype to);

/* --- target.c: devices as this room sees them, and their kernels -------------------- */

/* One device in one context; in checked mode another one than otherwise. Lives until drupe_array_forget(). */
typedef struct drupe_target {
    drupe_context *context; /* retained, as is the device: the pair is the key and must not be reused */
    drupe_device *device;
    bool builtin;  /* precompiled kernels instead of OpenCL C */
    bool cpu;      /* its memory is the host's, and a BLAS of the host serves it */
    bool gpu_form; /* which form of the kernels */
    bool fp64;
    bool checked;        /* its kernels are instrumented */
    size_t units;        /* compute units */
    size_t most;         /* bytes, above which a result is asked for at once, as there may not be so many */
    size_t group;        /* work-group size of the GPU form */
    const char *options; /* for programs in OpenCL C */
    drupe_map kernels;   /* the bytes of a recipe -> drupe_kernel */
    void (*fused_close)(struct drupe_target *target); /* fused_build.c's: give up what `fused` has; or NULL */
    drupe_map fused; /* fused_build.c's, under its lock: the bytes of a fused_recipe -> what is known of it */
} drupe_target;
drupe_status drupe_target_get(drupe_queue *queue, drupe_target **target);
void drupe_targets_close(void);
/* drupe_array_result() of a type that the device has, as the caller knows. */
drupe_status drupe_array_result_known(drupe_queue *queue, drupe_mem_kind kind, drupe_dtype dtype, int ndim,
                                      const size_t *shape, drupe_array *array);

/* Borrowed from the target. Builds its program on the first use. */
drupe_status drupe_target_kernel(drupe_target *target, const kernel_recipe *recipe, drupe_kernel **kernel);

/* Submit the recipe's kernel. For a checked target `s` lists what the first arguments touch, one by one (no
 * bytes: it is not used), and `elements` the bytes of their elements; for others neither is looked at. */
drupe_status drupe_target_submit(drupe_target *target, const kernel_recipe *recipe, const drupe_submission *s,
                                 const drupe_range *range, const drupe_arg *args, size_t nargs,
                                 const size_t *elements);

/* A one-dimensional range for `n` elements: as many work-items as the form wants, `grain` elements at least
 * each where there are enough. */
void drupe_target_range(const drupe_target *target, size_t n, size_t grain, drupe_range *range);

/* --- render.c ------------------------------------------------------------------------------------------- */

/* The text of the program whose one kernel is that of this recipe. */
drupe_status drupe_render_program(const drupe_target *target, const kernel_recipe *recipe, drupe_text *text);
/* The kernel's name in that program, or of the precompiled kernel. */
void drupe_render_name(const drupe_target *target, const kernel_recipe *recipe, char *name, size_t size);

/* --- array.c -------------------- */

/* Whether nothing of its allocation stays when all of its elements are written. */
bool drupe_array_covers(const drupe_array *array);

/* --- layout.c ------------------------------------------------------------------------------------------- */

/* Operands over one index space; operand 0 is the output. */
typedef struct drupe_layout {
    int ndim, noperands;
    size_t shape[DRUPE_MAX_DIMS];
    ptrdiff_t strides[DRUPE_KERNEL_INPUTS + 1][DRUPE_MAX_DIMS];
    ptrdiff_t offsets[DRUPE_KERNEL_INPUTS + 1]; /* elements to add to each operand's address */
} drupe_layout;
/* Drop axes of length 1, run the output forwards, order the axes by its strides and merge what can be. */
void drupe_layout_simplify(drupe_layout *layout);
/* The last step alone: merge neighbouring axes. */
void drupe_layout_merge(drupe_layout *layout);
/* The stride of axis `axis` of an `ndim`-dimensional space along which `array` is broadcast. */
ptrdiff_t drupe_layout_stride(const drupe_array *array, int ndim, int axis);
/* C-order strides for a shape; returns the size. */
size_t drupe_layout_c_order(int ndim, const size_t *shape, ptrdiff_t *strides);
bool drupe_layout_same_view(const drupe_array *a, const drupe_array *b);
/* Whether their byte ranges meet: may say yes needlessly. */
bool drupe_layout_overlap(const drupe_array *a, const drupe_array *b);
/* What work on a non-empty array touches. */
drupe_access drupe_layout_access(const drupe_array *array, bool writes);
bool drupe_layout_same_shape(const drupe_array *a, const drupe_array *b);
/* DRUPE_E_INVALID for a view whose elements share memory. */
drupe_status drupe_layout_writable(const drupe_array *out);
/* "(2, 3)", cut to fit; returns `text`. */
const char *drupe_shape_text(int ndim, const size_t *shape, char *text, size_t size);

/* --- map_launch.c, apply.c
 * -------------------------------------------------------------------------------------------- */

/* Launch an element-wise operation over out's shape; all checks are done, no array is empty. Arrays must
 * broadcast to out's shape; `out` overlaps no input unless it is the same view. */
drupe_status drupe_map_launch(drupe_target *target, int op, const op_types *types, const drupe_array *out,
                              const drupe_operand *in, size_t nin);
/* The same where `out` has the memory of operand `spent`, which is dropped; NULL: it has its own. */
drupe_status drupe_map_launch_over(drupe_target *target, int op, const op_types *types,
                                   const drupe_array *out, const drupe_operand *in, size_t nin,
                                   const drupe_array *spent);
/* The same for a copy. */
drupe_status drupe_copy_launch(drupe_target *target, const drupe_array *out, const drupe_operand *in);
/* Whether an operation takes as long as it takes to load and store its operands, roughly. */
bool drupe_op_light(int op, drupe_dtype compute);
/* Whether a result of this type and shape can be stored in `out`: DRUPE_E_INVALID, whose text begins with the
 * operation's name, for another shape, a kind that would lose part of it, and a broadcast view. */
drupe_status drupe_array_check_out(const char *operation, const drupe_array *out, drupe_dtype result,
                                   int ndim, const size_t *shape);

/* --- host_call.c -------------------- */

#define DRUPE_CALL_ARRAYS 8
/* The function that does the work: the addresses of the arrays' elements [0, ..., 0] in the order given, and
 * the copied parameters. Runs on a thread of the engine. A status other than DRUPE_OK, with
 * drupe_error_set(), fails the work. */
typedef drupe_status (*drupe_call_fn)(void *const *pointers, const void *params);

typedef struct drupe_call {
    const char *label; /* static */
    drupe_call_fn fn;
    const void *params; /* copied */
    size_t params_size;
    const drupe_array *const *arrays; /* borrowed; all on one queue, each C-contiguous with memory */
    size_t count;                     /* 1 to DRUPE_CALL_ARRAYS */
    bool brief;                       /* the arrays are some words: copies of them are no news */
    bool checks_first;                /* as in drupe_submission */
    const drupe_array *doubted;       /* NULL, or whose elements count as not written if a brief call fails */
    uint32_t reads, writes;           /* bit i: arrays[i]; what is written and not read is written whole */
} drupe_call;
/* Queue the call on the arrays' queue. On a device whose memory the host cannot address the function works on
 * copies; DRUPE_E_UNSUPPORTED where that is forbidden. */
drupe_status drupe_array_call(const drupe_call *call);

/* --- kernel_call.c -------------------- */

/* Whether the host cannot reach into the device's memory, so that what is a loop of the host elsewhere had
 * better be kernels. The form for GPUs on a CPU is a test's, and stands for such a device. */
static inline bool drupe_target_remote(const drupe_target *target)
{
    return !target->cpu || target->gpu_form;
}

#define DRUPE_KERNEL_ARRAYS 5
/* Such a kernel: one of SHAPE_ARG and so on. */
typedef struct drupe_kernel_call {
    kernel_parts parts;
    const drupe_array *arrays[DRUPE_KERNEL_ARRAYS]; /* its pointers, in its order; all on one queue */
    size_t count;
    uint32_t reads, writes; /* bit i: arrays[i] */
    const void *params;     /* copied */
    size_t params_size;
    size_t group; /* work-items in a group; 0: as many as the target has */
    size_t items; /* work-items that have something to do: groups beyond some per compute unit repeat */
} drupe_kernel_call;
drupe_status drupe_array_kernel(drupe_target *target, const drupe_kernel_call *call);
/* The parts of a kernel in one type, stored as `dtype`. */
kernel_parts drupe_kernel_parts(int shape, int variant, drupe_dtype dtype);
/* The type that stands for all whose elements have as many bytes, for kernels that only move them. */
drupe_dtype drupe_dtype_bytes(size_t size);

/* --- transfer.c ----------------------------------------------------------------------------------------- */

/* A copy of `src` on a queue, contiguous and of `dtype`. */
drupe_status drupe_array_copy_as(const drupe_array *src, drupe_dtype dtype, drupe_queue *queue,
                                 drupe_array *out);
/* A contiguous array of `dtype` with the elements of `src`: itself when it is one already, else a copy on its
 * queue. `out` must be empty. */
drupe_status drupe_array_contiguous_as(const drupe_array *src, drupe_dtype dtype, drupe_array *out);

#endif
