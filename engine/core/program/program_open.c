/* Opening a program, and whether its kernels print, as far as the text itself shows it. */
#include "core/program/program_room.h"
#include <stdlib.h>
#include <string.h>

/* OpExtInst of number 184, which is printf of OpenCL.std. */
static bool module_prints(const unsigned char *bytes, size_t size)
{
    enum { HEADER = 5, EXT_INST = 12, NUMBER = 4, PRINTF = 184 };
    size_t words = size / 4;
    for (size_t at = HEADER; at + NUMBER < words;) {
        uint32_t head, number;
        memcpy(&head, bytes + 4 * at, sizeof head);
        memcpy(&number, bytes + 4 * (at + NUMBER), sizeof number);
        size_t length = head >> 16;
        if ((head & 0xffffu) == EXT_INST && length > NUMBER && number == PRINTF) return true;
        at += length ? length : words;
    }
    return false;
}

bool drupe_prints_source(const drupe_source *source)
{
    switch (source->language) {
    case DRUPE_LANG_SPIRV: return module_prints(source->bytes, source->size);
    case DRUPE_LANG_BUILTIN:
    case DRUPE_LANG_C: return false; /* as other C code of the process does */
    default: return memmem(source->bytes, source->size, "printf", 6);
    }
}

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
