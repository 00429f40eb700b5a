/* What is free, which of it is taken, and the environment that tells it. */
#include "broker_rig.h"

static const char machine[] =
    "{'devices':["
    "{'id':'cpu','kind':'cpu','parts':8,'memory':8000,'env':{'E':'all','F':'f'},"
    "'part_env':[{'E':'0'},{'E':'1'},{'E':'2'},{'E':'3'},{'E':'4'},{'E':'5'},{'E':'6'},{'E':'7'}]},"
    "{'id':'g0','kind':'gpu','parts':4,'memory':1000,'env':{'CUDA_VISIBLE_DEVICES':'0','DRUPE_DEVICES':'"
    "opencl:0.0'}},"
    "{'id':'g1','kind':'gpu','parts':4,'memory':1000,'env':{'CUDA_VISIBLE_DEVICES':'1','DRUPE_DEVICES':'"
    "opencl:0.1'}},"
    "{'id':'acc','kind':'accelerator'}]}";

static bool claim(bk_broker *broker, bk_kind kind, unsigned devices, unsigned parts, uint64_t memory,
                  bk_holding *holding)
{
    bk_want want = {kind, devices, parts, memory};
    return bk_claim(broker, &want, NULL, 0, holding);
}

static void test_whole(void **state)
{
    (void)state;
    bk_broker broker;
    bk_holding one, two, three;
    rig_open(&broker, machine);
    assert_true(claim(&broker, BK_GPU, 1, 0, 0, &one));
    assert_string_equal(one.takes[0].device->id, "g0");
    assert_int_equal(one.amount[BK_ANY], BK_UNIT);
    assert_false(claim(&broker, BK_GPU, 2, 0, 0, &two)); /* nothing of it is taken */
    assert_true(claim(&broker, BK_GPU, 1, 0, 0, &two));
    assert_string_equal(two.takes[0].device->id, "g1");
    assert_false(claim(&broker, BK_GPU, 1, 1, 0, &three));
    assert_false(claim(&broker, BK_GPU, 1, 0, 1, &three));
    bk_give(&broker, &one);
    bk_give(&broker, &two);
    assert_true(claim(&broker, BK_GPU, 2, 0, 0, &one));
    bk_give(&broker, &one);
    rig_close(&broker);
}

static void test_parts(void **state)
{
    (void)state;
    bk_broker broker;
    bk_holding a, b, c, d;
    rig_open(&broker, machine);
    assert_true(claim(&broker, BK_GPU, 1, 1, 0, &a));
    assert_true(claim(&broker, BK_GPU, 1, 2, 0, &b)); /* behind the first: the other stays whole */
    assert_ptr_equal(a.takes[0].device, b.takes[0].device);
    assert_int_equal(b.takes[0].parts.words[0], 6);
    assert_int_equal(b.takes[0].memory, 500);
    assert_int_equal(b.amount[BK_GPU], BK_UNIT / 2);
    assert_true(claim(&broker, BK_GPU, 1, 0, 0, &c));
    assert_string_equal(c.takes[0].device->id, "g1");
    assert_false(claim(&broker, BK_GPU, 1, 2, 0, &d));  /* one is free */
    assert_false(claim(&broker, BK_GPU, 1, 0, 10, &d)); /* parts and shares do not mix */
    bk_give(&broker, &a);
    bk_give(&broker, &b);
    bk_give(&broker, &c);
    rig_close(&broker);
}

/* Neighbours if there are enough of them, in the shortest gap that is long enough. */
static void test_neighbours(void **state)
{
    (void)state;
    bk_broker broker;
    bk_holding each[8], some;
    rig_open(&broker, machine);
    for (unsigned i = 0; i < 8; i++) assert_true(claim(&broker, BK_CPU, 1, 1, 0, &each[i]));
    for (unsigned i = 0; i < 8; i++) {
        if (i != 3 && i != 6) bk_give(&broker, &each[i]);
    }
    /* Free: 0 1 2, 4 5, 7. */
    assert_true(claim(&broker, BK_CPU, 1, 2, 0, &some));
    assert_int_equal(some.takes[0].parts.words[0], 0x30);
    bk_give(&broker, &some);
    assert_true(claim(&broker, BK_CPU, 1, 4, 0, &some));
    assert_int_equal(some.takes[0].parts.words[0], 0x17);
    bk_give(&broker, &some);
    bk_give(&broker, &each[3]);
    bk_give(&broker, &each[6]);
    rig_close(&broker);
}

static void test_shares(void **state)
{
    (void)state;
    bk_broker broker;
    bk_holding a, b, c;
    rig_open(&broker, machine);
    assert_true(claim(&broker, BK_GPU, 1, 0, 600, &a));
    assert_true(claim(&broker, BK_GPU, 1, 0, 500, &b));
    assert_ptr_not_equal(a.takes[0].device, b.takes[0].device);
    assert_true(claim(&broker, BK_GPU, 1, 0, 400, &c)); /* where it fits exactly */
    assert_ptr_equal(a.takes[0].device, c.takes[0].device);
    assert_int_equal(a.amount[BK_ANY], BK_UNIT * 6 / 10);
    bk_give(&broker, &a);
    bk_give(&broker, &b);
    bk_give(&broker, &c);
    rig_close(&broker);
}

static void test_never(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    static const bk_want never[] = {{BK_GPU, 3, 0, 0}, {BK_GPU, 1, 5, 0},         {BK_GPU, 1, 0, 1001},
                                    {BK_CPU, 2, 1, 0}, {BK_ACCELERATOR, 1, 0, 1}, {BK_GPU, 1, 1, 251}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(never); i++) assert_non_null(bk_want_never(&broker, &never[i]));
    static const bk_want fine[] = {
        {BK_GPU, 2, 0, 0}, {BK_GPU, 2, 4, 0}, {BK_ANY, 4, 0, 0}, {BK_GPU, 1, 1, 250}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(fine); i++) assert_null(bk_want_never(&broker, &fine[i]));
    rig_close(&broker);
}

static const char *variable(bk_broker *broker, const bk_holding *holding, const char *name, char *text,
                            size_t size)
{
    json_t *env = bk_environment(broker, holding, "L-1");
    assert_string_equal(rig_text(env, "DRUPE_LEASE"), "L-1");
    snprintf(text, size, "%s", rig_text(env, name));
    json_decref(env);
    return text;
}

static void test_environment(void **state)
{
    (void)state;
    bk_broker broker;
    bk_holding held;
    char text[100];
    rig_open(&broker, machine);
    assert_true(claim(&broker, BK_GPU, 2, 0, 0, &held));
    assert_string_equal(variable(&broker, &held, "CUDA_VISIBLE_DEVICES", text, sizeof text), "0,1");
    assert_string_equal(variable(&broker, &held, "DRUPE_DEVICES", text, sizeof text),
                        "opencl:0.0;opencl:0.1");
    assert_string_equal(variable(&broker, &held, "DRUPE_MEMORY_LIMIT", text, sizeof text), "");
    bk_give(&broker, &held);
    assert_true(claim(&broker, BK_CPU, 1, 3, 0, &held));
    assert_string_equal(variable(&broker, &held, "E", text, sizeof text), "0,1,2");
    assert_string_equal(variable(&broker, &held, "F", text, sizeof text), "f");
    bk_give(&broker, &held);
    assert_true(claim(&broker, BK_CPU, 1, 0, 0, &held));
    assert_string_equal(variable(&broker, &held, "E", text, sizeof text), "all");
    bk_give(&broker, &held);
    assert_true(claim(&broker, BK_GPU, 1, 0, 300, &held));
    assert_string_equal(variable(&broker, &held, "DRUPE_MEMORY_LIMIT", text, sizeof text), "300");
    bk_give(&broker, &held);
    rig_close(&broker);
}

/* What a journal says is taken only if it is there and free. */
static void test_again(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_device *gpu = &broker.config.devices[1];
    bk_take parts = {.device = gpu, .nparts = 2, .parts.words[0] = 3}, same = parts, out = parts,
            share = {gpu, {{0}}, 0, 1};
    out.parts.words[0] = 0x30;
    bk_holding a = {.takes = &parts, .ntakes = 1}, b = {.takes = &same, .ntakes = 1},
               c = {.takes = &out, .ntakes = 1}, d = {.takes = &share, .ntakes = 1};
    assert_true(bk_claim_again(&broker, &a));
    assert_int_equal(gpu->nused, 2);
    assert_false(bk_claim_again(&broker, &b));
    assert_false(bk_claim_again(&broker, &c));
    assert_false(bk_claim_again(&broker, &d));
    bk_take twice[2] = {{.device = &broker.config.devices[2], .nparts = 1, .parts.words[0] = 1},
                        {.device = &broker.config.devices[2], .nparts = 1, .parts.words[0] = 2}};
    bk_holding e = {.takes = twice, .ntakes = 2};
    assert_false(bk_claim_again(&broker, &e)); /* a device twice: and the first is given back */
    assert_int_equal(broker.config.devices[2].nused, 0);
    gpu->nused = 0;
    gpu->used.words[0] = 0;
    rig_close(&broker);
}

/* However small, a share keeps a device from all who want it whole or in parts. */
static void test_least_share(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, "{'devices':[{'id':'g0','kind':'gpu','memory':17179869184}],"
                      "'quotas':{'user':{'*':{'devices':0.5}}}}");
    bk_client *alice = rig_client(&broker, ALICE);
    for (unsigned i = 0; i < 32; i++) rig_lease(&broker, alice, "", "'want':{'kind':'gpu','memory':1}");
    rig_lease(&broker, alice, "quota", "'want':{'kind':'gpu','memory':1}");
    rig_close(&broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole),      cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_neighbours), cmocka_unit_test(test_shares),
                                       cmocka_unit_test(test_never),      cmocka_unit_test(test_environment),
                                       cmocka_unit_test(test_again),      cmocka_unit_test(test_least_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
