/* The log file: opened on first use, one write() per line so that threads and forked children do not mix. */
#include "jkernel/wire/wire.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_MOST 1024

static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static int log_fd = -1;

static void log_open(void)
{
    const char *path = getenv("DRUPE_LOG");
    if (path && *path) log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

void jk_log(const char *format, ...)
{
    pthread_once(&log_once, log_open);
    if (log_fd < 0) return;

    char line[LINE_MOST];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    jk_date_format(now, line);
    int used = 0;
    while (line[used]) used++;
    used += snprintf(line + used, sizeof line - (size_t)used, " [%ld] ", (long)getpid());

    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line + used, sizeof line - 1 - (size_t)used, format, arguments);
    va_end(arguments);
    if (wanted < 0) return;
    int room = (int)sizeof line - 2 - used;
    int end = used + (wanted < room ? wanted : room);
    jk_line_clean(line, (size_t)end);
    line[end++] = '\n';
    /* A full disk must not hurt the kernel. */
    ssize_t ignored = write(log_fd, line, (size_t)end);
    (void)ignored;
}
