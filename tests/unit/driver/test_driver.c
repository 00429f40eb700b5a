/* What living with vendors' drivers takes: signal handlers that they install. */
#include "driver/driver.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static volatile sig_atomic_t ours_came, drivers_came;

static void ours(int number)
{
    (void)number;
    ours_came++;
}

static void drivers(int number)
{
    (void)number;
    drivers_came++;
}

static void (*handler_of(int number))(int)
{
    struct sigaction action;
    sigaction(number, NULL, &action);
    return action.sa_handler;
}

static void signals(void **state)
{
    (void)state;
    static const int all[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) signal(all[i], ours);
    drupe_signals_save();
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) signal(all[i], drivers);
    /* A pair inside saves what the driver did, and must not bring it back at the end. */
    drupe_signals_save();
    drupe_signals_restore();
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) assert_ptr_equal(handler_of(all[i]), ours);
    signal(SIGINT, drivers);
    raise(SIGINT);
    assert_int_equal(ours_came + drivers_came, 0);
    drupe_signals_restore();
    assert_int_equal(ours_came, 1);
    assert_int_equal(drivers_came, 0);
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) assert_ptr_equal(handler_of(all[i]), ours);
    /* One restore too many changes nothing. */
    signal(SIGINT, drivers);
    drupe_signals_restore();
    assert_ptr_equal(handler_of(SIGINT), drivers);
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) signal(all[i], SIG_DFL);
}

static void handlers_of_crashes(void **state)
{
    (void)state;
    static const int all[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    void (*before[DRUPE_COUNT_OF(all)])(int);
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) before[i] = signal(all[i], ours);
    drupe_signals_save();
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) signal(all[i], drivers);
    drupe_signals_restore();
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) assert_ptr_equal(handler_of(all[i]), ours);
    /* One for page faults stays. */
    drupe_signals_save();
    signal(SIGSEGV, drivers);
    drupe_signals_restore();
    assert_ptr_equal(handler_of(SIGSEGV), drivers);
    assert_ptr_equal(handler_of(SIGABRT), ours);
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) signal(all[i], before[i]);
}

/* Who waits for a driver's build hears an interrupt itself; the driver does not. */
static void interrupts_of_who_waits(void **state)
{
    (void)state;
    drupe_interrupts held;
    ours_came = drivers_came = 0;
    void (*before)(int) = signal(SIGINT, ours);
    drupe_interrupts_hold(&held);
    signal(SIGINT, drivers);
    pthread_kill(pthread_self(), SIGINT);
    assert_int_equal(ours_came, 0);
    drupe_interrupts_look(&held);
    assert_int_equal(ours_came, 1);
    assert_ptr_equal(handler_of(SIGINT), drivers);
    drupe_interrupts_look(&held);
    assert_int_equal(ours_came, 1);
    pthread_kill(pthread_self(), SIGINT);
    drupe_interrupts_let_go(&held);
    assert_int_equal(ours_came, 2);
    assert_int_equal(drivers_came, 0);
    pthread_kill(pthread_self(), SIGINT); /* not held back any more */
    assert_int_equal(drivers_came, 1);
    signal(SIGINT, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals),
        cmocka_unit_test(handlers_of_crashes),
        cmocka_unit_test(interrupts_of_who_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
