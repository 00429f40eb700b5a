/* Programs and kernels.
 *
 * Threads: all functions may be called from any thread; a build may take seconds and blocks only its caller.
 */
#ifndef DRUPE_PROGRAM_H
#define DRUPE_PROGRAM_H

#include "drupe/submit.h"

typedef struct drupe_program drupe_program;

/* Languages a program may be written in; the values are bits of DRUPE_INFO_LANGUAGES. */
typedef enum drupe_language {
    DRUPE_LANG_BUILTIN = 1,  /* no text: kernels precompiled into the engine (`host`) */
    DRUPE_LANG_OPENCL_C = 2, /* OpenCL C text */
    DRUPE_LANG_SPIRV = 4,    /* a module for OpenCL; checked before any driver sees it */
    DRUPE_LANG_BINARY = 8,   /* what drupe_program_binary() gave, for the same device and driver */
    /* C text with functions `kernel void name(float *x, int n)`, which run once per work-item, with
     * get_global_id(d), get_global_size(d) and get_global_offset(d) as in OpenCL C: `host`, where the machine
     * has a C compiler (DRUPE_CC, else cc, gcc or clang). A `char` has a sign, on every processor. With the
     * option -drupe-groups=X,Y,Z (Y and Z may be left out) work-items run in groups of this size, with
     * get_local_id(d) and the like, barrier() and `local` memory; `local` parameters take DRUPE_ARG_LOCAL.
     * With -drupe-table the text has functions over ranges of work-items and a table of them
     * (backends/host/code.h). */
    DRUPE_LANG_C = 16
} drupe_language;

/* A value for a specialisation constant of a SPIR-V module. `size` is that of the constant's type. */
typedef struct drupe_spec_value {
    uint32_t id;
    size_t size;
    const void *value; /* borrowed */
} drupe_spec_value;

/* Bits of drupe_source.flags. */
#define DRUPE_SOURCE_UNCACHED 1u /* neither look into the disk cache nor add to it */
/* Nobody waits for it: it is not shown, it gives way to other threads, and drupe_builds_end() does not wait.
 */
#define DRUPE_SOURCE_BACKGROUND 2u
#define DRUPE_SOURCE_STORED     4u /* from the disk cache or not at all: DRUPE_E_NOT_FOUND */

typedef struct drupe_source {
    drupe_language language;
    uint32_t flags;
    const void *bytes; /* borrowed; text need not be NUL-ended; NULL for BUILTIN */
    size_t size;
    /* Compiler options, such as "-DN=5"; NULL = none. For BUILTIN "inline": small launches may run on the
     * submitting thread, which a kernel with wrong arguments would bring down. */
    const char *options;
    const drupe_spec_value *values; /* borrowed; SPIR-V only; the others keep their defaults */
    size_t nvalues;
} drupe_source;

/* Build a program for one device of a context, or take it from the disk cache (cache.h). Retained. When `log`
 * is not NULL it receives the compiler's messages as malloc'ed text, *taken* by the caller (free()), or NULL
 * if there are none, on success and on failure; on DRUPE_E_BUILD_FAILED the error's text holds its first
 * lines. A language the device does not take is DRUPE_E_UNSUPPORTED, and the text names a device that does.
 */
DRUPE_API drupe_status drupe_program_open(drupe_context *context, drupe_device *device,
                                          const drupe_source *source, char **log,
                                          drupe_program **program) DRUPE_MUST_CHECK;
/* The same on a thread of the engine. The thread that begins a build waits for it, and either takes what came
 * of it or leaves: then a build in a driver goes on by itself, for the disk cache, and one by a process is
 * stopped. In between a SIGINT for this thread reaches its handler while it waits. `source` is copied, the
 * build is *taken* by the last two. */
typedef struct drupe_build drupe_build;
DRUPE_API drupe_status drupe_build_begin(drupe_context *context, drupe_device *device,
                                         const drupe_source *source, drupe_build **build) DRUPE_MUST_CHECK;
/* Whether it is over, found out in at most so long. */
DRUPE_API bool drupe_build_wait(drupe_build *build, uint64_t timeout_ns);
/* Wait to the end. Results and errors are drupe_program_open()'s. */
DRUPE_API drupe_status drupe_build_take(drupe_build *build, char **log,
                                        drupe_program **program) DRUPE_MUST_CHECK;
DRUPE_API void drupe_build_leave(drupe_build *build);
/* How many go on, waited for or not. */
DRUPE_API uint32_t drupe_builds(void);
/* The process is about to exit: stop what can be stopped, and wait so long for the rest. If one still goes on
 * when exit() is called, the process ends there, without the ends of the drivers that it works in. */
DRUPE_API void drupe_builds_end(uint64_t timeout_ns);

DRUPE_API drupe_program *drupe_program_retain(drupe_program *program);        /* NULL-safe */
DRUPE_API void drupe_program_release(drupe_program *program);                 /* NULL-safe */
DRUPE_API drupe_context *drupe_program_context(const drupe_program *program); /* borrowed */
DRUPE_API drupe_device *drupe_program_device(const drupe_program *program);   /* borrowed */
/* The names of its kernels separated by ';', borrowed from the program; "" where the backend cannot tell. */
DRUPE_API const char *drupe_program_kernel_names(const drupe_program *program);

/* The built program as malloc'ed bytes, *taken* by the caller (free()), to be given back as
 * DRUPE_LANG_BINARY. They carry a checksum and what they were built for: a damaged binary, or one for another
 * device, driver or version of the engine, is DRUPE_E_INVALID there and reaches no driver. Some drivers
 * compile again for this, which may take seconds. DRUPE_E_UNSUPPORTED where the backend has no binaries. */
DRUPE_API drupe_status drupe_program_binary(drupe_program *program, void **bytes,
                                            size_t *size) DRUPE_MUST_CHECK;

/* --- SPIR-V ----------------------------------------------------------------------------------------------
 */

typedef struct drupe_spec_constant {
    uint32_t id;      /* of the decoration SpecId */
    uint32_t bytes;   /* of a value: 1 for a bool */
    char type;        /* 'b' bool, 'i' integer, 'f' floating point */
    uint8_t value[8]; /* its default, `bytes` of them */
    char name[48];    /* "" if the module does not tell */
} drupe_spec_constant;

/* The scalar specialisation constants of a module, in the order of the module: malloc'ed, *taken* by the
 * caller (free()); NULL if there are none. Checks that the bytes are a whole module for OpenCL: header,
 * instructions, their order, every id defined once and none used that is not. DRUPE_E_INVALID says what is
 * wrong and where. The bytes may lie at any address. */
DRUPE_API drupe_status drupe_spirv_constants(const void *bytes, size_t size, drupe_spec_constant **constants,
                                             size_t *count) DRUPE_MUST_CHECK;

/* --- Kernels ---------------------------------------------------------------------------------------------
 */

/* A kernel of a program. Retained. DRUPE_E_NOT_FOUND lists the names there are. */
DRUPE_API drupe_status drupe_kernel_open(drupe_program *program, const char *name,
                                         drupe_kernel **kernel) DRUPE_MUST_CHECK;
DRUPE_API drupe_kernel *drupe_kernel_retain(drupe_kernel *kernel);         /* NULL-safe */
DRUPE_API void drupe_kernel_release(drupe_kernel *kernel);                 /* NULL-safe */
DRUPE_API const char *drupe_kernel_name(const drupe_kernel *kernel);       /* borrowed */
DRUPE_API drupe_program *drupe_kernel_program(const drupe_kernel *kernel); /* borrowed */
/* Whether all arguments are declared, are pointers or values of at most eight bytes, and are 1 to 24: then
 * drupe_submit_words() takes it. */
DRUPE_API bool drupe_kernel_words(const drupe_kernel *kernel);

typedef enum drupe_kernel_key {
    DRUPE_KERNEL_ARG_COUNT,
    DRUPE_KERNEL_WORK_GROUP_SIZE, /* most work-items of a work-group for this kernel */
    DRUPE_KERNEL_PREFERRED_MULTIPLE,
    DRUPE_KERNEL_PRIVATE_MEM_SIZE,
    DRUPE_KERNEL_LOCAL_MEM_SIZE,
    DRUPE_KERNEL_MAX_NUM_SUB_GROUPS,     /* most sub-groups of a work-group */
    DRUPE_KERNEL_MAX_SUB_GROUP_SIZE,     /* most work-items of a sub-group */
    DRUPE_KERNEL_COMPILE_NUM_SUB_GROUPS, /* that the kernel was written for; 0 = any */
    DRUPE_KERNEL_COMPILE_SUB_GROUP_SIZE, /* that the kernel was written for; 0 = any */
    DRUPE_KERNEL_KEY_COUNT
} drupe_kernel_key;
/* DRUPE_E_UNSUPPORTED for what the driver does not tell. */
DRUPE_API drupe_status drupe_kernel_number(drupe_kernel *kernel, drupe_kernel_key key,
                                           uint64_t *value) DRUPE_MUST_CHECK;

/* The scalar type of an argument, resolved once when the kernel is opened. */
typedef enum drupe_scalar_type {
    DRUPE_SCALAR_UNKNOWN, /* a struct or a type not listed here: pass the bytes */
    DRUPE_SCALAR_I8,
    DRUPE_SCALAR_U8,
    DRUPE_SCALAR_I16,
    DRUPE_SCALAR_U16,
    DRUPE_SCALAR_I32,
    DRUPE_SCALAR_U32,
    DRUPE_SCALAR_I64,
    DRUPE_SCALAR_U64,
    DRUPE_SCALAR_F16,
    DRUPE_SCALAR_F32,
    DRUPE_SCALAR_F64
} drupe_scalar_type;

typedef struct drupe_arg_info {
    drupe_arg_kind kind;
    drupe_scalar_type scalar; /* of a VALUE, or what a POINTER or LOCAL points to */
    uint32_t lanes;           /* 1, or the width of a vector type */
    char name[48];            /* "" if the compiler does not tell */
    char type_name[48];       /* as written, "float*"; "" if unknown */
    bool reads_only;          /* the compiler says that nothing is written through this POINTER */
    bool either_sign;         /* nobody tells the sign of this integer VALUE: `scalar` is the signed type */
} drupe_arg_info;
/* DRUPE_E_UNSUPPORTED where the backend has no argument information, DRUPE_E_OUT_OF_RANGE for the index. */
DRUPE_API drupe_status drupe_kernel_arg(drupe_kernel *kernel, size_t index,
                                        drupe_arg_info *info) DRUPE_MUST_CHECK;

#endif
