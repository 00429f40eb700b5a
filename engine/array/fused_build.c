/* When fused kernels are built, and which are kept.
 *
 * One mutex guards what is known of all recipes, and the list of those that wait. A service has them built
 * one after the other, each on a thread of core's, and waits for that in slices, so that it can end
 * meanwhile: the build goes on by itself then, for the disk cache. */
#include "array/fused_room.h"
#include "base/service.h"
#include <stdlib.h>
#include <string.h>

#define USES       3    /* what comes a third time comes more often */
#define KNOWN_MOST 1024 /* recipes of a target that are remembered */
#define BUILT_MOST 256  /* of those, kernels */
#define WAIT_MOST  64   /* that wait; what comes while there are more is asked about at its next use */
#define SLICE_NS   UINT64_C(10000000)

typedef struct fused_entry {
    struct fused_entry *next; /* of those that wait */
    drupe_target *target;
    drupe_fused *f;       /* a copy, until it is over */
    drupe_kernel *kernel; /* NULL: none yet, or never */
    uint64_t used;        /* when, in uses of any recipe */
    uint32_t uses, holds; /* holds: in use without the lock */
    bool waits, looked;   /* looked: the disk cache has been asked */
    bool over;            /* built, or will not be */
    fused_recipe recipe;
} fused_entry;

static uint64_t work(void *unused);

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* nothing waits any more */
    drupe_service service;
    fused_entry *first, **end;
    size_t waiting;
    bool working;
    uint64_t uses;
} builds = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER,
            .service = {.name = "drupe-fuse", .lock = &builds.lock, .step = work},
            .end = &builds.first};

/* --- What is known of recipes ---------------------------------------------------------------------------
 */

static void entry_free(fused_entry *entry)
{
    drupe_kernel_release(entry->kernel);
    free(entry->f);
    free(entry);
}

/* Drop what was used longest ago, of those that have a kernel or of all, while there are `most` or more. */
static void make_room(drupe_target *t, size_t most, bool built)
{
    for (;;) {
        fused_entry *oldest = NULL;
        size_t at = 0, count = 0;
        for (fused_entry *one; (one = drupe_map_next(&t->fused, &at, NULL, NULL));) {
            if (built && !one->kernel) continue;
            count++;
            if (!one->waits && !one->holds && (!oldest || one->used < oldest->used)) oldest = one;
        }
        if (count < most || !oldest) return;
        (void)drupe_map_remove(&t->fused, oldest->recipe.bytes, oldest->recipe.size);
        entry_free(oldest);
    }
}

/* Whether the device takes the arguments of such a kernel. */
static bool has_room(const drupe_target *t, const drupe_fused *f, const fused_form *form)
{
    uint64_t params[FUSED_PARAMS_MOST];
    const size_t bytes = (size_t)f->noperands * sizeof(void *) + drupe_fused_fill(f, form, 1, params);
    return bytes <= drupe_device_number(t->device, DRUPE_INFO_MAX_PARAMETER_SIZE, 1024);
}

/* Kernels for CPUs compute some functions by vectors, which may differ in a bit from those of single numbers.
 */
static bool keeps_bits(const drupe_target *t, const drupe_fused *f)
{
    bool good = true;
    for (int i = 0; i < f->nsteps; i++) {
        const bool floats = drupe_dtype_row((drupe_dtype)f->steps[i].compute)->kind == KIND_FLOAT;
        good = good && !(floats && drupe_op_row(f->steps[i].op)->vector);
    }
    return good || t->gpu_form;
}

/* Release the kernels of a target. */
static void close_all(drupe_target *target)
{
    size_t at = 0;
    pthread_mutex_lock(&builds.lock);
    for (fused_entry *one; (one = drupe_map_next(&target->fused, &at, NULL, NULL));) entry_free(one);
    drupe_map_clear(&target->fused);
    pthread_mutex_unlock(&builds.lock);
}

static fused_entry *entry_new(drupe_target *t, const drupe_fused *f, const fused_form *form,
                              const fused_recipe *recipe)
{
    fused_entry *entry = calloc(1, sizeof(*entry));
    if (!entry) return NULL;
    entry->target = t;
    t->fused_close = close_all;
    entry->recipe = *recipe;
    entry->over = !has_room(t, f, form) || !keeps_bits(t, f);
    if (!entry->over && (entry->f = malloc(sizeof(*f)))) *entry->f = *f;
    make_room(t, KNOWN_MOST, false);
    if ((entry->over || entry->f) &&
        drupe_map_put(&t->fused, recipe->bytes, recipe->size, entry, NULL) == DRUPE_OK)
        return entry;
    entry_free(entry);
    return NULL;
}

/* --- Builds ----------------------------------------------------------------------------------------------
 */

static bool is_stopping(void)
{
    pthread_mutex_lock(&builds.lock);
    const bool stopping = builds.service.stopping;
    pthread_mutex_unlock(&builds.lock);
    return stopping;
}

static drupe_status build_behind(const drupe_target *t, const drupe_source *source, drupe_program **program)
{
    drupe_build *build;
    char *log = NULL;
    DRUPE_TRY(drupe_build_begin(t->context, t->device, source, &build));
    while (!drupe_build_wait(build, SLICE_NS)) {
        if (!is_stopping()) continue;
        drupe_build_leave(build);
        return drupe_error_set(DRUPE_E_CANCELLED, "The process ends.");
    }
    const drupe_status status = drupe_build_take(build, &log, program);
    free(log);
    return status;
}

/* What needs too many registers for groups of that size is no kernel. */
static drupe_status check_group(const drupe_target *t, drupe_kernel **kernel)
{
    uint64_t most;
    if (!t->gpu_form || drupe_kernel_number(*kernel, DRUPE_KERNEL_WORK_GROUP_SIZE, &most) != DRUPE_OK ||
        most >= t->group)
        return DRUPE_OK;
    drupe_kernel_release(*kernel);
    *kernel = NULL;
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "The kernel's groups would be too small.");
}

/* The lock is not held; `flags` are a source's. */
static drupe_status build(const fused_entry *entry, uint32_t flags, drupe_kernel **kernel)
{
    const drupe_target *t = entry->target;
    drupe_program *program = NULL;
    drupe_text text = {0};
    char name[FUSED_NAME_SIZE];
    *kernel = NULL;
    drupe_status status = drupe_fused_print(t, entry->f, &text);
    const drupe_source source = {.language = DRUPE_LANG_OPENCL_C,
                                 .flags = flags,
                                 .bytes = drupe_text_get(&text),
                                 .size = text.length,
                                 .options = t->options};
    if (status == DRUPE_OK && flags & DRUPE_SOURCE_BACKGROUND)
        status = build_behind(t, &source, &program);
    else if (status == DRUPE_OK)
        status = drupe_program_open(t->context, t->device, &source, NULL, &program);
    drupe_text_clear(&text);
    if (status != DRUPE_OK) return status;
    drupe_fused_name(&entry->recipe, name);
    status = drupe_kernel_open(program, name, kernel);
    drupe_program_release(program);
    return status == DRUPE_OK ? check_group(t, kernel) : status;
}

/* The lock is held. A kernel that another thread has made meanwhile stays. */
static void entry_finish(fused_entry *entry, drupe_kernel *kernel)
{
    entry->over = true;
    if (entry->kernel || !kernel) {
        drupe_kernel_release(kernel);
        return;
    }
    make_room(entry->target, BUILT_MOST, true);
    entry->kernel = kernel;
}

static void entry_let_go(fused_entry *entry)
{
    if (--entry->holds || !entry->over) return;
    free(entry->f);
    entry->f = NULL;
}

static void work_on(fused_entry *entry)
{
    drupe_kernel *kernel = NULL;
    const bool looked = entry->looked;
    drupe_status status = DRUPE_E_NOT_FOUND;
    pthread_mutex_unlock(&builds.lock);
    if (!looked) status = build(entry, DRUPE_SOURCE_BACKGROUND | DRUPE_SOURCE_STORED, &kernel);
    pthread_mutex_lock(&builds.lock);
    entry->looked = true;
    if (status == DRUPE_E_NOT_FOUND) {
        if (entry->uses < USES) return;
        pthread_mutex_unlock(&builds.lock);
        status = build(entry, DRUPE_SOURCE_BACKGROUND, &kernel);
        pthread_mutex_lock(&builds.lock);
    }
    if (status != DRUPE_E_CANCELLED) entry_finish(entry, kernel);
}

static uint64_t work(void *unused)
{
    (void)unused;
    fused_entry *entry = builds.first;
    if (!entry) return UINT64_MAX;
    builds.first = entry->next;
    builds.waiting--;
    if (!builds.first) builds.end = &builds.first;
    builds.working = true;
    entry->holds++;
    entry->waits = false;
    work_on(entry);
    entry_let_go(entry);
    builds.working = false;
    pthread_cond_broadcast(&builds.changed);
    return 0;
}

static void enlist(fused_entry *entry)
{
    if (entry->waits || entry->holds || (entry->looked && entry->uses < USES)) return;
    if (builds.waiting == WAIT_MOST) return;
    if (drupe_service_start(&builds.service) != DRUPE_OK) return;
    entry->waits = true;
    entry->next = NULL;
    *builds.end = entry;
    builds.end = &entry->next;
    builds.waiting++;
    drupe_service_wake(&builds.service);
}

/* For tests, and who would rather wait. */
static void build_now(fused_entry *entry)
{
    drupe_kernel *kernel = NULL;
    entry->holds++;
    pthread_mutex_unlock(&builds.lock);
    const drupe_status status = build(entry, 0, &kernel);
    pthread_mutex_lock(&builds.lock);
    entry_finish(entry, status == DRUPE_OK ? kernel : NULL);
    entry_let_go(entry);
}

void drupe_fused_ready(drupe_target *target, const drupe_fused *f, drupe_kernel **kernel)
{
    fused_form form;
    fused_recipe recipe;
    *kernel = NULL;
    if (target->builtin || target->checked || f->reduction.op >= 0) return;
    drupe_fused_form(target, f, &form);
    drupe_fused_recipe(f, &form, &recipe);
    pthread_mutex_lock(&builds.lock);
    fused_entry *entry = drupe_map_get(&target->fused, recipe.bytes, recipe.size);
    if (!entry) entry = entry_new(target, f, &form, &recipe);
    if (entry) {
        entry->used = ++builds.uses;
        entry->uses += entry->uses < USES;
        if (!entry->over) {
            const char *how = getenv("DRUPE_FUSE_BUILD");
            if (how && strcmp(how, "always") == 0)
                build_now(entry);
            else
                enlist(entry);
        }
        *kernel = drupe_kernel_retain(entry->kernel);
    }
    pthread_mutex_unlock(&builds.lock);
}

/* --- The end ----------------------------------------------------------------------------------------------
 */

drupe_status drupe_fused_settle(uint64_t timeout_ns)
{
    const uint64_t deadline = drupe_deadline(timeout_ns);
    bool in_time = true;
    pthread_mutex_lock(&builds.lock);
    while ((builds.first || builds.working) && in_time)
        in_time = drupe_cond_wait_until(&builds.changed, &builds.lock, deadline);
    const bool done = !builds.first && !builds.working;
    pthread_mutex_unlock(&builds.lock);
    return done ? DRUPE_OK : drupe_error_set(DRUPE_E_TIMEOUT, "Fused kernels are still being built.");
}

void drupe_fused_stop(void)
{
    pthread_mutex_lock(&builds.lock);
    for (fused_entry *entry = builds.first; entry; entry = entry->next) entry->waits = false;
    builds.first = NULL;
    builds.waiting = 0;
    builds.end = &builds.first;
    drupe_service_stop(&builds.service);
    pthread_cond_broadcast(&builds.changed);
    pthread_mutex_unlock(&builds.lock);
}
