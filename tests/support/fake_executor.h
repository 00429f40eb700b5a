/* A language for tests: it echoes. One statement a line:
 *
 *   print TEXT    eprint TEXT   a line on stdout, on stderr, through jk_stream_write()
 *   write TEXT    cprint TEXT   a line on descriptor 1, by write() and by printf()
 *   display TEXT                a display_data message
 *   flood N                     N lines of 190 characters, one jk_stream_write() each
 *   sleep MS                    wait; an interrupt ends the cell with KeyboardInterrupt
 *   stuck                       wait for fake_executor_release(); nothing else ends it
 *   later                       the cell stays unfinished until a release, while other requests are served
 *   input PROMPT                ask, then print the answer's content
 *   fork TEXT                   the line, by jk_stream_write() in a forked child
 *   error                       fail
 *
 * Every other request is answered {"status":"ok","type":its type}, comm messages with nothing. */
#ifndef JK_FAKE_EXECUTOR_H
#define JK_FAKE_EXECUTOR_H

#include "jkernel/executor.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

typedef struct fake_executor {
    jk_executor executor;        /* pass its address to jk_server_open() */
    _Atomic(jk_server *) server; /* set by the test before fake_executor_run() */
    pthread_t main;              /* the thread in fake_executor_run() */
    atomic_bool running;         /* `main` is valid */
    atomic_bool stop, interrupted;
    atomic_int shutdowns, restarts, interrupts;
    sem_t releases;
    atomic_long executed; /* cells begun */
    atomic_long count;    /* execution_count */
    pthread_t later;      /* the thread of the unfinished cell */
    bool later_started;
    pthread_t subshell_threads[64]; /* joined at the end of fake_executor_run() */
    jk_subshell *subshells[64];     /* retained */
    atomic_int nsubshells;
    atomic_bool refuses; /* no more subshells */
} fake_executor;

void fake_executor_init(fake_executor *fake);
/* Have subshells; before jk_server_open(). Each serves on a thread of its own. */
void fake_executor_with_subshells(fake_executor *fake);
/* Answer each debug_request with success and the message "from the executor"; before jk_server_open(). */
void fake_executor_with_debugger(fake_executor *fake);

/* Let one `stuck` or `later` go on, the next one if none waits. Any thread. */
void fake_executor_release(fake_executor *fake);

/* The main loop: dispatch until shutdown. */
void fake_executor_run(fake_executor *fake);

#endif
