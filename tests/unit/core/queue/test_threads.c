/* Core's threads: the workers that run host functions, the waiter that serves what is deferred, and how they
 * end. What another thread does meanwhile is done where a thread waits. */
#include "core_ends.h"
#include "drupe/fault.h"
#include "queue/script_bench.h"
#include <sched.h>

/* --- Where threads wait ----------------------------------------------------------------------------------
 */

/* What this thread's next wait does, with the mutex; then it goes on to WAIT, or returns. */
typedef enum outcome { TIME_IS_OVER, WOKEN, WAIT } outcome;
static _Thread_local outcome (*at_wait)(pthread_mutex_t *mutex);
/* What any thread does that waits while this one does not. */
static _Atomic(int) open_when_idle; /* 1 + the index of a job that is let go then */
static _Atomic(bool) go_on[2];
static _Atomic(unsigned) waiting; /* how many times a thread did */

bool __real_drupe_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline);
bool __wrap_drupe_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline);

bool __wrap_drupe_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline)
{
    outcome (*act)(pthread_mutex_t *) = at_wait;
    at_wait = NULL;
    const outcome what = act ? act(mutex) : WAIT;
    if (what != WAIT) return what == WOKEN;
    if (act) return __real_drupe_cond_wait_until(cond, mutex, deadline);
    atomic_fetch_add(&waiting, 1);
    const int job = atomic_exchange(&open_when_idle, 0);
    if (job) atomic_store(&go_on[job - 1], true);
    return __real_drupe_cond_wait_until(cond, mutex, deadline);
}

static outcome time_is_over(pthread_mutex_t *mutex)
{
    (void)mutex;
    return TIME_IS_OVER;
}

/* --- Workers ---------------------------------------------------------------------------------------------
 */

static _Atomic(unsigned) running, done;

static void run_counted(drupe_job *job)
{
    (void)job;
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&go_on[0])) sched_yield();
    atomic_fetch_add(&done, 1);
}

static void run_second(drupe_job *job)
{
    (void)job;
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&go_on[1])) sched_yield();
    atomic_fetch_add(&done, 1);
}

static void fail_never(drupe_job *job)
{
    fail_msg("%s failed", job->what);
}

static void post(drupe_job *jobs, size_t count)
{
    OK(drupe_worker_start());
    for (size_t i = 0; i < count; i++) drupe_worker_post(&jobs[i], run_counted, fail_never, "job");
}

static void until(_Atomic(unsigned) *number, unsigned wanted)
{
    while (atomic_load(number) < wanted) sched_yield();
}

static void begin(void)
{
    atomic_store(&go_on[0], false);
    atomic_store(&go_on[1], false);
    atomic_store(&running, 0);
    atomic_store(&done, 0);
}

/* One worker, which has looked around: the next job is its. */
static void start_one_worker(void)
{
    atomic_store(&waiting, 0);
    OK(drupe_worker_start());
    until(&waiting, 1);
}

/* So that jobs may wait for each other; more than that wait for their turn. */
static void so_many_jobs_run_together(void **state)
{
    (void)state;
    enum { MOST = 64, MORE = 3 };
    static drupe_job jobs[MOST + MORE];
    begin();
    post(jobs, MOST + MORE);
    until(&running, MOST);
    at_wait = time_is_over;
    drupe_worker_stop(); /* there are some left: nothing is stopped */
    assert_int_equal(atomic_load(&running), MOST);
    atomic_store(&go_on[0], true);
    until(&done, MOST + MORE);
    drupe_worker_stop();
    post(jobs, 1); /* others are started */
    until(&done, MOST + MORE + 1);
    drupe_worker_stop();
}

/* Without another thread jobs wait for one that there is. */
static void jobs_wait_for_the_threads_that_there_are(void **state)
{
    (void)state;
    static drupe_job jobs[3];
    begin();
    start_one_worker();
    post(jobs, 1);
    until(&running, 1);
    for (size_t i = 1; i < 3; i++) {
        wrap_plan(WRAP_THREAD, 1);
        drupe_worker_post(&jobs[i], run_counted, fail_never, "job");
        assert_int_equal(wrap_made(), 1);
    }
    wrap_plan(WRAP_NOTHING, 0);
    at_wait = time_is_over;
    drupe_worker_stop(); /* what waits is a reason to stay */
    assert_int_equal(atomic_load(&running), 1);
    atomic_store(&go_on[0], true);
    until(&done, 3);
    drupe_worker_stop();
}

static outcome let_first_go(pthread_mutex_t *mutex)
{
    (void)mutex;
    atomic_store(&open_when_idle, 2); /* and when its thread waits, the second */
    atomic_store(&go_on[0], true);
    return WAIT;
}

/* Those that have just ended a job are given a moment. */
static void the_end_waits_for_jobs_that_end(void **state)
{
    (void)state;
    static drupe_job first, second;
    begin();
    post(&first, 1);
    drupe_worker_post(&second, run_second, fail_never, "job");
    until(&running, 2);
    at_wait = let_first_go;
    drupe_worker_stop();
    assert_null(at_wait); /* it waited */
    assert_int_equal(atomic_load(&done), 2);
}

/* --- Faults, each in a process of its own ----------------------------------------------------------------
 */

static void begin_process(void)
{
    void *state = NULL;
    ENDS_MUST(script_setup(&state) == 0 && drupe_fault_install(NULL) == DRUPE_OK);
    script.finishes = true;
}

static void in_a_process(void (*body)(void))
{
    ends_apart(begin_process, body);
}

static drupe_status run(drupe_host_fn fn)
{
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *event;
    ENDS_MUST(drupe_submit_host(&s, fn, NULL, &event) == DRUPE_OK);
    const drupe_status status = drupe_event_wait(event, LONG);
    drupe_event_release(event);
    return status;
}

/* The next thread that is started is the one in the place of this. */
static drupe_status fault_alone(void *unused)
{
    wrap_plan(WRAP_THREAD, 1);
    return ends_fault(unused);
}

/* The job fails before its thread is replaced. */
static void fault_without_another(void)
{
    ENDS_MUST(run(fault_alone) == DRUPE_E_DEVICE_LOST);
    while (!wrap_made()) sched_yield();
    wrap_plan(WRAP_NOTHING, 0);
}

static void no_thread_comes_in_its_place(void)
{
    start_one_worker();
    fault_without_another();
    wrap_plan(WRAP_THREAD, 1);
    drupe_event *event = NULL;
    const drupe_submission s = {.queue = bench.queue};
    ENDS_MUST(drupe_submit_host(&s, bench_nothing, NULL, &event) ==
              DRUPE_E_NO_MEMORY); /* nobody would run it */
    wrap_plan(WRAP_NOTHING, 0);
    ENDS_MUST(run(bench_nothing) == DRUPE_OK);
}

static void without_another_thread_a_fault_leaves_a_place(void **state)
{
    (void)state;
    in_a_process(no_thread_comes_in_its_place);
}

static outcome must_not_wait(pthread_mutex_t *mutex)
{
    (void)mutex;
    ENDS_MUST(false);
    return TIME_IS_OVER;
}

static drupe_job blocked[1];

static void one_of_two_is_gone(void)
{
    begin();
    start_one_worker();
    post(blocked, 1);
    until(&running, 1);
    fault_without_another();                   /* of a second one */
    ENDS_MUST(run(bench_nothing) == DRUPE_OK); /* it came back */
    fault_without_another();
    atomic_store(&go_on[0], true);
    drupe_worker_stop(); /* joins the one that is left */
    at_wait = must_not_wait;
    drupe_worker_stop();
    at_wait = NULL;
    ENDS_MUST(run(bench_nothing) == DRUPE_OK);
}

static void the_end_does_not_wait_for_what_is_gone(void **state)
{
    (void)state;
    in_a_process(one_of_two_is_gone);
}

static bool check_fault(const drupe_fault *of, char *text, size_t size)
{
    (void)of;
    snprintf(text, size, ": it wrote behind the end");
    return true;
}

static void behind_the_end(void)
{
    static drupe_checker checker;
    checker = script_checker;
    checker.fault = check_fault;
    atomic_store(&drupe_checker_now, &checker);
    atomic_fetch_add(&drupe_check_depth, 1);
    ENDS_MUST(run(ends_fault) == DRUPE_E_CHECK);
    ENDS_MUST(strstr(drupe_error_last()->text, "Out of bounds: the host function faulted: "));
    ENDS_MUST(strstr(drupe_error_last()->text, ": it wrote behind the end. The thread that ran it"));
}

static void a_fault_at_guarded_memory_is_out_of_bounds(void **state)
{
    (void)state;
    in_a_process(behind_the_end);
}

/* --- Waiting for what core runs --------------------------------------------------------------------------
 */

/* The copy ends while it is watched. */
static _Thread_local bool watches;
static _Atomic(bool) watched;
static _Atomic(unsigned) hurried;

static void note_watching(void)
{
    if (watches)
        atomic_store(&watched, true);
    else
        script_at_yield(note_watching); /* another thread */
}

static drupe_status end_when_watched(void *unused)
{
    (void)unused;
    while (!atomic_load(&watched)) sched_yield();
    return DRUPE_OK;
}

static void hurry(drupe_pieces *pieces)
{
    (void)pieces;
    atomic_fetch_add(&hurried, 1);
}

static void a_copy_of_core_is_watched_before_it_is_slept_for(void **state)
{
    (void)state;
    drupe_pieces pieces = {.hurry = hurry, .spins = true};
    const drupe_submit_info info = {.queue = bench.queue, .label = "copy", .label_static = true};
    const drupe_work work = {.kind = DRUPE_WORK_COPY, .fn = end_when_watched, .user = &pieces};
    drupe_event *event;
    atomic_store(&watched, false);
    OK(drupe_queue_submit(&info, &work, &event));
    assert_int_equal(atomic_load(&hurried), 1);
    FAILS(drupe_event_wait(event, 0), DRUPE_E_TIMEOUT, ""); /* no longer than there is time */
    watches = true;
    script_at_yield(note_watching);
    OK(drupe_event_wait(event, LONG));
    watches = false;
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(event);
}

/* --- The waiter's end ------------------------------------------------------------------------------------
 */

static drupe_event *gate, *held;

static void defer(void)
{
    gate = bench_gate();
    script.finishes = true;
    OK(bench_barrier(bench.queue, gate, &held));
}

static void end_deferred(void)
{
    OK(drupe_event_finish(gate, NULL));
    OK(drupe_event_wait(held, LONG));
    script_release((drupe_event *[]){gate, held}, 2);
}

/* Its thread stays, for whoever ends what the work waits for. */
static void work_that_is_deferred_keeps_its_thread(void **state)
{
    (void)state;
    defer();
    drupe_deferred_stop(0);
    assert_int_equal(drupe_event_state_of(held), DRUPE_EVENT_QUEUED);
    end_deferred();
}

/* The waiter hangs in a driver. */
static _Atomic(drupe_event *) hangs_at;
static _Atomic(bool) hangs, at_it;

static drupe_status hang(drupe_event *event, drupe_event_state *state)
{
    if (event == atomic_load(&hangs_at)) {
        atomic_store(&at_it, true);
        while (atomic_load(&hangs)) sched_yield();
    }
    return bench_real->event_state(event, state);
}

static void nobody_waits_for_a_waiter_that_hangs(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *native;
    drupe_watch *watch;
    bench_table.event_state = hang;
    OK(bench_barrier(other, NULL, NULL));
    OK(bench_barrier(other, NULL, &native));
    OK(drupe_watch_open(NULL, NULL, &watch));
    OK(drupe_watch_add(watch, native, NULL));
    atomic_store(&hangs, true);
    atomic_store(&at_it, false);
    atomic_store(&hangs_at, native); /* this thread has looked */
    drupe_deferred_kick();
    while (!atomic_load(&at_it)) sched_yield();
    defer();
    at_wait = time_is_over;
    drupe_deferred_stop(0);
    assert_null(at_wait);
    atomic_store(&hangs_at, NULL);
    atomic_store(&hangs, false);
    end_deferred();
    script_finish_all();
    drupe_event_release(native);
    drupe_watch_close(watch, NULL);
    drupe_queue_release(other);
}

/* Of two that close the library one is first. */
static outcome close_first(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    end_deferred();
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_deferred_stop(UINT64_MAX);
    pthread_mutex_lock(mutex);
    return WOKEN;
}

static void two_may_end_the_waiter(void **state)
{
    (void)state;
    defer();
    at_wait = close_first;
    drupe_deferred_stop(UINT64_MAX);
    assert_null(at_wait);
    defer(); /* it is started again */
    end_deferred();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_another_thread_a_fault_leaves_a_place),
        cmocka_unit_test(the_end_does_not_wait_for_what_is_gone),
        cmocka_unit_test(a_fault_at_guarded_memory_is_out_of_bounds),
        TEST(so_many_jobs_run_together),
        TEST(jobs_wait_for_the_threads_that_there_are),
        TEST(the_end_waits_for_jobs_that_end),
        TEST(a_copy_of_core_is_watched_before_it_is_slept_for),
        TEST(work_that_is_deferred_keeps_its_thread),
        TEST(nobody_waits_for_a_waiter_that_hangs),
        TEST(two_may_end_the_waiter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
