/* Whether a server lives: not when it is closed, and not in a forked child. */
#include "jkernel/server/life/life_room.h"

#include "base/machine.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* After its begin, in which a kernel gets messages that were for another one. */
#define STALE_TIME (30 * JK_SECOND)
/* Seconds. Who claims that a message is older has another clock, or this one jumped. */
#define STALE_MOST 86400

static atomic_ulong generations;

static int64_t clock_read(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * JK_SECOND + now.tv_nsec;
}

/* Field 22 of stat, in clock ticks since the machine started. 0: not known. */
static int64_t process_began(void)
{
    char text[1024];
    unsigned long long ticks;
    const char *rest = drupe_small_read("/proc/self/stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (!rest ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1)
        return 0;
    return (int64_t)ticks * (JK_SECOND / sysconf(_SC_CLK_TCK));
}

void jk_life_begin(jk_server *server)
{
    server->life->generation = atomic_load(&generations);
    server->life->began = process_began();
}

bool jk_life_before(int64_t now, int64_t age, struct timespec made)
{
    if (age < 0 || age > STALE_TIME) return false;
    int64_t began = now - age;
    if (began / JK_SECOND - made.tv_sec > STALE_MOST) return false;
    return made.tv_sec < began / JK_SECOND ||
           (made.tv_sec == began / JK_SECOND && made.tv_nsec < began % JK_SECOND);
}

bool jk_life_not_ours(const jk_server *server, const jk_message *message)
{
    struct timespec made;
    if (server->life->began == 0 || !jk_message_date(message, &made)) return false;
    return jk_life_before(clock_read(CLOCK_REALTIME), clock_read(CLOCK_BOOTTIME) - server->life->began, made);
}

void jk_life_forked(void)
{
    atomic_fetch_add(&generations, 1);
}

bool jk_server_forked(const jk_server *server)
{
    return server->life->generation != atomic_load(&generations);
}

bool jk_server_alive(const jk_server *server)
{
    return !jk_server_forked(server) && !atomic_load(&server->life->closing);
}

void jk_life_close(jk_server *server)
{
    atomic_store(&server->life->closing, true);
}

void jk_life_stop(jk_server *server)
{
    atomic_store(&server->life->stopping, true);
}

bool jk_life_stopping(const jk_server *server)
{
    return atomic_load(&server->life->stopping);
}

bool jk_life_shut_down(jk_server *server)
{
    return !atomic_exchange(&server->life->shutdown, true);
}

bool jk_life_shutting_down(const jk_server *server)
{
    return atomic_load(&server->life->shutdown);
}

/* --- Threads -----------------------------------------------------------------------------------------------
 */

bool jk_own_thread_start(jk_server *server, jk_own_thread which, void *(*body)(void *))
{
    jk_life *life = server->life;
    life->started[which] = jk_thread_start(&life->threads[which], body, server) == 0;
    return life->started[which];
}

void jk_own_thread_join(jk_server *server, jk_own_thread which)
{
    if (server->life->started[which]) pthread_join(server->life->threads[which], NULL);
    server->life->started[which] = false;
}

bool jk_own_thread_is(const jk_server *server, jk_own_thread which)
{
    return pthread_equal(pthread_self(), server->life->threads[which]);
}

bool jk_server_own_thread(const jk_server *server)
{
    bool own = false;
    for (int i = 0; i < JK_OWN_THREADS; i++) own = own || jk_own_thread_is(server, (jk_own_thread)i);
    return own;
}

/* --- Locks of a crashed thread -----------------------------------------------------------------------------
 */

void jk_lock_register(jk_server *server, pthread_mutex_t *lock)
{
    jk_life *life = server->life;
    if (life->nlocks < JK_LOCKS_MOST) life->locks[life->nlocks++] = lock;
}

void jk_locks_give_up(const jk_server *server)
{
    for (int i = 0; i < server->life->nlocks; i++) pthread_mutex_unlock(server->life->locks[i]);
}
