/* Programs and kernels. */
#include "walk.h"

static drupe_status launch(struct walker *w)
{
    GO(walk_open_memory(w));
    GO(walk_open_kernel(w));
    GO(walk_submit(w, w->queue, w->memory[0], 1, NULL, 0, &w->events[0]));
    GO(drupe_queue_open(w->context, w->device, 0, &w->aside));
    GO(walk_submit(w, w->aside, w->memory[1], 2, w->events, 1, &w->events[1]));
    static double values[2];
    drupe_submission s = {.queue = w->aside};
    GO(drupe_submit_copy(&s, &values[0], drupe_memory_pointer(w->memory[0]), sizeof(double), NULL));
    GO(drupe_submit_copy(&s, &values[1], (double *)drupe_memory_pointer(w->memory[1]) + ELEMENTS - 1,
                         sizeof(double), &w->events[2]));
    GO(drupe_event_wait(w->events[2], LONG));
    return values[0] == 1 && values[1] == ELEMENTS + 1 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status ask(struct walker *w)
{
    drupe_arg_info info;
    drupe_kernel *none;
    GO(walk_open(w));
    GO(walk_open_kernel(w));
    drupe_kernel *same = drupe_kernel_retain(w->kernel);
    drupe_program *program = drupe_program_retain(w->program);
    bool right = strcmp(drupe_kernel_name(same), "sequence_f64") == 0 &&
                 drupe_kernel_program(same) == program && drupe_program_context(program) == w->context &&
                 drupe_program_device(program) == w->device && drupe_program_kernel_names(program) != NULL;
    drupe_program_release(program);
    drupe_kernel_release(same);
    for (int key = 0; key < DRUPE_KERNEL_KEY_COUNT; key++) {
        uint64_t value;
        drupe_status status = drupe_kernel_number(w->kernel, (drupe_kernel_key)key, &value);
        if (status != DRUPE_E_UNSUPPORTED) GO(status);
    }
    drupe_status status = drupe_kernel_arg(w->kernel, 0, &info);
    if (status != DRUPE_E_UNSUPPORTED) GO(status);
    REFUSED(drupe_kernel_open(w->program, "no_such_kernel", &none), DRUPE_E_NOT_FOUND);
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status broken(struct walker *w)
{
    char *log = NULL;
    GO(walk_open(w));
    drupe_source source = {.language = DRUPE_LANG_OPENCL_C, .bytes = "kernel void f( {", .size = 16};
    drupe_status status = drupe_program_open(w->context, w->device, &source, &log, &w->program);
    w->bytes[0] = log;
    return walk_refused(status, w->source ? DRUPE_E_BUILD_FAILED : DRUPE_E_UNSUPPORTED, "a broken program");
}

const walk_scene walk_program_scenes[] = {
    {"launch", launch, true}, {"kernel", ask, true}, {"broken", broken, true}, {NULL, NULL, false}};
