/* What a SPIR-V module says about the arguments of its kernels, for drivers that tell it of OpenCL C only
 * (Intel's for CPUs). Integers have no sign there; translators from OpenCL C leave the types as they were
 * written in a text of their own if asked to, "kernel_arg_type.NAME.float*,uint,", from which the sign is
 * taken; without it numbers of either sign are taken, and
 * pointers to integers point to anything. A kernel with an argument that is no pointer, number or
 * structure (an image, a sampler) is left out. */
#include "core/program/program_room.h"
#include "core/program/spirv.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORAGE_CONSTANT = 0, STORAGE_LOCAL = 4, STORAGE_GLOBAL = 5, STORAGE_BY_VALUE = 7 };

/* The instruction that defines an id, or 0. */
static size_t defined(const drupe_spirv *module, uint32_t id)
{
    return id < module->bound ? module->at[id] : 0;
}

/* "float*,uint," of a kernel, or "". */
static const char *written_types(const drupe_spirv *module, const char *name)
{
    static const char prefix[] = "kernel_arg_type.";
    size_t length = strlen(name);
    for (size_t at = SPIRV_HEADER_WORDS; at < module->count; at += drupe_spirv_length(module, at)) {
        if (drupe_spirv_opcode(module, at) != SPIRV_STRING) continue;
        const char *text = drupe_spirv_text(module, at + 2);
        if (strncmp(text, prefix, sizeof prefix - 1) != 0) continue;
        text += sizeof prefix - 1;
        if (strncmp(text, name, length) == 0 && text[length] == '.') return text + length + 1;
    }
    return "";
}

/* --- Types ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t opcode, bits;
    drupe_scalar_type scalar, unsign;
} scalars[] = {
    {"char", SPIRV_TYPE_INT, 8, DRUPE_SCALAR_I8, DRUPE_SCALAR_U8},
    {"short", SPIRV_TYPE_INT, 16, DRUPE_SCALAR_I16, DRUPE_SCALAR_U16},
    {"int", SPIRV_TYPE_INT, 32, DRUPE_SCALAR_I32, DRUPE_SCALAR_U32},
    {"long", SPIRV_TYPE_INT, 64, DRUPE_SCALAR_I64, DRUPE_SCALAR_U64},
    {"half", SPIRV_TYPE_FLOAT, 16, DRUPE_SCALAR_F16, DRUPE_SCALAR_F16},
    {"float", SPIRV_TYPE_FLOAT, 32, DRUPE_SCALAR_F32, DRUPE_SCALAR_F32},
    {"double", SPIRV_TYPE_FLOAT, 64, DRUPE_SCALAR_F64, DRUPE_SCALAR_F64},
};

/* The name of a type that nobody has written down. */
static void type_name(drupe_arg_info *info, const char *name)
{
    char lanes[12] = "";
    if (info->type_name[0]) return;
    if (info->lanes > 1) snprintf(lanes, sizeof lanes, "%u", info->lanes);
    snprintf(info->type_name, sizeof info->type_name, "%s%s%s", name, lanes,
             info->kind == DRUPE_ARG_VALUE ? "" : "*");
}

/* Element type and lanes of the type defined at `at`; false if it is none of these. */
static bool element_read(const drupe_spirv *module, size_t at, drupe_arg_info *info)
{
    if (at && drupe_spirv_opcode(module, at) == SPIRV_TYPE_VECTOR && drupe_spirv_length(module, at) == 4) {
        info->lanes = module->words[at + 3];
        at = defined(module, module->words[at + 2]);
    }
    if (!at || info->lanes < 1 || info->lanes > 16) return false;
    for (size_t i = 0; i < DRUPE_COUNT_OF(scalars); i++) {
        if (scalars[i].opcode != drupe_spirv_opcode(module, at)) continue;
        if (scalars[i].bits != module->words[at + 2]) continue;
        bool integer = scalars[i].opcode == SPIRV_TYPE_INT, told = info->type_name[0] != '\0';
        info->scalar = info->type_name[0] == 'u' ? scalars[i].unsign : scalars[i].scalar;
        if (integer && !told) {
            info->either_sign = info->kind == DRUPE_ARG_VALUE;
            if (!info->either_sign) info->scalar = DRUPE_SCALAR_UNKNOWN;
        }
        type_name(info, scalars[i].name);
        return true;
    }
    return false;
}

static bool is_structure(const drupe_spirv *module, size_t at)
{
    return drupe_spirv_opcode(module, at) == SPIRV_TYPE_STRUCT;
}

/* The kind of an argument of the type defined at `at`; false if there is none for it. */
static bool type_read(const drupe_spirv *module, size_t at, drupe_arg_info *info)
{
    if (!at) return false;
    info->kind = DRUPE_ARG_VALUE;
    if (drupe_spirv_opcode(module, at) != SPIRV_TYPE_POINTER)
        return element_read(module, at, info) || is_structure(module, at);
    switch (module->words[at + 2]) {
    case STORAGE_BY_VALUE: return true;
    case STORAGE_LOCAL: info->kind = DRUPE_ARG_LOCAL; break;
    case STORAGE_CONSTANT:
        info->reads_only = true;
        info->kind = DRUPE_ARG_POINTER;
        break;
    case STORAGE_GLOBAL: info->kind = DRUPE_ARG_POINTER; break;
    default: return false;
    }
    if (!element_read(module, defined(module, module->words[at + 3]), info)) {
        info->scalar = DRUPE_SCALAR_UNKNOWN;
        info->lanes = 1;
        type_name(info, "void");
    }
    return true;
}

/* --- Kernels -------------------------------------------------------------------------------------------- */

/* The parameters of the function at `at`; true when all are known. */
static bool params_read(const drupe_spirv *module, size_t at, const char *types, drupe_arg_info *args,
                        size_t nargs)
{
    size_t count = 0;
    at += drupe_spirv_length(module, at);
    for (; at < module->count && count < nargs; at += drupe_spirv_length(module, at)) {
        if (drupe_spirv_opcode(module, at) != SPIRV_FUNCTION_PARAMETER) continue;
        drupe_arg_info *info = &args[count++];
        size_t length = strcspn(types, ",");
        *info = (drupe_arg_info){.lanes = 1};
        snprintf(info->type_name, sizeof info->type_name, "%.*s", (int)length, types);
        types += length + (types[length] == ',');
        drupe_spirv_name(module, module->words[at + 2], info->name, sizeof info->name);
        if (!type_read(module, defined(module, module->words[at + 1]), info)) return false;
    }
    return count == nargs;
}

static void pack_entry(const drupe_spirv *module, size_t entry, drupe_text *text)
{
    const char *name = drupe_spirv_text(module, entry + 3);
    size_t function = defined(module, module->words[entry + 2]);
    if (!function || drupe_spirv_opcode(module, function) != SPIRV_FUNCTION) return;
    size_t type = defined(module, module->words[function + 4]);
    if (!type || drupe_spirv_opcode(module, type) != SPIRV_TYPE_FUNCTION) return;
    size_t nargs = drupe_spirv_length(module, type) - 3;
    drupe_arg_info *args = calloc(nargs + 1, sizeof *args);
    if (!args)
        text->failed = true;
    else if (params_read(module, function, written_types(module, name), args, nargs))
        drupe_args_add(text, name, args, (uint32_t)nargs);
    free(args);
}

void drupe_spirv_args(const void *bytes, size_t size, drupe_text *text)
{
    drupe_spirv module;
    drupe_status status = drupe_spirv_open(bytes, size, &module);
    if (status == DRUPE_E_NO_MEMORY) text->failed = true;
    if (status != DRUPE_OK) return;
    for (size_t at = SPIRV_HEADER_WORDS; at < module.count; at += drupe_spirv_length(&module, at))
        if (drupe_spirv_opcode(&module, at) == SPIRV_ENTRY_POINT) pack_entry(&module, at, text);
    drupe_spirv_close(&module);
}
