/* The processes that this one started, found through /proc. */
#include "jkernel/server/process/process_room.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define KILL_PATIENCE                                                                                        \
    (200 * JK_MILLISECOND) /* a process in the system, as on a dead network drive, does not end */

void jk_descendants(jk_processes *found)
{
    found->count = 0;
    jk_children_add((long)getpid(), found);
    for (int i = 0; i < found->count; i++) jk_children_add(found->ids[i], found);
}

void jk_processes_signal(const jk_processes *processes, int signal, bool same_group)
{
    pid_t group = same_group ? getpgrp() : 0;
    /* Children before their parents, which might start others in their place. */
    for (int i = processes->count; i-- > 0;) {
        pid_t process = (pid_t)processes->ids[i];
        if (process > 1 && (group == 0 || getpgid(process) == group)) kill(process, signal);
    }
}

void jk_children_signal(int signal, bool same_group)
{
    jk_processes found;
    jk_descendants(&found);
    jk_processes_signal(&found, signal, same_group);
}

/* --- At a shutdown -----------------------------------------------------------------------------------------
 */

void jk_children_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* One that has ended and is not waited for yet does not live. */
static bool process_lives(long process)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    if (drupe_small_read(path, text, sizeof text) <= 0) return false;
    const char *rest = strrchr(text, ')');
    return rest && rest[1] && rest[2] != 'Z' && rest[2] != 'X';
}

static bool any_lives(jk_processes *found)
{
    jk_descendants(found);
    for (int i = 0; i < found->count; i++) {
        if (process_lives(found->ids[i])) return true;
    }
    return false;
}

void jk_children_end(int64_t deadline)
{
    const struct timespec pause = {.tv_nsec = 2 * JK_MILLISECOND};
    jk_processes found;
    while (any_lives(&found) && jk_clock() < deadline) nanosleep(&pause, NULL);
    /* Whom a killed one leaves behind becomes ours, and is killed in the next round. */
    for (int64_t until = jk_clock() + KILL_PATIENCE; any_lives(&found) && jk_clock() < until;) {
        jk_processes_signal(&found, SIGKILL, false);
        nanosleep(&pause, NULL);
    }
}
