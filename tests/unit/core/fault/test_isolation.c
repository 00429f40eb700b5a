/* Threads that fault: who goes on, who ends, who is parked, who is told; and the threads of drivers. Each
 * case is a process of its own. */
#include "core/fault/fault_room.h"
#include "drupe/fault.h"
#include "leave.h"
#include "test_script.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <cmocka.h>

enum { GOOD = 40, BAD };

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) fail_child(#condition, __LINE__);                                                  \
    } while (0)

_Noreturn static void fail_child(const char *condition, int line)
{
    fprintf(stderr, "line %d: %s\n", line, condition);
    leave(BAD);
}

static int end_of(void (*body)(void))
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
        for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++) signal(signals[i], SIG_DFL);
        alarm(60); /* a case that never ends has failed */
        body();
        leave(GOOD);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void expect_good(void (*body)(void))
{
    const int status = end_of(body);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), GOOD);
}

static void expect_killed(void (*body)(void))
{
    const int status = end_of(body);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* --- What is told ----------------------------------------------------------------------------------------
 */

static _Atomic(int) ntold;
static drupe_fault told[4];

static void spread(const drupe_fault *fault)
{
    const int n = atomic_load(&ntold);
    if (n < 4) told[n] = *fault;
    atomic_store(&ntold, n + 1);
}

static void await_told(int count)
{
    while (atomic_load(&ntold) < count) sched_yield();
}

/* --- Threads that fault ----------------------------------------------------------------------------------
 */

#define STACK (256u << 10)

static _Alignas(16) char stack[STACK];
static drupe_recovery recovery;
static _Atomic(int) busy, resumed, number;
static int owner;

__attribute__((noinline)) static void fault(void)
{
    static volatile int *volatile nowhere = (volatile int *)(uintptr_t)16;
    *nowhere = 1;
}

static void resume(void *user)
{
    char here;
    MUST(user == &recovery);
    MUST(&here > stack && &here < stack + STACK);
    MUST(recovery.fault.signal == SIGSEGV && recovery.fault.address == 16 && recovery.fault.index == 3);
    MUST(recovery.fault.owner == &owner);
    atomic_store(&resumed, 1);
    for (;;) pause();
}

static void *run(void *with_recovery)
{
    atomic_store(&number, drupe_thread_id());
    drupe_core_register_thread(&owner, 3, &busy, with_recovery ? &recovery : NULL);
    fault();
    fail_child("the thread came back", __LINE__);
}

static pthread_t start(drupe_way way, bool with_recovery)
{
    pthread_t thread;
    recovery = (drupe_recovery){.way = way, .resume = resume, .stack = (uintptr_t)(stack + STACK)};
    atomic_store(&busy, 1);
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
    MUST(pthread_create(&thread, NULL, run, with_recovery ? &recovery : NULL) == 0);
    return thread;
}

static void goes_on(void)
{
    drupe_isolation_tell(spread);
    start(DRUPE_WAY_ON, true);
    while (!atomic_load(&resumed)) sched_yield();
    MUST(ntold == 0);
    MUST(drupe_reg_thread_find(number) != NULL); /* it works on */
}

static void ends(void)
{
    drupe_isolation_tell(spread);
    pthread_t thread = start(DRUPE_WAY_END, true);
    pthread_join(thread, NULL);
    await_told(1);
    MUST(told[0].ended && told[0].signal == SIGSEGV && told[0].address == 16 && told[0].owner == &owner);
    MUST(told[0].instruction != 0);
    MUST(drupe_reg_thread_find(number) == NULL);
}

static void is_parked(void)
{
    start(DRUPE_WAY_PARK, false);
    while (!atomic_load(&number)) sched_yield();
    drupe_isolation_tell(spread); /* faults wait for somebody to be told */
    drupe_isolation_tell(spread);
    await_told(1);
    MUST(!told[0].ended && told[0].index == 3);
}

static void is_parked_by_its_way(void)
{
    drupe_isolation_tell(spread);
    start(DRUPE_WAY_PARK, true);
    await_told(1);
    MUST(!told[0].ended && !atomic_load(&resumed));
}

static void *run_inside(void *inside)
{
    const uintptr_t code = (uintptr_t)fault;
    recovery.code = inside ? code : code + 4096;
    recovery.code_size = 256;
    return run(&recovery);
}

static void start_inside(bool inside)
{
    pthread_t thread;
    recovery =
        (drupe_recovery){.way = DRUPE_WAY_ON_INSIDE, .resume = resume, .stack = (uintptr_t)(stack + STACK)};
    atomic_store(&busy, 1);
    drupe_isolation_tell(spread);
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
    MUST(pthread_create(&thread, NULL, run_inside, inside ? &recovery : NULL) == 0);
    if (!inside) pthread_join(thread, NULL);
}

static void goes_on_inside(void)
{
    start_inside(true);
    while (!atomic_load(&resumed)) sched_yield();
    MUST(ntold == 0);
}

static void ends_outside(void)
{
    start_inside(false);
    await_told(1);
    MUST(told[0].ended);
}

static void a_fault_ends_as_was_said_before(void **state)
{
    (void)state;
    expect_good(goes_on);
    expect_good(ends);
    expect_good(is_parked);
    expect_good(is_parked_by_its_way);
    expect_good(goes_on_inside);
    expect_good(ends_outside);
}

static void without_work(void)
{
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
    drupe_core_register_thread(&owner, 0, &busy, NULL); /* busy is 0 */
    fault();
}

static void disowned(void)
{
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
    drupe_core_register_thread(&owner, 0, NULL, NULL);
    drupe_core_disown();
    drupe_core_disown();
    fault();
}

static void of_a_child(void)
{
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
    drupe_core_register_thread(&owner, 0, NULL, NULL);
    int status = 0;
    const pid_t child = fork();
    if (child == 0) fault();
    waitpid(child, &status, 0);
    MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void faults_of_others_end_the_process(void **state)
{
    (void)state;
    expect_killed(without_work);
    expect_killed(disowned);
    expect_good(of_a_child);
}

/* --- Claims ----------------------------------------------------------------------------------------------
 */

static void claims(void)
{
    siginfo_t info = {.si_code = SEGV_MAPERR};
    MUST(drupe_fault_claim(SIGSEGV, &info, NULL) == DRUPE_FAULT_NOT_OURS); /* nobody has asked for it */
    drupe_core_register_thread(&owner, 5, NULL, NULL);
    MUST(!drupe_isolation_active());
    drupe_fault_contain(); /* there is a thread already */
    MUST(drupe_isolation_active());
    drupe_isolation_tell(spread);
    MUST(drupe_fault_claim(SIGUSR1, &info, NULL) == DRUPE_FAULT_NOT_OURS);
    info.si_code = SI_USER;
    MUST(drupe_fault_claim(SIGSEGV, &info, NULL) == DRUPE_FAULT_NOT_OURS);
    info.si_code = BUS_ADRERR;
    static const int signals[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    for (int i = 0; i < 4; i++) {
        ucontext_t machine = {0};
        MUST(drupe_fault_claim(signals[i], &info, i == 3 ? NULL : &machine) == DRUPE_FAULT_PARK);
        /* This thread is another one from now on. */
        MUST(drupe_fault_claim(signals[i], &info, NULL) == DRUPE_FAULT_NOT_OURS);
        await_told(i + 1);
        MUST(told[i].signal == signals[i] && told[i].access == 0 && told[i].index == 5);
        drupe_core_register_thread(&owner, 5, NULL, NULL);
    }
    /* A way on that the machine's state does not allow. */
    recovery = (drupe_recovery){.way = DRUPE_WAY_ON, .resume = resume};
    drupe_core_register_thread(&owner, 5, NULL, &recovery);
    ucontext_t machine = {0};
    MUST(drupe_fault_claim(SIGSEGV, &info, &machine) == DRUPE_FAULT_PARK);
    drupe_isolation_stop();
    drupe_core_register_thread(&owner, 5, NULL, NULL); /* starts it again */
    MUST(drupe_fault_claim(SIGSEGV, &info, NULL) == DRUPE_FAULT_PARK);
    await_told(5);
    drupe_isolation_stop();
    MUST(drupe_fault_claim(SIGSEGV, &info, NULL) == DRUPE_FAULT_NOT_OURS);
    drupe_isolation_stop();
}

static void too_many(void)
{
    siginfo_t info = {.si_code = SEGV_MAPERR};
    int verdict = DRUPE_FAULT_PARK, parked = 0;
    drupe_fault_contain();
    drupe_isolation_tell(spread);
    for (; parked < 600 && verdict == DRUPE_FAULT_PARK; parked += verdict == DRUPE_FAULT_PARK) {
        drupe_core_register_thread(&owner, 5, NULL, NULL);
        verdict = drupe_fault_claim(SIGSEGV, &info, NULL);
        await_told(verdict == DRUPE_FAULT_PARK ? parked + 1
                                               : parked); /* a parked thread does not fault again */
    }
    MUST(parked == 512 && verdict == DRUPE_FAULT_NOT_OURS);
}

static void the_table(void)
{
    const drupe_reg_thread entry = {.owner = &owner};
    size_t size = 0;
    drupe_reg_thread *own = drupe_reg_thread_enter(drupe_thread_id(), &entry);
    MUST(own && own->started && drupe_reg_thread_living(drupe_thread_id()) == own);
    own->started++; /* an earlier thread with this id */
    MUST(drupe_reg_thread_living(drupe_thread_id()) == NULL);
    MUST(drupe_reg_thread_find(drupe_thread_id()) == NULL);
    while (drupe_reg_thread_at(size)) size++;
    for (size_t i = 0; i < size; i++) MUST(drupe_reg_thread_enter(1000000000 + (int)i, &entry));
    MUST(!drupe_reg_thread_enter(1, &entry));
    MUST(drupe_reg_thread_find(1000000000)->started == 0); /* there is no such thread */
    MUST(drupe_reg_thread_living(1000000000) != NULL);
}

static void claims_are_for_registered_threads(void **state)
{
    (void)state;
    expect_good(claims);
    expect_good(too_many);
    expect_good(the_table);
}

/* --- Threads of drivers ----------------------------------------------------------------------------------
 */

static _Atomic(int) leave_now, driver_number, sized;
static _Atomic(int) divisions[2]; /* host's, driver's */

static size_t stack_of_this_thread(void)
{
    pthread_attr_t attributes;
    size_t size = 0;
    MUST(pthread_getattr_np(pthread_self(), &attributes) == 0);
    MUST(pthread_attr_getstacksize(&attributes, &size) == 0);
    pthread_attr_destroy(&attributes);
    return size;
}

static void *driver_thread(void *raises)
{
    stack_t there = {0};
    atomic_store(&sized, stack_of_this_thread() >= (size_t)80 << 20 ? 1 : -1);
    atomic_store(&driver_number, drupe_thread_id());
    while (!drupe_reg_thread_find(drupe_thread_id())) sched_yield();
    /* A thread can only set its stack itself: by the return from a signal. */
    while (sigaltstack(NULL, &there) != 0 || there.ss_flags & SS_DISABLE) sched_yield();
#ifndef __SANITIZE_ADDRESS__ /* which gives threads one of its own */
    MUST(there.ss_size == DRUPE_SIGNAL_STACK);
#endif
    if (raises) pthread_kill(pthread_self(), SIGFPE);
    while (!atomic_load(&leave_now)) sched_yield();
    return NULL;
}

static void *plain_thread(void *unused)
{
    atomic_store(&sized, stack_of_this_thread() >= (size_t)80 << 20 ? 1 : -1);
    return unused;
}

static void host_division(int signal)
{
    (void)signal;
    atomic_fetch_add(&divisions[0], 1);
}

static void driver_division(int signal)
{
    (void)signal;
    atomic_fetch_add(&divisions[1], 1);
}

static pthread_t adopt(void *raises, bool handles)
{
    pthread_t thread;
    drupe_threads *before = drupe_core_adoption_begin();
    MUST(before);
    atomic_store(&driver_number, 0);
    MUST(pthread_create(&thread, NULL, driver_thread, raises) == 0);
    if (handles) signal(SIGFPE, driver_division);
    while (!atomic_load(&driver_number)) sched_yield();
    drupe_core_adoption_end(before, &owner);
    return thread;
}

static void adopted(void)
{
    pthread_t thread, plain;
    drupe_fault_contain();
    drupe_isolation_tell(spread);
    thread = adopt(NULL, false);
    MUST(sized == 1); /* such threads get larger stacks */
    const drupe_reg_thread *one = drupe_reg_thread_find(driver_number);
    MUST(one && one->owner == &owner && !one->busy && !one->recovery);
    MUST(!drupe_reg_thread_find(drupe_thread_id())); /* it was there before */
    MUST(pthread_create(&plain, NULL, plain_thread, NULL) == 0);
    pthread_join(plain, NULL);
    MUST(sized == -1); /* others do not */
    atomic_store(&leave_now, 1);
    pthread_join(thread, NULL);
    const int gone = driver_number;
    atomic_store(&leave_now, 0);
    thread = adopt(NULL, false); /* takes the stack of the one that has ended back */
    MUST(gone == driver_number || !drupe_reg_thread_find(gone));
    atomic_store(&leave_now, 1);
    pthread_join(thread, NULL);
    drupe_core_adoption_end(NULL, NULL);
}

static void divided(void)
{
    drupe_fault_contain();
    signal(SIGFPE, host_division);
    pthread_t thread = adopt(&owner, true);
    while (!atomic_load(&divisions[1])) sched_yield();
    raise(SIGFPE);
    MUST(divisions[0] == 1 && divisions[1] == 1);
    atomic_store(&leave_now, 1);
    pthread_join(thread, NULL);
    /* A second driver: that of the first is told apart from the host's still. */
    atomic_store(&leave_now, 0);
    thread = adopt(NULL, true);
    raise(SIGFPE);
    MUST(divisions[0] == 2 && divisions[1] == 1);
    atomic_store(&leave_now, 1);
    pthread_join(thread, NULL);
}

static void nested(void)
{
    drupe_threads *outer = drupe_core_adoption_begin(), *inner = drupe_core_adoption_begin();
    pthread_t thread;
    drupe_core_adoption_end(inner, &owner);
    MUST(pthread_create(&thread, NULL, plain_thread, NULL) == 0);
    pthread_join(thread, NULL);
    MUST(sized == 1); /* the outer one goes on */
    drupe_core_adoption_end(outer, &owner);
    MUST(pthread_create(&thread, NULL, plain_thread, NULL) == 0);
    pthread_join(thread, NULL);
    MUST(sized == -1);
}

#ifndef __SANITIZE_ADDRESS__ /* which needs the address space */
static void limited(void)
{
    struct rlimit space = {.rlim_cur = (rlim_t)8 << 30, .rlim_max = RLIM_INFINITY};
    pthread_t thread;
    MUST(setrlimit(RLIMIT_AS, &space) == 0);
    drupe_threads *before = drupe_core_adoption_begin();
    MUST(pthread_create(&thread, NULL, plain_thread, NULL) == 0);
    pthread_join(thread, NULL);
    MUST(sized == -1);
    drupe_core_adoption_end(before, &owner);
}
#endif

static _Atomic(int) many_leave;

static void *one_of_many(void *unused)
{
    while (!atomic_load(&many_leave)) sched_yield();
    return unused;
}

/* More than the list has room for at first. */
static void many(void)
{
    enum { MANY = 100 };
    pthread_t threads[MANY];
    drupe_threads *before = drupe_core_adoption_begin();
    for (size_t i = 0; i < MANY; i++) MUST(pthread_create(&threads[i], NULL, one_of_many, NULL) == 0);
    drupe_core_adoption_end(before, &owner);
    size_t found = 0;
    const drupe_reg_thread *one;
    for (size_t i = 0; (one = drupe_reg_thread_at(i)) != NULL; i++) found += one->owner == &owner;
    MUST(found == MANY);
    atomic_store(&many_leave, 1);
    for (size_t i = 0; i < MANY; i++) pthread_join(threads[i], NULL);
}

static void threads_of_drivers_are_adopted(void **state)
{
    (void)state;
    expect_good(adopted);
    expect_good(divided);
    expect_good(nested);
#ifndef __SANITIZE_ADDRESS__
    expect_good(limited);
#endif
    expect_good(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_ends_as_was_said_before),
        cmocka_unit_test(faults_of_others_end_the_process),
        cmocka_unit_test(claims_are_for_registered_threads),
        cmocka_unit_test(threads_of_drivers_are_adopted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
