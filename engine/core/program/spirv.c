/* Is this a whole SPIR-V module for OpenCL? Drivers are not asked: some end the process on a damaged module.
 *
 * Two passes: the first walks the instructions, checks their lengths, order and nesting, and notes where each
 * id is defined; the second looks whether every id that is used has a definition. Types of operands are the
 * compiler's business. Instructions of extensions are only walked over; since they may define ids that are
 * not seen then, a module that has any is spared the second pass. */
#include "core/program/spirv.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC    0x07230203u
#define MOST_IDS 0x400000u /* the format's own limit */

/* --- The shape of instructions -------------------------------------------------------------------------- */

enum { TYPE = 1, RESULT = 2, REST = 4, STRING = 8, BOTH = TYPE | RESULT };

/* The sections of a module in their order. */
enum {
    ANYWHERE,
    CAPABILITIES,
    EXTENSIONS,
    IMPORTS,
    MODEL,
    ENTRIES,
    MODES,
    NAMES,
    DECORATIONS,
    TYPES,
    FUNCTIONS
};

#define MOST_RANGES 16

/* After the first word: the id of a type, the id defined, `skip` literals, `ids` ids; REST: what follows are
 * ids too; STRING: what follows begins with text. */
typedef struct shape {
    uint8_t flags, skip, ids, section;
    struct {
        uint16_t first, last;
    } opcodes[MOST_RANGES]; /* of this shape; behind the first range 0 ends them */
} shape;

static const shape shapes[] = {
    {0, 0, 0, ANYWHERE, {{0, 0}, {317, 317}}},
    {BOTH, 0, 0, ANYWHERE, {{1, 1}}},
    {STRING, 0, 0, NAMES, {{2, 2}, {4, 4}, {330, 330}}},
    {0, 2, 0, NAMES, {{3, 3}}},
    {STRING, 0, 1, NAMES, {{5, 5}}},
    {0, 0, 1, NAMES, {{6, 6}}},
    {RESULT | STRING, 0, 0, NAMES, {{7, 7}}},
    {0, 0, 1, ANYWHERE, {{8, 8}}},
    {STRING, 0, 0, EXTENSIONS, {{10, 10}}},
    {RESULT | STRING, 0, 0, IMPORTS, {{11, 11}}},
    {BOTH, 0, 1, ANYWHERE, {{12, 12}}},
    {0, 2, 0, MODEL, {{14, 14}}},
    {STRING, 1, 1, ENTRIES, {{15, 15}}},
    {0, 0, 1, MODES, {{16, 16}, {331, 331}}},
    {0, 1, 0, CAPABILITIES, {{17, 17}}},
    {RESULT, 0, 0, TYPES, {{19, 20}, {26, 26}, {34, 37}, {322, 322}, {327, 327}}},
    {RESULT, 2, 0, TYPES, {{21, 21}}},
    {RESULT, 1, 0, TYPES, {{22, 22}, {38, 38}}},
    {RESULT, 0, 1, TYPES, {{23, 25}, {27, 27}, {29, 29}}},
    {RESULT, 0, 2, TYPES, {{28, 28}}},
    {RESULT | REST, 0, 0, TYPES, {{30, 30}}},
    {RESULT | STRING, 0, 0, TYPES, {{31, 31}}},
    {RESULT, 1, 1, TYPES, {{32, 32}}},
    {RESULT | REST, 0, 1, TYPES, {{33, 33}}},
    {0, 0, 1, TYPES, {{39, 39}}},
    {BOTH, 0, 0, TYPES, {{41, 42}, {46, 46}, {48, 49}}},
    {BOTH, 1, 0, TYPES, {{43, 43}, {50, 50}, {52, 52}}},
    {BOTH | REST, 0, 0, TYPES, {{44, 44}, {51, 51}}},
    {BOTH, 3, 0, TYPES, {{45, 45}, {323, 323}}},
    {BOTH, 1, 1, FUNCTIONS, {{54, 54}}},
    {BOTH, 0, 0, FUNCTIONS, {{55, 55}}},
    {0, 0, 0, FUNCTIONS, {{56, 56}, {252, 253}, {255, 255}}},
    {BOTH | REST, 0, 1, FUNCTIONS, {{57, 57}, {65, 67}, {100, 107}, {128, 152}, {324, 326}}},
    {BOTH | REST, 1, 0, ANYWHERE, {{59, 59}}},
    {BOTH,
     0,
     3,
     FUNCTIONS,
     {{60, 60}, {78, 78}, {169, 169}, {202, 203}, {227, 227}, {232, 233}, {263, 263}, {318, 318}}},
    {BOTH,
     0,
     1,
     FUNCTIONS,
     {{61, 61},
      {68, 69},
      {81, 81},
      {83, 84},
      {109, 124},
      {126, 127},
      {154, 160},
      {168, 168},
      {200, 200},
      {204, 205},
      {207, 215},
      {264, 271},
      {321, 321},
      {328, 328},
      {333, 333},
      {400, 400}}},
    {0, 0, 2, FUNCTIONS, {{62, 63}, {225, 225}, {246, 246}, {251, 251}, {301, 301}}},
    {0,
     0,
     3,
     FUNCTIONS,
     {{64, 64}, {99, 99}, {224, 224}, {250, 250}, {260, 260}, {302, 302}, {319, 319}, {329, 329}}},
    {BOTH | REST, 0, 2, FUNCTIONS, {{70, 70}}},
    {0, 0, 1, DECORATIONS, {{71, 72}, {75, 75}, {332, 332}}},
    {RESULT, 0, 0, DECORATIONS, {{73, 73}}},
    {REST, 0, 1, DECORATIONS, {{74, 74}}},
    {BOTH,
     0,
     2,
     FUNCTIONS,
     {{77, 77}, {79, 79}, {82, 82}, {86, 98}, {161, 167}, {170, 191}, {194, 199}, {261, 262}, {401, 403}}},
    {BOTH | REST,
     0,
     0,
     FUNCTIONS,
     {{80, 80}, {245, 245}, {274, 279}, {282, 286}, {291, 296}, {299, 300}, {303, 304}}},
    {BOTH, 0, 4, FUNCTIONS, {{201, 201}, {229, 229}, {234, 242}}},
    {0, 0, 4, FUNCTIONS, {{228, 228}}},
    {BOTH, 0, 6, FUNCTIONS, {{230, 231}, {259, 259}}},
    {0, 0, 1, FUNCTIONS, {{247, 247}, {249, 249}, {254, 254}, {256, 257}, {297, 298}}},
    {RESULT, 0, 0, FUNCTIONS, {{248, 248}}},
    {REST, 0, 0, FUNCTIONS, {{280, 281}, {287, 288}}},
};

static const shape *shape_of(uint32_t opcode)
{
    for (size_t i = 0; i < DRUPE_COUNT_OF(shapes); i++) {
        const shape *s = &shapes[i];
        for (size_t k = 0; k < MOST_RANGES && (k == 0 || s->opcodes[k].first); k++)
            if (opcode >= s->opcodes[k].first && opcode <= s->opcodes[k].last) return s;
    }
    return NULL;
}

/* Words that the instruction has at least, its first one included. */
static size_t least_length(const shape *s)
{
    return 1u + (s->flags & TYPE ? 1 : 0) + (s->flags & RESULT ? 1 : 0) + s->skip + s->ids +
           (s->flags & STRING ? 1 : 0);
}

/* --- The first pass ------------------------------------------------------------------------------------- */

typedef struct walk {
    drupe_spirv *module;
    size_t at;
    unsigned section; /* the latest one */
    bool function, block, extended, kernel, model;
    size_t entries;
} walk;

static const char *check_model(walk *w, uint32_t opcode)
{
    const uint32_t *words = &w->module->words[w->at];
    if (opcode == SPIRV_CAPABILITY) w->kernel |= words[1] == 6;
    if (opcode == SPIRV_MEMORY_MODEL) {
        if (w->model) return "it has two memory models";
        w->model = true;
        if ((words[1] != 1 && words[1] != 2) || words[2] != 2)
            return "it was not made for OpenCL, but for graphics";
    }
    if (opcode == SPIRV_ENTRY_POINT) {
        w->entries++;
        if (words[1] != 6) return "an entry point is no kernel: it was made for graphics";
    }
    return NULL;
}

/* Functions hold blocks, blocks begin with a label and end with a branch or return. */
static const char *check_nesting(walk *w, uint32_t opcode)
{
    bool ends = opcode >= 249 && opcode <= 255;
    if (opcode == SPIRV_FUNCTION) {
        if (w->function) return "a function begins inside another one";
        w->function = true;
    } else if (opcode == SPIRV_FUNCTION_END) {
        if (!w->function || w->block) return "a function ends where none may";
        w->function = false;
    } else if (opcode == SPIRV_LABEL) {
        if (!w->function || w->block) return "a block begins where none may";
        w->block = true;
    } else if (ends) {
        if (!w->block) return "a block ends where none may";
        w->block = false;
    } else if (opcode == SPIRV_FUNCTION_PARAMETER) {
        if (!w->function || w->block) return "a parameter stands outside of a function's head";
    } else if (!w->block && opcode != 8 && opcode != 317 && opcode != 0) {
        return "an instruction stands outside of a block";
    }
    return NULL;
}

static const char *check_order(walk *w, uint32_t opcode, unsigned section)
{
    if (section != ANYWHERE && section < w->section) {
        return w->section == FUNCTIONS ? "a declaration stands inside of the functions"
                                       : "its parts are in the wrong order";
    }
    if (section > w->section) w->section = section;
    if (w->section == FUNCTIONS) return check_nesting(w, opcode);
    return check_model(w, opcode);
}

/* Text ends inside of its instruction. */
static bool has_string(const walk *w, size_t from, size_t length)
{
    return memchr(&w->module->words[w->at + from], 0, (length - from) * sizeof(uint32_t)) != NULL;
}

static const char *define(walk *w, uint32_t id)
{
    if (id == 0 || id >= w->module->bound) return "it defines an id beyond its bound";
    if (w->module->at[id]) return "it defines an id twice";
    w->module->at[id] = (uint32_t)w->at;
    return NULL;
}

static const char *check_instruction(walk *w, size_t length)
{
    uint32_t opcode = drupe_spirv_opcode(w->module, w->at);
    const shape *s = shape_of(opcode);
    if (!s) {
        w->extended = true;
        return NULL;
    }
    if (length < least_length(s)) return "an instruction is too short";
    size_t fixed = least_length(s) - (s->flags & STRING ? 1 : 0);
    if (s->flags & STRING && !has_string(w, fixed, length)) return "a name does not end";
    const char *fault = check_order(w, opcode, s->section);
    if (!fault && s->flags & RESULT) fault = define(w, w->module->words[w->at + (s->flags & TYPE ? 2 : 1)]);
    return fault;
}

static const char *first_pass(walk *w)
{
    drupe_spirv *module = w->module;
    for (w->at = SPIRV_HEADER_WORDS; w->at < module->count;) {
        size_t length = drupe_spirv_length(module, w->at);
        if (length == 0 || length > module->count - w->at) return "it is cut off or damaged";
        const char *fault = check_instruction(w, length);
        if (fault) return fault;
        w->at += length;
    }
    w->at = 0;
    if (w->function) return "it is cut off inside of a function";
    if (!w->model || !w->kernel) return "it does not say that it is made for OpenCL";
    if (w->entries == 0) return "it has no kernel";
    return NULL;
}

/* --- The second pass ------------------------------------------------------------------------------------ */

static const char *check_use(const drupe_spirv *module, uint32_t id)
{
    if (id == 0 || id >= module->bound) return "it uses an id beyond its bound";
    return module->at[id] ? NULL : "it uses an id that it does not define";
}

static const char *check_type(const drupe_spirv *module, uint32_t id)
{
    const char *fault = check_use(module, id);
    if (fault) return fault;
    uint32_t opcode = drupe_spirv_opcode(module, module->at[id]);
    return (opcode >= 19 && opcode <= 38) || opcode == 322 || opcode == 327 ? NULL : "a type is none";
}

static const char *check_uses(const drupe_spirv *module, size_t at)
{
    const uint32_t *words = &module->words[at];
    uint32_t opcode = drupe_spirv_opcode(module, at);
    const shape *s = shape_of(opcode);
    size_t next = 1, end;
    const char *fault = NULL;
    if (s->flags & TYPE) fault = check_type(module, words[next++]);
    if (s->flags & RESULT) next++;
    next += s->skip;
    end = s->flags & REST ? drupe_spirv_length(module, at) : next + s->ids;
    while (!fault && next < end) fault = check_use(module, words[next++]);
    if (!fault && opcode == SPIRV_ENTRY_POINT &&
        drupe_spirv_opcode(module, module->at[words[2]]) != SPIRV_FUNCTION)
        fault = "an entry point is no function";
    return fault;
}

static const char *second_pass(walk *w)
{
    const drupe_spirv *module = w->module;
    for (w->at = SPIRV_HEADER_WORDS; w->at < module->count; w->at += drupe_spirv_length(module, w->at)) {
        const char *fault = check_uses(module, w->at);
        if (fault) return fault;
    }
    return NULL;
}

/* --- Modules -------------------------------------------------------------------------------------------- */

static const char *check_header(const drupe_spirv *module, size_t size)
{
    const uint32_t *words = module->words;
    if (size % sizeof(uint32_t) || module->count < SPIRV_HEADER_WORDS) return "its length is wrong";
    if (words[0] == __builtin_bswap32(MAGIC)) return "its byte order is not this machine's";
    if (words[0] != MAGIC) return "it does not begin with SPIR-V's magic number";
    if (words[1] & 0xff0000ffu || words[1] >> 16 != 1) return "its version is unknown";
    if (words[3] == 0 || words[3] > MOST_IDS) return "its number of ids is impossible";
    if (words[4] != 0) return "its instruction schema is unknown";
    return NULL;
}

drupe_status drupe_spirv_open(const void *bytes, size_t size, drupe_spirv *module)
{
    walk w = {.module = module};
    *module = (drupe_spirv){.words = malloc(size + 1), .count = size / sizeof(uint32_t)};
    if (!module->words) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu bytes of SPIR-V.", size);
    memcpy(module->words, bytes, size);
    const char *fault = check_header(module, size);
    if (!fault) {
        module->bound = module->words[3];
        module->at = calloc(module->bound, sizeof *module->at);
        if (!module->at) {
            drupe_spirv_close(module);
            return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the ids of a SPIR-V module.");
        }
        fault = first_pass(&w);
    }
    if (!fault && !w.extended) fault = second_pass(&w);
    if (!fault) return DRUPE_OK;
    char where[64] = "";
    if (w.at) {
        snprintf(where, sizeof where, " (at byte %zu, instruction %u)", w.at * sizeof(uint32_t),
                 drupe_spirv_opcode(module, w.at));
    }
    drupe_spirv_close(module);
    return drupe_error_set(DRUPE_E_INVALID, "The program is no SPIR-V module (%zu bytes): %s%s.", size, fault,
                           where);
}

void drupe_spirv_name(const drupe_spirv *module, uint32_t id, char *name, size_t size)
{
    for (size_t at = SPIRV_HEADER_WORDS; at < module->count; at += drupe_spirv_length(module, at)) {
        if (drupe_spirv_opcode(module, at) != SPIRV_NAME || module->words[at + 1] != id) continue;
        snprintf(name, size, "%s", drupe_spirv_text(module, at + 2));
        return;
    }
}

void drupe_spirv_close(drupe_spirv *module)
{
    free(module->words);
    free(module->at);
    *module = (drupe_spirv){0};
}
