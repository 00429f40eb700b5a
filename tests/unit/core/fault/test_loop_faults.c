/* Loops whose parts fault: who is told of as the one who did, and that the next loop has its helpers. Each
 * case is a process of its own. */
#include "base/base.h"
#include "base/parallel.h"
#include "child.h"
#include "core/fault/fault_room.h"
#include "drupe/fault.h"
#include <sched.h>

static _Atomic(int) ntold;
static drupe_fault told;
static int owner;
static _Atomic(int) busy, over;

static void spread(const drupe_fault *fault)
{
    if (drupe_loop_fault(fault)) return;
    told = *fault;
    atomic_fetch_add(&ntold, 1);
}

typedef struct turn {
    int caller;
    bool caller_faults, helper_faults;
    bool alone; /* the helpers may be busy elsewhere */
    _Atomic(int) came, helped;
} turn;

/* Each of two threads has one part, since neither ends its own before the other has come. */
static void part(size_t i, void *user)
{
    turn *t = user;
    (void)i;
    const bool helps = drupe_thread_id() != t->caller;
    if (helps) atomic_store(&t->helped, 1);
    atomic_fetch_add(&t->came, 1);
    for (int n = 0; atomic_load(&t->came) < 2 && !(t->alone && n == 1000); n++) sched_yield();
    if (helps ? t->helper_faults : t->caller_faults) child_faults();
}

static void *call(void *user)
{
    turn *t = user;
    t->caller = drupe_thread_id();
    drupe_core_register_thread(&owner, 3, &busy, NULL);
    drupe_parallel(2, part, t);
    atomic_store(&over, 1);
    drupe_core_disown();
    return NULL;
}

static void begin(turn *t)
{
    pthread_t thread;
    atomic_store(&over, 0);
    MUST(pthread_create(&thread, NULL, call, t) == 0);
    pthread_detach(thread);
}

static void open_all(void)
{
    drupe_isolation_tell(spread);
    atomic_store(&busy, 1);
    MUST(drupe_fault_install(NULL) == DRUPE_OK);
}

/* A helper that is at a part of a loop whose caller is parked comes to the next one when it is done. */
static void goes_well(void)
{
    for (bool helped = false; !helped;) {
        turn good = {.alone = true};
        begin(&good);
        while (!atomic_load(&over)) sched_yield();
        helped = atomic_load(&good.helped);
    }
}

/* Told of as the caller's, once; the helper's number goes to another thread. */
static void is_the_callers(void)
{
    enum { ROUNDS = 3 };
    open_all();
    for (int round = 1; round <= ROUNDS; round++) {
        turn bad = {.helper_faults = true};
        begin(&bad);
        while (atomic_load(&ntold) < round) sched_yield();
        MUST(told.owner == &owner && told.index == 3 && told.signal == SIGSEGV && !told.ended);
        MUST(told.instruction != 0 && !atomic_load(&over));
        goes_well();
    }
    MUST(atomic_load(&ntold) == ROUNDS);
    drupe_parallel_stop();
}

/* The caller's own part: its loop stays behind, and does not keep the helpers. */
static void leaves_the_helpers(void)
{
    turn bad = {.caller_faults = true};
    open_all();
    begin(&bad);
    while (!atomic_load(&ntold)) sched_yield();
    MUST(told.owner == &owner && told.index == 3);
    goes_well();
    drupe_parallel_stop();
    goes_well();
}

static void both_at_once(void)
{
    turn bad = {.caller_faults = true, .helper_faults = true};
    open_all();
    begin(&bad);
    while (!atomic_load(&ntold)) sched_yield();
    MUST(told.owner == &owner && told.index == 3);
}

static void is_not_contained(void)
{
    turn bad = {.helper_faults = true};
    open_all();
    atomic_store(&busy, 0); /* the caller runs code of the program */
    begin(&bad);
    for (;;) sched_yield();
}

static void faults_of_parts(void **state)
{
    (void)state;
    if (drupe_parallel_width() < 2) skip(); /* one processor: all parts are the caller's */
    child_is_good(is_the_callers);
    child_is_good(leaves_the_helpers);
    child_is_good(both_at_once);
    child_is_killed(is_not_contained);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(faults_of_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
