/* What survives a restart: a file of JSON lines. {"put": LEASE} says all of a lease whenever it has changed,
 * {"end": ID} that it is over.
 *
 * Lines are written before the answers of their turn are sent, so the death of the broker loses nothing that
 * somebody was told. They are not forced to the disk: the death of the machine ends all leases anyway,
 * because it ends their holders. The first line has the boot id, by which that is known. */
#include "base/file.h"
#include "base/machine.h"
#include "broker/broker_state.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL       "journal"
#define JOURNAL_NEW   "journal.new"
#define COMPACT_LEAST ((size_t)4 << 20)
#define RETRY_SECONDS 5.0

/* --- Lines ---------------------------------------------------------------------------------------------- */

void bk_journal_line(drupe_text *text, json_t *line)
{
    char room[2048], *bytes = room;
    size_t size = json_dumpb(line, room, sizeof room - 1, JSON_COMPACT);
    if (size > sizeof room - 1) {
        bytes = malloc(size + 1);
        if (bytes) json_dumpb(line, bytes, size, JSON_COMPACT);
    }
    if (bytes && size) {
        bytes[size] = '\n';
        drupe_text_append(text, bytes, size + 1);
    } else {
        text->failed = true;
    }
    if (bytes != room) free(bytes);
    json_decref(line);
}

static json_t *take_put(const bk_take *take)
{
    json_t *parts = json_array();
    for (unsigned i = 0; take->nparts && i < BK_PARTS_MOST; i++) {
        if (bk_has_part(&take->parts, i)) json_array_append_new(parts, json_integer((json_int_t)i));
    }
    return json_pack("{sssosI}", "id", take->device->id, "parts", parts, "memory", (json_int_t)take->memory);
}

static json_t *home_put(const bk_broker *broker, const bk_lease *lease)
{
    json_t *home = json_array();
    for (unsigned i = 0; i < broker->config.ndevices; i++) {
        if (bk_has_part(&lease->home, i))
            json_array_append_new(home, json_string(broker->config.devices[i].id));
    }
    return home;
}

static json_t *lease_put(const bk_broker *broker, const bk_lease *lease)
{
    json_t *takes = json_array();
    for (unsigned i = 0; i < lease->holding.ntakes; i++) {
        json_array_append_new(takes, take_put(&lease->holding.takes[i]));
    }
    json_t *put =
        json_pack("{sssssIsIsosfsfsb}", "id", lease->id, "user", lease->user->name, "pid",
                  (json_int_t)lease->holder->pid, "start", (json_int_t)lease->holder->start, "takes", takes,
                  "begin", lease->begin, "since", lease->since, "parked", (int)lease->parked);
    bk_set(put, "want",
           json_pack("[iiiI]", (int)lease->want.kind, (int)lease->want.devices, (int)lease->want.parts,
                     (json_int_t)lease->want.memory));
    bk_set(put, "amount", json_integer((json_int_t)lease->holding.amount[BK_ANY]));
    /* What is missing is 0. */
    if (lease->ends > 0) bk_set(put, "ends", json_real(lease->ends));
    if (lease->spent > 0) bk_set(put, "spent", json_real(lease->spent));
    if (lease->idle_after > 0) bk_set(put, "idle_after", json_real(lease->idle_after));
    if (lease->label) bk_set(put, "label", json_string(lease->label));
    if (lease->profile) bk_set(put, "profile", json_string(lease->profile));
    if (lease->key) bk_set(put, "key", json_string(lease->key));
    if (lease->parked) bk_set(put, "home", home_put(broker, lease));
    return json_pack("{so}", "put", put);
}

void bk_journal_put(bk_broker *broker, const bk_lease *lease)
{
    if (broker->journal.folder >= 0) bk_journal_line(&broker->journal.pending, lease_put(broker, lease));
}

void bk_journal_end(bk_broker *broker, const bk_lease *lease)
{
    if (broker->journal.folder < 0) return;
    drupe_text_printf(&broker->journal.pending, "{\"end\":\"%s\"}\n", lease->id);
}

/* --- Accounting ----------------------------------------------------------------------------------------- */

void bk_journal_account(bk_broker *broker, const bk_lease *lease, const char *why)
{
    if (broker->journal.accounting < 0) return;
    json_t *devices = json_array();
    unsigned parts = 0;
    uint64_t memory = 0;
    for (unsigned i = 0; i < lease->holding.ntakes; i++) {
        json_array_append_new(devices, json_string(lease->holding.takes[i].device->id));
        parts += lease->holding.takes[i].nparts;
        memory += lease->holding.takes[i].memory;
    }
    json_t *line = json_pack("{sssssssosfsfsfsfsisIss}", "lease", lease->id, "user", lease->user->name,
                             "group", lease->user->group, "devices", devices, "start", lease->begin, "end",
                             broker->now, "seconds", broker->now - lease->begin, "device_seconds",
                             lease->spent, "parts", (int)parts, "memory", (json_int_t)memory, "why", why);
    if (lease->profile) bk_set(line, "profile", json_string(lease->profile));
    if (lease->label) bk_set(line, "label", json_string(lease->label));
    bk_journal_line(&broker->journal.accounts, line);
}

/* Open the file of accounts, anew after it was renamed. */
void bk_journal_reopen(bk_broker *broker)
{
    const char *path = broker->config.accounting;
    if (!path) return;
    if (broker->journal.accounting >= 0) close(broker->journal.accounting);
    broker->journal.accounting = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (broker->journal.accounting < 0)
        bk_say("the accounts cannot be written to %s: %s", path, strerror(errno));
}

static void accounts_flush(bk_journal *journal)
{
    if (journal->accounts.length == 0) return;
    if (journal->accounting >= 0 &&
        !drupe_write_all(journal->accounting, journal->accounts.data, journal->accounts.length)) {
        bk_say("the accounts could not be written: %s", strerror(errno));
    }
    drupe_text_clear(&journal->accounts);
}

/* --- Writing -------------------------------------------------------------------------------------------- */

static void failure_say(bk_broker *broker, int code)
{
    bk_journal *journal = &broker->journal;
    if (!journal->failed)
        bk_say("the journal cannot be written: %s; leases would be lost by a restart", strerror(code));
    journal->failed = true;
    journal->retry = broker->now + RETRY_SECONDS;
}

/* Write all leases to a new file and put it in the place of the old one. */
bool bk_journal_compact(bk_broker *broker)
{
    bk_journal *journal = &broker->journal;
    drupe_text text = {0};
    int code = ENOMEM;
    bk_journal_line(
        &text, json_pack("{sisssf}", "drupe_broker", BK_VERSION, "boot", broker->boot, "made", broker->now));
    for (bk_lease *lease = broker->first_lease; lease; lease = lease->next)
        bk_journal_line(&text, lease_put(broker, lease));
    int fd = text.failed ? -1
                         : openat(journal->folder, JOURNAL_NEW,
                                  O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    bool good = fd >= 0 && drupe_write_all(fd, text.data, text.length) &&
                renameat(journal->folder, JOURNAL_NEW, journal->folder, JOURNAL) == 0;
    if (!good && !text.failed) code = errno;
    if (good) {
        if (journal->fd >= 0) close(journal->fd);
        if (journal->failed) bk_say("the journal is written again");
        journal->fd = fd;
        journal->failed = false;
        journal->written = text.length;
        journal->compact_at = text.length * 4 > COMPACT_LEAST ? text.length * 4 : COMPACT_LEAST;
        drupe_text_clear(&journal->pending); /* all of it is in the new file */
    } else {
        if (fd >= 0) close(fd);
        failure_say(broker, code);
    }
    drupe_text_clear(&text);
    return good;
}

void bk_journal_flush(bk_broker *broker)
{
    bk_journal *journal = &broker->journal;
    accounts_flush(journal);
    if (journal->folder < 0) return;
    if (journal->failed) {
        drupe_text_clear(&journal->pending);
        if (broker->now >= journal->retry) bk_journal_compact(broker);
        return;
    }
    if (journal->pending.length == 0 && !journal->pending.failed) return;
    size_t size = journal->pending.length;
    if (journal->pending.failed || !drupe_write_all(journal->fd, journal->pending.data, size)) {
        /* What is half written is dropped with the file. */
        failure_say(broker, journal->pending.failed ? ENOMEM : errno);
        bk_journal_compact(broker);
        return;
    }
    journal->pending.length = 0;
    journal->written += size;
    if (journal->written > journal->compact_at) bk_journal_compact(broker);
}

void bk_journal_close(bk_broker *broker)
{
    bk_journal *journal = &broker->journal;
    bk_journal_flush(broker);
    if (journal->folder >= 0 && !journal->failed) bk_journal_compact(broker);
    int *fds[] = {&journal->fd, &journal->folder, &journal->lock, &journal->accounting};
    for (size_t i = 0; i < DRUPE_COUNT_OF(fds); i++) {
        if (*fds[i] >= 0) close(*fds[i]);
        *fds[i] = -1;
    }
    drupe_text_clear(&journal->pending);
    drupe_text_clear(&journal->accounts);
}
