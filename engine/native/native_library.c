/* Libraries: how they come and go.
 *
 * The linker takes a library that is open under the same path for the same one, and does not look whether the
 * file is another by now. So the table says what the file of each open path was. A file that has changed is
 * opened under a path of its own: through its descriptor, or, where it was written over in place, from a copy
 * in memory. */
#include "base/file.h"
#include "native/native_room.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_mark {
    uint64_t device, inode, size, seconds, nanoseconds;
} file_mark;

/* What was opened under a path of the file system, while the linker has it. */
typedef struct opened {
    char *path;
    file_mark mark;
    struct opened *next;
} opened;

static struct {
    pthread_mutex_t lock;
    opened *first;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static file_mark mark_of(const struct stat *found)
{
    return (file_mark){(uint64_t)found->st_dev, (uint64_t)found->st_ino, (uint64_t)found->st_size,
                       (uint64_t)found->st_mtim.tv_sec, (uint64_t)found->st_mtim.tv_nsec};
}

static bool same_mark(const file_mark *a, const file_mark *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool same_file(const file_mark *a, const file_mark *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static opened *table_find(const char *path)
{
    opened *one = table.first;
    while (one && strcmp(one->path, path) != 0) one = one->next;
    return one;
}

/* The lock is held. Without memory the next opening of the path takes the linker's word. */
static void table_note(const char *path, const file_mark *mark)
{
    opened *one = table_find(path);
    if (!one && (one = calloc(1, sizeof *one)) != NULL) {
        one->path = strdup(path);
        if (!one->path) {
            free(one);
            return;
        }
        one->next = table.first;
        table.first = one;
    }
    if (one) one->mark = *mark;
}

/* --- Closing ------------------------------------------------------------------------------------------ */

/* Libraries whose last reference went with a call that was over. Whoever dropped that may hold locks of his
 * own, and a library's destructors may take long and want these: the next one who calls for libraries closes
 * them. */
static struct {
    pthread_mutex_t lock;
    drupe_native_library *first;
} leaving = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What to give to dlclose(), if anything. A parked thread is never seen in its code again, but the debugger
 * and other threads may look at its stack. */
static void *take_handle(drupe_native_library *library)
{
    void *handle = library->handle;
    library->handle = NULL;
    return atomic_load(&library->inside) ? NULL : handle;
}

/* Its destructors run: no lock is held. */
static void destroy(drupe_native_library *library)
{
    void *handle = take_handle(library);
    if (handle) dlclose(handle);
    pthread_mutex_destroy(&library->lock);
    free(library->path);
    free(library);
}

static void sweep(void)
{
    pthread_mutex_lock(&leaving.lock);
    drupe_native_library *library = leaving.first;
    leaving.first = NULL;
    pthread_mutex_unlock(&leaving.lock);
    while (library) {
        drupe_native_library *next = library->next;
        destroy(library);
        library = next;
    }
}

/* --- Opening ------------------------------------------------------------------------------------------- */

static void *open_path(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool copy_bytes(int from, int to)
{
    char bytes[1 << 16];
    for (ssize_t got; (got = read(from, bytes, sizeof bytes)) != 0;) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 || !drupe_write_all(to, bytes, (size_t)got)) return false;
    }
    return true;
}

static void *open_copy(int fd)
{
    int copy = memfd_create("drupe-native", MFD_CLOEXEC);
    void *handle = copy >= 0 && copy_bytes(fd, copy) ? drupe_dl_descriptor(copy) : NULL;
    if (copy >= 0) close(copy);
    return handle;
}

/* A file that may have changed since it was opened under this path. The lock is held. */
static void *open_file(const char *path)
{
    void *there = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    const opened *before = there ? table_find(path) : NULL;
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool known = fd >= 0 && fstat(fd, &found) == 0;
    const file_mark mark = known ? mark_of(&found) : (file_mark){0};
    void *handle = there;
    if (!there || (known && before && !same_mark(&mark, &before->mark))) {
        if (!there)
            handle = open_path(path);
        else
            handle = same_file(&mark, &before->mark) ? open_copy(fd) : drupe_dl_descriptor(fd);
        if (handle && known && !there) table_note(path, &mark);
        if (there) dlclose(there);
    }
    if (fd >= 0) close(fd);
    return handle;
}

static void *open_any(const char *path)
{
    if (!strchr(path, '/')) return open_path(path);
    char *real = realpath(path, NULL);
    pthread_mutex_lock(&table.lock);
    void *handle = open_file(real ? real : path);
    pthread_mutex_unlock(&table.lock);
    free(real);
    return handle;
}

drupe_status drupe_native_open(const char *path, drupe_native_library **library)
{
    *library = NULL;
    if (!path || !*path) return drupe_error_set(DRUPE_E_INVALID, "A library needs a path or a name.");
    sweep();
    drupe_native_library *fresh = aligned_alloc(_Alignof(drupe_native_library), sizeof *fresh);
    if (fresh) memset(fresh, 0, sizeof *fresh);
    if (fresh) fresh->path = strdup(path);
    if (!fresh || !fresh->path) {
        free(fresh);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the library %s.", path);
    }
    atomic_init(&fresh->references, 1);
    pthread_mutex_init(&fresh->lock, NULL);
    fresh->handle = open_any(path);
    if (fresh->handle) {
        *library = fresh;
        return DRUPE_OK;
    }
    const char *why = dlerror();
    drupe_error_set(DRUPE_E_NOT_FOUND, "The library %s cannot be opened: %s.", path,
                    why ? why : "its file cannot be read");
    drupe_native_release(fresh);
    return DRUPE_E_NOT_FOUND;
}

/* --- The end ------------------------------------------------------------------------------------------- */

drupe_native_library *drupe_native_retain(drupe_native_library *library)
{
    if (library) atomic_fetch_add(&library->references, 1);
    return library;
}

void drupe_native_release(drupe_native_library *library)
{
    if (library && atomic_fetch_sub(&library->references, 1) == 1) destroy(library);
    sweep();
}

void drupe_native_leave(drupe_native_library *library)
{
    if (atomic_fetch_sub(&library->references, 1) != 1) return;
    pthread_mutex_lock(&leaving.lock);
    library->next = leaving.first;
    leaving.first = library;
    pthread_mutex_unlock(&leaving.lock);
}

size_t drupe_native_calls(const drupe_native_library *library)
{
    return atomic_load(&((drupe_native_library *)library)->calls);
}

drupe_status drupe_native_close(drupe_native_library *library)
{
    pthread_mutex_lock(&library->lock);
    const bool open = library->handle != NULL;
    atomic_store(&library->closed, true);
    const size_t calls = atomic_load(&library->calls);
    void *handle = calls ? NULL : take_handle(library);
    pthread_mutex_unlock(&library->lock);
    if (handle) dlclose(handle);
    sweep();
    if (!open || !calls) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_BUSY,
                           "%zu call%s of functions of %s %s in flight: wait for them, and close it then.",
                           calls, calls == 1 ? "" : "s", library->path, calls == 1 ? "is" : "are");
}

/* --- Calls --------------------------------------------------------------------------------------------- */

/* Who closes says so first and counts then; a call that is counted sees that, or is seen. */
drupe_status drupe_native_begin(drupe_native_function *function)
{
    drupe_native_library *library = function->library;
    atomic_fetch_add(&library->calls, 1);
    if (!atomic_load(&library->closed)) return DRUPE_OK;
    drupe_native_end(library);
    return drupe_error_set(DRUPE_E_INVALID, "'%s' was unloaded with its library %s: load it again.",
                           function->name, library->path);
}

void drupe_native_end(drupe_native_library *library)
{
    atomic_fetch_sub(&library->calls, 1);
}
