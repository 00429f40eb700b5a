/* What survives a restart. */
#include "broker_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char machine[] = "{'devices':[{'id':'g0','kind':'gpu','memory':1000},"
                              "{'id':'c','kind':'cpu','parts':8,'memory':800}]}";

static char folder[] = "/tmp/drupe-journal-XXXXXX";

static int folder_make(void **state)
{
    (void)state;
    memset(folder + strlen(folder) - 6, 'X', 6);
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static char *path_of(const char *name)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* As the death of a broker leaves it: a copy of the journal, for a close writes it anew. */
static char *journal_read(size_t *size)
{
    static char text[1 << 20];
    FILE *file = fopen(path_of("journal"), "r");
    assert_non_null(file);
    *size = fread(text, 1, sizeof text - 1, file);
    text[*size] = '\0';
    fclose(file);
    return text;
}

static void journal_write(const char *text, size_t size)
{
    FILE *file = fopen(path_of("journal"), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static bool set_aside(void)
{
    DIR *stream = opendir(folder);
    bool found = false;
    for (const struct dirent *entry; (entry = readdir(stream));) {
        if (strncmp(entry->d_name, "journal.damaged-", 16) == 0) found = true;
    }
    closedir(stream);
    return found;
}

static void start(bk_broker *broker, const char *config)
{
    rig_open(broker, config);
    assert_int_equal(bk_journal_open(broker, folder), DRUPE_OK);
}

/* A second broker on what the first has written, while the first one's holders live. */
static void restart(bk_broker *next, const char *config, const char *text, size_t size)
{
    bk_config parsed;
    drupe_text problems = {0};
    char json[1000];
    snprintf(json, sizeof json, "%s", config);
    for (char *at = json; *at; at++) {
        if (*at == '\'') *at = '"';
    }
    unsigned damaged;
    *next = (bk_broker){0};
    assert_true(bk_config_parse(json, strlen(json), &parsed, &problems));
    assert_int_equal(bk_broker_open(next, &parsed), DRUPE_OK);
    bk_replay_text(next, text, size, &damaged);
    assert_null(bk_broken(next));
}

static void test_goes_on(void **state)
{
    (void)state;
    bk_broker broker, next;
    start(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    const char *gpu =
        rig_lease(&broker, alice, "", "'want':{'kind':'gpu'},'seconds':500,'label':'it','key':'k'");
    const char *cpu = rig_lease(&broker, bob, "", "'want':{'kind':'cpu','parts':3}");
    const char *gone = rig_lease(&broker, bob, "", "'want':{'kind':'cpu','parts':2}");
    rig_ask(&broker, bob, "{'op':'return','lease':'%s'}", gone);
    rig_ask(&broker, alice, "{'op':'parked','lease':'%s'}", gpu);
    size_t size;
    const char *text = journal_read(&size);
    restart(&next, machine, text, size);
    assert_int_equal(next.leases.count, 2);
    const bk_lease *parked = drupe_map_get(&next.leases, gpu, strlen(gpu));
    const bk_lease *parts = drupe_map_get(&next.leases, cpu, strlen(cpu));
    assert_true(parked && parts && parked->parked && parked->ends > broker.now + 499);
    assert_string_equal(parked->label, "it");
    assert_string_equal(parked->key, "k");
    assert_true(bk_has_part(&parked->home, 0) && !bk_has_part(&parked->home, 1));
    assert_int_equal(parts->holder->pid, bob->pid);
    assert_int_equal(parts->holding.takes[0].parts.words[0], 7);
    assert_int_equal(next.config.devices[1].nused, 3);
    bk_broker_close(&next);
    rig_close(&broker);
}

/* Who died meanwhile holds nothing, nor a later process of the same number, nor anybody of another boot. */
static void test_holder_gone(void **state)
{
    (void)state;
    bk_broker broker, next;
    start(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE), *bob = rig_client(&broker, BOB);
    rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_lease(&broker, bob, "", "'want':{'kind':'cpu'}");
    size_t size;
    char *text = journal_read(&size);
    rig_kill(alice->pid);
    restart(&next, machine, text, size);
    assert_int_equal(next.leases.count, 1);
    bk_broker_close(&next);
    char *at = strstr(text, "\"start\":");
    for (; at; at = strstr(at + 1, "\"start\":")) at[8] = at[8] == '1' ? '2' : '1';
    restart(&next, machine, text, size);
    assert_int_equal(next.leases.count, 0);
    bk_broker_close(&next);
    text = journal_read(&size);
    at = strstr(text, "\"boot\":\"");
    assert_non_null(at);
    at[8] = at[8] == '0' ? '1' : '0';
    restart(&next, machine, text, size);
    assert_int_equal(next.leases.count, 0);
    bk_broker_close(&next);
    bk_client_close(&broker, alice);
    rig_close(&broker);
}

/* At each length a crash can leave: all whole lines count. */
static void test_torn(void **state)
{
    (void)state;
    bk_broker broker, next;
    start(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE);
    size_t before, after;
    rig_lease(&broker, alice, "", "'want':{'kind':'cpu','parts':1}");
    journal_read(&before);
    rig_lease(&broker, alice, "", "'want':{'kind':'cpu','parts':1}");
    const char *text = journal_read(&after);
    for (size_t size = before; size <= after; size += size + 1 < after ? 29 : 1) {
        if (size + 29 > after && size < after) size = after - 1;
        restart(&next, machine, text, size);
        assert_int_equal(next.leases.count, size == after ? 2 : 1);
        bk_broker_close(&next);
    }
    rig_close(&broker);
}

static void test_damaged(void **state)
{
    (void)state;
    bk_broker broker, next;
    start(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE);
    rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_lease(&broker, alice, "", "'want':{'kind':'cpu'}");
    size_t size;
    char *text = journal_read(&size);
    char *line = strstr(text, "{\"put\"");
    memset(line, 'x', 10);
    flock(broker.journal.lock, LOCK_UN); /* as its death would */
    journal_write(text, size);
    restart(&next, machine, "", 0);
    assert_int_equal(bk_journal_open(&next, folder), DRUPE_OK);
    assert_int_equal(next.leases.count, 1); /* what could be read */
    assert_true(set_aside());
    bk_broker_close(&next);
    rig_close(&broker);
}

/* A device that the configuration lost, or made smaller. */
static void test_other_devices(void **state)
{
    (void)state;
    bk_broker broker, next;
    start(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE);
    rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_lease(&broker, alice, "", "'want':{'kind':'cpu','parts':3}");
    rig_lease(&broker, alice, "", "'want':{'kind':'cpu','parts':1}");
    size_t size;
    const char *text = journal_read(&size);
    restart(&next, "{'devices':[{'id':'c','kind':'cpu','parts':3}]}", text, size);
    assert_int_equal(next.leases.count, 1);
    bk_broker_close(&next);
    rig_close(&broker);
}

static void test_compacts(void **state)
{
    (void)state;
    bk_broker broker, next;
    start(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE);
    rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    broker.journal.compact_at = 2000;
    struct stat about;
    for (unsigned i = 0; i < 200; i++) {
        const char *lease = rig_lease(&broker, alice, "", "'want':{'kind':'cpu','parts':1}");
        rig_ask(&broker, alice, "{'op':'return','lease':'%s'}", lease);
        if (broker.journal.compact_at > 2000) broker.journal.compact_at = 2000;
        assert_int_equal(stat(path_of("journal"), &about), 0);
        assert_true(about.st_size < 3500);
    }
    size_t size;
    const char *text = journal_read(&size);
    restart(&next, machine, text, size);
    assert_int_equal(next.leases.count, 1);
    bk_broker_close(&next);
    rig_close(&broker);
}

static void test_one_broker(void **state)
{
    (void)state;
    bk_broker broker, next;
    start(&broker, machine);
    restart(&next, machine, "", 0);
    assert_int_equal(bk_journal_open(&next, folder), DRUPE_E_BUSY);
    bk_broker_close(&next);
    struct stat about;
    assert_int_equal(stat(path_of("journal"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    rig_close(&broker);
}

static void test_accounts(void **state)
{
    (void)state;
    bk_broker broker;
    char config[400], line[1000] = "";
    snprintf(config, sizeof config, "{'devices':[{'id':'g0','kind':'gpu','memory':1000}],'accounting':'%s'}",
             path_of("accounts"));
    start(&broker, config);
    bk_client *alice = rig_client(&broker, ALICE);
    const char *lease = rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    rig_later(&broker, 10);
    rig_ask(&broker, alice, "{'op':'return','lease':'%s'}", lease);
    FILE *file = fopen(path_of("accounts"), "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    json_t *account = json_loads(line, 0, NULL);
    assert_string_equal(rig_text(account, "user"), "60001");
    assert_string_equal(rig_text(account, "why"), "returned");
    assert_string_equal(json_string_value(json_array_get(json_object_get(account, "devices"), 0)), "g0");
    double used = json_number_value(json_object_get(account, "device_seconds"));
    assert_true(used > 9.9 && used < 10.1);
    json_decref(account);
    rig_close(&broker);
}

/* Read all that has come; whether a grant was among it. */
static bool grant_read(int fd)
{
    char bytes[4096];
    bool found = false;
    for (ssize_t got; (got = recv(fd, bytes, sizeof bytes - 1, 0)) > 0;) {
        bytes[got] = '\0';
        found = found || strstr(bytes, "granted");
    }
    return found;
}

/* Room in the socket of somebody who read slowly sends nothing that is not in the journal yet. */
static void test_written_before_sent(void **state)
{
    (void)state;
    bk_broker broker;
    int ends[2];
    size_t size, before;
    start(&broker, machine);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    bk_client *slow = bk_client_new(&broker, ends[0], rig_process(), ALICE), *root = rig_client(&broker, 0);
    const char *lease = rig_lease(&broker, root, "", "'want':{'kind':'gpu'}");
    static const char ask[] = "{\"op\":\"lease\",\"want\":{\"kind\":\"gpu\"},\"wait\":true,\"holder\":null}";
    bk_request(&broker, slow, ask, sizeof ask - 1);
    while (!slow->polled) {
        bk_request(&broker, slow, "{\"op\":\"hello\"}", 14);
        bk_turn_end(&broker);
    }
    assert_false(grant_read(ends[1]));
    /* A turn in which it is granted something and there is room. */
    bk_lease *held = drupe_map_get(&broker.leases, lease, strlen(lease));
    bk_lease_end(&broker, held, BK_RETURNED, root);
    bk_queue_run(&broker);
    assert_true(slow->user->nleases == 1);
    slow->source.ready(&broker, &slow->source, EPOLLOUT);
    journal_read(&before);
    assert_false(grant_read(ends[1]));
    bk_turn_end(&broker);
    journal_read(&size);
    assert_true(size > before && grant_read(ends[1]));
    close(ends[1]);
    rig_close(&broker);
}

/* Many connections of one user get no more of a turn than one does. */
static void test_turn_of_a_user(void **state)
{
    (void)state;
    bk_broker broker;
    int ends[2][2];
    start(&broker, machine);
    bk_client *clients[2];
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends[i]), 0);
        clients[i] = bk_client_new(&broker, ends[i][0], rig_process(), ALICE);
    }
    bk_client *bob = rig_client(&broker, BOB);
    assert_int_equal(send(ends[1][1], "{\"op\":\"hello\"}", 14, 0), 14);
    clients[0]->user->spent = 1; /* the first one's requests took so long */
    clients[0]->user->turn = broker.turn;
    clients[1]->source.ready(&broker, &clients[1]->source, EPOLLIN);
    assert_null(clients[1]->first);
    rig_ask(&broker, bob, "{'op':'hello'}"); /* and ends the turn */
    clients[1]->source.ready(&broker, &clients[1]->source, EPOLLIN);
    assert_non_null(clients[1]->first);
    assert_true(clients[1]->user->spent > 0 && clients[1]->user->spent < 1);
    for (unsigned i = 0; i < 2; i++) close(ends[i][1]);
    rig_close(&broker);
}

/* At no moment is there no journal: who died between would have forgotten all leases. */
static void test_damaged_stays_until_the_next(void **state)
{
    (void)state;
    bk_broker broker, next;
    start(&broker, machine);
    bk_client *alice = rig_client(&broker, ALICE);
    rig_lease(&broker, alice, "", "'want':{'kind':'gpu'}");
    size_t size;
    char *text = journal_read(&size);
    memcpy(text, "what", 4);
    flock(broker.journal.lock, LOCK_UN);
    journal_write(text, size);
    assert_int_equal(mkdir(path_of("journal.new"), 0700), 0); /* so that the next cannot be written */
    restart(&next, machine, "", 0);
    assert_int_equal(bk_journal_open(&next, folder), DRUPE_E_UNAVAILABLE);
    assert_true(set_aside());
    bk_broker_close(&next);
    assert_int_equal(rmdir(path_of("journal.new")), 0);
    restart(&next, machine, "", 0);
    assert_int_equal(bk_journal_open(&next, folder), DRUPE_OK);
    assert_int_equal(next.leases.count, 1);
    bk_broker_close(&next);
    rig_close(&broker);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {EACH(test_goes_on),
                                       EACH(test_holder_gone),
                                       EACH(test_torn),
                                       EACH(test_damaged),
                                       EACH(test_other_devices),
                                       EACH(test_compacts),
                                       EACH(test_one_broker),
                                       EACH(test_accounts),
                                       EACH(test_turn_of_a_user),
                                       EACH(test_written_before_sent),
                                       EACH(test_damaged_stays_until_the_next)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
