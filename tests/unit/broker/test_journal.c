/* What survives a restart. */
#include "broker_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
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

#define EACH(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {EACH(test_goes_on),    EACH(test_holder_gone),   EACH(test_torn),
                                       EACH(test_damaged),    EACH(test_other_devices), EACH(test_compacts),
                                       EACH(test_one_broker), EACH(test_accounts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
