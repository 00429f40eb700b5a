/* What the devices did and do, as pictures and tables need it.
 *
 * A *recorder*, one thread of the engine, reads the trace ring before it comes round again and keeps two
 * things whose size is bounded: for each of the last cells exact sums, and for each *lane* (the kernels, the
 * copies or the host functions of one queue) a list of *spans*. A span is one submission, or, when there are
 * too many, several neighbours of one cell and lane, then `count` says how many. Nothing is left out: what
 * the recorder came too late to read is counted in `missed` of its cell.
 *
 * A *view* is a copy of a part of that: it never changes and belongs to the caller. Making one takes no
 * Python, asks no driver and blocks nobody who submits, so pictures move while the interpreter is stuck.
 *
 * Times are CLOCK_MONOTONIC nanoseconds. Where it is known when work ran (the `host` device, what threads of
 * the engine run, profiling queues), a span says that and `exact` is set. Elsewhere it is an *interval*: the
 * work did not begin before its start (the submission, or what is known to stand before it on an in-order
 * queue), and was over by its end, when it was found to be. How long it ran in between nobody knows: an
 * interval is never busy time. Sums count it beside that: what was busy for `busy` was so for `busy` plus
 * `maybe` at most.
 *
 * Threads: every function may be called from any thread. */
#ifndef DRUPE_VIEW_H
#define DRUPE_VIEW_H

#include "drupe/memory.h"
#include "drupe/trace.h"

#define DRUPE_VIEW_CELLS   64u    /* cells that are remembered */
#define DRUPE_VIEW_SPANS   16384u /* spans that are remembered, over all lanes */
#define DRUPE_VIEW_SAMPLES 1024u  /* memory samples that are remembered of each device */
#define DRUPE_VIEW_COLOURS 36u

typedef enum drupe_view_class {
    DRUPE_VIEW_KERNELS,
    DRUPE_VIEW_COPIES, /* and fills */
    DRUPE_VIEW_HOST,   /* functions of the host in the queue's order */
    DRUPE_VIEW_CLASS_COUNT
} drupe_view_class;

/* How far work is. */
typedef enum drupe_view_state {
    DRUPE_VIEW_OVER,
    DRUPE_VIEW_RUNNING,   /* it has begun */
    DRUPE_VIEW_WAITING,   /* it has not begun */
    DRUPE_VIEW_SUBMITTED, /* nobody tells whether it has begun */
    DRUPE_VIEW_STATE_COUNT
} drupe_view_state;

/* One row of a timeline. */
typedef struct drupe_view_lane {
    char device[32]; /* filter string */
    uint32_t queue;  /* drupe_queue_number() */
    drupe_view_class kind;
    uint32_t waiting;                      /* submissions that are not over, */
    uint32_t open[DRUPE_VIEW_STATE_COUNT]; /* by their state */
} drupe_view_lane;

typedef struct drupe_view_span {
    uint64_t start_ns, end_ns; /* end_ns 0: not over */
    uint64_t busy_ns;          /* of the time between, with work; of what is not exact: 0 */
    uint64_t id;               /* drupe_trace_record.id of the first */
    uint64_t count;            /* submissions */
    uint64_t bytes, items;     /* sums */
    uint32_t lane;             /* index into drupe_view.lanes */
    uint32_t cell;             /* number, 0: none */
    uint32_t site;             /* of the first */
    uint8_t status;            /* drupe_trace_status: the worst of them; UNKNOWN is worse than PASSED */
    uint8_t state;             /* drupe_view_state */
    bool exact;                /* it ran then; else it ran some time between */
    char label[56];            /* of the longest */
} drupe_view_span;

/* Exact sums of a cell. Over 20 members: it is copied out as one piece. */
typedef struct drupe_view_cell {
    uint32_t number;             /* 0: work of no cell */
    bool running;                /* its code has not ended */
    uint64_t began_ns, ended_ns; /* of its code; 0: not known, not ended */
    uint64_t first_ns, last_ns;  /* of its device work */
    uint64_t busy_ns;            /* with at least one of its submissions on some device */
    uint64_t maybe_ns;           /* with such of which nobody knows when in this time they ran */
    uint64_t count[DRUPE_VIEW_CLASS_COUNT];
    uint64_t bytes[DRUPE_VIEW_CLASS_COUNT];    /* of copies and fills: moved; of kernels: see trace.h */
    uint64_t class_ns[DRUPE_VIEW_CLASS_COUNT]; /* sums of the spans' busy_ns */
    uint64_t untimed[DRUPE_VIEW_CLASS_COUNT];  /* submissions that are over and have no times */
    uint64_t waiting, failed, skipped, cancelled;
    uint64_t open[DRUPE_VIEW_STATE_COUNT]; /* of those that are waiting: not over */
    uint64_t missed;                       /* submissions of which only the number is known; not in `count` */
    uint64_t memory_before, memory_after,
        memory_peak; /* bytes in use on all devices; after: when its code ended */
} drupe_view_cell;

typedef struct drupe_view_sample {
    uint64_t ns;
    uint64_t used[3];  /* bytes handed out, by drupe_mem_kind */
    uint64_t reserved; /* taken from the driver */
    uint32_t cell;     /* that ran when `used` last changed */
} drupe_view_sample;

typedef struct drupe_view_device {
    drupe_device_use use;
    uint64_t used[3];                  /* by drupe_mem_kind */
    uint64_t peak, limit, allocations; /* see drupe_pool_stats */
    double busy;                       /* 0 to 1: share of the last second with work */
    double maybe;                      /* 0 to 1 - busy: with work that may have run then */
    uint32_t waiting;                  /* submissions that are not over */
    bool lost;                         /* DRUPE_E_DEVICE_LOST */
    uint64_t busy_ns, maybe_ns;        /* since the recorder began: with work that is over, as in a cell */
    uint64_t moved, kernels;           /* bytes of copies and fills that ran; kernels that did */
    const drupe_view_sample *samples;  /* oldest first, in the view's time range */
    size_t nsamples;
} drupe_view_device;

typedef struct drupe_view {
    uint64_t now_ns;         /* when it was made */
    uint64_t unix_ns;        /* the same instant as time since 1970 */
    uint64_t from_ns, to_ns; /* the range of the spans */
    uint64_t latest;         /* drupe_trace_latest() */
    uint64_t serial;         /* give it to the next wish to get only what changed */
    const drupe_view_device *devices;
    size_t ndevices;
    const drupe_view_lane *lanes; /* by device, then queue, then class: a lane keeps its place */
    size_t nlanes;
    const drupe_view_span *spans; /* by lane, then start */
    size_t nspans;
    const drupe_view_cell *cells; /* by number */
    size_t ncells;
    bool whole; /* the spans are all there are, not only what changed since wish.after */
} drupe_view;

/* What a view is to hold; zeros mean all that is remembered. */
typedef struct drupe_view_wish {
    uint32_t first_cell, last_cell; /* numbers; both 0: all */
    uint64_t since_ns;              /* spans that ended (or go on) after this */
    /* `serial` of an earlier view: only spans that changed since, and all that go on. A span replaces the one
     * with its lane and id; spans that went on in the earlier view are to be forgotten. When spans were
     * merged meanwhile, or the serial is not one of this recorder, the view is `whole` and replaces
     * everything. */
    uint64_t after;
    /* At most so many, as far as neighbours can be merged; 0: DRUPE_VIEW_SPANS. With `after`, what has
     * changed is merged alone: then the spans do not fit an earlier view, and the rest of the view is what
     * counts. */
    size_t spans;
} drupe_view_wish;

/* Start the recorder, which then lives until drupe_view_stop(); it sleeps while nothing is submitted. */
DRUPE_API drupe_status drupe_view_start(void) DRUPE_MUST_CHECK;
/* End the recorder and forget what it knows. Waits for its thread. Without effect when there is none. */
DRUPE_API void drupe_view_stop(void);
/* Tell the recorder that the code of a cell begins or has ended: see drupe_view_cell. Never blocks. */
DRUPE_API void drupe_view_cell_began(uint32_t number);
DRUPE_API void drupe_view_cell_ended(uint32_t number);
/* Have `listener` called on the recorder's thread when it has seen something new or work goes on: four times
 * a second at most, the last time after the last of it. It must not block nor call this. NULL: nobody, though
 * a call may still be under way. */
typedef void drupe_view_listener(void);
DRUPE_API void drupe_view_listen(drupe_view_listener *listener);
/* Have `listener` called on the recorder's thread when work of any device begins where there was none, and
 * when there has been none for half a second, or by drupe_view_stop() when it is no longer known. It must not
 * block nor call this. NULL: nobody, as above. */
typedef void drupe_view_work_listener(bool goes_on);
DRUPE_API void drupe_view_listen_work(drupe_view_work_listener *listener);
/* Whether work of any device goes on, or was over less than half a second ago, as the recorder saw it last;
 * false without a recorder. */
DRUPE_API bool drupe_view_works(void);
/* A view, after reading all that the ring holds. DRUPE_E_UNSUPPORTED without a recorder. *Retained*: give it
 * to drupe_view_release(), NULL-safe. */
DRUPE_API drupe_status drupe_view_take(const drupe_view_wish *wish, drupe_view **view) DRUPE_MUST_CHECK;
DRUPE_API void drupe_view_release(drupe_view *view);
/* 0xRRGGBB, the colour of a cell wherever it is shown, readable on light and dark ground; neighbours differ
 * also for the colour-blind. Of no cell: grey. Red stands for failures alone and is none of them. */
DRUPE_API uint32_t drupe_view_colour(uint32_t cell);

/* --- Frames: a view as text ----------------------------------------------------------------------------- */

typedef enum drupe_frame_kind {
    DRUPE_FRAME_EVENTS,    /* lanes with their spans, and the busiest labels */
    DRUPE_FRAME_TABLE,     /* one line per label: count, device time, share, bytes, rate */
    DRUPE_FRAME_MEMORY,    /* devices by kind with peak and limit, over time */
    DRUPE_FRAME_DASHBOARD, /* devices, lanes, memory, errors, in that order */
    DRUPE_FRAME_FOOTER     /* a cell in one line */
} drupe_frame_kind;

typedef struct drupe_frame_style {
    uint32_t columns;   /* of text; 0: 80 */
    bool live;          /* it will be replaced: keeps the layout of the last one; else a record that stays */
    uint32_t cell;      /* FOOTER: the number */
    const char *device; /* of MEMORY: this one alone, by its filter; NULL or "": all */
} drupe_frame_style;

/* The same frame as plain text, as HTML that sanitizers leave as it is (inline styles, no script, svg, style
 * or var), or as the JSON of application/vnd.drupe.trace+json. NUL-ended, `*size` without the NUL; *taken* by
 * the caller, who frees it. */
DRUPE_API drupe_status drupe_frame_text(const drupe_view *view, drupe_frame_kind kind,
                                        const drupe_frame_style *style, char **text,
                                        size_t *size) DRUPE_MUST_CHECK;
DRUPE_API drupe_status drupe_frame_html(const drupe_view *view, drupe_frame_kind kind,
                                        const drupe_frame_style *style, char **html,
                                        size_t *size) DRUPE_MUST_CHECK;
/* Also what the panel gets: with wish.after only what changed. The format is described in engine/view/json.c
 * and read by python/labextension. */
DRUPE_API drupe_status drupe_frame_json(const drupe_view *view, char **json, size_t *size) DRUPE_MUST_CHECK;
/* The log of failures (drupe_failures_read()) with ids above `after`, as {"errors": [...], "latest": id}; see
 * engine/view/errors.c. */
DRUPE_API drupe_status drupe_frame_errors(uint64_t after, char **json, size_t *size) DRUPE_MUST_CHECK;

#endif
