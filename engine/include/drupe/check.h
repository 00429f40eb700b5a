/* clang-format off */
/* Checked mode: mistakes of a program that no device reports.
 *
 * While it is on, a call that shows a mistake is refused with DRUPE_E_CHECK, or a wait answers so when the
 * mistake was made by a kernel; the message has both places. Looked for are
 *
 *   races       two submissions, or a submission and the host, touch the same bytes, one of them writes, and
 *               no queue, wait or host wait orders the two. It does not matter whether they met this time.
 *   bounds      a kernel wrote before or behind an allocation: memory that is allocated in checked mode has
 *               4096 bytes on each side, looked at in waits and when it is freed (on devices whose memory the
 *               host reaches)
 *   freed       an address in memory that was freed; and writes to it, while it is kept back for that
 *   alignment   a kernel's pointer that is no multiple of the size of what it points to
 *
 * Where faults are contained (drupe/fault.h) and a device works in the system's memory, memory of checked
 * mode ends at pages that nobody may touch: a kernel that reads or writes there fails with DRUPE_E_CHECK, or
 * takes a driver's device with it (DRUPE_E_DEVICE_LOST), and the message tells the memory and how far outside
 * it was. Memory is aligned to what its size is a multiple of then, 16 to 64 bytes, unless more is asked for;
 * up to 15 bytes between it and the pages hold a pattern. The engine's own kernels are instrumented: they
 * check every index, and touch nothing that is outside.
 *
 * What a copy or fill touches is known. A kernel touches what its submission says
 * (drupe_submission.accesses), else from each pointer on one element per work-item, which it reads and,
 * unless the compiler calls the pointer const, writes. A host function touches what its submission says.
 *
 * Checked mode costs a few microseconds a submission, an operation of arrays some tens. It remembers the last
 * 1024 submissions of the process.
 *
 * Threads: all functions may be called from any thread. */
/* clang-format on */
#ifndef DRUPE_CHECK_H
#define DRUPE_CHECK_H

#include "drupe/failures.h"

/* Begin and end checked mode; calls nest. DRUPE_LAYERS=check begins it with the first device and never ends
 * it. */
DRUPE_API void drupe_check_begin(void);
DRUPE_API void drupe_check_end(void);
DRUPE_API bool drupe_check_active(void);

/* The host is about to touch these bytes itself. DRUPE_E_CHECK when unfinished work touches them too. */
DRUPE_API drupe_status drupe_check_host(const void *pointer, size_t bytes, bool writes) DRUPE_MUST_CHECK;

/* Look at all guarded memory now. */
DRUPE_API drupe_status drupe_check_memory(void) DRUPE_MUST_CHECK;
/* --- Instrumented kernels --- */

#define DRUPE_BOUNDS_OPERANDS 4

/* What an instrumented kernel is given by a pointer behind its own arguments: argument k may be used at the
 * elements low[k] to high[k] (none when low > high). It leaves out what is outside, and writes down the
 * first. */
typedef struct drupe_bounds {
    int64_t low[DRUPE_BOUNDS_OPERANDS], high[DRUPE_BOUNDS_OPERANDS];
    int64_t index;   /* the first one outside */
    int32_t operand; /* 1 + k of it; 0: none */
    int32_t reserved;
} drupe_bounds;

/* Behind the name of a built-in kernel: the instrumented one. */
#define DRUPE_BUILTIN_CHECKED ".checked"

/* drupe_submit_kernel() for an instrumented kernel: argument k is a pointer to elements of `elements[k]`
 * bytes and touches s->accesses[k], for k < s->naccesses <= DRUPE_BOUNDS_OPERANDS. What it found outside
 * fails the queue with DRUPE_E_CHECK, as the failure of a submission behind it. Some tens of microseconds.
 * `s` names no waits and no keeps. */
DRUPE_API drupe_status drupe_check_submit(const drupe_submission *s, drupe_kernel *kernel,
                                          const drupe_range *range, const drupe_arg *args, size_t nargs,
                                          const size_t *elements) DRUPE_MUST_CHECK;

/* Findings since the process began. */
DRUPE_API uint64_t drupe_check_findings(void);

#endif
