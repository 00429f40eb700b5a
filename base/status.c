/* The calling thread's error detail. It lives in thread-local storage, so setting one never allocates. */
#include "drupe/status.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local drupe_error last_error;

static const char *const status_names[DRUPE_STATUS_COUNT] = {
    [DRUPE_OK] = "OK",
    [DRUPE_E_INVALID] = "INVALID",
    [DRUPE_E_UNSUPPORTED] = "UNSUPPORTED",
    [DRUPE_E_UNAVAILABLE] = "UNAVAILABLE",
    [DRUPE_E_NOT_FOUND] = "NOT_FOUND",
    [DRUPE_E_NO_MEMORY] = "NO_MEMORY",
    [DRUPE_E_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [DRUPE_E_TIMEOUT] = "TIMEOUT",
    [DRUPE_E_CANCELLED] = "CANCELLED",
    [DRUPE_E_BUILD_FAILED] = "BUILD_FAILED",
    [DRUPE_E_DEVICE_LOST] = "DEVICE_LOST",
    [DRUPE_E_DEPENDENCY] = "DEPENDENCY",
    [DRUPE_E_PLACEMENT] = "PLACEMENT",
    [DRUPE_E_BUSY] = "BUSY",
    [DRUPE_E_CHECK] = "CHECK",
    [DRUPE_E_INTERNAL] = "INTERNAL",
    [DRUPE_E_TASK] = "TASK",
    [DRUPE_E_LINALG] = "LINALG",
};

const drupe_error *drupe_error_last(void)
{
    return &last_error;
}

const char *drupe_status_name(drupe_status status)
{
    if ((unsigned)status >= DRUPE_STATUS_COUNT || !status_names[status]) return "UNKNOWN";
    return status_names[status];
}

/* The text is composed apart first: its arguments may point into the error that it replaces. */
static drupe_status set_error(drupe_status status, const char *backend, int64_t native,
                              const char *native_name, const char *format, va_list args)
{
    drupe_error fresh = {.status = status, .native = native};
    snprintf(fresh.backend, sizeof fresh.backend, "%s", backend ? backend : "");
    snprintf(fresh.native_name, sizeof fresh.native_name, "%s", native_name ? native_name : "");
    vsnprintf(fresh.text, sizeof fresh.text, format, args);
    last_error = fresh;
    return status;
}

/* In parentheses: a macro of that name serves static analysis. */
drupe_status(drupe_error_set)(drupe_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(status, NULL, 0, NULL, format, args);
    va_end(args);
    return status;
}

drupe_status drupe_error_set_native(drupe_status status, const char *backend, int64_t native,
                                    const char *native_name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(status, backend, native, native_name, format, args);
    va_end(args);
    return status;
}

drupe_status drupe_error_restore(const drupe_error *error)
{
    if (error != &last_error) last_error = *error;
    return last_error.status;
}
