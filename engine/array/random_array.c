/* Arrays of random numbers: checks, and calls of math/random.h as work of the queue. */
#include "array/array_room.h"
#include "base/base.h"
#include "drupe/array_random.h"
#include "math/random.h"
#include <string.h>

_Static_assert(sizeof(drupe_philox) == DRUPE_RANDOM_WORDS * sizeof(uint64_t), "the state's words");

typedef struct random_params {
    drupe_random_request request;
    size_t n, element; /* of the result */
    bool is_bool;
} random_params;

/* Of each law. */
static const drupe_random_kind kinds[] = {
    DRUPE_RANDOM_NORMAL,   DRUPE_RANDOM_EXPONENTIAL, DRUPE_RANDOM_GAMMA,
    DRUPE_RANDOM_BETA,     DRUPE_RANDOM_VONMISES,    DRUPE_RANDOM_POISSON,
    DRUPE_RANDOM_BINOMIAL, DRUPE_RANDOM_ZIPF,        DRUPE_RANDOM_HYPERGEOMETRIC};

/* The numbers of an own distribution; a parameter comes from an array or from the request. */
static void draw_law(drupe_philox *state, const random_params *p, void *const *pointers, void *out)
{
    const drupe_random_request *request = &p->request;
    drupe_random_law law = {.kind = kinds[request->law], .wide = p->element == sizeof(double)};
    law.a = request->arrays[0] ? *pointers++ : &request->numbers[0];
    law.b = request->arrays[1] ? *pointers++ : &request->numbers[1];
    law.c = request->arrays[2] ? *pointers : &request->numbers[2];
    law.a_step = request->arrays[0] != NULL;
    law.b_step = request->arrays[1] != NULL;
    law.c_step = request->arrays[2] != NULL;
    drupe_random_draw(state, &law, p->n, out);
}

static void draw_integers(drupe_philox *state, const random_params *p, void *const *pointers, void *out)
{
    const drupe_random_request *request = &p->request;
    const unsigned bytes = p->is_bool ? 0 : (unsigned)p->element;
    const bool lows = request->arrays[0] != NULL, ranges = request->arrays[1] != NULL;
    if (!lows && !ranges) {
        drupe_random_integers(state, bytes, request->low, request->range, p->n, out);
        return;
    }
    const uint64_t *low = lows ? *pointers++ : &request->low;
    drupe_random_integers_each(state, bytes, low, lows, ranges ? *pointers : &request->range, ranges, p->n,
                               out);
}

static drupe_status random_run(void *const *pointers, const void *params)
{
    const random_params *p = params;
    const drupe_random_request *request = &p->request;
    drupe_philox *state = pointers[0];
    int64_t *integers = pointers[1];
    if (state->taken > 4)
        return drupe_error_set(DRUPE_E_INVALID,
                               "the state of the generator says that %llu words of a block of 4 "
                               "were taken: it was written by something else",
                               (unsigned long long)state->taken);
    switch (request->what) {
    case DRUPE_RANDOM_UNIFORM:
        if (p->element == sizeof(double))
            drupe_random_doubles(state, p->n, pointers[1]);
        else
            drupe_random_floats(state, p->n, pointers[1]);
        break;
    case DRUPE_RANDOM_INTEGERS: draw_integers(state, p, pointers + 2, pointers[1]); break;
    case DRUPE_RANDOM_PERMUTATION: drupe_random_permutation(state, p->n, integers); break;
    case DRUPE_RANDOM_SAMPLE:
        if (!(request->range == 2
                  ? drupe_random_deal(state, (size_t)request->low, p->n, integers)
                  : drupe_random_sample(state, request->low, p->n, request->range == 1, integers)))
            return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory to draw %zu different integers.", p->n);
        break;
    case DRUPE_RANDOM_LAW: draw_law(state, p, pointers + 2, pointers[1]); break;
    }
    return DRUPE_OK;
}

/* --- Checks
 * ------------------------------------------------------------------------------------------------------ */

static bool type_fits(const drupe_random_request *request, drupe_dtype dtype)
{
    const bool is_float = dtype == DRUPE_FLOAT32 || dtype == DRUPE_FLOAT64;
    switch (request->what) {
    case DRUPE_RANDOM_UNIFORM: return is_float;
    case DRUPE_RANDOM_INTEGERS:
        return dtype == DRUPE_BOOL || strchr("iu", drupe_dtype_row(dtype)->typestr[0]);
    case DRUPE_RANDOM_PERMUTATION:
    case DRUPE_RANDOM_SAMPLE: return dtype == DRUPE_INT64;
    case DRUPE_RANDOM_LAW: break;
    }
    if (request->law <= DRUPE_LAW_EXPONENTIAL) return is_float;
    return dtype == (request->law >= DRUPE_LAW_POISSON ? DRUPE_INT64 : DRUPE_FLOAT64);
}

static drupe_status check(const drupe_array *state, const drupe_random_request *request, drupe_dtype dtype,
                          size_t n)
{
    if (state->dtype != DRUPE_INT64 || state->size != DRUPE_RANDOM_WORDS || !drupe_array_contiguous(state))
        return drupe_error_set(DRUPE_E_INVALID, "the state of a generator is an int64 array of %d elements",
                               DRUPE_RANDOM_WORDS);
    if ((unsigned)request->what > DRUPE_RANDOM_LAW || (unsigned)request->law >= DRUPE_COUNT_OF(kinds))
        return drupe_error_set(DRUPE_E_INVALID, "%d, %d is no kind of random numbers", (int)request->what,
                               (int)request->law);
    if (drupe_dtype_size(dtype) == 0 || !type_fits(request, dtype))
        return drupe_error_set(DRUPE_E_INVALID, "random numbers of this distribution cannot be %s",
                               drupe_dtype_name(dtype));
    if (request->what == DRUPE_RANDOM_SAMPLE && request->low < n)
        return drupe_error_set(DRUPE_E_INVALID, "%zu different integers cannot be taken from %zu", n,
                               (size_t)request->low);
    const bool integers = request->what == DRUPE_RANDOM_INTEGERS;
    for (int i = 0; i < DRUPE_RANDOM_PARAMETERS; i++) {
        const drupe_array *a = request->arrays[i];
        if (!a) continue;
        const bool typed =
            integers ? a->dtype == DRUPE_INT64 || a->dtype == DRUPE_UINT64 : a->dtype == DRUPE_FLOAT64;
        if (!typed || a->size != n || !drupe_array_contiguous(a))
            return drupe_error_set(DRUPE_E_INVALID,
                                   "parameter %d of a distribution is %s array of %zu elements "
                                   "in C order, or a number",
                                   i + 1, integers ? "an int64 or uint64" : "a float64", n);
        if (a->queue != state->queue)
            return drupe_error_set(DRUPE_E_PLACEMENT,
                                   "parameters of a distribution are on another queue than the "
                                   "generator: bring them there with to_device()");
    }
    return DRUPE_OK;
}

/* On GPUs: one kernel takes the numbers from the state, a second one makes them. */
static drupe_status uniform_kernel(drupe_target *target, const drupe_array *state, const drupe_array *out)
{
    const size_t each = out->dtype == DRUPE_FLOAT64 ? 4 : 8,
                 words = DRUPE_RANDOM_WORDS; /* each: numbers of a block */
    const drupe_random_params p = {.n = (drupe_i64)out->size, .wide = out->dtype == DRUPE_FLOAT64};
    drupe_array before = {0};
    DRUPE_TRY(drupe_array_result(state->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &words, &before));
    drupe_kernel_call call = {.parts = drupe_kernel_parts(SHAPE_RANDOM, 1, DRUPE_INT64),
                              .arrays = {state, &before},
                              .count = 2,
                              .reads = 1,
                              .writes = 3,
                              .params = &p,
                              .params_size = sizeof p,
                              .items = 1};
    drupe_status status = drupe_array_kernel(target, &call);
    call.parts = drupe_kernel_parts(SHAPE_RANDOM, 0, out->dtype);
    call.arrays[0] = out;
    call.arrays[1] = &before;
    call.reads = 2;
    call.writes = 1;
    call.items = out->size / each + 1;
    if (status == DRUPE_OK) status = drupe_array_kernel(target, &call);
    drupe_array_clear(&before);
    return status;
}

drupe_status drupe_array_random(const drupe_array *state, const drupe_random_request *request,
                                drupe_dtype dtype, int ndim, const size_t *shape, drupe_array *out)
{
    size_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    DRUPE_TRY(check(state, request, dtype, n));
    /* A draw that did not run, because work before it failed, left the state as it was. */
    drupe_memory_accept(state->memory);
    DRUPE_TRY(drupe_array_result(state->queue, DRUPE_MEM_DEVICE, dtype, ndim, shape, out));
    if (out->size == 0) return DRUPE_OK;
    const random_params params = {*request, out->size, drupe_dtype_size(dtype), dtype == DRUPE_BOOL};
    const drupe_array *arrays[2 + DRUPE_RANDOM_PARAMETERS] = {state, out};
    drupe_call call = {.label = "random",
                       .fn = random_run,
                       .params = &params,
                       .params_size = sizeof params,
                       .arrays = arrays,
                       .count = 2,
                       .reads = 1,
                       .writes = 3};
    for (int i = 0; i < DRUPE_RANDOM_PARAMETERS; i++)
        if (request->arrays[i]) {
            call.reads |= 1u << call.count;
            arrays[call.count++] = request->arrays[i];
        }
    drupe_target *target;
    drupe_status status = drupe_target_get(state->queue, &target);
    if (status == DRUPE_OK)
        status = request->what == DRUPE_RANDOM_UNIFORM && drupe_target_remote(target)
                     ? uniform_kernel(target, state, out)
                     : drupe_array_call(&call);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}
