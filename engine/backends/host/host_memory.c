/* Memory of the host device: all three kinds are plain host memory, between pages that fault
 * (driver/guarded.h).
 *
 * A block is named for other processes by making it a file: its bytes go into a memory file, which is then
 * mapped over the block, at the same address. The name holds the process and the number of the descriptor;
 * whoever may look at the process opens it through /proc. Blocks that are aligned to OWN_PAGES and more own
 * the system's pages that they lie in, so that nothing else of the heap lies in the file; before such a block
 * is freed, memory of its own comes back. */
#include "backends/host/host.h"
#include "base/file.h"
#include "driver/guarded.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_PAGES 4096u
#define HUGE_PAGE (2u << 20)

#define MAGIC "drupeIPC"

/* What a name says; the rest of its bytes is zero. */
struct name {
    char magic[sizeof MAGIC - 1];
    uint32_t version, kind;
    int64_t process;
    int32_t file;
    uint32_t reserved;
    uint64_t device, inode, size;
};

struct shared {
    void *pointer;
    size_t size; /* whole pages */
    int file;
    struct shared *next;
};

/* The blocks that are files. */
static struct {
    pthread_mutex_t lock;
    struct shared *all;
    _Atomic(size_t) count;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t whole_pages(size_t size)
{
    size_t page = drupe_page_size();
    return (size + page - 1) & ~(page - 1);
}

/* --- Guards: without them memory is the C library's -------------------------------------------------------
 */

static void *take_pages(void *user, size_t size)
{
    (void)user;
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void give_pages(void *user, void *memory, size_t size)
{
    (void)user;
    munmap(memory, size);
}

static drupe_guarded guarded = {take_pages, give_pages, NULL, PTHREAD_MUTEX_INITIALIZER, {0}, {0}};

/* --- Blocks --------------------------------------------------------------------------------------------- */

drupe_status drupe_host_mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                  size_t size, size_t align, void **pointer)
{
    (void)context, (void)device, (void)kind;
    *pointer = NULL;
    bool huge = size >= 4 * (size_t)HUGE_PAGE;
    if (huge) align = HUGE_PAGE;
    if (align >= OWN_PAGES && size <= SIZE_MAX - drupe_page_size()) size = whole_pages(size);
    if (align >= OWN_PAGES && align < drupe_page_size()) align = drupe_page_size();
    *pointer = drupe_guarded_alloc(&guarded, size, align);
    if (!*pointer && posix_memalign(pointer, align, size) != 0) {
        *pointer = NULL;
        return drupe_error_set(DRUPE_E_NO_MEMORY, "The system has no %zu bytes of memory.", size);
    }
    /* A wish: first touches of a large array cost more than computing with it. */
    if (huge && madvise(*pointer, size, MADV_HUGEPAGE) != 0) return DRUPE_OK;
    return DRUPE_OK;
}

/* Put private memory where the file was; when that fails the block stays a file, and stays allocated. */
static bool make_private(void *pointer)
{
    pthread_mutex_lock(&files.lock);
    struct shared **link = &files.all;
    while (*link && (*link)->pointer != pointer) link = &(*link)->next;
    struct shared *found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&files.lock);
    if (!found) return true;
    atomic_fetch_sub(&files.count, 1);
    void *own =
        mmap(pointer, found->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    close(found->file);
    free(found);
    return own != MAP_FAILED;
}

void drupe_host_mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer)
{
    (void)context, (void)device, (void)kind;
    if (atomic_load_explicit(&files.count, memory_order_acquire) && !make_private(pointer)) return;
    if (pointer && !drupe_guarded_free(&guarded, pointer)) free(pointer);
}

drupe_status drupe_host_mem_wipe(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                 void *pointer, size_t size)
{
    (void)context, (void)device, (void)kind;
    memset(pointer, 0, size);
    return DRUPE_OK;
}

/* --- Names ---------------------------------------------------------------------------------------------- */

static drupe_status no_file(const char *what)
{
    return drupe_error_set(DRUPE_E_NO_MEMORY, "Memory cannot be made a file: %s: %s.", what, strerror(errno));
}

static drupe_status map_over(int file, void *pointer, size_t size)
{
    if (!drupe_write_all(file, pointer, size)) return no_file("write");
    /* Nobody who opens it can take the pages away under us. */
    if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return no_file("seal");
    void *at = mmap(pointer, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    return at == pointer ? DRUPE_OK : no_file("map");
}

/* Needs the lock. */
static drupe_status share(void *pointer, size_t size, struct shared **result)
{
    for (*result = files.all; *result; *result = (*result)->next) {
        if ((*result)->pointer == pointer) return DRUPE_OK;
    }
    struct shared *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory to remember a shared block.");
    *fresh = (struct shared){.pointer = pointer, .size = whole_pages(size), .next = files.all};
    fresh->file = memfd_create("drupe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    drupe_status status =
        fresh->file < 0 ? no_file("memfd_create") : map_over(fresh->file, pointer, fresh->size);
    if (status != DRUPE_OK) {
        if (fresh->file >= 0) close(fresh->file);
        free(fresh);
        return status;
    }
    files.all = *result = fresh;
    atomic_fetch_add(&files.count, 1);
    return DRUPE_OK;
}

drupe_status drupe_host_mem_export(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                   void *pointer, size_t size, unsigned char handle[DRUPE_IPC_BYTES])
{
    (void)context, (void)device;
    if (size < OWN_PAGES || (uintptr_t)pointer % drupe_page_size()) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Memory of less than a page cannot be shared between "
                                                    "processes: allocate it with an alignment of 4096.");
    }
    struct shared *shared = NULL;
    struct stat about;
    pthread_mutex_lock(&files.lock);
    drupe_status status = share(pointer, size, &shared);
    pthread_mutex_unlock(&files.lock);
    if (status != DRUPE_OK) return status;
    if (fstat(shared->file, &about) != 0) return no_file("stat");
    struct name name = {.version = 1,
                        .kind = (uint32_t)kind,
                        .process = getpid(),
                        .file = shared->file,
                        .device = about.st_dev,
                        .inode = about.st_ino,
                        .size = size};
    memcpy(name.magic, MAGIC, sizeof name.magic);
    memset(handle, 0, DRUPE_IPC_BYTES);
    memcpy(handle, &name, sizeof name);
    return DRUPE_OK;
}

static drupe_status read_name(const unsigned char handle[DRUPE_IPC_BYTES], struct name *name)
{
    memcpy(name, handle, sizeof *name);
    bool good = memcmp(name->magic, MAGIC, sizeof name->magic) == 0 && name->version == 1 &&
                name->kind <= DRUPE_MEM_HOST && name->process > 0 && name->file >= 0 &&
                name->size >= OWN_PAGES && name->size <= SIZE_MAX / 2;
    for (size_t i = sizeof *name; good && i < DRUPE_IPC_BYTES; i++) good = handle[i] == 0;
    if (good) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID, "These bytes are not a handle of host memory.");
}

static drupe_status gone(const struct name *name, const char *why)
{
    return drupe_error_set(DRUPE_E_NOT_FOUND,
                           "The memory behind the handle cannot be reached: process %lld %s.",
                           (long long)name->process, why);
}

drupe_status drupe_host_mem_import(drupe_context *context, drupe_device *device,
                                   const unsigned char handle[DRUPE_IPC_BYTES], drupe_mem_kind *kind,
                                   void **pointer, size_t *size)
{
    (void)context, (void)device;
    struct name name;
    DRUPE_TRY(read_name(handle, &name));
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)name.process, name.file);
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) {
        return gone(&name, errno == EACCES || errno == EPERM ? "belongs to another user"
                                                             : "has ended or has freed it");
    }
    struct stat about;
    bool same = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_dev == name.device &&
                about.st_ino == name.inode && (uint64_t)about.st_size == whole_pages((size_t)name.size);
    /* Sealed, or its owner could take the pages away while a kernel reads them. */
    same = same && fcntl(file, F_GET_SEALS) & F_SEAL_SHRINK;
    void *at = MAP_FAILED;
    if (same) at = mmap(NULL, whole_pages((size_t)name.size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (!same) return gone(&name, "has freed it");
    if (at == MAP_FAILED) return no_file("map");
    *kind = (drupe_mem_kind)name.kind;
    *pointer = at;
    *size = (size_t)name.size;
    return DRUPE_OK;
}

void drupe_host_mem_detach(drupe_context *context, drupe_device *device, void *pointer, size_t size)
{
    (void)context, (void)device;
    munmap(pointer, whole_pages(size));
}
