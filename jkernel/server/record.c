/* The record of a kernel's life, and what its successor makes of it. */
#include "jkernel/server/crash.h"
#include "jkernel/server/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".drupe-state"
#define MAGIC  "drupe/1"

#define NOTES_TOLD 5
#define JK_KEPT_NOTES                                                                                        \
    "Last device operations, as of when the last was over, or up to a quarter of a second before the end:\n"

static int record_path(const jk_server *server, char *path, size_t size)
{
    int length = snprintf(path, size, "%s" SUFFIX, server->config.path ? server->config.path : "");
    return server->config.path && length > 0 && (size_t)length < size ? 0 : -1;
}

static void record_begin(jk_record *record)
{
    jk_cgroup group;
    bool machine;
    jk_cgroup_find(&group);
    memset(record, 0, sizeof *record);
    memcpy(record->magic, MAGIC, sizeof MAGIC);
    record->size = sizeof *record;
    jk_proc_read("sys/kernel/random/boot_id", record->boot, sizeof record->boot);
    memccpy(record->group, group.memory.path, 0, sizeof record->group - 1);
    record->kills = jk_cgroup_kills(&group.memory, &machine);
    record->limit = jk_cgroup_memory_limit(&group.memory, NULL);
}

/* --- The story
 * ----------------------------------------------------------------------------------------------
 */

static void cell_name(const jk_record *record, char *text, size_t size)
{
    long cell = atomic_load(&record->cell);
    if (atomic_load(&record->running)) {
        snprintf(text, size, "while cell [%ld] ran", cell);
    } else if (cell > 0) {
        snprintf(text, size, "after cell [%ld] had ended", cell);
    } else {
        snprintf(text, size, "before its first cell");
    }
}

static const char *last_lines(const char *notes)
{
    const char *at = notes + strlen(notes);
    for (int lines = 0; at > notes; at--) {
        if (at[-1] == '\n' && at[0] && ++lines == NOTES_TOLD) break;
    }
    return at;
}

/* The last few of the engine's notes, with their heading; "" when there are none. */
static const char *last_notes(const jk_record *old, const char **heading)
{
    const char *notes = strstr(old->detail, JK_CRASH_NOTES);
    *heading = notes ? JK_CRASH_NOTES : "";
    return notes ? last_lines(notes + strlen(JK_CRASH_NOTES)) : "";
}

/* The same of one that was killed. */
static const char *kept_notes(const jk_record *old, const char **heading)
{
    const char *notes = old->kept[atomic_load(&old->kept_at) % 2];
    *heading = notes[0] ? JK_KEPT_NOTES : "";
    return last_lines(notes);
}

static char *story_of_crash(const jk_record *old, const char *where)
{
    char *story = NULL;
    int size;
    if (atomic_load(&old->shown)) {
        const char *heading, *notes = last_notes(old, &heading);
        const char *end = old->call[0] ? old->call : jk_signal_name(atomic_load(&old->signal));
        if (old->call[0]) heading = notes = "";
        size = asprintf(&story, "The previous kernel ended by %s %s, as reported there.\n%s%s", end, where,
                        heading, notes);
    } else if (old->call[0]) {
        size =
            asprintf(&story,
                     "The previous kernel ended with status %d %s: %s.\nThe report could not be shown at the "
                     "time:\n%s",
                     old->status, where, old->summary, old->detail);
    } else {
        const char *detail = old->detail;
        size = asprintf(&story,
                        "The previous kernel crashed %s: %s.\nThe report could not be shown at the time:\n%s",
                        where, old->summary, detail);
    }
    return size < 0 ? NULL : story;
}

/* The text that was written and not sent, as far as it is kept, with its heading; *taken* by the caller.
 * NULL: none. */
static char *unsent_text(const jk_record *old)
{
    unsigned long long written = atomic_load(&old->text_written),
                       unsent = written - atomic_load(&old->text_sent);
    char *text = NULL;
    if (unsent == 0 || unsent > written) return NULL;
    if (unsent > JK_TEXT_SIZE) unsent = JK_TEXT_SIZE;
    char *kept = calloc(1, unsent + 1);
    for (unsigned long long i = 0; kept && i < unsent; i++) {
        kept[i] = old->text[(written - unsent + i) % JK_TEXT_SIZE];
        if (kept[i] == '\0') kept[i] = ' ';
    }
    const char *start = kept;
    while (start && ((unsigned char)*start & 0xc0) == 0x80) start++; /* of a character that is cut */
    const char *end = start && start[0] && start[strlen(start) - 1] == '\n' ? "" : "\n";
    if (start && asprintf(&text,
                          "Its last output, which had not been sent:\n"
                          "%s%s",
                          start, end) < 0)
        text = NULL;
    free(kept);
    return text;
}

static char *story_of_kill(const jk_record *old, const jk_record *now, const char *where)
{
    char *story = NULL, limit[64] = "", *text = unsent_text(old);
    const char *heading, *notes = kept_notes(old, &heading);
    int size = 0;
    bool counted = old->kills != JK_NOT_KNOWN && now->kills != JK_NOT_KNOWN && now->kills > old->kills;
    if (old->limit) snprintf(limit, sizeof limit, " The limit is %.2f GiB.", (double)old->limit / (1u << 30));
    if (counted && strcmp(old->group, now->group) == 0) {
        const char *hedge =
            old->group[0] ? "" : ", it seems (this machine has killed a process for it since)";
        size = asprintf(&story,
                        "The previous kernel was ended by the system for lack of memory %s%s.%s Its "
                        "variables are lost.\n%s%s%s",
                        where, hedge, limit, heading, notes, text ? text : "");
    } else if (atomic_load(&old->running)) {
        size = asprintf(
            &story,
            "The previous kernel ended without a report %s: it was killed (SIGKILL), or C code called "
            "_exit(). Its variables are lost.\n%s%s%s",
            where, heading, notes, text ? text : "");
    }
    free(text);
    return size < 0 ? NULL : story;
}

/* What to tell about the kernel that left `old`, or NULL. */
static char *story_make(const jk_record *old, const jk_record *now)
{
    char where[64];
    if (atomic_load(&old->ending) || strcmp(old->boot, now->boot) != 0) return NULL;
    cell_name(old, where, sizeof where);
    return atomic_load(&old->signal) ? story_of_crash(old, where) : story_of_kill(old, now, where);
}

/* --- The file
 * -----------------------------------------------------------------------------------------------
 */

static bool record_read(const char *path, jk_record *old)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    struct stat info;
    bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
                info.st_size == sizeof *old && read(fd, old, sizeof *old) == sizeof *old;
    close(fd);
    if (!good || memcmp(old->magic, MAGIC, sizeof MAGIC) != 0 || old->size != sizeof *old) return false;
    old->boot[sizeof old->boot - 1] = old->group[sizeof old->group - 1] = '\0';
    old->kept[0][JK_KEPT_SIZE - 1] = old->kept[1][JK_KEPT_SIZE - 1] = '\0';
    old->call[sizeof old->call - 1] = '\0';
    old->summary[sizeof old->summary - 1] = old->detail[sizeof old->detail - 1] = '\0';
    return true;
}

/* The space is taken now: a full disk must not become a fault when the record is written. */
static jk_record *record_map(const char *path)
{
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return NULL;
    void *memory = MAP_FAILED;
    if (posix_fallocate(fd, 0, sizeof(jk_record)) == 0) {
        memory = mmap(NULL, sizeof(jk_record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (memory != MAP_FAILED) return memory;
    unlink(path);
    return NULL;
}

void jk_record_open(jk_server *server)
{
    char path[4096];
    jk_record now, *old = malloc(sizeof *old);
    record_begin(&now);
    jk_record *record = NULL;
    if (record_path(server, path, sizeof path) == 0) {
        if (old && record_read(path, old)) atomic_store(&server->notice, story_make(old, &now));
        record = record_map(path);
        if (!record) jk_log("no record of this kernel's life in %s: %s", path, strerror(errno));
    }
    free(old);
    server->record_kept = record != NULL;
    if (!record) {
        void *memory = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return;
        record = memory;
    }
    *record = now;
    server->record = record;
}

void jk_record_close(jk_server *server)
{
    char path[4096];
    free(atomic_exchange(&server->notice, NULL));
    if (server->record && server->record_kept && record_path(server, path, sizeof path) == 0) unlink(path);
    server->record_kept = false;
}

void jk_record_cell(jk_server *server, bool running)
{
    jk_record *record = server->record;
    if (!record) return;
    if (running && !atomic_load_explicit(&record->running, memory_order_relaxed)) {
        long cell = atomic_load_explicit(&server->execution_count, memory_order_relaxed);
        atomic_store_explicit(&record->cell, cell, memory_order_relaxed);
    }
    atomic_store_explicit(&record->running, running, memory_order_relaxed);
}

void jk_record_count(jk_server *server, long count)
{
    jk_record *record = server->record;
    if (record && atomic_load(&record->running) && atomic_load(&record->cell) == 0) {
        atomic_store(&record->cell, count);
    }
}

void jk_record_text(jk_server *server, const char *text, size_t size)
{
    jk_record *record = server->record;
    if (!record) return;
    unsigned long long written = atomic_load_explicit(&record->text_written, memory_order_relaxed) + size;
    size_t kept = size < JK_TEXT_SIZE ? size : JK_TEXT_SIZE;
    size_t at = (written - kept) % JK_TEXT_SIZE, first = kept < JK_TEXT_SIZE - at ? kept : JK_TEXT_SIZE - at;
    text += size - kept;
    memcpy(record->text + at, text, first);
    memcpy(record->text, text + first, kept - first);
    atomic_store_explicit(&record->text_written, written, memory_order_relaxed);
}

void jk_record_sent(jk_server *server, size_t size)
{
    jk_record *record = server->record;
    if (record) atomic_fetch_add_explicit(&record->text_sent, size, memory_order_relaxed);
}

void jk_server_keep(jk_server *server, const char *text, size_t size)
{
    jk_record *record = server->record;
    if (!record) return;
    unsigned next = (atomic_load(&record->kept_at) + 1) % 2;
    if (size > JK_KEPT_SIZE - 1) size = JK_KEPT_SIZE - 1;
    memcpy(record->kept[next], text, size);
    record->kept[next][size] = '\0';
    atomic_store(&record->kept_at, next);
}

void jk_record_sweep(const jk_server *server)
{
    char folder[4096], path[4096 + 512];
    if (record_path(server, folder, sizeof folder) != 0) return;
    char *slash = strrchr(folder, '/');
    if (!slash) return;
    slash[1] = '\0';
    DIR *names = opendir(folder);
    if (!names) return;
    struct dirent *name;
    while ((name = readdir(names))) {
        size_t length = strlen(name->d_name), suffix = strlen(SUFFIX);
        if (length <= suffix || strcmp(name->d_name + length - suffix, SUFFIX) != 0) continue;
        snprintf(path, sizeof path, "%s%.*s", folder, (int)(length - suffix), name->d_name);
        if (access(path, F_OK) == 0 || errno != ENOENT) continue;
        snprintf(path, sizeof path, "%s%s", folder, name->d_name);
        unlink(path);
    }
    closedir(names);
}
