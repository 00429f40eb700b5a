#include "stand_in.h"
#include "base/base.h"
#include <stdlib.h>
#include <string.h>

#define B (&drupe_backend_opencl)

_Atomic(unsigned) stand_in_notified;

/* --- What the backend calls in core --------------------------------------------------------------------- */

size_t drupe_context_device_count(const drupe_context *context)
{
    return context->count;
}

drupe_device *drupe_context_device(const drupe_context *context, size_t index)
{
    return context->devices[index];
}

drupe_device *drupe_device_parent(const drupe_device *device)
{
    return device->parent;
}

drupe_device *drupe_context_home(const drupe_context *context, const drupe_device *device)
{
    for (; device; device = device->parent) {
        for (size_t i = 0; i < context->count; i++) {
            if (context->devices[i] == device) return context->devices[i];
        }
    }
    return NULL;
}

drupe_device *drupe_queue_device(const drupe_queue *queue)
{
    return queue->device;
}

drupe_context *drupe_queue_context(const drupe_queue *queue)
{
    return queue->context;
}

uint32_t drupe_queue_flags_of(const drupe_queue *queue)
{
    (void)queue;
    return DRUPE_QUEUE_DEFAULT;
}

drupe_event *drupe_queue_newest(const drupe_queue *queue)
{
    (void)queue;
    return NULL; /* nothing is kept here */
}

drupe_queue *drupe_event_queue(const drupe_event *event)
{
    return event->queue;
}

drupe_context *drupe_program_context(const drupe_program *program)
{
    return program->context;
}

drupe_device *drupe_program_device(const drupe_program *program)
{
    return program->device;
}

const char *drupe_program_kernel_names(const drupe_program *program)
{
    return program->names ? program->names : "";
}

drupe_program *drupe_kernel_program(const drupe_kernel *kernel)
{
    return kernel->program;
}

const char *drupe_kernel_name(const drupe_kernel *kernel)
{
    return kernel->name;
}

const char *drupe_mem_kind_name(drupe_mem_kind kind)
{
    return kind == DRUPE_MEM_DEVICE ? "device" : kind == DRUPE_MEM_SHARED ? "shared" : "host";
}

const char *drupe_info_name(drupe_info key)
{
    (void)key;
    return "property";
}

void drupe_core_notify(drupe_event *event)
{
    assert_non_null(event);
    atomic_fetch_add(&stand_in_notified, 1);
}

void drupe_core_device_lost(drupe_device *device, const drupe_error *error, bool silent)
{
    assert_non_null(device);
    assert_int_equal(error->status, DRUPE_E_DEVICE_LOST);
    assert_false(silent);
}

drupe_threads *drupe_core_adoption_begin(void)
{
    return NULL;
}

void drupe_core_adoption_end(drupe_threads *before, const void *owner)
{
    assert_null(before);
    assert_non_null(owner);
}

/* --- Objects -------------------------------------------------------------------------------------------- */

static void *make_object(size_t size, size_t native)
{
    drupe_object *object = calloc(1, size);
    assert_non_null(object);
    object->backend = B;
    object->native = calloc(1, native);
    assert_non_null(object->native);
    return object;
}

static void free_object(void *object)
{
    free(((drupe_object *)object)->native);
    free(object);
}

drupe_status try_load(const char *library, const char *shim, void **state)
{
    if (library) {
        setenv("DRUPE_OPENCL_LIBRARY", library, 1);
    } else {
        unsetenv("DRUPE_OPENCL_LIBRARY");
    }
    setenv("OPENCL_SHIM_WORDS", shim, 1);
    return B->load(state);
}

void *load_backend(const char *shim)
{
    void *state = NULL;
    drupe_status status = try_load(NULL, "", &state);
    if (status == DRUPE_E_UNAVAILABLE) skip();
    if (status == DRUPE_OK && *shim) {
        B->unload(state);
        status = try_load(OPENCL_SHIM, shim, &state);
    }
    if (status != DRUPE_OK) print_error("%s\n", drupe_error_last()->text);
    assert_int_equal(status, DRUPE_OK);
    return state;
}

drupe_device *make_device(void *state, uint32_t index)
{
    drupe_device *device = make_object(sizeof *device, B->size.device);
    assert_int_equal(B->device_open(state, index, device), DRUPE_OK);
    return device;
}

void close_device(drupe_device *device)
{
    B->device_close(device);
    free_object(device);
}

drupe_status try_split(drupe_device *device, const drupe_partition *partition, drupe_device **subs,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        subs[i] = make_object(sizeof *subs[i], B->size.device);
        subs[i]->parent = device;
    }
    drupe_status status = B->device_split(device, partition, subs, count);
    for (size_t i = 0; status != DRUPE_OK && i < count; i++) close_device(subs[i]);
    return status;
}

drupe_context *make_context(drupe_device *const *devices, size_t count)
{
    drupe_context *context = make_object(sizeof *context, B->size.context);
    memcpy(context->devices, devices, count * sizeof(drupe_device *));
    context->count = count;
    assert_int_equal(B->context_open(context), DRUPE_OK);
    return context;
}

void close_context(drupe_context *context)
{
    B->context_close(context);
    free_object(context);
}

drupe_status try_queue(drupe_context *context, drupe_device *device, uint32_t flags, drupe_queue **queue)
{
    *queue = make_object(sizeof **queue, B->size.queue);
    (*queue)->context = context;
    (*queue)->device = device;
    drupe_status status = B->queue_open(*queue, flags);
    if (status != DRUPE_OK) close_queue(*queue);
    return status;
}

void close_queue(drupe_queue *queue)
{
    B->queue_close(queue);
    free_object(queue);
}

drupe_event *make_event(drupe_queue *queue)
{
    drupe_event *event = make_object(sizeof *event, B->size.event);
    event->queue = queue;
    return event;
}

void close_event(drupe_event *event)
{
    B->event_close(event);
    free_object(event);
}

drupe_status try_program(drupe_context *context, drupe_device *device, const char *text, const char *options,
                         char **log, drupe_program **program)
{
    drupe_source source = {
        .language = DRUPE_LANG_OPENCL_C, .bytes = text, .size = strlen(text), .options = options};
    return try_source(context, device, &source, log, program);
}

drupe_status try_source(drupe_context *context, drupe_device *device, const drupe_source *source, char **log,
                        drupe_program **program)
{
    *program = make_object(sizeof **program, B->size.program);
    (*program)->context = context;
    (*program)->device = device;
    drupe_status status = B->program_open(*program, source, log);
    if (status == DRUPE_OK) status = B->program_names(*program, &(*program)->names);
    if (status != DRUPE_OK) close_program(*program);
    return status;
}

void close_program(drupe_program *program)
{
    B->program_close(program);
    free(program->names);
    free_object(program);
}

drupe_status try_kernel(drupe_program *program, const char *name, drupe_kernel **kernel)
{
    *kernel = make_object(sizeof **kernel, B->size.kernel);
    (*kernel)->program = program;
    strncpy((*kernel)->name, name, sizeof(*kernel)->name - 1);
    drupe_status status = B->kernel_open(*kernel, name);
    if (status != DRUPE_OK) close_kernel(*kernel);
    return status;
}

void close_kernel(drupe_kernel *kernel)
{
    B->kernel_close(kernel);
    free_object(kernel);
}

void need_memory(void)
{
    void *state = load_backend("");
    drupe_device *device = make_device(state, 0);
    bool has = info_number(device, DRUPE_INFO_USM_DEVICE) != DRUPE_USM_NONE;
    close_device(device);
    B->unload(state);
    if (!has) skip();
}

/* --- Helpers -------------------------------------------------------------------------------------------- */

static void fixture_open_with(fixture *b, const char *shim, uint32_t flags)
{
    *b = (fixture){0};
    b->state = load_backend(shim);
    b->device = make_device(b->state, 0);
    b->context = make_context(&b->device, 1);
    assert_int_equal(try_queue(b->context, b->device, flags, &b->queue), DRUPE_OK);
}

void fixture_open(fixture *b, const char *shim)
{
    fixture_open_with(b, shim, DRUPE_QUEUE_DEFAULT);
}

void fixture_open_profiling(fixture *b, const char *shim)
{
    fixture_open_with(b, shim, DRUPE_QUEUE_PROFILING);
}

void fixture_close(fixture *b)
{
    close_queue(b->queue);
    close_context(b->context);
    close_device(b->device);
    B->unload(b->state);
}

uint64_t info_number(drupe_device *device, drupe_info key)
{
    uint64_t value[3] = {0};
    assert_int_equal(B->device_info(device, key, value, NULL), DRUPE_OK);
    return value[0];
}

void wait_idle(drupe_queue *queue)
{
    assert_int_equal(B->queue_wait(queue, UINT64_C(60000000000)), DRUPE_OK);
}

void assert_error(drupe_status got, drupe_status status, const char *part)
{
    const drupe_error *error = drupe_error_last();
    if (got != status || error->status != status || !strstr(error->text, part)) {
        print_error("status %s, text: %s\n", drupe_status_name(got), error->text);
    }
    assert_int_equal(got, status);
    assert_int_equal(error->status, status);
    assert_non_null(strstr(error->text, part));
}
