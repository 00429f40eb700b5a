/* The record of a kernel's life, and what its successor makes of it. */
#include "jkernel/server/record/record_room.h"
#include "jkernel/server/usage/usage_room.h"

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
#define MAGIC  "drupe/2"

static int record_path(const jk_server *server, char *path, size_t size)
{
    int length = snprintf(path, size, "%s" SUFFIX, server->config->path ? server->config->path : "");
    return server->config->path && length > 0 && (size_t)length < size ? 0 : -1;
}

static void record_begin(jk_record *record)
{
    drupe_groups group;
    drupe_groups_find(&group);
    memset(record, 0, sizeof *record);
    memcpy(record->magic, MAGIC, sizeof MAGIC);
    record->size = sizeof *record;
    drupe_proc_read("sys/kernel/random/boot_id", record->boot, sizeof record->boot);
    memccpy(record->group, group.memory.path, 0, sizeof record->group - 1);
    record->kills = jk_cgroup_kills(&group.memory);
    record->limit = drupe_group_memory_limit(&group.memory, NULL);
}

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
    jk_crash_report *crash = &old->crash;
    crash->call[sizeof crash->call - 1] = '\0';
    crash->summary[sizeof crash->summary - 1] = crash->detail[sizeof crash->detail - 1] = '\0';
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
    jk_record *mapped = NULL;
    if (record_path(server, path, sizeof path) == 0) {
        if (old && record_read(path, old)) atomic_store(&server->keeper->notice, jk_record_story(old, &now));
        mapped = record_map(path);
        if (!mapped) jk_log("no record of this kernel's life in %s: %s", path, strerror(errno));
    }
    free(old);
    *(mapped ? mapped : &server->keeper->spare) = now;
    atomic_store(&server->keeper->mapped, mapped);
}

void jk_record_close(jk_server *server)
{
    char path[4096];
    free(atomic_exchange(&server->keeper->notice, NULL));
    if (server->keeper->mapped && record_path(server, path, sizeof path) == 0) unlink(path);
}

void jk_record_cell(jk_server *server, bool running)
{
    jk_record *record = jk_record_of(server);
    /* In this order: either the count is here already, or jk_record_count() sees that a cell runs. */
    if (!atomic_exchange(&record->running, running) && running) {
        atomic_store(&record->cell, atomic_load(&server->keeper->count));
    }
}

void jk_record_count(jk_server *server, long count)
{
    jk_record *record = jk_record_of(server);
    atomic_store(&server->keeper->count, count);
    if (atomic_load(&record->running) && atomic_load(&record->cell) == 0) {
        atomic_store(&record->cell, count);
    }
}

void jk_record_ending(jk_server *server)
{
    jk_record *record = jk_record_of(server);
    atomic_store(&record->ending, true);
}

bool jk_record_has_notice(const jk_server *server)
{
    return atomic_load_explicit(&server->keeper->notice, memory_order_relaxed) != NULL;
}

char *jk_record_take_notice(jk_server *server)
{
    return atomic_exchange(&server->keeper->notice, NULL);
}

void jk_record_text(jk_server *server, const char *text, size_t size)
{
    jk_record *record = jk_record_of(server);
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
    jk_record *record = jk_record_of(server);
    atomic_fetch_add_explicit(&record->text_sent, size, memory_order_relaxed);
}

void jk_server_keep(jk_server *server, const char *text, size_t size)
{
    jk_record *record = jk_record_of(server);
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
