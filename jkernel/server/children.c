/* The processes that this one started, found through /proc. */
#include "jkernel/server/server.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define DEPTH_MOST 16

static void descendants_signal(long process, int signal, pid_t group, int depth);

static void children_of_thread(const char *path, int signal, pid_t group, int depth)
{
    FILE *file = fopen(path, "re");
    if (!file) return;
    long child;
    while (fscanf(file, "%ld", &child) == 1) {
        /* Their children first: without its parent a process would be lost to the search. */
        if (depth < DEPTH_MOST) descendants_signal(child, signal, group, depth + 1);
        if (child > 1 && (group == 0 || getpgid((pid_t)child) == group)) kill((pid_t)child, signal);
    }
    fclose(file);
}

static void descendants_signal(long process, int signal, pid_t group, int depth)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/task", process);
    DIR *threads = opendir(path);
    if (!threads) return;
    struct dirent *thread;
    while ((thread = readdir(threads))) {
        long id = strtol(thread->d_name, NULL, 10);
        if (id <= 0) continue;
        snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", process, id);
        children_of_thread(path, signal, group, depth);
    }
    closedir(threads);
}

void jk_children_signal(int signal, bool same_group)
{
    descendants_signal((long)getpid(), signal, same_group ? getpgrp() : 0, 0);
}
