/* Small files of the system: /proc, control groups, /sys. */
#include "base/file.h"
#include "base/machine.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long drupe_small_read(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    /* What a device or a group that ends meanwhile did not tell is missing at the end. */
    long got = drupe_read_most(fd, text, size - 1);
    close(fd);
    if (got < 0) got = 0;
    text[got] = '\0';
    return got;
}

bool drupe_read_line(const char *path, char *line, size_t size)
{
    if (drupe_small_read(path, line, size) <= 0) return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static char root[DRUPE_GROUP_PATH / 2] = "/proc";

void drupe_proc_choose(const char *folder)
{
    snprintf(root, sizeof root, "%s", folder && strlen(folder) < sizeof root ? folder : "/proc");
}

long drupe_proc_read(const char *name, char *text, size_t size)
{
    char path[DRUPE_GROUP_PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return drupe_small_read(path, text, size);
}

uint64_t drupe_number_after(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line && *line;) {
        if (strncmp(line, key, length) == 0) {
            const char *digits = line + length + strspn(line + length, " \t");
            if (*digits < '0' || *digits > '9') return DRUPE_NOT_KNOWN;
            return strtoull(digits, NULL, 10);
        }
        line = strchr(line, '\n');
        if (line) line++;
    }
    return DRUPE_NOT_KNOWN;
}
