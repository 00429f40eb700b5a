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

/* Built on a thread of the engine: taken, and left. */
static drupe_status on_a_thread(struct walker *w)
{
    drupe_source text = {.language = w->language, .bytes = w->source};
    drupe_build *build;
    char *log = NULL;
    if (w->source) text.size = strlen(w->source);
    GO(walk_open(w));
    GO(drupe_build_begin(w->context, w->device, &text, &build));
    while (!drupe_build_wait(build, SECOND)) {}
    drupe_status status = drupe_build_take(build, &log, &w->program);
    free(log);
    GO(status);
    GO(drupe_build_begin(w->context, w->device, &text, &build));
    drupe_build_leave(build);
    drupe_builds_end(LONG);
    return drupe_builds() == 0 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* A kernel whose arguments are words, where the device tells. */
static drupe_status words(struct walker *w)
{
    GO(walk_open_memory(w));
    GO(walk_open_kernel(w));
    const drupe_range range = {.dims = 1, .global = {1}};
    const drupe_submission s = {.queue = w->queue, .memories = w->memory};
    uint64_t given[3] = {(uintptr_t)drupe_memory_pointer(w->memory[0]), 1, 0};
    static double values[3];
    REFUSED(drupe_submit_words(&s, w->kernel, &range, given, NULL), DRUPE_E_INVALID);
    if (!w->source) return DRUPE_OK;
    drupe_kernel_release(w->kernel);
    w->kernel = NULL;
    GO(drupe_kernel_open(w->program, "put", &w->kernel));
    if (!drupe_kernel_words(w->kernel)) return DRUPE_OK;
    for (int i = 0; i < 3; i++) {
        float value = (float)i + 0.5f;
        given[1] = (uint64_t)i;
        memcpy(&given[2], &value, sizeof value);
        GO(drupe_submit_words(&s, w->kernel, &range, given, i == 1 ? &w->events[0] : NULL));
    }
    GO(drupe_submit_copy(&s, values, drupe_memory_pointer(w->memory[0]), sizeof values, &w->events[1]));
    GO(drupe_event_wait(w->events[1], LONG));
    return values[0] == 0.5 && values[1] == 1.5 && values[2] == 2.5 ? DRUPE_OK : DRUPE_E_INTERNAL;
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

static drupe_status binary(struct walker *w)
{
    GO(walk_open(w));
    GO(walk_open_kernel(w));
    size_t size;
    drupe_status status = drupe_program_binary(w->program, &w->bytes[0], &size);
    if (status == DRUPE_E_UNSUPPORTED) return DRUPE_OK;
    GO(status);
    drupe_kernel_release(w->kernel);
    drupe_program_release(w->program);
    w->kernel = NULL;
    w->program = NULL;
    drupe_source source = {.language = DRUPE_LANG_BINARY, .bytes = w->bytes[0], .size = size};
    GO(drupe_program_open(w->context, w->device, &source, NULL, &w->program));
    GO(drupe_kernel_open(w->program, "sequence_f64", &w->kernel));
    return DRUPE_OK;
}

static drupe_status spirv(struct walker *w)
{
    static const uint32_t junk[] = {0x07230203, 0x00010000, 0, 8, 0, 0xffff0001};
    drupe_spec_constant *constants;
    size_t count;
    (void)w;
    REFUSED(drupe_spirv_constants(junk, sizeof junk, &constants, &count), DRUPE_E_INVALID);
    return DRUPE_OK;
}

static bool visit(const drupe_cache_entry *entry, void *user)
{
    (void)user;
    return entry->name != NULL;
}

static drupe_status cache(struct walker *w)
{
    drupe_cache_info info;
    uint64_t freed;
    drupe_cache_info_get(&info);
    if (!drupe_cache_is_on() || !info.on) return DRUPE_OK;
    GO(walk_open(w));
    GO(walk_open_kernel(w));
    drupe_cache_bytes_add("key", 3, "bytes", 5);
    GO(drupe_cache_flush(LONG));
    void *bytes;
    size_t size;
    if (drupe_cache_bytes_find("key", 3, &bytes, &size))
        free(bytes); /* for lack of memory it was not written */
    GO(drupe_cache_each(visit, w));
    return drupe_cache_clear(&freed);
}

/* Kernels in C, where the machine has a compiler. */
static drupe_status in_c(struct walker *w)
{
    static const char text[] = "kernel void put(double *out, double start)"
                               "{ out[get_global_id(0)] = start + get_global_id(0); }";
    drupe_source source = {.language = DRUPE_LANG_C, .bytes = text, .size = sizeof text - 1};
    drupe_arg_info info;
    char *log = NULL;
    GO(walk_open_memory(w));
    if (!(drupe_device_number(w->device, DRUPE_INFO_LANGUAGES, 0) & DRUPE_LANG_C)) return DRUPE_OK;
    drupe_status status = drupe_program_open(w->context, w->device, &source, &log, &w->program);
    free(log);
    GO(status);
    GO(drupe_kernel_open(w->program, "put", &w->kernel));
    status = drupe_kernel_arg(w->kernel, 0, &info);
    if (status != DRUPE_E_UNSUPPORTED) GO(status);
    void *pointer = drupe_memory_pointer(w->memory[0]);
    const double start = 1;
    static double last;
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof pointer, &pointer},
                              {DRUPE_ARG_VALUE, sizeof start, &start}};
    const drupe_range range = {.dims = 2, .global = {ELEMENTS / 2, 2}},
                      all = {.dims = 1, .global = {ELEMENTS}};
    drupe_submission s = {.queue = w->queue};
    GO(drupe_submit_kernel(&s, w->kernel, &range, args, 2, NULL));
    GO(drupe_submit_kernel(&s, w->kernel, &all, args, 2, NULL));
    GO(drupe_submit_copy(&s, &last, (double *)pointer + ELEMENTS - 1, sizeof last, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    return last == ELEMENTS ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* `host` has instrumented kernels of its own. */
static drupe_status instrumented(struct walker *w)
{
    const struct {
        int64_t n, stride;
        double start[2], step[2];
        int32_t dtype, reserved;
    } params = {ELEMENTS, 1, {0}, {1}, DRUPE_FLOAT64, 0};
    if (w->language != DRUPE_LANG_BUILTIN) return DRUPE_OK;
    drupe_check_begin();
    w->checked = true;
    GO(walk_open_memory(w));
    GO(walk_open_kernel(w));
    drupe_kernel_release(w->kernel);
    w->kernel = NULL;
    GO(drupe_kernel_open(w->program, "sequence_f64" DRUPE_BUILTIN_CHECKED, &w->kernel));
    void *pointer = drupe_memory_pointer(w->memory[0]);
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof pointer, &pointer},
                              {DRUPE_ARG_VALUE, sizeof params, &params}};
    const drupe_range range = {.dims = 1, .global = {4}};
    drupe_access access = {pointer, ELEMENTS * 8, true};
    const size_t element = 8;
    drupe_submission s = {.queue = w->queue, .accesses = &access, .naccesses = 1};
    GO(drupe_check_submit(&s, w->kernel, &range, args, 2, &element));
    GO(drupe_queue_wait(w->queue, LONG));
    access.bytes = 8;
    GO(drupe_check_submit(&s, w->kernel, &range, args, 2, &element));
    REFUSED(drupe_queue_wait(w->queue, LONG), DRUPE_E_CHECK);
    return DRUPE_OK;
}

const walk_scene walk_program_scenes[] = {{"binary", binary, true}, {"spirv", spirv, false},
                                          {"cache", cache, true},   {"launch", launch, true},
                                          {"kernel", ask, true},    {"broken", broken, true},
                                          {"words", words, true},   {"instrumented", instrumented, true},
                                          {"c", in_c, true},        {"on a thread", on_a_thread, true},
                                          {NULL, NULL, false}};
