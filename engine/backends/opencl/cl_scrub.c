/* Local memory after the last work of a process.
 *
 * Drivers clear memory that they hand out, but no standard says that local memory is cleared between the
 * kernels of two processes, and on some devices the next one can read what is left. So a kernel takes all
 * that a work-group can have and writes zeros to it, in many more groups than the device runs at a time.
 * Which compute unit gets a group is the driver's affair: this makes what is left unlikely, and proves
 * nothing. */
#include "opencl.h"
#include <time.h>

#define WAIT_NS         UINT64_C(2000000000)
#define PAUSE_NS        200000
#define GROUPS_PER_UNIT 16
#define ITEMS           64
#define SPARE_BYTES     2048 /* of local memory that some drivers keep for themselves */

/* `volatile`: the compiler could leave out what nobody reads. */
static const char text[] =
    "kernel void drupe_scrub(volatile local uint *words, uint count) {\n"
    "    for (uint i = get_local_id(0); i < count; i += get_local_size(0)) words[i] = 0;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "}\n";

typedef struct scrub {
    const drupe_cl_api *api;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_event event;
} scrub;

/* What is NULL was not made. */
static void scrub_close(const scrub *s)
{
    if (s->event) s->api->ReleaseEvent(s->event);
    if (s->kernel) s->api->ReleaseKernel(s->kernel);
    if (s->program) s->api->ReleaseProgram(s->program);
    if (s->queue) s->api->ReleaseCommandQueue(s->queue);
    if (s->context) s->api->ReleaseContext(s->context);
}

static cl_int scrub_open(scrub *s, const drupe_cl_device *device)
{
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
    const char *lines = text;
    const size_t size = sizeof text - 1;
    cl_int code = CL_SUCCESS;
    s->api = &device->library->api;
    drupe_threads *before = drupe_core_adoption_begin();
    s->context = s->api->CreateContext(properties, 1, &device->id, NULL, NULL, &code);
    drupe_core_adoption_end(before, device->platform);
    if (code == CL_SUCCESS) s->queue = s->api->CreateCommandQueue(s->context, device->id, 0, &code);
    if (code == CL_SUCCESS) s->program = s->api->CreateProgramWithSource(s->context, 1, &lines, &size, &code);
    if (code == CL_SUCCESS) code = s->api->BuildProgram(s->program, 1, &device->id, "", NULL, NULL);
    if (code == CL_SUCCESS) s->kernel = s->api->CreateKernel(s->program, "drupe_scrub", &code);
    return code;
}

static cl_int launch(scrub *s, const drupe_cl_device *device, size_t bytes)
{
    const cl_uint words = (cl_uint)(bytes / sizeof(cl_uint));
    const size_t items = device->caps.max_group < ITEMS ? device->caps.max_group : ITEMS;
    const size_t all = items * GROUPS_PER_UNIT * (device->caps.units ? device->caps.units : 1);
    cl_int code = s->api->SetKernelArg(s->kernel, 0, words * sizeof(cl_uint), NULL);
    if (code == CL_SUCCESS) code = s->api->SetKernelArg(s->kernel, 1, sizeof words, &words);
    if (code != CL_SUCCESS) return code;
    return s->api->EnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &all, &items, 0, NULL, &s->event);
}

/* False: the device does not answer, and nothing of it may be closed. */
static bool is_over(const scrub *s)
{
    const struct timespec pause = {0, PAUSE_NS};
    const uint64_t deadline = drupe_deadline(WAIT_NS);
    cl_int state = CL_QUEUED;
    for (;;) {
        cl_int code =
            s->api->GetEventInfo(s->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (code != CL_SUCCESS || state <= CL_COMPLETE) return true;
        if (drupe_now_ns() >= deadline) return false;
        nanosleep(&pause, NULL);
    }
}

drupe_status drupe_cl_device_scrub(drupe_device *device)
{
    const drupe_cl_device *native = drupe_native(device);
    const size_t bytes = native->caps.local_bytes;
    scrub s = {0};
    if (!native->caps.compiler || bytes < SPARE_BYTES) return DRUPE_OK;
    drupe_signals_save();
    drupe_quiet_begin();
    cl_int code = scrub_open(&s, native);
    if (code == CL_SUCCESS) code = launch(&s, native, bytes);
    if (s.kernel && code != CL_SUCCESS) code = launch(&s, native, bytes - SPARE_BYTES);
    if (code == CL_SUCCESS) code = s.api->Flush(s.queue);
    bool over = !s.event || is_over(&s);
    if (over) scrub_close(&s);
    drupe_quiet_end();
    drupe_signals_restore();
    if (!over)
        return drupe_error_set(DRUPE_E_TIMEOUT, "The device did not overwrite its local memory in time.");
    return code == CL_SUCCESS ? DRUPE_OK : drupe_cl_fail(code, "Overwriting local memory");
}
