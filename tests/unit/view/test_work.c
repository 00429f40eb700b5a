/* Whether work goes on: what the recorder tells whoever wants to know it. */
#include "view/history.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#define OK(call) assert_int_equal((call), DRUPE_OK)
#define PATIENCE UINT64_C(60000000000)

static drupe_device *device;
static drupe_queue *queue;

static int open_queue(void **state)
{
    drupe_context *context;
    (void)state;
    OK(drupe_device_select("host", &device));
    OK(drupe_device_context(device, &context));
    OK(drupe_queue_open(context, device, 0, &queue));
    drupe_context_release(context);
    OK(drupe_view_start());
    return 0;
}

static int close_queue(void **state)
{
    (void)state;
    drupe_view_stop();
    drupe_queue_release(queue);
    drupe_device_release(device);
    assert_int_equal(drupe_library_close(DRUPE_FOREVER), 0);
    return 0;
}

static drupe_status pass_gate(void *user)
{
    while (!atomic_load((_Atomic(bool) *)user)) sched_yield();
    return DRUPE_OK;
}

static _Atomic(unsigned) begins, ends;

static void on_work(bool goes_on)
{
    atomic_fetch_add(goes_on ? &begins : &ends, 1);
}

static bool reaches(_Atomic(unsigned) *count, unsigned goal)
{
    uint64_t deadline = drupe_deadline(PATIENCE);
    while (atomic_load(count) < goal && drupe_now_ns() < deadline) usleep(1000);
    return atomic_load(count) == goal;
}

/* Once for all work that follows closely, and not before the last of it is over. */
static void work_begins_and_ends(void **state)
{
    _Atomic(bool) open = false;
    (void)state;
    drupe_view_listen_work(on_work);
    drupe_submission s = {.queue = queue};
    for (unsigned round = 1; round <= 2; round++) {
        atomic_store(&open, false);
        for (int i = 0; i < 3; i++) OK(drupe_submit_host(&s, pass_gate, (void *)&open, NULL));
        bool began = reaches(&begins, round) && drupe_view_works() && atomic_load(&ends) == round - 1;
        atomic_store(&open, true);
        OK(drupe_queue_wait(queue, PATIENCE));
        assert_true(began && reaches(&ends, round) && !drupe_view_works());
    }
    atomic_store(&open, false);
    OK(drupe_submit_host(&s, pass_gate, (void *)&open, NULL));
    bool began = reaches(&begins, 3);
    drupe_view_stop(); /* nobody would find out that it is over */
    atomic_store(&open, true);
    OK(drupe_queue_wait(queue, PATIENCE));
    assert_true(began && atomic_load(&ends) == 3 && !drupe_view_works());
    drupe_view_listen_work(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_begins_and_ends, open_queue, close_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
