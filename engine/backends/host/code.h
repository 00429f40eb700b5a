/* Kernels in C on the host device: compiled by the machine's C compiler into a library of this process. */
#ifndef DRUPE_HOST_CODE_H
#define DRUPE_HOST_CODE_H

#include "backends/host/host.h"
#include "base/file.h"
#include <stdio.h>

#define DRUPE_HOST_PARAMS   64u
#define DRUPE_HOST_OPTIONS  32u
#define DRUPE_HOST_TABLE    "drupe_kernels_3" /* goes up when what follows changes */
#define DRUPE_HOST_MADE_FOR "drupe_made_for"  /* drupe_host_features() of the machine that compiled */

/* What a library has: an array of entries, ended by one without a name. Argument 0 of `run` is the range, the
 * kernel's own follow: each points to a value of `bytes` bytes. `scalar` is a drupe_scalar_type, 0 for what
 * is none, and of a pointer what it points to, which the kernel only `reads`.
 *
 * ctext.c writes the table for a text with kernels. With the option "-drupe-table" the text has it itself,
 * and the loops over work-items, too. Then it is compiled as it is, with five names declared before its first
 * line: drupe_size_, drupe_range_, drupe_param_ and drupe_entry_, the types below, and drupe_entries_, the
 * table, which it defines at the end, not static:
 *
 *     static void drupe_run_twice(drupe_size_ begin, drupe_size_ end, drupe_size_ n, const void *const *args)
 *     {
 *         const drupe_range_ *range = args[0];
 *         float *x = *(float *const *)args[1];
 *         const float by = *(const float *)args[2];
 *         (void)n;
 *         for (drupe_size_ i = begin; i < end; i++) x[i + range->drupe_offset_[0]] *= by;
 *     }
 *     static const drupe_param_ drupe_params_twice[] = {
 *         {1, 10, 0, sizeof(float *), "x", "float *"}, {0, 10, 0, sizeof(float), "by", "float"}};
 *     const drupe_entry_ drupe_entries_[] = {
 *         {"twice", 2, drupe_params_twice, drupe_run_twice}, {0, 0, 0, 0}};
 *
 * [begin, end) are linear numbers of work-items, dimension 0 the fastest, `n` is how many there are in all.
 * There are atomics, in one order for all threads, with N 32 or 64 and T unsigned or unsigned long long:
 *     T drupe_loadN_(const volatile void *), void drupe_storeN_(volatile void *, T),
 *     T drupe_swapN_(volatile void *, T), T drupe_addN_(volatile void *, T), void drupe_fence_(void),
 *     T drupe_casN_(volatile void *, T expected, T value): all but the stores return what was there.
 *
 * "-drupe-quick" has such a text compiled in memory by the quick compiler (drupe/quick.h). Both give the same
 * bits: products and sums are not contracted, and mathematical functions are those of the C library even for
 * constants. Declare those that are used: nothing is included, and a function without a declaration is an
 * error. What the quick compiler's code may call is in engine/quick/tcc_functions.c. */
typedef struct drupe_host_param {
    int pointer, scalar, reads; /* `pointer` 2: to local memory, of which the argument is the size */
    unsigned bytes;
    const char *name, *type;
} drupe_host_param;

typedef struct drupe_host_entry {
    const char *name;
    size_t count;
    const drupe_host_param *params;
    drupe_builtin_fn run;
    size_t block[3]; /* of groups, which `run` counts instead of work-items; zeros: there are none */
} drupe_host_entry;

/* With two functions of groups.h, for kernels with groups. */
typedef struct drupe_host_range {
    size_t size[3], offset[3];
    bool (*together)(void (*item)(void *user, size_t i), void *user, size_t count);
    void (*barrier)(void);
} drupe_host_range;

/* Lives as long as a program or a task has it. Immutable. */
struct drupe_host_code {
    _Atomic(uint32_t) references;
    void *library;                            /* of dlopen(), or what the quick compiler calls it */
    const struct drupe_quick_compiler *quick; /* whose it is, or NULL */
    const drupe_host_entry *entries;
    drupe_builtin *builtins; /* the same, as tasks know kernels */
    size_t count;
    void *bytes; /* the library's file; NULL for the quick compiler's */
    size_t size;
    drupe_recovery recovery; /* how a thread gets out of it: way, code and code_size */
};

/* imports.c: fill in what its opened library says about that. */
void drupe_host_code_judge(drupe_host_code *code);

/* compiler.c: its path, malloc'ed, *taken* by the caller; NULL: there is none. */
char *drupe_host_compiler_find(void);

/* ctext.c: what the compiler is given for the user's text, and for one with a table of its own. BUILD_FAILED,
 * or UNSUPPORTED for OpenCL C. */
drupe_status drupe_host_code_text(const char *text, size_t size, const size_t block[3],
                                  drupe_text *out) DRUPE_MUST_CHECK;
drupe_status drupe_host_code_table(const char *text, size_t size, bool quick,
                                   drupe_text *out) DRUPE_MUST_CHECK;

/* ctext_groups.c: the beginning of a text whose kernels have groups, and a kernel's loop over them; `values`
 * and `call` are where its arguments are, and how they are passed on. */
drupe_status drupe_host_groups_begin(const size_t block[3], drupe_text *out) DRUPE_MUST_CHECK;
void drupe_host_groups_loop(drupe_text *loop, const char *name, const size_t block[3], const char *values,
                            const char *call);
/* Blank a `local` out of a parameter: whether there was one. */
bool drupe_host_groups_local(char *text);
/* What to do about a text that needs groups and was built without: for a refusal. */
#define DRUPE_HOST_GROUPS_ADVICE                                                                             \
    "C with barriers, local memory or get_local_id() is built for groups of one size: "                      \
    "drupe.RawKernel(text, "                                                                                 \
    "name) takes it with each launch. A Program takes it with options=\"-drupe-groups=64\", and its "        \
    "kernels "                                                                                               \
    "are launched without local_size."

/* A program's options. The words lie in `text`, which is to be freed, on failure as well. */
typedef struct drupe_host_options {
    char *text;
    const char *first[DRUPE_HOST_OPTIONS], *linked[DRUPE_HOST_OPTIONS]; /* before and behind the text */
    size_t nfirst, nlinked;
    bool table;      /* -drupe-table */
    size_t block[3]; /* -drupe-groups=8,8,1; zeros without it */
    bool quick;      /* -drupe-quick */
} drupe_host_options;
drupe_status drupe_host_options_read(const char *text, drupe_host_options *options) DRUPE_MUST_CHECK;
bool drupe_host_options_quick(const char *text); /* whether -drupe-quick is among them; NULL: no */

/* cc.c: the bytes of a library, malloc'ed and *taken* by the caller. On BUILD_FAILED `messages` has what the
 * compiler wrote. */
drupe_status drupe_host_cc(const drupe_host_options *options, drupe_span text, drupe_text *messages,
                           void **bytes, size_t *size) DRUPE_MUST_CHECK;

/* quick.c: fill in the code of a text, and give that back. `messages` as above. */
drupe_status drupe_host_quick_build(const drupe_host_options *options, const char *text, drupe_text *messages,
                                    drupe_host_code *code) DRUPE_MUST_CHECK;
void drupe_host_quick_release(drupe_host_code *code);

/* Compile, or load what was compiled. `log` as drupe_program_open(). */
drupe_status drupe_host_code_build(const drupe_source *source, char **log,
                                   drupe_host_code **code) DRUPE_MUST_CHECK;
drupe_status drupe_host_code_load(const void *bytes, size_t size, drupe_host_code **code) DRUPE_MUST_CHECK;

#endif
