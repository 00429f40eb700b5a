/* See walk.h. DRUPE_TEST_BACKEND chooses the device; arguments: names of scenes, all if there are none.
 *
 * Where a driver builds programs only each 9th step is walked; DRUPE_WALK=N walks each N-th of all. */
#include "walk.h"
#include "layers/fault_layer.h"
#include "wrap.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define MOST_RUNS 20000 /* of one scene and one way of failing: an end for what never ends */

static char now[256]; /* what is being walked, for the report of a hang or a crash */
static unsigned defects, runs;
static bool disturbed; /* something is made to fail in this run */

static void defect(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", now);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    defects++;
}

/* --- What is heard -------------------------------------------------------------------------------------- */

drupe_status walk_heard(drupe_status status, const char *call)
{
    const drupe_error *error = drupe_error_last();
    size_t length = strlen(error->text);
    if (error->status != status)
        defect("%s answered %s, the error says %s", call, drupe_status_name(status),
               drupe_status_name(error->status));
    else if (status == DRUPE_E_BUILD_FAILED && length >= 20)
        return status; /* in a compiler's own words */
    else if (length < 20 || strstr(error->text, "(null)") || !strchr(".:)!", error->text[length - 1]))
        defect("%s is no sentence: '%s' (%s)", call, error->text, drupe_status_name(status));
    else if (!disturbed)
        defect("%s failed: %s", call, error->text);
    return status;
}

drupe_status walk_refused(drupe_status status, drupe_status expected, const char *call)
{
    if (status == expected) {
        bool were = disturbed;
        disturbed = true;
        walk_heard(status, call);
        disturbed = were;
        return DRUPE_OK;
    }
    if (status != DRUPE_OK) return walk_heard(status, call);
    if (!disturbed) defect("%s did not fail", call);
    return DRUPE_OK;
}

/* --- What scenes share ---------------------------------------------------------------------------------- */

typedef struct sequence_params {
    int64_t n, stride;
    double start[2], step[2]; /* sixteen bytes each, as constants of all types have */
    int32_t dtype, reserved;
} sequence_params;

static const char source[] =
    "typedef struct { long n, stride; double start[2], step[2]; int dtype, reserved; } params;\n"
    "kernel void sequence_f64(global double *out, const params p)\n"
    "{ for (long i = get_global_id(0); i < p.n; i += get_global_size(0)) out[i] = p.start[0] + i * "
    "p.step[0]; }\n"
    "kernel void put(global double *out, const int at, const float value) { out[at] = value; }\n";

drupe_status walk_open(struct walker *w)
{
    GO(drupe_device_select(w->filter, &w->device));
    GO(drupe_device_context(w->device, &w->context));
    GO(drupe_queue_open(w->context, w->device, 0, &w->queue));
    return DRUPE_OK;
}

drupe_status walk_open_memory(struct walker *w)
{
    drupe_status status = walk_open(w);
    if (status != DRUPE_OK) return status;
    for (int i = 0; i < 2; i++)
        GO(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, ELEMENTS * sizeof(double), 0, &w->memory[i]));
    return DRUPE_OK;
}

drupe_status walk_open_kernel(struct walker *w)
{
    drupe_source text = {.language = w->language, .bytes = w->source};
    char *log = NULL;
    if (w->source) text.size = strlen(w->source);
    drupe_status status = drupe_program_open(w->context, w->device, &text, &log, &w->program);
    free(log);
    GO(status);
    GO(drupe_kernel_open(w->program, "sequence_f64", &w->kernel));
    return DRUPE_OK;
}

drupe_status walk_submit(struct walker *w, drupe_queue *queue, drupe_memory *out, double start,
                         drupe_event *const *waits, size_t nwaits, drupe_event **event)
{
    const sequence_params params = {
        .n = ELEMENTS, .stride = 1, .start = {start}, .step = {1}, .dtype = DRUPE_FLOAT64};
    void *pointer = drupe_memory_pointer(out);
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof pointer, &pointer},
                              {DRUPE_ARG_VALUE, sizeof params, &params}};
    const drupe_range range = {.dims = 1, .global = {4}};
    drupe_submission s = {.queue = queue, .waits = waits, .nwaits = nwaits};
    return drupe_submit_kernel(&s, w->kernel, &range, args, 2, event);
}

/* --- One run -------------------------------------------------------------------------------------------- */

/* Queues go before what their work uses, and drain. */
static void empty(struct walker *w)
{
    /* What waits for an event of the scene's own would wait for ever. */
    for (size_t i = 0; i < COUNT(w->events); i++) {
        if (w->events[i] && !drupe_event_queue(w->events[i]) &&
            drupe_event_finish(w->events[i], NULL) != DRUPE_OK)
            defect("an event cannot be finished: %s", drupe_error_last()->text);
    }
    const drupe_error given_up = {.status = DRUPE_E_CANCELLED, .text = "The scene has ended."};
    if (w->turn && drupe_event_finish(w->turn, &given_up) != DRUPE_OK)
        defect("a turn cannot be finished: %s", drupe_error_last()->text);
    drupe_watch_close(w->watch, NULL);
    drupe_event_release(w->turn);
    if (w->checked) drupe_check_end();
    drupe_queue_release(w->queue);
    drupe_queue_release(w->aside);
    drupe_queue_release(w->timed);
    for (size_t i = 0; i < COUNT(w->events); i++) drupe_event_release(w->events[i]);
    for (size_t i = 0; i < COUNT(w->arrays); i++) drupe_array_clear(&w->arrays[i]);
    for (size_t i = 0; i < COUNT(w->memory); i++) drupe_memory_release(w->memory[i]);
    drupe_kernel_release(w->kernel);
    drupe_program_release(w->program);
    drupe_context_release(w->context);
    drupe_context_release(w->second);
    for (size_t i = 0; i < COUNT(w->parts); i++) drupe_device_release(w->parts[i]);
    drupe_device_release(w->device);
    drupe_device_release(w->other);
    for (size_t i = 0; i < COUNT(w->bytes); i++) free(w->bytes[i]);
}

/* How many failures were made. */
static uint64_t play(const struct walker *stage, const walk_scene *scene)
{
    struct walker w = *stage;
    drupe_failure failure;
    alarm(120);
    runs++;
    drupe_status status = scene->run(&w);
    if (status != DRUPE_OK && !disturbed) defect("ended with %s", drupe_status_name(status));
    uint64_t made = drupe_fault_made() + wrap_made();
    /* What is let go must not fail any more: nobody is there to hear it. */
    wrap_plan(WRAP_NOTHING, 0);
    if (drupe_fault_plan(NULL) != DRUPE_OK) defect("the plan cannot be withdrawn");
    empty(&w);
    drupe_array_forget();
    while (drupe_failure_take(&failure)) free(failure.cell);
    drupe_device_figures figures[8];
    drupe_library_settle(LONG);
    for (size_t i = drupe_device_figures_of(figures, COUNT(figures)); i-- > 0;) {
        const drupe_device_use *use = &figures[i].use;
        if (use->used) defect("%llu bytes of %s are left", (unsigned long long)use->used, use->filter);
    }
    size_t left = drupe_library_close(LONG);
    if (left) defect("%zu objects are left", left);
    drupe_library_observe(NULL);
    return made;
}

/* --- The ways of failing -------------------------------------------------------------------------------- */

typedef struct way {
    const char *plan; /* with %lu for the number of the call; NULL: `wrap` */
    wrap_kind wrap;
    const char *name;
    bool host_only; /* a driver's own allocations would fail too, or it takes too long */
} way;

static const way ways[] = {
    {"any:%lu=INTERNAL", WRAP_NOTHING, "calls", false},
    {"any:%lu=NO_MEMORY", WRAP_NOTHING, "no memory", true},
    {"any:%lu+=INTERNAL", WRAP_NOTHING, "calls from there on", false},
    {"event:%lu=late", WRAP_NOTHING, "late", false},
    {"event:%lu+=NO_MEMORY", WRAP_NOTHING, "late from there on", true},
    {"device:lost@%lu", WRAP_NOTHING, "lost", false},
    {NULL, WRAP_MALLOC, "allocations", false},
    {NULL, WRAP_THREAD, "threads", false},
};

static unsigned long stride(const struct walker *stage, const walk_scene *scene)
{
    const char *wanted = getenv("DRUPE_WALK");
    unsigned long each = wanted ? strtoul(wanted, NULL, 10) : 0;
    if (each > 0) return each;
    return stage->source && scene->builds ? 9 : 1;
}

/* Until a run had no n-th step any more. */
static void walk_way(const struct walker *stage, const walk_scene *scene, const way *how)
{
    unsigned long n = 1, step = stride(stage, scene);
    for (disturbed = true; disturbed && n < MOST_RUNS; n += step) {
        char plan[64] = "";
        snprintf(now, sizeof now, "scene '%s', failing %s at %lu", scene->name, how->name, n);
        if (how->plan) snprintf(plan, sizeof plan, how->plan, n);
        if (drupe_fault_plan(plan) != DRUPE_OK) defect("%s", drupe_error_last()->text);
        wrap_plan(how->wrap, n);
        disturbed = play(stage, scene) > 0;
    }
    if (n >= MOST_RUNS) defect("is without end");
}

static void walk_scene_all(const struct walker *stage, const walk_scene *scene)
{
    unsigned before = runs, found = defects;
    bool host = strcmp(stage->filter, "host") == 0;
    snprintf(now, sizeof now, "scene '%s', undisturbed", scene->name);
    disturbed = false;
    play(stage, scene);
    for (size_t i = 0; i < COUNT(ways); i++) {
        if (host || !ways[i].host_only) walk_way(stage, scene, &ways[i]);
    }
    printf("%-20s %5u runs, %u defects\n", scene->name, runs - before, defects - found);
    fflush(stdout);
}

/* --- The program ---------------------------------------------------------------------------------------- */

static void report_end(int number)
{
    static const char hang[] = " (no end within the time)\n", crash[] = " (a crash)\n";
    const char *what = number == SIGALRM ? hang : crash;
    if (write(2, now, strlen(now)) < 0 || write(2, what, strlen(what)) < 0) _exit(3);
    signal(number == SIGALRM ? SIGABRT : number, SIG_DFL);
    raise(number == SIGALRM ? SIGABRT : number);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) return true;
    }
    return argc < 2;
}

int main(int argc, char **argv)
{
    static const walk_scene *const all[] = {walk_device_scenes,  walk_queue_scenes, walk_memory_scenes,
                                            walk_program_scenes, walk_array_scenes, walk_pending_scenes,
                                            walk_native_scenes,  walk_view_scenes};
    const char *backend = getenv("DRUPE_TEST_BACKEND");
    bool far = backend && strcmp(backend, "coarse") == 0; /* a GPU with device memory only */
    bool opencl = far || (backend && strcmp(backend, "opencl") == 0);
    const char *chosen = far ? "opencl:gpu" : "opencl:cpu";
    struct walker stage = {.filter = opencl ? chosen : "host",
                           .language = opencl ? DRUPE_LANG_OPENCL_C : DRUPE_LANG_BUILTIN,
                           .source = opencl ? source : NULL};
    drupe_device *device;
    size_t count = 0;
    setenv("DRUPE_HOST_THREADS", "2", 1);
    setenv("DRUPE_FUSE_IDLE", "0", 1); /* the same steps in every run */
    signal(SIGALRM, report_end);
    drupe_fault_layer(true);
    if (opencl && drupe_device_list(chosen, &device, 1, &count) == DRUPE_OK && count == 0) return 77;
    if (count) drupe_device_release(device);
    if (opencl) stage.other_filter = "host";
    drupe_library_close(LONG);
    for (size_t i = 0; i < COUNT(all); i++) {
        for (const walk_scene *scene = all[i]; scene->name; scene++) {
            if (wanted(scene->name, argc, argv)) walk_scene_all(&stage, scene);
        }
    }
    printf("%u runs, %u defects\n", runs, defects);
    return defects ? 1 : 0;
}
