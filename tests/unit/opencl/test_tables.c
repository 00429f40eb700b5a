/* What needs no device: names, types, local sizes. */
#include "backends/opencl/opencl.h"
#include "stand_in.h"
#include <string.h>

static void error_names(void **state)
{
    (void)state;
    assert_string_equal(drupe_cl_error_name(-54), "CL_INVALID_WORK_GROUP_SIZE");
    assert_string_equal(drupe_cl_error_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
    assert_string_equal(drupe_cl_error_name(-777), "CL_ERROR");
    for (cl_int code = -72; code < 0; code++) {
        if (code < -19 && code > -30) continue; /* not assigned */
        assert_string_not_equal(drupe_cl_error_name(code), "CL_ERROR");
    }
    assert_error(drupe_cl_fail(-61, "Making %d things", 3), DRUPE_E_NO_MEMORY,
                 "Making 3 things failed: CL_INVALID_B");
    assert_int_equal(drupe_error_last()->native, -61);
    assert_string_equal(drupe_error_last()->native_name, "CL_INVALID_BUFFER_SIZE");
    assert_string_equal(drupe_error_last()->backend, "opencl");
    assert_error(drupe_cl_fail_event(-14), DRUPE_E_DEPENDENCY, "waited for");
    assert_error(drupe_cl_fail_event(-5), DRUPE_E_DEVICE_LOST, "CL_OUT_OF_RESOURCES");
    assert_error(drupe_cl_fail_event(-9999), DRUPE_E_DEVICE_LOST, "restart");
}

static void type_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        drupe_scalar_type scalar;
        uint32_t lanes;
    } cases[] = {
        {"float*", DRUPE_SCALAR_F32, 1},        {"float", DRUPE_SCALAR_F32, 1},
        {"double4*", DRUPE_SCALAR_F64, 4},      {"uint", DRUPE_SCALAR_U32, 1},
        {"unsigned int", DRUPE_SCALAR_U32, 1},  {"uchar16", DRUPE_SCALAR_U8, 16},
        {"float3", DRUPE_SCALAR_F32, 3},        {"const float *", DRUPE_SCALAR_F32, 1},
        {"half8", DRUPE_SCALAR_F16, 8},         {"ulong2*", DRUPE_SCALAR_U64, 2},
        {"size_t", DRUPE_SCALAR_U64, 1},        {"__global long*", DRUPE_SCALAR_I64, 1},
        {"short", DRUPE_SCALAR_I16, 1},         {"char2", DRUPE_SCALAR_I8, 2},
        {"void*", DRUPE_SCALAR_UNKNOWN, 1},     {"struct Q*", DRUPE_SCALAR_UNKNOWN, 1},
        {"float**", DRUPE_SCALAR_UNKNOWN, 1},   {"float5", DRUPE_SCALAR_UNKNOWN, 1},
        {"floats", DRUPE_SCALAR_UNKNOWN, 1},    {"", DRUPE_SCALAR_UNKNOWN, 1},
        {"image2d_t", DRUPE_SCALAR_UNKNOWN, 1}, {"4", DRUPE_SCALAR_UNKNOWN, 1},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        drupe_scalar_type scalar;
        uint32_t lanes;
        drupe_cl_parse_type(cases[i].text, &scalar, &lanes);
        if (scalar != cases[i].scalar || lanes != cases[i].lanes) print_error("type \"%s\"\n", cases[i].text);
        assert_int_equal(scalar, cases[i].scalar);
        assert_int_equal(lanes, cases[i].lanes);
    }
}

/* --- Local sizes ---------------------------------------------------------------------------------------- */

static drupe_cl_device fake_device(bool cpu)
{
    drupe_cl_device device = {.caps = {.cpu = cpu, .units = 2, .max_group = 4096}};
    for (int d = 0; d < 3; d++) device.caps.max_items[d] = 1024;
    return device;
}

static void settle(drupe_cl_kernel *kernel, uint32_t dims, size_t x, size_t y, size_t local[3], bool *driver)
{
    drupe_range range = {.dims = dims, .global = {x, y, 1}};
    assert_int_equal(drupe_cl_range_settle(kernel, &range), DRUPE_OK);
    memcpy(local, kernel->settled_local, sizeof kernel->settled_local);
    *driver = kernel->settled_by_driver;
}

static void chosen_local_sizes(void **state)
{
    (void)state;
    drupe_cl_device cpu = fake_device(true), gpu = fake_device(false);
    drupe_cl_kernel on_cpu = {.device = &cpu, .max_group = 4096, .multiple = 8};
    drupe_cl_kernel on_gpu = {.device = &gpu, .max_group = 128, .multiple = 32};
    size_t local[3];
    bool driver;
    for (size_t x = 1; x < 5000; x++) {
        settle(&on_cpu, 1, x, 1, local, &driver);
        assert_int_equal(x % local[0], 0);
        assert_true(local[0] <= 256 && (local[0] & (local[0] - 1)) == 0 && !driver);
        settle(&on_gpu, 2, x, 6, local, &driver);
        assert_int_equal(x % local[0] + 6 % local[1], 0);
        assert_true(local[0] * local[1] <= 128 && local[2] == 1);
        assert_int_equal(driver, x % 64 != 0 && (x & -x) * 2 < 32);
    }
    settle(&on_cpu, 1, 1 << 20, 1, local, &driver);
    assert_int_equal(local[0], 256);
    settle(&on_cpu, 1, 4, 1, local, &driver); /* four items on two units: two groups */
    assert_int_equal(local[0], 2);
    settle(&on_cpu, 2, 1024, 1024, local, &driver);
    assert_int_equal(local[0], 64);
    assert_int_equal(local[1], 4);
    settle(&on_gpu, 1, 1 << 20, 1, local, &driver);
    assert_int_equal(local[0], 128);
    settle(&on_gpu, 1, 64, 1, local, &driver); /* never less than the lanes of a GPU */
    assert_int_equal(local[0], 32);
}

static void checked_local_sizes(void **state)
{
    (void)state;
    drupe_cl_device device = fake_device(true);
    drupe_cl_kernel kernel = {.device = &device, .max_group = 256, .multiple = 8};
    const size_t *local = kernel.settled_local;
    drupe_range range = {.dims = 1, .global = {1000}, .local = {8}};
    assert_int_equal(drupe_cl_range_settle(&kernel, &range), DRUPE_OK);
    assert_int_equal(local[0], 8);
    kernel.required[0] = 16, kernel.required[1] = kernel.required[2] = 1;
    range = (drupe_range){.dims = 1, .global = {160}};
    assert_int_equal(drupe_cl_range_settle(&kernel, &range), DRUPE_OK);
    assert_int_equal(local[0], 16);
    range.local[0] = 8;
    assert_error(drupe_cl_range_settle(&kernel, &range), DRUPE_E_INVALID, "written for");
}

const struct CMUnitTest table_tests[] = {cmocka_unit_test(error_names),
                                         cmocka_unit_test(type_names),
                                         cmocka_unit_test(chosen_local_sizes),
                                         cmocka_unit_test(checked_local_sizes),
                                         {0}};
