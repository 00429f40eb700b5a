/* Loops on several threads: every part once, several loops at a time, loops inside of parts. */
#include "base/parallel.h"
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

enum { PARTS = 64, ROUNDS = 300, CALLERS = 4, LIMIT_S = 60, TURNS = 100000 };

typedef struct counts {
    _Atomic(unsigned) times[PARTS];
    _Atomic(unsigned) inner;
    bool nested;
} counts;

static void inner_part(size_t i, void *user)
{
    (void)i;
    atomic_fetch_add(&((counts *)user)->inner, 1);
}

static void part(size_t i, void *user)
{
    counts *c = user;
    atomic_fetch_add(&c->times[i], 1);
    if (c->nested) drupe_parallel(PARTS, inner_part, c);
}

static bool counted(const counts *c)
{
    bool good = c->inner == (c->nested ? PARTS * PARTS : 0);
    for (size_t i = 0; i < PARTS; i++) good = good && c->times[i] == 1;
    return good;
}

static void *rounds(void *user)
{
    uintptr_t bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        counts c = {.nested = user != NULL};
        drupe_parallel(PARTS, part, &c);
        bad += !counted(&c);
    }
    return (void *)bad;
}

static void test_parts(void **state)
{
    (void)state;
    assert_ptr_equal(rounds(NULL), NULL);
    drupe_parallel(0, part, NULL);
}

/* Two parts, of a helper and of the caller, whose one is over first. */
typedef struct late {
    pthread_t caller;
    counts inner;
    _Atomic(bool) begun, over;
} late;

static void late_part(size_t i, void *user)
{
    late *l = user;
    (void)i;
    if (pthread_equal(pthread_self(), l->caller)) {
        for (int turn = 0; turn < TURNS && !l->begun; turn++)
            sched_yield(); /* a helper may be busy elsewhere */
        l->over = true;
        return;
    }
    l->begun = true;
    for (int turn = 0; turn < TURNS && !l->over; turn++) sched_yield();
    for (int turn = 0; turn < TURNS / 1000; turn++) sched_yield(); /* until the caller waits for this part */
    drupe_parallel(PARTS, inner_part, &l->inner);
}

/* A helper's part begins a loop after the outer one's caller has run out of parts: nobody has the helpers
 * then. */
static void test_nested(void **state)
{
    alarm(LIMIT_S);
    assert_ptr_equal(rounds(state), NULL);
    for (int round = 0; round < ROUNDS; round++) {
        late l = {.caller = pthread_self()};
        drupe_parallel(2, late_part, &l);
        assert_true(l.inner.inner == (l.begun ? PARTS : 0));
    }
    alarm(0);
}

static void test_callers(void **state)
{
    (void)state;
    pthread_t threads[CALLERS];
    alarm(LIMIT_S);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, rounds, i % 2 ? &threads : NULL), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *bad;
        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_ptr_equal(bad, NULL);
    }
    alarm(0);
    drupe_parallel_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_callers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
