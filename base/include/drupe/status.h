/* Status codes and the error detail that goes with them.
 *
 * Every function that can fail returns a drupe_status. DRUPE_OK is 0, so the check is one compare. A failure
 * leaves its detail in the calling thread's drupe_error, which stays until that thread's next failure; a
 * success does not clear it. Nothing in the engine prints or aborts.
 *
 * Ownership words used in all headers: *borrowed* = valid for the call, or as long as the owner named;
 * *retained* = the callee or the result holds a reference of its own; *taken* = the callee becomes the owner.
 */
#ifndef DRUPE_STATUS_H
#define DRUPE_STATUS_H

#include <stdint.h>

#if defined(__GNUC__)
#define DRUPE_API          __attribute__((visibility("default")))
#define DRUPE_MUST_CHECK   __attribute__((warn_unused_result))
#define DRUPE_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define DRUPE_API
#define DRUPE_MUST_CHECK
#define DRUPE_PRINTF(f, a)
#endif

typedef enum drupe_status {
    DRUPE_OK = 0,
    DRUPE_E_INVALID,      /* an argument makes no sense */
    DRUPE_E_UNSUPPORTED,  /* this device or backend cannot do it */
    DRUPE_E_UNAVAILABLE,  /* a library or driver is missing */
    DRUPE_E_NOT_FOUND,    /* no such device, kernel, name */
    DRUPE_E_NO_MEMORY,    /* host or device memory is exhausted, or a limit is exceeded */
    DRUPE_E_OUT_OF_RANGE, /* an index, size or range lies outside of what it refers to */
    DRUPE_E_TIMEOUT,      /* not done yet: call again */
    DRUPE_E_CANCELLED,    /* given up before it started */
    DRUPE_E_BUILD_FAILED, /* the compiler refused the program: see the build log */
    DRUPE_E_DEVICE_LOST,  /* the device stopped answering; its memory is gone */
    DRUPE_E_DEPENDENCY,   /* did not run, because something it waited for failed */
    DRUPE_E_PLACEMENT,    /* operands live on different queues */
    DRUPE_E_BUSY,         /* in use; try later */
    DRUPE_E_CHECK,        /* checked mode found a mistake of the program: see drupe/check.h */
    DRUPE_E_INTERNAL,     /* a defect of the engine or the driver */
    DRUPE_E_TASK,         /* a function of the caller that ran in a queue's order says so */
    DRUPE_E_LINALG,       /* a matrix is singular, not positive definite, or nothing converges */
    DRUPE_STATUS_COUNT
} drupe_status;

typedef struct drupe_error {
    drupe_status status;
    int64_t native;       /* the vendor library's code, 0 if none */
    char native_name[48]; /* its name, "" if none */
    char backend[16];     /* "host", "opencl", ... or "" */
    char text[1024];      /* one or more sentences: what failed, where, what to do */
} drupe_error;

/* The calling thread's last failure. Borrowed until its next failure; never NULL. */
DRUPE_API const drupe_error *drupe_error_last(void);

/* Record a failure for the calling thread and return `status`. The text is cut to fit. */
DRUPE_API drupe_status drupe_error_set(drupe_status status, const char *format, ...) DRUPE_PRINTF(2, 3);

#ifdef __clang_analyzer__
/* Static analysis has to know that the result is the argument. */
#define drupe_error_set(status, ...) ((void)(drupe_error_set)(status, __VA_ARGS__), (status))
#endif

/* The same with the vendor's code; `native_name` and `backend` may be NULL. */
DRUPE_API drupe_status drupe_error_set_native(drupe_status status, const char *backend, int64_t native,
                                              const char *native_name, const char *format, ...)
    DRUPE_PRINTF(5, 6);

/* Make a kept error the calling thread's last one again, and return its status. */
DRUPE_API drupe_status drupe_error_restore(const drupe_error *error);

/* "NO_MEMORY" and so on; never NULL. */
DRUPE_API const char *drupe_status_name(drupe_status status);

/* Return from the calling function when `expression` fails. */
#define DRUPE_TRY(expression)                                                                                \
    do {                                                                                                     \
        drupe_status drupe_try_status_ = (expression);                                                       \
        if (drupe_try_status_ != DRUPE_OK) return drupe_try_status_;                                         \
    } while (0)

#endif
