/* One text through libtcc.
 *
 * libtcc allocates, and writes code, in its own ways: where it would give code rights, or end the process
 * because there is no memory, the linker leads it here instead (--wrap). So it does with what libtcc takes of
 * the C library's data, because its objects are made for programs and not for shared libraries. */
#include "quick/tcc.h"
#include <libtcc.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096

static struct {
    pthread_mutex_t lock;
    jmp_buf out;    /* of libtcc, from wherever it gives up */
    locale_t plain; /* numbers have points */
} compiler = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- What libtcc meets instead of the C library ----------------------------------------------------------
 */

FILE *__wrap_stdout, *__wrap_stderr;
char **__wrap_environ;
_Noreturn void __wrap_exit(int status);
int __wrap_mprotect(void *address, size_t size, int rights);

_Noreturn void __wrap_exit(int status)
{
    longjmp(compiler.out, status ? status : 1);
}

/* See tcc_memory.c. */
int __wrap_mprotect(void *address, size_t size, int rights)
{
    (void)address, (void)size, (void)rights;
    return 0;
}

/* --- One text --------------------------------------------------------------------------------------------
 */

/* The first object of all: what comes before it are instructions. */
#define DATA "drupe_quick_data_"
static const char mark[] = "const char " DATA "[64] __attribute__((aligned(4096))) = {1};\n";

typedef struct work {
    const drupe_quick_text *text;
    drupe_quick_code *code;
    drupe_tcc_memory memory;
    char *whole; /* the mark and the text */
    bool wrong;  /* there was a warning that is an error here */
} work;

/* A function that is not declared would be taken for one that returns int. */
static void hear(void *user, const char *message)
{
    work *w = user;
    if (strstr(message, "implicit declaration of function")) w->wrong = true;
    w->text->tell(w->text->user, message);
}

static drupe_quick_result unable(const work *w, const char *why)
{
    w->text->tell(w->text->user, why);
    return DRUPE_QUICK_UNABLE;
}

static drupe_quick_result missing(const work *w)
{
    char what[160];
    snprintf(what, sizeof what, "error: '%.100s' is not defined", w->text->symbol);
    w->text->tell(w->text->user, what);
    return DRUPE_QUICK_ERRORS;
}

static bool prepare(TCCState *state, work *w)
{
    tcc_set_error_func(state, w, hear);
    tcc_set_options(state, "-nostdlib -nostdinc -Wimplicit-function-declaration");
    if (tcc_set_output_type(state, TCC_OUTPUT_MEMORY) < 0) return false;
    for (const drupe_tcc_function *one = drupe_tcc_functions; one->name; one++) {
        void *address;
        memcpy(&address, &one->address, sizeof address);
        if (tcc_add_symbol(state, one->name, address) < 0) return false;
    }
    for (size_t i = 0; i < w->text->ndefines; i++) {
        char name[256];
        const char *define = w->text->defines[i], *equal = strchr(define, '=');
        const size_t length = equal ? (size_t)(equal - define) : strlen(define);
        snprintf(name, sizeof name, "%.*s", (int)length, define);
        tcc_define_symbol(state, name, equal ? equal + 1 : "1");
    }
    return true;
}

/* A function of libtcc's begins with push %rbp, mov %rsp, %rbp, sub $FRAME, %rsp. It touches its frame in any
 * order, and so could step over the pages behind the end of a stack. */
static unsigned largest_frame(const char *code, const char *end)
{
    unsigned largest = 0;
    static const unsigned char begin[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec};
    while ((code = memmem(code, (size_t)(end - code), begin, sizeof begin))) {
        unsigned frame;
        code += sizeof begin;
        if ((size_t)(end - code) < sizeof frame) break;
        memcpy(&frame, code, sizeof frame);
        if (frame > largest) largest = frame;
    }
    return largest;
}

static drupe_quick_result finish(TCCState *state, work *w)
{
    const drupe_tcc_memory *memory = &w->memory;
    const char *data = tcc_get_symbol(state, DATA);
    w->code->object = tcc_get_symbol(state, w->text->symbol);
    if (!data || data < memory->start || data >= memory->start + memory->size || (uintptr_t)data % PAGE)
        return unable(w, "error: libtcc did not keep code and data apart");
    if (!w->code->object) return missing(w);
    const unsigned frame = largest_frame(memory->start, data);
    if (frame > DRUPE_QUICK_FRAME) {
        char why[96];
        snprintf(why, sizeof why, "error: a function has variables of %u bytes, more than %u", frame,
                 DRUPE_QUICK_FRAME);
        return unable(w, why);
    }
    w->code->code = (uintptr_t)memory->start;
    w->code->code_size = (size_t)(data - memory->start);
    if (drupe_tcc_memory_seal(&w->memory, data)) return DRUPE_QUICK_DONE;
    return unable(w, "error: the system does not let new code be executed");
}

static drupe_quick_result steps(TCCState *state, work *w)
{
    if (!prepare(state, w)) return DRUPE_QUICK_NO_MEMORY;
    if (tcc_compile_string(state, w->whole) < 0 || w->wrong) return DRUPE_QUICK_ERRORS;
    const int size = tcc_relocate(state, NULL);
    if (size < 0) return DRUPE_QUICK_ERRORS;
    if (!drupe_tcc_memory_open(&w->memory, (size_t)size)) return DRUPE_QUICK_NO_MEMORY;
    if (tcc_relocate(state, w->memory.start) < 0) return DRUPE_QUICK_ERRORS;
    return finish(state, w);
}

/* Where libtcc gives up its state is lost. */
static drupe_quick_result run(work *w)
{
    if (setjmp(compiler.out)) return DRUPE_QUICK_NO_MEMORY;
    TCCState *state = tcc_new();
    if (!state) return DRUPE_QUICK_NO_MEMORY;
    drupe_quick_result result = steps(state, w);
    tcc_delete(state);
    return result;
}

/* --- The interface ---------------------------------------------------------------------------------------
 */

static void release(void *handle)
{
    drupe_tcc_memory_close(handle);
    free(handle);
}

static drupe_quick_result locked(work *w)
{
    pthread_mutex_lock(&compiler.lock);
    if (!compiler.plain) compiler.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    __wrap_stdout = stdout;
    __wrap_stderr = stderr;
    __wrap_environ = environ;
    locale_t before = uselocale(compiler.plain); /* none: it stays as it is */
    drupe_quick_result result = run(w);
    uselocale(before);
    pthread_mutex_unlock(&compiler.lock);
    return result;
}

static drupe_quick_result compile(const drupe_quick_text *text, drupe_quick_code *code)
{
    const size_t size = strlen(text->text) + 1;
    work w = {.text = text, .code = code, .memory = {.fd = -1}, .whole = malloc(sizeof mark + size)};
    drupe_tcc_memory *memory = malloc(sizeof *memory);
    *code = (drupe_quick_code){.handle = memory};
    drupe_quick_result result = DRUPE_QUICK_NO_MEMORY;
    if (w.whole && memory) {
        memcpy(w.whole, mark, sizeof mark - 1);
        memcpy(w.whole + sizeof mark - 1, text->text, size);
        result = locked(&w);
    }
    free(w.whole);
    if (memory) *memory = w.memory;
    if (result == DRUPE_QUICK_DONE) return result;
    drupe_tcc_memory_close(&w.memory);
    free(memory);
    return result;
}

__attribute__((visibility("default"))) const drupe_quick_compiler *drupe_quick_compiler_1(void);

const drupe_quick_compiler *drupe_quick_compiler_1(void)
{
    static const drupe_quick_compiler self = {.name = "libtcc", .compile = compile, .release = release};
    return &self;
}
