/* Kernels that print: which cell the observer is told of while their work is not over, and what waits. */
#include "base/service.h"
#include "core/services/services_room.h"
#include "drupe/program.h"
#include "test_script.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define OK(expression) check((expression), #expression, __LINE__)

static void check(drupe_status status, const char *what, int line)
{
    if (status != DRUPE_OK) fail_msg("line %d: %s: %s", line, what, drupe_error_last()->text);
}

/* --- The observer --------------------------------------------------------------------------------------- */

struct cell {
    _Atomic(int) references;
};

static struct cell first, second;
static struct cell *running; /* the cell that this thread works for, or NULL */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *printing_for; /* the lock's */

static void *cell_retain(void)
{
    if (running) atomic_fetch_add(&running->references, 1);
    return running;
}

static void cell_release(void *cell)
{
    if (cell) atomic_fetch_sub(&((struct cell *)cell)->references, 1);
}

static void *cell_share(void *cell)
{
    atomic_fetch_add(&((struct cell *)cell)->references, 1);
    return cell;
}

static bool failed(const drupe_failure *failure)
{
    (void)failure;
    return false;
}

static void on_printing(void *cell)
{
    pthread_mutex_lock(&lock);
    printing_for = cell;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static const drupe_observer observer = {.cell_retain = cell_retain,
                                        .cell_release = cell_release,
                                        .failed = failed,
                                        .cell_share = cell_share,
                                        .printing = on_printing};
static const drupe_observer deaf = {.cell_retain = cell_retain, .cell_release = cell_release};

/* Until the observer is told of this cell; core's threads tell it. */
static void expect_told(void *cell)
{
    struct timespec limit;
    int status = 0;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    pthread_mutex_lock(&lock);
    while (printing_for != cell && status == 0) status = pthread_cond_timedwait(&changed, &lock, &limit);
    pthread_mutex_unlock(&lock);
    assert_int_equal(status, 0);
}

static void *told(void)
{
    pthread_mutex_lock(&lock);
    void *cell = printing_for;
    pthread_mutex_unlock(&lock);
    return cell;
}

/* --- Work ----------------------------------------------------------------------------------------------- */

struct bench {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queues[2];
    drupe_kernel *prints, *silent;
    drupe_event *events[4];
};

static struct bench bench;

static drupe_kernel *open_kernel(const char *text)
{
    drupe_program *program;
    drupe_kernel *kernel = NULL;
    const drupe_source source = {.language = DRUPE_LANG_OPENCL_C, .bytes = text, .size = strlen(text)};
    if (drupe_program_open(bench.context, bench.device, &source, NULL, &program) != DRUPE_OK) return NULL;
    if (drupe_kernel_open(program, "f", &kernel) != DRUPE_OK) kernel = NULL;
    drupe_program_release(program);
    return kernel;
}

static int open_bench(uint32_t flags)
{
    setenv("DRUPE_CACHE", "0", 1);
    test_script_reset();
    drupe_library_observe(&observer);
    if (drupe_device_select("host", &bench.device) != DRUPE_OK ||
        drupe_device_context(bench.device, &bench.context) != DRUPE_OK)
        return -1;
    for (size_t i = 0; i < 2; i++)
        if (drupe_queue_open(bench.context, bench.device, flags, &bench.queues[i]) != DRUPE_OK) return -1;
    bench.prints = open_kernel("kernel void f() { printf(\"hello\"); }");
    bench.silent = open_kernel("kernel void f() { }");
    if (!bench.prints || !bench.silent) print_message("%s\n", drupe_error_last()->text);
    return bench.prints && bench.silent ? 0 : -1;
}

static int setup(void **state)
{
    (void)state;
    return open_bench(0);
}

static int setup_unordered(void **state)
{
    (void)state;
    return open_bench(DRUPE_QUEUE_OUT_OF_ORDER);
}

static int teardown(void **state)
{
    (void)state;
    running = NULL;
    for (size_t i = 0; i < DRUPE_COUNT_OF(bench.events); i++) {
        if (bench.events[i]) test_script_finish(bench.events[i], true); /* a test that failed has not */
        drupe_event_release(bench.events[i]);
        bench.events[i] = NULL;
    }
    drupe_kernel_release(bench.prints);
    drupe_kernel_release(bench.silent);
    for (size_t i = 0; i < 2; i++) drupe_queue_release(bench.queues[i]);
    drupe_context_release(bench.context);
    drupe_device_release(bench.device);
    const size_t left = drupe_library_close(UINT64_C(60000000000));
    drupe_library_observe(NULL);
    const bool even = atomic_load(&first.references) == 0 && atomic_load(&second.references) == 0;
    return left == 0 && even && told() == NULL ? 0 : -1;
}

/* Launch on a queue, for a cell. */
static void launch(size_t index, struct cell *cell, size_t queue, drupe_kernel *kernel)
{
    const drupe_submission s = {.queue = bench.queues[queue]};
    const drupe_range range = {.dims = 1, .global = {1}};
    running = cell;
    OK(drupe_submit_kernel(&s, kernel, &range, NULL, 0, &bench.events[index]));
    running = NULL;
}

static void finish(size_t index)
{
    test_script_finish(bench.events[index], true);
}

/* What work of this cell would wait for on the queue; retained. */
static drupe_event *predecessor_on(size_t queue, struct cell *cell)
{
    running = cell;
    drupe_event *event = drupe_prints_predecessor(bench.queues[queue]);
    running = NULL;
    return event;
}

/* Until the backend has the work. */
static void expect_submitted(size_t index)
{
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < 60000 && drupe_event_state_of(bench.events[index]) == DRUPE_EVENT_QUEUED; i++)
        nanosleep(&pause, NULL);
    assert_int_equal(drupe_event_state_of(bench.events[index]), DRUPE_EVENT_SUBMITTED);
}

/* --- What fails ------------------------------------------------------------------------------------------
 */

static enum { NOTHING, WATCH_OPEN, SERVICE, RECORD, WATCH_ADD, EVENT } fails;
static _Thread_local bool no_record; /* the next calloc() fails */
static void (*on_event)(void);       /* before an event is opened */

static bool failing(int what)
{
    if ((int)fails != what) return false;
    drupe_error_set(DRUPE_E_NO_MEMORY, "Planned.");
    return true;
}

drupe_status __real_drupe_watch_open(void (*wake)(void *user), void *user, drupe_watch **watch);
drupe_status __wrap_drupe_watch_open(void (*wake)(void *user), void *user, drupe_watch **watch);
drupe_status __wrap_drupe_watch_open(void (*wake)(void *user), void *user, drupe_watch **watch)
{
    return failing(WATCH_OPEN) ? DRUPE_E_NO_MEMORY : __real_drupe_watch_open(wake, user, watch);
}

drupe_status __real_drupe_watch_add(drupe_watch *watch, drupe_event *event, void *user);
drupe_status __wrap_drupe_watch_add(drupe_watch *watch, drupe_event *event, void *user);
drupe_status __wrap_drupe_watch_add(drupe_watch *watch, drupe_event *event, void *user)
{
    return failing(WATCH_ADD) ? DRUPE_E_NO_MEMORY : __real_drupe_watch_add(watch, event, user);
}

drupe_status __real_drupe_service_start(drupe_service *service);
drupe_status __wrap_drupe_service_start(drupe_service *service);
drupe_status __wrap_drupe_service_start(drupe_service *service)
{
    if (strcmp(service->name, "drupe-prints") != 0) return __real_drupe_service_start(service);
    if (failing(SERVICE)) return DRUPE_E_NO_MEMORY;
    const drupe_status status = __real_drupe_service_start(service);
    no_record = fails == RECORD;
    return status;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    const bool none = no_record;
    no_record = false;
    return none ? NULL : __real_calloc(count, size);
}

drupe_status __real_drupe_event_open(const char *text, uint32_t flags, drupe_event **event);
drupe_status __wrap_drupe_event_open(const char *text, uint32_t flags, drupe_event **event);
drupe_status __wrap_drupe_event_open(const char *text, uint32_t flags, drupe_event **event)
{
    void (*act)(void) = on_event;
    on_event = NULL;
    if (act) act();
    return failing(EVENT) ? DRUPE_E_NO_MEMORY : __real_drupe_event_open(text, flags, event);
}

/* --- Tests ---------------------------------------------------------------------------------------------- */

static void text_goes_to_the_cell_whose_work_is_not_over(void **state)
{
    (void)state;
    assert_null(told());
    launch(0, &first, 0, bench.prints);
    assert_ptr_equal(told(), &first);
    launch(1, &first, 0, bench.prints);
    finish(0);
    OK(drupe_event_wait(bench.events[0], DRUPE_FOREVER));
    assert_ptr_equal(told(), &first);
    finish(1);
    expect_told(NULL);
}

static void silent_kernels_are_not_watched(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.silent);
    assert_null(told());
    finish(0);
}

static void work_of_no_cell_is_not_watched(void **state)
{
    (void)state;
    launch(0, NULL, 0, bench.prints);
    assert_null(told());
    finish(0);
}

static void another_cell_on_the_queue_waits_until_the_text_has_come(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.prints);
    launch(1, &first, 0, bench.prints);
    launch(2, &second, 0, bench.prints);
    launch(3, &second, 0, bench.prints);
    assert_int_equal(drupe_event_state_of(bench.events[2]), DRUPE_EVENT_QUEUED);
    finish(0);
    OK(drupe_event_wait(bench.events[0], DRUPE_FOREVER));
    assert_int_equal(drupe_event_state_of(bench.events[2]), DRUPE_EVENT_QUEUED);
    finish(1);
    expect_told(&second);
    expect_submitted(2);
    expect_submitted(3);
    finish(2);
    finish(3);
    expect_told(NULL);
}

static void queues_do_not_wait_for_each_other(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.prints);
    launch(1, &second, 1, bench.prints);
    assert_int_equal(drupe_event_state_of(bench.events[1]), DRUPE_EVENT_SUBMITTED);
    assert_ptr_equal(told(), &first); /* the oldest */
    finish(0);
    expect_told(&second);
    finish(1);
    expect_told(NULL);
}

static void the_oldest_may_end_last(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.prints);
    launch(1, &second, 1, bench.prints);
    drupe_event *taken = predecessor_on(1, &first);
    finish(1);
    OK(drupe_event_wait(taken, DRUPE_FOREVER));
    drupe_event_release(taken);
    assert_ptr_equal(told(), &first);
    finish(0);
    expect_told(NULL);
}

/* Two threads of another cell that come at once wait for the same. */
static void strangers_wait_for_one_event(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.prints);
    drupe_event *one = predecessor_on(0, &second), *other = predecessor_on(0, &second);
    assert_non_null(one);
    assert_ptr_equal(one, other);
    assert_null(predecessor_on(0, &first)); /* its own text */
    assert_int_not_equal(drupe_event_state_of(one), DRUPE_EVENT_COMPLETE);
    finish(0);
    OK(drupe_event_wait(one, DRUPE_FOREVER));
    drupe_event_release(one);
    drupe_event_release(other);
}

static void end_first(void)
{
    finish(0);
    expect_told(NULL);
}

/* The text has come while the event was made that was to wait for it. */
static void what_is_over_meanwhile_is_not_waited_for(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.prints);
    on_event = end_first;
    assert_null(predecessor_on(0, &second));
    assert_null(on_event);
}

/* The text goes to the cell that runs then; the caller's error is left alone. */
static void what_cannot_be_watched_runs_all_the_same(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.silent);
    for (int what = WATCH_OPEN; what <= WATCH_ADD; what++) {
        fails = what;
        drupe_error_set(DRUPE_E_BUSY, "The caller's error.");
        running = &first;
        drupe_prints_begin(bench.events[0]);
        running = NULL;
        fails = NOTHING;
        assert_string_equal(drupe_error_last()->text, "The caller's error.");
        assert_null(told());
        assert_null(predecessor_on(0, &second));
    }
    running = &first;
    drupe_prints_begin(bench.events[0]);
    running = NULL;
    assert_ptr_equal(told(), &first);
    finish(0);
    expect_told(NULL);
}

static void without_an_event_another_cell_does_not_wait(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.prints);
    fails = EVENT;
    drupe_error_set(DRUPE_E_BUSY, "The caller's error.");
    assert_null(predecessor_on(0, &second));
    assert_string_equal(drupe_error_last()->text, "The caller's error.");
    launch(1, &second, 0, bench.prints);
    fails = NOTHING;
    assert_int_equal(drupe_event_state_of(bench.events[1]), DRUPE_EVENT_SUBMITTED);
    finish(0);
    finish(1);
    expect_told(NULL);
}

/* Work that never ends holds nobody when the library closes. */
static void the_end_of_watching_lets_all_go(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.prints);
    launch(1, &second, 0, bench.prints);
    assert_int_equal(drupe_event_state_of(bench.events[1]), DRUPE_EVENT_QUEUED);
    drupe_prints_stop();
    assert_null(told());
    expect_submitted(1);
    finish(0);
    finish(1);
}

static void out_of_order_queues_do_not_wait(void **state)
{
    (void)state;
    launch(0, &first, 0, bench.prints);
    launch(1, &second, 0, bench.prints);
    assert_int_equal(drupe_event_state_of(bench.events[1]), DRUPE_EVENT_SUBMITTED);
    finish(0);
    finish(1);
    expect_told(NULL);
}

static void an_observer_that_does_not_care_is_not_told(void **state)
{
    (void)state;
    drupe_library_observe(&deaf);
    launch(0, &first, 0, bench.prints);
    launch(1, &second, 0, bench.prints);
    assert_int_equal(drupe_event_state_of(bench.events[1]), DRUPE_EVENT_SUBMITTED);
    assert_null(told());
    finish(0);
    finish(1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(text_goes_to_the_cell_whose_work_is_not_over),
        TEST(silent_kernels_are_not_watched),
        TEST(work_of_no_cell_is_not_watched),
        TEST(another_cell_on_the_queue_waits_until_the_text_has_come),
        TEST(queues_do_not_wait_for_each_other),
        TEST(the_oldest_may_end_last),
        TEST(strangers_wait_for_one_event),
        TEST(what_is_over_meanwhile_is_not_waited_for),
        TEST(what_cannot_be_watched_runs_all_the_same),
        TEST(without_an_event_another_cell_does_not_wait),
        TEST(the_end_of_watching_lets_all_go),
        cmocka_unit_test_setup_teardown(out_of_order_queues_do_not_wait, setup_unordered, teardown),
        TEST(an_observer_that_does_not_care_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
