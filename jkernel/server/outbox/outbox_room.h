/* The room of the outbox: everything that leaves, in the order in which it was said, until it leaves.
 *
 * Whoever publishes enqueues into one outbox; the io thread alone takes from it. Stream text grows the last
 * entry instead of adding one. The outbox is bounded: writers wait for subscribers that read. What C code and
 * child processes write to descriptors 1 and 2 is taken from pipes into the same outbox before each append.
 *
 * Owns: the outbox, the list of executing cells, the captured descriptors.
 * Locks, in the order in which they may nest: stdio.lock, outbox.lock. outbox.lock covers outbox, writers and
 * cells; stdio.lock covers the pipes, and whoever enqueues output takes it first, to keep the order.
 * Threads: any may publish; the io thread takes; libzmq's threads tell unread.c what has landed. */
#ifndef JK_OUTBOX_ROOM_H
#define JK_OUTBOX_ROOM_H

#include "jkernel/server/record/record_room.h"

#include <time.h>

#define JK_OUTBOX_LIMIT (64u << 20) /* bytes queued or in flight, above which writers wait */
/* The same when a client is slow, but reads: writers go on after JK_WRITER_WAIT up to this. */
#define JK_OUTBOX_MOST   ((size_t)256 << 20)
#define JK_WRITER_WAIT   (10 * JK_SECOND)
#define JK_STREAM_MOST   (1u << 20)       /* bytes of text in one stream message */
#define JK_ANSWERED_MOST 8                /* kernel_info_requests whose idle a new subscriber hears again */
#define JK_ANSWERED_FOR  (60 * JK_SECOND) /* how long they are remembered */
#define JK_LOOK_AGAIN    1 /* ms until the io thread looks again after it has handed requests over */

/* --- entry.c ------------------------------------------------------------------------------------------- */

typedef enum jk_entry_kind {
    JK_ENTRY_PUBLISH, /* an iopub message */
    JK_ENTRY_STREAM,  /* text; grows while it is the last entry */
    JK_ENTRY_NOTE,    /* stands where stream text was given up: `lost` bytes */
    JK_ENTRY_REPLY,   /* to shell or control; owns its request */
    JK_ENTRY_INPUT,   /* input_request */
} jk_entry_kind;

/* Whoever makes an entry fills it and hands it over; from then on the outbox and the io thread write it. It
 * has over 20 members with those of its buffers: it is one message in all its parts. */
typedef struct jk_entry {
    struct jk_entry *next;
    jk_entry_kind kind;
    jk_parent *parent;                            /* retained; NULL: none */
    jk_request *request;                          /* REPLY: owned */
    void (*request_release)(jk_request *request); /* of the room of requests; NULL: there is none */
    jk_message *to; /* INPUT: borrowed from a request that is not replied to yet */
    char *type;
    struct timespec date;
    jk_stream stream;
    unsigned flags;
    jk_buffer content;
    jk_buffer metadata;
    jk_bytes *buffers; /* one block, the bytes behind the slices */
    size_t nbuffers;
    size_t lost;
    uint64_t only; /* the subscriber that is to get it; 0: all */
    size_t cost;   /* what outbox.bytes counts for it */
    bool patient;  /* more follows at once: not worth waking an io thread that looks soon by itself */
} jk_entry;

/* A new entry with the date of now. NULL: no memory. */
jk_entry *jk_entry_create(jk_entry_kind kind, const char *type, jk_parent *parent);
void jk_entry_release(jk_entry *entry);

/* --- outbox.c: the queue and the wake-up of the io thread ---------------------------------------------- */

typedef struct jk_outbox {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* something left, or the server closes */
    jk_entry *head, *tail;
    size_t bytes;          /* of content in the queue */
    uint64_t pushed, sent; /* entries, counted since the start */
    size_t statuses;       /* that wait in the queue */
    uint64_t urgent;       /* stream text up to this count may not be held back */
    size_t others;         /* entries that are not stream text */
    bool hurry;            /* the server closes: nothing is held back */
    bool closed;           /* nothing is accepted any more */
    bool sleeping;         /* the io thread is in its poll: write to `wake` */
    bool calling;          /* write to `wake` on leaving the lock: jk_outbox_unlock() */
    int64_t look;          /* when the io thread's poll ends by itself */
    int wake;              /* eventfd */
} jk_outbox;

/* The last of these after the io thread has ended. */
int jk_outbox_open(jk_outbox *outbox);
void jk_outbox_close(jk_outbox *outbox); /* accept nothing any more */
void jk_outbox_clear_locked(jk_outbox *outbox);
/* Enqueue; `entry` is taken in every case. Wait for nothing. Returns 0, or -1 when the outbox is closed or
 * `entry` is NULL. */
int jk_outbox_push(jk_server *server, jk_entry *entry);
/* The same under the lock that the caller holds, and leaves with jk_outbox_unlock(): the io thread is woken
 * after the lock, or it would wake only to wait for it. */
int jk_outbox_push_locked(jk_outbox *outbox, jk_entry *entry);
void jk_outbox_unlock(jk_outbox *outbox);
/* Text was added to the last entry. */
void jk_outbox_grown_locked(jk_outbox *outbox, jk_entry *entry);
/* Take the head of a queue that is not empty, under the lock. */
jk_entry *jk_outbox_pop_locked(jk_outbox *outbox);
/* So many that were taken have left. */
void jk_outbox_sent_locked(jk_outbox *outbox, uint64_t count);
/* What is queued now may not be held back. */
void jk_outbox_urge_locked(jk_outbox *outbox);
/* From now on no text waits for more of its kind, nor for a slower pace. */
void jk_outbox_hurry(jk_outbox *outbox);
/* Turn an entry of stream text into a note about its loss. */
void jk_entry_give_way(jk_outbox *outbox, jk_entry *entry);
/* The oldest stream text gives way, until the queue is well below its limit. */
void jk_outbox_shed_locked(jk_outbox *outbox);
/* Wake the io thread from its poll, whatever the outbox holds. Any thread. */
void jk_outbox_wake(jk_outbox *outbox);
void jk_outbox_wake_locked(jk_outbox *outbox); /* if it is in one */
/* io thread: it goes into its poll for `delay` ms, -1: until it is woken; its poll has ended. */
void jk_outbox_sleep_locked(jk_outbox *outbox, int delay);
void jk_outbox_awake_locked(jk_outbox *outbox);
void jk_outbox_awake(jk_server *server);

/* --- unread.c: what the slowest subscriber has not taken, of those that are waited for ----------------- */

typedef struct jk_unread {
    atomic_size_t bytes;
    atomic_uint progress; /* counts */
    atomic_bool watched;  /* somebody waits for `bytes` to fall */
} jk_unread;

void jk_unread_set(jk_server *server, size_t bytes); /* as a publisher of ours sees it */
void jk_unread_add(jk_server *server, size_t bytes); /* handed to libzmq */
/* libzmq has let go of so much; then, when it is freed, tell whoever watches. Any thread. */
void jk_unread_landed(jk_server *server, size_t bytes);
void jk_unread_tell(jk_server *server);
/* Have the io thread woken when some of it lands. */
void jk_unread_watch(jk_server *server);

/* --- writers.c: the limit ------------------------------------------------------------------------------ */

typedef struct jk_writers {
    bool apart;          /* subscribers that do not read are set aside one by one */
    unsigned waiting;    /* threads in a wait for `moved` */
    bool stalled;        /* one waited in vain: the next ones do not wait until there is progress */
    unsigned stalled_at; /* `progress` at that time */
} jk_writers;

/* Wait for room, at most JK_WRITER_WAIT; then the subscribers that are too far behind are set aside (where
 * iopub is libzmq's, the oldest stream text gives way). Hold no lock. */
void jk_outbox_wait_room(jk_server *server);
/* Whether the queue alone is over the limit. Descriptors are read until then: what is in flight may belong to
 * a subscriber that never reads, and must not block a program that writes. */
bool jk_outbox_crowded(jk_server *server);
/* io thread: whether somebody has waited in vain, until there is progress; something left. */
bool jk_writers_stalled_locked(jk_server *server);
void jk_writers_tell_locked(jk_server *server);
/* Set `apart`. Before there are threads. */
void jk_writers_apart(jk_server *server);

/* --- cell_status.c ------------------------------------------------------------------------------------- */

typedef struct jk_answered {
    jk_parent *parent; /* retained; NULL: none */
    int64_t at;
} jk_answered;

/* Work of devices, whether a cell runs or not. */
typedef struct jk_work {
    bool wanted;           /* somebody ends idle kernels: else nothing of this is said */
    bool goes_on, said;    /* the engine's word; `busy` was published for it */
    int64_t since;         /* when it began, or the last cell ended */
    int64_t again, period; /* when a busy that lasts is to be said once more */
} jk_work;

typedef struct jk_cells {
    jk_parent *cell;      /* the executing cells, the latest first, each retained; linked by `below` */
    jk_parent *last_cell; /* the latest cell, executing or not, retained */
    unsigned serving;     /* requests between busy and idle */
    atomic_bool started;  /* `starting` was published */
    jk_work work;
    jk_answered answered[JK_ANSWERED_MOST]; /* a ring, the io thread's own */
    unsigned answers;                       /* so far */
} jk_cells;

void jk_cells_clear_locked(jk_cells *cells);
/* The cell to show a crash in: the running one, else the last one; NULL: none. Borrowed. */
jk_parent *jk_cells_latest(jk_server *server, bool *running);
/* Enqueue `status: busy`; with `cell`, the parent becomes an executing cell (nothing happens if it is
 * already). */
void jk_status_busy(jk_server *server, jk_parent *parent, bool cell);
/* End the cell if it is one, enqueue `status: idle` and, in the same step, `busy` for the latest cell that
 * still runs. `reply`, when not NULL, goes first and is taken. */
void jk_status_idle(jk_server *server, jk_parent *parent, jk_entry *reply);
/* io thread: say what is due of work and cells that go on. Returns the ms until the next look; -1: none. */
int jk_status_due(jk_server *server);
/* Whether the environment says that idle kernels are ended. Before there are threads. */
void jk_work_open(jk_work *work);
/* busy, the reply (NULL: none) and idle of a request that is not run. Takes `reply`. */
void jk_status_around(jk_server *server, jk_parent *parent, jk_entry *reply);
/* io thread: a kernel_info_request was answered. Its idle is said again to new subscribers for a while. */
void jk_status_answered(jk_server *server, jk_parent *parent);
/* io thread: say once more what a new subscriber has missed when its request came faster than its
 * subscription, as after a restart or over a connection to a busy kernel: the idle of the latest
 * kernel_info_requests, then, if `present`, the present status, of the running cell or without a parent.
 * `only`: as in jk_entry. `told`: it has the latest status. The present status follows every repeated idle.
 * Without one it is sent if the subscriber lacks it; `busy` is then sent only where `only` is set. */
void jk_status_again(jk_server *server, bool present, uint64_t only, bool told);

/* --- stream_text.c ------------------------------------------------------------------------------------- */

/* Append stream text. Waits for nothing. */
int jk_outbox_stream(jk_server *server, jk_parent *parent, jk_stream stream, const char *text, size_t size);

/* --- stdio_capture.c ----------------------------------------------------------------------------------- */

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

void jk_stdio_open(jk_stdio *stdio);
void jk_stdio_restore(jk_server *server);
void jk_stdio_clear(jk_stdio *stdio);
/* Push what C's stdout still holds into its pipe; does nothing on the server's own threads. Hold no lock. */
void jk_stdio_flush(jk_server *server);
/* Take stdio.lock if the descriptors are captured, and drain. Returns whether the lock was taken. */
bool jk_stdio_enter(jk_server *server);
void jk_stdio_leave(jk_server *server, bool entered);
/* In a crash: take what the descriptors and C's stdout hold, as far as their locks can be had. */
void jk_stdio_take(jk_server *server);

/* --- output.c: the room as a whole --------------------------------------------------------------------- */

/* The room's parts, each written by the file above that declares it. Together they have over 20 members: they
 * share two locks, and are one block. */
typedef struct jk_output {
    jk_outbox outbox;
    jk_unread unread;
    jk_writers writers;
    jk_cells cells;
    jk_stdio stdio;
} jk_output;

int jk_output_open(jk_server *server);
void jk_output_clear(jk_server *server); /* after the threads have ended */

#endif
