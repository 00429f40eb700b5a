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
    bool quiet;            /* builds have no messages */
    const char *names;   /* of each program's kernels, which have an argument each; NULL: they are not told */
    drupe_status kernel; /* what opening one gives */
    drupe_status binary; /* what asking for a binary gives */
    void (*asked)(void); /* called before that is answered, */
    void (*refused)(void); /* before a binary is refused, */
    void (*closed)(void);  /* and when a program has been closed */
    unsigned build_us;     /* how long a build takes */
    drupe_device_type type;
};
extern struct test_compiler test_compiler;

#endif
