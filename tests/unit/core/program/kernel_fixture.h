/* A scripted compiler over the scripted devices of test_script.h: which kernels there are and what they take.
 */
#ifndef KERNEL_FIXTURE_H
#define KERNEL_FIXTURE_H

#include "core_bench.h"
#include "test_script.h"

#define SCRIPT_ARGS 20u

struct script {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
    /* What the two backends are: a test may change them before or between its calls. */
    drupe_backend tables[2];
    uint64_t languages[2];  /* that they take; 0: as the script says */
    const char *extensions; /* of both devices; NULL: they do not tell */
    /* What the compiler answers. */
    drupe_arg_info declared[SCRIPT_ARGS]; /* argument 20 is the first again */
    uint32_t ndeclared;
    drupe_status arg_answer, count_answer, number_answer, open_answer;
    _Atomic(int) kernels_closed, programs_closed;
};
extern struct script script;

/* For cmocka. The text of a program may hold "names": it has the kernels one and two; "wrong": it is. */
int script_setup(void **state);
int script_teardown(void **state);

drupe_source script_source(const char *text);
drupe_program *script_program(const char *text);
/* "one" of such a program, which it keeps. */
drupe_kernel *script_kernel(const char *text);

/* While the door is closed no build ends. Wait until one has begun. */
void close_door(void);
void await_entered(void);
void open_door(void);

#endif
