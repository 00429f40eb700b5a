/* The processes that this one started, found through /proc. */
#include "jkernel/server/server.h"

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

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
