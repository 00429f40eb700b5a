/* What the files about SPIR-V modules share. */
#ifndef DRUPE_CORE_SPIRV_H
#define DRUPE_CORE_SPIRV_H

#include "core/program/program_room.h"

enum {
    SPIRV_NAME = 5,
    SPIRV_STRING = 7,
    SPIRV_MEMORY_MODEL = 14,
    SPIRV_ENTRY_POINT = 15,
    SPIRV_CAPABILITY = 17,
    SPIRV_TYPE_BOOL = 20,
    SPIRV_TYPE_INT = 21,
    SPIRV_TYPE_FLOAT = 22,
    SPIRV_TYPE_VECTOR = 23,
    SPIRV_TYPE_STRUCT = 30,
    SPIRV_TYPE_POINTER = 32,
    SPIRV_TYPE_FUNCTION = 33,
    SPIRV_SPEC_TRUE = 48,
    SPIRV_SPEC_FALSE = 49,
    SPIRV_SPEC_CONSTANT = 50,
    SPIRV_FUNCTION = 54,
    SPIRV_FUNCTION_PARAMETER = 55,
    SPIRV_FUNCTION_END = 56,
    SPIRV_DECORATE = 71,
    SPIRV_LABEL = 248
};

#define SPIRV_HEADER_WORDS 5u

/* A module that was checked: aligned words, and where each id is defined. */
typedef struct drupe_spirv {
    uint32_t *words;
    size_t count;
    uint32_t bound;
    uint32_t *at; /* by id: the index of the defining instruction, 0 = none */
} drupe_spirv;

static inline uint32_t drupe_spirv_opcode(const drupe_spirv *module, size_t at)
{
    return module->words[at] & 0xffffu;
}

static inline size_t drupe_spirv_length(const drupe_spirv *module, size_t at)
{
    return module->words[at] >> 16;
}

/* Text inside of an instruction; that it ends there was checked. */
static inline const char *drupe_spirv_text(const drupe_spirv *module, size_t at)
{
    return (const char *)&module->words[at];
}

/* The name that the module gives an id; without one `name` stays as it is. */
void drupe_spirv_name(const drupe_spirv *module, uint32_t id, char *name, size_t size);
/* Copy and check. */
drupe_status drupe_spirv_open(const void *bytes, size_t size, drupe_spirv *module) DRUPE_MUST_CHECK;
void drupe_spirv_close(drupe_spirv *module);

#endif
