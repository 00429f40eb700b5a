/* Files that hold a session's key. The mode is checked on the open descriptor, before anything is read. */
#include "base/file.h"
#include "jkernel/wire/config.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST (1 << 20)

/* The variable by which Jupyter's own programs are told that a file system knows no modes. */
static bool modes_ignored(void)
{
    const char *value = getenv("JUPYTER_ALLOW_INSECURE_WRITES");
    return value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0);
}

static int file_check(int fd, const char *path, size_t *size)
{
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0)
        return jk_fail("cannot read the connection file %s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode) || about.st_size > FILE_MOST)
        return jk_fail("%s is not a connection file: it must be a regular file below 1 MiB", path);
    if (about.st_mode & (S_IRWXG | S_IRWXO) && !modes_ignored())
        return jk_fail(
            "others may read or write the connection file %s, which holds the session's key; run: chmod "
            "600 %s (or, where the file system keeps no modes, set JUPYTER_ALLOW_INSECURE_WRITES=1)",
            path, path);
    *size = (size_t)about.st_size;
    return 0;
}

int jk_file_load(const char *path, char **text, size_t *size)
{
    size_t expected = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int result = file_check(fd, path, &expected);
    char *space = result == 0 ? malloc(expected + 1) : NULL;
    long got = space ? drupe_read_most(fd, space, expected) : -1;
    if (result == 0 && got < 0) {
        jk_fail("cannot read the connection file %s: %s", path, space ? strerror(errno) : "no memory");
        result = -1;
    }
    if (fd >= 0) close(fd);
    if (result != 0) {
        jk_file_forget(space, space ? expected : 0);
        return -1;
    }
    space[got] = '\0';
    *text = space;
    *size = (size_t)got;
    return 0;
}

void jk_file_forget(char *text, size_t size)
{
    if (text) OPENSSL_cleanse(text, size);
    free(text);
}

int jk_file_store(const char *path, const char *text, size_t size)
{
    char *beside;
    if (asprintf(&beside, "%s.XXXXXX", path) < 0) return -1;
    int fd = mkostemp(beside, O_CLOEXEC); /* creates with mode 0600 */
    int result = fd >= 0 && drupe_write_all(fd, text, size) ? fsync(fd) : -1;
    if (fd >= 0 && close(fd) != 0) result = -1;
    if (result == 0) result = rename(beside, path);
    int reason = errno;
    if (result != 0 && fd >= 0) unlink(beside);
    free(beside);
    errno = reason;
    return result == 0 ? 0 : -1;
}
