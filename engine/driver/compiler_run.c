/* Compilers that are programs of the machine.
 *
 * A source text can keep a compiler busy for ever, or have it take all memory and fill a disk. On a machine
 * of many people that is everybody's, so each compiler runs within limits. */
#include "driver/driver.h"
#include <stdatomic.h>
#include <stdio.h>

#define FILE_BYTES (UINT64_C(1) << 30)

static _Atomic(uint64_t) seconds = 120, memory = UINT64_C(4) << 30;

void drupe_compiler_limits(uint64_t most_seconds, uint64_t most_memory)
{
    atomic_store(&seconds, most_seconds);
    atomic_store(&memory, most_memory);
}

void drupe_compiler_limits_get(uint64_t *most_seconds, uint64_t *most_memory)
{
    *most_seconds = atomic_load(&seconds);
    *most_memory = atomic_load(&memory);
}

/* What to do about it: in the error, and in place of the messages, which people are shown. */
static drupe_status exceeded(drupe_text *output, const char *advice, const char *most)
{
    const drupe_error error = *drupe_error_last();
    drupe_text_clear(output);
    drupe_text_printf(output, "%.900s Make the program smaller, or set %s to more than %s.", error.text,
                      advice, most);
    return drupe_error_set(DRUPE_E_BUILD_FAILED, "%s", drupe_text_get(output));
}

drupe_status drupe_compiler_run(const char *const *argv, drupe_span input, drupe_text *output)
{
    const uint64_t most = atomic_load(&seconds);
    const drupe_process_limits limits = {.timeout_ns = most ? most * UINT64_C(1000000000) : UINT64_MAX,
                                         .seconds = most,
                                         .memory = atomic_load(&memory),
                                         .file = FILE_BYTES};
    char allowed[32];
    drupe_status status = drupe_process_run_within(argv, input, &limits, output);
    snprintf(allowed, sizeof allowed, "%llu", (unsigned long long)most);
    if (status == DRUPE_E_TIMEOUT) return exceeded(output, "DRUPE_COMPILER_TIME", allowed);
    if (status != DRUPE_E_NO_MEMORY || !limits.memory) return status;
    return exceeded(output, "DRUPE_COMPILER_MEMORY", drupe_unit_bytes(limits.memory).text);
}
