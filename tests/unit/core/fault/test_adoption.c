/* Threads that a driver starts: who is adopted, what stacks they get, whose divisions by zero are handled by
 * whom. Each case is a process of its own. */
#include "calls.h"
#include "child.h"
#include "core/fault/fault_room.h"
#include "drupe/fault.h"
#include "walk/wrap.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>

static int owner;

static _Atomic(int) leave_now, driver_number, sized;
static _Atomic(int) divisions[2]; /* host's, driver's */

static void nobody_is_told(const drupe_fault *fault)
{
    (void)fault;
}

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

/* Whether a thread that is started now gets a large stack. */
static bool are_large(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, plain_thread, NULL) == 0);
    pthread_join(thread, NULL);
    return sized == 1;
}

/* Entries of the owner's threads. */
static size_t count_adopted(void)
{
    size_t found = 0;
    const drupe_reg_thread *one;
    for (size_t i = 0; (one = drupe_reg_thread_at(i)) != NULL; i++)
        found += atomic_load(&one->thread) > 0 && one->owner == &owner;
    return found;
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
    drupe_isolation_tell(nobody_is_told);
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

/* --- Larger stacks ---------------------------------------------------------------------------------------
 */

static void nested(void)
{
    drupe_threads *outer = drupe_core_adoption_begin(), *inner = drupe_core_adoption_begin();
    drupe_core_adoption_end(inner, &owner);
    MUST(are_large()); /* the outer one goes on */
    drupe_core_adoption_end(outer, &owner);
    MUST(!are_large());
}

#ifndef __SANITIZE_ADDRESS__ /* which needs the address space */
static void limited(void)
{
    struct rlimit space = {.rlim_cur = (rlim_t)8 << 30, .rlim_max = RLIM_INFINITY};
    MUST(setrlimit(RLIMIT_AS, &space) == 0);
    drupe_threads *before = drupe_core_adoption_begin();
    MUST(!are_large());
    drupe_core_adoption_end(before, &owner);
}
#endif

/* Then it stays as it was. */
static void refused(void)
{
    static const enum call cases[] = {CALL_getrlimit, CALL_pthread_getattr_default_np,
                                      CALL_pthread_setattr_default_np};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        call_fail(cases[i], 1);
        drupe_threads *before = drupe_core_adoption_begin();
        MUST(call_made(cases[i]) == 1 && !are_large());
        drupe_core_adoption_end(before, &owner);
        MUST(!are_large());
    }
    drupe_threads *before = drupe_core_adoption_begin();
    call_fail(CALL_pthread_getattr_default_np, 1);
    drupe_core_adoption_end(before, &owner);
    MUST(are_large());
}

static size_t default_stack(void)
{
    pthread_attr_t attributes;
    size_t size = 0;
    MUST(pthread_getattr_default_np(&attributes) == 0);
    MUST(pthread_attr_getstacksize(&attributes, &size) == 0);
    pthread_attr_destroy(&attributes);
    return size;
}

/* A program's own wish is no smaller. */
static void large_before(void)
{
    const size_t large = (size_t)96 << 20;
    pthread_attr_t attributes;
    MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, large) == 0);
    MUST(pthread_setattr_default_np(&attributes) == 0);
    drupe_threads *before = drupe_core_adoption_begin();
    MUST(default_stack() == large);
    drupe_core_adoption_end(before, &owner);
    MUST(default_stack() == large);
}

static void stacks_are_larger_meanwhile(void **state)
{
    (void)state;
    child_is_good(nested);
#ifndef __SANITIZE_ADDRESS__
    child_is_good(limited);
#endif
    child_is_good(refused);
    child_is_good(large_before);
}

/* --- Who is adopted --------------------------------------------------------------------------------------
 */

static _Atomic(int) many_leave;

static void *one_of_many(void *unused)
{
    while (!atomic_load(&many_leave)) sched_yield();
    return unused;
}

enum { MANY = 100 }; /* more than the list has room for at first */
static pthread_t threads[MANY];

static void start_many(size_t count)
{
    for (size_t i = 0; i < count; i++) MUST(pthread_create(&threads[i], NULL, one_of_many, NULL) == 0);
}

static void many(void)
{
    drupe_threads *before = drupe_core_adoption_begin();
    start_many(MANY);
    drupe_core_adoption_end(before, &owner);
    MUST(count_adopted() == MANY);
    atomic_store(&many_leave, 1);
    for (size_t i = 0; i < MANY; i++) pthread_join(threads[i], NULL);
}

static bool without_list(void)
{
    wrap_plan(WRAP_MALLOC, 1);
    drupe_threads *before = drupe_core_adoption_begin();
    MUST(wrap_made() == 1);
    if (before) return false;
    start_many(1);
    MUST(!are_large());
    drupe_core_adoption_end(before, &owner);
    return count_adopted() == 0;
}

/* Of threads that were not listed nobody knows whether the driver has started them. */
static void unlisted(void)
{
    MUST(without_list());
    call_fail(CALL_opendir, 1);
    drupe_threads *before = drupe_core_adoption_begin();
    start_many(1);
    drupe_core_adoption_end(before, &owner);
    MUST(count_adopted() == 0);
    call_fail(CALL_opendir, 2);
    before = drupe_core_adoption_begin();
    start_many(1);
    drupe_core_adoption_end(before, &owner);
    MUST(count_adopted() == 0 && call_made(CALL_opendir) == 2);
    for (unsigned long n = 1; n <= 2; n++) { /* the list, and more room in it */
        before = drupe_core_adoption_begin();
        start_many(MANY);
        wrap_plan(WRAP_MALLOC, n);
        drupe_core_adoption_end(before, &owner);
        MUST(wrap_made() == 1 && count_adopted() == 0);
    }
    wrap_plan(WRAP_MALLOC, 2);
    before = drupe_core_adoption_begin();
    MUST(before && wrap_made() == 1);
    drupe_core_adoption_end(before, &owner);
    MUST(count_adopted() == 0 && !are_large());
}

static _Atomic(int) registered;

static void *core_thread(void *unused)
{
    static const _Atomic(int) busy = 1;
    drupe_core_register_thread(&registered, 1, &busy, NULL);
    atomic_store(&registered, drupe_thread_id());
    return one_of_many(unused);
}

/* Those that core or a backend has started meanwhile. */
static void known(void)
{
    pthread_t own, other;
    drupe_threads *before = drupe_core_adoption_begin();
    MUST(drupe_thread_start(&own, one_of_many, NULL, "test") == DRUPE_OK);
    MUST(pthread_create(&other, NULL, core_thread, NULL) == 0);
    while (!atomic_load(&registered)) sched_yield();
    drupe_core_adoption_end(before, &owner);
    MUST(count_adopted() == 0);
    MUST(drupe_reg_thread_find(registered)->owner == &registered);
    atomic_store(&many_leave, 1);
    pthread_join(own, NULL);
    pthread_join(other, NULL);
}

static void without_room(void)
{
    const drupe_reg_thread entry = {.owner = &registered};
    drupe_fault_contain();
    drupe_threads *before = drupe_core_adoption_begin();
    start_many(1);
    for (int i = 0; drupe_reg_thread_enter(1000000000 + i, &entry);) i++;
    call_fail(CALL_mmap, 0);
    drupe_core_adoption_end(before, &owner);
    MUST(count_adopted() == 0 && call_made(CALL_mmap) == 0);
}

/* --- Stacks for signals ----------------------------------------------------------------------------------
 */

/* The signal that has threads set theirs, or 0. */
static int stack_signal(void)
{
    struct sigaction there;
    for (int signal = SIGRTMAX - 4; signal > SIGRTMIN + 8; signal--) {
        if (sigaction(signal, NULL, &there) == 0 && there.sa_flags & SA_SIGINFO &&
            there.sa_flags & SA_RESTART)
            return signal;
    }
    return 0;
}

static int stack_signal_now(void)
{
    drupe_core_adoption_end(drupe_core_adoption_begin(), &owner);
    return stack_signal();
}

/* What its handler has the return from it set. */
static void *set_by(int code, int sender, int flags)
{
    struct sigaction there;
    siginfo_t info = {.si_code = code};
    ucontext_t machine;
    info.si_pid = sender;
    memset(&machine, 0, sizeof machine);
    machine.uc_stack.ss_flags = flags;
    MUST(sigaction(stack_signal(), NULL, &there) == 0);
    there.sa_sigaction(stack_signal(), &info, &machine);
    MUST(!machine.uc_stack.ss_sp || machine.uc_stack.ss_size == DRUPE_SIGNAL_STACK);
    return machine.uc_stack.ss_sp;
}

static void are_set_when_we_ask(void)
{
    const drupe_reg_thread entry = {.owner = &owner};
    char place;
    drupe_fault_contain();
    MUST(stack_signal_now());
    MUST(!set_by(SI_TKILL, getpid(), SS_DISABLE)); /* nobody knows this thread */
    drupe_reg_thread *own = drupe_reg_thread_enter(drupe_thread_id(), &entry);
    MUST(!set_by(SI_TKILL, getpid(), SS_DISABLE));
    atomic_store(&own->stack, &place);
    MUST(set_by(SI_TKILL, getpid(), SS_DISABLE) == &place);
    MUST(!set_by(SI_TKILL, getpid(), 0)); /* it has one */
    MUST(!set_by(SI_TKILL, 1, SS_DISABLE));
    MUST(!set_by(SI_USER, getpid(), SS_DISABLE));
}

static void theirs_with_info(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
}

static void theirs(int signal)
{
    (void)signal;
}

/* Signals that the program uses stay its own. */
static void by_a_spare_signal(void)
{
    struct sigaction with_info = {.sa_flags = SA_SIGINFO};
    with_info.sa_sigaction = theirs_with_info;
    drupe_fault_contain();
    sigaction(SIGRTMAX - 4, &with_info, NULL);
    signal(SIGRTMAX - 5, SIG_IGN);
    signal(SIGRTMAX - 6, theirs);
    MUST(stack_signal_now() == SIGRTMAX - 7);
    MUST(stack_signal_now() == SIGRTMAX - 7);
    signal(SIGRTMAX - 7, theirs); /* the program takes it */
    MUST(stack_signal_now() == SIGRTMAX - 8);
    /* Calls before: who handles SIGFPE, then whether ours stands still, then the next signal, read and set.
     */
    call_fail(CALL_sigaction, 2);
    drupe_core_adoption_end(drupe_core_adoption_begin(), &owner);
    struct sigaction there;
    MUST(sigaction(SIGRTMAX - 9, NULL, &there) == 0 && there.sa_flags & SA_SIGINFO);
}

static void refused_signals(void)
{
    drupe_fault_contain();
    call_fail(CALL_sigaction, 2); /* the first is SIGFPE's */
    MUST(stack_signal_now() == SIGRTMAX - 5);
    signal(SIGRTMAX - 5, theirs);
    call_fail(CALL_sigaction, 4); /* ours is looked at, and SIGRTMAX - 4 read */
    MUST(stack_signal_now() == SIGRTMAX - 6);
}

/* All are taken: threads are adopted without a stack. */
static void without_a_signal(void)
{
    drupe_fault_contain();
    for (int signal_number = SIGRTMIN + 9; signal_number <= SIGRTMAX - 4; signal_number++)
        signal(signal_number, theirs);
    drupe_threads *before = drupe_core_adoption_begin();
    start_many(1);
    call_fail(CALL_mmap, 0);
    drupe_core_adoption_end(before, &owner);
    MUST(!stack_signal() && count_adopted() == 1 && call_made(CALL_mmap) == 0);
}

static _Atomic(int) first_number;

static void *first_thread(void *unused)
{
    atomic_store(&first_number, drupe_thread_id());
    return one_of_many(unused);
}

static void leave_first(void)
{
    atomic_store(&many_leave, 1);
    pthread_join(threads[0], NULL);
    while (syscall(SYS_tgkill, getpid(), first_number, 0) == 0) sched_yield();
}

static void start_first(void)
{
    MUST(pthread_create(&threads[0], NULL, first_thread, NULL) == 0);
    while (!atomic_load(&first_number)) sched_yield();
}

static void without_memory(void)
{
    drupe_fault_contain();
    drupe_threads *before = drupe_core_adoption_begin();
    start_first();
    call_fail(CALL_mmap, 1);
    drupe_core_adoption_end(before, &owner);
    MUST(call_made(CALL_mmap) == 1 && !drupe_reg_thread_find(first_number)->stack);
}

/* The thread ends while it is adopted. */
static void too_late(void)
{
    drupe_fault_contain();
    drupe_threads *before = drupe_core_adoption_begin();
    start_first();
    call_fail(CALL_munmap, 0);
    call_in_mmap = leave_first;
    drupe_core_adoption_end(before, &owner);
    MUST(!call_in_mmap && call_made(CALL_munmap) == 1 && !drupe_reg_thread_find(first_number)->stack);
}

static void stacks_for_signals(void **state)
{
    (void)state;
    child_is_good(are_set_when_we_ask);
    child_is_good(by_a_spare_signal);
    child_is_good(refused_signals);
    child_is_good(without_a_signal);
    child_is_good(without_memory);
    child_is_good(too_late);
}

static void threads_of_drivers_are_adopted(void **state)
{
    (void)state;
    child_is_good(adopted);
    child_is_good(many);
    child_is_good(unlisted);
    child_is_good(known);
    child_is_good(without_room);
}

/* --- Divisions by zero -----------------------------------------------------------------------------------
 */

static const _Atomic(int) at_work = 1;

/* One of core's threads is the program's, and a second driver in the middle of the first. */
static void divided_by_core(void)
{
    signal(SIGFPE, host_division);
    drupe_core_register_thread(&owner, 0, &at_work, NULL);
    drupe_threads *outer = drupe_core_adoption_begin(), *inner = drupe_core_adoption_begin();
    signal(SIGFPE, driver_division);
    drupe_core_adoption_end(inner, &owner);
    drupe_core_adoption_end(outer, &owner);
    raise(SIGFPE);
    MUST(divisions[0] == 1 && divisions[1] == 0);
}

/* A driver that handles none hides none. */
static void left_alone(void)
{
    static void (*const handlers[])(int) = {SIG_DFL, SIG_IGN};
    for (size_t i = 0; i < 2; i++) {
        struct sigaction now;
        signal(SIGFPE, host_division);
        drupe_threads *before = drupe_core_adoption_begin();
        signal(SIGFPE, handlers[i]);
        drupe_core_adoption_end(before, &owner);
        MUST(sigaction(SIGFPE, NULL, &now) == 0 && now.sa_handler == handlers[i]);
    }
}

static void divisions_stay_the_programs(void **state)
{
    (void)state;
    child_is_good(divided);
    child_is_good(divided_by_core);
    child_is_good(left_alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_drivers_are_adopted),
        cmocka_unit_test(stacks_are_larger_meanwhile),
        cmocka_unit_test(stacks_for_signals),
        cmocka_unit_test(divisions_stay_the_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
