/* What is known about arguments, kept with a binary or beside a SPIR-V module: some drivers (Intel's for
 * CPUs) tell it for programs that they have compiled from text themselves only. Per kernel: its name, NUL,
 * the number of arguments, a drupe_arg_info each. */
#include "core/program/program_room.h"
#include <stdlib.h>
#include <string.h>

size_t drupe_args_element(const drupe_arg_info *info)
{
    static const unsigned char sizes[] = {
        [DRUPE_SCALAR_I8] = 1,  [DRUPE_SCALAR_U8] = 1,  [DRUPE_SCALAR_I16] = 2, [DRUPE_SCALAR_U16] = 2,
        [DRUPE_SCALAR_I32] = 4, [DRUPE_SCALAR_U32] = 4, [DRUPE_SCALAR_I64] = 8, [DRUPE_SCALAR_U64] = 8,
        [DRUPE_SCALAR_F16] = 2, [DRUPE_SCALAR_F32] = 4, [DRUPE_SCALAR_F64] = 8,
    };
    if ((unsigned)info->scalar >= DRUPE_COUNT_OF(sizes)) return 0;
    return sizes[info->scalar] * (size_t)(info->lanes == 3 ? 4 : info->lanes);
}

void drupe_args_add(drupe_text *text, const char *name, const drupe_arg_info *args, uint32_t nargs)
{
    drupe_text_append(text, name, strlen(name) + 1);
    drupe_text_append(text, (const char *)&nargs, sizeof nargs);
    drupe_text_append(text, (const char *)args, nargs * sizeof *args);
}

static bool is_sound(const drupe_arg_info *info)
{
    const unsigned char reads_only = *(const unsigned char *)&info->reads_only;
    const unsigned char either_sign = *(const unsigned char *)&info->either_sign;
    return reads_only <= 1 && either_sign <= 1 && (unsigned)info->kind <= DRUPE_ARG_LOCAL &&
           (unsigned)info->scalar <= DRUPE_SCALAR_F64 && info->lanes >= 1 && info->lanes <= 16 &&
           memchr(info->name, 0, sizeof info->name) && memchr(info->type_name, 0, sizeof info->type_name);
}

bool drupe_args_find(drupe_span packed, const char *name, uint32_t nargs, drupe_arg_info *args)
{
    const char *at = packed.bytes;
    for (size_t left = packed.size; left > 0;) {
        size_t length = strnlen(at, left) + 1;
        uint32_t count;
        if (left < length + sizeof count) return false;
        memcpy(&count, at + length, sizeof count);
        size_t bytes = (size_t)count * sizeof *args;
        if (left - length - sizeof count < bytes) return false;
        if (strcmp(at, name) == 0) {
            if (count != nargs) return false;
            memcpy(args, at + length + sizeof count, bytes);
            for (uint32_t i = 0; i < count; i++)
                if (!is_sound(&args[i])) return false;
            return true;
        }
        at += length + sizeof count + bytes;
        left -= length + sizeof count + bytes;
    }
    return false;
}
