/* Threads that fault: who goes on, who ends, who is parked, who is told. Each case is a process of
 * its own. */
#include "calls.h"
#include "child.h"
#include "core/fault/fault_room.h"
#include "drupe/fault.h"
#include "walk/wrap.h"
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>

/* --- What is told ----------------------------------------------------------------------------------------
 */

static _Atomic(int) ntold;
static drupe_fault told[8];

static void spread(const drupe_fault *fault)
{
    const int n = atomic_load(&ntold);
    if (n < 8) told[n] = *fault;
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

static bool reads;

static void *run(void *with_recovery)
{
    static const volatile int *volatile nowhere = (const volatile int *)(uintptr_t)16;
    atomic_store(&number, drupe_thread_id());
    drupe_core_register_thread(&owner, 3, &busy, with_recovery ? &recovery : NULL);
    if (reads) (void)*nowhere;
    child_faults();
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
#ifdef __x86_64__
    MUST(told[0].access == (reads ? 1 : 2));
#endif
    MUST(drupe_reg_thread_find(number) == NULL);
}

static void ends_by_reading(void)
{
    reads = true;
    ends();
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
    const uintptr_t code = (uintptr_t)child_faults;
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
    child_is_good(goes_on);
    child_is_good(ends);
    child_is_good(ends_by_reading);
    child_is_good(is_parked);
    child_is_good(is_parked_by_its_way);
    child_is_good(goes_on_inside);
    child_is_good(ends_outside);
}

static int claim(void)
{
    siginfo_t info = {.si_code = SEGV_MAPERR};
    return drupe_fault_claim(SIGSEGV, &info, NULL);
}

static void without_work(void)
{
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
    drupe_core_register_thread(&owner, 0, &busy, NULL); /* busy is 0 */
    child_faults();
}

static void disowned(void)
{
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
    drupe_core_register_thread(&owner, 0, NULL, NULL);
    drupe_core_disown();
    drupe_core_disown();
    child_faults();
}

/* Nor of one that had this thread's id before. */
static void are_not_claimed(void)
{
    drupe_fault_contain();
    drupe_core_register_thread(&owner, 0, &busy, NULL);
    MUST(claim() == DRUPE_FAULT_NOT_OURS);
    atomic_store(&busy, 1);
    drupe_reg_thread_find(drupe_thread_id())->started++;
    MUST(claim() == DRUPE_FAULT_NOT_OURS);
    drupe_core_register_thread(&owner, 0, &busy, NULL);
    const pid_t child = fork();
    if (child == 0) leave(claim() == DRUPE_FAULT_NOT_OURS ? GOOD : BAD);
    int status = 0;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == GOOD);
    MUST(claim() == DRUPE_FAULT_PARK);
}

static void of_a_child(void)
{
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
    drupe_core_register_thread(&owner, 0, NULL, NULL);
    int status = 0;
    const pid_t child = fork();
    if (child == 0) child_faults();
    waitpid(child, &status, 0);
    MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void faults_of_others_end_the_process(void **state)
{
    (void)state;
    child_is_killed(without_work);
    child_is_killed(disowned);
    child_is_good(of_a_child);
    child_is_good(are_not_claimed);
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
    /* Ways that need a stack, which is not known. */
    static const drupe_way ways[] = {DRUPE_WAY_ON, DRUPE_WAY_ON_INSIDE, DRUPE_WAY_END};
    for (int i = 0; i < 3; i++) {
        recovery = (drupe_recovery){.way = ways[i], .resume = resume};
        drupe_core_register_thread(&owner, 5, NULL, &recovery);
        ucontext_t machine = {0};
        MUST(drupe_fault_claim(SIGSEGV, &info, &machine) == DRUPE_FAULT_PARK);
    }
    await_told(7);
    drupe_isolation_stop();
    drupe_core_register_thread(&owner, 5, NULL, NULL); /* starts it again */
    MUST(claim() == DRUPE_FAULT_PARK);
    await_told(8);
    drupe_isolation_stop();
    MUST(claim() == DRUPE_FAULT_NOT_OURS);
    drupe_isolation_stop();
}

/* The thread that serves faults looks in vain, and is interrupted. */
static void wait_for_somebody(void)
{
    drupe_fault_contain();
    call_fail(CALL_sem_wait, 1);
    drupe_core_register_thread(&owner, 5, NULL, NULL);
    MUST(claim() == DRUPE_FAULT_PARK);
    while (call_made(CALL_sem_wait) < 3) sched_yield();
    MUST(ntold == 0);
    MUST(!drupe_reg_thread_find(drupe_thread_id())); /* who has this id now is another one */
    drupe_isolation_tell(spread);
    await_told(1);
    MUST(told[0].index == 5);
}

/* Without a thread that would serve it, no fault is claimed. */
static void unserved(void)
{
    drupe_fault_contain();
    call_fail(CALL_sem_init, 1);
    drupe_core_register_thread(&owner, 5, NULL, NULL);
    MUST(claim() == DRUPE_FAULT_NOT_OURS);
    wrap_plan(WRAP_THREAD, 1);
    drupe_isolation_start();
    MUST(wrap_made() == 1 && claim() == DRUPE_FAULT_NOT_OURS);
    drupe_isolation_start();
    MUST(claim() == DRUPE_FAULT_PARK);
}

static void too_many(void)
{
    int verdict = DRUPE_FAULT_PARK, parked = 0;
    drupe_fault_contain();
    drupe_isolation_tell(spread);
    for (; parked < 600 && verdict == DRUPE_FAULT_PARK; parked += verdict == DRUPE_FAULT_PARK) {
        drupe_core_register_thread(&owner, 5, NULL, NULL);
        verdict = claim();
        /* A parked thread does not fault again. */
        await_told(verdict == DRUPE_FAULT_PARK ? parked + 1 : parked);
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

/* What the system says of the thread that had this id. */
static void starts(void)
{
    static const char *const unknown[] = {"", "4711", "4711 (a", "4711 (a) S", "4711 (a) S 2 3 4 5 6 7 8 9"};
    const drupe_reg_thread entry = {.owner = &owner};
    const int self = drupe_thread_id();
    drupe_reg_thread *own = drupe_reg_thread_enter(self, &entry);
    MUST(own && own->started);
    call_fail(CALL_open, 1);
    MUST(drupe_reg_thread_living(self) == own && call_made(CALL_open) == 1);
    call_fail(CALL_read, 1);
    MUST(drupe_reg_thread_living(self) == own && call_made(CALL_read) == 1);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        call_text = unknown[i];
        MUST(drupe_reg_thread_living(self) == own);
    }
    call_text = "4711 (a) b (c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 12345 23";
    MUST(!drupe_reg_thread_living(self)); /* another one */
    MUST(drupe_reg_thread_enter(self, &entry)->started == 12345);
}

static void claims_are_for_registered_threads(void **state)
{
    (void)state;
    child_is_good(claims);
    child_is_good(wait_for_somebody);
    child_is_good(unserved);
    child_is_good(starts);
    child_is_good(too_many);
    child_is_good(the_table);
}

/* --- Stacks for signals ----------------------------------------------------------------------------------
 */

static stack_t signal_stack(void)
{
    stack_t there = {0};
    MUST(sigaltstack(NULL, &there) == 0);
    return there;
}

static bool has_stack(void)
{
    return !(signal_stack().ss_flags & SS_DISABLE);
}

/* Sanitizers give threads one of their own. */
static void drop_stack(void)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    MUST(sigaltstack(&none, NULL) == 0);
}

static void are_given_and_taken_back(void)
{
    drop_stack();
    call_fail(CALL_munmap, 0);
    drupe_core_register_thread(&owner, 0, NULL, NULL);
    MUST(has_stack() && signal_stack().ss_size == DRUPE_SIGNAL_STACK);
    drupe_core_register_thread(&owner, 0, NULL, NULL); /* has one */
    for (int i = 0; i < 2; i++) {
        drupe_core_disown();
        MUST(!drupe_reg_thread_find(drupe_thread_id()) && !has_stack() && call_made(CALL_munmap) == 1);
    }
}

static void of_the_program_stay(void)
{
    const stack_t own = {.ss_sp = stack, .ss_size = STACK};
    MUST(sigaltstack(&own, NULL) == 0);
    drupe_core_register_thread(&owner, 0, NULL, NULL);
    MUST(signal_stack().ss_sp == stack);
    drupe_core_disown();
    MUST(signal_stack().ss_sp == stack);
}

/* A thread without one is registered all the same. */
static void cannot_be_given(void)
{
    static const struct {
        enum call call;
        unsigned n, mapped, unmapped;
    } cases[] = {{CALL_sigaltstack, 1, 0, 0}, {CALL_mmap, 1, 1, 0}, {CALL_sigaltstack, 2, 1, 1}};
    drop_stack();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        call_fail(CALL_mmap, 0);
        call_fail(CALL_munmap, 0);
        call_fail(cases[i].call, cases[i].n);
        drupe_core_register_thread(&owner, 0, NULL, NULL);
        MUST(call_made(CALL_mmap) == cases[i].mapped && call_made(CALL_munmap) == cases[i].unmapped);
        MUST(!has_stack() && drupe_reg_thread_find(drupe_thread_id()));
    }
}

/* What is in use still is not unmapped. */
static void cannot_be_taken_back(void)
{
    drop_stack();
    for (unsigned n = 1; n <= 2; n++) {
        drupe_core_register_thread(&owner, 0, NULL, NULL);
        call_fail(CALL_munmap, 0);
        call_fail(CALL_sigaltstack, n);
        drupe_core_disown();
        MUST(call_made(CALL_munmap) == 0 && has_stack() && !drupe_reg_thread_find(drupe_thread_id()));
    }
}

static void stacks_for_signals(void **state)
{
    (void)state;
    child_is_good(are_given_and_taken_back);
    child_is_good(of_the_program_stay);
    child_is_good(cannot_be_given);
    child_is_good(cannot_be_taken_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_ends_as_was_said_before),
        cmocka_unit_test(faults_of_others_end_the_process),
        cmocka_unit_test(claims_are_for_registered_threads),
        cmocka_unit_test(stacks_for_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
