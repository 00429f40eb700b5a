/* Programs and kernels.
 *
 * Threads: all functions may be called from any thread; a build may take seconds and blocks only its caller.
 */
#ifndef DRUPE_PROGRAM_H
#define DRUPE_PROGRAM_H

#include "drupe/queue.h"

typedef struct drupe_program drupe_program;

/* Languages a program may be written in; the values are bits of DRUPE_INFO_LANGUAGES. */
typedef enum drupe_language {
    DRUPE_LANG_BUILTIN = 1,  /* no text: kernels precompiled into the engine (`host`) */
    DRUPE_LANG_OPENCL_C = 2, /* OpenCL C text */
    DRUPE_LANG_SPIRV = 4,
    DRUPE_LANG_BINARY = 8
} drupe_language;

typedef struct drupe_source {
    drupe_language language;
    const void *bytes; /* borrowed; text need not be NUL-ended; NULL for BUILTIN */
    size_t size;
    const char *options; /* compiler options, such as "-DN=5"; NULL = none */
} drupe_source;

/* Build a program for one device of a context. Retained. When `log` is not NULL it receives the compiler's
 * messages as malloc'ed text, *taken* by the caller (free()), or NULL if there are none, on success and on
 * failure; on DRUPE_E_BUILD_FAILED the error's text holds its first lines. A language the device does not
 * take is DRUPE_E_UNSUPPORTED, and the text names a device that does. */
DRUPE_API drupe_status drupe_program_open(drupe_context *context, drupe_device *device,
                                          const drupe_source *source, char **log,
                                          drupe_program **program) DRUPE_MUST_CHECK;
DRUPE_API drupe_program *drupe_program_retain(drupe_program *program);        /* NULL-safe */
DRUPE_API void drupe_program_release(drupe_program *program);                 /* NULL-safe */
DRUPE_API drupe_context *drupe_program_context(const drupe_program *program); /* borrowed */
DRUPE_API drupe_device *drupe_program_device(const drupe_program *program);   /* borrowed */
/* The names of its kernels separated by ';', borrowed from the program; "" where the backend cannot tell. */
DRUPE_API const char *drupe_program_kernel_names(const drupe_program *program);

/* A kernel of a program. Retained. DRUPE_E_NOT_FOUND lists the names there are. */
DRUPE_API drupe_status drupe_kernel_open(drupe_program *program, const char *name,
                                         drupe_kernel **kernel) DRUPE_MUST_CHECK;
DRUPE_API drupe_kernel *drupe_kernel_retain(drupe_kernel *kernel);         /* NULL-safe */
DRUPE_API void drupe_kernel_release(drupe_kernel *kernel);                 /* NULL-safe */
DRUPE_API const char *drupe_kernel_name(const drupe_kernel *kernel);       /* borrowed */
DRUPE_API drupe_program *drupe_kernel_program(const drupe_kernel *kernel); /* borrowed */

typedef enum drupe_kernel_key {
    DRUPE_KERNEL_ARG_COUNT,
    DRUPE_KERNEL_WORK_GROUP_SIZE, /* most work-items of a work-group for this kernel */
    DRUPE_KERNEL_PREFERRED_MULTIPLE,
    DRUPE_KERNEL_PRIVATE_MEM_SIZE,
    DRUPE_KERNEL_LOCAL_MEM_SIZE,
    DRUPE_KERNEL_KEY_COUNT
} drupe_kernel_key;
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
} drupe_arg_info;
/* DRUPE_E_UNSUPPORTED where the backend has no argument information, DRUPE_E_OUT_OF_RANGE for the index. */
DRUPE_API drupe_status drupe_kernel_arg(drupe_kernel *kernel, size_t index,
                                        drupe_arg_info *info) DRUPE_MUST_CHECK;

#endif
