/* What the main thread is doing while it does not take an interrupt. A function of C may hold the GIL, so the
 * thread is asked by a signal: SIGINT with a mark, whose handler is ours anyway.
 *
 * The Python frames are told by faulthandler, as in a crash (crash.c). Its handlers for crashes work once;
 * those that faulthandler.register() makes work again and again. So one is registered for a signal that is
 * then given back: the handler is called as a function, and nobody misses the signal. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "jkernel/pyexec/pyexec.h"

#define PATIENCE_MS 200
#define RAW_ROOM    (32u << 10)

static struct {
    int fd; /* -1: not installed */
    void (*dump)(int signal);
    int signal;
    atomic_int noted;
    char function[160];
} look = {.fd = -1};

static int faulthandler_register(void)
{
    PyObject *module = PyImport_ImportModule("faulthandler");
    PyObject *done = NULL;
    if (module) done = PyObject_CallMethod(module, "register", "iiO", look.signal, look.fd, Py_False);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

void jk_holding_install(void)
{
    struct sigaction before, ours;
    look.signal = SIGRTMAX - 1;
    int fd = look.fd = memfd_create("drupe-holding", MFD_CLOEXEC);
    bool good = fd >= 0 && sigaction(look.signal, NULL, &before) == 0 && faulthandler_register() == 0 &&
                sigaction(look.signal, &before, &ours) == 0 && !(ours.sa_flags & SA_SIGINFO);
    PyErr_Clear(); /* the cell is told less */
    look.dump = good ? ours.sa_handler : NULL;
    if (good || fd < 0) return;
    close(fd);
    look.fd = -1;
}

int jk_holding_asked(const siginfo_t *info, const void *ucontext)
{
    if (!info || info->si_code != SI_QUEUE || info->si_value.sival_ptr != &look) return 0;
    jk_server_c_function(ucontext, (const void *)(uintptr_t)&PyObject_Call, look.function,
                         sizeof look.function);
    look.dump(look.signal);
    atomic_store(&look.noted, 1);
    return 1;
}

size_t jk_holding(void *self, char *text, size_t size)
{
    static char raw[RAW_ROOM];
    const struct timespec pause = {.tv_nsec = 1000000};
    const union sigval mark = {.sival_ptr = &look};
    (void)self;
    if (!look.dump || ftruncate(look.fd, 0) != 0 || lseek(look.fd, 0, SEEK_SET) != 0) return 0;
    atomic_store(&look.noted, 0);
    if (pthread_sigqueue(jk_kernel_main_thread(), SIGINT, mark) != 0) return 0;
    for (int i = 0; i < PATIENCE_MS && !atomic_load(&look.noted); i++) nanosleep(&pause, NULL);
    ssize_t got = atomic_load(&look.noted) ? pread(look.fd, raw, sizeof raw, 0) : 0;
    size_t used = got > 0 ? jk_crash_innermost(raw, (size_t)got, text, size) : 0;
    if (used == 0 || !look.function[0]) return used;
    int more = snprintf(text + used, size - used, ", in %s", look.function);
    return more > 0 && (size_t)more < size - used ? used + (size_t)more : used;
}
