/* The process's one kernel, and who may still use its server.
 *
 * Everything here runs without the GIL and mostly on the server's threads, so it is plain atomics. `users`
 * counts the threads inside a server function; closing swaps the pointer out first and then waits for them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "jkernel/pyexec/pyexec.h"

static struct {
    _Atomic(jk_server *) server;
    atomic_int users;
    atomic_int shutdown; /* as jk_kernel_shutdown_state() */
    pthread_t main_thread;
} kernel;

bool jk_kernel_is_open(void)
{
    return atomic_load(&kernel.server) != NULL;
}

int jk_kernel_open(const char *connection_file, const jk_executor *executor, char *problem,
                   size_t problem_size)
{
    kernel.main_thread = pthread_self();
    atomic_store(&kernel.shutdown, 0);
    jk_server *server = jk_server_open(connection_file, executor, problem, problem_size);
    if (!server) return -1;
    atomic_store(&kernel.server, server);
    return 0;
}

void jk_kernel_close(void)
{
    jk_server *server = atomic_exchange(&kernel.server, NULL);
    if (!server) return;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 1000 && atomic_load(&kernel.users) > 0; i++) nanosleep(&pause, NULL);
    /* Someone stuck inside: its memory must stay, and the process is about to end. */
    if (atomic_load(&kernel.users) == 0) jk_server_close(server);
}

jk_server *jk_kernel_enter(void)
{
    atomic_fetch_add(&kernel.users, 1);
    jk_server *server = atomic_load(&kernel.server);
    if (!server) atomic_fetch_sub(&kernel.users, 1);
    return server;
}

void jk_kernel_leave(void)
{
    atomic_fetch_sub(&kernel.users, 1);
}

pthread_t jk_kernel_main_thread(void)
{
    return kernel.main_thread;
}

void jk_kernel_note_shutdown(bool restart)
{
    atomic_store(&kernel.shutdown, restart ? 2 : 1);
}

int jk_kernel_shutdown_state(void)
{
    return atomic_load(&kernel.shutdown);
}
