/* Opening a program. */
#include "core/program/program_room.h"
#include <stdlib.h>

static drupe_status check_source(drupe_context *context, drupe_device *device, const drupe_source *source)
{
    if (drupe_context_member(context, device) < 0) {
        return drupe_error_set(DRUPE_E_INVALID, "The device %s does not belong to this context.",
                               device->filter);
    }
    return drupe_source_check(device, source);
}

drupe_status drupe_program_open(drupe_context *context, drupe_device *device, const drupe_source *source,
                                char **log, drupe_program **program)
{
    *program = NULL;
    if (log) *log = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_loss_check(device));
    DRUPE_TRY(check_source(context, device, source));
    const drupe_backend *backend = context->slot->backend;
    drupe_program *fresh =
        drupe_object_new(&context->slot->live, backend, sizeof *fresh, backend->size.program);
    if (!fresh) return DRUPE_E_NO_MEMORY;
    fresh->context = drupe_context_retain(context);
    fresh->device = drupe_device_retain(device);
    fresh->prints = drupe_prints_source(source);
    char *messages = NULL;
    drupe_status status = drupe_program_build(fresh, source, &messages);
    if (log)
        *log = messages;
    else
        free(messages);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        drupe_program_release(fresh);
        return drupe_error_restore(&kept);
    }
    *program = fresh;
    return DRUPE_OK;
}
