/* What the layer is to fail: fault_plan.c decides, fault_layer.c fails it. */
#ifndef DRUPE_TEST_FAULT_PLAN_H
#define DRUPE_TEST_FAULT_PLAN_H

#include "layers/entries.h"
#include "layers/fault_layer.h"

typedef enum drupe_fault_entry {
#define DRUPE_FAULT_ENTRY(result, name, ...) DRUPE_FAULT_##name,
    DRUPE_ENTRIES_SLOT(DRUPE_FAULT_ENTRY) DRUPE_ENTRIES_OBJECT(DRUPE_FAULT_ENTRY)
#undef DRUPE_FAULT_ENTRY
        DRUPE_FAULT_ENTRIES,
    DRUPE_FAULT_any = DRUPE_FAULT_ENTRIES, /* counts all that can fail */
    DRUPE_FAULT_event,                     /* submissions with an event */
    DRUPE_FAULT_submission,                /* all submissions */
    DRUPE_FAULT_COUNTERS
} drupe_fault_entry;

/* Read DRUPE_FAULT, the first time. */
drupe_status drupe_fault_start(void) DRUPE_MUST_CHECK;
/* Count a call. DRUPE_OK, or the planned failure, set as the thread's error. */
drupe_status drupe_fault_count_call(drupe_fault_entry entry, const char *backend) DRUPE_MUST_CHECK;
/* The fate of the event of a submission that begins: DRUPE_OK, or what it shall end with. */
drupe_status drupe_fault_event_fate(void) DRUPE_MUST_CHECK;
/* Whether the devices are lost by plan; `submission`: one begins. */
bool drupe_fault_lost(bool submission);

#endif
