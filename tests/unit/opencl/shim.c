/* A libOpenCL that forwards to the real one and, by the words in OPENCL_SHIM_WORDS, takes abilities away or
 * makes calls fail, so that drivers which no test machine has can be tried:
 *   coarse      only coarse-grain SVM
 *   nosvm       no SVM at all
 *   far         memory that the host cannot touch (shim_far.c)
 *   gpu         the device is a GPU, and cannot be divided
 *   old         an OpenCL 1.2 device: functions of later versions end the process
 *   intel       Intel's USM extension (shim_usm.c)
 *   noshared    ... without shared memory
 *   align       SVM is aligned to 8 bytes only, and larger wishes are refused
 *   fault       work is reported as failed (-9999)
 *   gone        a kernel of the name "gone" is not run: from then on every event is reported as failed, as
 *               NVIDIA's driver does after a fault of a kernel
 *   silent      completion callbacks never come
 *   strict      no queue for a sub-device outside of the context's list
 *   noplatform  the loader finds no driver
 *   nodevice    drivers without devices
 *   nvcard, amdcard, xecard, khrcard  what graphics cards tell of themselves (shim_card.c)
 *   nodes       the device can be divided along NUMA nodes only
 *   fills       fills are counted, not done
 */
#include "shim.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

_Atomic(unsigned) shim_fill_count EXPORT;
size_t shim_fill_largest EXPORT;
_Atomic(unsigned) shim_marker_count EXPORT;
_Atomic(unsigned) shim_arg_shortage
    EXPORT; /* the call with this number about an argument has no memory; 0: none */
_Atomic(unsigned) shim_ask_count EXPORT; /* for an event's status */

_Atomic(unsigned) shim_early_releases EXPORT; /* of out-of-order queues, without clFinish() just before it */
_Atomic(int) shim_release_thread EXPORT;      /* of the last release of such a queue */

static _Atomic(bool) gone; /* a kernel faulted */

bool shim_word(const char *word)
{
    const char *words = getenv("OPENCL_SHIM_WORDS");
    return words && strstr(words, word);
}

void *shim_real(const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    if (!address) abort();
    return address;
}

void shim_newer(void)
{
    if (!shim_word("old")) return;
    fputs("a function newer than the device was called\n", stderr);
    abort();
}

/* A property held by the shim instead of the driver. */
static cl_int answer(const void *data, size_t length, size_t size, void *value, size_t *needed)
{
    if (needed) *needed = length;
    if (value && size < length) return CL_INVALID_VALUE;
    if (value) memcpy(value, data, length);
    return CL_SUCCESS;
}

/* The driver's extensions without Intel's USM, so that the words about SVM decide. */
static cl_int extensions(cl_device_id device, size_t size, void *value, size_t *needed)
{
    static const char hidden[] = "cl_intel_unified_shared_memory";
    cl_int code = SHIM_REAL(clGetDeviceInfo)(device, CL_DEVICE_EXTENSIONS, size, value, needed);
    char *at = value && code == CL_SUCCESS ? strstr(value, hidden) : NULL;
    if (at) memset(at, ' ', sizeof hidden - 1);
    return code;
}

/* --- Platforms and devices ------------------------------------------------------------------------------ */

EXPORT cl_int clGetPlatformIDs(cl_uint size, cl_platform_id *ids, cl_uint *count)
{
    if (shim_word("noplatform")) return -1001;
    return SHIM_REAL(clGetPlatformIDs)(size, ids, count);
}

EXPORT cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint size, cl_device_id *ids,
                             cl_uint *count)
{
    if (shim_word("nodevice")) return CL_DEVICE_NOT_FOUND;
    return SHIM_REAL(clGetDeviceIDs)(platform, type, size, ids, count);
}

EXPORT cl_int clGetDeviceInfo(cl_device_id device, cl_device_info key, size_t size, void *value,
                              size_t *needed)
{
    const cl_bitfield access = CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL, none = 0, coarse = 1;
    const cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    const cl_device_partition_property whole = 0;
    cl_int code;
    if (shim_card_info(key, size, value, needed, &code)) return code;
    switch (key) {
    case CL_DEVICE_TYPE:
        if (shim_word("gpu")) return answer(&gpu, sizeof gpu, size, value, needed);
        break;
    case CL_DEVICE_PARTITION_PROPERTIES:
        if (shim_word("gpu")) return answer(&whole, sizeof whole, size, value, needed);
        break;
    case CL_DEVICE_VERSION:
        if (shim_word("old")) return answer("OpenCL 1.2 shim", 16, size, value, needed);
        break;
    case CL_DEVICE_SVM_CAPABILITIES:
        if (shim_word("nosvm") || shim_word("intel")) return answer(&none, sizeof none, size, value, needed);
        if (shim_word("coarse")) return answer(&coarse, sizeof coarse, size, value, needed);
        break;
    case CL_DEVICE_EXTENSIONS:
        if (shim_word("intel")) {
            static const char list[] = "cl_khr_fp64 cl_intel_unified_shared_memory";
            return answer(list, sizeof list, size, value, needed);
        }
        return extensions(device, size, value, needed);
    case CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
        if (shim_word("noshared")) return answer(&none, sizeof none, size, value, needed);
        /* fall through */
    case CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL:
        if (shim_word("intel")) return answer(&access, sizeof access, size, value, needed);
        break;
    default: break;
    }
    return SHIM_REAL(clGetDeviceInfo)(device, key, size, value, needed);
}

EXPORT void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
    void *own = shim_word("intel") ? shim_usm_function(name) : NULL;
    return own ? own : SHIM_REAL(clGetExtensionFunctionAddressForPlatform)(platform, name);
}

/* --- Contexts ------------------------------------------------------------------------------------------- */

static cl_context
    contexts_over_parts[256]; /* the latest; the driver itself does not tell parts from wholes */
static unsigned context_count;

static bool is_part(cl_device_id device)
{
    cl_device_id parent = NULL;
    SHIM_REAL(clGetDeviceInfo)(device, CL_DEVICE_PARENT_DEVICE, sizeof(cl_device_id), &parent, NULL);
    return parent != NULL;
}

static bool over_parts(cl_context context)
{
    for (unsigned i = 0; i < 256; i++) {
        if (contexts_over_parts[i] == context) return true;
    }
    return false;
}

EXPORT cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                                  const cl_device_id *devices,
                                  void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                                  void *user, cl_int *code)
{
    cl_context context = SHIM_REAL(clCreateContext)(properties, count, devices, notify, user, code);
    for (unsigned i = 0; i < 256; i++) {
        if (contexts_over_parts[i] == context) contexts_over_parts[i] = NULL; /* an address used again */
    }
    if (is_part(devices[0])) contexts_over_parts[context_count++ % 256] = context;
    return context;
}

/* --- Queues and events ---------------------------------------------------------------------------------- */

EXPORT cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                           const cl_queue_properties *properties,
                                                           cl_int *code)
{
    shim_newer();
    if (shim_word("strict") && is_part(device) && !over_parts(context)) {
        *code = CL_INVALID_DEVICE;
        return NULL;
    }
    return SHIM_REAL(clCreateCommandQueueWithProperties)(context, device, properties, code);
}

EXPORT cl_int clGetEventInfo(cl_event event, cl_event_info key, size_t size, void *value, size_t *needed)
{
    cl_int code = SHIM_REAL(clGetEventInfo)(event, key, size, value, needed);
    if (code != CL_SUCCESS || key != CL_EVENT_COMMAND_EXECUTION_STATUS) return code;
    cl_int *status = value;
    shim_ask_count++;
    if (gone || (*status == CL_COMPLETE && shim_word("fault"))) *status = -9999;
    return code;
}

EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                     const size_t *offset, const size_t *global, const size_t *local,
                                     cl_uint count, const cl_event *waits, cl_event *event)
{
    char name[8] = "";
    bool one =
        shim_word("gone") &&
        SHIM_REAL(clGetKernelInfo)(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
        strcmp(name, "gone") == 0;
    if (!one) {
        return SHIM_REAL(clEnqueueNDRangeKernel)(queue, kernel, dims, offset, global, local, count, waits,
                                                 event);
    }
    gone = true;
    return SHIM_REAL(clEnqueueMarkerWithWaitList)(queue, count, waits, event);
}

EXPORT cl_int clSetEventCallback(cl_event event, cl_int type,
                                 void(CL_CALLBACK *call)(cl_event, cl_int, void *), void *user)
{
    if (shim_word("silent")) return CL_INVALID_OPERATION;
    return SHIM_REAL(clSetEventCallback)(event, type, call, user);
}

EXPORT cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *waits,
                                          cl_event *event)
{
    shim_marker_count++;
    return SHIM_REAL(clEnqueueMarkerWithWaitList)(queue, count, waits, event);
}

/* --- SVM ------------------------------------------------------------------------------------------------ */

EXPORT void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint align)
{
    shim_newer();
    if (shim_word("coarse") && (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)) return NULL;
    if (shim_word("far")) return shim_far_alloc(SHIM_REAL(clSVMAlloc)(context, flags, size, align), size);
    if (!shim_word("align")) return SHIM_REAL(clSVMAlloc)(context, flags, size, align);
    if (align > 8) return NULL;
    char *block = SHIM_REAL(clSVMAlloc)(context, flags, size + 128, 128);
    return block ? block + 8 : NULL;
}

EXPORT void clSVMFree(cl_context context, void *pointer)
{
    shim_newer();
    if (shim_word("align")) {
        if ((uintptr_t)pointer % 128 != 8) abort(); /* not a start that clSVMAlloc gave */
        pointer = (char *)pointer - 8;
    }
    if (shim_word("far") && pointer) pointer = shim_far_free(pointer);
    SHIM_REAL(clSVMFree)(context, pointer);
}

EXPORT cl_int clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void *pointer)
{
    if (shim_word("far")) pointer = shim_far_near(pointer);
    return SHIM_REAL(clSetKernelArgSVMPointer)(kernel, index, pointer);
}

/* As NVIDIA's driver does: a small piece of plain host memory is read when the copy is queued, whatever it
 * waits for. */
static const void *read_now(const void *src, size_t size)
{
    static _Atomic(void *) kept[1024];
    static _Atomic(unsigned) next;
    if (size > 65536) return src;
    void *copy = malloc(size);
    if (!copy) abort();
    memcpy(copy, src, size);
    free(atomic_exchange(&kept[atomic_fetch_add(&next, 1) % 1024], copy));
    return copy;
}

EXPORT cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *dst, const void *src,
                                 size_t size, cl_uint count, const cl_event *waits, cl_event *event)
{
    if (shim_word("far")) {
        dst = shim_far_near(dst);
        const void *near = shim_far_near(src);
        src = near == src ? read_now(src, size) : near;
    }
    return SHIM_REAL(clEnqueueSVMMemcpy)(queue, blocking, dst, src, size, count, waits, event);
}

EXPORT cl_int clEnqueueSVMMemFill(cl_command_queue queue, void *pointer, const void *pattern,
                                  size_t pattern_size, size_t size, cl_uint count, const cl_event *waits,
                                  cl_event *event)
{
    shim_newer();
    if (shim_word("far")) pointer = shim_far_near(pointer);
    if (!shim_word("fills")) {
        return SHIM_REAL(clEnqueueSVMMemFill)(queue, pointer, pattern, pattern_size, size, count, waits,
                                              event);
    }
    shim_fill_count++;
    if (size > shim_fill_largest) shim_fill_largest = size;
    return SHIM_REAL(clEnqueueMarkerWithWaitList)(queue, count, waits, event);
}

/* --- Arguments ------------------------------------------------------------------------------------------ */

EXPORT cl_int clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info key, size_t size,
                                 void *value, size_t *needed)
{
    if (shim_arg_shortage && --shim_arg_shortage == 0) return CL_OUT_OF_HOST_MEMORY;
    return SHIM_REAL(clGetKernelArgInfo)(kernel, index, key, size, value, needed);
}

/* --- The end of queues ---------------------------------------------------------------------------------- */

static _Thread_local cl_command_queue finished;

EXPORT cl_int clFinish(cl_command_queue queue)
{
    cl_int code = SHIM_REAL(clFinish)(queue);
    finished = queue;
    return code;
}

EXPORT cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    cl_command_queue_properties bits = 0;
    SHIM_REAL(clGetCommandQueueInfo)(queue, CL_QUEUE_PROPERTIES, sizeof bits, &bits, NULL);
    if (bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) {
        shim_early_releases += finished != queue;
        shim_release_thread = (int)syscall(SYS_gettid);
    }
    finished = NULL;
    return SHIM_REAL(clReleaseCommandQueue)(queue);
}
