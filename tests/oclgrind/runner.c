/* See runner.h. */
#include "oclgrind/runner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(cl_int code, const char *what, const char *name)
{
    if (code == CL_SUCCESS) return;
    fprintf(stderr, "%s: %s answered %d\n", name, what, code);
    exit(1);
}

void runner_open(runner *r)
{
    cl_platform_id platform;
    cl_int code;
    memset(r, 0, sizeof *r);
    need(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs", "start");
    need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &r->device, NULL), "clGetDeviceIDs", "start");
    r->context = clCreateContext(NULL, 1, &r->device, NULL, NULL, &code);
    need(code, "clCreateContext", "start");
    r->queue = clCreateCommandQueue(r->context, r->device, 0, &code);
    need(code, "clCreateCommandQueue", "start");
    r->target.fp64 = true;
}

void runner_close(runner *r)
{
    for (size_t i = 0; i < r->nbuilt; i++) clReleaseProgram(r->built[i].program);
    free(r->built);
    clReleaseCommandQueue(r->queue);
    clReleaseContext(r->context);
}

/* --- Programs ------------------------------------------------------------------------------------------- */

static cl_program build(runner *r, const char *text, const char *name)
{
    cl_int code;
    cl_program program = clCreateProgramWithSource(r->context, 1, &text, NULL, &code);
    need(code, "clCreateProgramWithSource", name);
    /* Its optimiser makes intrinsics that its interpreter does not know. */
    code = clBuildProgram(program, 1, &r->device, "-w -cl-opt-disable", NULL, NULL);
    if (code != CL_SUCCESS) {
        static char log[8192];
        clGetProgramBuildInfo(program, r->device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fprintf(stderr, "%s\n", log);
    }
    need(code, "clBuildProgram", name);
    return program;
}

static cl_program find_program(runner *r, const kernel_parts *key, const char *name)
{
    for (size_t i = 0; i < r->nbuilt; i++) {
        const struct built *built = &r->built[i];
        if (built->gpu_form == r->target.gpu_form && built->checked == r->target.checked &&
            memcmp(&built->key, key, sizeof *key) == 0)
            return built->program;
    }
    if (r->nbuilt == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        r->built = realloc(r->built, r->capacity * sizeof *r->built);
        if (!r->built) abort();
    }
    drupe_text text = {0};
    kernel_recipe recipe;
    drupe_recipe_make(key, &recipe);
    if (drupe_render_program(&r->target, &recipe, &text) != DRUPE_OK) need(-1, "drupe_render_program", name);
    cl_program program = build(r, drupe_text_get(&text), name);
    drupe_text_clear(&text);
    r->built[r->nbuilt++] = (struct built){*key, r->target.gpu_form, r->target.checked, program};
    return program;
}

/* --- Launching ------------------------------------------------------------------------------------------ */

/* Small numbers, none of them zero, and one that is too large for the wide trigonometric functions. */
static void store(char *to, int dtype, int content, size_t i)
{
    const int small = content == CONTENT_ZERO      ? 0
                      : content == CONTENT_NUMBERS ? (int)i + 1
                                                   : (int)(i % 5) + 1;
    const bool whole = drupe_dtype_row((drupe_dtype)dtype)->kind < KIND_FLOAT;
    const bool truth = dtype == DRUPE_BOOL, large = i == 3 && dtype != DRUPE_FLOAT16 && !content;
    drupe_scalar value = {.kind = whole ? DRUPE_SCALAR_KIND_INT : DRUPE_SCALAR_KIND_FLOAT,
                          .i = truth ? (int)(i % 2) : small,
                          .f = large ? 1e6 : small * 0.5};
    if (drupe_scalar_bytes(&value, (drupe_dtype)dtype, to) != DRUPE_OK) abort();
}

static cl_mem make_buffer(runner *r, const span *part, bool output, const char *name)
{
    size_t width = drupe_dtype_size((drupe_dtype)part->dtype), bytes = part->elements * width;
    char *content = malloc(bytes);
    cl_int code;
    if (!content) abort();
    for (size_t i = 0; i < part->elements; i++)
        store(content + i * width, part->dtype, (int)part->content, i);
    cl_mem buffer = clCreateBuffer(r->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    need(code, "clCreateBuffer", name);
    /* An output is left as it is, so that reading it back finds what the kernel forgot to write. */
    if (!output || part->content)
        need(clEnqueueWriteBuffer(r->queue, buffer, CL_TRUE, 0, bytes, content, 0, NULL, NULL), "writing",
             name);
    free(content);
    return buffer;
}

/* The argument behind the others of an instrumented kernel. */
static cl_mem make_bounds(runner *r, const launch *l, const char *name)
{
    drupe_kernel_bounds bounds;
    cl_int code;
    memset(&bounds, 0, sizeof bounds);
    for (int i = 0; i <= DRUPE_KERNEL_INPUTS; i++)
        bounds.high[i] = l->spans[i].dtype < 0 ? -1 : (drupe_i64)l->spans[i].elements - 1;
    cl_mem buffer =
        clCreateBuffer(r->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof bounds, &bounds, &code);
    need(code, "clCreateBuffer", name);
    return buffer;
}

static void check_bounds(runner *r, cl_mem buffer, const char *name)
{
    drupe_kernel_bounds bounds;
    need(clEnqueueReadBuffer(r->queue, buffer, CL_TRUE, 0, sizeof bounds, &bounds, 0, NULL, NULL), "reading",
         name);
    clReleaseMemObject(buffer);
    if (!bounds.operand) return;
    fprintf(stderr, "%s: element %lld of operand %d\n", name, (long long)bounds.index, bounds.operand - 1);
    exit(1);
}

static void run_kernel(runner *r, cl_kernel kernel, const launch *l, const char *name)
{
    cl_mem buffers[RUNNER_SPANS] = {NULL};
    cl_mem bounds = r->target.checked ? make_bounds(r, l, name) : NULL;
    cl_uint index = 0;
    for (int i = 0; i < RUNNER_SPANS && l->spans[i].elements; i++) {
        bool again = l->spans[i].dtype < 0;
        if (!again) buffers[i] = make_buffer(r, &l->spans[i], i == 0, name);
        cl_mem *buffer = again ? &buffers[0] : &buffers[i];
        need(clSetKernelArg(kernel, index++, sizeof *buffer, buffer), "clSetKernelArg", name);
    }
    need(clSetKernelArg(kernel, index++, l->params_size, l->params), "clSetKernelArg", name);
    if (bounds) need(clSetKernelArg(kernel, index, sizeof bounds, &bounds), "clSetKernelArg", name);
    need(clEnqueueNDRangeKernel(r->queue, kernel, 1, NULL, &l->global, &l->local, 0, NULL, NULL), "running",
         name);
    need(clFinish(r->queue), "clFinish", name);
    if (bounds) check_bounds(r, bounds, name);
    for (int i = 0; i < RUNNER_SPANS; i++) {
        if (buffers[i]) clReleaseMemObject(buffers[i]);
    }
}

void runner_launch(runner *r, const launch *l)
{
    char name[64];
    cl_int code;
    kernel_recipe recipe;
    drupe_recipe_make(&l->key, &recipe);
    r->target.group = l->local; /* which is the same for all launches of a key */
    drupe_render_name(&r->target, &recipe, name, sizeof name);
    cl_program program = find_program(r, &l->key, name);
    cl_kernel kernel = clCreateKernel(program, name, &code);
    need(code, "clCreateKernel", name);
    run_kernel(r, kernel, l, name);
    clReleaseKernel(kernel);
    r->kernels++;
}

void runner_trespass(runner *r)
{
    cl_program program = build(
        r, "kernel void trespass(global int *out, int n) { out[get_global_id(0) + n] = 1; }", "trespass");
    cl_int code, one = 1;
    cl_kernel kernel = clCreateKernel(program, "trespass", &code);
    need(code, "clCreateKernel", "trespass");
    launch l = {.spans = {{DRUPE_INT32, 8}}, .params = &one, .params_size = 4, .global = 8, .local = 8};
    run_kernel(r, kernel, &l, "trespass");
    clReleaseKernel(kernel);
    clReleaseProgram(program);
}
