/* Connection files: the good, and every way to be refused with advice. */
#include "harness.h"

#include "jkernel/server/server_room.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PORTS "\"shell_port\":1,\"iopub_port\":\"2\",\"stdin_port\":3,\"control_port\":4,\"hb_port\":65535"

/* Read a file with this text and mode, and demand a refusal that contains `advice`. */
static void check_refused(const char *text, unsigned mode, const char *advice)
{
    char path[64];
    jk_config config;
    connection_file(text, mode, path);
    assert_int_equal(jk_config_read(path, &config), -1);
    unlink(path);
    if (!strstr(drupe_error_last()->text, advice))
        fail_msg("\"%s\" lacks \"%s\"", drupe_error_last()->text, advice);
    assert_null(strstr(drupe_error_last()->text, "hush"));
    assert_null(config.key);
    assert_null(config.document);
}

static void test_good(void **state)
{
    (void)state;
    char path[64];
    jk_config config;
    connection_file("{\"ip\":\"127.0.0.1\",\"key\":\"hush\"," PORTS "}", 0600, path);
    if (jk_config_read(path, &config) != 0) fail_msg("%s", drupe_error_last()->text);
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
    check_refused("{\"key\" \"hush\"}", 0600, "line 1");
    check_refused("{\"key\":\"hush\" hush", 0600, "line 1");
    check_refused("[]", 0600, "JSON object");
    check_refused("{\"ip\":\"1\",\"ip\":\"2\"}", 0600, "not JSON");
    check_refused("{\"key\":\"hush\"," PORTS "}", 0600, "\"ip\"");
    check_refused("{\"ip\":7,\"key\":\"hush\"," PORTS "}", 0600, "\"ip\"");
    check_refused("{\"transport\":\"a\\n\\u001b\\u007fb\"}", 0600, "\"a???b\"");
    check_refused("{\"ip\":\"127.0.0.1\"," PORTS "}", 0600, "\"key\"");
    check_refused("{\"ip\":\"127.0.0.1\",\"key\":null," PORTS "}", 0600, "\"key\"");
    check_refused("{\"ip\":\"127.0.0.1\",\"key\":\"hush\"}", 0600, "\"shell_port\"");
    check_refused("{\"transport\":\"pigeon\",\"ip\":\"/tmp/x\",\"key\":\"hush\"," PORTS "}", 0600,
                  "\"tcp\" or \"ipc\"");
    check_refused("{\"ip\":\"127.0.0.1\",\"key\":\"hush\",\"curve_publickey\":\"short\"," PORTS "}", 0600,
                  "curve_secretkey");
    char text[400];
    snprintf(text, sizeof text, "{\"ip\":\"%0100d\",\"key\":\"hush\"," PORTS "}", 1);
    check_refused(text, 0600, "longer than 63");
}

/* A text that ends too early may be half of one that is being written. */
static void test_cut(void **state)
{
    (void)state;
    static const char whole[] = "{\"ip\":\"127.0.0.1\",\"key\":\"hush\"," PORTS "}";
    for (size_t size = 0; size < sizeof whole; size++) {
        jk_config config;
        int result = jk_config_parse("c.json", whole, size, &config);
        assert_int_equal(result, size < sizeof whole - 1 ? JK_CONFIG_CUT : 0);
        if (result) assert_non_null(strstr(drupe_error_last()->text, "too early"));
        jk_config_clear(&config);
    }
    check_refused("{\"ip\":\"127.0.0.1\",", 0600, "too early");
}

static void *rest_write(void *path)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    nanosleep(&pause, NULL);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("\"ip\":\"127.0.0.1\",\"key\":\"hush\"," PORTS "}", file);
    fclose(file);
    return NULL;
}

static void test_half_written(void **state)
{
    (void)state;
    char path[64];
    jk_config config;
    pthread_t writer;
    connection_file("{", 0600, path);
    assert_int_equal(pthread_create(&writer, NULL, rest_write, path), 0);
    if (jk_config_read(path, &config) != 0) fail_msg("%s", drupe_error_last()->text);
    assert_string_equal(config.key, "hush");
    jk_config_clear(&config);
    pthread_join(writer, NULL);
    unlink(path);
}

static void test_ipc(void **state)
{
    (void)state;
    char text[400], folder[256];
    jk_config config;
    static const char *const refused[] = {"", "@abstract"};
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "{\"transport\":\"ipc\",\"ip\":\"%s\",\"key\":\"hush\"," PORTS "}",
                 refused[i]);
        check_refused(text, 0600, "must be a path");
    }
    snprintf(text, sizeof text, "{\"transport\":\"ipc\",\"ip\":\"/%0101d\",\"key\":\"hush\"," PORTS "}", 1);
    check_refused(text, 0600, "JUPYTER_RUNTIME_DIR");
    snprintf(text, sizeof text, "{\"transport\":\"ipc\",\"ip\":\"/%0100d\",\"key\":\"hush\"," PORTS "}", 1);
    assert_int_equal(jk_config_parse("c", text, strlen(text), &config), 0);
    jk_config_clear(&config);
    /* Relative to the folder of the start. */
    assert_int_equal(chdir("/tmp"), 0);
    assert_non_null(getcwd(folder, sizeof folder));
    snprintf(text, sizeof text, "{\"transport\":\"ipc\",\"ip\":\"k\",\"key\":\"hush\"," PORTS "}");
    assert_int_equal(jk_config_parse("c", text, strlen(text), &config), 0);
    char endpoint[JK_ENDPOINT_SIZE], expected[300];
    jk_endpoint_format(config.transport, config.ip, config.ports[JK_HEARTBEAT], endpoint);
    snprintf(expected, sizeof expected, "ipc://%s/k-65535", folder);
    assert_string_equal(endpoint, expected);
    jk_config_clear(&config);
}

static void test_curve_keys(void **state)
{
    (void)state;
    char public[JK_KEY_Z85], secret[JK_KEY_Z85], other[JK_KEY_Z85], text[400];
    assert_int_equal(zmq_curve_keypair(public, secret), 0);
    assert_int_equal(zmq_curve_keypair(other, text), 0);
    static const char form[] = "{\"ip\":\"127.0.0.1\",\"key\":\"hush\",\"curve_publickey\":\"%s\","
                               "\"curve_secretkey\":\"%s\"," PORTS "}";
    snprintf(text, sizeof text, form, other, secret);
    check_refused(text, 0600, "not a pair");
    snprintf(text, sizeof text, form, public, "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~");
    check_refused(text, 0600, "not a pair");
    jk_config config;
    snprintf(text, sizeof text, form, public, secret);
    assert_int_equal(jk_config_parse("c", text, strlen(text), &config), 0);
    assert_string_equal(config.curve_secret, secret);
    jk_config_clear(&config);
}

#define LAUNCHER "\"key\":\"hush\",\"kernel_id\":\"k 1\",\"registration_ip\":\"127.0.0.2\""

static void test_registration_files(void **state)
{
    (void)state;
    jk_config config;
    static const char good[] = "{\"transport\":\"tcp\"," LAUNCHER ",\"registration_port\":\"7\"}";
    assert_int_equal(jk_config_parse("r", good, strlen(good), &config), 0);
    assert_string_equal(config.kernel_id, "k 1");
    assert_string_equal(config.registration_ip, "127.0.0.2");
    assert_string_equal(config.ip, "127.0.0.2");
    assert_int_equal(config.registration_port, 7);
    for (int i = 0; i < JK_CHANNELS; i++) assert_int_equal(config.ports[i], 0);
    jk_config_clear(&config);
    static const char both[] = "{\"ip\":\"127.0.0.1\"," LAUNCHER ",\"registration_port\":7," PORTS "}";
    assert_int_equal(jk_config_parse("r", both, strlen(both), &config), 0);
    assert_null(config.kernel_id);
    jk_config_clear(&config);
    check_refused("{" LAUNCHER ",\"registration_port\":0}", 0600, "above 0");
    check_refused("{" LAUNCHER ",\"registration_port\":\"x\"}", 0600, "\"registration_port\"");
    check_refused("{\"key\":\"hush\",\"kernel_id\":\"\",\"registration_ip\":\"::1\",\"registration_port\":7}",
                  0600, "\"kernel_id\"");
    check_refused("{\"key\":\"hush\",\"kernel_id\":\"k\",\"registration_port\":7}", 0600,
                  "\"registration_ip\"");
    check_refused("{\"key\":\"hush\",\"registration_ip\":\"::1\",\"registration_port\":7}", 0600,
                  "\"kernel_id\"");
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
    jk_config config;
    assert_int_equal(jk_config_read("/tmp/no-such-connection-file", &config), -1);
    assert_non_null(strstr(drupe_error_last()->text, "No such file"));
    assert_int_equal(jk_config_read("/tmp", &config), -1);
    assert_non_null(strstr(drupe_error_last()->text, "regular file"));
}

static void test_write(void **state)
{
    (void)state;
    char path[64];
    jk_config config;
    connection_file("{\"ip\":\"127.0.0.1\",\"key\":\"hush\",\"other\":[1]," PORTS "}", 0600, path);
    assert_int_equal(jk_config_read(path, &config), 0);
    config.ports[JK_IOPUB] = 4321;
    mode_t before = umask(0);
    if (jk_config_write(&config) != 0) fail_msg("%s", drupe_error_last()->text);
    umask(before);
    jk_config_clear(&config);

    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(jk_config_read(path, &config), 0);
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
    threads_settle(threads);
    assert_uint_in_range(descriptors_count(), 1, descriptors);
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

static void test_too_few_descriptors(void **state)
{
    (void)state;
    struct rlimit before, few;
    char path[64], problem[512] = "";
    fake_executor fake;
    fake_executor_init(&fake);
    connection_file("{\"ip\":\"127.0.0.1\",\"key\":\"hush\"," PORTS "}", 0600, path);
    int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
    assert_true(input >= 0);
    long descriptors = descriptors_count();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 20;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    jk_server *server = jk_server_open(path, &fake.executor, problem, sizeof problem);
    setrlimit(RLIMIT_NOFILE, &before);
    long left = descriptors_count();
    if (fcntl(0, F_GETFD) < 0) dup2(input, 0);
    close(input);
    unlink(path);
    assert_null(server);
    assert_non_null(strstr(problem, "ulimit -n"));
    assert_int_equal(left, descriptors); /* what it had not opened is not closed */
}

static void test_relative_path(void **state)
{
    (void)state;
    char path[64], before[4096];
    jk_config config;
    connection_file("{\"ip\":\"127.0.0.1\",\"key\":\"hush\"," PORTS "}", 0600, path);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir("/tmp"), 0);
    assert_int_equal(strncmp(path, "/tmp/", 5), 0);
    int result = jk_config_read(path + 5, &config);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(result, 0);
    assert_string_equal(config.path, path);
    jk_config_clear(&config);
    unlink(path);
}

/* --- Unix sockets ------------------------------------------------------------------------------------------
 */

#define CLAIMERS 4
#define CLAIMS   200

static char claim_path[64];
static pthread_barrier_t claim_begin, claim_end;
static atomic_int claim_winners;

static void *claim_run(void *unused)
{
    for (int i = 0; i < CLAIMS; i++) {
        pthread_barrier_wait(&claim_begin);
        int fd = jk_ipc_claim(claim_path, true);
        if (fd >= 0) atomic_fetch_add(&claim_winners, 1);
        pthread_barrier_wait(&claim_end);
        if (fd >= 0) close(fd); /* and leaves a stale socket to the next round */
    }
    return unused;
}

/* Kernels that start at once where a dead one has left its socket: one gets the path and keeps it. */
static void test_claims_of_a_stale_socket(void **state)
{
    (void)state;
    char folder[] = "/tmp/drupe-claim-XXXXXX";
    pthread_t threads[CLAIMERS];
    assert_non_null(mkdtemp(folder));
    snprintf(claim_path, sizeof claim_path, "%s/socket-1", folder);
    pthread_barrier_init(&claim_begin, NULL, CLAIMERS + 1);
    pthread_barrier_init(&claim_end, NULL, CLAIMERS + 1);
    for (int i = 0; i < CLAIMERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, claim_run, NULL), 0);
    }
    int rounds_of_one = 0;
    for (int i = 0; i < CLAIMS; i++) {
        atomic_store(&claim_winners, 0);
        pthread_barrier_wait(&claim_begin);
        pthread_barrier_wait(&claim_end);
        rounds_of_one += atomic_load(&claim_winners) == 1;
    }
    for (int i = 0; i < CLAIMERS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&claim_begin);
    pthread_barrier_destroy(&claim_end);
    unlink(claim_path);
    rmdir(folder);
    assert_int_equal(rounds_of_one, CLAIMS);
}

static void test_port_taken(void **state)
{
    (void)state;
    char text[300];
    test_kernel kernel;
    kernel_start(&kernel, false);
    jk_config config;
    assert_int_equal(jk_config_read(kernel.path, &config), 0);
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
        cmocka_unit_test(test_good),          cmocka_unit_test(test_modes),
        cmocka_unit_test(test_fields),        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_half_written),  cmocka_unit_test(test_ipc),
        cmocka_unit_test(test_curve_keys),    cmocka_unit_test(test_registration_files),
        cmocka_unit_test(test_ports),         cmocka_unit_test(test_absent),
        cmocka_unit_test(test_write),         cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_port_taken),    cmocka_unit_test(test_too_few_descriptors),
        cmocka_unit_test(test_relative_path), cmocka_unit_test(test_claims_of_a_stale_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
