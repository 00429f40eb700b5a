/* What a fault was. */
#include "core/queue/launch.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

const char *drupe_fault_signal(int signal)
{
    static const char *const names[] = {
        [SIGSEGV] = "SIGSEGV", [SIGBUS] = "SIGBUS", [SIGFPE] = "SIGFPE", [SIGILL] = "SIGILL"};
    bool known = (size_t)signal < DRUPE_COUNT_OF(names) && names[signal];
    return known ? names[signal] : "a signal";
}

drupe_status drupe_core_fault_text(const drupe_fault *fault, char *text, size_t size)
{
    Dl_info symbol = {0};
    bool memory = fault->signal == SIGSEGV || fault->signal == SIGBUS;
    bool named = dladdr((const void *)fault->instruction, &symbol) != 0 && symbol.dli_sname;
    const char *what = fault->signal == SIGFPE && fault->code == FPE_INTDIV ? ", division by zero" : "";
    char where[64];
    /* The processor does not tell an address that is outside of what it can address. */
    if (memory && fault->code == SI_KERNEL)
        snprintf(where, sizeof where, "an address that no memory can have");
    else
        snprintf(where, sizeof where, "%s 0x%llx", memory ? "address" : "instruction",
                 (unsigned long long)(memory ? fault->address : fault->instruction));
    snprintf(text, size, "%s%s at %s%s%s%s", drupe_fault_signal(fault->signal), what, where,
             named ? " in the function '" : "", named ? symbol.dli_sname : "", named ? "'" : "");
    size_t length = strlen(text);
    const drupe_checker *checker = atomic_load_explicit(&drupe_checker_now, memory_order_acquire);
    bool bounds = memory && checker && checker->fault(fault, text + length, size - length);
    return bounds ? DRUPE_E_CHECK : DRUPE_E_DEVICE_LOST;
}
