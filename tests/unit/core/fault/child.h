/* A case that is a process of its own: it faults, or changes what the whole process has. */
#ifndef FAULT_CHILD_H
#define FAULT_CHILD_H

#include "leave.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { GOOD = 40, BAD }; /* exit statuses */

/* Without handlers of faults. It is good when it returns, or leaves with GOOD. */
void child_is_good(void (*body)(void));
/* It ends by SIGSEGV. */
void child_is_killed(void (*body)(void));
_Noreturn void child_fails(const char *condition, int line);
#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) child_fails(#condition, __LINE__);                                                 \
    } while (0)
/* Write to an address that is not there; it must not come back. */
_Noreturn void child_faults(void);

#endif
