/* The end of a child process: _exit(), with gcov's counts written where they are asked for. */
#ifndef FAULT_LEAVE_H
#define FAULT_LEAVE_H

#include <unistd.h>

#ifdef DRUPE_TEST_COVERAGE /* tools/room_coverage.py */
void __gcov_dump(void);
#else
#define __gcov_dump() ((void)0)
#endif

_Noreturn static inline void leave(int status)
{
    __gcov_dump();
    _exit(status);
}

#endif
