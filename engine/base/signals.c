/* One saved set for the whole process: with a set per thread, of two overlapping builds the second would save
 * and later put back the handlers that the first build's driver had just installed. */
#include "base/base.h"
#include <signal.h>

static const int kept_signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction saved[DRUPE_COUNT_OF(kept_signals)];
static bool valid[DRUPE_COUNT_OF(kept_signals)];
static unsigned depth;

void drupe_signals_save(void)
{
    pthread_mutex_lock(&lock);
    if (depth++ == 0) {
        for (size_t i = 0; i < DRUPE_COUNT_OF(kept_signals); i++) {
            valid[i] = sigaction(kept_signals[i], NULL, &saved[i]) == 0;
        }
    }
    pthread_mutex_unlock(&lock);
}

void drupe_signals_restore(void)
{
    pthread_mutex_lock(&lock);
    if (depth > 0) {
        depth--;
        for (size_t i = 0; i < DRUPE_COUNT_OF(kept_signals); i++) {
            if (valid[i]) sigaction(kept_signals[i], &saved[i], NULL);
        }
    }
    pthread_mutex_unlock(&lock);
}
