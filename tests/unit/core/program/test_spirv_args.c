/* What small SPIR-V modules say about their kernels: each is put together from a template and the few
 * instructions that a case is about. */
#include "core/program/spirv.h"
#include "drupe/program.h"
#include "walk/wrap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- A module with one kernel "k" of one parameter ------------------------------------------------------ */

enum { VOID = 1, SIGNATURE, MAIN, LABEL, GIVEN, TEXT, LAST = 15, BOUND = 16 };
enum { TYPE = 8, ELEMENT, UNSEEN }; /* of the parameter, what it is made of, an id that nothing defines */
#define OF(opcode, length) ((uint32_t)(length) << 16 | (opcode))
#define UNKNOWN            OF(9999, 1) /* an instruction of an extension: ids are not looked for then */

#define MOST 12
typedef struct parts {
    const char *text;      /* an OpString */
    uint32_t types[MOST];  /* TYPE among them; 0 ends it */
    uint32_t before[MOST]; /* what stands between the parameter and the block, */
    uint32_t inside[MOST]; /* and what in the block */
    uint32_t entry;        /* the id of the kernel; 0: MAIN */
} parts;

static struct module {
    uint32_t words[128];
    size_t count;
} module;

static void put(const uint32_t *words, size_t count)
{
    memcpy(module.words + module.count, words, count * sizeof *words);
    module.count += count;
}
#define PUT(...)                                                                                             \
    put((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Instructions until the first word that is none. */
static void put_list(const uint32_t *words)
{
    for (size_t at = 0; at < MOST && words[at];) {
        put(words + at, words[at] >> 16);
        at += words[at] >> 16;
    }
}

static void put_string(const char *text)
{
    uint32_t words[16] = {0};
    const size_t length = strlen(text) / 4 + 1;
    memcpy(words, text, strlen(text));
    PUT(OF(SPIRV_STRING, 2 + length), TEXT);
    put(words, length);
}

static void assemble(const parts *p)
{
    module = (struct module){.count = 0};
    PUT(0x07230203, 0x00010000, 0, BOUND, 0);
    PUT(OF(SPIRV_CAPABILITY, 2), 6);
    PUT(OF(SPIRV_MEMORY_MODEL, 3), 2, 2);
    PUT(OF(SPIRV_ENTRY_POINT, 4), 6, p->entry ? p->entry : MAIN, 'k');
    if (p->text) put_string(p->text);
    PUT(OF(19, 2), VOID);
    put_list(p->types);
    PUT(OF(SPIRV_TYPE_FUNCTION, 4), SIGNATURE, VOID, TYPE);
    PUT(OF(SPIRV_FUNCTION, 5), VOID, MAIN, 0, SIGNATURE);
    PUT(OF(SPIRV_FUNCTION_PARAMETER, 3), TYPE, GIVEN);
    put_list(p->before);
    PUT(OF(SPIRV_LABEL, 2), LABEL);
    put_list(p->inside);
    PUT(OF(253, 1));
    PUT(OF(SPIRV_FUNCTION_END, 1));
}

static size_t bytes_of_module(void)
{
    return module.count * sizeof *module.words;
}

/* Whether the module tells the argument of "k". */
static bool told(const parts *p, drupe_arg_info *info)
{
    drupe_text text = {0};
    assemble(p);
    drupe_spirv_args(module.words, bytes_of_module(), &text);
    const drupe_span packed = {text.data, text.length};
    const bool found = drupe_args_find(packed, "k", 1, info);
    drupe_text_clear(&text);
    return found;
}

/* --- Types of arguments --------------------------------------------------------------------------------- */

#define INT(id, bits)            OF(SPIRV_TYPE_INT, 4), id, bits, 0
#define FLOAT(id, bits)          OF(SPIRV_TYPE_FLOAT, 3), id, bits
#define VECTOR(id, of, lanes)    OF(SPIRV_TYPE_VECTOR, 4), id, of, lanes
#define POINTER(id, storage, to) OF(SPIRV_TYPE_POINTER, 4), id, storage, to
enum { CONSTANT = 0, INPUT = 1, LOCAL = 4, GLOBAL = 5, BY_VALUE = 7 };

static bool same_info(const drupe_arg_info *a, const drupe_arg_info *b)
{
    return a->kind == b->kind && a->scalar == b->scalar && a->lanes == b->lanes &&
           strcmp(a->name, b->name) == 0 && strcmp(a->type_name, b->type_name) == 0 &&
           a->reads_only == b->reads_only && a->either_sign == b->either_sign;
}

static void types_become_arguments(void **state)
{
    (void)state;
    static const struct {
        uint32_t types[MOST];
        drupe_arg_info info;
    } cases[] = {
        {{FLOAT(TYPE, 32)}, {DRUPE_ARG_VALUE, DRUPE_SCALAR_F32, 1, "", "float", false, false}},
        {{FLOAT(TYPE, 16)}, {DRUPE_ARG_VALUE, DRUPE_SCALAR_F16, 1, "", "half", false, false}},
        {{INT(TYPE, 64)}, {DRUPE_ARG_VALUE, DRUPE_SCALAR_I64, 1, "", "long", false, true}},
        {{FLOAT(ELEMENT, 64), VECTOR(TYPE, ELEMENT, 4)},
         {DRUPE_ARG_VALUE, DRUPE_SCALAR_F64, 4, "", "double4", false, false}},
        {{INT(ELEMENT, 16), VECTOR(TYPE, ELEMENT, 16)},
         {DRUPE_ARG_VALUE, DRUPE_SCALAR_I16, 16, "", "short16", false, true}},
        {{OF(SPIRV_TYPE_STRUCT, 3), TYPE, VOID},
         {DRUPE_ARG_VALUE, DRUPE_SCALAR_UNKNOWN, 1, "", "", false, false}},
        {{POINTER(TYPE, BY_VALUE, VOID)}, {DRUPE_ARG_VALUE, DRUPE_SCALAR_UNKNOWN, 1, "", "", false, false}},
        {{FLOAT(ELEMENT, 32), POINTER(TYPE, GLOBAL, ELEMENT)},
         {DRUPE_ARG_POINTER, DRUPE_SCALAR_F32, 1, "", "float*", false, false}},
        {{FLOAT(ELEMENT, 32), POINTER(TYPE, CONSTANT, ELEMENT)},
         {DRUPE_ARG_POINTER, DRUPE_SCALAR_F32, 1, "", "float*", true, false}},
        {{FLOAT(ELEMENT, 32), POINTER(TYPE, LOCAL, ELEMENT)},
         {DRUPE_ARG_LOCAL, DRUPE_SCALAR_F32, 1, "", "float*", false, false}},
        {{INT(ELEMENT, 8), POINTER(TYPE, GLOBAL, ELEMENT)}, /* of either sign: points to anything */
         {DRUPE_ARG_POINTER, DRUPE_SCALAR_UNKNOWN, 1, "", "char*", false, false}},
        {{OF(SPIRV_TYPE_STRUCT, 2), ELEMENT, POINTER(TYPE, GLOBAL, ELEMENT)},
         {DRUPE_ARG_POINTER, DRUPE_SCALAR_UNKNOWN, 1, "", "void*", false, false}},
        {{VECTOR(ELEMENT, VOID, 17), POINTER(TYPE, GLOBAL, ELEMENT)},
         {DRUPE_ARG_POINTER, DRUPE_SCALAR_UNKNOWN, 1, "", "void*", false, false}},
        {{UNKNOWN, POINTER(TYPE, GLOBAL, UNSEEN)},
         {DRUPE_ARG_POINTER, DRUPE_SCALAR_UNKNOWN, 1, "", "void*", false, false}},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        parts p = {.text = NULL};
        drupe_arg_info info;
        memcpy(p.types, cases[i].types, sizeof p.types);
        if (!told(&p, &info)) fail_msg("case %zu is not told", i);
        if (!same_info(&info, &cases[i].info))
            fail_msg("case %zu: kind %u, scalar %u, lanes %u, '%s'", i, info.kind, info.scalar, info.lanes,
                     info.type_name);
    }
}

static void types_that_are_no_arguments(void **state)
{
    (void)state;
    static const parts cases[] = {
        {.types = {OF(SPIRV_TYPE_BOOL, 2), TYPE}},
        {.types = {INT(TYPE, 24)}},
        {.types = {FLOAT(ELEMENT, 32), VECTOR(TYPE, ELEMENT, 0)}},
        {.types = {FLOAT(ELEMENT, 32), VECTOR(TYPE, ELEMENT, 32)}},
        {.types = {FLOAT(ELEMENT, 32), OF(SPIRV_TYPE_VECTOR, 5), TYPE, ELEMENT, 4, 4}},
        {.types = {FLOAT(ELEMENT, 32), POINTER(TYPE, INPUT, ELEMENT)}},
        /* Extensions may define what is used: such modules pass, and tell nothing. */
        {.types = {UNKNOWN}},
        {.types = {UNKNOWN, VECTOR(TYPE, UNSEEN, 4)}},
        {.types = {UNKNOWN, FLOAT(TYPE, 32)}, .entry = UNSEEN},
        {.types = {UNKNOWN, FLOAT(TYPE, 32)}, .entry = TYPE},
        {.types = {UNKNOWN, FLOAT(TYPE, 32)}, .entry = LAST + 100},
    };
    drupe_arg_info info;
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        drupe_spec_constant *list;
        size_t count;
        if (told(&cases[i], &info)) fail_msg("case %zu is told", i);
        assert_int_equal(drupe_spirv_constants(module.words, bytes_of_module(), &list, &count), DRUPE_OK);
        assert_int_equal(count, 0);
    }
}

/* The text counts that is this kernel's. */
static void types_are_taken_as_written(void **state)
{
    (void)state;
    static const struct {
        const char *text, *type;
        drupe_scalar_type scalar;
    } cases[] = {{"kernel_arg_type.k.uint,", "uint", DRUPE_SCALAR_U32},
                 {"kernel_arg_type.k.int,", "int", DRUPE_SCALAR_I32},
                 {"kernel_arg_type.kk.uint,", "int", DRUPE_SCALAR_I32},
                 {"kernel_arg_type.j.uint,", "int", DRUPE_SCALAR_I32},
                 {"kernel_arg_name.k.uint,", "int", DRUPE_SCALAR_I32}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        const parts p = {.text = cases[i].text, .types = {INT(TYPE, 32)}};
        drupe_arg_info info;
        assert_true(told(&p, &info));
        assert_string_equal(info.type_name, cases[i].type);
        assert_int_equal(info.scalar, cases[i].scalar);
        assert_int_equal(info.either_sign, i > 1);
    }
}

/* --- Shape of the functions ----------------------------------------------------------------------------- */

static void blocks_stand_in_functions(void **state)
{
    (void)state;
    static const struct {
        parts p;
        const char *fault; /* NULL: none */
    } cases[] = {
        {{.before = {OF(0, 1), OF(317, 1)}}, NULL},                 /* these two may stand anywhere, */
        {{.text = "file", .before = {OF(8, 4), TEXT, 1, 2}}, NULL}, /* and the line of a source */
        {{.before = {OF(62, 3), GIVEN, GIVEN}}, "outside of a block"},
        {{.inside = {OF(SPIRV_LABEL, 2), LAST}}, "a block begins where none may"},
        {{.inside = {OF(SPIRV_FUNCTION_PARAMETER, 3), TYPE, LAST}}, "outside of a function's head"},
        {{.inside = {OF(1, 3), TYPE, LAST}}, NULL},
        {{.inside = {OF(1, 3), GIVEN, LAST}}, "a type is none"},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        drupe_spirv opened;
        parts p = cases[i].p;
        memcpy(p.types, (const uint32_t[]){FLOAT(TYPE, 32)}, 3 * sizeof *p.types);
        assemble(&p);
        const drupe_status status = drupe_spirv_open(module.words, bytes_of_module(), &opened);
        assert_int_equal(status, cases[i].fault ? DRUPE_E_INVALID : DRUPE_OK);
        if (!cases[i].fault)
            drupe_spirv_close(&opened);
        else if (!strstr(drupe_error_last()->text, cases[i].fault))
            fail_msg("'%s' is not in: %s", cases[i].fault, drupe_error_last()->text);
    }
}

/* Types that are none of the format's first ones: of pipes and of named barriers. */
static void later_types_are_types(void **state)
{
    (void)state;
    static const uint32_t opcodes[] = {322, 327};
    for (size_t i = 0; i < DRUPE_COUNT_OF(opcodes); i++) {
        const parts p = {.types = {OF(opcodes[i], 2), TYPE}};
        drupe_spirv opened;
        assemble(&p);
        assert_int_equal(drupe_spirv_open(module.words, bytes_of_module(), &opened), DRUPE_OK);
        assert_int_equal(opened.at[TYPE] > 0, 1);
        drupe_spirv_close(&opened);
    }
}

/* --- Without memory ------------------------------------------------------------------------------------- */

static bool nothing_or_all(unsigned long n, size_t whole)
{
    drupe_text text = {0};
    wrap_plan(WRAP_MALLOC, n);
    drupe_spirv_args(module.words, bytes_of_module(), &text);
    const bool made = wrap_made() > 0;
    wrap_plan(WRAP_NOTHING, 0);
    assert_true(made || text.length == whole);
    assert_int_equal(text.failed, made);
    drupe_text_clear(&text);
    return made;
}

static void without_memory_nothing_is_told(void **state)
{
    (void)state;
    const parts p = {.types = {FLOAT(TYPE, 32)}};
    const size_t whole = strlen("k") + 1 + sizeof(uint32_t) + sizeof(drupe_arg_info);
    unsigned long n = 1;
    assemble(&p);
    while (nothing_or_all(n, whole)) n++;
    assert_true(n > 3); /* the words, the ids, the arguments */
}

static void without_memory_nothing_is_listed(void **state)
{
    (void)state;
    const parts p = {.types = {FLOAT(TYPE, 32)}};
    drupe_spec_constant *list;
    size_t count;
    unsigned long n = 1;
    assemble(&p);
    for (bool made = true; made; n++) {
        wrap_plan(WRAP_MALLOC, n);
        const drupe_status status = drupe_spirv_constants(module.words, bytes_of_module(), &list, &count);
        made = wrap_made() > 0;
        wrap_plan(WRAP_NOTHING, 0);
        assert_int_equal(status, made ? DRUPE_E_NO_MEMORY : DRUPE_OK);
        if (made) assert_non_null(strstr(drupe_error_last()->text, "No memory for "));
        assert_null(list);
        assert_int_equal(count, 0);
    }
    assert_int_equal(n, 5); /* the words, the ids and the list failed once each */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_become_arguments),
        cmocka_unit_test(types_that_are_no_arguments),
        cmocka_unit_test(types_are_taken_as_written),
        cmocka_unit_test(blocks_stand_in_functions),
        cmocka_unit_test(later_types_are_types),
        cmocka_unit_test(without_memory_nothing_is_told),
        cmocka_unit_test(without_memory_nothing_is_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
