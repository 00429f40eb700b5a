/* From a source to a native program: what is checked before a driver sees it, the disk cache, the build.
 *
 * A program from the cache that its driver refuses is built from its source as if it had not been there.
 * Builds that take next to no time are not worth a file. */
#include "core/program/program_room.h"
#include <stdlib.h>
#include <string.h>

#define WORTH_NS UINT64_C(1000000)

static _Thread_local bool here;

void drupe_build_enter(bool enter)
{
    here = enter;
}

/* --- Checks --------------------------------------------------------------------------------------------- */

static const char *language_name(drupe_language language)
{
    switch (language) {
    case DRUPE_LANG_BUILTIN: return "built-in kernels";
    case DRUPE_LANG_OPENCL_C: return "OpenCL C";
    case DRUPE_LANG_SPIRV: return "SPIR-V";
    case DRUPE_LANG_BINARY: return "binary programs";
    case DRUPE_LANG_C: return "C";
    }
    return "this language";
}

static bool takes(drupe_device *device, drupe_language language)
{
    return drupe_device_number(device, DRUPE_INFO_LANGUAGES, 0) & (uint64_t)language;
}

/* A device of the loaded backends that takes the language, borrowed, or NULL. */
static drupe_device *taker_of(drupe_language language)
{
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        const drupe_slot *slot = drupe_slot_at(i);
        for (uint32_t d = 0; atomic_load(&slot->loaded) && d < slot->ndevices; d++)
            if (takes(slot->devices[d], language)) return slot->devices[d];
    }
    return NULL;
}

static drupe_status refuse(drupe_device *device, drupe_language language)
{
    const drupe_backend *backend = device->slot->backend;
    const char *advice = backend->program_advice ? backend->program_advice(device, language) : NULL;
    const drupe_device *taker = taker_of(language);
    drupe_text text = {0};
    if (advice) drupe_text_printf(&text, " %s", advice);
    if (taker)
        drupe_text_printf(&text, " drupe.Device(\"%s\") takes it.", taker->filter);
    else if (language == DRUPE_LANG_OPENCL_C)
        drupe_text_printf(&text, " Use drupe.Device(\"opencl:cpu\"), or another OpenCL device.");
    else if (!advice)
        drupe_text_printf(&text, " Give OpenCL C source to an OpenCL device instead.");
    drupe_error_set(DRUPE_E_UNSUPPORTED, "The device %s does not take %s.%s", device->filter,
                    language_name(language), drupe_text_get(&text));
    drupe_text_clear(&text);
    return DRUPE_E_UNSUPPORTED;
}

uint32_t drupe_source_traits(drupe_device *device, const drupe_source *source)
{
    const drupe_backend *backend = device->slot->backend;
    return backend->program_traits ? backend->program_traits(device, source) : 0;
}

drupe_status drupe_source_check(drupe_device *device, const drupe_source *source)
{
    if (source->language != DRUPE_LANG_BUILTIN && (!source->bytes || source->size == 0)) {
        return drupe_error_set(DRUPE_E_INVALID, "The program is empty.");
    }
    const bool taken =
        takes(device, source->language) || drupe_source_traits(device, source) & DRUPE_BUILD_TAKEN;
    if (!taken) return refuse(device, source->language);
    if (source->nvalues && source->language != DRUPE_LANG_SPIRV) {
        return drupe_error_set(DRUPE_E_INVALID,
                               "Specialisation constants are for SPIR-V; for %s use options "
                               "such as \"-DN=5\".",
                               language_name(source->language));
    }
    return DRUPE_OK;
}

/* --- Binaries ------------------------------------------------------------------------------------------- */

/* Keep what a binary, or a module, says about arguments; without memory what was known before stays. */
static drupe_status keep_args(drupe_program *program, drupe_span args)
{
    if (args.size == 0) return DRUPE_OK;
    void *copy = malloc(args.size);
    if (!copy) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the arguments of kernels.");
    memcpy(copy, args.bytes, args.size);
    free(program->args);
    program->args = copy;
    program->args_size = args.size;
    return DRUPE_OK;
}

/* The driver's part of a binary, borrowed from `source`. */
static drupe_status open_binary(drupe_program *program, drupe_source *source)
{
    const drupe_device *device = program->device;
    drupe_record record;
    if (!drupe_record_open(source->bytes, source->size, DRUPE_RECORD_PROGRAM, &record)) {
        return drupe_error_set(
            DRUPE_E_INVALID,
            "The binary of %zu bytes is damaged, or none that Program.binary gave. Build the "
            "program from its source again.",
            source->size);
    }
    drupe_text where = {0};
    drupe_key_where(&where, program->device);
    drupe_status status = drupe_text_check(&where);
    drupe_span made = record.parts[DRUPE_PART_WHERE];
    if (status == DRUPE_OK && (made.size != where.length || memcmp(made.bytes, where.data, made.size) != 0)) {
        status =
            drupe_error_set(DRUPE_E_INVALID,
                            "The binary was built for another device, driver or version of Drupe than that "
                            "of %s. Build the program from its source again.",
                            device->filter);
    }
    drupe_text_clear(&where);
    if (status == DRUPE_OK) status = keep_args(program, record.parts[DRUPE_PART_ARGS]);
    source->bytes = record.parts[DRUPE_PART_BODY].bytes;
    source->size = record.parts[DRUPE_PART_BODY].size;
    return status;
}

drupe_status drupe_program_binary(drupe_program *program, void **bytes, size_t *size)
{
    const drupe_backend *backend = program->object.backend;
    *bytes = NULL;
    *size = 0;
    DRUPE_TRY(drupe_core_check());
    if (!backend->program_binary || !takes(program->device, DRUPE_LANG_BINARY)) {
        return refuse(program->device, DRUPE_LANG_BINARY);
    }
    DRUPE_TRY(drupe_loss_check(program->device));
    void *body;
    size_t body_size;
    drupe_text where = {0}, args = {0};
    drupe_key_where(&where, program->device);
    drupe_status status = drupe_text_check(&where);
    if (status == DRUPE_OK) status = drupe_args_pack(program, &args);
    if (status == DRUPE_OK) status = backend->program_binary(program, &body, &body_size);
    if (status == DRUPE_OK) {
        drupe_record record = {.kind = DRUPE_RECORD_PROGRAM};
        record.parts[DRUPE_PART_WHERE] = (drupe_span){where.data, where.length};
        record.parts[DRUPE_PART_ARGS] = (drupe_span){args.data, args.length};
        record.parts[DRUPE_PART_BODY] = (drupe_span){body, body_size};
        status = drupe_record_pack(&record, bytes, size);
        free(body);
    }
    drupe_text_clear(&args);
    drupe_text_clear(&where);
    return status;
}

/* --- Building ------------------------------------------------------------------------------------------- */

static drupe_status build_native(drupe_program *program, const drupe_source *source, char **log)
{
    const drupe_backend *backend = program->object.backend;
    program->opened = true;
    bool compiles = source->language != DRUPE_LANG_BUILTIN && source->language != DRUPE_LANG_BINARY;
    bool told = here || source->flags & DRUPE_SOURCE_BACKGROUND;
    void *shown = compiles && !told ? drupe_core_building(source, program->device->filter) : NULL;
    drupe_status status = backend->program_open(program, source, log);
    drupe_core_built(shown, status == DRUPE_OK);
    DRUPE_TRY(status);
    if (!backend->program_names) return DRUPE_OK;
    /* Not knowing the names is no reason to refuse the program. */
    if (backend->program_names(program, &program->names) != DRUPE_OK) program->names = NULL;
    return DRUPE_OK;
}

/* Back to the state before build_native(). */
static void unbuild(drupe_program *program)
{
    program->object.backend->program_close(program);
    memset(program->object.native, 0, program->object.backend->size.program);
    program->opened = false;
    free(program->names);
    program->names = NULL;
}

/* One build that the cache may serve. */
typedef struct cached {
    drupe_text where, key;
} cached;

static bool build_from_cache(drupe_program *program, const cached *c, const drupe_source *source, char **log)
{
    void *bytes;
    drupe_record record;
    if (!drupe_cache_find(&c->where, &c->key, &bytes, &record)) return false;
    drupe_span body = record.parts[DRUPE_PART_BODY], text = record.parts[DRUPE_PART_LOG];
    drupe_source binary = {
        .language = DRUPE_LANG_BINARY, .bytes = body.bytes, .size = body.size, .options = source->options};
    char *messages = NULL;
    bool good = body.size > 0 && build_native(program, &binary, &messages) == DRUPE_OK &&
                keep_args(program, record.parts[DRUPE_PART_ARGS]) == DRUPE_OK;
    free(messages);
    if (good) {
        if (text.size) *log = strndup(text.bytes, text.size);
    } else {
        if (program->opened) unbuild(program);
        drupe_cache_reject(&c->where, &c->key);
    }
    free(bytes);
    return good;
}

static drupe_status not_stored(void)
{
    return drupe_error_set(DRUPE_E_NOT_FOUND, "The disk cache does not have this program.");
}

static drupe_status build_cached(drupe_program *program, const cached *c, const drupe_source *source,
                                 char **log)
{
    if (build_from_cache(program, c, source, log)) return DRUPE_OK;
    if (source->flags & DRUPE_SOURCE_STORED) return not_stored();
    uint64_t begin = drupe_now_ns();
    DRUPE_TRY(build_native(program, source, log));
    if (drupe_now_ns() - begin >= WORTH_NS)
        drupe_cache_add(program, source->language, &c->where, &c->key, *log);
    return DRUPE_OK;
}

static bool cacheable(const drupe_program *program, const drupe_source *source)
{
    return program->object.backend->program_binary && !(source->flags & DRUPE_SOURCE_UNCACHED) &&
           !(drupe_source_traits(program->device, source) & DRUPE_BUILD_QUICK) &&
           drupe_key_complete(source) && takes(program->device, DRUPE_LANG_BINARY);
}

static drupe_status build(drupe_program *program, const drupe_source *source, char **log)
{
    cached c = {{0}, {0}};
    const bool stored = source->flags & DRUPE_SOURCE_STORED;
    if (!cacheable(program, source)) return stored ? not_stored() : build_native(program, source, log);
    drupe_key_where(&c.where, program->device);
    drupe_key_source(&c.key, program->device, source);
    const bool known = !c.where.failed && !c.key.failed;
    drupe_status status = known    ? build_cached(program, &c, source, log)
                          : stored ? not_stored()
                                   : build_native(program, source, log);
    drupe_text_clear(&c.where);
    drupe_text_clear(&c.key);
    return status;
}

/* For drivers that do not tell what the module says. Before the build: the cache's thread reads it. */
static drupe_status keep_module_args(drupe_program *program, const drupe_source *source)
{
    drupe_text text = {0};
    drupe_spirv_args(source->bytes, source->size, &text);
    drupe_status status = drupe_text_check(&text);
    if (status == DRUPE_OK) status = keep_args(program, (drupe_span){text.data, text.length});
    drupe_text_clear(&text);
    return status;
}

static drupe_status build_any(drupe_program *program, const drupe_source *given, char **log)
{
    drupe_source source = *given;
    void *module = NULL;
    if (source.language == DRUPE_LANG_BINARY) DRUPE_TRY(open_binary(program, &source));
    if (source.language == DRUPE_LANG_SPIRV) {
        DRUPE_TRY(drupe_spirv_specialise(given, &module, &source.size));
        source.bytes = module;
        source.values = NULL;
        source.nvalues = 0;
    }
    drupe_status status = module ? keep_module_args(program, &source) : DRUPE_OK;
    if (status == DRUPE_OK) status = build(program, &source, log);
    free(module);
    return status;
}

drupe_status drupe_program_build(drupe_program *program, const drupe_source *source, char **log)
{
    drupe_activity_begin();
    drupe_status status = build_any(program, source, log);
    drupe_activity_end();
    return status;
}
