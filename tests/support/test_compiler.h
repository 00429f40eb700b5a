/* A backend of one device whose compiler turns text into "compiled <text>", for tests of the disk cache:
 * linked instead of engine/backends. It counts what it is asked for. */
#ifndef TEST_COMPILER_H
#define TEST_COMPILER_H

#include "backends/backend.h"

struct test_compiler {
    _Atomic(int) builds;   /* from text */
    _Atomic(int) loads;    /* from a binary */
    _Atomic(int) binaries; /* asked for */
    const char *driver;    /* its version */
    const char *tools;     /* what decides a build besides; NULL: nothing */
    bool hide;             /* the tools: asking for them fails */
    bool refuse;           /* binaries */
    unsigned build_us;     /* how long a build takes */
    drupe_device_type type;
};
extern struct test_compiler test_compiler;

#endif
