/* Text in a fixed room, made with nothing but a signal handler's means, and the names of signals. */
#include "jkernel/server/record/record_room.h"

#include <signal.h>
#include <string.h>

void jk_ink_bytes(jk_ink *ink, const char *text, size_t size)
{
    size_t room = ink->room - ink->size - 1;
    if (size > room) size = room;
    memcpy(ink->text + ink->size, text, size);
    ink->size += size;
    ink->text[ink->size] = '\0';
}

void jk_ink_text(jk_ink *ink, const char *text)
{
    jk_ink_bytes(ink, text, strlen(text));
}

void jk_ink_number(jk_ink *ink, unsigned long long value, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    if (base == 16) jk_ink_text(ink, "0x");
    jk_ink_bytes(ink, digits + at, sizeof digits - at);
}

const char *jk_signal_name(int number)
{
    switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    case SIGTRAP: return "SIGTRAP";
    case SIGSYS: return "SIGSYS";
    case SIGUSR1: return "SIGUSR1";
    case SIGUSR2: return "SIGUSR2";
    case SIGVTALRM: return "SIGVTALRM";
    case SIGXCPU: return "SIGXCPU";
    case SIGQUIT: return "SIGQUIT";
    case SIGALRM: return "SIGALRM";
    default: return "a signal";
    }
}
