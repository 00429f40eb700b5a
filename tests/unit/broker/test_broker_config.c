/* The configuration: what it says, and how mistakes are told. */
#include "broker_rig.h"

#include <stdio.h>
#include <unistd.h>

static bool parse(const char *text, bk_config *config, drupe_text *problems)
{
    *problems = (drupe_text){0};
    return bk_config_parse(text, strlen(text), config, problems);
}

static void test_whole(void **state)
{
    (void)state;
    bk_config config;
    drupe_text problems;
    assert_true(
        parse("{\"devices\":[{\"id\":\"a\",\"kind\":\"gpu\",\"parts\":2,\"memory\":1000,"
              "\"env\":{\"X\":\"1\"},\"part_env\":[{\"X\":\"1.0\"},{\"X\":\"1.1\"}],\"nodes\":[\"/dev/x\"]}],"
              "\"profiles\":{\"half\":{\"kind\":\"gpu\",\"parts\":1,\"seconds\":60,\"title\":\"Half\"}},"
              "\"quotas\":{\"user\":{\"*\":{\"devices\":1.5},\"al\":{\"devices\":3,\"seconds\":9}}},"
              "\"admins\":[\"root\",\"op\"],\"warning\":5,\"idle\":7,\"patience\":11}",
              &config, &problems));
    assert_int_equal(config.ndevices, 1);
    assert_string_equal(config.devices[0].name, "a"); /* the id, when there is no name */
    assert_int_equal(config.devices[0].parts, 2);
    const bk_profile *half = bk_profile_find(&config, "half");
    assert_non_null(half);
    assert_int_equal(half->want.kind, BK_GPU);
    assert_true(half->idle == 7 && half->seconds == 60);
    assert_true(config.everyone.devices == BK_UNIT * 3 / 2);
    assert_int_equal(config.nusers, 1);
    assert_int_equal(config.nadmins, 2);
    assert_true(config.patience == 11);
    bk_config_clear(&config);
    assert_null(config.devices);
}

static void test_defaults(void **state)
{
    (void)state;
    bk_config config;
    drupe_text problems;
    assert_true(parse("{\"devices\":[]}", &config, &problems));
    assert_string_equal(config.admins[0], "root");
    assert_true(config.everyone.devices == UINT64_MAX && config.everyone.seconds == 0);
    assert_int_equal(config.limits.tickets, 64);
    bk_config_clear(&config);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"{", "line 1, column 1"},
        {"{\"devices\":[]", "line 1"},
        {"[]", "an object is wanted"},
        {"{}", "devices: a list"},
        {"{\"devices\":[],\"devises\":[]}", "devises: there is no such key"},
        {"{\"devices\":[],\"idle\":-1}", "idle: a number"},
        {"{\"devices\":[{\"kind\":\"gpu\"}]}", "devices[0].id: this is missing"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"tpu\"}]}", "devices[0].kind: cpu, gpu"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"any\"}]}", "devices[0].kind: cpu, gpu"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"cpu\",\"parts\":257}]}", "devices[0].parts: a whole number"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"cpu\",\"parts\":1.5}]}", "devices[0].parts: a whole number"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"cpu\"},{\"id\":\"a\",\"kind\":\"cpu\"}]}",
         "devices[1].id: another"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"cpu\",\"parts\":2,\"part_env\":[{}]}]}",
         "devices[0].part_env: a list"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"cpu\",\"env\":{\"A=B\":\"\"}}]}",
         "devices[0].env: an object"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"cpu\",\"nodes\":[1]}]}",
         "devices[0].nodes: a list of paths"},
        {"{\"devices\":[],\"profiles\":{\"p\":{\"devices\":65}}}", "profiles.p.devices: a whole number"},
        {"{\"devices\":[],\"quotas\":{\"user\":{\"al\":{\"device\":1}}}}",
         "quotas.user.al.device: there is no such key"},
        {"{\"devices\":[],\"quotas\":{\"group\":{\"no such group\":{}}}}", "this machine has no such group"},
        {"{\"devices\":[],\"admins\":[1]}", "admins[0]: the name"},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(wrong); i++) {
        bk_config config;
        drupe_text problems;
        assert_false(parse(wrong[i][0], &config, &problems));
        if (!strstr(drupe_text_get(&problems), wrong[i][1])) {
            fail_msg("%s: %s, not %s", wrong[i][0], drupe_text_get(&problems), wrong[i][1]);
        }
        assert_null(config.devices);
        drupe_text_clear(&problems);
    }
}

/* All of them are told, not only the first one. */
static void test_many(void **state)
{
    (void)state;
    bk_config config;
    drupe_text problems;
    assert_false(parse("{\"devices\":[{\"id\":\"a\",\"kind\":\"x\"}],\"a\":1,\"b\":2}", &config, &problems));
    unsigned lines = 0;
    for (const char *at = drupe_text_get(&problems); (at = strchr(at, '\n')); at++) lines++;
    assert_int_equal(lines, 3);
    drupe_text_clear(&problems);
}

static void test_file(void **state)
{
    (void)state;
    bk_config config;
    drupe_text problems = {0};
    assert_false(bk_config_read("/nowhere/at/all", &config, &problems));
    assert_non_null(strstr(drupe_text_get(&problems), "cannot be read"));
    drupe_text_clear(&problems);
    char path[] = "/tmp/drupe-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{\"devices\":[]}", 14), 14);
    close(fd);
    assert_true(bk_config_read(path, &config, &problems));
    bk_config_clear(&config);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_defaults),
                                       cmocka_unit_test(test_mistakes), cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
