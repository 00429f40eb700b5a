/* The journal is read at the start. A lease goes on if its holder is still there: the same number, the same
 * start time, the same boot. A line that was torn by a crash ends the file and is dropped. A file with other
 * damage is set aside; what can be read of it counts, because a lease that is forgotten lets its device be
 * given twice. */
#include "base/file.h"
#include "broker/broker_state.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define JOURNAL      "journal"
#define JOURNAL_MOST ((size_t)256 << 20)

typedef struct replay {
    bk_broker *broker;
    json_t *puts; /* the last of each lease */
    bool other_boot;
    unsigned damaged, kept, lost;
} replay;

static bool line_take(replay *r, const char *bytes, size_t size)
{
    json_t *line = json_loadb(bytes, size, 0, NULL), *put = json_object_get(line, "put");
    const char *id = json_string_value(json_object_get(put, "id")),
               *end = json_string_value(json_object_get(line, "end"));
    const char *boot = json_string_value(json_object_get(line, "boot"));
    bool good = true;
    if (id)
        json_object_set(r->puts, id, put);
    else if (end)
        json_object_del(r->puts, end);
    else if (json_object_get(line, "drupe_broker"))
        r->other_boot = boot && strcmp(boot, r->broker->boot) != 0;
    else
        good = false;
    json_decref(line);
    return good;
}

static void lines_take(replay *r, const char *text, size_t size)
{
    while (size) {
        const char *end = memchr(text, '\n', size);
        if (!end) return; /* torn */
        size_t length = (size_t)(end - text);
        if (!line_take(r, text, length)) r->damaged++;
        text += length + 1;
        size -= length + 1;
    }
}

/* --- Leases --------------------------------------------------------------------------------------------- */

static bk_device *device_named(bk_broker *broker, const char *id)
{
    for (size_t i = 0; id && i < broker->config.ndevices; i++) {
        if (strcmp(broker->config.devices[i].id, id) == 0) return &broker->config.devices[i];
    }
    return NULL;
}

static bool take_read(bk_broker *broker, json_t *object, bk_take *take)
{
    json_t *part;
    size_t i;
    *take = (bk_take){.device = device_named(broker, json_string_value(json_object_get(object, "id")))};
    take->memory = (uint64_t)json_integer_value(json_object_get(object, "memory"));
    json_array_foreach(json_object_get(object, "parts"), i, part)
    {
        json_int_t index = json_integer_value(part);
        if (!json_is_integer(part) || index < 0 || index >= BK_PARTS_MOST) return false;
        if (bk_has_part(&take->parts, (unsigned)index)) return false;
        bk_set_part(&take->parts, (unsigned)index, true);
        take->nparts++;
    }
    return take->device != NULL;
}

/* What it had is taken again; false when it is not there any more. */
static bool holding_read(bk_broker *broker, json_t *put, const bk_want *want, bk_holding *holding)
{
    json_t *list = json_object_get(put, "takes"), *object;
    size_t count = json_array_size(list), i;
    *holding = (bk_holding){.limited = want->memory > 0, .limit = want->memory};
    if (count > BK_TAKES_MOST) return false;
    if (count == 0) return true; /* parked */
    holding->takes = calloc(count, sizeof *holding->takes);
    if (!holding->takes) return false;
    bool good = true;
    json_array_foreach(list, i, object) good = good && take_read(broker, object, &holding->takes[i]);
    holding->ntakes = (unsigned)count;
    if (good && bk_claim_again(broker, holding)) return true;
    free(holding->takes);
    *holding = (bk_holding){0};
    return false;
}

static bool want_read(json_t *put, bk_want *want)
{
    json_t *list = json_object_get(put, "want");
    uint64_t numbers[4];
    for (size_t i = 0; i < 4; i++) {
        json_t *number = json_array_get(list, i);
        if (!json_is_integer(number) || json_integer_value(number) < 0) return false;
        numbers[i] = (uint64_t)json_integer_value(number);
    }
    if (numbers[0] >= BK_KINDS || numbers[1] > BK_TAKES_MOST || numbers[2] > BK_PARTS_MOST) return false;
    *want = (bk_want){(bk_kind)numbers[0], (unsigned)numbers[1], (unsigned)numbers[2], numbers[3]};
    return true;
}

static double number(json_t *put, const char *key)
{
    return json_number_value(json_object_get(put, key));
}

static void home_read(bk_broker *broker, json_t *put, bk_parts *home)
{
    json_t *id;
    size_t i;
    json_array_foreach(json_object_get(put, "home"), i, id)
    {
        const bk_device *device = device_named(broker, json_string_value(id));
        if (device) bk_set_part(home, (unsigned)(device - broker->config.devices), true);
    }
}

/* Why a lease of the journal does not go on, or NULL. */
static const char *lease_read(replay *r, const char *id, json_t *put)
{
    bk_broker *broker = r->broker;
    const char *why, *name = json_string_value(json_object_get(put, "user"));
    bk_want want;
    bk_holding holding;
    pid_t pid = (pid_t)json_integer_value(json_object_get(put, "pid"));
    uint64_t start = (uint64_t)json_integer_value(json_object_get(put, "start"));
    if (r->other_boot) return BK_EXITED;
    if (!name || strlen(id) >= sizeof((bk_lease *)0)->id || !want_read(put, &want)) return "damaged";
    bk_user *user = bk_user_named(broker, name);
    bk_holder *holder = user && start ? bk_holder_get(broker, pid, start, -1, &why) : NULL;
    if (!holder) return BK_EXITED;
    const char *end = "its devices are gone from the configuration";
    if (holding_read(broker, put, &want, &holding)) {
        end = "damaged";
        bk_lease *lease =
            bk_lease_new(broker, id, user, holder, &want, json_string_value(json_object_get(put, "profile")),
                         json_string_value(json_object_get(put, "label")), &holding);
        if (lease) {
            end = NULL;
            lease->begin = number(put, "begin");
            lease->spent = number(put, "spent");
            const char *key = json_string_value(json_object_get(put, "key"));
            if (key) lease->key = strdup(key);
            home_read(broker, put, &lease->home);
            lease->parked = json_is_true(json_object_get(put, "parked"));
            lease->idle_after = number(put, "idle_after");
            if (!lease->parked) lease->since = number(put, "since");
            bk_lease_until(broker, lease, number(put, "ends"));
        }
    }
    bk_holder_release(broker, holder);
    return end;
}

/* The account of a lease that ended while the broker did not run: until now, for nobody knows when. */
static void lost_account(bk_broker *broker, const char *id, json_t *put, const char *why)
{
    double now = broker->now, begin = number(put, "begin");
    double used = number(put, "spent") + (now - number(put, "since")) * number(put, "amount") / BK_UNIT;
    json_t *devices = json_array(), *take;
    size_t i;
    const char *user = json_string_value(json_object_get(put, "user"));
    json_array_foreach(json_object_get(put, "takes"), i, take)
    {
        json_t *name = json_object_get(take, "id");
        if (json_is_string(name)) json_array_append(devices, name);
    }
    bk_journal_line(&broker->journal.accounts,
                    json_pack("{sssssosfsfsfsfss}", "lease", id, "user", user ? user : "", "devices", devices,
                              "start", begin, "end", now, "seconds", now - begin, "device_seconds", used,
                              "why", why));
}

static void leases_take(replay *r)
{
    const char *id;
    json_t *put;
    json_object_foreach(r->puts, id, put)
    {
        const char *why = lease_read(r, id, put);
        if (!why) {
            r->kept++;
            continue;
        }
        r->lost++;
        if (r->broker->journal.accounting >= 0) lost_account(r->broker, id, put, why);
        if (strcmp(why, BK_EXITED) != 0) bk_say("the lease %s of the journal has ended: %s", id, why);
    }
}

/* --- The file ------------------------------------------------------------------------------------------- */

/* A second name, until the new journal takes the first: who died between would have no journal, and forget
 * all leases. What can have no second name is moved. */
static void set_aside(bk_broker *broker, const char *why)
{
    char name[64];
    int folder = broker->journal.folder;
    snprintf(name, sizeof name, "journal.damaged-%.0f", broker->now);
    if (linkat(folder, JOURNAL, folder, name, 0) != 0 && renameat(folder, JOURNAL, folder, name) != 0) {
        bk_say("the journal is damaged (%s) and cannot be set aside: %s", why, strerror(errno));
    } else {
        bk_say("the journal is damaged (%s); it is kept as %s, and what could be read of it counts", why,
               name);
    }
}

void bk_replay_text(bk_broker *broker, const char *text, size_t size, unsigned *damaged)
{
    replay r = {.broker = broker, .puts = json_object()};
    lines_take(&r, text, size);
    leases_take(&r);
    *damaged = r.damaged;
    if (r.kept || r.lost) bk_say("%u leases go on, %u have ended meanwhile", r.kept, r.lost);
    json_decref(r.puts);
}

static void journal_read(bk_broker *broker)
{
    void *text = NULL;
    size_t size = 0;
    unsigned damaged = 0;
    drupe_status status = drupe_file_read(broker->journal.folder, JOURNAL, JOURNAL_MOST, false, &text, &size);
    if (status == DRUPE_E_NOT_FOUND) return;
    if (status != DRUPE_OK) {
        set_aside(broker, drupe_error_last()->text);
        return;
    }
    bk_replay_text(broker, text, size, &damaged);
    free(text);
    if (damaged) set_aside(broker, "lines that are none of it");
}

drupe_status bk_journal_open(bk_broker *broker, const char *path)
{
    bk_journal *journal = &broker->journal;
    DRUPE_TRY(drupe_folder_open(path, true, &journal->folder));
    journal->lock = openat(journal->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (journal->lock < 0 || flock(journal->lock, LOCK_EX | LOCK_NB) != 0) {
        return drupe_error_set(DRUPE_E_BUSY, "Another broker uses the folder %s: %s.", path, strerror(errno));
    }
    bk_journal_reopen(broker);
    journal_read(broker);
    return bk_journal_compact(broker)
               ? DRUPE_OK
               : drupe_error_set(DRUPE_E_UNAVAILABLE, "The journal in %s cannot be written.", path);
}
