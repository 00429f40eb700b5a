/* The room of requests: those that the executor is to perform, from their arrival to their reply, in the main
 * shell and in those beside it, and the questions that a request asks.
 *
 * Owns: inboxes and the requests in them, the list of subshells, the one open question, the replies that
 * leave through the control thread. Locks, each taken alone: inbox.lock, input.lock, replies.lock;
 * subshells.lock is held over executor.debugger_open(), which may take a lock of the executor's. Threads: io
 * and control push, the executor's threads take and reply; each function says who may call it. */
#ifndef JK_REQUESTS_ROOM_H
#define JK_REQUESTS_ROOM_H

#include "jkernel/server/outbox/outbox_room.h"
#include "jkernel/server/ports/ports_room.h"

/* Bytes of requests that are not replied to, above which no more are read from the shell socket. What a
 * client sends then waits with the transport and with the client. */
#define JK_HELD_LIMIT (128u << 20)

/* --- inbox.c ------------------------------------------------------------------------------------------- */

typedef struct jk_queued {
    uint64_t arrival;  /* its place among all of the inbox */
    uint64_t sequence; /* given at dispatch; 0 before */
    jk_request *next;  /* in its lane */
} jk_queued;

/* Requests in the order of their arrival. */
typedef struct jk_lane {
    jk_request *head, *tail;
} jk_lane;

typedef struct jk_inbox {
    pthread_mutex_t lock;
    jk_lane cells, others;  /* apart, so that what overtakes a running cell is found at once */
    uint64_t arrivals;      /* so far */
    uint64_t last_sequence; /* given so far */
    uint64_t executing;     /* the sequence of the unfinished execute_request, or 0 */
    unsigned aborting;      /* failed cells whose queue is not cleared yet: no cell may start */
    bool closed;            /* nothing is accepted any more */
    bool dispatched;        /* the main thread has taken, or looked for, its first request */
    bool announced;         /* the busy of the first cell is out */
    int ready;              /* eventfd: jk_server_request_fd(), jk_subshell_fd() */
    atomic_bool signalled;
} jk_inbox;

int jk_inbox_open(jk_inbox *inbox);
/* Returns what was queued, linked by `queued.next`, for jk_requests_release(). */
jk_request *jk_inbox_clear(jk_inbox *inbox);
/* Queue `request`, which is *taken*. Returns false, and takes nothing, when the inbox is closed. */
bool jk_inbox_push(jk_inbox *inbox, jk_request *request);
/* Accept nothing any more and take what is queued, linked as above. */
jk_request *jk_inbox_close(jk_inbox *inbox);
bool jk_inbox_is_closed(jk_inbox *inbox);
/* Make `ready` readable. Any thread, async-signal-safe. */
void jk_inbox_signal(jk_inbox *inbox);
/* Clear `ready` and take the first request that may start. NULL: there is none. */
jk_request *jk_inbox_take(jk_inbox *inbox);
/* True once: `request` is the first cell and nothing was dispatched before it, so it runs next. */
bool jk_inbox_announce(jk_inbox *inbox, const jk_request *request);
/* The request with this sequence is replied to. */
void jk_inbox_end(jk_inbox *inbox, uint64_t sequence);
/* A cell has failed: no other starts until jk_inbox_take_cells(). */
void jk_inbox_abort(jk_inbox *inbox);
/* Take the cells that are queued, linked as above; others may start again. */
jk_request *jk_inbox_take_cells(jk_inbox *inbox);

/* --- held_request.c ------------------------------------------------------------------------------------ */

struct jk_request {
    jk_server *server;
    jk_message *message;   /* owned */
    jk_parent *parent;     /* retained */
    jk_channel channel;    /* where the reply goes */
    jk_subshell *subshell; /* retained; NULL: the main shell's */
    bool is_execute;
    size_t cost;      /* what held.bytes counts for it */
    jk_queued queued; /* the inbox writes it */
};

typedef struct jk_held {
    atomic_size_t bytes; /* of requests that are not replied to */
    atomic_bool full;    /* the io thread leaves the shell socket alone until `bytes` falls */
} jk_held;

/* Takes `message` and `subshell` (NULL: the main shell) in every case. NULL: no memory. */
jk_request *jk_request_create(jk_server *server, jk_message *message, jk_channel channel,
                              jk_subshell *subshell);
void jk_request_release(jk_request *request);
void jk_requests_release(jk_request *first); /* and those behind it */
/* io thread: whether more requests may be read; if not, it is woken when they may. */
bool jk_shell_has_room(jk_server *server);
/* "execute_request" to "execute_reply". */
void jk_reply_type(const char *request_type, char *type, size_t size);

/* --- shell.c ------------------------------------------------------------------------------------------- */

/* Take the first request that may start and publish its busy. NULL: there is none. */
jk_request *jk_inbox_next(jk_server *server, jk_inbox *inbox);
/* io thread: `request` is about to be pushed; publish its busy now when nothing can run before it. */
void jk_shell_announce(jk_server *server, jk_request *request);

/* --- reply.c ------------------------------------------------------------------------------------------- */

jk_inbox *jk_inbox_of(const jk_request *request);
/* Answer without running it, between busy and idle: failed for `reason`, or aborted (an execute_request) when
 * that is NULL. Comm messages have no reply. Takes `request`. */
void jk_request_refuse(jk_request *request, const char *reason);
/* Each of those that are linked by `queued.next`: cells as aborted, others as failed. Takes them. */
void jk_requests_refuse(jk_request *first, const char *reason);
/* The content of a failed reply about subshells, with every member that any type of reply must have. */
void jk_error_content(jk_buffer *content, const char *reason);
/* Send a REPLY entry on the socket of `channel`, which the calling thread owns. */
void jk_reply_send(jk_server *server, jk_channel channel, const jk_entry *entry);

/* --- subshell.c, subshell_list.c ----------------------------------------------------------------------- */

/* A shell beside the main one. References: the list's, the executor's, and one of each of its requests. */
struct jk_subshell {
    jk_server *server;
    atomic_uint references;
    char id[37];     /* a UUID */
    unsigned number; /* from 1, in the order of creation; the list writes it, and `next` */
    jk_inbox inbox;
    jk_subshell *next;
};

typedef struct jk_subshells {
    pthread_mutex_t lock;
    jk_subshell *first;
    jk_subshell *debugger; /* the one that debug_requests go to; NULL: none has come, or it has ended */
    bool closed;           /* no more are made */
    atomic_uint made;
} jk_subshells;

jk_subshell *jk_subshell_create(jk_server *server);
/* End all but the debugger's; no more are made. */
void jk_subshells_close(jk_server *server);
/* The one that debug_requests go to, retained; made when there is none. NULL: it cannot be. */
jk_subshell *jk_debugger_shell(jk_server *server);
/* The one with this id, retained, or NULL. */
jk_subshell *jk_subshell_find(jk_server *server, const char *id);
/* Perform create_subshell_request, delete_subshell_request or list_subshell_request. The reply's content goes
 * into `content`. */
void jk_subshell_answer(jk_server *server, const jk_message *message, jk_buffer *content);

/* --- input.c ------------------------------------------------------------------------------------------- */

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

/* --- control_replies.c: what the executor replies to control requests ---------------------------------- */

typedef struct jk_replies {
    pthread_mutex_t lock;
    jk_entry *head, *tail;
    int wake; /* eventfd */
} jk_replies;

int jk_replies_open(jk_replies *replies);
void jk_replies_clear(jk_replies *replies);
void jk_replies_push(jk_server *server, jk_entry *entry); /* taken */
void jk_replies_send(jk_server *server);                  /* control thread */
void jk_replies_wake(jk_server *server);                  /* the control thread; async-signal-safe */

/* --- requests.c: the room as a whole ------------------------------------------------------------------- */

/* The room's parts, each written by the file above that declares it; over 20 members together, because each
 * has a lock of its own. */
typedef struct jk_requests {
    jk_inbox inbox; /* the main shell's */
    jk_held held;
    atomic_long execution_count; /* reply.c */
    jk_subshells subshells;
    jk_input input;
    jk_replies replies;
} jk_requests;

int jk_requests_open(jk_server *server);
void jk_requests_clear(jk_server *server); /* after the threads have ended */

#endif
