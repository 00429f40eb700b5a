/* See scratch.h. */
#include "math/scratch.h"
#include <stdlib.h>
#include <sys/mman.h>

#define SCRATCH_LARGE ((size_t)4 << 20)

void *drupe_scratch_get(size_t bytes)
{
    if (bytes < SCRATCH_LARGE) return malloc(bytes ? bytes : 1);
    void *scratch = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scratch == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(scratch, bytes, MADV_HUGEPAGE);
#endif
    return scratch;
}

void drupe_scratch_release(void *scratch, size_t bytes)
{
    if (bytes < SCRATCH_LARGE)
        free(scratch);
    else if (scratch)
        munmap(scratch, bytes);
}
