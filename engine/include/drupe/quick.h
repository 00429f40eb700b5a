/* Quick compilers: C text to functions in memory, in about a millisecond.
 *
 * A quick compiler is a shared library of its own with one exported function, which the `host` device opens
 * when a program asks for it (-drupe-quick): the one beside the engine, or the one that the environment
 * variable DRUPE_QUICK names. So it can be replaced by another, or by another build of the same.
 *
 * Threads: all functions may be called from any thread, and beside each other. */
#ifndef DRUPE_QUICK_H
#define DRUPE_QUICK_H

#include <stddef.h>
#include <stdint.h>

/* A function of the type drupe_quick_fn. The number goes up when anything here changes. */
#define DRUPE_QUICK_ENTRY "drupe_quick_compiler_1"

typedef enum drupe_quick_result {
    DRUPE_QUICK_DONE,
    DRUPE_QUICK_ERRORS, /* in the text, as told */
    DRUPE_QUICK_UNABLE, /* the text may be right, as told */
    DRUPE_QUICK_NO_MEMORY
} drupe_quick_result;

/* All borrowed. */
typedef struct drupe_quick_text {
    const char *text;           /* C99, ended by NUL; nothing can be included */
    const char *const *defines; /* "N=5", "NAME" */
    size_t ndefines;
    const char *symbol; /* what is asked for: an object that the text defines */
    /* Each message of the compiler, a line without its end; on errors, and for warnings if it likes. */
    void (*tell)(void *user, const char *message);
    void *user;
} drupe_quick_text;

/* What a text became. A thread that faults at an instruction inside of `code` leaves it by a jump and goes on
 * with other work; one that faults in a function that the code called ends. So no function that the code can
 * call may remember its caller, or leave a lock with it. Frames of functions are at most DRUPE_QUICK_FRAME
 * bytes, because a full stack is found by a fault behind it. */
typedef struct drupe_quick_code {
    void *handle;       /* for release() */
    const void *object; /* where `symbol` is */
    uintptr_t code;     /* its instructions */
    size_t code_size;
} drupe_quick_code;

#define DRUPE_QUICK_FRAME 131072u

typedef struct drupe_quick_compiler {
    const char *name; /* "libtcc" */
    drupe_quick_result (*compile)(const drupe_quick_text *text, drupe_quick_code *code);
    void (*release)(void *handle); /* nothing of its code runs any more */
} drupe_quick_compiler;

typedef const drupe_quick_compiler *(*drupe_quick_fn)(void); /* what is returned stays */

#endif
