/* Tasks: what a submission is here. */
#ifndef DRUPE_HOST_TASK_H
#define DRUPE_HOST_TASK_H

#include "backends/host/host_state.h"

#define DRUPE_HOST_LINKS  4
#define DRUPE_HOST_ARGS   12
#define DRUPE_HOST_VALUES 512

typedef enum drupe_host_kind { DRUPE_HOST_MOVE, DRUPE_HOST_KERNEL, DRUPE_HOST_FUNCTION } drupe_host_kind;

/* What every task needs comes first: two lines that the submitter fills in and a worker writes to. The third
 * is not the submitter's, the fourth has what it waits for. It is wide because it is all that a submission
 * allocates: a record that its queue uses again. */
struct drupe_host_task {
    _Alignas(64) drupe_host_task *next; /* in a list of the ready */
    drupe_host_queue *queue;
    drupe_host_tpool *tpool;
    drupe_host_event *event; /* or NULL */
    drupe_host_event
        *predecessor; /* over when it has its turn: should it have failed, this fails as well; or NULL */
    /* Do items [begin, end). */
    void (*body)(drupe_host_task *task, size_t begin, size_t end);
    union {
        drupe_host_fn fn;
        const drupe_builtin *builtin;
    };
    union {
        void *user;
        drupe_host_code *code; /* retained: where `builtin` is, unless it is the engine's own; or NULL */
    };
    _Atomic(unsigned) pending; /* what it still waits for */
    unsigned first, count;     /* the workers that may run it */
    unsigned round;            /* of its queue when it was made */
    uint8_t kind;              /* drupe_host_kind */
    _Atomic(bool) failed;
    _Atomic(bool) faulted; /* `error` is that of a fault */
    _Atomic(bool) stuck;   /* a thread is parked inside of it for ever */
    bool wide;             /* several workers may run shares of it: it stays listed while there are any */
    bool sound;            /* its memory is sure to be there: a thread that waits may do shares of it */
    bool groups;           /* its items are groups of work-items */
    bool listed;           /* home->lock; wide ones only */
    bool more_links, more_args;        /* malloc'ed */
    uint64_t number;                   /* of those issued on its queue, from 1 */
    uint64_t submission;               /* drupe_submit's number */
    _Atomic(drupe_host_task *) behind; /* on its queue */
    drupe_host_task *later;       /* issued after it on its queue, or the next spare one; the submitter's */
    size_t items;                 /* 0: nothing is to be run */
    _Atomic(drupe_error *) error; /* malloc'ed: of its host function, or its fault */
    /* The third line. */
    drupe_host_task *prev;   /* as next */
    size_t grain;            /* with several items: a worker takes so many at a time */
    size_t worth;            /* wide: so many are worth waking a worker for */
    drupe_host_link *links;  /* `more_links`: these instead of links_inline */
    _Atomic(size_t) cursor;  /* wide */
    drupe_host_worker *home; /* wide: in whose list it is */
    unsigned running;        /* wide: workers that are at it; home->lock */
    _Alignas(64) drupe_host_link links_inline[DRUPE_HOST_LINKS];
    void *dst;
    const void *src;
    size_t bytes, pattern_size;
    const void **args; /* of a kernel: args_inline, or more, together with the values */
    const void *args_inline[DRUPE_HOST_ARGS];
    _Alignas(16) unsigned char values[DRUPE_HOST_VALUES]; /* argument values, or a fill's pattern */
};

/* A task for `s`, not yet queued. */
drupe_status drupe_host_task_new(const drupe_submit *s, drupe_host_task **task) DRUPE_MUST_CHECK;
/* Room for `count` argument pointers and `bytes` of values behind them; the values' address. */
drupe_status drupe_host_task_room(drupe_host_task *task, size_t count, size_t bytes,
                                  unsigned char **values) DRUPE_MUST_CHECK;
/* Put it on its queue behind what is there; *taken* also on failure. */
drupe_status drupe_host_task_queue(const drupe_submit *s, drupe_host_task *task) DRUPE_MUST_CHECK;
/* Of a wide one: whether a thread that has done shares of it should wake another. */
bool drupe_host_task_wants(drupe_host_task *task);
/* All shares are done, or it must not run. */
void drupe_host_task_finish(drupe_host_task *task);
/* For a thread that waits: a copy or fill of this queue that is ready, as drupe_host_worker_find() gives a
 * worker's, or NULL; and shares of it, until the deadline. ready.c, host_worker.c */
drupe_host_task *drupe_host_task_find_move(drupe_host_queue *queue);
void drupe_host_task_help(drupe_host_task *task, uint64_t deadline);
/* One that was never queued. */
void drupe_host_task_free(drupe_host_task *task);
/* All tasks of a queue on which nothing is unfinished. */
void drupe_host_task_forget(drupe_host_queue *queue);
/* An event whose work was done inline. */
void drupe_host_event_close_complete(drupe_host_event *event);

#endif
