/* For tests of rooms at their ends: each allocation of host memory fails in turn, and a forked child. */
#ifndef CORE_ENDS_H
#define CORE_ENDS_H

#include "core_bench.h"

/* Run the scene with a bench of its own once for each allocation and each start of a thread that it makes,
 * which fails then. Nothing may be left behind. */
void ends_walk(void (*scene)(void));
/* In a scene: whether the call was good. A failure has to be a sentence. */
bool ends_good(drupe_status status);
/* Have the first, second, ... allocation of the call fail, in the bench that is open, until it fails with
 * `part` in its message. Before that it may be good. */
void ends_until(drupe_status (*call)(void), const char *part);
/* Wait for what there is on the queue, and forget how it ended. */
void ends_settle(drupe_queue *queue);
int ends_setup(void **state);
/* Run the body in a forked child of the process, which has the library open; it must come to its end, in a
 * minute. */
void ends_in_child(void (*body)(void));
/* The same behind `begin`, for tests whose library is closed. */
void ends_apart(void (*begin)(void), void (*body)(void));
/* A host function that writes where no memory is. */
drupe_status ends_fault(void *unused);
_Noreturn void ends_fail(const char *what, int line);
#define ENDS_MUST(condition)                                                                                 \
    do {                                                                                                     \
        if (!(condition)) ends_fail(#condition, __LINE__);                                                   \
    } while (0)
/* The call is refused, because this is a forked child. */
#define ENDS_FORKED(call) ENDS_MUST((call) != DRUPE_OK && strstr(drupe_error_last()->text, "fork"))

#endif
