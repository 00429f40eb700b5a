/* Inside the server: what its files share. The contract for everyone else is jkernel/executor.h.
 *
 * Threads and what each owns:
 *   main       the executor; enqueues, never touches a socket after jk_server_open()
 *   io         shell, stdin and iopub sockets, the captured descriptors, everything that leaves the outbox
 *   control    the control socket, interrupts, shutdown, the watch over the parent process
 *   heartbeat  its own socket, with encryption in its own context
 *   watchdog   only after a shutdown: ends the process when the main thread does not
 * All but main block every signal that is not raised by a fault.
 *
 * Locks, in the order in which they may nest: stdio.lock, outbox.lock. inbox.lock, subshells.lock,
 * input.lock, replies.lock and watchdog.lock are taken alone. */
#ifndef JK_SERVER_H
#define JK_SERVER_H

#include "jkernel/executor.h"
#include "jkernel/wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

struct jk_record;    /* crash.h */
struct jk_usage;     /* usage.h */
struct jk_publisher; /* publisher.h */
struct jk_router;    /* router.h */

#define JK_MILLISECOND 1000000LL /* times are in nanoseconds of CLOCK_MONOTONIC */
#define JK_SECOND      1000000000LL

#define JK_OUTBOX_LIMIT (64u << 20) /* bytes queued or in flight, above which writers wait */
/* The same when a client is slow, but reads: writers go on after JK_WRITER_WAIT up to this. */
#define JK_OUTBOX_MOST ((size_t)256 << 20)
#define JK_FLIGHT_LIMIT                                                                                      \
    (32u << 20)                    /* bytes with the transport, above which stream text stays in the queue   \
                                    */
#define JK_STREAM_MOST  (1u << 20) /* bytes of text in one stream message */
#define JK_STREAM_PAUSE (30 * JK_MILLISECOND)
/* Between cells: a client that waits for 0.2 s of silence must find them while a thread prints on. */
#define JK_STREAM_PAUSE_BETWEEN (300 * JK_MILLISECOND)
/* Stream messages that may go at once, and a second. jupyter_server drops what exceeds 3000 in 3 s. */
#define JK_STREAM_BURST 1000
#define JK_STREAM_RATE  600
#define JK_WRITER_WAIT  (10 * JK_SECOND)
/* Bytes of requests that are not replied to, above which no more are read from the shell socket. What a
 * client sends then waits with the transport and with the client. */
#define JK_HELD_LIMIT    (128u << 20)
#define JK_RECEIVED_MOST 64 /* messages of one client that libzmq takes beyond that, with encryption */
#define JK_ABORT_SILENCE                                                                                     \
    2 /* ms without a message, after which the socket holds nothing older than a failure */
#define JK_ANSWERED_MOST 8                /* kernel_info_requests whose idle a new subscriber hears again */
#define JK_ANSWERED_FOR  (60 * JK_SECOND) /* how long they are remembered */
#define JK_LOOK_AGAIN    1  /* ms until the io thread looks again after it has handed requests over */
#define JK_ABORT_GRACE   20 /* ms at most */

/* --- Requests (request.c) --------------------------------------------------------------------------------
 */

struct jk_parent {
    atomic_uint references;
    atomic_bool silent;
    atomic_uint number; /* of the cell, In[number]; 0: none */
    jk_parent *below;   /* in outbox.cell; under outbox.lock */
    size_t size;
    char header[];
};

struct jk_request {
    jk_server *server;
    jk_message *message;   /* owned */
    jk_parent *parent;     /* retained */
    jk_channel channel;    /* where the reply goes */
    jk_subshell *subshell; /* retained; NULL: the main shell's */
    bool is_execute;
    size_t cost;      /* what server.held counts for it */
    uint64_t arrival; /* its place among all of the inbox */
    uint64_t ticket;  /* given at dispatch; 0 before */
    jk_request *next; /* in its lane */
};

/* Takes `message` in every case. NULL: no memory. */
jk_request *jk_request_create(jk_server *server, jk_message *message, jk_channel channel);
void jk_request_release(jk_request *request);
/* "execute_request" to "execute_reply". */
void jk_reply_type(const char *request_type, char *type, size_t size);

static inline jk_slice jk_slice_of(jk_bytes bytes)
{
    return (jk_slice){bytes.data, bytes.size};
}
static inline jk_bytes jk_bytes_of(jk_slice slice)
{
    return (jk_bytes){slice.data, slice.size};
}

/* --- What leaves (outbox.c, iopub.c) ---------------------------------------------------------------------
 */

typedef enum jk_entry_kind {
    JK_ENTRY_PUBLISH, /* an iopub message */
    JK_ENTRY_STREAM,  /* text; grows while it is the last entry */
    JK_ENTRY_NOTE,    /* stands where stream text was given up: `lost` bytes */
    JK_ENTRY_REPLY,   /* to shell or control; owns its request */
    JK_ENTRY_INPUT,   /* input_request */
} jk_entry_kind;

typedef struct jk_entry {
    struct jk_entry *next;
    jk_entry_kind kind;
    jk_parent *parent;   /* retained; NULL: none */
    jk_request *request; /* REPLY */
    jk_message *to;      /* INPUT: borrowed from a request that is not replied to yet */
    char *type;
    struct timespec date;
    jk_stream stream;
    unsigned flags;
    jk_buffer content;
    jk_buffer metadata;
    jk_slice *buffers; /* one block, the bytes behind the slices */
    size_t nbuffers;
    size_t lost;
    uint64_t only; /* the subscriber that is to get it; 0: all */
    size_t cost;   /* what outbox.bytes counts for it */
    bool patient;  /* more follows at once: not worth waking an io thread that looks soon by itself */
} jk_entry;

typedef struct jk_answered {
    jk_parent *parent; /* retained; NULL: none */
    int64_t at;
} jk_answered;

typedef struct jk_outbox {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* something left, or the server closes */
    jk_entry *head, *tail;
    size_t bytes;          /* of content in the queue */
    uint64_t pushed, sent; /* entries, counted since the start */
    size_t statuses;       /* that wait in the queue */
    uint64_t urgent;       /* stream text up to this count may not be held back */
    unsigned waiting;      /* threads in a wait for `moved` */
    bool sleeping;         /* the io thread is in its poll: write to `wake` */
    bool calling;          /* write to `wake` on leaving the lock: jk_outbox_unlock() */
    int64_t look;          /* when the io thread's poll ends by itself */
    bool closed;           /* nothing is accepted any more */
    bool stalled;          /* a writer waited in vain: the next ones do not wait until there is progress */
    unsigned stalled_at;   /* `landed` at that time */
    int64_t patience;      /* how long writers wait */
    int wake;              /* eventfd */
    jk_parent *cell;       /* the executing cells, the latest first, each retained; linked by `below` */
    jk_parent *last_cell;  /* the latest cell, executing or not, retained */
    unsigned serving;      /* requests between busy and idle */
    size_t others;         /* entries that are not stream text */
    bool hurry;            /* the server closes: nothing is held back */
    /* Written by the io thread; where iopub is libzmq's, by its threads. */
    atomic_size_t flight; /* bytes that the slowest subscriber has not taken, of those that are waited for */
    atomic_uint landed;   /* counts progress of it */
    atomic_bool watched;  /* somebody waits for `flight` to fall */
    /* The io thread's own. */
    bool expecting;         /* requests were handed over: their busy and execute_input come at once */
    jk_parent *last_parent; /* of the latest stream message, retained */
    jk_stream last_stream;
    int64_t last_sent;    /* 0: none yet */
    int64_t rate_since;   /* stream messages are paid for up to this time */
    const jk_entry *line; /* the head that waits for the end of its line; compared, never followed */
    int64_t line_since;
    int64_t stall_since;
    unsigned stall_landed;
    jk_answered answered[JK_ANSWERED_MOST]; /* a ring */
    unsigned answers;                       /* so far */
} jk_outbox;

int jk_outbox_open(jk_outbox *outbox);
void jk_outbox_clear(jk_outbox *outbox); /* after the io thread has ended */

/* A new entry with the date of now. NULL: no memory. */
jk_entry *jk_entry_create(jk_entry_kind kind, const char *type, jk_parent *parent);
void jk_entry_release(jk_entry *entry);

/* Enqueue; `entry` is taken in every case. Wait for nothing. Returns 0, or -1 when the outbox is closed or
 * `entry` is NULL. */
int jk_outbox_push(jk_server *server, jk_entry *entry);
/* The same under the lock that the caller holds, and leaves with jk_outbox_unlock(): the io thread is woken
 * after the lock, or it would wake only to wait for it. */
int jk_outbox_push_locked(jk_outbox *outbox, jk_entry *entry);
void jk_outbox_unlock(jk_outbox *outbox);
/* Take the head of a queue that is not empty, under the lock. */
jk_entry *jk_outbox_pop_locked(jk_outbox *outbox);
/* From now on no text waits for more of its kind, nor for a slower pace. */
void jk_outbox_hurry(jk_outbox *outbox);
/* Append stream text. Waits for nothing. */
int jk_outbox_stream(jk_server *server, jk_parent *parent, jk_stream stream, const char *text, size_t size);
/* Wait for room, at most JK_WRITER_WAIT; then the subscribers that are too far behind are set aside (where
 * iopub is libzmq's, the oldest stream text gives way). Hold no lock. */
void jk_outbox_wait_room(jk_server *server);
/* Whether the queue alone is over the limit. Descriptors are read until then: what is in flight may belong to
 * a subscriber that never reads, and must not block a program that writes. */
bool jk_outbox_crowded(jk_server *server);
/* io thread: its poll has ended. */
void jk_outbox_awake(jk_server *server);
/* Wake the io thread, whatever the outbox holds. Any thread. */
void jk_outbox_wake(jk_outbox *outbox);

/* Enqueue `status: busy`; with `cell`, the parent becomes an executing cell (nothing happens if it is
 * already). */
void jk_status_busy(jk_server *server, jk_parent *parent, bool cell);
/* End the cell if it is one, enqueue `status: idle` and, in the same step, `busy` for the latest cell that
 * still runs. `reply`, when not NULL, goes first and is taken. */
void jk_status_idle(jk_server *server, jk_parent *parent, jk_entry *reply);
/* busy, the reply (NULL: none) and idle of a request that is not run. Takes `reply`. */
void jk_status_around(jk_server *server, jk_parent *parent, jk_entry *reply);
/* io thread: a kernel_info_request was answered. Its idle is said again to new subscribers for a while. */
void jk_status_answered(jk_server *server, jk_parent *parent);
/* io thread: say once more what a new subscriber has missed when its request came faster than its
 * subscription, as after a restart or over a connection to a busy kernel: the idle of the latest
 * kernel_info_requests, then, if `present`, the present status, of the running cell or without a parent.
 * `only`: as in jk_entry. `told`: it has the latest status. That is said again only behind an idle; if all
 * hear what one has missed, busy is. */
void jk_status_again(jk_server *server, bool present, uint64_t only, bool told);

/* io thread: send what may leave now; returns the ms after which to call again, -1 for "when woken". */
int jk_iopub_send(jk_server *server);
/* Publish through this listener, which is *taken*. Returns 0, or -1 with errno. */
int jk_iopub_open(jk_server *server, int listener);
/* io thread: take subscriptions and welcome each. */
void jk_iopub_receive(jk_server *server);
/* io thread: as an item of zmq_poll(). */
zmq_pollitem_t jk_iopub_item(const jk_server *server);
/* Turn an entry of stream text into a note about its loss. Holds outbox.lock. */
void jk_entry_give_way(jk_outbox *outbox, jk_entry *entry);

/* --- What arrives (shell.c, subshell.c, route.c) -----------------------------------------------------------
 */

/* Requests in the order of their arrival. */
typedef struct jk_lane {
    jk_request *head, *tail;
} jk_lane;

typedef struct jk_inbox {
    pthread_mutex_t lock;
    jk_lane cells, others; /* apart, so that what overtakes a running cell is found at once */
    uint64_t arrivals;     /* so far */
    uint64_t tickets;      /* given so far */
    uint64_t executing;    /* the ticket of the unfinished execute_request, or 0 */
    unsigned aborting;     /* failed cells whose queue is not cleared yet: no cell may start */
    bool closed;           /* nothing is accepted any more */
    bool dispatched;       /* the main thread has taken, or looked for, its first request */
    bool announced;        /* the busy of the first cell is out */
    int ready;             /* eventfd: jk_server_request_fd(), jk_subshell_fd() */
    atomic_bool signalled;
    atomic_bool shut;       /* `ready` is about to be closed */
    atomic_uint signallers; /* threads that may write to `ready` now */
} jk_inbox;

int jk_inbox_open(jk_inbox *inbox);
void jk_inbox_clear(jk_inbox *inbox);
/* Queue `request`, which is *taken*. Returns false, and takes nothing, when the inbox is closed. */
bool jk_inbox_push(jk_inbox *inbox, jk_request *request);
/* Accept nothing any more and take what is queued, linked by `next`. */
jk_request *jk_inbox_close(jk_inbox *inbox);
/* Make `ready` readable. Any thread, async-signal-safe. */
void jk_inbox_signal(jk_inbox *inbox);
/* Clear `ready`, take the first request that may start and publish its busy. NULL: there is none. */
jk_request *jk_inbox_next(jk_server *server, jk_inbox *inbox);

/* A shell beside the main one. References: the list's, the executor's, and one of each of its requests. */
struct jk_subshell {
    jk_server *server;
    atomic_uint references;
    char id[37];     /* a UUID */
    unsigned number; /* from 1, in the order of creation */
    jk_inbox inbox;
    jk_subshell *next; /* in the list */
};

typedef struct jk_subshells {
    pthread_mutex_t lock;
    jk_subshell *first;
    bool closed; /* no more are made */
    atomic_uint made;
} jk_subshells;

int jk_subshells_open(jk_subshells *subshells);
/* End all; no more are made. */
void jk_subshells_close(jk_server *server);
/* The one with this id, retained, or NULL. */
jk_subshell *jk_subshell_find(jk_server *server, const char *id);
/* Perform create_subshell_request, delete_subshell_request or list_subshell_request. The reply's content goes
 * into `content`. */
void jk_subshell_answer(jk_server *server, const jk_message *message, jk_buffer *content);
/* Answer without running it, between busy and idle: failed for `reason`, or aborted (an execute_request) when
 * that is NULL. Comm messages have no reply. Takes `request`. */
void jk_request_refuse(jk_request *request, const char *reason);
/* The content of a failed reply about subshells, with every member that any type of reply must have. */
void jk_error_content(jk_buffer *content, const char *reason);
/* io thread: `request` is about to be pushed; publish its busy now when nothing can run before it. */
void jk_shell_announce(jk_server *server, jk_request *request);

/* io thread: whether more requests may be read; if not, it is woken when they may. */
bool jk_shell_has_room(jk_server *server);
/* Read what waits in a ROUTER socket, at most `most` messages, and route each. Only by the socket's owner.
 * Returns how many. */
int jk_route_receive(jk_server *server, jk_channel channel, int most);
/* io thread: take the execute_requests that were sent to the same shell before the cell `failed` did, and
 * answer them as aborted. */
void jk_shell_abort(jk_server *server, const jk_request *failed);
/* Send a REPLY entry on the socket of `channel`, which the calling thread owns. */
void jk_reply_send(jk_server *server, jk_channel channel, const jk_entry *entry);

/* --- The rest --------------------------------------------------------------------------------------------
 */

typedef struct jk_input {
    pthread_mutex_t lock;
    int answered;           /* eventfd */
    bool waiting;           /* a question was sent and has no answer */
    unsigned long question; /* the io thread's own: the number of the message that asked it */
    bool closed;
    char *answer;
    size_t answer_size;
    jk_entry *unsent; /* the io thread's own: a question whose client was not connected */
} jk_input;

int jk_input_open(jk_input *input);
void jk_input_clear(jk_input *input);
void jk_input_close(jk_input *input);                   /* wake the waiting thread: JK_INPUT_CLOSED */
void jk_input_receive(jk_server *server);               /* io thread: the stdin socket is readable */
void jk_input_send(jk_server *server, jk_entry *entry); /* io thread; takes the entry */
/* io thread: send what could not be sent. Returns the ms until the next try, -1 when there is nothing. */
int jk_input_resend(jk_server *server);
/* io thread: `request` is about to be replied to, nobody waits for an answer any more. */
void jk_input_end(jk_server *server, const jk_request *request);

typedef struct jk_pipe {
    int saved;         /* what the descriptor was */
    int read_end;      /* -1: not captured */
    atomic_bool ended; /* every writer has closed it */
    char carry[4];     /* the start of a UTF-8 sequence that is not complete yet */
    size_t carried;
} jk_pipe;

typedef struct jk_stdio {
    pthread_mutex_t lock;
    atomic_bool active;
    jk_pipe pipes[2]; /* by jk_stream */
    jk_parent *owner; /* retained: whose text on stdout's pipe is; NULL: the running cell's */
} jk_stdio;

int jk_stdio_open(jk_stdio *stdio);
void jk_stdio_restore(jk_server *server);
void jk_stdio_clear(jk_stdio *stdio);
/* Take what is in the pipes into the outbox. The caller holds stdio.lock. */
void jk_stdio_drain_locked(jk_server *server);
/* Push what C's stdout still holds into its pipe; does nothing on the server's own threads. Hold no lock. */
void jk_stdio_flush(jk_server *server);
/* Take stdio.lock if the descriptors are captured, and drain. Returns whether the lock was taken. */
bool jk_stdio_enter(jk_server *server);
void jk_stdio_leave(jk_server *server, bool entered);

/* --- Debugging (debug.c) ---------------------------------------------------------------------------------
 */

/* Choose the folder for the names of cells. After jk_session_open(). */
void jk_debug_open(jk_server *server);
/* A debug_request has arrived on `channel`, whose socket the calling thread owns. Takes `message`. */
void jk_debug_request(jk_server *server, jk_channel channel, jk_message *message);
#define JK_CELL_SEED   0xc70f6907u
#define JK_CELL_SUFFIX ".py"
uint32_t jk_cell_hash(const void *data, size_t size);

/* Replies of the executor that leave through the control thread. */
typedef struct jk_replies {
    pthread_mutex_t lock;
    jk_entry *head, *tail;
    int wake; /* eventfd */
} jk_replies;

typedef struct jk_watchdog {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_t thread;
    bool started, cancelled;
    int64_t deadline;
    int64_t starved, given; /* ns the main thread had waited for a processor; by how much `deadline` grew */
    int exit_code;
} jk_watchdog;

/* Interrupts that a cell survives (insist.c): the control thread's own, but what is atomic. */
typedef struct jk_insist {
    atomic_uint came;             /* interrupts so far */
    atomic_uint told_by_executor; /* of these */
    unsigned seen;                /* of these */
    int64_t last;                 /* when the latest one was seen */
    int64_t look;                 /* when to look whether the cell still runs; 0: never */
    jk_parent *cell;              /* that ran then, retained */
    jk_parent *told;              /* the last one that was told, retained */
} jk_insist;

/* Control thread: once around its loop. Returns the ms until it is to be called again, -1 for "when woken".
 */
int jk_insist_look(jk_server *server);
void jk_insist_clear(jk_insist *insist);

typedef struct jk_parent_watch {
    int pidfd;     /* of the process named in JPY_PARENT_PID; -1: none, look at getppid() */
    long named;    /* 0: nothing to watch */
    long original; /* getppid() at the start */
    bool reported;
} jk_parent_watch;

struct jk_server {
    const jk_executor *executor;
    jk_config config;
    jk_session session;
    jk_signer *signer;
    jk_replay *replay;        /* NULL: messages are not signed */
    unsigned long generation; /* forks this process has come through */
    void *context, *heart_context;
    void *sockets[JK_CHANNELS];
    bool bound[JK_CHANNELS];
    /* NULL: encrypted, and a socket of libzmq's. */
    struct jk_publisher *publisher;
    struct jk_router *routers[JK_CHANNELS];   /* all but iopub */
    int heart_stop;                           /* eventfd: the heartbeat's thread is to end */
    atomic_bool started;                      /* `starting` was published */
    atomic_bool closing;                      /* jk_server_close() has begun */
    atomic_bool stopping;                     /* the threads are to end */
    atomic_bool shutdown;                     /* asked for by a client, or the parent died */
    _Atomic(int64_t) children_until;          /* then: when descendants that ignore SIGTERM are killed */
    atomic_bool debugging;                    /* the executor has been given a debug_request */
    char cell_prefix[JK_CELL_NAME_SIZE - 20]; /* folder and slash: what the names of cells begin with */
    atomic_long execution_count;
    atomic_size_t held; /* bytes of requests that are not replied to */
    atomic_bool full;   /* the io thread leaves the shell socket alone until `held` falls */
    jk_outbox outbox;
    jk_inbox inbox; /* the main shell's */
    jk_subshells subshells;
    jk_input input;
    jk_stdio stdio;
    jk_replies replies;
    jk_watchdog watchdog;
    jk_parent_watch watch;
    jk_insist insist;
    _Atomic(struct jk_record *) record; /* of this kernel's life (crash.h); NULL until it is open */
    bool record_kept;                   /* there is a file to remove */
    _Atomic(char *) notice;             /* what to say in the first output, owned; NULL: nothing */
    struct jk_usage *usage;             /* owned */
    pthread_t io, control, heartbeat;
    bool io_started, control_started, heartbeat_started;
    jk_server *next_closed; /* closed servers are kept: late callers find them closed */
};

/* False in a forked child and after jk_server_close() has begun to stop. */
bool jk_server_alive(const jk_server *server);
bool jk_server_forked(const jk_server *server);
/* Whether the calling thread is io, control or heartbeat. */
bool jk_server_own_thread(const jk_server *server);
int64_t jk_clock(void);
/* A lock that knows its owner: a crashed thread gives up what it holds, and nothing else. */
int jk_mutex_open(pthread_mutex_t *lock);
int jk_condition_open(pthread_cond_t *condition); /* on CLOCK_MONOTONIC */
/* Wait until `deadline`. Returns false when it has passed. */
bool jk_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline);
void jk_event_raise(int eventfd);
void jk_event_clear(int eventfd);

/* Bind all sockets; ports of 0 are chosen and written back, or told to the launcher that gave a registration
 * file. Returns 0, or -1 and a problem. */
int jk_sockets_bind(jk_server *server, char *problem, size_t problem_size);
void jk_sockets_close(jk_server *server);
/* Tell the launcher the ports and wait for its acknowledgement, 5 s at most. Returns 0, or -1 and a problem.
 */
int jk_server_register(jk_server *server, char *problem, size_t problem_size);
/* A Unix socket that listens at `path`, for its owner alone. `replace`: what a process that has ended left
 * there is removed. Returns a descriptor, or -1 with errno: EADDRINUSE when somebody listens there, EEXIST
 * when it is no socket. */
int jk_ipc_claim(const char *path, bool replace);

void *jk_io_run(void *server);
void *jk_control_run(void *server);
void *jk_heartbeat_run(void *server);

/* Answer on the socket of `channel`, which the calling thread owns. `content` is a JSON object. */
void jk_answer(jk_server *server, jk_channel channel, const jk_message *message, jk_slice content);
int jk_replies_open(jk_replies *replies);
void jk_replies_clear(jk_replies *replies);
void jk_replies_push(jk_server *server, jk_entry *entry); /* taken */

/* Break the running cell and what it started. Any thread. */
void jk_interrupt(jk_server *server);
/* End: tell the executor, the child processes and the watchdog. Any thread; does its work once. */
void jk_shutdown(jk_server *server, bool restart, int exit_code);
int jk_watchdog_open(jk_watchdog *watchdog);
void jk_watchdog_clear(jk_watchdog *watchdog); /* cancels it */

#define JK_PROCESSES_MOST 2048
typedef struct jk_processes {
    int count;
    long ids[JK_PROCESSES_MOST];
} jk_processes;
/* Append the children of `process`, as far as there is room. */
void jk_children_add(long process, jk_processes *found);
/* The descendants of this process, parents before their children. */
void jk_descendants(jk_processes *found);
/* `same_group` leaves out those in other process groups than ours. */
void jk_processes_signal(const jk_processes *processes, int signal, bool same_group);
/* Send a signal to the descendants of this process. */
void jk_children_signal(int signal, bool same_group);
/* From now on whoever loses its parent among the descendants becomes a child of this process. */
void jk_children_adopt(void);
/* Wait until the descendants have ended; those that have not by `deadline` are killed. */
void jk_children_end(int64_t deadline);

/* Open what is closed of the descriptors 0 to 2, and see that there is room for the server's descriptors and
 * threads. Returns 0, or -1 and a problem. */
int jk_process_prepare(char *problem, size_t problem_size);
/* Have SIGTERM and SIGHUP, unless somebody handles or ignores them, raise `wake`, an eventfd. */
void jk_ending_watch(int wake);
/* The signal that came since the last call, or 0. */
int jk_ending_asked(void);
/* Give the signals back. Async-signal-safe. */
void jk_ending_forget(void);
/* Around a fork, on the thread that forks: hold the signals back, let them come. Async-signal-safe. */
void jk_ending_hold(void);
void jk_ending_resume(void);
/* The addresses of the kernel's sockets; NULL: none any more. */
void jk_bound_remember(const jk_config *config);
/* In a forked child: close every socket with one of these addresses. Async-signal-safe. */
void jk_bound_close(void);

void jk_parent_watch_open(jk_parent_watch *watch);
void jk_parent_watch_clear(jk_parent_watch *watch);
/* Whether the parent has ended. */
bool jk_parent_watch_gone(jk_parent_watch *watch);

#endif
