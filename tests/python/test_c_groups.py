"""Work-groups of kernels in C on `host`: barriers, local memory, ids, faults; against NumPy and against OpenCL C."""
import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import RawKernel

pytestmark = pytest.mark.skipif(not drupe.Device("host").can_compile("c"), reason="there is no C compiler")
BOTH = """
#ifdef __OPENCL_VERSION__
#define GLOBAL global
#else
#define GLOBAL
#endif
"""


def devices():
    return ["host"] + [one.filter_string for one in drupe.devices() if one.backend == "opencl"][:1]


@pytest.mark.parametrize("name", devices())
def test_reduction_in_a_tree(name):
    total = RawKernel(BOTH + """
        kernel void total(GLOBAL const double *x, GLOBAL double *out, int n)
        {
            local double part[256];
            int l = get_local_id(0);
            double sum = 0;
            for (int i = get_global_id(0); i < n; i += get_global_size(0)) sum += x[i];
            part[l] = sum;
            for (int some = get_local_size(0) / 2; some; some /= 2) {
                barrier(CLK_LOCAL_MEM_FENCE);
                if (l < some) part[l] += part[l + some];
            }
            if (l == 0) out[get_group_id(0)] = part[0];
        }""", "total")
    x, out = da.arange(100000, dtype="float64", device=name), da.zeros(16, dtype="float64", device=name)
    for block in (1, 2, 64, 256):
        total((16,), (block,), (x, out, 100000))
        assert float(out.sum()) == 99999 * 50000


@pytest.mark.parametrize("name", devices())
def test_local_parameters_and_two_dimensions(name):
    turn = RawKernel(BOTH + """
        kernel void turn(GLOBAL int *x, local int *tile, local float *none, int add)
        {
            int i = get_local_id(0), j = get_local_id(1), w = get_local_size(0);
            int at = get_global_id(1) * get_global_size(0) + get_global_id(0);
            tile[j * w + i] = x[at];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[at] = tile[i * w + j] + add * (int)(get_group_id(1) * get_num_groups(0) + get_group_id(0));
        }""", "turn")
    before = np.arange(96, dtype=np.int32).reshape(8, 12)
    x = da.asarray(before, device=name)
    turn((3, 2), (4, 4), (x, drupe.LocalMemory(64), drupe.LocalMemory(4), 100)).wait()
    expected = before.copy()
    for j in range(2):
        for i in range(3):
            part = slice(4 * j, 4 * j + 4), slice(4 * i, 4 * i + 4)
            expected[part] = before[part].T + 100 * (3 * j + i)
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_barrier_in_a_function_and_many_rounds():
    rounds = RawKernel("""
        static void meet(void) { barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); }
        kernel void rounds(long *x, local long *part, int n)
        {
            size_t l = get_local_id(0), m = get_local_size(0);
            local long shared[1];
            part[l] = x[get_global_id(0)];
            for (int i = 0; i < n; i++) {
                meet();
                long next = part[(l + 1) % m];
                work_group_barrier(CLK_LOCAL_MEM_FENCE);
                part[l] = next;
            }
            if (l == 0) shared[0] = n;
            meet();
            x[get_global_id(0)] = part[l] * 10 + shared[0];
        }""", "rounds")
    x = da.arange(60, dtype="int64", device="host")
    rounds((4,), (15,), (x, 100), shared_mem=15 * 8)
    expected = np.stack([np.roll(row, -(100 % 15)) for row in np.arange(60).reshape(4, 15)])
    np.testing.assert_array_equal(np.asarray(x), expected.ravel() * 10 + 100)


def test_large_groups_deep_stacks_and_work_items_that_end_early():
    deep = RawKernel("""
        static __attribute__((noinline)) double fall(int n)
        {
            volatile double room[32];
            room[n % 32] = n;
            return n ? fall(n - 1) + room[n % 32] : 0;
        }
        kernel void deep(double *x)
        {
            if (get_local_id(0) % 3 == 1) { x[get_global_id(0)] = -1; return; }
            double sum = fall(50);
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = sum;
        }""", "deep")
    x = da.zeros(2048, dtype="float64", device="host")
    deep((2,), (1024,), (x,))
    expected = np.where(np.arange(2048) % 1024 % 3 == 1, -1, 50 * 51 / 2)
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_sizes_that_are_refused():
    kernel = RawKernel("kernel void f(float *x, local float *p) { p[0] = 0; barrier(1); x[0] = p[0]; }", "f")
    x = da.zeros(4, dtype="float32", device="host")
    with pytest.raises(drupe.InvalidArgumentError, match="2048 x 1 x 1 work-items is not possible"):
        kernel((1,), (2048,), (x, drupe.LocalMemory(4)))
    with pytest.raises(drupe.OutOfRangeError, match="local memory"):
        kernel((1,), (4,), (x, drupe.LocalMemory(1 << 20)))
    with pytest.raises(TypeError, match="LocalMemory"):
        kernel((1,), (4,), (x, 4))
    with pytest.raises(ValueError, match="does not divide"):
        kernel(x.queue, (5,), (4,), x, drupe.LocalMemory(4))
    with pytest.raises(drupe.BuildError, match="line 2, column 12"):
        RawKernel("kernel void f(float *x, local float *p) { barrier(1);\n    x[0] = nothing; }",
                  "f")((1,), (4,), (x, drupe.LocalMemory(4)))


def test_fault_in_a_group(fresh):
    done = fresh("""
        import drupe, drupe.array as da, numpy as np
        drupe.contain_faults()
        good = drupe.RawKernel("kernel void g(int *x) { local int s; if (!get_local_id(0)) s = 7; barrier(1);"
                               " x[get_global_id(0)] = s; }", "g")
        texts = ["kernel void f(int *x) { barrier(1); if (get_local_id(0) == 3) *(volatile int *)8 = 1; barrier(1); }",
                 "int deep(int n) { volatile int x[1000]; x[n % 1000] = n; return n ? deep(n + 1) + x[0] : 0; }"
                 " kernel void f(int *x) { barrier(1); x[0] = deep(1); }"]
        for text in texts * 3:
            x = da.zeros(32, dtype="int32", device="host")
            try:
                drupe.RawKernel(text, "f")((4,), (8,), (x,)).wait()
            except drupe.DeviceLostError as error:
                assert "'f'" in str(error) and "work-groups" in str(error), error
            else:
                raise SystemExit("no fault")
            y = da.zeros(32, dtype="int32", device="host")
            good((4,), (8,), (y,))
            assert (np.asarray(y) == 7).all()
        print("done")
    """)
    assert done.stdout == "done\n", done.stderr


def test_stacks_are_aligned_and_one_that_is_full_is_told(fresh):
    aligned = RawKernel("""
        #include <stdio.h>
        kernel void f(int *x)
        {
            char text[64];
            barrier(CLK_LOCAL_MEM_FENCE);
            snprintf(text, sizeof text, "%.1f %.1Lf", 1.5 + get_local_id(0), (long double)2.5);
            x[get_global_id(0)] = text[0] * 100 + (unsigned long)__builtin_frame_address(0) % 16;
        }""", "f")
    x = da.zeros(8, dtype="int32", device="host")
    aligned((2,), (4,), (x,)).wait()
    assert np.asarray(x).tolist() == [4900, 5000, 5100, 5200] * 2
    done = fresh("""
        import drupe, drupe.array as da
        drupe.contain_faults()
        wide = drupe.RawKernel('''
            kernel void wide(double *x, int n)
            {
                volatile double t[10240];
                for (int i = 0; i < n; i++) t[i] = get_local_id(0);
                barrier(1);
                x[get_global_id(0)] = n ? t[n - 1] : 1;
            }''', "wide")
        for threads in range(2):
            x = da.zeros(32 << 10, dtype="float64", device="host")
            try:
                wide((32,), (1024,), (x, 10240)).wait()
            except drupe.DeviceLostError as error:
                assert "do not fit on the stack of a work-item, 64 KiB" in str(error), error
            else:
                raise SystemExit("no fault")
            small = drupe.RawKernel("kernel void g(int *x) { local int s; if (!get_local_id(0)) s = 7; barrier(1);"
                                    " x[get_global_id(0)] = s; }", "g")
            y = da.zeros(32 << 10, dtype="int32", device="host")
            small((32,), (1024,), (y,))
            assert int(y.sum()) == 7 * (32 << 10)
        print("done")
    """, DRUPE_HOST_THREADS="24")
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("name", devices())
def test_pointers_to_local_memory(name):
    kernel = RawKernel(BOTH + """
        int first(const local int *p);
        int first(const local int *p) { return p[0]; }
        void put(local /* here */ int *p, int at, int value) { p[at] = value; }
        kernel void f(GLOBAL int *x, const local int *given, local int *other)
        {
            local int tile[8];
            local int *p = tile + 4;
            const local int *q = (local int *)p;
            int l = get_local_id(0);
            put(tile, l, 10 * l);
            if (l == 0) other[0] = 1000;
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = q[0] + first(tile + l) + other[0] + (given == other);
        }
        int last(local int *p) { return p[7]; }""", "f")
    x = da.zeros(16, dtype="int32", device=name)
    kernel((2,), (8,), (x, drupe.LocalMemory(4), drupe.LocalMemory(4))).wait()
    assert np.asarray(x).tolist() == [1040 + 10 * i for i in range(8)] * 2
