/* Random fused kernels, and what they have to give: the same as the kernels of their steps, one by one. */
#ifndef FUSED_PROGRAM_H
#define FUSED_PROGRAM_H

#include "kernels/fused.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOOL,
    INT8,
    UINT8,
    INT16,
    UINT16,
    INT32,
    UINT32,
    INT64,
    UINT64,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    COMPLEX64,
    COMPLEX128,
    DTYPES
}; /* element types, by their numbers */

typedef struct element_type {
    const char *name; /* as kernels' names have it */
    size_t size;
} element_type;
extern const element_type element_types[DTYPES];

typedef struct operation {
    const char *name;
    int arity; /* 0: no element-wise operation */
} operation;
/* By number; the last are not public. */
extern const operation operations[];
extern const int operation_count;

/* The number of an operation, which must exist. */
int operation_number(const char *name);
/* The kernel of an element-wise operation or, with an ending, of a reduction, or NULL: it is not computed in
 * that type. */
const struct drupe_builtin *operation_kernel(int op, int compute);

/* A seed gives the same numbers again. */
uint64_t random_next(uint64_t *seed);
int random_below(uint64_t *seed, int most);
/* n elements, among them numbers that are special; `at` has room for them. */
void random_elements(uint64_t *seed, int dtype, void *at, size_t n);

typedef struct program {
    drupe_fused f;
    uint64_t seed;
    char *values[DRUPE_FUSED_STEPS];      /* of each step, C-contiguous */
    char *memory[DRUPE_FUSED_OPERANDS];   /* all bytes of the operands, between and around elements, too */
    char *before[DRUPE_FUSED_OPERANDS];   /* what was in it */
    char *expected[DRUPE_FUSED_OPERANDS]; /* what should be in it */
    size_t bytes[DRUPE_FUSED_OPERANDS];
    char *out, *expected_out; /* of the reduction, if there is one */
    size_t out_bytes;
} program;

/* An empty program over an index space; ndim 0: of `shape[0]` elements, all operands contiguous. */
void program_begin(program *p, uint64_t seed, int ndim, const drupe_i64 *shape);
/* Another operand: its number. Its memory has any order, gaps, and of an input repetitions, unless ndim is 0.
 */
int program_operand(program *p, int dtype, bool output);
/* A constant of that type: its number. */
int program_constant(program *p, int dtype, const void *value);
/* Another step, stored if `store`: its number. */
int program_step(program *p, int op, int compute, int dtype, bool store, const drupe_fused_ref *in);
/* `steps` steps at random, the last of which is stored unless it is `reduced`. */
void program_random(program *p, int inputs, int steps, bool reduced);
/* The last step's value, an array of outer * extent * inner, is reduced over the axis in the middle: by
 * columns, or by rows if inner is 1. */
typedef struct program_axes {
    drupe_i64 outer, extent, inner, splits;
    bool column;
} program_axes;
void program_reduce(program *p, const char *op, int compute, int out_dtype, const program_axes *axes);
/* Give the values of steps their slots. */
void program_finish(program *p);
/* The steps one by one: fills `values` and `expected`. */
void program_run_steps(program *p);
/* The fused kernel, by so many work-items; then whether the outputs are what is expected. */
void program_check(program *p, size_t items);
/* Free what it holds. */
void program_end(program *p);

#endif
