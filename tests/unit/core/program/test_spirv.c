/* SPIR-V modules: what is let through to a driver, and the constants in them. */
#include "core/program/program_room.h"
#include "drupe/program.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint32_t constants[] = {
#include "tests/spirv/constants.inc"
};

#define WORDS (sizeof constants / sizeof *constants)

static drupe_status check(const void *bytes, size_t size)
{
    drupe_spec_constant *list;
    size_t count;
    drupe_status status = drupe_spirv_constants(bytes, size, &list, &count);
    if (status == DRUPE_OK) free(list);
    return status;
}

static void refused(const void *bytes, size_t size, const char *part)
{
    assert_int_equal(check(bytes, size), DRUPE_E_INVALID);
    if (!strstr(drupe_error_last()->text, part))
        fail_msg("'%s' is not in: %s", part, drupe_error_last()->text);
}

/* The index of the `skip`-th instruction with this opcode. */
static size_t find(const uint32_t *words, uint32_t opcode, int skip)
{
    for (size_t at = 5; at < WORDS; at += words[at] >> 16)
        if ((words[at] & 0xffff) == opcode && skip-- == 0) return at;
    fail_msg("the module has no instruction %u", opcode);
    return 0;
}

static void whole_module(void **state)
{
    (void)state;
    assert_int_equal(check(constants, sizeof constants), DRUPE_OK);
    /* At an odd address too. */
    char *odd = malloc(sizeof constants + 1);
    assert_non_null(odd);
    memcpy(odd + 1, constants, sizeof constants);
    assert_int_equal(check(odd + 1, sizeof constants), DRUPE_OK);
    free(odd);
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof constants; size++) {
        char *copy = malloc(size ? size : 1); /* so that a reader that goes on is seen */
        assert_non_null(copy);
        memcpy(copy, constants, size);
        assert_int_equal(check(copy, size), DRUPE_E_INVALID);
        free(copy);
    }
}

static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        uint32_t opcode;
        int skip;
        size_t word;
        uint32_t value;
        const char *part;
    } cases[] = {
        {14, 0, 1, 0, "graphics"},
        {14, 0, 2, 1, "graphics"},
        {15, 0, 1, 5, "graphics"},
        {15, 0, 2, 7, "no function"},
        {43, 0, 2, 0x13, "twice"},
        {43, 0, 2, 0x22, "beyond its bound"},
        {43, 0, 1, 0x0e, "type is none"},
        {62, 0, 2, 0, "beyond its bound"},
        {70, 0, 3, 0xffffffff, "beyond its bound"},
        {54, 0, 0, 0x00050038, "where none may"},
        {253, 0, 0, 0x000100fe, "too short"},
        {253, 0, 0, 0x00010000, "where none may"},
        {5, 0, 3, 0xffffffff, "does not end"},
        {19, 0, 0, 0x00020011, "wrong order"},
    };
    uint32_t copy[WORDS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(copy, constants, sizeof copy);
        size_t at = find(copy, cases[i].opcode, cases[i].skip) + cases[i].word;
        copy[at] = cases[i].value;
        if (cases[i].opcode == 5) copy[at - 1] = 0xffffffff;
        refused(copy, sizeof copy, cases[i].part);
    }
    memcpy(copy, constants, sizeof copy);
    copy[find(copy, 17, 1) + 1] = 4; /* Addresses twice, Kernel never */
    refused(copy, sizeof copy, "made for OpenCL");
    memcpy(copy, constants, sizeof copy);
    for (size_t header = 0; header < 5; header++) {
        if (header == 2) continue; /* who made it */
        copy[header] ^= 0x80000000u;
        refused(copy, sizeof copy, "no SPIR-V module");
        copy[header] ^= 0x80000000u;
    }
    for (size_t i = 0; i < WORDS; i++) copy[i] = __builtin_bswap32(constants[i]);
    refused(copy, sizeof copy, "byte order");
    refused("kernel void f() {}  ", 20, "magic number");
}

/* Random damage: whatever the answer is, nothing outside of the module is touched. */
static void damage(void **state)
{
    (void)state;
    uint32_t *copy = malloc(sizeof constants);
    unsigned seed = 1, kept = 0;
    assert_non_null(copy);
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, constants, sizeof constants);
        for (int change = 0; change <= round % 4; change++) {
            seed = seed * 1103515245u + 12345u;
            size_t at = (seed >> 8) % WORDS;
            seed = seed * 1103515245u + 12345u;
            copy[at] = round % 3 == 0 ? seed : copy[at] ^ (1u << ((seed >> 8) % 32));
        }
        drupe_spec_constant *list;
        size_t count;
        kept += drupe_spirv_constants(copy, sizeof constants, &list, &count) == DRUPE_OK;
        free(list);
        drupe_text args = {0};
        drupe_spirv_args(copy, sizeof constants, &args);
        drupe_text_clear(&args);
    }
    free(copy);
    /* Many bits are values, which may be anything. */
    assert_uint_in_range(kept, 1, 15000);
}

static void constants_are_listed(void **state)
{
    (void)state;
    static const struct {
        uint32_t id, bytes;
        char type;
        const char *name;
        uint64_t value;
    } expected[] = {{0, 4, 'i', "count", 41},
                    {7, 4, 'f', "factor", 0x3fc00000},
                    {3, 1, 'b', "flag", 1},
                    {4000000000u, 8, 'i', "wide", 4294967298u},
                    {5, 2, 'i', "", 9}};
    drupe_spec_constant *list;
    size_t count;
    assert_int_equal(drupe_spirv_constants(constants, sizeof constants, &list, &count), DRUPE_OK);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        memcpy(&value, list[i].value, 8);
        assert_int_equal(list[i].id, expected[i].id);
        assert_int_equal(list[i].bytes, expected[i].bytes);
        assert_int_equal(list[i].type, expected[i].type);
        assert_string_equal(list[i].name, expected[i].name);
        assert_int_equal(value, expected[i].value);
    }
    free(list);
    assert_int_equal(drupe_spirv_constants("abcd", 4, &list, &count), DRUPE_E_INVALID);
    assert_null(list);
}

/* What the first five constants of `words` are with these values set. */
static drupe_status set(const uint32_t *words, const drupe_spec_value *values, size_t nvalues,
                        drupe_spec_constant found[5])
{
    void *bytes;
    size_t size, count;
    drupe_spec_constant *list;
    const drupe_source source = {.language = DRUPE_LANG_SPIRV,
                                 .bytes = words,
                                 .size = sizeof constants,
                                 .values = values,
                                 .nvalues = nvalues};
    const drupe_status status = drupe_spirv_specialise(&source, &bytes, &size);
    memset(found, 0, 5 * sizeof *found);
    if (status == DRUPE_OK && drupe_spirv_constants(bytes, size, &list, &count) == DRUPE_OK) {
        memcpy(found, list, (count < 5 ? count : 5) * sizeof *found);
        free(list);
    }
    free(bytes);
    return status;
}

static void constants_are_set(void **state)
{
    (void)state;
    static const uint8_t flags[] = {0, 1, 0};
    static const uint64_t wide = 0x123456789abcdef0;
    static const float factor = -2;
    drupe_spec_constant found[5];
    for (size_t i = 0; i < sizeof flags; i++) {
        const drupe_spec_value values[] = {{3, 1, &flags[i]}, {4000000000u, 8, &wide}, {7, 4, &factor}};
        assert_int_equal(set(constants, values, 3, found), DRUPE_OK);
        assert_int_equal(found[2].value[0], flags[i]);
        assert_memory_equal(found[3].value, &wide, sizeof wide);
        assert_memory_equal(found[1].value, &factor, sizeof factor);
        assert_int_equal(found[0].value[0], 41); /* as it was */
    }
}

static void values_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    const int32_t number = 5;
    const drupe_spec_value unknown = {77, 4, &number}, good = {0, 4, &number}, none = {0, 4, NULL};
    drupe_spec_constant found[5];
    uint32_t copy[WORDS];
    /* The first that is wrong is told. */
    assert_int_equal(set(constants, (const drupe_spec_value[]){good, unknown, none}, 3, found),
                     DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "with the number 77."));
    assert_int_equal(set(constants, &none, 1, found), DRUPE_E_INVALID);
    memcpy(copy, constants, sizeof copy);
    copy[find(copy, 21, 0) + 2] = 24; /* bits, of which no value can be given */
    assert_int_equal(set(copy, &good, 1, found), DRUPE_E_NOT_FOUND);
    copy[0] = 0;
    assert_int_equal(set(copy, &good, 1, found), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "magic number"));
}

/* Of types that constants do not have, with values that do not fit the type, or without a value to be set. */
static void odd_constants_are_passed_over(void **state)
{
    (void)state;
    static const struct {
        uint32_t opcode, word, from; /* this word of the first such instruction becomes the id that .. */
        uint32_t value;              /* .. the first instruction `from` has, or this value */
    } cases[] = {{50, 1, 20, 0}, {50, 1, 19, 0}, {48, 0, 0, 3u << 16 | 41}, {50, 0, 0, 4u << 16 | 43}};
    uint32_t copy[WORDS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drupe_spec_constant *list;
        size_t count = 0;
        memcpy(copy, constants, sizeof copy);
        copy[find(copy, cases[i].opcode, 0) + cases[i].word] =
            cases[i].from ? copy[find(copy, cases[i].from, 0) + 1] : cases[i].value;
        assert_int_equal(drupe_spirv_constants(copy, sizeof copy, &list, &count), DRUPE_OK);
        assert_int_equal(count, 4);
        free(list);
    }
    /* One word for a number of 64 bits. */
    drupe_spec_constant found[5];
    const double wide = 1;
    const drupe_spec_value value = {0, sizeof wide, &wide};
    memcpy(copy, constants, sizeof copy);
    copy[find(copy, 50, 0) + 1] = copy[find(copy, 21, 2) + 1];
    assert_int_equal(set(copy, &value, 1, found), DRUPE_E_NOT_FOUND);
}

/* Ids of a module with instructions of extensions are not checked: decorations may be of any. */
static void decorations_of_nothing_are_passed_over(void **state)
{
    (void)state;
    static const uint32_t targets[] = {0, 0x7fffffff};
    uint32_t copy[WORDS];
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        drupe_spec_constant *list;
        size_t count = 0;
        memcpy(copy, constants, sizeof copy);
        copy[find(copy, 62, 0)] = 5u << 16 | 9999;
        copy[find(copy, 71, 0) + 1] = targets[i];
        assert_int_equal(drupe_spirv_constants(copy, sizeof copy, &list, &count), DRUPE_OK);
        assert_int_equal(count, 4);
        assert_int_equal(list[0].id, 7);
        free(list);
    }
}

static void known_args(const drupe_text *text, const char *kernel, size_t count,
                       const drupe_arg_info *expected)
{
    drupe_arg_info found[8];
    assert_true(drupe_args_find((drupe_span){text->data, text->length}, kernel, (uint32_t)count, found));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(found[i].kind, expected[i].kind);
        assert_int_equal(found[i].scalar, expected[i].scalar);
        assert_int_equal(found[i].either_sign, expected[i].either_sign);
        assert_int_equal(found[i].lanes, 1);
        assert_string_equal(found[i].type_name, expected[i].type_name);
        assert_string_equal(found[i].name, expected[i].name);
    }
}

static void arguments_are_told(void **state)
{
    (void)state;
    drupe_text text = {0};
    drupe_spirv_args(constants, sizeof constants, &text);
    known_args(&text, "constants", 1,
               (const drupe_arg_info[]){{.scalar = DRUPE_SCALAR_UNKNOWN, .type_name = "int*"}});
    drupe_text_clear(&text);
    drupe_spirv_args(constants, sizeof constants - 4, &text);
    assert_int_equal(text.length, 0);
    drupe_text_clear(&text);
    /* A parameter of a type that is none of a kernel's: the kernel is left out. */
    uint32_t copy[WORDS];
    memcpy(copy, constants, sizeof constants);
    size_t pointer = find(copy, 32, 0);
    copy[pointer + 2] = 1; /* storage Input */
    drupe_spirv_args(copy, sizeof copy, &text);
    assert_int_equal(text.length, 0);
    drupe_text_clear(&text);
}

/* With a name for the argument, and with the types as a translator may leave them. */
static void arguments_as_written(void **state)
{
    (void)state;
    static const char types[36] = "kernel_arg_type.constants.uint*,";
    uint32_t words[WORDS + 2 + sizeof types / 4];
    size_t at = find(constants, 5, 0), added = 2 + sizeof types / 4;
    memcpy(words, constants, at * 4);
    words[at] = (uint32_t)(added << 16 | 7);
    words[at + 1] = words[3]++; /* a new id */
    memcpy(words + at + 2, types, sizeof types);
    memcpy(words + at + added, constants + at, (WORDS - at) * 4);
    words[at + added + 1] =
        words[added + find(constants, 55, 0) + 2]; /* "count" is the parameter's name now */
    drupe_text text = {0};
    drupe_spirv_args(words, sizeof words, &text);
    known_args(&text, "constants", 1,
               (const drupe_arg_info[]){{.scalar = DRUPE_SCALAR_U32, .name = "count", .type_name = "uint*"}});
    drupe_text_clear(&text);
}

static bool module_prints(const uint32_t *words, size_t count)
{
    const drupe_source source = {.language = DRUPE_LANG_SPIRV, .bytes = words, .size = 4 * count};
    return drupe_prints_source(&source);
}

static void what_prints(void **state)
{
    (void)state;
    uint32_t words[WORDS + 6];
    assert_false(module_prints(constants, WORDS));
    memcpy(words, constants, sizeof constants);
    uint32_t call[] = {6u << 16 | 12, 1, 2, 3, 184, 4};
    memcpy(words + WORDS, call, sizeof call);
    assert_true(module_prints(words, WORDS + 6));
    assert_false(module_prints(words, WORDS + 4)); /* cut */
    words[WORDS + 4] = 183;
    assert_false(module_prints(words, WORDS + 6));
    words[WORDS + 4] = 184;
    words[WORDS] = 4u << 16 | 12; /* too short to name one */
    assert_false(module_prints(words, WORDS + 6));
    words[5] &= 0xffff; /* an instruction without a length */
    assert_false(module_prints(words, WORDS + 6));
    assert_false(module_prints(words, 0));
    const char *text = "kernel void f() { printf(0); }";
    drupe_source source = {.language = DRUPE_LANG_OPENCL_C, .bytes = text, .size = strlen(text)};
    assert_true(drupe_prints_source(&source));
    source.size = 20;
    assert_false(drupe_prints_source(&source));
    source = (drupe_source){.language = DRUPE_LANG_BUILTIN};
    assert_false(drupe_prints_source(&source));
}

/* A module made by a compiler, where the build has found one. */
static void compiled_module(void **state)
{
    (void)state;
    const char *path = getenv("DRUPE_TEST_SPIRV");
    FILE *file = path && *path ? fopen(path, "rb") : NULL;
    if (!file) {
        print_message("skipped: clang and llvm-spirv were not found when the tests were built\n");
        skip();
    }
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    size_t size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    assert_int_equal(check(bytes, size), DRUPE_OK);
    refused(bytes, size - 4, "cut off");
    drupe_text text = {0};
    drupe_spirv_args(bytes, size, &text);
    known_args(
        &text, "scale", 3,
        (const drupe_arg_info[]){
            {.scalar = DRUPE_SCALAR_F32, .type_name = "float*"},
            {.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_F32, .type_name = "float"},
            {.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_I64, .type_name = "long", .either_sign = true}});
    known_args(
        &text, "reverse", 2,
        (const drupe_arg_info[]){{.type_name = "int*"}, {.kind = DRUPE_ARG_LOCAL, .type_name = "int*"}});
    drupe_text_clear(&text);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_module),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(damage),
        cmocka_unit_test(constants_are_listed),
        cmocka_unit_test(compiled_module),
        cmocka_unit_test(what_prints),
        cmocka_unit_test(arguments_are_told),
        cmocka_unit_test(arguments_as_written),
        cmocka_unit_test(constants_are_set),
        cmocka_unit_test(values_that_do_not_fit_are_refused),
        cmocka_unit_test(odd_constants_are_passed_over),
        cmocka_unit_test(decorations_of_nothing_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
