/* Why a handle is marked: mark.c writes it, mark_read.c tells it. */
#ifndef DRUPE_CORE_QUEUE_MARK_H
#define DRUPE_CORE_QUEUE_MARK_H

#include "core/queue/queue_room.h"

typedef struct drupe_reason {
    drupe_mark mark;
    drupe_cause *cause;   /* retained */
    bool ran;             /* the work had begun, so the contents are nobody's */
    bool new_bytes;       /* it was to replace all of them */
    drupe_memory *memory; /* while it is lifted, as is the next */
    struct drupe_reason *next;
    uint64_t number; /* of the work; 0: not known */
    char label[64];  /* its */
} drupe_reason;

#endif
