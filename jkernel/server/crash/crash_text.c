/* The words of a crash report, made with nothing but a signal handler's means: no allocation, no stdio, no
 * locks of ours. Two calls go further than the letter of POSIX: backtrace(), whose library is loaded
 * beforehand, and dladdr(), which takes the linker's lock. Both run in steps that may be given up
 * (fatal_signal.c).
 */
#include "jkernel/server/crash/crash_room.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MOST 48
#define FRAMES_TOLD 14
#define STACK_REACH (64u << 10) /* a fault so near the stack pointer is the stack's own end */

/* --- The signal -------------------------------------------------------------------------------------------
 */

/* Zeros without a context, or on a machine of another kind. */
typedef struct registers {
    uintptr_t stack, counter;
} registers;

static registers registers_of(const void *context)
{
    const ucontext_t *machine = context;
    if (!machine) return (registers){0, 0};
#if defined(__x86_64__)
    return (registers){(uintptr_t)machine->uc_mcontext.gregs[REG_RSP],
                       (uintptr_t)machine->uc_mcontext.gregs[REG_RIP]};
#elif defined(__aarch64__)
    return (registers){(uintptr_t)machine->uc_mcontext.sp, (uintptr_t)machine->uc_mcontext.pc};
#else
    return (registers){0, 0};
#endif
}

/* " (writing)" and so on, where the processor tells. */
static const char *access_kind(const void *context)
{
#if defined(__x86_64__)
    const ucontext_t *machine = context;
    if (!machine) return "";
    unsigned long error = (unsigned long)machine->uc_mcontext.gregs[REG_ERR];
    return error & 16 ? " (executing)" : error & 2 ? " (writing)" : " (reading)";
#else
    (void)context;
    return "";
#endif
}

static void describe_address(jk_fixed_text *out, const siginfo_t *info, const void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr, stack = registers_of(context).stack;
    if (info->si_signo == SIGSEGV && info->si_code == SI_KERNEL) {
        jk_fixed_text_add(out, "an address that cannot exist was used");
        return;
    }
    jk_fixed_text_add(out, "address ");
    jk_fixed_text_number(out, address, 16);
    if (info->si_signo == SIGBUS) {
        jk_fixed_text_add(out, info->si_code == BUS_ADRALN ? " is not aligned" : " has no memory behind it");
        if (info->si_code == BUS_ADRERR) jk_fixed_text_add(out, " (is the mapped file shorter?)");
        return;
    }
    jk_fixed_text_add(out, info->si_code == SEGV_MAPERR   ? " is not mapped"
                           : info->si_code == SEGV_ACCERR ? " must not be used so"
                                                          : " is protected");
    jk_fixed_text_add(out, access_kind(context));
    uintptr_t distance = address > stack ? address - stack : stack - address;
    if (stack && distance < STACK_REACH)
        jk_fixed_text_add(out, ": the stack is full, as by recursion without end");
}

static const char *describe_code(int number, int code)
{
    if (number == SIGFPE) {
        return code == FPE_INTDIV   ? "integer division by zero"
               : code == FPE_INTOVF ? "integer overflow"
               : code == FPE_FLTDIV ? "division by zero"
                                    : "an arithmetic exception";
    }
    return number == SIGTRAP ? "a breakpoint, and no debugger"
                             : "an instruction that the processor does not know";
}

/* What the system sends. */
static const char *describe_sent(int number)
{
    switch (number) {
    case SIGALRM:
    case SIGVTALRM: return "an alarm that the program has set, and no handler for it";
    case SIGXCPU: return "the limit of processor time is reached";
    case SIGSYS: return "a system call that is not allowed here";
    default: return "sent by the system";
    }
}

void jk_crash_describe(jk_fixed_text *out, const siginfo_t *info, const void *context)
{
    bool processor = info->si_signo == SIGFPE || info->si_signo == SIGILL || info->si_signo == SIGTRAP;
    if (info->si_code <= 0) { /* not from the processor */
        if (info->si_code == SI_TIMER) {
            jk_fixed_text_add(out, describe_sent(info->si_signo));
        } else if (info->si_code == SI_TKILL || info->si_pid == getpid()) {
            jk_fixed_text_add(out,
                              info->si_signo == SIGABRT ? "abort() was called" : "raised by the program");
        } else {
            jk_fixed_text_add(out, "sent by process ");
            jk_fixed_text_number(out, (unsigned long long)info->si_pid, 10);
        }
    } else if (info->si_signo == SIGSEGV || info->si_signo == SIGBUS) {
        describe_address(out, info, context);
    } else if (!processor) {
        jk_fixed_text_add(out, describe_sent(info->si_signo));
    } else {
        jk_fixed_text_add(out, describe_code(info->si_signo, info->si_code));
        jk_fixed_text_add(out, " at ");
        jk_fixed_text_number(out, (uintptr_t)info->si_addr, 16);
    }
}

/* --- The C frames -----------------------------------------------------------------------------------------
 */

void jk_crash_frames_prime(void)
{
    void *frame;
    (void)backtrace(&frame, 1);
}

static const char *file_name(const Dl_info *found)
{
    const char *slash = strrchr(found->dli_fname, '/');
    return slash ? slash + 1 : found->dli_fname;
}

/* Appends one frame. Returns false where the language's interpreter begins: from there on its own traceback
 * says more. */
static bool frame_tell(jk_fixed_text *out, void *frame, bool exact)
{
    /* A return address may lie behind the last byte of its function. */
    char *address = (char *)frame - (exact ? 0 : 1);
    Dl_info found;
    jk_fixed_text_add(out, "  ");
    if (!dladdr(address, &found) || !found.dli_fname) {
        jk_fixed_text_number(out, (uintptr_t)frame, 16);
        jk_fixed_text_add(out, "\n");
        return true;
    }
    jk_fixed_text_add(out, file_name(&found));
    jk_fixed_text_add(out, " + ");
    jk_fixed_text_number(out, (uintptr_t)address - (uintptr_t)found.dli_fbase + (exact ? 0 : 1), 16);
    if (found.dli_sname) {
        jk_fixed_text_add(out, ", in ");
        jk_fixed_text_add(out, found.dli_sname);
    }
    jk_fixed_text_add(out, "\n");
    return !found.dli_sname || strcmp(found.dli_sname, "_PyEval_EvalFrameDefault") != 0;
}

void jk_server_c_function(const void *ucontext, const void *interpreter, char *text, size_t size)
{
    void *frames[FRAMES_MOST], *pc = (void *)registers_of(ucontext).counter;
    jk_fixed_text out = {text, 0, size};
    Dl_info language, system, found;
    int count = backtrace(frames, FRAMES_MOST), at = 0;
    text[0] = '\0';
    if (!dladdr(interpreter, &language) || !dladdr((void *)(uintptr_t)&memcpy, &system)) return;
    while (at < count && frames[at] != pc) at++;
    for (int first = at; at < count && dladdr((char *)frames[at] - 1, &found) && found.dli_fname; at++) {
        if (found.dli_sname && strcmp(found.dli_sname, "_PyEval_EvalFrameDefault") == 0) {
            if (at > first) jk_fixed_text_add(&out, "C code of the interpreter");
            return;
        }
        if (found.dli_fbase == language.dli_fbase || found.dli_fbase == system.dli_fbase) continue;
        jk_fixed_text_add(&out, found.dli_sname ? found.dli_sname : "a function");
        jk_fixed_text_add(&out, found.dli_sname ? "() of " : " of ");
        jk_fixed_text_add(&out, file_name(&found));
        return;
    }
}

/* How many of the frames are this library's own. */
static int frames_own(void *const *frames, int count)
{
    Dl_info here, found;
    int own = 0;
    if (!dladdr((void *)(uintptr_t)&jk_crash_frames, &here)) return 0;
    while (own < count && dladdr(frames[own], &found) && found.dli_fbase == here.dli_fbase) own++;
    return own;
}

void jk_crash_frames(jk_fixed_text *out, const void *context)
{
    void *frames[FRAMES_MOST];
    int count = backtrace(frames, FRAMES_MOST), first = context ? 0 : frames_own(frames, count);
    void *fault = (void *)registers_of(context).counter;
    while (context && first < count && frames[first] != fault) first++;
    jk_fixed_text_add(out, "C (most recent call first):\n");
    if (first == count) { /* the stack cannot be walked through the handler: the place alone */
        frame_tell(out, fault, true);
        return;
    }
    int told = 0;
    for (int i = first; i < count && told < FRAMES_TOLD; i++) {
        bool again = i > first + 1 && frames[i] == frames[i - 1];
        if (again && i + 1 < count && frames[i + 1] == frames[i]) continue;
        if (again) {
            jk_fixed_text_add(out, "  the same again and again\n");
        } else if (!frame_tell(out, frames[i], i == first && context)) {
            return;
        }
        told++;
    }
}
