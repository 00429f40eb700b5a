/* What a C program pays for the OpenCL calls that the engine makes: the same kernel, arguments, kind of
 * memory and kind of queue, on the driver's first device of a type. A shared library for engine.py, which
 * calls it between the engine's own turns, in one process. Every function answers nanoseconds in all, or a
 * negative number that names the call that failed. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define VISIBLE __attribute__((visibility("default")))

VISIBLE int peer_open(int gpu, size_t bytes);
VISIBLE double peer_enqueue(int count);
VISIBLE double peer_wait(int count);
VISIBLE double peer_copy(void *host, int to_device, size_t bytes, int count);
VISIBLE double peer_pinned_copy(int to_device, size_t bytes, int count);
VISIBLE double peer_memcpy(void *dst, const void *src, size_t bytes, int count);

static const char source[] = "kernel void empty(global float *a, const int n, const float f) {}";

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static void *svm;
static size_t svm_bytes;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static cl_device_id find_device(cl_device_type type)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    cl_device_id device = NULL;
    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) return NULL;
    for (cl_uint i = 0; i < count && i < 16 && !device; i++) {
        if (clGetDeviceIDs(platforms[i], type, 1, &device, NULL) != CL_SUCCESS) device = NULL;
    }
    return device;
}

/* 0, or the number of the step that failed. `bytes` of SVM are the kernel's argument and the copies' one end.
 */
VISIBLE int peer_open(int gpu, size_t bytes)
{
    cl_int code;
    cl_device_id device = find_device(gpu ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU);
    if (!device) return 1;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (code != CL_SUCCESS) return 2;
    queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
    if (code != CL_SUCCESS) return 3;
    const char *text = source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    if (code != CL_SUCCESS || clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) return 4;
    kernel = clCreateKernel(program, "empty", &code);
    if (code != CL_SUCCESS) return 5;
    svm = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
    svm_bytes = bytes;
    return svm ? 0 : 6;
}

static int launch(void)
{
    const size_t size = 64;
    const cl_int n = 64;
    const cl_float f = 0.5f;
    cl_event event;
    if (clSetKernelArgSVMPointer(kernel, 0, svm) != CL_SUCCESS) return -1;
    if (clSetKernelArg(kernel, 1, sizeof n, &n) != CL_SUCCESS) return -2;
    if (clSetKernelArg(kernel, 2, sizeof f, &f) != CL_SUCCESS) return -3;
    if (clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, &size, 0, NULL, &event) != CL_SUCCESS)
        return -4;
    return clReleaseEvent(event) == CL_SUCCESS ? 0 : -5;
}

/* `count` launches; what they end with is not in the time. */
VISIBLE double peer_enqueue(int count)
{
    double started = now_ns();
    for (int i = 0; i < count; i++) {
        int failed = launch();
        if (failed) return failed;
    }
    double spent = now_ns() - started;
    return clFinish(queue) == CL_SUCCESS ? spent : -6;
}

/* `count` times one launch and the wait for it. */
VISIBLE double peer_wait(int count)
{
    double started = now_ns();
    for (int i = 0; i < count; i++) {
        int failed = launch();
        if (failed) return failed;
        if (clFinish(queue) != CL_SUCCESS) return -6;
    }
    return now_ns() - started;
}

/* `count` copies of `bytes`, at most those of peer_open(), from or to `host`. */
VISIBLE double peer_copy(void *host, int to_device, size_t bytes, int count)
{
    double started = now_ns();
    for (int i = 0; i < count; i++) {
        void *dst = to_device ? svm : host;
        const void *src = to_device ? host : svm;
        if (clEnqueueSVMMemcpy(queue, CL_TRUE, dst, src, bytes, 0, NULL, NULL) != CL_SUCCESS) return -7;
    }
    return now_ns() - started;
}

/* The same with pinned memory of the driver, which is `peer_pinned` when it is wanted. */
VISIBLE double peer_pinned_copy(int to_device, size_t bytes, int count)
{
    static void *pinned;
    static cl_mem host, device;
    cl_int code = CL_SUCCESS;
    if (!pinned) {
        host = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, svm_bytes, NULL, &code);
        if (code != CL_SUCCESS) return -8;
        device = clCreateBuffer(context, CL_MEM_READ_WRITE, svm_bytes, NULL, &code);
        if (code != CL_SUCCESS) return -8;
        pinned = clEnqueueMapBuffer(queue, host, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, svm_bytes, 0, NULL,
                                    NULL, &code);
        if (code != CL_SUCCESS) return -9;
        memset(pinned, 1, svm_bytes);
    }
    double started = now_ns();
    for (int i = 0; i < count; i++) {
        if (to_device)
            code = clEnqueueWriteBuffer(queue, device, CL_TRUE, 0, bytes, pinned, 0, NULL, NULL);
        else
            code = clEnqueueReadBuffer(queue, device, CL_TRUE, 0, bytes, pinned, 0, NULL, NULL);
        if (code != CL_SUCCESS) return -7;
    }
    return now_ns() - started;
}

/* memcpy between two pieces of host memory, as fast as one thread can. */
VISIBLE double peer_memcpy(void *dst, const void *src, size_t bytes, int count)
{
    double started = now_ns();
    for (int i = 0; i < count; i++) memcpy(dst, src, bytes);
    return now_ns() - started;
}
