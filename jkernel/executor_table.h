/* What the protocol needs from a language: the functions of an executor, and what it adds to the report of a
 * crash. executor.h says how the two sides work together. */
#ifndef JK_EXECUTOR_TABLE_H
#define JK_EXECUTOR_TABLE_H

#include "jkernel/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct jk_server jk_server;
typedef struct jk_request jk_request;
/* A second line of requests, which a thread of its own serves beside the main one (JEP 91). */
typedef struct jk_subshell jk_subshell;
/* The header of the request that an output belongs to: immutable, reference-counted, as received. */
typedef struct jk_parent jk_parent;

typedef enum jk_stream { JK_STDOUT, JK_STDERR } jk_stream;

/* The arguments of a debug_request. Words live until the answer is made. */
typedef struct jk_arguments {
    const void *all;
    /* Whether there is one of that name, whatever its type; its value, or `otherwise` when it is of another
     * type or missing. */
    int (*has)(const void *all, const char *name);
    int64_t (*number)(const void *all, const char *name, int64_t otherwise);
    const char *(*word)(const void *all, const char *name, const char *otherwise);
} jk_arguments;

typedef struct jk_executor {
    void *self;
    /* The content of kernel_info_reply: a JSON object without "status" and "protocol_version", which are the
     * server's. Borrowed until jk_server_close(). */
    const char *kernel_info;
    /* Break what is running. Any thread; never blocks, never waits for the language. */
    void (*interrupt)(void *self);
    /* Ask the main loop to end. Any thread; never blocks. */
    void (*shutdown)(void *self, bool restart);
    /* A cell goes on after two interrupts: write in half a line what the main thread is doing ("Cell In[3],
     * line 2, in f"), at most `size` bytes; returns how many, 0 when nothing of a cell is running there.
     * Control thread; waits a fraction of a second, never for the language. NULL: nothing is known. */
    size_t (*holding)(void *self, char *text, size_t size);
    /* The first debug_request has arrived: serve all of them on a thread of the executor's own, because the
     * main one may be stopped at a breakpoint. As subshell_open(), for a subshell that no client can name;
     * called again when that has ended. NULL: the kernel has no debugger; the server then answers with an
     * error. */
    int (*debugger_open)(void *self, jk_subshell *subshell);
    /* Serve a new subshell on a thread of the executor's own: wait for jk_subshell_fd(), call
     * jk_subshell_next(), reply, until it has ended; then jk_subshell_end() and jk_subshell_release().
     * `subshell` is *taken* when the result is 0; -1 refuses it. Control or io thread; never blocks, never
     * waits for the language. NULL: the kernel has no subshells. */
    int (*subshell_open)(void *self, jk_subshell *subshell);
    /* Write the JSON array `devices` of usage_reply, at most `size` bytes; returns how many, 0 for none. The
     * io or the control thread; never blocks. NULL: no devices. */
    size_t (*devices)(void *self, char *json, size_t size);
    /* Answer a debug_request whose command begins with "drupe/": write the response's body, a JSON object, to
     * `*json` and return its size, or 0 with the reason in `*json` or NULL there. `*json` is malloc'ed and
     * *taken* by the server. The control or the io thread; never blocks, never waits for the language. NULL:
     * there are no such commands. */
    size_t (*answer)(void *self, const char *command, const jk_arguments *arguments, char **json);
} jk_executor;

/* What an executor adds to the report of a crash: called on the thread that a fatal signal hit, inside the
 * handler, so all of it is async-signal-safe. A function that faults, or takes longer than a fraction of a
 * second, is given up. Each may be NULL. */
enum { JK_CLAIM_NONE, JK_CLAIM_PARK, JK_CLAIM_RETURN };

typedef struct jk_crash_hooks {
    /* First of all, for every fatal signal: JK_CLAIM_PARK takes the fault over, and the thread is parked for
     * good; after JK_CLAIM_RETURN the handler returns, to where `ucontext` says by then. Several threads may
     * be in it at once. `siginfo` and `ucontext` are the handler's. */
    int (*claim)(int signal, void *siginfo, void *ucontext);
    /* Note the language's traceback of the calling thread. May end by raising `signal` again, as crash
     * handlers do that pass it on. */
    void (*trace)(int signal);
    /* Write what trace() has noted, as lines of UTF-8; also called when trace() was given up. Returns the
     * size, at most `size`. */
    size_t (*traced)(char *text, size_t size);
    /* Write about the last device operations, in the same way. */
    size_t (*notes)(char *text, size_t size);
} jk_crash_hooks;

#endif
