/* Programs and kernels; building them and the disk cache are in core/cache.h. */
#ifndef DRUPE_CORE_KERNEL_H
#define DRUPE_CORE_KERNEL_H

#include "backends/backend.h"
#include "core/brief.h"
#include <pthread.h>

/* --- program.c ------------------------------------------------------------------------------------------ */

struct drupe_program {
    drupe_object object;
    drupe_context *context; /* retained */
    drupe_device *device;   /* retained */
    bool opened;
    bool prints; /* its text calls printf() */
    char *names;
    void *args; /* of a binary: see args.c */
    size_t args_size;
};

struct drupe_kernel {
    drupe_object object;
    drupe_program *program; /* retained */
    pthread_mutex_t lock;
    _Atomic(uint32_t) sole; /* drupe_kernel_enter() */
    bool opened;
    bool prints; /* the program's */
    uint32_t nargs;
    uint64_t group_size, local_size; /* most work-items of a group; local memory used by the kernel itself */
    drupe_arg_info *args;            /* nargs of them, or NULL where the backend cannot tell */
    drupe_form *forms;               /* the same in short, for every launch */
    bool worded;                     /* drupe_kernel_words() */
    uint64_t writes;                 /* which arguments are pointers that something may be written through */
    uint32_t trace_name;             /* drupe_trace_name() */
    char *name;
};

/* args.c: bytes of one element of an argument's type, as declared; 0 if that is unknown. */
size_t drupe_args_element(const drupe_arg_info *info);

#endif
