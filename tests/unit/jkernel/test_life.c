/* Input, interrupt, shutdown, the parent's end, and what is left after closing. */
#include "harness.h"
#include "jkernel/server/server_room.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- Input -------------------------------------------------------------------------------------------------
 */

static void expect_question(const char *id, const char *prompt)
{
    test_received question;
    client_expect(&the_client, JK_STDIN, "input_request", id, &question);
    assert_string_equal(received_text(&question, "prompt"), prompt);
    received_clear(&question);
}

static void test_input(void **state)
{
    (void)state;
    char id[64], text[256];
    client_execute(&the_client, "print ask\\ninput Name?", NULL, id);
    expect_question(id, "Name?");
    client_send(&the_client, JK_STDIN, "input_reply", "{\"value\":\"Ann\"}", NULL);
    expect_reply("execute_reply", id, "ok");
    client_until_idle(&the_client, id, text, sizeof text);
    assert_string_equal(text, "ask\n{\"value\":\"Ann\"}\n");
}

/* Wait until the server has the answer. */
static void input_settle(void)
{
    jk_input *input = &the_kernel.fake.server->requests->input;
    bool waiting = true;
    while (waiting) {
        usleep(1000);
        pthread_mutex_lock(&input->lock);
        waiting = input->waiting;
        pthread_mutex_unlock(&input->lock);
    }
}

static void test_stale_answers(void **state)
{
    (void)state;
    char id[64], text[256];
    client_execute(&the_client, "input One?", NULL, id);
    expect_question(id, "One?");
    client_send(&the_client, JK_CONTROL, "interrupt_request", "{}", NULL);
    expect_reply("execute_reply", id, "error");
    client_until_idle(&the_client, id, NULL, 0);
    /* It comes after the cell that asked was interrupted. */
    client_send(&the_client, JK_STDIN, "input_reply", "{\"value\":\"late\"}", NULL);
    input_settle();
    client_execute(&the_client, "input Two?", NULL, id);
    expect_question(id, "Two?");
    client_send(&the_client, JK_STDIN, "wish", "{}", NULL);
    client_send(&the_client, JK_STDIN, "input_reply", "{\"value\":\"right\"}", NULL);
    expect_reply("execute_reply", id, "ok");
    client_until_idle(&the_client, id, text, sizeof text);
    assert_string_equal(text, "{\"value\":\"right\"}\n");
}

static void test_info_while_asking(void **state)
{
    (void)state;
    char id[64], info[64];
    test_received reply;
    client_execute(&the_client, "input Well?", NULL, id);
    expect_question(id, "Well?");
    client_send(&the_client, JK_SHELL, "kernel_info_request", "{}", info);
    client_expect(&the_client, JK_SHELL, "kernel_info_reply", info, &reply);
    received_clear(&reply);
    client_send(&the_client, JK_STDIN, "input_reply", "{\"value\":\"\"}", NULL);
    expect_reply("execute_reply", id, "ok");
}

static void test_shutdown_ends_a_question(void **state)
{
    (void)state;
    char id[64], stop[64];
    test_received reply;
    client_execute(&the_client, "input Well?", NULL, id);
    expect_question(id, "Well?");
    client_send(&the_client, JK_CONTROL, "shutdown_request", "{\"restart\":false}", stop);
    client_expect(&the_client, JK_CONTROL, "shutdown_reply", stop, &reply);
    received_clear(&reply);
    expect_reply("execute_reply", id, "error");
}

/* --- Interrupt ---------------------------------------------------------------------------------------------
 */

static void test_interrupt(void **state)
{
    (void)state;
    char id[64], stop[64];
    test_received reply;
    client_execute(&the_client, "sleep 60000", NULL, id);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    client_send(&the_client, JK_CONTROL, "interrupt_request", "{}", stop);
    client_expect(&the_client, JK_CONTROL, "interrupt_reply", stop, &reply);
    assert_string_equal(received_text(&reply, "status"), "ok");
    received_clear(&reply);
    client_expect(&the_client, JK_SHELL, "execute_reply", id, &reply);
    assert_string_equal(received_text(&reply, "ename"), "KeyboardInterrupt");
    received_clear(&reply);
    assert_int_equal(atomic_load(&the_kernel.fake.interrupts), 1);
}

static void test_interrupt_while_stuck(void **state)
{
    (void)state;
    char id[64], stop[64];
    test_received reply;
    client_execute(&the_client, "stuck", NULL, id);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    for (int i = 0; i < 3; i++) {
        client_send(&the_client, JK_CONTROL, "interrupt_request", "{}", stop);
        client_expect(&the_client, JK_CONTROL, "interrupt_reply", stop, &reply);
        received_clear(&reply);
    }
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", id, "ok");
}

static void test_interrupt_reaches_children(void **state)
{
    (void)state;
    char stop[64];
    int status = 0, ready[2];
    test_received reply;
    assert_int_equal(pipe(ready), 0);
    pid_t apart = fork();
    if (apart == 0) {
        setpgid(0, 0);
        signal(SIGINT, SIG_DFL);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        pause();
        _exit(0);
    }
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        pause();
        _exit(0);
    }
    char seen[2];
    for (int i = 0; i < 2; i++) assert_int_equal(read(ready[0], seen, 1), 1);
    client_send(&the_client, JK_CONTROL, "interrupt_request", "{}", stop);
    client_expect(&the_client, JK_CONTROL, "interrupt_reply", stop, &reply);
    received_clear(&reply);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    /* The one in its own process group lives. */
    assert_int_equal(waitpid(apart, &status, WNOHANG), 0);
    kill(apart, SIGKILL);
    assert_int_equal(waitpid(apart, &status, 0), apart);
    close(ready[0]);
    close(ready[1]);
}

/* --- The end -----------------------------------------------------------------------------------------------
 */

static void check_shutdown(jk_channel channel, const char *content, bool restart)
{
    char stop[64];
    test_received reply;
    client_send(&the_client, channel, "shutdown_request", content, stop);
    client_expect(&the_client, channel, "shutdown_reply", stop, &reply);
    assert_string_equal(received_text(&reply, "status"), "ok");
    assert_int_equal(json_is_true(json_object_get(reply.content, "restart")), restart);
    received_clear(&reply);
    client_expect_iopub(&the_client, "status:busy", stop);
    client_expect_iopub(&the_client, "shutdown_reply", stop);
    client_expect_iopub(&the_client, "status:idle", stop);
}

static void test_shutdown(void **state)
{
    (void)state;
    check_shutdown(JK_CONTROL, "{\"restart\":false}", false);
    tear_down(NULL);
    assert_int_equal(atomic_load(&the_kernel.fake.shutdowns), 1);
    assert_int_equal(atomic_load(&the_kernel.fake.restarts), 0);
    set_up(NULL);
    check_shutdown(JK_SHELL, "{\"restart\":true}", true);
    tear_down(NULL);
    assert_int_equal(atomic_load(&the_kernel.fake.restarts), 1);
    set_up(NULL);
}

/* A closed server refuses late callers and does not fall over. */
static void test_late_callers(void **state)
{
    (void)state;
    jk_server *server = the_kernel.fake.server;
    tear_down(NULL);
    assert_int_equal(jk_publish(server, NULL, "display_data", (jk_bytes){"{}", 2}, (jk_bytes){0}, NULL, 0),
                     -1);
    assert_int_equal(jk_stream_write(server, NULL, JK_STDOUT, "late", 4), -1);
    assert_int_equal(jk_server_flush(server, 10), -1);
    assert_null(jk_server_next(server));
    assert_null(jk_server_current_cell(server));
    jk_server_wake(server);
    jk_server_started(server);
    jk_server_close(server);
    set_up(NULL);
}

static void test_close_with_work_in_flight(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        client_execute(&the_client, "flood 3000", NULL, NULL);
        for (int j = 0; j < 20; j++) client_execute(&the_client, "print queued", NULL, NULL);
        client_execute(&the_client, "later", NULL, NULL);
        usleep((unsigned)(i * 2000));
        kernel_stop(&the_kernel);
        client_close(&the_client);
        set_up(NULL);
    }
}

static void test_nothing_is_left(void **state)
{
    (void)state;
    tear_down(NULL);
    set_up(NULL);
    tear_down(NULL);
    long threads = threads_count(), descriptors = descriptors_count();
    for (int i = 0; i < 20; i++) {
        char id[64];
        kernel_start(&the_kernel, true);
        client_open(&the_client, the_kernel.path);
        client_execute(&the_client, "print x\\nwrite y", NULL, id);
        client_until_idle(&the_client, id, NULL, 0);
        client_close(&the_client);
        kernel_stop(&the_kernel);
    }
    threads_settle(threads);
    assert_uint_in_range(descriptors_count(), 1, descriptors);
    set_up(NULL);
}

/* --- Whole processes ---------------------------------------------------------------------------------------
 */

static const char *starved_path; /* a schedstat that stands for the process's; NULL: its own */

static void starved_write(long long ns)
{
    FILE *file = fopen(starved_path, "w");
    if (!file || fprintf(file, "1 %lld 1\n", ns) < 0 || fclose(file) != 0) _exit(92);
}

/* The watchdog has looked; from now on the main thread has waited for a processor for a second. */
static void starve(void *self, bool restart)
{
    (void)self;
    (void)restart;
    starved_write(1000000000);
}

/* Run a kernel in a process of its own whose cell is stuck; its connection file is complete when this
 * returns. */
static pid_t stuck_kernel(const char *path, long parent)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t process = fork();
    if (process == 0) {
        char problem[512], text[32];
        fake_executor fake;
        snprintf(text, sizeof text, "%ld", parent);
        if (parent) setenv("JPY_PARENT_PID", text, 1);
        fake_executor_init(&fake);
        if (starved_path) fake.executor.shutdown = starve;
        fake.server = jk_server_open(path, &fake.executor, problem, sizeof problem);
        if (!fake.server || write(ready[1], "x", 1) != 1) _exit(90);
        fake_executor_run(&fake);
        pause(); /* the main thread never ends by itself */
        _exit(91);
    }
    char seen;
    close(ready[1]);
    assert_int_equal(read(ready[0], &seen, 1), 1);
    close(ready[0]);
    return process;
}

static void expect_exit(pid_t process, int code)
{
    int status = 0;
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void test_watchdog(void **state)
{
    (void)state;
    char path[64], stop[64];
    test_client client;
    test_received reply;
    connection_file(connection_text("secret"), 0600, path);
    pid_t process = stuck_kernel(path, 0);
    client_open(&client, path);
    client_send(&client, JK_CONTROL, "shutdown_request", "{\"restart\":false}", stop);
    client_expect(&client, JK_CONTROL, "shutdown_reply", stop, &reply);
    received_clear(&reply);
    expect_exit(process, 0);
    client_close(&client);
    unlink(path);
}

static void test_watchdog_of_a_starved_process(void **state)
{
    char folder[] = "/tmp/drupe-proc-XXXXXX", self[64], path[80];
    assert_non_null(mkdtemp(folder));
    snprintf(self, sizeof self, "%s/self", folder);
    snprintf(path, sizeof path, "%s/schedstat", self);
    assert_int_equal(mkdir(self, 0700), 0);
    starved_path = path;
    starved_write(0);
    setenv("DRUPE_TEST_PROC", folder, 1);
    double start = seconds_now();
    test_watchdog(state);
    assert_true(seconds_now() - start >= 2.9); /* two seconds of its own and that one */
    unsetenv("DRUPE_TEST_PROC");
    starved_path = NULL;
    unlink(path);
    rmdir(self);
    rmdir(folder);
}

static void test_parent_ends(void **state)
{
    (void)state;
    char path[64];
    connection_file(connection_text("secret"), 0600, path);
    pid_t parent = fork();
    if (parent == 0) {
        pause();
        _exit(0);
    }
    pid_t process = stuck_kernel(path, (long)parent);
    usleep(100000);
    assert_int_equal(waitpid(process, NULL, WNOHANG), 0);
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    double start = seconds_now();
    expect_exit(process, 1);
    print_message("ended %.1f s after its parent\n", seconds_now() - start);
    unlink(path);
}

/* --- What was sent to the kernel before
 * ---------------------------------------------------------------------
 */

#define NOON 951825600LL /* 2000-02-29 */

static bool before(int64_t clock, int64_t age, int64_t made)
{
    int64_t ms = JK_SECOND / 1000;
    struct timespec date = {.tv_sec = NOON + made / 1000, .tv_nsec = (long)(made % 1000 * ms)};
    return jk_life_before(NOON * JK_SECOND + clock * ms, age * ms, date);
}

static void test_sent_before(void **state)
{
    (void)state; /* a kernel that began at noon + 5 s, in ms */
    assert_true(before(6000, 1000, 4999));
    assert_true(before(6000, 1000, 1000));
    assert_false(before(6000, 1000, 5000));
    assert_false(before(6000, 1000, 6000));
    assert_true(before(35000, 30000, 4999));
    assert_false(before(35001, 30001, 4999)); /* another machine's clock is wrong */
    /* The machine's clock was set when the kernel was 2 s old: what is sent from then on is the kernel's. */
    assert_false(before(2000, 3000, 1999));
    assert_false(before(90000, 3000, 89999));
    assert_false(before(6000, 1000, 5000 - 2 * 86400000LL)); /* such a clock, too */
    /* No process is younger than nothing: what tells its age is wrong. */
    assert_false(before(6000, -1000, 1000));
    assert_false(jk_life_before(NOON * JK_SECOND, JK_SECOND, (struct timespec){.tv_sec = 253402300799}));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sent_before),
        cmocka_unit_test(test_watchdog),
        cmocka_unit_test(test_watchdog_of_a_starved_process),
        cmocka_unit_test(test_parent_ends),
        CASE(test_input),
        CASE(test_stale_answers),
        CASE(test_info_while_asking),
        CASE(test_shutdown_ends_a_question),
        CASE(test_interrupt),
        CASE(test_interrupt_while_stuck),
        CASE(test_interrupt_reaches_children),
        CASE(test_shutdown),
        CASE(test_late_callers),
        CASE(test_close_with_work_in_flight),
        CASE(test_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
