/* A thread in the background: its start, its sleep, its end, and what a fork leaves of it. */
#include "base/service.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What a step does is chosen by its test; the counters and gates are under the lock. */
typedef struct worker {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* any of those below */
    drupe_service service;
    unsigned steps, left; /* made; to be made at once */
    bool hold;            /* a step stays inside, without the lock, until this is false */
    bool inside, early;
    uint64_t (*also)(struct worker *self);
} worker;

static void tell(worker *self)
{
    pthread_cond_broadcast(&self->moved);
}

static uint64_t step(void *user)
{
    worker *self = user;
    self->steps++;
    self->inside = true;
    tell(self);
    while (self->hold) pthread_cond_wait(&self->moved, &self->lock);
    self->inside = false;
    tell(self);
    if (self->also) return self->also(self);
    if (!self->left) return UINT64_MAX;
    self->left--;
    return 0;
}

static void begin(worker *self)
{
    memset(self, 0, sizeof *self);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->moved, NULL);
    self->service = (drupe_service){.name = "test-service", .lock = &self->lock, .step = step, .user = self};
    pthread_mutex_lock(&self->lock);
}

static void end(worker *self)
{
    drupe_service_stop(&self->service);
    pthread_mutex_unlock(&self->lock);
    drupe_service_clear(&self->service);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->moved);
}

static void await_steps(worker *self, unsigned steps)
{
    while (self->steps < steps) pthread_cond_wait(&self->moved, &self->lock);
}

static void await_inside(worker *self, bool inside)
{
    while (self->inside != inside) pthread_cond_wait(&self->moved, &self->lock);
}

/* Nothing before the first need; what is woken steps once more; after an end it may be started again. */
static void starts_on_need(void **state)
{
    (void)state;
    worker one;
    begin(&one);
    assert_false(drupe_service_runs(&one.service));
    drupe_service_wake(&one.service);
    assert_int_equal(drupe_service_end(&one.service, 0), DRUPE_OK);
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    assert_true(drupe_service_runs(&one.service));
    await_steps(&one, 1);
    drupe_service_wake(&one.service);
    await_steps(&one, 2);
    one.left = 5;
    drupe_service_wake(&one.service);
    await_steps(&one, 8);
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK); /* it runs */
    assert_int_equal(one.steps, 8);
    drupe_service_stop(&one.service);
    assert_false(drupe_service_runs(&one.service));
    unsigned steps = one.steps;
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_steps(&one, steps + 1);
    end(&one);
}

/* Who wakes it while it works has it step again: the wake-up is not lost. */
static void hears_while_it_works(void **state)
{
    (void)state;
    worker one;
    begin(&one);
    one.hold = true;
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_inside(&one, true);
    drupe_service_wake(&one.service);
    one.hold = false;
    tell(&one);
    await_steps(&one, 2);
    end(&one);
}

static uint64_t sleeps_inside(worker *self)
{
    return drupe_service_sleep(&self->service, UINT64_MAX) ? UINT64_MAX : 0;
}

static uint64_t sleeps_shortly(worker *self)
{
    /* The time is long past. */
    self->early |= drupe_service_sleep(&self->service, 1) && !self->service.stopping;
    return self->steps < 3 ? drupe_now_ns() + 1 : UINT64_MAX;
}

static void sleeps_for_a_time(void **state)
{
    (void)state;
    worker one;
    begin(&one);
    one.also = sleeps_shortly;
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_steps(&one, 3);
    assert_false(one.early);
    end(&one);
    begin(&one);
    one.also = sleeps_inside;
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_steps(&one, 1);
    end(&one); /* out of its sleep, too */
}

/* Asked to end while it works: it does not before the step is over, and makes no other one. */
static void ends_while_it_works(void **state)
{
    (void)state;
    worker one;
    begin(&one);
    one.hold = true;
    one.left = 100;
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_inside(&one, true);
    assert_int_equal(drupe_service_end(&one.service, drupe_now_ns()), DRUPE_E_TIMEOUT);
    assert_non_null(strstr(drupe_error_last()->text, "test-service"));
    assert_int_equal(drupe_service_start(&one.service), DRUPE_E_BUSY);
    one.hold = false;
    tell(&one);
    assert_int_equal(drupe_service_end(&one.service, UINT64_MAX), DRUPE_OK);
    assert_int_equal(one.steps, 1);
    assert_int_equal(drupe_service_end(&one.service, UINT64_MAX), DRUPE_OK);
    end(&one);
}

/* One that finishes does all that is left, also where it slept when it was asked. */
static void finishes(void **state)
{
    (void)state;
    worker one;
    begin(&one);
    one.service.finishes = true;
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_steps(&one, 1);
    one.left = 50;
    drupe_service_stop(&one.service);
    assert_int_equal(one.left, 0);
    end(&one);
}

static uint64_t ends_itself(worker *self)
{
    assert_int_equal(drupe_service_end(&self->service, UINT64_MAX), DRUPE_E_INVALID);
    drupe_service_stop(&self->service); /* says nothing, does nothing */
    return UINT64_MAX;
}

static void does_not_wait_for_itself(void **state)
{
    (void)state;
    worker one;
    begin(&one);
    one.also = ends_itself;
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_steps(&one, 1);
    await_inside(&one, false);
    assert_true(drupe_service_runs(&one.service));
    drupe_service_wake(&one.service);
    await_steps(&one, 2);
    end(&one);
}

/* The thread of an abandoned one ends after its step; another one has long been started. */
static void is_abandoned(void **state)
{
    (void)state;
    static worker one; /* the abandoned thread may be in it for longer than this function */
    begin(&one);
    one.hold = true;
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_inside(&one, true);
    assert_int_equal(drupe_service_end(&one.service, drupe_now_ns()), DRUPE_E_TIMEOUT);
    drupe_service_abandon(&one.service);
    assert_false(drupe_service_runs(&one.service));
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_steps(&one, 2);
    one.hold = false;
    one.left = 20;
    tell(&one);
    drupe_service_wake(&one.service);
    await_steps(&one, 5);
    drupe_service_stop(&one.service);
    pthread_mutex_unlock(&one.lock);
}

/* In the child it does not run, and can be started; the parent's goes on. */
static void forks(void **state)
{
    (void)state;
    worker one;
#ifdef __SANITIZE_THREAD__
    skip(); /* it knows no threads in a forked child */
#endif
    begin(&one);
    assert_int_equal(drupe_service_start(&one.service), DRUPE_OK);
    await_steps(&one, 1);
    await_inside(&one, false);
    pid_t child = fork();
    if (child == 0) {
        bool gone = !drupe_service_runs(&one.service);
        bool ended = drupe_service_end(&one.service, UINT64_MAX) == DRUPE_OK;
        bool begun = drupe_service_start(&one.service) == DRUPE_OK;
        pthread_cond_init(&one.moved, NULL);
        await_steps(&one, 2);
        drupe_service_stop(&one.service);
        _exit(gone && ended && begun && !drupe_service_runs(&one.service) ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(drupe_service_runs(&one.service));
    drupe_service_wake(&one.service);
    await_steps(&one, 2);
    end(&one);
}

/* One that sleeps at a pipe of its own. */
static uint64_t reads(void *user)
{
    int *ends = user;
    char byte;
    ssize_t got = read(ends[0], &byte, 1);
    return got == 1 ? 0 : UINT64_MAX;
}

static void writes(void *user)
{
    const int *ends = user;
    ssize_t put = write(ends[1], "", 1);
    (void)put;
}

static uint64_t reads_without_lock(void *user);

static struct {
    pthread_mutex_t lock;
    drupe_service service;
    int ends[2];
} sleeper = {.lock = PTHREAD_MUTEX_INITIALIZER,
             .service = {.name = "test-sleeper",
                         .lock = &sleeper.lock,
                         .step = reads_without_lock,
                         .user = sleeper.ends,
                         .rouse = writes}};

static uint64_t reads_without_lock(void *user)
{
    pthread_mutex_unlock(&sleeper.lock);
    uint64_t until = reads(user);
    pthread_mutex_lock(&sleeper.lock);
    return until;
}

static void sleeps_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(pipe(sleeper.ends), 0);
    pthread_mutex_lock(&sleeper.lock);
    assert_int_equal(drupe_service_start(&sleeper.service), DRUPE_OK);
    drupe_service_wake(&sleeper.service);
    drupe_service_stop(&sleeper.service);
    assert_false(drupe_service_runs(&sleeper.service));
    drupe_service_clear(&sleeper.service);
    pthread_mutex_unlock(&sleeper.lock);
    close(sleeper.ends[0]);
    close(sleeper.ends[1]);
}

#define USERS  8
#define ROUNDS 200

/* All at once start, wake and end the same one; who wakes one that runs sees a step or its end. */
static void *use(void *argument)
{
    worker *self = argument;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&self->lock);
        drupe_status status = drupe_service_start(&self->service);
        if (status == DRUPE_OK && i % 3 == 0) {
            drupe_service_wake(&self->service);
            unsigned steps = self->steps;
            while (self->steps == steps && drupe_service_runs(&self->service))
                pthread_cond_wait(&self->moved, &self->lock);
        }
        if (i % 7 == 0) drupe_service_stop(&self->service);
        tell(self);
        drupe_service_wake(&self->service);
        pthread_mutex_unlock(&self->lock);
    }
    return NULL;
}

static void has_many_users(void **state)
{
    (void)state;
    worker one;
    pthread_t users[USERS];
    begin(&one);
    one.also = NULL;
    pthread_mutex_unlock(&one.lock);
    for (int i = 0; i < USERS; i++) assert_int_equal(pthread_create(&users[i], NULL, use, &one), 0);
    for (int i = 0; i < USERS; i++) pthread_join(users[i], NULL);
    pthread_mutex_lock(&one.lock);
    drupe_service_stop(&one.service);
    assert_false(drupe_service_runs(&one.service));
    end(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_on_need),    cmocka_unit_test(hears_while_it_works),
        cmocka_unit_test(sleeps_for_a_time), cmocka_unit_test(ends_while_it_works),
        cmocka_unit_test(finishes),          cmocka_unit_test(does_not_wait_for_itself),
        cmocka_unit_test(is_abandoned),      cmocka_unit_test(forks),
        cmocka_unit_test(sleeps_elsewhere),  cmocka_unit_test(has_many_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
