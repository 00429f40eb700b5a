/* Kernels in C on the host device: compiled by the machine's C compiler into a library of this process. */
#ifndef DRUPE_HOST_CODE_H
#define DRUPE_HOST_CODE_H

#include "backends/host/host.h"
#include <stdio.h>

#define DRUPE_HOST_PARAMS   64u
#define DRUPE_HOST_TABLE    "drupe_kernels_2" /* goes up when what follows changes */
#define DRUPE_HOST_MADE_FOR "drupe_made_for"  /* drupe_host_features() of the machine that compiled */

/* What a library has, as ctext.c writes it: ended by an entry without a name. Argument 0 of `run` is the
 * range, the kernel's own follow. */
typedef struct drupe_host_param {
    int pointer, scalar, reads;
    unsigned bytes;
    const char *name, *type;
} drupe_host_param;

typedef struct drupe_host_entry {
    const char *name;
    size_t count;
    const drupe_host_param *params;
    drupe_builtin_fn run;
} drupe_host_entry;

typedef struct drupe_host_range {
    size_t size[3], offset[3];
} drupe_host_range;

/* Lives as long as a program or a task has it. Immutable. */
struct drupe_host_code {
    _Atomic(uint32_t) references;
    void *library;
    const drupe_host_entry *entries;
    drupe_builtin *builtins; /* the same, as tasks know kernels */
    size_t count;
    void *bytes; /* the library's file */
    size_t size;
    drupe_recovery recovery; /* how a thread gets out of it: way, code and code_size */
};

/* imports.c: fill in what its opened library says about that. */
void drupe_host_code_judge(drupe_host_code *code);

/* compiler.c: its path, malloc'ed, *taken* by the caller; NULL: there is none. */
char *drupe_host_compiler_find(void);

/* ctext.c: what the compiler is given for the user's text. BUILD_FAILED, or UNSUPPORTED for OpenCL C. */
drupe_status drupe_host_code_text(const char *text, size_t size, drupe_text *out) DRUPE_MUST_CHECK;

/* Compile, or load what was compiled. `log` as drupe_program_open(). */
drupe_status drupe_host_code_build(const drupe_source *source, char **log,
                                   drupe_host_code **code) DRUPE_MUST_CHECK;
drupe_status drupe_host_code_load(const void *bytes, size_t size, drupe_host_code **code) DRUPE_MUST_CHECK;

#endif
