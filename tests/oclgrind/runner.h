/* Runs generated kernels over OpenCL 1.2 with buffers: what Oclgrind, which has no SVM, can look at. */
#ifndef OCLGRIND_RUNNER_H
#define OCLGRIND_RUNNER_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "array/array_room.h"
#include <CL/cl.h>

typedef struct runner {
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    drupe_target target; /* only what rendering reads */
    struct built {
        kernel_parts key;
        bool gpu_form, checked;
        cl_program program;
    } * built;
    size_t nbuilt, capacity, kernels;
} runner;

#define RUNNER_SPANS DRUPE_KERNEL_ARRAYS

/* One buffer argument: so many elements of a type, no byte more. */
typedef struct span {
    int dtype;
    size_t elements;
    enum { CONTENT_SMALL, CONTENT_ZERO, CONTENT_NUMBERS } content; /* small numbers; 0; 1, 2, 3 ... */
} span;

typedef struct launch {
    kernel_parts key;
    /* The output first, left as it is if its content is small; elements 0: there is none; dtype -1: the
     * output once more. */
    span spans[RUNNER_SPANS];
    const void *params;
    size_t params_size;
    size_t global, local;
} launch;

/* All of these end the process with a message when OpenCL refuses, or an instrumented kernel reports
 * something. */
void runner_open(runner *r);
void runner_close(runner *r);
void runner_launch(runner *r, const launch *l);
/* A kernel that writes one element too far. */
void runner_trespass(runner *r);

/* kernels_gpu.c: all of those that no operation has. */
void run_gpu_kernels(runner *r, bool all);

#endif
