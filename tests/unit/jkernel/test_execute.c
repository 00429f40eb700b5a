/* One request's life as a client sees it. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    test_kernel kernel;
    test_client client;
} fixture;

static fixture the;

static int set_up(void **state)
{
    *state = &the;
    kernel_start(&the.kernel, false);
    client_open(&the.client, the.kernel.path);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    client_close(&the.client);
    kernel_stop(&the.kernel);
    return 0;
}

static void test_order(void **state)
{
    (void)state;
    char id[64];
    test_received reply;
    client_execute(&the.client, "print hello", NULL, id);
    client_expect(&the.client, JK_SHELL, "execute_reply", id, &reply);
    assert_string_equal(received_text(&reply, "status"), "ok");
    assert_string_equal(json_string_value(json_object_get(reply.metadata, "started")), "now");
    received_clear(&reply);
    client_expect_iopub(&the.client, "status:busy", id);
    client_expect_iopub(&the.client, "execute_input", id);
    client_expect_iopub(&the.client, "stream", id);
    client_expect_iopub(&the.client, "status:idle", id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
