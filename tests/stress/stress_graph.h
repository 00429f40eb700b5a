/* Random scripts of device work against a sequential oracle.
 *
 * A script is a list of steps, each on a random queue, that read and write parts of places: memory of several
 * contexts and devices, and plain arrays of the host. Before a step is submitted the script works out which
 * earlier steps it conflicts with and which of them are known to be over by then: through the order of an
 * in-order queue, through waits and what those waited for, or because the host has waited. It names the rest
 * as waits, and no others but for a few at random, so that everything that the engine promises about order is
 * relied upon. At the end the steps that completed, done one after the other, say what must be in the places.
 *
 * In checked mode submissions say what they touch, and now and then one first leaves out a wait that it
 * needs: that, and nothing else, must be refused as a race.
 *
 * With failures some host functions fail. What waits for a failed step or stands behind it must fail too,
 * nothing else may, and what failed must have left no trace. Memory that it was to write is marked, and no
 * other: a step that reads it is refused until the script takes it as it is.
 *
 * Scratch memory is that of results, so pieces are handed on while work still uses them. */
#ifndef STRESS_GRAPH_H
#define STRESS_GRAPH_H

#include "conformance/conformance.h"

#define STEPS    192
#define WORDS    ((STEPS + 63) / 64)
#define PLACES   14
#define QUEUES   12
#define LINES    4
#define ELEMENTS 600

/* Queues of one device in one context. */
struct line {
    struct bench *bench;
    drupe_device *device;
};

struct lane {
    struct line *line;
    drupe_queue *queue;
    bool ordered;
};

/* What all threads of a seed share. */
struct world {
    struct line lines[LINES];
    size_t nlines;
    struct lane lanes[QUEUES];
    size_t nlanes;
    bool failures, checked;
    bool alone; /* one thread uses the queues */
};

struct place {
    struct bench *bench; /* NULL: an array of the host */
    drupe_memory *memory;
    uint64_t *elements; /* where the host may touch them, or NULL */
    uint64_t *address;
    uint64_t oracle[ELEMENTS];
    bool
        accepted; /* its contents were taken as they are, though work may still fail that was to write them */
};

struct part {
    struct place *place; /* NULL: none */
    size_t first, count;
};

enum kind { MAD, COPY, FILL, SCRATCH, HOST, BARRIER, FAILURE, KINDS };

struct step {
    enum kind kind;
    size_t lane;
    struct part in, out;
    uint64_t mul, add, pause;
    drupe_event *event;
    uint64_t before[WORDS]; /* steps that are over before this one starts */
    uint64_t waits[WORDS];  /* those that it names */
    long needed;            /* one of them that nothing else covers, or -1 */
    bool failed, over;
};

struct script {
    struct world *world;
    uint64_t seed, random;
    struct place places[PLACES];
    struct step steps[STEPS];
    size_t nsteps, wanted;
    uint64_t known[WORDS]; /* steps that the host knows to be over */
    bool failed;           /* a message has been printed */
};

/* One script on queues that it may share with others; false and a message when something is wrong. */
void script_open(struct script *script, struct world *world, uint64_t seed, size_t steps);
void script_run(struct script *script);
bool script_close(struct script *script);

void world_open(struct world *world, struct bench *const *benches, size_t nbenches, uint64_t seed);
void world_close(struct world *world);
/* A queue for the lane, of a kind that the dice choose. */
void lane_open(struct lane *lane, uint64_t dice);

#endif
