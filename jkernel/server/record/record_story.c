/* What a kernel tells of the one before it. */
#include "jkernel/server/record/record_room.h"
#include "jkernel/server/usage/usage_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_TOLD 5
#define JK_KEPT_NOTES                                                                                        \
    "Last device operations, as of when the last was over, or up to a quarter of a second before the end:\n"

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
    const char *notes = strstr(old->crash.detail, JK_CRASH_NOTES);
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
    if (atomic_load(&old->crash.shown)) {
        const char *heading, *notes = last_notes(old, &heading);
        const char *end =
            old->crash.call[0] ? old->crash.call : jk_signal_name(atomic_load(&old->crash.signal));
        if (old->crash.call[0]) heading = notes = "";
        size = asprintf(&story, "The previous kernel ended by %s %s, as reported there.\n%s%s", end, where,
                        heading, notes);
    } else if (old->crash.call[0]) {
        size =
            asprintf(&story,
                     "The previous kernel ended with status %d %s: %s.\nThe report could not be shown at the "
                     "time:\n%s",
                     old->crash.status, where, old->crash.summary, old->crash.detail);
    } else {
        const char *detail = old->crash.detail;
        size = asprintf(&story,
                        "The previous kernel crashed %s: %s.\nThe report could not be shown at the time:\n%s",
                        where, old->crash.summary, detail);
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
    bool counted = old->kills != DRUPE_NOT_KNOWN && now->kills != DRUPE_NOT_KNOWN && now->kills > old->kills;
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
char *jk_record_story(const jk_record *old, const jk_record *now)
{
    char where[64];
    if (atomic_load(&old->ending) || strcmp(old->boot, now->boot) != 0) return NULL;
    cell_name(old, where, sizeof where);
    return atomic_load(&old->crash.signal) ? story_of_crash(old, where) : story_of_kill(old, now, where);
}
