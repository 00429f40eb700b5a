/* Specialisation constants of SPIR-V modules. Their values are written into the module as new defaults, so
 * that every driver that takes the module takes them, also through a translator. */
#include "core/program/program_room.h"
#include "core/program/spirv.h"
#include <stdlib.h>
#include <string.h>

#define DECORATION_SPEC_ID 1u

static bool is_spec_scalar(uint32_t opcode)
{
    return opcode >= SPIRV_SPEC_TRUE && opcode <= SPIRV_SPEC_CONSTANT;
}

/* Whether the instruction gives a scalar constant its number; `*constant` is where that is defined. */
static bool spec_id_at(const drupe_spirv *module, size_t at, size_t *constant, uint32_t *id)
{
    const uint32_t *words = &module->words[at];
    if (drupe_spirv_opcode(module, at) != SPIRV_DECORATE || drupe_spirv_length(module, at) != 4) return false;
    if (words[2] != DECORATION_SPEC_ID || words[1] == 0 || words[1] >= module->bound) return false;
    *constant = module->at[words[1]];
    *id = words[3];
    return *constant && is_spec_scalar(drupe_spirv_opcode(module, *constant));
}

/* Type and default of the constant defined at `at`; false when its type is none of the known ones. */
static bool constant_read(const drupe_spirv *module, size_t at, drupe_spec_constant *constant)
{
    const uint32_t *words = &module->words[at];
    uint32_t opcode = drupe_spirv_opcode(module, at);
    size_t type = words[1] < module->bound ? module->at[words[1]] : 0;
    if (!type) return false;
    uint32_t kind = drupe_spirv_opcode(module, type);
    if (opcode != SPIRV_SPEC_CONSTANT) {
        constant->type = 'b';
        constant->bytes = 1;
        constant->value[0] = opcode == SPIRV_SPEC_TRUE;
        return kind == SPIRV_TYPE_BOOL;
    }
    if (kind != SPIRV_TYPE_INT && kind != SPIRV_TYPE_FLOAT) return false;
    uint32_t bits = module->words[type + 2];
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return false;
    if (drupe_spirv_length(module, at) != (bits == 64 ? 5u : 4u)) return false;
    constant->type = kind == SPIRV_TYPE_INT ? 'i' : 'f';
    constant->bytes = bits / 8;
    uint64_t value = words[3];
    if (bits == 64) value |= (uint64_t)words[4] << 32;
    memcpy(constant->value, &value, constant->bytes);
    return true;
}

/* Both kinds of processors that the engine runs on store the low byte first. */
static void constant_write(drupe_spirv *module, size_t at, const drupe_spec_constant *shape,
                           const void *bytes)
{
    uint64_t value = 0;
    memcpy(&value, bytes, shape->bytes);
    if (shape->type == 'b') {
        module->words[at] =
            (module->words[at] & 0xffff0000u) | (uint32_t)(value ? SPIRV_SPEC_TRUE : SPIRV_SPEC_FALSE);
        return;
    }
    module->words[at + 3] = (uint32_t)value;
    if (shape->bytes == 8) module->words[at + 4] = (uint32_t)(value >> 32);
}

drupe_status drupe_spirv_constants(const void *bytes, size_t size, drupe_spec_constant **constants,
                                   size_t *count)
{
    drupe_spirv module;
    *constants = NULL;
    *count = 0;
    DRUPE_TRY(drupe_spirv_open(bytes, size, &module));
    /* Each takes four words at least. */
    drupe_spec_constant *list = calloc(module.count / 4 + 1, sizeof *list);
    if (!list) {
        drupe_spirv_close(&module);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for specialisation constants.");
    }
    for (size_t at = SPIRV_HEADER_WORDS; at < module.count; at += drupe_spirv_length(&module, at)) {
        drupe_spec_constant one = {0};
        size_t where;
        if (!spec_id_at(&module, at, &where, &one.id) || !constant_read(&module, where, &one)) continue;
        drupe_spirv_name(&module, module.words[where + 2], one.name, sizeof one.name);
        list[(*count)++] = one;
    }
    drupe_spirv_close(&module);
    if (*count == 0)
        free(list);
    else
        *constants = list;
    return DRUPE_OK;
}

/* --- Setting -------------------------------------------------------------------------------------------- */

static drupe_status set_value(drupe_spirv *module, const drupe_spec_value *value)
{
    bool found = false;
    for (size_t at = SPIRV_HEADER_WORDS; at < module->count; at += drupe_spirv_length(module, at)) {
        drupe_spec_constant shape = {0};
        size_t where;
        uint32_t id;
        if (!spec_id_at(module, at, &where, &id) || id != value->id) continue;
        if (!constant_read(module, where, &shape)) continue;
        if (value->size != shape.bytes || !value->value) {
            return drupe_error_set(DRUPE_E_INVALID,
                                   "The specialisation constant %u has %u byte(s), a value of %zu was given.",
                                   id, shape.bytes, value->size);
        }
        constant_write(module, where, &shape, value->value);
        found = true;
    }
    if (found) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NOT_FOUND, "The module has no specialisation constant with the number %u.",
                           value->id);
}

drupe_status drupe_spirv_specialise(const drupe_source *source, void **bytes, size_t *size)
{
    drupe_spirv module;
    *bytes = NULL;
    *size = 0;
    DRUPE_TRY(drupe_spirv_open(source->bytes, source->size, &module));
    drupe_status status = DRUPE_OK;
    for (size_t i = 0; i < source->nvalues && status == DRUPE_OK; i++)
        status = set_value(&module, &source->values[i]);
    if (status == DRUPE_OK) {
        *size = source->size;
        *bytes = module.words;
        module.words = NULL;
    }
    drupe_spirv_close(&module);
    return status;
}
