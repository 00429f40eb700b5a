/* Failing what the C library gives: the linker sends the engine's calls here (--wrap). */
#ifndef WRAP_H
#define WRAP_H

#include <stdint.h>

typedef enum wrap_kind { WRAP_NOTHING, WRAP_MALLOC, WRAP_THREAD } wrap_kind;

/* Fail the n-th call of this kind from now on; drops the plan before. */
void wrap_plan(wrap_kind kind, unsigned long n);
/* Failures made by the current plan: 0 or 1. */
uint64_t wrap_made(void);

#endif
