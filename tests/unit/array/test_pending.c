/* Pending arrays: how their nodes are cut into kernels, whose memory results take, threads that settle. */
#include "array/node.h"
#include "array_fixture.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 1000

/* --- Plans, of nodes that are made by hand ---------------------------------------------------------------
 */

#define NODES_MOST 60

typedef struct graph {
    pending_list list;
    drupe_node *nodes[NODES_MOST];
    int count;
    char memory[40]; /* whose addresses stand for memory */
} graph;

static drupe_node *graph_add(graph *g, int nin, int ndim, const ptrdiff_t *shape)
{
    drupe_node *node = calloc(1, sizeof *node + sizeof(ptrdiff_t) * (size_t)((1 + nin) * ndim));
    assert_non_null(node);
    node->nin = (unsigned)nin;
    node->ndim = ndim;
    node->size = 1;
    for (int d = 0; d < ndim; d++) {
        node->axes[d] = shape[d];
        node->size *= (size_t)shape[d];
    }
    node->before = g->list.last;
    *(g->list.last ? &g->list.last->next : &g->list.first) = node;
    g->list.last = node;
    g->list.count++;
    g->nodes[g->count++] = node;
    return node;
}

static void take_node(drupe_node *node, int i, drupe_node *from)
{
    node->in[i].node = from;
    from->references++;
}

static void take_memory(graph *g, drupe_node *node, int i, int which)
{
    node->in[i].memory = (drupe_memory *)(void *)&g->memory[which];
}

static void hold(drupe_node *node)
{
    node->references++;
    node->arrays++;
}

static void graph_free(graph *g)
{
    for (int i = 0; i < g->count; i++) free(g->nodes[i]);
    memset(g, 0, sizeof *g);
}

static bool same_shape(const drupe_node *a, const drupe_node *b)
{
    return a->ndim == b->ndim && memcmp(a->axes, b->axes, sizeof *a->axes * (size_t)a->ndim) == 0;
}

static int place_of(const pending_plan *plan, const drupe_node *node)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->nodes[i] == node) return i;
    return -1;
}

/* Whether some node of another kernel, or something else than the plan, needs the values. */
static bool is_needed(const pending_plan *plan, const drupe_node *node)
{
    unsigned takers = 0;
    for (int i = 0; i < plan->count; i++) {
        for (unsigned k = 0; k < plan->nodes[i]->nin; k++) {
            if (plan->nodes[i]->in[k].node != node) continue;
            if (plan->nodes[i]->kernel != node->kernel) return true;
            takers++;
        }
    }
    return node->references - 1 > takers; /* the plan has one itself */
}

/* What a kernel has to load and store, and how many values stand in between at a time, counted anew. */
static void check_kernel(const pending_plan *plan, int from, int to)
{
    const void *leaves[200];
    int nleaves = 0, outputs = 0, constants = 0;
    for (int i = from; i < to; i++) {
        const drupe_node *node = plan->nodes[i];
        assert_true(same_shape(node, plan->nodes[from]));
        outputs += node->output;
        for (unsigned k = 0; k < node->nin; k++) {
            const node_input *in = &node->in[k];
            const void *leaf = in->memory ? (const void *)in->memory : in->node;
            int at = 0;
            if (!leaf) constants++;
            if (!leaf || (in->node && in->node->kernel == node->kernel)) continue;
            while (at < nleaves && leaves[at] != leaf) at++;
            if (at == nleaves) leaves[nleaves++] = leaf;
        }
        int values = 1;
        for (int before = from; before < i; before++) {
            bool needed = false;
            for (int k = i; k < to; k++)
                for (unsigned j = 0; j < plan->nodes[k]->nin; j++)
                    needed |= plan->nodes[k]->in[j].node == plan->nodes[before];
            values += needed;
        }
        assert_in_range(values, 1, DRUPE_FUSED_SLOTS);
    }
    assert_in_range(nleaves + outputs, 1, DRUPE_FUSED_OPERANDS);
    assert_in_range(constants, 0, DRUPE_FUSED_CONSTANTS);
    assert_in_range(to - from, 1, DRUPE_FUSED_STEPS);
}

static void check_plan(const pending_plan *plan)
{
    int kernels = 0;
    for (int from = 0, to; from < plan->count; from = to, kernels++) {
        for (to = from + 1; to < plan->count && plan->nodes[to]->kernel == plan->nodes[from]->kernel;) to++;
        assert_int_equal(plan->nodes[from]->kernel, kernels);
        check_kernel(plan, from, to);
    }
    assert_int_equal(kernels, plan->kernels);
    for (int i = 0; i < plan->count; i++) {
        const drupe_node *node = plan->nodes[i];
        assert_int_equal(node->state, NODE_SETTLING);
        assert_int_equal(node->output, is_needed(plan, node));
        for (unsigned k = 0; k < node->nin; k++) {
            const drupe_node *input = node->in[k].node;
            const int place = input ? place_of(plan, input) : -1;
            if (!input) continue;
            assert_in_range(place, 0, i - 1);
            if (!same_shape(node, input)) assert_true(input->kernel < node->kernel);
        }
    }
}

static const ptrdiff_t SHAPES[3][2] = {{6, 5}, {6, 1}, {1, 5}};

/* A chain of one shape is one kernel, whose last value alone is stored. */
static void test_a_chain_is_one_kernel(void **state)
{
    (void)state;
    graph g = {0};
    pending_plan plan;
    drupe_node *last = NULL;
    for (int i = 0; i < 20; i++) {
        drupe_node *node = graph_add(&g, 2, 2, SHAPES[0]);
        if (last) take_node(node, 0, last);
        take_memory(&g, node, 1, 0);
        last = node;
    }
    hold(last);
    drupe_plan_make(&g.list, NULL, &plan);
    check_plan(&plan);
    assert_int_equal(plan.kernels, 1);
    for (int i = 0; i < 20; i++) assert_int_equal(plan.nodes[i]->output, i == 19);
    assert_null(g.list.first);
    graph_free(&g);
}

/* What is broadcast is computed at its own size, in a kernel before. */
static void test_levels_of_broadcast_operands(void **state)
{
    (void)state;
    graph g = {0};
    pending_plan plan;
    drupe_node *wide = graph_add(&g, 1, 2, SHAPES[0]), *column = graph_add(&g, 1, 2, SHAPES[1]);
    drupe_node *both = graph_add(&g, 2, 2, SHAPES[0]), *more = graph_add(&g, 2, 2, SHAPES[0]);
    take_memory(&g, wide, 0, 0);
    take_memory(&g, column, 0, 1);
    take_node(both, 0, wide);
    take_node(both, 1, column);
    take_node(more, 0, both);
    take_node(more, 1, wide);
    hold(more);
    drupe_plan_make(&g.list, NULL, &plan);
    check_plan(&plan);
    assert_int_equal(wide->level, 0);
    assert_int_equal(column->level, 0);
    assert_int_equal(both->level, 1);
    assert_int_equal(more->kernel, both->kernel);
    assert_true(column->output && wide->output && more->output && !both->output);
    graph_free(&g);
}

/* An array that is to be dropped is no reason to store its node's values. */
static void test_a_spent_target_is_not_stored(void **state)
{
    (void)state;
    for (int spent = 0; spent < 2; spent++) {
        graph g = {0};
        pending_plan plan;
        drupe_node *node = graph_add(&g, 1, 2, SHAPES[0]);
        take_memory(&g, node, 0, 0);
        hold(node);
        const pending_target target = {.node = node, .spent = spent};
        drupe_plan_make(&g.list, &target, &plan);
        assert_int_equal(node->output, !spent);
        graph_free(&g);
    }
}

/* More nodes than a plan has stay in the list, and what they take is stored for them. */
static void test_what_is_behind_a_plan(void **state)
{
    (void)state;
    graph g = {0};
    pending_plan plan;
    for (int i = 0; i < NODES_MOST; i++) {
        drupe_node *node = graph_add(&g, 2, 2, SHAPES[0]);
        take_memory(&g, node, 0, 0);
        if (i >= 30)
            take_node(node, 1, g.nodes[i - 30]);
        else
            take_memory(&g, node, 1, 1);
        if (i >= 30) hold(node);
    }
    drupe_plan_make(&g.list, NULL, &plan);
    check_plan(&plan);
    assert_int_equal(plan.count, (int)DRUPE_COUNT_OF(plan.nodes));
    assert_ptr_equal(g.list.first, g.nodes[plan.count]);
    assert_int_equal(g.list.count, NODES_MOST - plan.count);
    for (int i = 0; i < 30; i++)
        assert_int_equal(g.nodes[i]->output,
                         g.nodes[i + 30]->kernel != g.nodes[i]->kernel || i + 30 >= plan.count);
    graph_free(&g);
}

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Random graphs of some shapes, with many operands, constants and results that are held. */
static void test_random_plans_keep_to_the_limits(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int round = 0; round < 3000; round++) {
        graph g = {0};
        pending_plan plan;
        const unsigned count = 1 + draw(&seed, NODES_MOST), memories = 1 + draw(&seed, 40);
        const unsigned near = 1 + draw(&seed, 30), held = 1 + draw(&seed, 6), constants = draw(&seed, 5);
        const unsigned shapes = 1 + draw(&seed, 2) * 2;
        for (unsigned i = 0; i < count; i++) {
            const unsigned nin = 1 + draw(&seed, 3);
            drupe_node *node = graph_add(&g, (int)nin, 2, SHAPES[draw(&seed, shapes)]);
            for (unsigned k = 0; k < nin; k++) {
                const unsigned way = draw(&seed, 10), back = 1 + draw(&seed, near);
                if (way < constants) continue;
                drupe_node *from = way < 8 && back <= i ? g.nodes[i - back] : NULL;
                /* A column fits the whole, and not the other way round. */
                if (from && (same_shape(from, node) || node->size == 30))
                    take_node(node, (int)k, from);
                else
                    take_memory(&g, node, (int)k, (int)draw(&seed, memories));
            }
            if (draw(&seed, held) == 0) hold(node);
        }
        for (int i = 0; i < g.count; i++)
            if (!g.nodes[i]->references) hold(g.nodes[i]); /* the rest would have been freed */
        drupe_plan_make(&g.list, NULL, &plan);
        check_plan(&plan);
        graph_free(&g);
    }
}

/* --- Whose memory results take ---------------------------------------------------------------------------
 */

static void numbers(drupe_queue *queue, drupe_dtype dtype, double first, drupe_array *array)
{
    const size_t size = SIZE;
    const drupe_scalar start = {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = first},
                       step = {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 1};
    CHECK(drupe_array_empty(queue, DRUPE_MEM_DEVICE, dtype, 1, &size, array));
    CHECK(drupe_array_sequence(array, start, step));
}

static void with_number(drupe_op op, const drupe_array *x, double value, drupe_array *out)
{
    const drupe_operand in[2] = {{.array = x}, {.scalar = {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = value}}};
    CHECK(drupe_array_apply(op, in, 2, out));
}

static void with_array(drupe_op op, const drupe_array *x, const drupe_array *y, drupe_array *out)
{
    const drupe_operand in[2] = {{.array = x}, {.array = y}};
    CHECK(drupe_array_apply(op, in, 2, out));
}

static void check_first(const drupe_array *array, double first)
{
    CHECK(drupe_array_settle(array));
    double *values = array_fetch(array);
    assert_true(values[0] == first);
    free(values);
}

/* (x + 1) * 2, where x is dropped or not. */
static void take_place(drupe_queue *queue, bool dropped, bool taken)
{
    drupe_array x, y, z = {0};
    numbers(queue, DRUPE_FLOAT64, 5, &x);
    const drupe_memory *before = x.memory;
    drupe_array sum = {0};
    with_number(DRUPE_OP_ADD, &x, 1, &sum);
    assert_true(drupe_array_pending(&sum));
    memset(&y, 0, sizeof y);
    with_number(DRUPE_OP_MULTIPLY, &sum, 2, &y);
    drupe_array_clear(&sum);
    if (dropped) drupe_array_clear(&x);
    CHECK(drupe_array_settle(&y));
    assert_int_equal(y.memory == before, taken);
    check_first(&y, 12);
    if (!dropped) {
        with_number(DRUPE_OP_ADD, &x, 0, &z);
        check_first(&z, 5);
        drupe_array_clear(&z);
        drupe_array_clear(&x);
    }
    drupe_array_clear(&y);
}

static void test_results_take_the_place_of_what_is_dropped(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        take_place(queues[q], true, true);
        take_place(queues[q], false, false);
        drupe_queue *unordered;
        CHECK(drupe_queue_open(drupe_queue_context(queues[q]), drupe_queue_device(queues[q]),
                               DRUPE_QUEUE_OUT_OF_ORDER, &unordered));
        take_place(unordered, true, false); /* work before may be at it still */
        drupe_queue_release(unordered);
    }
}

/* What a later step reads, or reads elsewhere, or is of another size, is not overwritten. */
static void test_places_that_are_not_free(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        drupe_array x, backwards, sum = {0}, product = {0};
        const drupe_slice flip = {.start = SIZE - 1, .step = -1, .count = SIZE};
        numbers(queues[q], DRUPE_FLOAT64, 0, &x);
        drupe_array_view(&x, &backwards);
        CHECK(drupe_array_slice(&backwards, &flip));
        with_number(DRUPE_OP_ADD, &x, 1, &sum);
        with_array(DRUPE_OP_MULTIPLY, &sum, &backwards, &product); /* both results are kept */
        const drupe_memory *before = x.memory;
        drupe_array_clear(&x);
        drupe_array_clear(&backwards);
        CHECK(drupe_array_settle(&product));
        CHECK(drupe_array_settle(&sum));
        assert_true(product.memory != before && sum.memory != before);
        double *values = array_fetch(&product);
        for (int i = 0; i < SIZE; i++) assert_true(values[i] == (i + 1.0) * (SIZE - 1 - i));
        free(values);
        check_first(&sum, 1);
        drupe_array_clear(&sum);
        drupe_array_clear(&product);
    }
}

/* More results than a kernel stores. */
static void test_a_chain_that_is_held(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        drupe_array x, chain[40] = {{0}};
        numbers(queues[q], DRUPE_FLOAT64, 1, &x);
        for (int k = 0; k < 40; k++) with_number(DRUPE_OP_ADD, k ? &chain[k - 1] : &x, 1, &chain[k]);
        for (int k = 40; k-- > 0;) check_first(&chain[k], 2 + k);
        for (int k = 0; k < 40; k++) drupe_array_clear(&chain[k]);
        drupe_array_clear(&x);
    }
}

/* --- Threads ---------------------------------------------------------------------------------------------
 */

#define ROUNDS  200
#define PARTIES 3

typedef struct party {
    drupe_queue *queue;
    drupe_array own, other, shared;
    drupe_array written; /* in the memory that is the other thread's `other`, and at other places in it */
    bool wrong;
} party;

/* On a queue of its own: what it computes reads the memory that the other one writes, and the other way
 * round. */
static void *cross(void *user)
{
    party *p = user;
    for (int k = 0; k < ROUNDS && !p->wrong; k++) {
        drupe_array t = {0}, u = {0};
        const drupe_operand in[2] = {{.array = &p->own}, {.array = &p->other}};
        const drupe_operand twice[2] = {{.array = &p->own}, {.array = &p->own}};
        p->wrong = drupe_array_apply(DRUPE_OP_ADD, in, 2, &t) != DRUPE_OK ||
                   drupe_array_apply(DRUPE_OP_SUBTRACT, twice, 2, &u) != DRUPE_OK ||
                   drupe_array_assign(&p->written, &(drupe_operand){.array = &u}) != DRUPE_OK ||
                   drupe_array_settle(&t) != DRUPE_OK;
        drupe_array_clear(&t);
        drupe_array_clear(&u);
    }
    return NULL;
}

/* On one queue: both make nodes, settle what there is, and take what both know. */
static void *share(void *user)
{
    party *p = user;
    const drupe_operand one = {.scalar = {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 1}};
    for (int k = 0; k < ROUNDS && !p->wrong; k++) {
        drupe_array t = {0}, u = {0}, s = {0};
        p->wrong = drupe_array_apply(DRUPE_OP_ADD, (drupe_operand[2]){{.array = &p->shared}, one}, 2, &t) !=
                       DRUPE_OK ||
                   drupe_array_apply(DRUPE_OP_MULTIPLY, (drupe_operand[2]){{.array = &t}, {.array = &p->own}},
                                     2, &u) != DRUPE_OK ||
                   (k % 3 == 0 &&
                    drupe_array_reduce(DRUPE_OP_MAX, &u, 1, false, DRUPE_DTYPE_NONE, &s) != DRUPE_OK) ||
                   (k % 7 == 0 && drupe_array_settle(&u) != DRUPE_OK);
        if (!p->wrong && k % 7 == 0) {
            double *values = array_fetch(&u);
            for (int i = 0; i < SIZE; i++) p->wrong |= values[i] != (3.0 * i + 1) * i;
            free(values);
        }
        drupe_array_clear(&t);
        drupe_array_clear(&u);
        drupe_array_clear(&s);
    }
    return NULL;
}

static void run_all(void *(*work)(void *), party *parties, int count)
{
    pthread_t threads[PARTIES];
    alarm(100);
    for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &parties[i]), 0);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    alarm(0);
    for (int i = 0; i < count; i++) assert_false(parties[i].wrong);
}

/* A thread that settles one queue may have to wait for who settles the next, round in a circle. */
static void test_threads_that_read_what_the_other_one_writes(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        party parties[PARTIES];
        memset(parties, 0, sizeof parties);
        for (int i = 0; i < PARTIES; i++) {
            CHECK(drupe_queue_open(drupe_queue_context(queues[q]), drupe_queue_device(queues[q]), 0,
                                   &parties[i].queue));
            numbers(parties[i].queue, DRUPE_FLOAT64, 0, &parties[i].own);
            drupe_array_view(&parties[i].own, &parties[i].written);
            CHECK(drupe_array_slice(&parties[i].own, &(drupe_slice){.step = 1, .count = SIZE / 2}));
            CHECK(drupe_array_slice(&parties[i].written,
                                    &(drupe_slice){.start = SIZE / 2, .step = 1, .count = SIZE / 2}));
        }
        for (int i = 0; i < PARTIES; i++) {
            CHECK(drupe_queue_wait(parties[i].queue, DRUPE_FOREVER));
            const drupe_array *from = &parties[(i + 1) % PARTIES].own;
            CHECK(drupe_array_over(from->memory, parties[i].queue, from->dtype, 1, from->shape, NULL, 0,
                                   &parties[i].other));
        }
        run_all(cross, parties, PARTIES);
        for (int i = 0; i < PARTIES; i++) {
            CHECK(drupe_queue_wait(parties[i].queue, DRUPE_FOREVER));
            drupe_array_clear(&parties[i].own);
            drupe_array_clear(&parties[i].other);
            drupe_array_clear(&parties[i].written);
            drupe_queue_release(parties[i].queue);
        }
    }
}

static void test_threads_that_share_a_queue(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        party parties[2];
        drupe_array x, y = {0};
        memset(parties, 0, sizeof parties);
        numbers(queues[q], DRUPE_FLOAT64, 0, &x);
        with_number(DRUPE_OP_MULTIPLY, &x, 3, &y);
        for (int i = 0; i < 2; i++) {
            drupe_array_view(&y, &parties[i].shared);
            drupe_array_view(&x, &parties[i].own);
        }
        drupe_array_clear(&y);
        drupe_array_clear(&x);
        run_all(share, parties, 2);
        for (int i = 0; i < 2; i++) {
            drupe_array_clear(&parties[i].own);
            drupe_array_clear(&parties[i].shared);
        }
    }
}

static int pending_open(void **state)
{
    const int status = queues_open(state);
    drupe_array_eager(-1);
    return status;
}

static int pending_close(void **state)
{
    drupe_array_eager(1);
    return queues_close(state);
}

int main(void)
{
    setenv("DRUPE_FUSE_ABOVE", "0", 1);
    setenv("DRUPE_FUSE_IDLE", "0", 0); /* nobody else settles what is looked at here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_chain_is_one_kernel),
        cmocka_unit_test(test_levels_of_broadcast_operands),
        cmocka_unit_test(test_a_spent_target_is_not_stored),
        cmocka_unit_test(test_what_is_behind_a_plan),
        cmocka_unit_test(test_random_plans_keep_to_the_limits),
        cmocka_unit_test(test_results_take_the_place_of_what_is_dropped),
        cmocka_unit_test(test_places_that_are_not_free),
        cmocka_unit_test(test_a_chain_that_is_held),
        cmocka_unit_test(test_threads_that_read_what_the_other_one_writes),
        cmocka_unit_test(test_threads_that_share_a_queue),
    };
    return cmocka_run_group_tests(tests, pending_open, pending_close);
}
