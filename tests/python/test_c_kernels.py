"""Kernels in C on the host device: what the machine's C compiler makes of them, and how they are called."""
import ctypes
import gc
import os
import pathlib
import platform
import shutil
import subprocess
import sys

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import program as programs

if not drupe.Device("host").can_compile("c"):
    pytest.skip("there is no C compiler on this machine", allow_module_level=True)

TEXT = """\
#include <math.h>
#include <stdbool.h>
typedef double real;
typedef struct { int a; float b; } pair;

static real half_of(real x) { return x / 2; }   // "kernel void no(int x)" in a comment

kernel void scale(float *restrict x, const float factor /* , int no */, int n)
{
    size_t i = get_global_id(0);
    if (i < (size_t)n) x[i] = sqrtf(x[i] * factor);
}
kernel void halves(real out[], const real in[const]) { out[get_global_id(0)] = half_of(in[get_global_id(0)]); }
kernel void
    place(long *out)
{
    size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    out[(z * get_global_size(1) + y) * get_global_size(0) + x] = 100 * (long)z + 10 * (long)y + (long)x;
}
kernel void put(float *out, pair p, bool yes, unsigned char small) { out[0] = p.a; out[1] = p.b; out[2] = yes + small; }
kernel void empty(void) {}
"""


@pytest.fixture(scope="module")
def program():
    return drupe.Program(TEXT, "host", language="c")


def test_what_is_known_of_kernels(program):
    assert program.kernel_names == ["scale", "halves", "place", "put", "empty"]
    told = [one[:2] for one in program.scale.arguments]
    assert told == [("x", "float *restrict"), ("factor", "const float"), ("n", "int")]
    assert [one[0] for one in program.halves.arguments] == ["out", "in"]
    assert program.empty.num_args == 0 and program.scale.num_args == 3
    with pytest.raises(AttributeError, match="scale"):
        program.nothing
    assert program.device.can_compile("c") and program.device.has_aspect_online_compiler and program.build_log == ""


def test_launches(program):
    x = da.arange(1000, dtype="float32", device="host")
    program.scale(x, 4, 999, global_size=1000).wait()
    expected = np.sqrt(np.arange(1000, dtype="float32") * 4)
    expected[999] = 999
    assert np.allclose(x.asnumpy(), expected)
    given = da.arange(77, dtype="float64", device="host")
    taken = da.zeros(77, dtype="float64", device="host")
    program.halves(taken, given, global_size=77)
    program.empty(global_size=5)
    assert np.array_equal(taken.asnumpy(), np.arange(77) / 2)


def test_ranges(program):
    out = da.zeros(4 * 3 * 2, dtype="int64", device="host")
    program.place(out, global_size=(4, 3, 2)).wait()
    z, y, x = np.mgrid[:2, :3, :4]
    assert np.array_equal(out.asnumpy().reshape(2, 3, 4), 100 * z + 10 * y + x)
    large = da.zeros(1 << 16, dtype="int64", device="host")
    program.place(large, global_size=(1 << 8, 1 << 8)).wait()
    y, x = np.mgrid[:256, :256]
    assert np.array_equal(large.asnumpy().reshape(256, 256), 10 * y + x)
    with pytest.raises(drupe.InvalidArgumentError, match="local size"):
        program.place(out, global_size=4, local_size=2)


def test_arguments(program):
    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_float)]

    out = da.zeros(3, dtype="float32", device="host")
    program.put(out, Pair(3, 0.5), True, 7, global_size=1).wait()
    assert out.asnumpy().tolist() == [3, 0.5, 8]
    with pytest.raises(drupe.InvalidArgumentError, match="pair p.* takes 8 bytes, not 3"):
        program.put(out, b"123", True, 7, global_size=1)
    with pytest.raises(OverflowError, match="small"):
        program.put(out, Pair(), True, 256, global_size=1)
    with pytest.raises(TypeError, match="float"):
        program.scale(da.zeros(3, dtype="float64", device="host"), 1.0, 3, global_size=3)
    with pytest.raises(TypeError, match="5 were given|takes 0|argument"):
        program.empty(5, global_size=1)


def test_a_plain_char_has_a_sign():
    """As the type table of kernels says, and as OpenCL does; on AArch64 compilers take it for unsigned."""
    kernel = drupe.Program("kernel void f(int *out, char x) { out[0] = x < 0; }", "host", language="c").f
    out = da.zeros(1, dtype="int32", device="host")
    kernel(out, -5, global_size=1).wait()
    assert out.asnumpy().tolist() == [1]


@pytest.mark.parametrize("text, where, what", [
    ("kernel void f(int *x)\n{\n    x[0] = nothing;\n}", "line 3, column 12", "nothing"),
    ("/* a */ kernel void f(int *x, strange y) {}", "line 1, column 31", "strange"),
    ("\n\tkernel void f(void) { g(); }\n", "line 2, column 24", "g"),
    ("kernel void f(int *x) {}\nint g(void) { return get_global_id(0); }", "line 2", "drupe_self_"),
    ("kernel void f(int *x) { *x = 1;", "", "expected"),
    ("void f(int *x) {}", "", "there is no kernel"),
    ("kernel void f(int *) {}", "", "it has no name"),
    ("kernel void f(void (*g)(void)) {}", "", "functions cannot be given"),
    ("kernel void f(int x", "", "does not end"),
    ("void g(int); kernel void f(int x) { g(x); }", "", "undefined reference"),
])
def test_build_errors(text, where, what):
    with pytest.raises(drupe.BuildError) as caught:
        drupe.Program(text, "host", language="c")
    assert where in str(caught.value) and what in str(caught.value), caught.value
    assert what in caught.value.log
    assert not where or "drupe:" not in caught.value.log  # nothing of what was inserted


@pytest.mark.parametrize("text", ["__kernel void f(int *x) {}", "kernel void f(global int *x) {}",
                                  "kernel void f(__local float *x) {}"])
def test_opencl_is_told_apart(text):
    with pytest.raises(drupe.UnsupportedError, match="opencl:cpu"):
        drupe.Program(text, "host", language="c")
    with pytest.raises(drupe.UnsupportedError, match='language="c"'):
        drupe.Program("kernel void f(void) {}", "host")


def test_other_devices_take_no_c(opencl):
    with pytest.raises(drupe.UnsupportedError, match="host:cpu:0"):
        drupe.Program(TEXT, opencl, language="c")


def test_options():
    text = "#ifndef N\n#error no N\n#endif\nkernel void f(int *x) { x[0] = N; }"
    with pytest.raises(drupe.BuildError, match="no N"):
        drupe.Program(text, "host", language="c")
    x = da.zeros(1, dtype="int32", device="host")
    drupe.Program(text, "host", language="c", options="-DN=5 -O1").f(x, global_size=1).wait()
    assert x.asnumpy().tolist() == [5]


def test_macros_mean_what_they_mean_there():
    program = drupe.Program("""
        #define T float
        kernel void f(T *x) { x[get_global_id(0)] = 1; }
        #undef T
        #define T double
        #define size 8
        #define id 3
        kernel void range(T *end, int begin) { end[get_global_id(0)] = begin + size + get_global_id(3); }
        #undef T
        #ifdef LONG
        kernel void g(long *n) { n[0] = get_global_size(3); }
        #else
        kernel void g(int *n) { n[0] = get_global_size(3) + get_global_offset(9); }
        #endif
        #if 0
        kernel void never(int *x) {}
        #endif
    """, "host", language="c")
    assert program.kernel_names == ["f", "range", "g"]
    x, y, n = (da.zeros(4, dtype=dtype, device="host") for dtype in ("float32", "float64", "int32"))
    program.f(x, global_size=4)
    program.range(y, 5, global_size=4)
    program.g(n, global_size=1)
    assert x.asnumpy().tolist() == [1] * 4 and y.asnumpy().tolist() == [13] * 4 and n.asnumpy()[0] == 1
    with pytest.raises(drupe.BuildError, match="no #if leaves a kernel"):
        drupe.Program("#ifdef NOWHERE\nkernel void f(void) {}\n#endif", "host", language="c")


def test_libraries_stand_behind_the_text():
    text = "extern int jn_is_there; double jn(int, double); kernel void f(double *x) { x[0] = jn(0, 0.0); }"
    x = da.zeros(1, device="host")
    drupe.Program(text, "host", language="c", options="-lm -Wl,--as-needed").f(x, global_size=1)
    assert x.asnumpy().tolist() == [1]


def test_binaries_and_the_cache(fresh, tmp_path):
    program = drupe.Program(TEXT, "host", language="c")
    programs.save(program, tmp_path / "p.bin")
    x = da.ones(4, dtype="float32", device="host")
    programs.load(tmp_path / "p.bin", "host").scale(x, 9, 4, global_size=4).wait()
    assert x.asnumpy().tolist() == [3] * 4
    damaged = bytearray(program.binary)
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(drupe.InvalidArgumentError, match="damaged"):
        drupe.Program(bytes(damaged), "host", language="binary")
    for entries, hits in ((1, 0), (1, 1)):
        assert kept(fresh, tmp_path, entries) == [entries, hits]


def kept(fresh, tmp_path, entries, **environment):
    """How many programs are in the cache, and were found there, after a process that builds one."""
    result = fresh(f"""
        import time, drupe, drupe.program, drupe.array as da
        p = drupe.Program({TEXT!r}, "host", language="c")
        x = da.ones(4, dtype="float32", device="host")
        p.scale(x, 16, 4, global_size=4).wait()
        end = time.monotonic() + 20
        while drupe.program.cache_info()["entries"] < {entries} and time.monotonic() < end:
            time.sleep(0.02)
        info = drupe.program.cache_info()
        print(x.asnumpy().tolist(), info["entries"], info["hits"])
    """, DRUPE_CACHE="1", DRUPE_CACHE_DIR=str(tmp_path / "cache"), **environment)
    return [int(word) for word in result.stdout.split("]")[1].split()]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the assembler may write it otherwise")
def test_a_file_in_the_assembler_is_looked_at_each_time(fresh, tmp_path):
    blob = tmp_path / "blob"
    for number in (5, 6):
        blob.write_bytes(number.to_bytes(4, sys.byteorder))
        result = fresh(f"""
            import drupe, drupe.array as da
            from drupe import _engine
            text = r'''__asm__(".section .rodata\\n.globl blob\\nblob: .incbin \\"{blob}\\"\\n.previous");
                extern const int blob;
                kernel void f(int *x) {{ x[get_global_id(0)] = blob; }}'''
            x = da.zeros(1, dtype="int32", device="host")
            drupe.Program(text, "host", language="c").f(x, global_size=1)
            _engine._cache_flush(60)
            print(x.item())
        """, DRUPE_CACHE="1", DRUPE_CACHE_DIR=str(tmp_path / "cache"))
        assert result.stdout == f"{number}\n", result.stderr


def test_another_compiler_builds_anew(fresh, tmp_path):
    real = next(path for path in map(shutil.which, (os.environ.get("DRUPE_CC", "cc"), "gcc", "clang")) if path)
    compiler, version = tmp_path / "compiler", tmp_path / "version"

    def write(more=""):
        compiler.write_text("#!/bin/sh\n[ $1 = --version ] && exec cat %s\nexec %s \"$@\"\n%s" % (version, real, more))
        compiler.chmod(0o755)

    write()
    version.write_text("1")
    assert kept(fresh, tmp_path, 1, DRUPE_CC=str(compiler)) == [1, 0]
    assert kept(fresh, tmp_path, 1, DRUPE_CC=str(compiler)) == [1, 1]
    version.write_text("2")  # of what it stands for
    assert kept(fresh, tmp_path, 2, DRUPE_CC=str(compiler)) == [2, 0]
    write("# newer")
    assert kept(fresh, tmp_path, 3, DRUPE_CC=str(compiler)) == [3, 0]
    assert kept(fresh, tmp_path, 3, DRUPE_CC=str(compiler)) == [3, 1]
    version.unlink()  # what it is cannot be told: nothing is looked up
    assert kept(fresh, tmp_path, 3, DRUPE_CC=str(compiler)) == [3, 0]


def test_a_program_lives_as_long_as_its_work():
    text = "kernel void slow(long *x, long n) { for (long i = 0; i < n; i++) x[0] += i ^ x[1]; }"
    x = da.zeros(2, dtype="int64", device="host")
    program = drupe.Program(text, "host", language="c")
    for _ in range(20):
        program.slow(x, 2_000_000, global_size=1)
    del program
    gc.collect()
    drupe.queue("host").wait()
    assert x.asnumpy()[0] != 0


def test_libraries_are_closed():
    def mapped():
        return pathlib.Path("/proc/self/maps").read_text().count("memfd:drupe-program")

    drupe.synchronize("host")
    gc.collect()
    before = mapped()
    kept = [drupe.Program(f"kernel void f(int *x) {{ x[0] = {n}; }}", "host", language="c") for n in range(3)]
    x = da.zeros(1, dtype="int32", device="host")
    for number, one in enumerate(kept):
        one.f(x, global_size=1).wait()
        assert x.asnumpy().tolist() == [number]  # each is the library of its own text
    assert mapped() > before
    del kept, one
    gc.collect()
    drupe.synchronize("host")
    da.zeros(1, device="host")  # entering the engine drops what finished work kept
    assert mapped() == before


def test_a_fault_is_contained(fresh):
    result = fresh("""
        import drupe, drupe.array as da
        drupe.contain_faults()
        p = drupe.Program("kernel void bad(int *x) { *(volatile int *)16 = 1; }\\n"
                          "kernel void good(int *x) { x[get_global_id(0)] = 7; }", "host", language="c")
        x = da.zeros(4, dtype="int32", device="host")
        try:
            p.bad(x, global_size=1).wait()
        except drupe.DeviceError as error:
            print(type(error).__name__, "'bad'" in str(error), "0x10" in str(error))
        x.accept_contents()
        p.good(x, global_size=4, queue=drupe.Queue("host")).wait()
        print(x.asnumpy().tolist())
    """)
    assert result.stdout.splitlines() == ["DeviceLostError True True", "[7, 7, 7, 7]"], result.stdout + result.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang-14", "clang"])
def test_compilers(fresh, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    result = fresh(f"""
        import drupe, drupe.array as da
        p = drupe.Program({TEXT!r}, "host", language="c")
        x = da.ones(4, dtype="float32", device="host")
        p.scale(x, 16, 4, global_size=4).wait()
        print(x.asnumpy().tolist(), [one[2] for one in p.halves.arguments])
        try:
            drupe.Program("kernel void f(int *x)\\n{{ x[0] = nothing; }}", "host", language="c")
        except drupe.BuildError as error:
            print("line 2, column 10" in str(error), str(error) if "line 2, column 10" not in str(error) else "")
    """, DRUPE_CC=compiler)
    assert result.stdout.split("\n")[:2] == ["[4.0, 4.0, 4.0, 4.0] ['pointer', 'pointer']", "True "], result


def test_without_a_compiler(fresh):
    result = fresh("""
        import drupe
        print(drupe.Device("host").can_compile("c"))
        try:
            drupe.Program("kernel void f(void) {}", "host", language="c")
        except drupe.UnsupportedError as error:
            print("C compiler" in str(error), "DRUPE_CC" in str(error))
    """, DRUPE_CC="/nowhere/cc")
    assert result.stdout.split() == ["False", "True", "True"], result.stdout + result.stderr


OWN_TABLE = """
static void drupe_run_scale(drupe_size_ begin, drupe_size_ end, drupe_size_ n, const void *const *args)
{
    const drupe_range_ *range = args[0];
    float *x = *(float *const *)args[1];
    const float by = *(const float *)args[2];
    const long *more = *(const long *const *)args[3];
    for (drupe_size_ i = begin; i < end; i++) x[i] = x[i] * by + more[0] + n + range->drupe_count_[0];
}
static const drupe_param_ drupe_params_scale[] = {
    {1, 10, 0, sizeof(float *), "x", "float *"}, {0, 10, 0, sizeof(float), "by", "float"},
    {1, 7, 1, sizeof(long *), "more", "const long *"}};
static void nothing(drupe_size_ begin, drupe_size_ end, drupe_size_ n, const void *const *args) {}
const drupe_entry_ drupe_entries_[] = {
    {"scale", 3, drupe_params_scale, drupe_run_scale}, {"nothing", 0, 0, nothing}, {0, 0, 0, 0}};
"""


def test_a_text_with_its_own_table():
    program = drupe.Program(OWN_TABLE, "host", language="c", options="-drupe-table")
    assert program.kernel_names == ["scale", "nothing"] and program.nothing.num_args == 0
    assert list(program.scale.arguments) == [("x", "float *", "pointer"), ("by", "float", "value"),
                                             ("more", "const long *", "pointer")]
    x, more = da.arange(1000, dtype="float32", device="host"), da.full(1, 3, dtype="int64", device="host")
    program.scale(x, 2, more, global_size=1000).wait()
    program.nothing(global_size=7).wait()
    assert np.array_equal(x.asnumpy(), 2 * np.arange(1000, dtype="float32") + 2003)
    with pytest.raises(TypeError, match="float"):
        program.scale(da.zeros(3, dtype="float64", device="host"), 1.0, more, global_size=3)


@pytest.mark.parametrize("text, what", [
    ("\nint x = nothing;", "nothing"),
    ("int x;", "no table of kernels"),
    (OWN_TABLE.replace('"scale", 3, drupe_params_scale', '"scale", 3, 0'), "entry of 'scale'"),
    (OWN_TABLE.replace('"scale", 3', '"scale", 65'), "more than 64"),
    (OWN_TABLE.replace(", nothing}", ", 0}"), "entry of 'nothing'"),
    ("const drupe_entry_ drupe_entries_[] = {{0, 0, 0, 0}};", "kernel in the program"),
    (OWN_TABLE.replace("const drupe_entry_ drupe", "static const drupe_entry_ drupe"), "static"),
])
def test_mistakes_in_a_table(text, what):
    with pytest.raises(drupe.BuildError) as caught:
        drupe.Program(text, "host", language="c", options="-drupe-table")
    assert what in str(caught.value) and what in caught.value.log


def test_products_and_sums_are_rounded_one_by_one():
    """For tables as for arrays; other texts get what compilers do by themselves."""
    text = """
        static void run(drupe_size_ begin, drupe_size_ end, drupe_size_ n, const void *const *args)
        {
            double *x = *(double *const *)args[1];
            for (drupe_size_ i = begin; i < end; i++) x[i] = x[i] * x[i] - 1;
        }
        static const drupe_param_ params[] = {{1, 11, 0, sizeof(double *), "x", "double *"}};
        const drupe_entry_ drupe_entries_[] = {{"f", 1, params, run}, {0, 0, 0, 0}};
    """
    given = 1 + np.arange(1, 65) * 2.0**-30
    x = da.asarray(given, device="host")
    drupe.Program(text, "host", language="c", options="-drupe-table").f(x, global_size=64).wait()
    assert np.array_equal(x.asnumpy(), given * given - 1)


TWO_OF_ONE_CONTEXT = """
import drupe
devices = [one for one in drupe.devices() if one.filter_string.startswith("opencl:cpu")]
if len(devices) < 2:
    print("one")
    raise SystemExit
context = drupe.Context(devices[:2])
one, other = (drupe.Queue(context, device) for device in devices[:2])
program = drupe.Program("__kernel void put(__global int *a) { a[get_global_id(0)] = 7; }", queue=one)
memory = drupe.memory.MemoryUSMShared(32, queue=other)
try:
    program.put(memory, global_size=8, local_size=3, queue=one)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_memory_of_another_device_in_the_context_is_not_misplaced(tmp_path):
    """Devices of one context share its memory: what is wrong is told, the local size."""
    done = subprocess.run([sys.executable, "-c", TWO_OF_ONE_CONTEXT], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "POCL_DEVICES": "pthread basic", "POCL_CACHE_DIR": str(tmp_path)})
    if done.stdout.strip() == "one":
        pytest.skip("the driver does not make two devices of one processor")
    assert "InvalidArgumentError" in done.stdout and "does not divide the global size" in done.stdout, done


def test_a_changed_library_is_not_taken_for_a_kernel(fresh, tmp_path):
    """Both are opened by their descriptors, whose numbers are the same."""
    done = fresh("""
        import drupe, os, shutil, subprocess, numpy as np
        from drupe import native
        os.chdir(%r)
        kernels = [drupe.Program("kernel void k(int *x) { x[0] = %%d; }" %% n, device="host", language="c").k
                   for n in range(3)]
        open("one.c", "w").write("void one(long *out) { *out = 1; }")
        subprocess.run(["cc", "-shared", "-fPIC", "one.c", "-o", "one.so"], check=True)
        libraries, out = [], np.zeros(4, np.int64)
        for n in range(4):
            shutil.copy("one.so", "new.so")
            os.replace("new.so", "library.so")
            libraries.append(native.load("./library.so", "host"))
            libraries[-1].one(out[n:])
        assert out.all()
        print("done")
    """ % str(tmp_path))
    assert done.stdout == "done\n", done.stderr
