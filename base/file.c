/* Everything goes through descriptors of folders that were checked once open, so that a name exchanged in
 * between changes nothing. A file is read, never mapped: a mapped file that somebody cuts off is a SIGBUS. */
#include "base/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static drupe_status failed(const char *what, const char *name)
{
    int code = errno;
    return drupe_error_set(code == ENOENT ? DRUPE_E_NOT_FOUND : DRUPE_E_UNAVAILABLE, "Cannot %s %s: %s.",
                           what, name, strerror(code));
}

/* --- Folders -------------------------------------------------------------------------------------------- */

drupe_status drupe_folders_make(const char *path)
{
    char *copy = strdup(path);
    if (!copy) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the name of a folder.");
    int result = 0;
    for (char *slash = strchr(copy + 1, '/'); slash && result == 0; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST) result = -1;
        *slash = '/';
    }
    if (result == 0 && mkdir(copy, 0700) != 0 && errno != EEXIST) result = -1;
    free(copy);
    return result == 0 ? DRUPE_OK : failed("make the folder", path);
}

drupe_status drupe_folder_open(const char *path, bool make, int *folder)
{
    struct stat about;
    *folder = -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && make) {
        DRUPE_TRY(drupe_folders_make(path));
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0) return failed("open the folder", path);
    drupe_status status = DRUPE_OK;
    if (fstat(fd, &about) != 0) {
        status = failed("look at the folder", path);
    } else if (about.st_uid != geteuid()) {
        status = drupe_error_set(DRUPE_E_INVALID, "The folder %s belongs to another user.", path);
    } else if (about.st_mode & (S_IWGRP | S_IWOTH)) {
        status = drupe_error_set(
            DRUPE_E_INVALID, "The folder %s may be written to by others: chmod go-w makes it private.", path);
    }
    if (status == DRUPE_OK && about.st_mode & (S_IRWXG | S_IRWXO)) (void)fchmod(fd, 0700);
    if (status == DRUPE_OK)
        *folder = fd;
    else
        close(fd);
    return status;
}

static int by_use(const void *a, const void *b)
{
    const drupe_file_entry *x = a, *y = b;
    if (x->used != y->used) return x->used < y->used ? -1 : 1;
    return strcmp(x->name, y->name);
}

static drupe_status list_add(drupe_file_entry **entries, size_t *count, const char *name,
                             const struct stat *about)
{
    if ((*count & (*count - 1)) == 0) {
        drupe_file_entry *larger = realloc(*entries, (*count ? *count * 2 : 1) * sizeof **entries);
        if (larger) *entries = larger;
        if (!larger) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of files.");
    }
    char *copy = strdup(name);
    if (!copy) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of files.");
    (*entries)[(*count)++] = (drupe_file_entry){
        copy, (uint64_t)about->st_size, (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec};
    return DRUPE_OK;
}

drupe_status drupe_folder_list(int folder, drupe_file_entry **entries, size_t *count)
{
    *entries = NULL;
    *count = 0;
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        if (fd >= 0) close(fd);
        return failed("list", "a folder");
    }
    drupe_status status = DRUPE_OK;
    struct stat about;
    for (const struct dirent *one; status == DRUPE_OK && (one = readdir(stream));) {
        if (fstatat(folder, one->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode))
            continue;
        status = list_add(entries, count, one->d_name, &about);
    }
    closedir(stream);
    if (status != DRUPE_OK) {
        drupe_folder_list_free(*entries, *count);
        *entries = NULL;
        *count = 0;
    }
    if (*count) qsort(*entries, *count, sizeof **entries, by_use);
    return status;
}

void drupe_folder_list_free(drupe_file_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) free(entries[i].name);
    free(entries);
}

/* --- Files ---------------------------------------------------------------------------------------------- */

long drupe_read_most(int fd, void *bytes, size_t most)
{
    size_t have = 0;
    while (have < most) {
        ssize_t more = read(fd, (char *)bytes + have, most - have);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return -1;
        if (more == 0) break;
        have += (size_t)more;
    }
    return (long)have;
}

static drupe_status read_all(int fd, const char *name, size_t size, void **bytes)
{
    char *data = malloc(size ? size : 1);
    if (!data) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the %zu bytes of %s.", size, name);
    long have = drupe_read_most(fd, data, size);
    if (have == (long)size) {
        *bytes = data;
        return DRUPE_OK;
    }
    if (have >= 0) errno = EIO; /* cut off while we read */
    free(data);
    return failed("read", name);
}

drupe_status drupe_file_read(int folder, const char *name, size_t limit, bool used, void **bytes,
                             size_t *size)
{
    struct stat about;
    *bytes = NULL;
    *size = 0;
    /* O_NONBLOCK: a FIFO of that name must not hold us up. */
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return failed("open", name);
    drupe_status status = DRUPE_OK;
    if (fstat(fd, &about) != 0) {
        status = failed("look at", name);
    } else if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || about.st_mode & (S_IWGRP | S_IWOTH)) {
        status = drupe_error_set(DRUPE_E_INVALID, "%s is not a private file of this user.", name);
    } else if ((uint64_t)about.st_size > limit) {
        status = drupe_error_set(DRUPE_E_INVALID, "%s has more than %zu bytes.", name, limit);
    } else {
        status = read_all(fd, name, (size_t)about.st_size, bytes);
    }
    if (status == DRUPE_OK) *size = (size_t)about.st_size;
    if (status == DRUPE_OK && used) (void)futimens(fd, NULL);
    close(fd);
    return status;
}

bool drupe_write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    for (size_t left = size; left > 0;) {
        ssize_t written = write(fd, at, left);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        at += written;
        left -= (size_t)written;
    }
    return true;
}

drupe_status drupe_file_replace(int folder, const char *name, const drupe_span *parts, size_t nparts)
{
    static _Atomic(unsigned) serial;
    char temporary[64];
    snprintf(temporary, sizeof temporary, ".new-%ld-%u", (long)getpid(), serial++);
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return failed("make the file", name);
    bool good = true;
    for (size_t i = 0; i < nparts && good; i++) good = drupe_write_all(fd, parts[i].bytes, parts[i].size);
    /* A quota may only be noticed now. */
    int code = errno;
    if (close(fd) != 0 && good) good = false, code = errno;
    if (good && renameat(folder, temporary, folder, name) == 0) return DRUPE_OK;
    if (good) code = errno;
    (void)unlinkat(folder, temporary, 0);
    errno = code;
    return failed("write", name);
}
