/* The room of native functions: shared libraries, their functions, and calls of them as host functions.
 *
 * Files: native_library.c (opening, the table of what is open, closing), native_function.c (signatures),
 * native_call.c (submissions).
 *
 * Owns: the table of open libraries, under its lock. A library's own lock, a leaf, guards its handle. No
 * thread. Statuses and error details as in drupe/status.h. */
#ifndef DRUPE_NATIVE_ROOM_H
#define DRUPE_NATIVE_ROOM_H

#include "base/base.h"
#include "drupe/native.h"
#include <ffi.h>
#include <pthread.h>
#include <stdatomic.h>

struct drupe_native_library {
    _Atomic(uint32_t) references;
    _Atomic(size_t) calls;
    _Atomic(bool) closed; /* it takes no more calls */
    /* Threads that are in its code, on a line that those who submit do not touch. One that has faulted there
     * stays: it may be parked. */
    _Alignas(64) _Atomic(size_t) inside;
    pthread_mutex_t lock;
    void *handle; /* of dlopen(); NULL once it is closed */
    char *path;
    struct drupe_native_library *next; /* of those that leave */
};

struct drupe_native_function {
    _Atomic(uint32_t) references;
    drupe_native_library *library; /* retained */
    void (*code)(void);
    bool declared;
    ffi_cif cif; /* where it is declared */
    size_t count;
    drupe_dtype result;
    bool pointers[DRUPE_NATIVE_MOST];
    ffi_type *types[DRUPE_NATIVE_MOST];
    char name[];
};

/* native_library.c: a call begins; DRUPE_E_INVALID once the library is closed. It ends with the second. */
drupe_status drupe_native_begin(drupe_native_function *function) DRUPE_MUST_CHECK;
void drupe_native_end(drupe_native_library *library);
/* As drupe_native_release(), without closing it at once. */
void drupe_native_leave(drupe_native_library *library);

/* native_function.c: as drupe_native_function_release(), without closing the library at once. */
void drupe_native_function_leave(drupe_native_function *function);
/* How a call with so many arguments is made. */
ffi_cif *drupe_native_interface(drupe_native_function *function, size_t count);

#endif
