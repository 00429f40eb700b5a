/* The room of the server's life: what every other room is given a pointer to, and what they all ask: does the
 * server live, is this a forked child, whose thread is this, whose output is this.
 *
 * Owns: jk_server, the list of what the rooms above own; jk_life; the headers of requests (jk_parent).
 * Locks: none. It knows the locks that a crashed thread has to give up.
 * Threads: it starts and joins the server's three, and is used by all. */
#ifndef JK_LIFE_ROOM_H
#define JK_LIFE_ROOM_H

#include "jkernel/executor.h"
#include "jkernel/server/tools/tools_room.h"
#include "jkernel/wire/wire.h"

#include <stdatomic.h>

/* What the rooms own, each behind a pointer to a struct that only that room and those above it can see. The
 * roof makes all of them in one block (server_life.c) and alone writes here. */
struct jk_server {
    const jk_executor *executor; /* borrowed */
    jk_config *config;
    jk_session *session;
    jk_signer *signer;
    jk_replay *replay; /* NULL: messages are not signed */
    struct jk_life *life;
    struct jk_usage *usage;          /* usage/ */
    struct jk_ports *ports;          /* ports/ */
    struct jk_record_keeper *keeper; /* record/ */
    struct jk_output *output;        /* outbox/ */
    struct jk_iopub *iopub;          /* iopub/ */
    struct jk_requests *requests;    /* requests/ */
    struct jk_control *control;      /* control/ */
    struct jk_answers *answers;      /* answers/ */
    jk_server *next_closed;          /* closed servers are kept: late callers find them closed */
};

typedef enum jk_own_thread {
    JK_THREAD_IO,
    JK_THREAD_CONTROL,
    JK_THREAD_HEARTBEAT,
    JK_OWN_THREADS
} jk_own_thread;

#define JK_LOCKS_MOST 8

typedef struct jk_life {
    unsigned long generation; /* forks this process has come through */
    int64_t began;            /* when the process did, on CLOCK_BOOTTIME, which nobody sets; 0: not known */
    atomic_bool closing;      /* jk_server_close() has begun */
    atomic_bool stopping;     /* the threads are to end */
    atomic_bool shutdown;     /* asked for by a client, or the parent died */
    pthread_t threads[JK_OWN_THREADS];
    bool started[JK_OWN_THREADS];
    pthread_mutex_t *locks[JK_LOCKS_MOST]; /* borrowed from the rooms that own them */
    int nlocks;
} jk_life;

/* --- life.c -------------------------------------------------------------------------------------------- */

void jk_life_begin(jk_server *server);
/* Whether the message was made before this process began, and came soon after: it was for the kernel that had
 * the ports before. Another machine's clock may be wrong, so after a while every message is for this one. */
bool jk_life_not_ours(const jk_server *server, const jk_message *message);
/* The same of a message made at `made`, `now` on that clock, in a process of that age, in nanoseconds. */
bool jk_life_before(int64_t now, int64_t age, struct timespec made);
/* False in a forked child and after jk_server_close() has begun to stop. */
bool jk_server_alive(const jk_server *server);
bool jk_server_forked(const jk_server *server);
/* In a forked child: from now on every server is the parent's. Async-signal-safe. */
void jk_life_forked(void);
/* Late callers find the server closed. */
void jk_life_close(jk_server *server);
/* The threads are to end. */
void jk_life_stop(jk_server *server);
bool jk_life_stopping(const jk_server *server);
/* The end was asked for. Returns whether for the first time. */
bool jk_life_shut_down(jk_server *server);
bool jk_life_shutting_down(const jk_server *server);

/* Returns whether the thread runs. Main thread, as the next one. */
bool jk_own_thread_start(jk_server *server, jk_own_thread which, void *(*body)(void *));
void jk_own_thread_join(jk_server *server, jk_own_thread which); /* if it was started */
/* Whether the calling thread is io, control or heartbeat; is this one. */
bool jk_server_own_thread(const jk_server *server);
bool jk_own_thread_is(const jk_server *server, jk_own_thread which);

/* A thread that crashes with this lock gives it up, if it was made by jk_mutex_open(). Before there are
 * threads. */
void jk_lock_register(jk_server *server, pthread_mutex_t *lock);
/* Give up those that the calling thread holds: giving up one of another thread's does nothing.
 * Async-signal-safe. */
void jk_locks_give_up(const jk_server *server);

/* --- parent.c: with the functions of executor.h -------------------------------------------------------- */

struct jk_parent {
    atomic_uint references;
    atomic_bool silent;
    atomic_uint number; /* of the cell, In[number]; 0: none */
    jk_parent *below;   /* among the executing cells: outbox/cell_status.c, under outbox.lock */
    size_t size;
    char header[];
};

#endif
