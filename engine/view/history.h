/* The recorder's memory: notes of unfinished work, spans of finished work, sums of cells, memory over time.
 */
#ifndef DRUPE_VIEW_HISTORY_H
#define DRUPE_VIEW_HISTORY_H

#include "view/view_room.h"

/* A span in the store, or, while its work is not over, one that is pending. */
typedef struct drupe_pending_span {
    drupe_view_span span; /* `lane`: see drupe_line */
    uint64_t submitted_ns;
    uint64_t longest_ns; /* whose label it has */
    uint64_t changed;    /* history.serial then */
    uint64_t last;       /* id of the last */
    uint32_t queue;      /* index */
    int8_t kind;         /* drupe_view_class, -1: no work, such as a barrier */
    bool over, gone;     /* its record is gone from the ring */
    bool proven;         /* something behind it was over when that was last looked at */
    bool told;           /* when it begins is known at once */
} drupe_pending_span;

/* A queue. Its lanes are the three numbers from three times its index on. */
typedef struct drupe_line {
    uint32_t number; /* 0: this place is free */
    uint32_t device; /* index */
    bool ordered;
    bool used[DRUPE_VIEW_CLASS_COUNT]; /* lanes that something was seen of */
    uint32_t waiting[DRUPE_VIEW_CLASS_COUNT];
    uint32_t last[DRUPE_VIEW_CLASS_COUNT]; /* of the lane's spans in the store, plus one; 0: none */
    uint32_t pending;                      /* that are not over, barriers too */
    uint64_t over_ns;                      /* the latest end that is known */
    uint64_t seen;                         /* id of the latest submission */
    /* While ends are worked out: */
    uint64_t proof_ns;
    bool blocked;
} drupe_line;

typedef struct drupe_history_unit {
    char filter[32];
    char root[32];          /* the same without the steps into a part */
    drupe_load load, maybe; /* `maybe`: times in which work lies whose own are not known */
    drupe_clock clock;
    uint64_t moved, kernels;
} drupe_history_unit;

typedef struct drupe_memory_series {
    char filter[64];
    drupe_view_sample samples[DRUPE_VIEW_SAMPLES];
    size_t count;
} drupe_memory_series;

typedef struct drupe_cell_totals {
    drupe_view_cell cell;
    drupe_union busy, maybe;
} drupe_cell_totals;

/* A number without a record, yet. */
typedef struct drupe_hole {
    uint64_t id, since_ns;
} drupe_hole;

/* Over 20 members: it is what one lock guards. history.c writes what is read and pending, spans.c the store,
 * lines.c the queues and devices, samples.c the series, account.c the cells; all raise `serial`. */
typedef struct drupe_history {
    uint64_t serial;  /* raised with every change */
    uint64_t cleared; /* the serial of the last merge: what was told of spans before is out of date */
    uint64_t after;   /* the last record read */
    uint64_t grain;   /* ns: spans are merged up to this length */
    uint32_t last_cell;
    uint32_t reading_cell;     /* of the record that was read last */
    drupe_line *line;          /* found last */
    drupe_cell_totals *totals; /* found last */
    drupe_pending_span spans[DRUPE_VIEW_SPANS];
    size_t nspans;
    drupe_pending_span pending[DRUPE_PENDING_SPANS_MOST]; /* by id */
    size_t npending;
    size_t unsettled; /* of the pending spans: found to be over since drupe_history_settle() */
    drupe_hole holes[DRUPE_HOLES_MOST];
    size_t nholes;
    drupe_trace_record batch[DRUPE_BATCH];
    drupe_line lines[DRUPE_QUEUES_MOST];
    drupe_history_unit units[DRUPE_DEVICES_MOST];
    size_t nunits;
    drupe_memory_series series[DRUPE_DEVICES_MOST];
    size_t nseries;
    drupe_cell_totals cells[DRUPE_VIEW_CELLS]; /* by number */
    size_t ncells;
} drupe_history;

/* NULL: no memory. */
drupe_history *drupe_history_new(void);
void drupe_history_free(drupe_history *history);
/* Read all that the ring holds and work out what is over. */
void drupe_history_read(drupe_history *history, uint64_t now);
/* One more record; then, after some, what of it is over. */
void drupe_history_add(drupe_history *history, const drupe_trace_record *record);
void drupe_history_settle(drupe_history *history);
/* The numbers of queues with unfinished work whose records are gone from the ring: only the queue knows when
 * that is over. At most DRUPE_QUEUES_MOST; returns how many. */
size_t drupe_history_stale_queues(const drupe_history *history, uint32_t *numbers);
/* What one of them said: `oldest` is drupe_trace_oldest(), which takes locks; `latest`: drupe_trace_latest()
 * before that was asked. */
void drupe_history_resolve(drupe_history *history, uint32_t number, uint64_t oldest, uint64_t latest,
                           uint64_t now);
/* The earliest that the work of a pending span can have begun. */
uint64_t drupe_history_begin(const drupe_history *history, const drupe_pending_span *entry);
/* lines.c: the queue's, made if need be. NULL: there are too many that have unfinished work. */
drupe_line *drupe_line_of(drupe_history *history, const drupe_trace_record *record);

/* Whether work of this class keeps the device itself from other work: functions of the host run on the host's
 * processors. */
static inline bool drupe_class_occupies(const char *filter, int kind)
{
    return kind != DRUPE_VIEW_HOST || strstr(filter, ":cpu:") != NULL;
}

/* It was skipped or cancelled. */
static inline bool drupe_never_ran(uint8_t status)
{
    return status == DRUPE_TRACE_SKIPPED || status == DRUPE_TRACE_CANCELLED;
}

/* As far as is known. */
static inline bool drupe_went_well(uint8_t status)
{
    return status == DRUPE_TRACE_COMPLETE || status == DRUPE_TRACE_PASSED || status == DRUPE_TRACE_UNKNOWN;
}

/* spans.c: put finished work into the store. */
void drupe_spans_put(drupe_history *history, const drupe_pending_span *entry);
/* Append to `list`, merging with its latest of the same lane, `*last` (index plus one), when both lie within
 * `grain` ns. True when merged. */
bool drupe_spans_merge(drupe_pending_span *into, const drupe_pending_span *next, uint64_t grain);
/* Merge neighbours of a list in which every lane stands in order, until at most `most` are left or nothing
 * can be merged. Returns how many are left. `lasts`: of each lane, its last in the
 * list, plus one. */
size_t drupe_spans_shrink(drupe_pending_span *list, size_t count, size_t most, uint32_t *lasts,
                          uint64_t *grain);
void drupe_spans_compact(drupe_history *history);
/* Forget the spans of these queues, by index. */
void drupe_spans_forget(drupe_history *history, const bool *queues);

/* account.c */
/* The cell's, made if need be; NULL: it is forgotten. */
drupe_cell_totals *drupe_account_of(drupe_history *history, uint32_t cell);
/* One more; `kind`: drupe_view_class, -1: no work. */
void drupe_account_submitted(drupe_history *history, uint32_t cell, int kind, uint64_t bytes);
void drupe_account_ended(drupe_history *history, const drupe_pending_span *entry);
void drupe_account_missed(drupe_history *history, uint32_t cell, uint64_t count);
void drupe_account_began(drupe_history *history, uint32_t cell, uint64_t ns, uint64_t used);
void drupe_account_finished(drupe_history *history, uint32_t cell, uint64_t ns, uint64_t used);
/* The most that was in use since the last call belongs to every cell that runs. */
void drupe_account_memory(drupe_history *history, uint64_t high);

/* The one that began last of those that run; 0: none. */
uint32_t drupe_account_running(const drupe_history *history);

/* samples.c */
typedef struct drupe_figures {
    drupe_device_figures devices[DRUPE_DEVICES_MOST];
    size_t count;
    uint64_t used; /* of all devices */
} drupe_figures;

void drupe_figures_look(drupe_figures *figures);
/* NULL: there are none. */
drupe_memory_series *drupe_samples_of(drupe_history *history, const char *filter);
/* Note what is in use; `always`: also when that is what it was. */
void drupe_samples_take(drupe_history *history, const drupe_figures *figures, uint64_t now, uint32_t cell,
                        bool always);

/* view_take.c */
drupe_status drupe_view_make(drupe_history *history, const drupe_view_wish *wish, uint64_t now,
                             drupe_view **view) DRUPE_MUST_CHECK;

#endif
