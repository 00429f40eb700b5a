/* A thread that the system keeps from running: DRUPE_TEST_SLOW names one of the engine's, which then sleeps
 * for a quarter of a second at every fifth lock that it takes. The linker puts this in front of the real one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    static _Thread_local unsigned locks;
    const char *slow = getenv("DRUPE_TEST_SLOW");
    char name[32] = "";
    if (slow && ++locks % 5 == 0 && pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
        strcmp(name, slow) == 0) {
        struct timespec pause = {.tv_nsec = 250000000};
        nanosleep(&pause, NULL);
    }
    return __real_pthread_mutex_lock(lock);
}
