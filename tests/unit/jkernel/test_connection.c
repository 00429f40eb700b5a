/* Connection files: the good, and every way to be refused with advice. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PORTS "\"shell_port\":1,\"iopub_port\":\"2\",\"stdin_port\":3,\"control_port\":4,\"hb_port\":65535"

/* Read a file with this text and mode, and demand a refusal that contains `advice`. */
static void check_refused(const char *text, unsigned mode, const char *advice)
{
    char path[64], problem[512] = "";
    jk_config config;
    connection_file(text, mode, path);
    assert_int_equal(jk_config_read(path, &config, problem, sizeof problem), -1);
    unlink(path);
    if (!strstr(problem, advice)) fail_msg("\"%s\" lacks \"%s\"", problem, advice);
    assert_null(strstr(problem, "hush"));
    assert_null(config.key);
    assert_null(config.document);
}

static void test_good(void **state)
{
    (void)state;
    char path[64], problem[512] = "";
    jk_config config;
    connection_file("{\"ip\":\"127.0.0.1\",\"key\":\"hush\"," PORTS "}", 0600, path);
    if (jk_config_read(path, &config, problem, sizeof problem) != 0) fail_msg("%s", problem);
    static const int ports[JK_CHANNELS] = {1, 2, 3, 4, 65535};
    assert_memory_equal(config.ports, ports, sizeof ports);
    assert_string_equal(config.scheme, "hmac-sha256");
    assert_string_equal(config.key, "hush");
    assert_int_equal(config.key_size, 4);
    assert_string_equal(config.ip, "127.0.0.1");
    jk_config_clear(&config);
    unlink(path);
}

static void test_modes(void **state)
{
    (void)state;
    const char *text = "{\"ip\":\"127.0.0.1\",\"key\":\"hush\"," PORTS "}";
    static const unsigned modes[] = {0604, 0640, 0620, 0602, 0644, 0666};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) check_refused(text, modes[i], "chmod 600");
}

static void test_fields(void **state)
{
    (void)state;
    check_refused("", 0600, "not JSON");
    check_refused("{\"key\" \"hush\"}", 0600, "line 1");
    check_refused("{\"key\":\"hush\" hush", 0600, "line 1");
    check_refused("[]", 0600, "JSON object");
    check_refused("{\"ip\":\"1\",\"ip\":\"2\"}", 0600, "not JSON");
    check_refused("{\"key\":\"hush\"," PORTS "}", 0600, "\"ip\"");
    check_refused("{\"ip\":7,\"key\":\"hush\"," PORTS "}", 0600, "\"ip\"");
    check_refused("{\"ip\":\"127.0.0.1\"," PORTS "}", 0600, "\"key\"");
    check_refused("{\"ip\":\"127.0.0.1\",\"key\":null," PORTS "}", 0600, "\"key\"");
    check_refused("{\"ip\":\"127.0.0.1\",\"key\":\"hush\"}", 0600, "\"shell_port\"");
    check_refused("{\"transport\":\"ipc\",\"ip\":\"/tmp/x\",\"key\":\"hush\"," PORTS "}", 0600,
                  "\"transport\": \"tcp\"");
    check_refused("{\"ip\":\"127.0.0.1\",\"key\":\"hush\",\"curve_publickey\":\"short\"," PORTS "}", 0600,
                  "curve_secretkey");
    char text[400];
    snprintf(text, sizeof text, "{\"ip\":\"%0100d\",\"key\":\"hush\"," PORTS "}", 1);
    check_refused(text, 0600, "longer than 63");
}

static void test_ports(void **state)
{
    (void)state;
    static const char *const bad[] = {"-1",
                                      "65536",
                                      "\"x\"",
                                      "\"\"",
                                      "\" 1\"",
                                      "\"1x\"",
                                      "null",
                                      "\"-1\"",
                                      "1.5",
                                      "[]",
                                      "\"99999999999999999999\""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "{\"ip\":\"127.0.0.1\",\"key\":\"hush\",\"shell_port\":1,\"iopub_port\":2,\"stdin_port\":%s,"
                 "\"control_port\":4,\"hb_port\":5}",
                 bad[i]);
        check_refused(text, 0600, "\"stdin_port\"");
    }
}

static void test_absent(void **state)
{
    (void)state;
    char problem[512] = "";
    jk_config config;
    assert_int_equal(jk_config_read("/tmp/no-such-connection-file", &config, problem, sizeof problem), -1);
    assert_non_null(strstr(problem, "No such file"));
    assert_int_equal(jk_config_read("/tmp", &config, problem, sizeof problem), -1);
    assert_non_null(strstr(problem, "regular file"));
}

static void test_write(void **state)
{
    (void)state;
    char path[64], problem[512] = "";
    jk_config config;
    connection_file("{\"ip\":\"127.0.0.1\",\"key\":\"hush\",\"other\":[1]," PORTS "}", 0600, path);
    assert_int_equal(jk_config_read(path, &config, problem, sizeof problem), 0);
    config.ports[JK_IOPUB] = 4321;
    mode_t before = umask(0);
    if (jk_config_write(&config, problem, sizeof problem) != 0) fail_msg("%s", problem);
    umask(before);
    jk_config_clear(&config);

    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(jk_config_read(path, &config, problem, sizeof problem), 0);
    assert_int_equal(config.ports[JK_IOPUB], 4321);
    assert_int_equal(config.ports[JK_SHELL], 1);
    assert_int_equal(json_array_size(json_object_get(config.document, "other")), 1);
    jk_config_clear(&config);
    unlink(path);
}

/* --- What only opening a server finds ----------------------------------------------------------------------
 */

static void check_open_fails(const char *text, const char *advice)
{
    char path[64], problem[512] = "";
    fake_executor fake;
    long threads = threads_count(), descriptors = descriptors_count();
    fake_executor_init(&fake);
    connection_file(text, 0600, path);
    assert_null(jk_server_open(path, &fake.executor, problem, sizeof problem));
    unlink(path);
    if (!strstr(problem, advice)) fail_msg("\"%s\" lacks \"%s\"", problem, advice);
    assert_int_equal(threads_count(), threads);
    assert_int_equal(descriptors_count(), descriptors);
}

static void test_open_refuses(void **state)
{
    (void)state;
    /* A sanitizer's own thread starts with the first one. */
    test_kernel kernel;
    kernel_start(&kernel, false);
    kernel_stop(&kernel);
    check_open_fails("{\"ip\":\"127.0.0.1\",\"key\":\"hush\",\"signature_scheme\":\"hmac-none\"," PORTS "}",
                     "hmac-sha256");
    check_open_fails(
        "{\"ip\":\"203.0.113.9\",\"key\":\"hush\",\"shell_port\":0,\"iopub_port\":0,\"stdin_port\":0,"
        "\"control_port\":0,\"hb_port\":0}",
        "check \"ip\"");
}

static void test_port_taken(void **state)
{
    (void)state;
    char text[300];
    test_kernel kernel;
    kernel_start(&kernel, false);
    jk_config config;
    char problem[512] = "";
    assert_int_equal(jk_config_read(kernel.path, &config, problem, sizeof problem), 0);
    for (int i = 0; i < JK_CHANNELS; i++) assert_true(config.ports[i] > 0);
    snprintf(text, sizeof text,
             "{\"ip\":\"127.0.0.1\",\"key\":\"hush\",\"shell_port\":%d,\"iopub_port\":0,\"stdin_port\":0,"
             "\"control_port\":0,\"hb_port\":0}",
             config.ports[JK_SHELL]);
    check_open_fails(text, "another program has this port");
    jk_config_clear(&config);
    kernel_stop(&kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),         cmocka_unit_test(test_modes),      cmocka_unit_test(test_fields),
        cmocka_unit_test(test_ports),        cmocka_unit_test(test_absent),     cmocka_unit_test(test_write),
        cmocka_unit_test(test_open_refuses), cmocka_unit_test(test_port_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
