/* Programs that are built on a thread of their own, so that who waits for one can leave.
 *
 * A driver's compiler cannot be stopped, and a signal that reaches it makes its build fail
 * (driver/signals.c). So it runs on a thread that gets no signals and owns all that it needs. When nobody
 * waits any more the thread goes on, its program goes to the disk cache, and the rest is dropped. A process
 * that ends meanwhile must not destroy what the compiler works with: it leaves at once.
 *
 * A build that takes less than the start of a thread is done by who waits for it.
 *
 * Builds that nobody waits for give way by their thread's nice value. To run only when all else idles would
 * be less: such a thread may not be scheduled for long, and others wait for the locks that a driver takes. */
#include "base/file.h"
#include "core/program/program_room.h"
#include "driver/driver.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct drupe_build {
    drupe_build *next, **link;    /* among all that go on */
    _Atomic(uint32_t) references; /* the thread's and the waiter's */
    _Atomic(bool) stop;           /* nobody waits */
    bool over;
    _Atomic(bool) idle;     /* nobody has begun with it: who waits first does it */
    drupe_context *context; /* until it is over */
    drupe_device *device;   /* as well */
    drupe_source source;    /* its parts lie behind this struct */
    void *shown;            /* see drupe_core_building() */
    drupe_interrupts held;  /* of the waiting thread */
    drupe_status status;
    drupe_error error;
    char *log;
    drupe_program *program;
};

static struct builds {
    pthread_mutex_t lock; /* guards the list and `over` of all; a leaf */
    pthread_cond_t ended; /* some build is over */
    drupe_build *all;
    uint32_t awaited; /* of those that run: they are worth a wait at the end */
    bool ending;      /* the process is about to exit */
    _Atomic(uint32_t) running;
} builds = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

uint32_t drupe_builds(void)
{
    return atomic_load(&builds.running);
}

/* --- What a build owns ---------------------------------------------------------------------------------- */

static const void *put(char **to, const void *bytes, size_t size)
{
    char *copied = *to;
    if (!bytes) return NULL;
    memcpy(copied, bytes, size);
    *to += size;
    return copied;
}

static drupe_build *build_new(drupe_context *context, drupe_device *device, const drupe_source *source)
{
    size_t options = source->options ? strlen(source->options) + 1 : 0;
    size_t values = source->nvalues * sizeof *source->values, size = values + source->size + options;
    for (size_t i = 0; i < source->nvalues; i++) size += source->values[i].size;
    drupe_build *self = calloc(1, sizeof *self + size);
    if (!self) return NULL;
    char *to = (char *)(self + 1);
    drupe_spec_value *list = (drupe_spec_value *)(void *)to;
    self->source = *source;
    if (values > 0) self->source.values = put(&to, source->values, values);
    for (size_t i = 0; i < source->nvalues; i++)
        list[i].value = put(&to, source->values[i].value, source->values[i].size);
    self->source.bytes = put(&to, source->bytes, source->size);
    self->source.options = put(&to, source->options, options);
    self->context = drupe_context_retain(context);
    self->device = drupe_device_retain(device);
    atomic_init(&self->references, 2);
    return self;
}

static void build_release(drupe_build *self)
{
    if (atomic_fetch_sub(&self->references, 1) != 1) return;
    drupe_program_release(self->program);
    free(self->log);
    free(self);
}

/* --- The thread ----------------------------------------------------------------------------------------- */

static bool is_background(const drupe_build *self)
{
    return self->source.flags & DRUPE_SOURCE_BACKGROUND;
}

static void enlist(drupe_build *self)
{
    pthread_mutex_lock(&builds.lock);
    builds.awaited += !is_background(self);
    self->link = &builds.all;
    self->next = builds.all;
    if (builds.all) builds.all->link = &self->next;
    builds.all = self;
    atomic_fetch_add(&builds.running, 1);
    if (builds.ending && is_background(self)) drupe_exit_early(&builds.running);
    pthread_mutex_unlock(&builds.lock);
}

static void run(drupe_build *self)
{
    drupe_build_enter(true);
    drupe_process_stop_when(&self->stop);
    self->status = drupe_program_open(self->context, self->device, &self->source, &self->log, &self->program);
    self->error = *drupe_error_last();
    drupe_process_stop_when(NULL);
    /* Before it is over: who waited may count what is left. */
    drupe_device_release(self->device);
    drupe_context_release(self->context);
    drupe_build_enter(false);
    drupe_core_built(self->shown, self->status == DRUPE_OK);
}

static void finish(drupe_build *self, bool releases)
{
    pthread_mutex_lock(&builds.lock);
    const bool awaited = !is_background(self);
    *self->link = self->next;
    if (self->next) self->next->link = self->link;
    self->over = true;
    pthread_cond_broadcast(&builds.ended);
    pthread_mutex_unlock(&builds.lock);
    /* What it drops is the drivers' affair, too, and belongs to it. */
    if (releases) build_release(self);
    pthread_mutex_lock(&builds.lock);
    builds.awaited -= awaited;
    atomic_fetch_sub(&builds.running, 1);
    pthread_cond_broadcast(&builds.ended);
    pthread_mutex_unlock(&builds.lock);
}

static void *thread_main(void *user)
{
    const int last = 19;
    /* A system that refuses this builds as fast as ever. */
    if (is_background(user)) (void)setpriority(PRIO_PROCESS, (id_t)drupe_thread_id(), last);
    run(user);
    finish(user, true);
    return NULL;
}

/* On this one, which has the only reference. */
static void run_here(drupe_build *self)
{
    if (!atomic_exchange(&self->idle, false)) return;
    run(self);
    finish(self, false);
}

/* --- Waiting -------------------------------------------------------------------------------------------- */

static void leave_to_waiter(drupe_build *self)
{
    atomic_store(&self->references, 1);
    atomic_store(&self->idle, true);
}

drupe_status drupe_build_begin(drupe_context *context, drupe_device *device, const drupe_source *source,
                               drupe_build **build)
{
    pthread_t thread;
    *build = NULL;
    DRUPE_TRY(drupe_core_check());
    drupe_build *self = build_new(context, device, source);
    if (!self) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory to build a program.");
    bool compiles = source->language != DRUPE_LANG_BUILTIN && source->language != DRUPE_LANG_BINARY;
    bool quick = drupe_source_traits(device, source) & DRUPE_BUILD_QUICK;
    bool told = compiles && !quick && !is_background(self);
    self->shown = told ? drupe_core_building(source, device->filter) : NULL;
    enlist(self);
    drupe_interrupts_hold(&self->held);
    if (!quick && drupe_thread_start(&thread, thread_main, self, "drupe-build") == DRUPE_OK)
        pthread_detach(thread);
    else
        leave_to_waiter(self);
    *build = self;
    return DRUPE_OK;
}

bool drupe_build_wait(drupe_build *build, uint64_t timeout_ns)
{
    uint64_t deadline = drupe_deadline(timeout_ns);
    bool in_time = true;
    run_here(build);
    pthread_mutex_lock(&builds.lock);
    while (!build->over && in_time) in_time = drupe_cond_wait_until(&builds.ended, &builds.lock, deadline);
    bool over = build->over;
    pthread_mutex_unlock(&builds.lock);
    drupe_interrupts_look(&build->held);
    return over;
}

drupe_status drupe_build_take(drupe_build *build, char **log, drupe_program **program)
{
    (void)drupe_build_wait(build, DRUPE_FOREVER);
    drupe_interrupts_let_go(&build->held);
    *log = build->log;
    *program = build->program;
    build->log = NULL;
    build->program = NULL;
    drupe_status status = build->status;
    if (status != DRUPE_OK) status = drupe_error_restore(&build->error);
    build_release(build);
    return status;
}

void drupe_build_leave(drupe_build *build)
{
    atomic_store(&build->stop, true);
    run_here(build);
    drupe_interrupts_let_go(&build->held);
    build_release(build);
}

/* --- The end -------------------------------------------------------------------------------------------- */

void drupe_builds_end(uint64_t timeout_ns)
{
    uint64_t deadline = drupe_deadline(timeout_ns);
    bool in_time = true;
    if (drupe_core_check() != DRUPE_OK) return;
    pthread_mutex_lock(&builds.lock);
    for (drupe_build *one = builds.all; one; one = one->next) atomic_store(&one->stop, true);
    builds.ending = true;
    while (builds.awaited && in_time) in_time = drupe_cond_wait_until(&builds.ended, &builds.lock, deadline);
    pthread_mutex_unlock(&builds.lock);
    if (atomic_load(&builds.running)) drupe_exit_early(&builds.running);
}
