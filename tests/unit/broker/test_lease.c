/* Leases: their time, their holders, parking, and what others are shown of them. */
#include "broker_rig.h"

#include <stdio.h>
#include <unistd.h>

static const char machine[] =
    "{'devices':[{'id':'g0','kind':'gpu','memory':1000},{'id':'c','kind':'cpu','parts':4,'memory':400}],"
    "'profiles':{'gpu':{'kind':'gpu','seconds':1000,'idle':50},'part':{'kind':'cpu','parts':1}},'warning':"
    "100,"
    "'quotas':{'user':{'60002':{'devices':1,'seconds':200}}},'admins':['root']}";

static bool is_event(bk_client *client, const char *name, const char *lease)
{
    json_t *event = rig_next(client);
    return event && strcmp(rig_text(event, "event"), name) == 0 &&
           strcmp(rig_text(event, "lease"), lease) == 0;
}

static bool fine(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "ok"));
}

static void test_time(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *other = rig_client(&broker, ALICE);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'profile':'gpu'}");
    assert_true(fine(rig_ask(&broker, other, "{'op':'subscribe','lease':'%s'}", lease)));
    rig_later(&broker, 899);
    assert_null(rig_next(alice));
    rig_later(&broker, 2);
    assert_true(is_event(alice, "warning", lease));
    assert_true(is_event(other, "warning", lease));
    rig_later(&broker, 50);
    assert_null(rig_next(alice)); /* once */
    rig_later(&broker, 50);
    assert_true(is_event(alice, "ended", lease));
    assert_true(is_event(other, "ended", lease));
    assert_int_equal(broker.leases.count, 0);
    assert_false(fine(rig_ask(&broker, alice, "{'op':'return','lease':'%s'}", lease)));
    rig_close(&broker);
}

static void test_extend(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *bob = rig_client(&broker, BOB), *alice = rig_client(&broker, ALICE);
    rig_lease(&broker, bob, "quota", "'want':{'profile':'gpu'},'seconds':201");
    const char *lease = rig_lease(&broker, bob, "", "'want':{'profile':'gpu'}");
    rig_later(&broker, 150);
    assert_true(is_event(bob, "warning", lease));
    json_t *answer = rig_ask(&broker, bob, "{'op':'extend','lease':'%s','seconds':100000}", lease);
    double ends = json_number_value(json_object_get(answer, "ends"));
    assert_true(ends > broker.now + 199 && ends < broker.now + 201); /* the quota's time from now on */
    rig_later(&broker, 150);
    assert_true(is_event(bob, "warning", lease)); /* of the new end */
    rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu'},'wait':true");
    answer = rig_ask(&broker, bob, "{'op':'extend','lease':'%s','seconds':100}", lease);
    assert_string_equal(rig_text(answer, "code"), "busy");
    rig_close(&broker);
}

static void test_holder(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *root = rig_client(&broker, 0), *alice = rig_client(&broker, ALICE);
    pid_t server = rig_process();
    rig_lease(&broker, alice, "forbidden", "'want':{'profile':'gpu'},'holder':{'pid':1}");
    rig_lease(&broker, alice, "forbidden", "'want':{'profile':'gpu'},'user':'root'");
    rig_lease(&broker, alice, "bad", "'want':{'profile':'gpu'},'holder':{'pid':-4}");
    rig_lease(&broker, alice, "gone", "'want':{'profile':'gpu'},'holder':{'pid':2147483647}");
    const char *lease = rig_lease(&broker, root, "", "'want':{'profile':'gpu'},'user':'60001'");
    assert_true(
        fine(rig_ask(&broker, root, "{'op':'adopt','lease':'%s','holder':{'pid':%d}}", lease, (int)server)));
    bk_lease *one = broker.first_lease;
    assert_int_equal(one->holder->pid, server);
    assert_string_equal(one->user->name, "60001");
    bk_client_close(&broker, root); /* the connection does not matter */
    rig_later(&broker, 1);
    assert_int_equal(broker.leases.count, 1);
    assert_true(fine(rig_ask(&broker, alice, "{'op':'subscribe','lease':'%s'}", lease)));
    rig_kill(server);
    one->holder->source.ready(&broker, &one->holder->source, 1);
    rig_later(&broker, 0);
    assert_true(is_event(alice, "ended", lease));
    assert_int_equal(broker.leases.count, 0);
    rig_close(&broker);
}

/* A process that has ended holds nothing, though nobody has been told of its end yet. */
static void test_holder_gone(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    rig_lease(&broker, alice, "", "'want':{'profile':'gpu'}");
    rig_kill(alice->pid);
    rig_lease(&broker, alice, "busy", "'want':{'kind':'gpu'}");
    rig_kill(bob->pid);
    rig_lease(&broker, bob, "gone", "'want':{'profile':'part'}");
    rig_close(&broker);
}

static void test_park(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'profile':'gpu'}");
    assert_true(fine(rig_ask(&broker, alice, "{'op':'idle','lease':'%s'}", lease)));
    rig_later(&broker, 60);
    assert_null(rig_next(alice)); /* nobody waits */
    const char *ticket = rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    assert_true(is_event(alice, "park", lease));
    rig_later(&broker, 100);
    assert_null(rig_next(alice)); /* asked once */
    assert_true(fine(rig_ask(&broker, alice, "{'op':'idle','lease':'%s'}", lease)));
    assert_true(is_event(alice, "park", lease)); /* who says it again may not have heard */
    assert_true(fine(rig_ask(&broker, alice, "{'op':'parked','lease':'%s'}", lease)));
    json_t *event = rig_next(bob);
    assert_string_equal(rig_text(event, "ticket"), ticket);
    assert_int_equal(broker.leases.count, 2);
    json_t *again = rig_ask(&broker, alice, "{'op':'resume','lease':'%s'}", lease);
    assert_int_equal(json_integer_value(json_object_get(again, "waiting")), 1);
    assert_true(fine(rig_ask(&broker, bob, "{'op':'return','lease':'%s'}", rig_text(event, "lease"))));
    event = rig_next(alice);
    assert_string_equal(rig_text(event, "event"), "granted");
    assert_string_equal(rig_text(event, "lease"), lease);
    assert_int_equal(json_array_size(json_object_get(event, "devices")), 1);
    rig_close(&broker);
}

/* Who lost the connection on which `park` was said hears it on the next. */
static void test_park_again(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'profile':'gpu'},'holder':null");
    rig_ask(&broker, alice, "{'op':'idle','lease':'%s'}", lease);
    rig_later(&broker, 60);
    rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    assert_true(is_event(alice, "park", lease));
    bk_client_close(&broker, alice);
    bk_client *again = rig_client(&broker, ALICE);
    assert_true(fine(rig_ask(&broker, again, "{'op':'subscribe','lease':'%s'}", lease)));
    assert_true(is_event(again, "park", lease));
    rig_close(&broker);
}

/* However many wait for something else, who waits for what is idle has it asked for. */
static void test_park_behind_others(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, "{'devices':[{'id':'g','kind':'gpu'},{'id':'a','kind':'accelerator'}],'idle':50}");
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB),
              *carol = rig_client(&broker, CAROL);
    rig_lease(&broker, alice, "", "'want':{'kind':'accelerator'}");
    for (unsigned i = 0; i < 40; i++)
        rig_lease(&broker, alice, "waiting", "'want':{'kind':'accelerator'},'wait':true");
    const char *lease = rig_lease(&broker, carol, "", "'want':{'kind':'gpu'}");
    rig_ask(&broker, carol, "{'op':'idle','lease':'%s'}", lease);
    rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    rig_later(&broker, 60);
    assert_true(is_event(carol, "park", lease));
    rig_close(&broker);
}

/* It comes back to the devices on which its memory was, if they are free, also after others were of no use.
 */
static void test_home(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, "{'devices':[{'id':'g0','kind':'gpu'},{'id':'g1','kind':'gpu'}]}");
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    const char *first = rig_lease(&broker, bob, "", "'want':{'kind':'gpu'}");
    const char *lease = rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    const bk_lease *it = broker.first_lease;
    const bk_device *home = &broker.config.devices[1];
    assert_ptr_equal(it->holding.takes[0].device, home);
    rig_ask(&broker, alice, "{'op':'parked','lease':'%s'}", lease);
    const char *second = rig_lease(&broker, bob, "", "'want':{'kind':'gpu'}");
    rig_ask(&broker, bob, "{'op':'return','lease':'%s'}", first);
    assert_true(fine(rig_ask(&broker, alice, "{'op':'resume','lease':'%s'}", lease)));
    assert_ptr_not_equal(it->holding.takes[0].device, home);
    rig_ask(&broker, alice, "{'op':'parked','lease':'%s','unused':true}", lease);
    rig_ask(&broker, bob, "{'op':'return','lease':'%s'}", second);
    assert_true(fine(rig_ask(&broker, alice, "{'op':'resume','lease':'%s'}", lease)));
    assert_ptr_equal(it->holding.takes[0].device, home);
    rig_close(&broker);
}

/* Not who is busy again, and not before its time. */
static void test_park_not(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'profile':'gpu'}");
    rig_lease(&broker, bob, "waiting", "'want':{'kind':'gpu'},'wait':true");
    rig_ask(&broker, alice, "{'op':'idle','lease':'%s'}", lease);
    rig_later(&broker, 40);
    rig_ask(&broker, alice, "{'op':'busy','lease':'%s'}", lease);
    rig_ask(&broker, alice, "{'op':'idle','lease':'%s'}", lease);
    rig_later(&broker, 40);
    assert_null(rig_next(alice));
    rig_later(&broker, 11);
    assert_true(is_event(alice, "park", lease));
    rig_close(&broker);
}

static bool ended_ticket(bk_client *client, const char *ticket, const char *why)
{
    json_t *event = rig_next(client);
    return event && strcmp(rig_text(event, "event"), "ended") == 0 &&
           strcmp(rig_text(event, "ticket"), ticket) == 0 && strcmp(rig_text(event, "why"), why) == 0;
}

/* Nobody waits for a ticket that is not there any more. */
static void test_told_of_tickets(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *second = rig_client(&broker, ALICE),
              *third = rig_client(&broker, ALICE), *root = rig_client(&broker, 0);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'profile':'gpu'}");
    rig_ask(&broker, alice, "{'op':'parked','lease':'%s'}", lease);
    rig_lease(&broker, root, "", "'want':{'kind':'gpu'}");
    char first[64], again[64];
    json_t *waits = rig_ask(&broker, second, "{'op':'resume','lease':'%s'}", lease);
    snprintf(first, sizeof first, "%s", rig_text(waits, "ticket"));
    waits = rig_ask(&broker, third, "{'op':'resume','lease':'%s'}", lease);
    snprintf(again, sizeof again, "%s", rig_text(waits, "ticket"));
    assert_true(ended_ticket(second, first, "asked again"));
    rig_later(&broker, 950);
    rig_next(alice); /* the warning */
    rig_later(&broker, 100);
    assert_true(ended_ticket(third, again, "time is over"));
    assert_true(is_event(alice, "ended", lease));
    /* An administrator ends the wait of somebody else. */
    const char *asked = rig_lease(&broker, second, "waiting", "'want':{'kind':'gpu'},'wait':true");
    assert_true(fine(rig_ask(&broker, root, "{'op':'return','ticket':'%s'}", asked)));
    assert_true(ended_ticket(second, asked, "returned"));
    asked = rig_lease(&broker, second, "waiting", "'want':{'kind':'gpu'},'wait':true");
    assert_true(fine(rig_ask(&broker, second, "{'op':'return','ticket':'%s'}", asked)));
    assert_null(rig_next(second)); /* who has given it up knows */
    rig_close(&broker);
}

/* Who adopts a lease that waits to be resumed takes the wait over, too. */
static void test_adopt_while_waiting(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *kernel = rig_client(&broker, ALICE),
              *root = rig_client(&broker, 0);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_ask(&broker, alice, "{'op':'parked','lease':'%s'}", lease);
    const char *other = rig_lease(&broker, root, "", "'want':{'kind':'gpu'}");
    rig_ask(&broker, kernel, "{'op':'resume','lease':'%s'}", lease);
    assert_true(fine(
        rig_ask(&broker, root, "{'op':'adopt','lease':'%s','holder':{'pid':%d}}", lease, (int)kernel->pid)));
    rig_kill(alice->pid);
    bk_holder *before = alice->holder;
    before->source.ready(&broker, &before->source, 1);
    rig_later(&broker, 1);
    assert_true(fine(rig_ask(&broker, root, "{'op':'return','lease':'%s'}", other)));
    assert_true(is_event(kernel, "granted", lease));
    rig_close(&broker);
}

/* Who may use the user ids of a range in containers is one user with all of them, however many ask. */
static void test_ids_of_one_user(void **state)
{
    (void)state;
    bk_broker broker;
    char path[] = "/tmp/drupe-subuid-XXXXXX";
    int fd = mkstemp(path);
    static const char ranges[] = "# ranges\n0:3000000:10\nroot:4000000:10\n60001:2000000:10\nx\n";
    assert_int_equal(write(fd, ranges, sizeof ranges - 1), sizeof ranges - 1);
    close(fd);
    rig_open(&broker, "{'devices':[{'id':'c','kind':'cpu','parts':4}],'admins':['root'],"
                      "'quotas':{'user':{'*':{'devices':0.25}}}}");
    broker.subuids = path;
    bk_client *alice = rig_client(&broker, ALICE), *hers = rig_client(&broker, 2000003),
              *past = rig_client(&broker, 2000010), *system = rig_client(&broker, 3000001);
    assert_ptr_equal(hers->user, alice->user);
    assert_string_equal(past->user->name, "2000010");
    assert_string_equal(system->user->name, "3000001"); /* root's ranges are other people's containers */
    assert_string_equal(rig_client(&broker, 4000001)->user->name, "4000001");
    rig_lease(&broker, alice, "", "'want':{'kind':'cpu','parts':1}");
    rig_lease(&broker, hers, "quota", "'want':{'kind':'cpu','parts':1}");
    unlink(path);
    rig_close(&broker);
}

/* Who has not heard the answer to an ask ends whatever came of it. */
static void test_key(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *root = rig_client(&broker, 0), *alice = rig_client(&broker, ALICE),
              *bob = rig_client(&broker, BOB);
    rig_lease(&broker, root, "", "'want':{'profile':'gpu'},'user':'60001','key':'k'");
    rig_lease(&broker, alice, "", "'want':{'profile':'part'},'key':'other'");
    rig_lease(&broker, alice, "waiting", "'want':{'profile':'gpu'},'wait':true,'key':'k'");
    rig_lease(&broker, alice, "bad", "'want':{'profile':'part'},'key':''");
    assert_true(fine(rig_ask(&broker, bob, "{'op':'return','key':'k'}"))); /* nothing of his */
    assert_int_equal(broker.leases.count + broker.tickets.count, 3);
    assert_true(fine(rig_ask(&broker, root, "{'op':'return','key':'k'}")));
    assert_int_equal(broker.leases.count, 1);
    assert_int_equal(broker.tickets.count, 0);
    assert_true(fine(rig_ask(&broker, alice, "{'op':'return','key':'other'}")));
    assert_int_equal(broker.leases.count, 0);
    assert_null(bk_broken(&broker));
    rig_close(&broker);
}

static void test_others(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB),
              *root = rig_client(&broker, 0);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'kind':'cpu','parts':2},'label':'secret'");
    rig_lease(&broker, bob, "", "'want':{'kind':'cpu','parts':1}");
    json_t *list = rig_ask(&broker, bob, "{'op':'list'}");
    json_t *cpu = json_array_get(json_object_get(list, "devices"), 1),
           *others = json_object_get(cpu, "others");
    assert_int_equal(json_integer_value(json_object_get(others, "parts")), 2);
    assert_int_equal(json_integer_value(json_object_get(others, "memory")), 200);
    assert_int_equal(json_array_size(json_object_get(list, "leases")), 1);
    char *text = json_dumps(list, 0);
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "60001"));
    assert_null(strstr(text, lease));
    free(text);
    static const char *const all[] = {"return", "adopt",  "subscribe", "idle",
                                      "busy",   "parked", "resume",    "extend"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(all); i++) {
        json_t *answer = rig_ask(&broker, bob, "{'op':'%s','lease':'%s','seconds':1}", all[i], lease);
        assert_string_equal(rig_text(answer, "code"), "unknown");
    }
    assert_int_equal(broker.leases.count, 2);
    list = rig_ask(&broker, root, "{'op':'list'}");
    assert_int_equal(json_array_size(json_object_get(list, "leases")), 2);
    text = json_dumps(rig_ask(&broker, bob, "{'op':'metrics'}"), 0);
    assert_null(strstr(text, "60001"));
    free(text);
    rig_later(&broker, 1);
    text = json_dumps(rig_ask(&broker, root, "{'op':'metrics'}"), 0);
    assert_non_null(strstr(text, "60001"));
    free(text);
    rig_close(&broker);
}

static void test_watch(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    assert_true(fine(rig_ask(&broker, bob, "{'op':'watch'}")));
    rig_later(&broker, 1);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'profile':'part'}");
    assert_string_equal(rig_text(rig_next(bob), "event"), "changed");
    rig_ask(&broker, alice, "{'op':'return','lease':'%s'}", lease);
    assert_null(rig_next(bob)); /* ten a second at most */
    rig_later(&broker, 0.11);
    assert_string_equal(rig_text(rig_next(bob), "event"), "changed");
    rig_later(&broker, 1);
    assert_null(rig_next(bob));
    rig_close(&broker);
}

/* Who has an answer unread that is older than the change hears of the change, too. */
static void test_watch_behind_an_answer(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    assert_true(fine(rig_ask(&broker, bob, "{'op':'watch'}")));
    rig_later(&broker, 1);
    static const char list[] = "{\"op\":\"list\"}";
    bk_request(&broker, bob, list, sizeof list - 1); /* in the same turn as what changes */
    rig_lease(&broker, alice, "", "'want':{'profile':'part'}");
    assert_non_null(json_object_get(rig_next(bob), "devices"));
    assert_string_equal(rig_text(rig_next(bob), "event"), "changed");
    /* One that is not read yet is enough, however many answers come behind it. */
    rig_lease(&broker, alice, "", "'want':{'profile':'part'}");
    rig_later(&broker, 1);
    bk_request(&broker, bob, list, sizeof list - 1);
    rig_lease(&broker, alice, "", "'want':{'profile':'part'}");
    rig_later(&broker, 1);
    assert_string_equal(rig_text(rig_next(bob), "event"), "changed");
    assert_non_null(json_object_get(rig_next(bob), "devices"));
    assert_null(rig_next(bob));
    rig_close(&broker);
}

static void test_odd_requests(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE);
    static const char *const odd[][2] = {{"", "bad"},
                                         {"{", "bad"},
                                         {"[]", "bad"},
                                         {"{}", "bad"},
                                         {"{'op':1}", "bad"},
                                         {"{'op':'x'}", "unknown"},
                                         {"{'op':'hello','tag':[]}", "bad"},
                                         {"{'op':'lease'}", "bad"},
                                         {"{'op':'lease','want':{'profile':'x'}}", "unknown"},
                                         {"{'op':'lease','want':{'kind':'x'}}", "bad"},
                                         {"{'op':'lease','want':{'devices':0}}", "bad"},
                                         {"{'op':'lease','want':{'devices':65}}", "bad"},
                                         {"{'op':'lease','want':{'parts':-1}}", "bad"},
                                         {"{'op':'lease','want':{'memory':1.5}}", "bad"},
                                         {"{'op':'lease','want':{},'seconds':0}", "bad"},
                                         {"{'op':'lease','want':{},'seconds':'1'}", "bad"},
                                         {"{'op':'lease','want':{},'label':'a\\n'}", "bad"},
                                         {"{'op':'lease','want':{},'label':'a\\u009b'}", "bad"},
                                         {"{'op':'lease','want':{},'holder':1}", "bad"},
                                         {"{'op':'return'}", "bad"},
                                         {"{'op':'return','ticket':'1'}", "unknown"}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(odd); i++) {
        json_t *answer = rig_ask(&broker, alice, "%s", odd[i][0]);
        assert_string_equal(rig_text(answer, "code"), odd[i][1]);
        assert_true(strlen(rig_text(answer, "error")) > 10);
    }
    assert_string_equal(rig_text(rig_ask(&broker, alice, "{'op':'hello','tag':'t'}"), "tag"), "t");
    rig_close(&broker);
}

static void test_limits(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, "{'devices':[{'id':'c','kind':'cpu','parts':4},{'id':'g','kind':'gpu'}],"
                      "'limits':{'connections':2,'leases':3,'tickets':1,'subscriptions':1}}");
    bk_client *alice = rig_client(&broker, ALICE), *other = rig_client(&broker, ALICE);
    assert_null(bk_client_new(&broker, -1, 1, ALICE));
    assert_non_null(bk_client_new(&broker, -1, 1, BOB));
    const char *one = rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    const char *two = rig_lease(&broker, other, "", "'want':{'kind':'cpu','parts':1}");
    rig_lease(&broker, alice, "waiting", "'want':{'kind':'gpu'},'wait':true");
    rig_lease(&broker, alice, "limit", "'want':{'kind':'cpu','parts':1}");
    rig_ask(&broker, alice, "{'op':'return','lease':'%s'}", two);
    rig_next(other);
    rig_lease(&broker, alice, "limit", "'want':{'kind':'cpu','parts':1},'wait':true");
    assert_true(fine(rig_ask(&broker, other, "{'op':'subscribe','lease':'%s'}", one)));
    rig_close(&broker);
}

/* A client that does not read is closed, and nothing of it stays. */
static void test_unread(void **state)
{
    (void)state;
    bk_broker broker;
    rig_open(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE);
    for (unsigned i = 0; i < 100000 && broker.nclients; i++) {
        bk_request(&broker, alice, "{\"op\":\"list\"}", 13);
        bk_turn_end(&broker);
    }
    assert_int_equal(broker.nclients, 0);
    assert_int_equal(broker.counts.overflows, 1);
    rig_close(&broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time),
                                       cmocka_unit_test(test_extend),
                                       cmocka_unit_test(test_holder),
                                       cmocka_unit_test(test_holder_gone),
                                       cmocka_unit_test(test_park),
                                       cmocka_unit_test(test_park_not),
                                       cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_watch),
                                       cmocka_unit_test(test_odd_requests),
                                       cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_unread),
                                       cmocka_unit_test(test_watch_behind_an_answer),
                                       cmocka_unit_test(test_told_of_tickets),
                                       cmocka_unit_test(test_adopt_while_waiting),
                                       cmocka_unit_test(test_ids_of_one_user),
                                       cmocka_unit_test(test_park_behind_others),
                                       cmocka_unit_test(test_park_again),
                                       cmocka_unit_test(test_key),
                                       cmocka_unit_test(test_home)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
