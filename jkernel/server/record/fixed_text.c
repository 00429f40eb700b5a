/* Text in a fixed room, made with nothing but a signal handler's means, and the names of signals. */
#include "jkernel/server/record/record_room.h"

#include <signal.h>
#include <string.h>

static void bytes_add(jk_fixed_text *out, const char *text, size_t size)
{
    size_t room = out->room - out->size - 1;
    if (size > room) size = room;
    memcpy(out->text + out->size, text, size);
    out->size += size;
    out->text[out->size] = '\0';
}

void jk_fixed_text_add(jk_fixed_text *out, const char *text)
{
    bytes_add(out, text, strlen(text));
}

void jk_fixed_text_number(jk_fixed_text *out, unsigned long long value, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    if (base == 16) jk_fixed_text_add(out, "0x");
    bytes_add(out, digits + at, sizeof digits - at);
}

const char *jk_signal_name(int number)
{
    static const char *const names[] = {
        [SIGSEGV] = "SIGSEGV", [SIGBUS] = "SIGBUS",       [SIGFPE] = "SIGFPE",   [SIGILL] = "SIGILL",
        [SIGABRT] = "SIGABRT", [SIGTRAP] = "SIGTRAP",     [SIGSYS] = "SIGSYS",   [SIGUSR1] = "SIGUSR1",
        [SIGUSR2] = "SIGUSR2", [SIGVTALRM] = "SIGVTALRM", [SIGXCPU] = "SIGXCPU", [SIGQUIT] = "SIGQUIT",
        [SIGALRM] = "SIGALRM"};
    bool named = number > 0 && (size_t)number < DRUPE_COUNT_OF(names) && names[number];
    return named ? names[number] : "a signal";
}
