/* Who is served first, who waits, and who is not starved. */
#include "broker_rig.h"

static const char two_gpus[] =
    "{'devices':[{'id':'g0','kind':'gpu'},{'id':'g1','kind':'gpu'}],'patience':100,"
    "'quotas':{'user':{'60003':{'devices':1}}}}";

/* Whether the next packet of the client grants this ticket. */
static bool granted(bk_client *client, const char *ticket)
{
    json_t *event = rig_next(client);
    return event && strcmp(rig_text(event, "event"), "granted") == 0 &&
           strcmp(rig_text(event, "ticket"), ticket) == 0 && *rig_text(event, "lease");
}

static void give_back(bk_broker *broker, bk_client *client, const char *lease)
{
    json_t *answer = rig_ask(broker, client, "{'op':'return','lease':'%s'}", lease);
    assert_true(json_is_true(json_object_get(answer, "ok")));
}

/* Who holds less goes first, although it asked later. */
static void test_least(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, two_gpus);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    const char *first = rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_lease(&broker, bob, "busy", "'want':{'kind':'gpu'}");
    const char *hers = rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu'},'wait':true");
    const char *his = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    json_t *list = rig_ask(&broker, bob, "{'op':'list'}");
    json_t *mine = json_array_get(json_object_get(list, "waiting"), 0);
    assert_int_equal(json_integer_value(json_object_get(mine, "position")), 1);
    assert_int_equal(json_array_size(json_object_get(list, "waiting")), 1);
    assert_int_equal(json_integer_value(json_object_get(list, "queue")), 2);
    give_back(&broker, alice, first);
    assert_true(granted(bob, his));
    assert_null(rig_next(alice));
    (void)hers;
    rig_close(&broker);
}

/* Among those who hold the same, who used less in the last hour. */
static void test_history(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, two_gpus);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB),
              *root = rig_client(&broker, 0);
    const char *used = rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_later(&broker, 50);
    give_back(&broker, alice, used);
    const char *both = rig_lease(&broker, root, "", "'want':{'kind':'gpu','devices':2}");
    const char *hers = rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu','devices':2},'wait':true");
    const char *his = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu','devices':2},'wait':true");
    give_back(&broker, root, both);
    assert_true(granted(bob, his));
    assert_null(rig_next(alice));
    /* An hour later it is forgotten; who asked first is first. */
    bk_user *user = bk_user_of(&broker, ALICE);
    assert_in_range((uint64_t)bk_user_history(&broker, user, BK_GPU), 49, 51);
    broker.now += 3900;
    assert_true(bk_user_history(&broker, user, BK_GPU) == 0);
    (void)hers;
    rig_close(&broker);
}

/* Smaller asks pass a large one until that has waited too long; then what it needs is kept for it. */
static void test_patience(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, two_gpus);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB),
              *root = rig_client(&broker, 0);
    const char *a = rig_lease(&broker, root, "", "'want':{'kind':'gpu'}");
    const char *large = rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu','devices':2},'wait':true");
    const char *b = rig_lease(&broker, bob, "", "'want':{'kind':'gpu'}");
    give_back(&broker, bob, b);
    rig_later(&broker, 101);
    rig_lease(&broker, bob, "busy", "'want':{'kind':'gpu'}");
    const char *his = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    rig_later(&broker, 1);
    assert_null(rig_next(bob));
    give_back(&broker, root, a);
    assert_true(granted(alice, large));
    (void)his;
    rig_close(&broker);
}

/* Many asks of one user do not gain by patience: after one was served by it, the next has to wait as long. */
static void test_patience_once(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, two_gpus);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB),
              *root = rig_client(&broker, 0);
    const char *a = rig_lease(&broker, root, "", "'want':{'kind':'gpu'}");
    const char *b = rig_lease(&broker, root, "", "'want':{'kind':'gpu'}");
    const char *one = rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu'},'wait':true");
    const char *two = rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu'},'wait':true");
    rig_later(&broker, 101);
    const char *his = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    give_back(&broker, root, a);
    assert_true(granted(alice, one));
    give_back(&broker, root, b);
    assert_true(granted(bob, his));
    assert_null(rig_next(alice));
    const char *third = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    rig_later(&broker, 101);
    bk_lease_end(&broker, bk_user_of(&broker, BOB)->leases, BK_RETURNED, bob);
    rig_later(&broker, 0);
    assert_true(granted(alice, two));
    (void)third;
    rig_close(&broker);
}

/* What is to be resumed comes before what is new of the same user. */
static void test_resume_first(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, two_gpus);
    bk_client *alice = rig_client(&broker, ALICE), *root = rig_client(&broker, 0);
    const char *parked = rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_ask(&broker, alice, "{'op':'parked','lease':'%s'}", parked);
    const char *both = rig_lease(&broker, root, "", "'want':{'kind':'gpu','devices':2}");
    const char *fresh = rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu','devices':2},'wait':true");
    json_t *again = rig_ask(&broker, alice, "{'op':'resume','lease':'%s'}", parked);
    assert_int_equal(json_integer_value(json_object_get(again, "waiting")), 1);
    char ticket[64];
    snprintf(ticket, sizeof ticket, "%s", rig_text(again, "ticket"));
    give_back(&broker, root, both);
    assert_true(granted(alice, ticket));
    assert_null(rig_next(alice));
    (void)fresh;
    rig_close(&broker);
}

/* A quota keeps one waiting without keeping others from being served. */
static void test_quota_waits(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, two_gpus);
    bk_client *carol = rig_client(&broker, CAROL), *bob = rig_client(&broker, BOB),
              *root = rig_client(&broker, 0);
    rig_lease(&broker, carol, "quota", "'want':{'kind':'gpu','devices':2},'wait':true");
    const char *both = rig_lease(&broker, root, "", "'want':{'kind':'gpu','devices':2}");
    const char *one = rig_lease(&broker, carol, "waiting", "'want':{'kind':'gpu'},'wait':true");
    const char *two = rig_lease(&broker, carol, "waiting", "'want':{'kind':'gpu'},'wait':true");
    const char *his = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    rig_later(&broker, 200); /* also by patience */
    give_back(&broker, root, both);
    json_t *event = rig_next(carol);
    assert_string_equal(rig_text(event, "ticket"), one);
    assert_true(granted(bob, his));
    rig_lease(&broker, carol, "quota", "'want':{'kind':'gpu'}");
    give_back(&broker, carol, rig_text(event, "lease"));
    assert_true(granted(carol, two));
    rig_close(&broker);
}

/* Who leaves, waits no more: neither its connection, nor its process. */
static void test_leaving(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, two_gpus);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB),
              *root = rig_client(&broker, 0);
    rig_lease(&broker, root, "", "'want':{'kind':'gpu','devices':2}");
    rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu'},'wait':true");
    const char *his = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    bk_client_close(&broker, alice);
    rig_later(&broker, 0);
    assert_int_equal(broker.tickets.count, 1);
    bk_holder *holder = bob->holder;
    rig_kill(holder->pid);
    holder->source.ready(&broker, &holder->source, 1);
    rig_later(&broker, 0);
    assert_int_equal(broker.tickets.count, 0);
    json_t *event = rig_next(bob);
    assert_string_equal(rig_text(event, "event"), "ended");
    assert_string_equal(rig_text(event, "ticket"), his);
    rig_close(&broker);
}

/* Of a thousand who wait each is served once. */
static void test_many(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker,
             "{'devices':[{'id':'g','kind':'gpu','parts':10}],'limits':{'tickets':1000,'leases':2000}}");
    bk_client *alice = rig_client(&broker, ALICE), *root = rig_client(&broker, 0);
    const char *all = rig_lease(&broker, root, "", "'want':{'kind':'gpu'}");
    for (unsigned i = 0; i < 500; i++) {
        rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu','parts':1},'wait':true");
    }
    give_back(&broker, root, all);
    unsigned served = 0;
    for (json_t *event; (event = rig_next(alice)); served++) {
        char lease[64];
        snprintf(lease, sizeof lease, "%s", rig_text(event, "lease"));
        bk_lease *one = drupe_map_get(&broker.leases, lease, strlen(lease));
        assert_non_null(one);
        bk_lease_end(&broker, one, BK_RETURNED, alice);
        bk_turn_end(&broker);
    }
    assert_int_equal(served, 500);
    assert_int_equal(broker.leases.count, 0);
    rig_close(&broker);
}

/* An ask for something else gains nobody a place: who holds less of what is free goes first all the same. */
static void test_no_jump(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker,
             "{'devices':[{'id':'g','kind':'gpu','parts':4},{'id':'c','kind':'cpu'}],'patience':100000}");
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB),
              *root = rig_client(&broker, 0);
    rig_lease(&broker, alice, "", "'want':{'kind':'gpu','parts':2}");
    rig_lease(&broker, bob, "", "'want':{'kind':'gpu','parts':1}");
    const char *last = rig_lease(&broker, root, "", "'want':{'kind':'gpu','parts':1}");
    rig_lease(&broker, root, "", "'want':{'kind':'cpu'}");
    rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu','parts':1},'wait':true");
    rig_lease(&broker, alice, "waiting", "'want':{'kind':'cpu'},'wait':true");
    const char *his = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu','parts':1},'wait':true");
    give_back(&broker, root, last);
    assert_true(granted(bob, his));
    assert_null(rig_next(alice));
    rig_close(&broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_jump),       cmocka_unit_test(test_least),
        cmocka_unit_test(test_history),       cmocka_unit_test(test_patience),
        cmocka_unit_test(test_patience_once), cmocka_unit_test(test_resume_first),
        cmocka_unit_test(test_quota_waits),   cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
