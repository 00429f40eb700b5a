/* Random schedules: threads that publish, print, flush and write to descriptors while clients ask on every
 * channel, forks in between, and a close in the middle. The seed is printed;
 * DRUPE_SEED repeats it. What must hold in every order: one busy and one idle around each request,
 * and the running cell's busy right after the idle of any other request. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS       6
#define WRITERS      3
#define REQUESTS     120
#define MESSAGE_WAIT 20000 /* ms; the machine may be slow, most of all under a sanitizer */

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static unsigned random_below(uint64_t *state, unsigned limit)
{
    return (unsigned)(random_next(state) >> 33) % limit;
}

static uint64_t seed; /* of the first round; the next ones count on */

static void seed_make(void)
{
    const char *given = getenv("DRUPE_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    if (!seed) seed = 1;
    print_message("seed %llu\n", (unsigned long long)seed);
}

/* --- Writers -----------------------------------------------------------------------------------------------
 */

typedef struct writer {
    pthread_t thread;
    uint64_t random;
    jk_server *server;
    bool captured;
    atomic_bool stop;
} writer;

static void writer_act(writer *self)
{
    jk_server *server = self->server;
    jk_stream stream = random_below(&self->random, 2) ? JK_STDERR : JK_STDOUT;
    jk_parent *cell = random_below(&self->random, 2) ? jk_server_current_cell(server) : NULL;
    switch (random_below(&self->random, 7)) {
    case 0: jk_stream_write(server, cell, stream, "half", 4); break;
    case 1: jk_stream_write(server, cell, stream, "a line\n", 7); break;
    case 2:
        jk_publish(server, cell, "display_data", (jk_bytes){"{\"data\":{},\"metadata\":{}}", 25},
                   (jk_bytes){0}, NULL, 0);
        break;
    case 3: jk_server_flush(server, 5); break;
    case 4: jk_server_has_room(server); break;
    case 5:
        if (self->captured && write(stream == JK_STDERR ? 2 : 1, "written\n", 8) < 0) break;
        break;
    default: usleep(random_below(&self->random, 300)); break;
    }
    jk_parent_release(cell);
}

static void *writer_run(void *argument)
{
    writer *self = argument;
    while (!atomic_load(&self->stop)) writer_act(self);
    return NULL;
}

static void writers_start(writer *writers, jk_server *server, bool captured, uint64_t first)
{
    for (int i = 0; i < WRITERS; i++) {
        writers[i].random = first + (uint64_t)i * 7919 + 1;
        writers[i].server = server;
        writers[i].captured = captured;
        atomic_store(&writers[i].stop, false);
        assert_int_equal(pthread_create(&writers[i].thread, NULL, writer_run, &writers[i]), 0);
    }
}

static void writers_end(writer *writers)
{
    for (int i = 0; i < WRITERS; i++) {
        atomic_store(&writers[i].stop, true);
        pthread_join(writers[i].thread, NULL);
    }
}

/* --- What a client sees ------------------------------------------------------------------------------------
 */

typedef struct asked {
    char id[64];
    bool is_cell, busy, idle;
} asked;

static asked *asked_find(asked *list, int count, const char *id)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].id, id) == 0) return &list[i];
    }
    return NULL;
}

static void request_send(uint64_t *random, asked *sent)
{
    static const char *const cells[] = {
        "print x",  "print x\\neprint y\\nwrite z", "display d", "sleep 2",
        "flood 30", "fork from the child",          "error",     "sleep 1\\nprint end"};
    static const char *const others[] = {"comm_msg", "complete_request", "kernel_info_request",
                                         "comm_info_request"};
    unsigned kind = random_below(random, 5);
    sent->is_cell = kind < 2;
    sent->busy = sent->idle = false;
    if (kind < 2) {
        client_execute(&the_client, cells[random_below(random, 8)], NULL, sent->id);
    } else if (kind == 2) {
        client_send(&the_client, JK_SHELL, others[random_below(random, 4)], "{}", sent->id);
    } else if (kind == 3) {
        client_send(&the_client, JK_CONTROL, "kernel_info_request", "{}", sent->id);
    } else {
        client_send(&the_client, JK_CONTROL, "interrupt_request", "{}", sent->id);
    }
}

/* Follow one status through the rules. `cell` is the running cell, `owed` the one whose busy must come next.
 */
static void status_check(asked *request, const char *state, asked **cell, asked **owed)
{
    if (strcmp(state, "busy") == 0) {
        if (*owed) {
            assert_ptr_equal(request, *owed);
            *owed = NULL;
            return;
        }
        assert_false(request->busy);
        request->busy = true;
        if (request->is_cell && *cell == NULL) *cell = request;
        return;
    }
    assert_null(*owed);
    assert_true(request->busy && !request->idle);
    request->idle = true;
    if (request == *cell) {
        *cell = NULL;
    } else if (*cell) {
        *owed = *cell;
    }
}

/* Read iopub until every request has its idle. */
static void statuses_check(asked *list, int count)
{
    asked *cell = NULL, *owed = NULL;
    int idle = 0;
    while (idle < count || owed) {
        test_received message;
        if (!client_receive(&the_client, JK_IOPUB, MESSAGE_WAIT, &message))
            fail_msg("%d of %d idle", idle, count);
        asked *request = asked_find(list, count, message.parent_id);
        const char *state = received_text(&message, "execution_state");
        if (strcmp(message.type, "status") == 0) {
            assert_non_null(request);
            status_check(request, state, &cell, &owed);
            idle += strcmp(state, "idle") == 0;
        } else {
            assert_null(owed); /* nothing comes between an idle and the busy that takes it back */
        }
        received_clear(&message);
    }
}

static void round_run(uint64_t random, bool captured)
{
    static asked list[REQUESTS];
    writer writers[WRITERS];
    writers_start(writers, the_kernel.fake.server, captured, random);
    for (int i = 0; i < REQUESTS; i++) {
        request_send(&random, &list[i]);
        if (random_below(&random, 4) == 0) usleep(random_below(&random, 3000));
    }
    statuses_check(list, REQUESTS);
    writers_end(writers);
}

static void test_schedules(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) round_run(seed + (uint64_t)i, false);
}

static void test_schedules_captured(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) round_run(seed + (uint64_t)i, true);
}

/* Writers that go on while the server closes find it closed; nobody waits for them. */
static void test_close_under_writers(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t random = seed + (uint64_t)i;
        writer writers[WRITERS];
        set_up_captured(NULL);
        writers_start(writers, the_kernel.fake.server, false, random);
        for (int j = 0; j < 10; j++) client_execute(&the_client, "print x\\nsleep 1", NULL, NULL);
        usleep(random_below(&random, 30000));
        tear_down(NULL);
        usleep(random_below(&random, 3000));
        writers_end(writers);
    }
}

int main(void)
{
    seed_make();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_schedules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_schedules_captured, set_up_captured, tear_down),
        cmocka_unit_test(test_close_under_writers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
