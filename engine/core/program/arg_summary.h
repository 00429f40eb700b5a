/* What a submission does; and what it was called with, in the few words that a message needs: copied in every
 * submission, so small, and made into text after a failure. */
#ifndef DRUPE_CORE_ARG_SUMMARY_H
#define DRUPE_CORE_ARG_SUMMARY_H

#include "core/memory/memory_room.h"

#define DRUPE_ARG_SUMMARY_MOST 24u

typedef struct drupe_work drupe_work;
typedef struct drupe_arg_summary drupe_arg_summary;

/* What a submission does. Everything in it is borrowed, except in a deferred one, which owns `args`. */
struct drupe_work { /* of at most 96 bytes, which are cleared in a few moves */
    drupe_work_kind kind;
    uint32_t advice;
    drupe_kernel *kernel;
    const drupe_range *range;
    const drupe_arg *args;
    size_t nargs;
    /* Where all arguments are pointers and values as declared, of at most eight bytes each: these bytes,
     * those that are not there being 0; else NULL. */
    const uint64_t *words;
    void *dst;       /* or the memory that a hint is about */
    const void *src; /* COPY: the source; FILL: the pattern */
    size_t bytes;
    uint32_t pattern_size;
    bool to_host : 1, from_host : 1; /* COPY: that end is plain host memory */
    bool sound : 1;                  /* COPY, FILL: any thread may touch its memory, which is kept for it */
    bool brief : 1, checks_first : 1, faults_only : 1; /* HOST: as in drupe_submission */
    drupe_host_fn fn;
    void *user;
};
_Static_assert(sizeof(drupe_work) <= 96, "see above");

/* What an argument is, or must be. */
typedef struct drupe_form {
    uint32_t kind; /* drupe_arg_kind */
    uint32_t size; /* of a value in bytes; of what is declared 0: any */
} drupe_form;

struct drupe_arg_summary {
    uint8_t kind; /* drupe_work_kind */
    uint8_t dims;
    bool worded;                /* the arguments are as the kernel's forms say */
    uint32_t nargs;             /* given; at most DRUPE_ARG_SUMMARY_MOST are kept */
    const drupe_kernel *kernel; /* borrowed; of a KERNEL */
    size_t global[3], local[3];
    size_t bytes, pattern_size; /* of a COPY, FILL or hint */
    /* The first eight bytes of each value; COPY: the target, the source; FILL: the target. */
    uint64_t bits[DRUPE_ARG_SUMMARY_MOST];
    drupe_form forms[DRUPE_ARG_SUMMARY_MOST]; /* of a KERNEL, unless it is `worded` */
};

/* `work` may be incomplete, as it is when it was refused. */
void drupe_arg_summary_take(drupe_arg_summary *summary, const drupe_work *work);
/* What is known of it as one line; "" for a barrier. `refs` are what the submission keeps alive: memory among
 * them is told by kind and size. */
void drupe_arg_summary_text(const drupe_arg_summary *summary, const drupe_keep *refs, size_t nrefs,
                            char *text, size_t size);

#endif
