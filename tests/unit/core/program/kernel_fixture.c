#include "kernel_fixture.h"
#include "core/program/program_room.h"
#include <pthread.h>

struct script script;
static const drupe_backend *real[2];

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed, entered;
} door = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static drupe_status say(drupe_status status)
{
    return status == DRUPE_OK ? status : drupe_error_set(status, "The compiler says no.");
}

static drupe_status device_info(drupe_device *device, drupe_info key, uint64_t number[3], drupe_text *text)
{
    const size_t which = device->slot == drupe_slot_at(1);
    if (key == DRUPE_INFO_EXTENSIONS && script.extensions) {
        drupe_text_printf(text, "%s", script.extensions);
        return DRUPE_OK;
    }
    if (key != DRUPE_INFO_LANGUAGES || !script.languages[which])
        return real[which]->device_info(device, key, number, text);
    number[0] = script.languages[which];
    return DRUPE_OK;
}

static drupe_status kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    (void)kernel;
    if (key != DRUPE_KERNEL_ARG_COUNT) {
        *value = 99;
        return say(script.number_answer);
    }
    *value = script.ndeclared;
    return say(script.count_answer);
}

static drupe_status kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info)
{
    (void)kernel;
    *info = script.declared[index % SCRIPT_ARGS];
    return say(script.arg_answer);
}

static drupe_status kernel_open(drupe_kernel *kernel, const char *name)
{
    (void)kernel;
    return strcmp(name, "absent") == 0 ? say(DRUPE_E_NOT_FOUND) : say(script.open_answer);
}

static void kernel_close(drupe_kernel *kernel)
{
    (void)kernel;
    script.kernels_closed++;
}

static drupe_status program_open(drupe_program *program, const drupe_source *source, char **log)
{
    pthread_mutex_lock(&door.lock);
    door.entered = true;
    pthread_cond_broadcast(&door.changed);
    while (door.closed) pthread_cond_wait(&door.changed, &door.lock);
    pthread_mutex_unlock(&door.lock);
    *log = strdup("a remark");
    if (memmem(source->bytes, source->size, "names", 5)) program->names = strdup("one;two");
    if (memmem(source->bytes, source->size, "wrong", 5)) return say(DRUPE_E_BUILD_FAILED);
    return DRUPE_OK;
}

static void program_close(drupe_program *program)
{
    (void)program;
    script.programs_closed++;
}

int script_setup(void **state)
{
    (void)state;
    setenv("DRUPE_CACHE", "0", 1);
    test_script_reset();
    assert_true(drupe_slot_count() == 2);
    script = (struct script){.device = NULL};
    for (size_t i = 0; i < 2; i++) {
        drupe_backend *table = &script.tables[i];
        real[i] = drupe_slot_at(i)->base;
        *table = *real[i];
        table->device_info = device_info;
        table->kernel_number = kernel_number;
        table->kernel_arg = kernel_arg;
        table->kernel_open = kernel_open;
        table->kernel_close = kernel_close;
        table->program_open = program_open;
        table->program_close = program_close;
        drupe_slot_at(i)->base = table;
    }
    for (size_t i = 0; i < SCRIPT_ARGS; i++) script.declared[i].lanes = 1;
    door.closed = door.entered = false;
    OK(drupe_device_select("host", &script.device));
    OK(drupe_device_context(script.device, &script.context));
    OK(drupe_queue_open(script.context, script.device, 0, &script.queue));
    return 0;
}

int script_teardown(void **state)
{
    (void)state;
    drupe_queue_release(script.queue);
    drupe_context_release(script.context);
    drupe_device_release(script.device);
    const size_t left = drupe_library_close(LONG);
    for (size_t i = 0; i < 2; i++) drupe_slot_at(i)->base = real[i];
    return left == 0 ? 0 : -1;
}

drupe_source script_source(const char *text)
{
    return (drupe_source){.language = DRUPE_LANG_OPENCL_C, .bytes = text, .size = strlen(text)};
}

drupe_program *script_program(const char *text)
{
    const drupe_source source = script_source(text);
    drupe_program *program;
    OK(drupe_program_open(script.context, script.device, &source, NULL, &program));
    return program;
}

drupe_kernel *script_kernel(const char *text)
{
    drupe_program *program = script_program(text);
    drupe_kernel *kernel;
    OK(drupe_kernel_open(program, "one", &kernel));
    drupe_program_release(program);
    return kernel;
}

void close_door(void)
{
    pthread_mutex_lock(&door.lock);
    door.closed = true;
    pthread_mutex_unlock(&door.lock);
}

void await_entered(void)
{
    pthread_mutex_lock(&door.lock);
    while (!door.entered) pthread_cond_wait(&door.changed, &door.lock);
    pthread_mutex_unlock(&door.lock);
}

void open_door(void)
{
    pthread_mutex_lock(&door.lock);
    door.closed = false;
    pthread_cond_broadcast(&door.changed);
    pthread_mutex_unlock(&door.lock);
}
