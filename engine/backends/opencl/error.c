/* From OpenCL's codes to the engine's errors; the table is errors.def. */
#include "opencl.h"
#include <stdarg.h>
#include <stdio.h>

typedef struct cl_error_entry {
    cl_int code;
    drupe_status status;
    const char *name, *hint;
} cl_error_entry;

static const cl_error_entry entries[] = {
#define DRUPE_CL_ERROR(code, name, status, hint) {code, DRUPE_E_##status, "CL_" #name, hint},
#include "errors.def"
#undef DRUPE_CL_ERROR
};

static const cl_error_entry *find_entry(cl_int code)
{
    static const cl_error_entry unknown = {0, DRUPE_E_INTERNAL, "CL_ERROR", ""};
    for (size_t i = 0; i < DRUPE_COUNT_OF(entries); i++) {
        if (entries[i].code == code) return &entries[i];
    }
    return &unknown;
}

const char *drupe_cl_error_name(cl_int code)
{
    return find_entry(code)->name;
}

drupe_status drupe_cl_fail(cl_int code, const char *format, ...)
{
    const cl_error_entry *entry = find_entry(code);
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return drupe_error_set_native(entry->status, DRUPE_CL_NAME, code, entry->name, "%s failed: %s (%d).%s%s",
                                  what, entry->name, (int)code, *entry->hint ? " " : "", entry->hint);
}

drupe_status drupe_cl_fail_as(drupe_status status, cl_int code, const char *format, ...)
{
    char what[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return drupe_error_set_native(status, DRUPE_CL_NAME, code, code ? drupe_cl_error_name(code) : NULL, "%s",
                                  what);
}

drupe_status drupe_cl_fail_event(cl_int status)
{
    switch (status) {
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
    case CL_DEVICE_NOT_FOUND: /* what PoCL gives to the dependents of a failed event */
        return drupe_cl_fail_as(
            DRUPE_E_DEPENDENCY, status,
            "The work did not run, because something it waited for failed (event status %d).", (int)status);
    case CL_OUT_OF_RESOURCES: /* how a fault inside a kernel shows on GPUs */
    case CL_INVALID_COMMAND_QUEUE:
    case CL_INVALID_EVENT:
    case CL_INVALID_CONTEXT:
    case -9999:
        return drupe_cl_fail_as(
            DRUPE_E_DEVICE_LOST, status,
            "The work failed on the device (event status %d, %s): a kernel may have touched "
            "memory outside of its arrays. The device and its memory may be lost: check the "
            "kernel's bounds and restart.",
            (int)status, drupe_cl_error_name(status));
    default: return drupe_cl_fail(status, "The work on the device");
    }
}
