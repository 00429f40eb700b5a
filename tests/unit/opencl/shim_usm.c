/* Intel's USM extension made from the driver's SVM. Each kind remembers nothing; the checks are those that
 * tell a wrong call: the device must be given for device memory, alignment at most 128. */
#include "shim.h"
#include <stdlib.h>
#include <string.h>

static void *allocate(cl_context context, size_t size, cl_uint align, cl_int *code)
{
    void *pointer = NULL;
    if (align <= 128) pointer = SHIM_REAL(clSVMAlloc)(context, CL_MEM_SVM_FINE_GRAIN_BUFFER, size, align);
    if (!pointer && align <= 128) pointer = SHIM_REAL(clSVMAlloc)(context, CL_MEM_READ_WRITE, size, align);
    *code = align > 128 ? CL_INVALID_VALUE : pointer ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    return pointer;
}

static void *host_alloc(cl_context context, const cl_mem_properties_intel *properties, size_t size,
                        cl_uint align, cl_int *code)
{
    (void)properties;
    return allocate(context, size, align, code);
}

static void *device_alloc(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties,
                          size_t size, cl_uint align, cl_int *code)
{
    if (!device) abort();
    return host_alloc(context, properties, size, align, code);
}

static cl_int mem_free(cl_context context, void *pointer)
{
    SHIM_REAL(clSVMFree)(context, pointer);
    return CL_SUCCESS;
}

static cl_int set_arg(cl_kernel kernel, cl_uint index, const void *pointer)
{
    return SHIM_REAL(clSetKernelArgSVMPointer)(kernel, index, pointer);
}

static cl_int copy(cl_command_queue queue, cl_bool blocking, void *dst, const void *src, size_t size,
                   cl_uint count, const cl_event *waits, cl_event *event)
{
    if (blocking) abort();
    return SHIM_REAL(clEnqueueSVMMemcpy)(queue, CL_FALSE, dst, src, size, count, waits, event);
}

static cl_int fill(cl_command_queue queue, void *dst, const void *pattern, size_t pattern_size, size_t size,
                   cl_uint count, const cl_event *waits, cl_event *event)
{
    return SHIM_REAL(clEnqueueSVMMemFill)(queue, dst, pattern, pattern_size, size, count, waits, event);
}

void *shim_usm_function(const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
        {"clHostMemAllocINTEL", (void (*)(void))host_alloc},
        {"clDeviceMemAllocINTEL", (void (*)(void))device_alloc},
        {"clSharedMemAllocINTEL", (void (*)(void))device_alloc},
        {"clMemFreeINTEL", (void (*)(void))mem_free},
        {"clSetKernelArgMemPointerINTEL", (void (*)(void))set_arg},
        {"clEnqueueMemcpyINTEL", (void (*)(void))copy},
        {"clEnqueueMemFillINTEL", (void (*)(void))fill},
    };
    void *address = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, name) == 0) memcpy(&address, &functions[i].function, sizeof address);
    }
    return address;
}
