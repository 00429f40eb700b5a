/* Native functions through the public header: order, arguments, results, what is refused, and the end. */
#include "drupe/drupe.h"
#include "drupe/native.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N 100

static drupe_native_library *library;
static drupe_queue *queue;
static drupe_memory *memory;

static int open_all(void **state)
{
    (void)state;
    drupe_device *device = NULL;
    assert_int_equal(drupe_device_select("host", &device), DRUPE_OK);
    assert_int_equal(drupe_device_queue(device, &queue), DRUPE_OK);
    drupe_device_release(device);
    assert_int_equal(drupe_memory_alloc(queue, DRUPE_MEM_SHARED, N * sizeof(double), 0, &memory), DRUPE_OK);
    assert_int_equal(drupe_native_open(SUBJECT, &library), DRUPE_OK);
    memset(drupe_memory_pointer(memory), 0, N * sizeof(double));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    assert_int_equal(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_OK);
    drupe_queue_collect(queue);
    drupe_native_release(library);
    drupe_memory_release(memory);
    drupe_queue_release(queue);
    return 0;
}

static drupe_native_function *function_of(const char *name, drupe_dtype result,
                                          const drupe_native_param *params, size_t count)
{
    drupe_native_function *function = NULL;
    const drupe_native_signature signature = {result, params, count};
    assert_int_equal(drupe_native_function_open(library, name, params ? &signature : NULL, &function),
                     DRUPE_OK);
    return function;
}

static drupe_status run(drupe_native_function *function, const drupe_native_arg *args, size_t count,
                        void *result, drupe_event **event)
{
    const drupe_submission s = {.queue = queue};
    const drupe_native_call call = {.function = function, .args = args, .count = count, .result = result};
    return drupe_native_submit(&s, &call, event);
}

static drupe_native_arg real(double value)
{
    drupe_native_arg arg = {.inside = false};
    memcpy(arg.words, &value, sizeof value);
    return arg;
}

static void calls_run_in_order(void **state)
{
    (void)state;
    static const drupe_native_param params[] = {
        {false, DRUPE_INT64}, {false, DRUPE_FLOAT64}, {true, DRUPE_DTYPE_NONE}};
    drupe_native_function *add = function_of("add", DRUPE_DTYPE_NONE, params, 3),
                          *plain = function_of("add_plain", DRUPE_DTYPE_NONE, NULL, 0);
    double *x = drupe_memory_pointer(memory);
    drupe_native_arg args[] = {{.words = {N, 0}}, real(0.5), {.words = {(uintptr_t)x, 0}, .memory = memory}};
    for (int i = 0; i < 50; i++) assert_int_equal(run(add, args, 3, NULL, NULL), DRUPE_OK);
    args[0].inside = args[1].inside = true;
    for (int i = 0; i < 50; i++) assert_int_equal(run(plain, args, 3, NULL, NULL), DRUPE_OK);
    const drupe_native_arg none = {.words = {0, 0}};
    args[2] = none;
    assert_int_equal(run(plain, args, 3, NULL, NULL), DRUPE_OK); /* NULL */
    assert_int_equal(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_OK);
    for (int i = 0; i < N; i++) assert_true(x[i] == 50.0);
    drupe_native_function_release(add);
    drupe_native_function_release(plain);
}

static void small_results_are_their_own_size(void **state)
{
    (void)state;
    static const drupe_native_param params[] = {{false, DRUPE_INT8}};
    drupe_native_function *negative = function_of("negative", DRUPE_INT8, params, 1);
    const drupe_native_arg arg = {.words = {7, 0}};
    int8_t result[2] = {0, 99};
    assert_int_equal(run(negative, &arg, 1, result, NULL), DRUPE_OK);
    assert_int_equal(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_OK);
    assert_int_equal(result[0], -7);
    assert_int_equal(result[1], 99);
    drupe_native_function_release(negative);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    static const drupe_native_param params[] = {{false, DRUPE_INT8}}, half[] = {{false, DRUPE_FLOAT16}};
    drupe_native_function *negative = function_of("negative", DRUPE_INT8, params, 1), *none = NULL;
    drupe_native_function *plain = function_of("add_plain", DRUPE_DTYPE_NONE, NULL, 0);
    const drupe_native_arg args[DRUPE_NATIVE_PLAIN + 1] = {{.words = {0, 0}}};
    int released = 0, result = 0;
    const drupe_keep keep = {&released, count_release};
    const drupe_submission s = {.queue = queue, .keeps = &keep, .nkeeps = 1};
    drupe_native_call call = {.function = negative, .args = args, .count = 2};
    assert_int_equal(drupe_native_submit(&s, &call, NULL), DRUPE_E_INVALID);
    assert_int_equal(released, 1);
    assert_int_equal(run(plain, args, DRUPE_NATIVE_PLAIN + 1, NULL, NULL), DRUPE_E_INVALID);
    assert_int_equal(run(plain, args, 3, &result, NULL), DRUPE_E_INVALID);
    assert_int_equal(run(NULL, args, 3, NULL, NULL), DRUPE_E_INVALID);
    const drupe_native_signature wrong = {DRUPE_DTYPE_NONE, half, 1};
    assert_int_equal(drupe_native_function_open(library, "negative", &wrong, &none), DRUPE_E_UNSUPPORTED);
    assert_int_equal(drupe_native_function_open(library, "absent", NULL, &none), DRUPE_E_NOT_FOUND);
    assert_null(none);
    drupe_native_library *absent = NULL;
    assert_int_equal(drupe_native_open("/nowhere/absent.so", &absent), DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "absent.so"));
    drupe_native_function_release(negative);
    drupe_native_function_release(plain);
}

static void closing_waits_for_calls(void **state)
{
    (void)state;
    drupe_native_function *wait = function_of("wait_for", DRUPE_DTYPE_NONE, NULL, 0);
    static int32_t open;
    const drupe_native_arg arg = {.words = {(uintptr_t)&open, 0}};
    assert_int_equal(run(wait, &arg, 1, NULL, NULL), DRUPE_OK);
    assert_int_equal(drupe_native_calls(library), 1);
    assert_int_equal(drupe_native_close(library), DRUPE_E_BUSY);
    assert_int_equal(run(wait, &arg, 1, NULL, NULL), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "unloaded"));
    __atomic_store_n(&open, 1, __ATOMIC_RELEASE);
    assert_int_equal(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_OK);
    drupe_queue_collect(queue);
    assert_int_equal(drupe_native_calls(library), 0);
    assert_int_equal(drupe_native_close(library), DRUPE_OK);
    assert_int_equal(drupe_native_close(library), DRUPE_OK);
    drupe_native_function_release(wait);
}

/* What is alike, what is not, and what takes the other way (a label), in one line. */
static void calls_of_all_kinds_are_counted_until_they_are_over(void **state)
{
    (void)state;
    drupe_native_function *wait = function_of("wait_for", DRUPE_DTYPE_NONE, NULL, 0),
                          *plain = function_of("add_plain", DRUPE_DTYPE_NONE, NULL, 0);
    int32_t open = 0;
    double *x = drupe_memory_pointer(memory), half = 0.5;
    drupe_native_arg number = {.words = {N, 0}, .inside = true}, real_arg = {.inside = true},
                     first = {.words = {(uintptr_t)&open, 0}};
    memcpy(real_arg.words, &half, sizeof half);
    const drupe_native_arg args[] = {number, real_arg, {.words = {(uintptr_t)x, 0}, .memory = memory}};
    assert_int_equal(run(wait, &first, 1, NULL, NULL), DRUPE_OK);
    const drupe_submission named = {.queue = queue, .label = "add once more"};
    const drupe_native_call call = {.function = plain, .args = args, .count = 3};
    for (int i = 0; i < 4; i++) assert_int_equal(run(plain, args, 3, NULL, NULL), DRUPE_OK);
    assert_int_equal(drupe_native_submit(&named, &call, NULL), DRUPE_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(run(plain, args, 3, NULL, NULL), DRUPE_OK);
    assert_in_range(drupe_native_calls(library), 3, 9);
    drupe_native_function_release(plain); /* the calls have it */
    drupe_native_function_release(wait);
    assert_int_equal(drupe_native_close(library), DRUPE_E_BUSY);
    __atomic_store_n(&open, 1, __ATOMIC_RELEASE);
    assert_int_equal(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_OK);
    drupe_queue_collect(queue);
    assert_int_equal(drupe_native_calls(library), 0);
    for (int i = 0; i < N; i++) assert_true(x[i] == 4.0);
    assert_int_equal(drupe_native_close(library), DRUPE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_run_in_order, open_all, close_all),
        cmocka_unit_test_setup_teardown(small_results_are_their_own_size, open_all, close_all),
        cmocka_unit_test_setup_teardown(wrong_calls_are_refused, open_all, close_all),
        cmocka_unit_test_setup_teardown(closing_waits_for_calls, open_all, close_all),
        cmocka_unit_test_setup_teardown(calls_of_all_kinds_are_counted_until_they_are_over, open_all,
                                        close_all),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)drupe_library_close(DRUPE_FOREVER);
    return failed;
}
