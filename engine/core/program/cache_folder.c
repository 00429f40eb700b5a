/* Which files of the cache's folder are the cache's own, and when they go.
 *
 * People name a folder that has files of theirs already, so nothing is deleted by an ending alone: only names
 * of exactly the form that this file makes, and of those of entries only what begins as an entry does. The
 * folder gets a CACHEDIR.TAG, which backup programs know. */
#include "core/program/program_room.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TAG       "CACHEDIR.TAG"
#define DIGITS    32u /* of a hash, in the names of entries */
#define SECOND_NS INT64_C(1000000000)
#define STALE_NS  (3600 * SECOND_NS)

static const char tag_text[] =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Programs that Drupe has built. It deletes the oldest when there are too many.\n";

void drupe_cache_name(char name[48], const drupe_span *parts, size_t nparts, const char *ending)
{
    drupe_hash hash = {0, 0};
    for (size_t i = 0; i < nparts; i++) drupe_hash_add(&hash, parts[i].bytes, parts[i].size);
    snprintf(name, 48, "%016" PRIx64 "%016" PRIx64 "%s", hash.a, hash.b, ending);
}

bool drupe_cache_is_entry(const char *name)
{
    const char *rest = name + strspn(name, "0123456789abcdef");
    return strcmp(rest, DRUPE_CACHE_ENTRY) == 0 && rest - name == DIGITS;
}

/* What drupe_file_replace() writes before it has its name: ".new-PROCESS-NUMBER". */
static bool is_unfinished(const char *name)
{
    static const char begin[] = ".new-", digits[] = "0123456789";
    if (strncmp(name, begin, sizeof begin - 1) != 0) return false;
    const char *at = name + sizeof begin - 1;
    const size_t process = strspn(at, digits);
    if (process == 0 || at[process] != '-') return false;
    at += process + 1;
    const size_t number = strspn(at, digits);
    return number > 0 && at[number] == '\0';
}

bool drupe_cache_is_ours(const char *name)
{
    return drupe_cache_is_entry(name) || is_unfinished(name);
}

void drupe_cache_mark(int folder)
{
    const drupe_span part = {tag_text, sizeof tag_text - 1};
    if (faccessat(folder, TAG, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return;
    drupe_status status = drupe_file_replace(folder, TAG, &part, 1);
    (void)status; /* without one the cache serves as well */
}

/* Whether an entry was written by us: names alone may be those of others. When the machine stops, an entry
 * may be left empty, or of zeros. */
static bool is_record(int folder, const char *name)
{
    static const char nothing[sizeof DRUPE_RECORD_MAGIC - 1];
    char begin[sizeof nothing];
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t size = read(fd, begin, sizeof begin);
    close(fd);
    if (size == 0) return true;
    return size == (ssize_t)sizeof begin && (memcmp(begin, DRUPE_RECORD_MAGIC, sizeof begin) == 0 ||
                                             memcmp(begin, nothing, sizeof begin) == 0);
}

drupe_status drupe_cache_make_room(int folder, uint64_t limit, uint64_t *freed, uint64_t *left)
{
    drupe_file_entry *entries;
    size_t nentries;
    uint64_t all = 0, gone = 0;
    DRUPE_TRY(drupe_folder_list(folder, &entries, &nentries));
    int64_t stale = (int64_t)time(NULL) * SECOND_NS - STALE_NS;
    for (size_t i = 0; i < nentries; i++) {
        bool unfinished = is_unfinished(entries[i].name) && (entries[i].used < stale || !limit);
        if (unfinished && unlinkat(folder, entries[i].name, 0) == 0) gone += entries[i].bytes;
        if (!drupe_cache_is_entry(entries[i].name) || !is_record(folder, entries[i].name))
            entries[i].name[0] = '\0'; /* somebody else's: it takes no room of ours */
        else
            all += entries[i].bytes;
    }
    uint64_t most = all > limit ? limit - limit / 8 : limit;
    for (size_t i = 0; i < nentries && (all > most || !limit); i++) { /* empty ones, too */
        if (!*entries[i].name || unlinkat(folder, entries[i].name, 0) != 0) continue;
        all -= entries[i].bytes;
        gone += entries[i].bytes;
    }
    drupe_folder_list_free(entries, nentries);
    if (freed) *freed = gone;
    if (left) *left = all;
    return DRUPE_OK;
}
