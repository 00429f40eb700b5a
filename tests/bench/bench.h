/* What the bench's C programs share. */
#ifndef DRUPE_BENCH_H
#define DRUPE_BENCH_H

#include "drupe/drupe.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A bench has nothing to say once something failed. */
static inline void check(drupe_status status)
{
    if (status == DRUPE_OK) return;
    fprintf(stderr, "%s: %s\n", drupe_status_name(status), drupe_error_last()->text);
    exit(1);
}

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
