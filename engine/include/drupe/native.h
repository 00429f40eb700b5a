/* Native functions: functions of a shared library as work of a queue.
 *
 * A call is a host function, which is queued as quickly as a kernel where nothing is in its way. It runs on a
 * thread of the engine, behind what was submitted to its queue before, and a fault in it fails the work
 * (drupe/fault.h). Arguments are words, which are copied: addresses, and scalars by value or by address.
 * Whose memory an address lies in the caller says; so order, marks and lifetime are those of every
 * submission. The host must be able to follow the addresses.
 *
 * A function without a signature takes any number of addresses up to DRUPE_NATIVE_PLAIN. A library is mapped
 * as long as somebody has it or one of its functions, and as long as a call is in flight; where a call was
 * the last that had it, until the next library is opened, closed or released.
 *
 * Threads: all functions may be called from any thread. A library's own code runs in those that open, close
 * or release one or its functions, so hold no lock that it may want. */
#ifndef DRUPE_NATIVE_H
#define DRUPE_NATIVE_H

#include "drupe/array.h"

typedef struct drupe_native_library drupe_native_library;
typedef struct drupe_native_function drupe_native_function;

#define DRUPE_NATIVE_PLAIN 16u /* most arguments of a function without a signature */
#define DRUPE_NATIVE_MOST  60u /* most parameters of one with */

/* --- Libraries ----------------------------------------------------------------------------------------- */

/* Open a library: a path, or a name for the system's linker where it has no slash. A file that has changed
 * since it was opened under this path is opened beside the one that was there. DRUPE_E_NOT_FOUND with the
 * linker's words. Retained. */
DRUPE_API drupe_status drupe_native_open(const char *path, drupe_native_library **library) DRUPE_MUST_CHECK;
DRUPE_API drupe_native_library *drupe_native_retain(drupe_native_library *library); /* NULL-safe */
DRUPE_API void drupe_native_release(drupe_native_library *library);                 /* NULL-safe */
/* Calls that were submitted and whose references were not dropped yet; those of one function with the same
 * memory that follow each other may count as one. */
DRUPE_API size_t drupe_native_calls(const drupe_native_library *library);
/* Take no more calls, and unload the library. DRUPE_E_BUSY while calls are in flight: try again once they are
 * over. Closing twice is DRUPE_OK. A library in which a thread has faulted stays mapped. */
DRUPE_API drupe_status drupe_native_close(drupe_native_library *library) DRUPE_MUST_CHECK;

/* --- Functions ----------------------------------------------------------------------------------------- */

typedef struct drupe_native_param {
    bool pointer;      /* an address; else a scalar by value */
    drupe_dtype dtype; /* of the scalar: any but float16 */
} drupe_native_param;

typedef struct drupe_native_signature {
    drupe_dtype result; /* DRUPE_DTYPE_NONE: void */
    const drupe_native_param *params;
    size_t count;
} drupe_native_signature;

/* A function by its name. `signature` (borrowed) may be NULL. DRUPE_E_NOT_FOUND when the library has no such
 * symbol. Retained, and keeps the library. */
DRUPE_API drupe_status drupe_native_function_open(drupe_native_library *library, const char *name,
                                                  const drupe_native_signature *signature,
                                                  drupe_native_function **function) DRUPE_MUST_CHECK;
DRUPE_API drupe_native_function *drupe_native_function_retain(drupe_native_function *function);
DRUPE_API void drupe_native_function_release(drupe_native_function *function);           /* NULL-safe */
DRUPE_API const char *drupe_native_function_name(const drupe_native_function *function); /* borrowed */

/* --- Calls --------------------------------------------------------------------------------------------- */

typedef struct drupe_native_arg {
    uint64_t words[2];           /* an address in the first, or the bytes of a scalar */
    bool inside;                 /* for a pointer: it points to a copy of the words */
    bool reads_only;             /* nothing is written to `memory` */
    struct drupe_memory *memory; /* borrowed: where the address lies, or NULL */
} drupe_native_arg;

typedef struct drupe_native_call {
    drupe_native_function *function; /* borrowed; kept until the call is over */
    const drupe_native_arg *args;    /* borrowed */
    size_t count;
    void *result;                       /* where the result goes, or NULL */
    struct drupe_memory *result_memory; /* borrowed: where that lies, or NULL */
} drupe_native_call;

/* Queue the call. `s->keeps` are kept too; its label is the function's name unless it has one; `brief` and
 * `effects` are not looked at. DRUPE_E_INVALID for a wrong number of arguments and for a closed library. */
DRUPE_API drupe_status drupe_native_submit(const drupe_submission *s, const drupe_native_call *call,
                                           drupe_event **event) DRUPE_MUST_CHECK;

#endif
