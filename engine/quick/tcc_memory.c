/* Code is written to a file in memory, through a view that is no program, and then mapped as one: pages that
 * can be written to are never executed, which some systems forbid. */
#include "quick/tcc.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static int new_file(void)
{
#ifdef MFD_EXEC /* systems that have it may want it said */
    int fd = memfd_create("drupe-quick", MFD_CLOEXEC | MFD_EXEC);
    if (fd >= 0 || errno != EINVAL) return fd;
#endif
    return memfd_create("drupe-quick", MFD_CLOEXEC);
}

bool drupe_tcc_memory_open(drupe_tcc_memory *memory, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *memory = (drupe_tcc_memory){.size = (size + page - 1) & ~(page - 1), .fd = new_file()};
    if (memory->fd >= 0 && ftruncate(memory->fd, (off_t)memory->size) == 0) {
        void *start = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
        memory->start = start == MAP_FAILED ? NULL : start;
    }
    return memory->start != NULL;
}

static bool map_again(const drupe_tcc_memory *memory, size_t from, size_t to, int rights)
{
    return from == to || mmap(memory->start + from, to - from, rights, MAP_PRIVATE | MAP_FIXED, memory->fd,
                              (off_t)from) != MAP_FAILED;
}

bool drupe_tcc_memory_seal(drupe_tcc_memory *memory, const char *data)
{
    const size_t code = (size_t)(data - memory->start);
    bool sealed = map_again(memory, 0, code, PROT_READ | PROT_EXEC) &&
                  map_again(memory, code, memory->size, PROT_READ | PROT_WRITE);
    close(memory->fd);
    memory->fd = -1;
    return sealed;
}

void drupe_tcc_memory_close(drupe_tcc_memory *memory)
{
    if (memory->fd >= 0) close(memory->fd);
    if (memory->start) munmap(memory->start, memory->size);
}
