/* Two backends without hardware, "host" and "opencl", for tests of core's rooms: linked instead of
 * engine/backends.
 *
 * A test says before the first use which devices there are. Work is over when the test says so: every
 * submission with an event stays SUBMITTED until test_script_finish(). Memory is the process's own; copies
 * and fills are not done. Threads: those of core may call the backends, the functions below are the test's.
 */
#ifndef TEST_SCRIPT_H
#define TEST_SCRIPT_H

#include "backends/services.h"

#define TEST_SCRIPT_DEVICES 4u

struct test_device {
    drupe_device_type type;
    uint64_t units;      /* compute units; 0 or 1: it cannot be divided */
    uint64_t memory;     /* bytes */
    uint64_t most;       /* bytes of one allocation; 0: it does not tell */
    uint64_t free;       /* bytes; 0: it does not tell */
    uint64_t kinds;      /* DRUPE_FLAG(drupe_partition_kind); 0: equally and by counts */
    size_t numa;         /* parts along each of its domains */
    uint64_t domains;    /* DRUPE_FLAG(drupe_domain); 0: NUMA, where that has parts */
    uint64_t most_parts; /* 0: its units */
    drupe_status open;   /* what opening it gives */
    const char *uuid;    /* NULL: it does not tell */
};

struct test_script {
    struct {
        uint32_t count;
        struct test_device devices[TEST_SCRIPT_DEVICES];
        drupe_status load; /* what opening the vendor's library gives */
        int loads;
    } backends[2];           /* host, opencl */
    drupe_status layer;      /* what applying the layers gives */
    drupe_status split;      /* what device_split() gives */
    drupe_status fault;      /* what device_fault() answers */
    _Atomic(int) unfinished; /* events that are not over */
};
extern struct test_script test_script;

/* The tables of the two, as core calls them: a test may put functions of its own there. */
extern drupe_backend test_script_tables[2];

/* The tables as they were, and nothing but one processor with 8 units behind each backend. */
void test_script_reset(void);
/* The work of the event is over: complete, or failed with "The script says no.". */
void test_script_finish(drupe_event *event, bool good);

#endif
