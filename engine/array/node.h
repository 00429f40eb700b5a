/* Pending arrays: expressions whose values nobody has needed yet.
 *
 * A node is one element-wise operation that was called and not submitted. An array that is pending has its
 * node instead of memory; nodes have the nodes and the memory that they take. Those of a queue are in a list,
 * in the order of the calls. To settle is to submit all of a queue's list as few kernels (plan.c, fuse.c),
 * which leave the values of the nodes that an array still has, or that another kernel needs.
 *
 * Locks: one mutex of pending.c guards nodes and lists. It is never held while something is submitted or
 * allocated. Who settles a queue is written into its list; other threads wait for that one. */
#ifndef DRUPE_ARRAY_NODE_H
#define DRUPE_ARRAY_NODE_H

#include "array/array_room.h"
#include "drupe/array_pending.h"
#include "drupe/postpone.h"
#include "generated/drupe_fused.h"

#define DRUPE_PENDING_MOST 48 /* nodes of a queue; fewer than DRUPE_FUSED_STEPS, for what a target adds */

typedef enum node_state {
    NODE_PENDING,
    NODE_SETTLING, /* a thread is submitting it */
    NODE_SETTLED,  /* `memory` has its values, once the queue comes there */
    NODE_FAILED    /* it will never have any: `error` says why */
} node_state;

/* What a node takes: the values of another, or memory, or a constant. */
typedef struct node_input {
    struct drupe_node *node; /* retained, or NULL */
    drupe_memory *memory;    /* retained, and postponed for; or NULL */
    size_t offset;           /* elements */
    drupe_dtype dtype;       /* as stored */
    drupe_scalar scalar;     /* of a constant */
    drupe_u64 value[2];      /* the same, as its operation takes it */
} node_input;

typedef struct drupe_node {
    unsigned references; /* of arrays and of nodes that take it */
    unsigned arrays;     /* those of arrays */
    node_state state;
    int op;
    op_types types;
    drupe_dtype dtype; /* of its values */
    drupe_mem_kind kind;
    drupe_queue *queue; /* retained */
    drupe_origin origin;
    drupe_memory *memory;             /* retained, once SETTLED */
    drupe_error *error;               /* malloc'ed, once FAILED */
    struct drupe_node *next, *before; /* in its queue's list */
    /* plan.c's, while it is SETTLING: */
    int level, kernel, step;
    int takers, uses; /* inputs of the plan that it is; those that are not in a kernel yet */
    bool across; /* some memory that it is computed from is transposed: a reduction had better not join */
    bool output; /* its values are stored */
    size_t size;
    int ndim;
    unsigned nin;
    node_input in[DRUPE_KERNEL_INPUTS];
    ptrdiff_t axes[]; /* the shape, and for each input its strides along it, in elements */
} drupe_node;

static inline ptrdiff_t *node_strides(drupe_node *node, size_t input)
{
    return node->axes + (1 + input) * (size_t)node->ndim;
}

/* --- fuse_settings.c ------------------------------------------------------------------------------------ */

/* What the environment says; see docs/environment.md. */
typedef struct fuse_settings {
    bool off;      /* DRUPE_FUSE=0 */
    bool steps;    /* DRUPE_FUSE=steps: what is pending is launched one by one; for tests */
    bool patient;  /* DRUPE_FUSE_IDLE=0: what is pending waits until somebody needs it; for tests */
    size_t above;  /* DRUPE_FUSE_ABOVE: elements from which on results are pending */
    unsigned most; /* DRUPE_FUSE_MOST: nodes of a queue */
} fuse_settings;
const fuse_settings *drupe_fuse_settings(void);

/* --- node.c: nodes and lists ---------------------------------------------------------------------------- */

/* The list of a queue. Needs the lock. */
typedef struct pending_list {
    drupe_queue *queue; /* borrowed from its nodes */
    drupe_node *first, *last;
    unsigned count;
    size_t bytes; /* of the memory that they take, counted each time */
    bool settling;
    pthread_t settler;
    const struct pending_plan *plan; /* the settler's, while it is at it */
    const drupe_queue *awaits;       /* whose work the settler waits for; NULL: for none */
    struct pending_list *next;
    uint64_t touched; /* when the last node came */
    bool refused;     /* it could not be settled, and nobody is to try that unasked */
} pending_list;

/* Once, before the first node. */
void drupe_nodes_open(void);
/* Whether this is a forked child of a process that had nodes, or might have. */
bool drupe_pending_forked(void);
/* One reference of an array to its node more, or fewer; NULL is none. */
void drupe_node_hold(drupe_node *node);
void drupe_node_drop(drupe_node *node);
/* The lock of nodes and lists; all that follows needs it. */
void drupe_pending_lock(void);
void drupe_pending_unlock(void);
pthread_mutex_t *drupe_pending_mutex(void);
pending_list *drupe_pending_list(const drupe_queue *queue); /* NULL: nothing is pending there */
pending_list *drupe_pending_lists(void);                    /* the first of all */
pending_list *drupe_pending_list_for(drupe_queue *queue);   /* made if there is none; NULL: no memory */
/* Give it up if nothing is pending there any more. */
void drupe_pending_list_tidy(pending_list *list);
void drupe_pending_list_add(pending_list *list, drupe_node *node); /* as the last */
void drupe_pending_list_remove(pending_list *list, drupe_node *node);
/* Give up what the node takes; nodes that nobody has then are put before `gone`. */
void drupe_node_let_inputs(drupe_node *node, drupe_node **gone);
/* Free these, and what only they have. The lock is given up. */
void drupe_nodes_free(drupe_node *gone);
/* The array's node is SETTLED, and the array one like any other from now on; or FAILED, and that is the
 * status. The lock is given up. */
drupe_status drupe_node_take_values(drupe_array *array);
/* One that is in no list, and takes nothing. Without the lock. */
void drupe_node_free(drupe_node *node);

/* --- pending.c ------------------------------------------------------------------------------------------ */

/* Make `out`, which has no memory, a pending array: the result of the operation, whose types and shape are
 * known. False: it has to be computed at once; then `in` has no pending array left, or `status` says why. */
bool drupe_pending_make(const drupe_target *target, int op, const op_types *types, const drupe_operand *in,
                        size_t nin, drupe_mem_kind kind, drupe_queue *queue, int ndim, const size_t *shape,
                        drupe_array *out, drupe_status *status);
/* The same for an output that is given; it is pending itself, or has memory that the operation's operands do
 * not overlap, but for equal views. */
bool drupe_pending_into(const drupe_target *target, int op, const op_types *types, const drupe_operand *in,
                        size_t nin, drupe_array *out, drupe_status *status);

/* --- settle.c ------------------------------------------------------------------------------------------- */

/* Settle all of these operands that are pending. */
drupe_status drupe_operands_settle(const drupe_operand *in, size_t nin);
/* What else the values of a node are for: an array that is there, or a reduction. */
typedef struct pending_target {
    drupe_node *node;
    bool spent; /* one array that has the node is to be dropped: its values are not stored for that */
    const drupe_array
        *array; /* with memory: of the node's shape and type, or where the reduction's results go */
    const drupe_fused_reduction *reduction; /* but for `step` and `out`; NULL: none */
    const drupe_range *range;               /* of work-items, for it */
    drupe_status (*then)(const void *user); /* called behind its kernel; NULL: nothing */
    const void *user;
    bool *done; /* becomes true when its kernel was submitted */
} pending_target;

/* From now on core asks for what is pending. */
void drupe_pending_open(void);
/* Submit all that is pending on the queue. `target` may be NULL. */
drupe_status drupe_pending_settle(drupe_queue *queue, const pending_target *target);

/* --- idle.c -----------------------------------------------------------------------------------------------
 */

/* A node has come to the list, which is to be settled once nobody adds to it. Needs the lock. */
void drupe_idle_tell(pending_list *list);
/* End the thread that does it. */
void drupe_idle_stop(void);

/* --- plan.c --------------------------------------------------------------------------------------------- */

/* The nodes of a list, cut into kernels. */
typedef struct pending_plan {
    drupe_node *nodes[DRUPE_PENDING_MOST + 4]; /* retained, in the order in which they are computed */
    int count, kernels;                        /* node->kernel rises from 0 */
} pending_plan;
/* Of all nodes of the list that are PENDING. Needs the lock. */
void drupe_plan_make(pending_list *list, const pending_target *target, pending_plan *plan);
/* Whether the target's kernel may store to its array: nothing behind it reads that memory, in the plan or the
 * list, and it reads itself only the elements that it stores to. Needs the lock. */
bool drupe_plan_lets(const pending_plan *plan, const pending_list *list, const pending_target *target);

/* Whether two inputs, which are memory, are the same elements in the same order. */
bool drupe_node_input_same(const drupe_node *a, size_t i, const drupe_node *b, size_t k);

/* --- fuse.c --------------------------------------------------------------------------------------------- */

/* Submit nodes [from, to) of the plan as one kernel. The outputs get `memory`. */
drupe_status drupe_fuse_submit(const pending_plan *plan, int from, int to, const pending_target *target);

/* --- fuse_label.c ----------------------------------------------------------------------------------------
 */

#define DRUPE_FUSE_LABEL 56 /* bytes, as in the records of the trace */
/* What the kernel of nodes [from, to) is called: its operations, and their lines where they are several. The
 * place of the submission is `last`. */
void drupe_fuse_label(const pending_plan *plan, int from, int to, const drupe_fused *fused,
                      const drupe_origin *last, char label[DRUPE_FUSE_LABEL]);

#endif
