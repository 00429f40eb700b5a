"""Functions of shared libraries on queues: what they are given, in which order they run, how they fail and end."""
import ctypes
import gc
import importlib.util
import os
import pathlib
import threading

import numpy as np
import pytest
from native_build import CC, build

import drupe
import drupe.array as da
from drupe import _engine, native
from drupe.native import _compile

HERE = pathlib.Path(__file__).parent
pytestmark = pytest.mark.skipif(not CC, reason="there is no C compiler")
CPUS = [one.filter_string for one in drupe.devices() if one.device_type.name == "cpu"]


@pytest.fixture
def path(native_functions):
    return native_functions


@pytest.fixture
def library(path):
    return native.load(path, "host")


@pytest.fixture(params=CPUS)
def cpu(request):
    return drupe.Device(request.param)


@pytest.fixture
def pipe():
    """A gate: functions wait at its first end until open() is called."""
    read, write = os.pipe()

    class Gate:
        end = read

        def open(self):
            os.write(write, b"x")

    yield Gate()
    os.write(write, b"x" * 16)  # nobody stays behind
    drupe.synchronize("host")
    os.close(write)
    os.close(read)


AXPY = "void axpy(long n, double a, const double x[n], double y[n])"


# --- Arguments ---------------------------------------------------------------------------------------------

def test_declared_function_takes_scalars_by_value(path, cpu):
    library = native.load(path, cpu)
    axpy = library.declare("axpy", AXPY)
    x, y = da.arange(1000, dtype="float64", device=cpu), da.ones(1000, dtype="float64", device=cpu)
    event = library.axpy(1000, 2.0, x, y)
    assert isinstance(event, drupe.Event)
    event.wait()
    np.testing.assert_array_equal(np.asarray(y), 1 + 2.0 * np.arange(1000))
    assert axpy is library.axpy and axpy.declared
    assert axpy.arguments == ("long n", "double a", "const double x[n]", "double y[n]")


def test_undeclared_function_gets_addresses(path, cpu):
    library = native.load(path)
    x, y = da.arange(10, dtype="float64", device=cpu), da.ones(10, dtype="float64", device=cpu)
    library.axpy_plain(10, 0.5, x, y)
    np.testing.assert_array_equal(np.asarray(y), 1 + 0.5 * np.arange(10))
    assert not library.axpy_plain.declared and library.axpy_plain.arguments is None


def test_every_scalar_type(library):
    library.declare("kinds", "void(int8_t, uint8_t, short, unsigned short, int, unsigned, long, unsigned long,"
                             "float, double, _Bool, float complex, double _Complex, double *out)")
    out = da.zeros(15, dtype="float64", device="host")
    library.kinds(-5, 200, -30000, 60000, -2**31, 2**32 - 1, -2**40, 2**53, 0.5, 1e300, True, 1 - 2j, 3 + 4j, out)
    assert list(np.asarray(out)) == [-5, 200, -30000, 60000, -2**31, 2**32 - 1, -2**40, 2**53, 0.5, 1e300, 1, 1, -2, 3,
                                     4]
    library.kinds(np.int8(1), np.uint8(2), np.int16(3), np.uint16(4), np.int32(5), np.uint32(6), np.int64(7),
                  np.uint64(8), np.float32(9), np.float64(10), np.bool_(False), np.complex64(11j),
                  np.complex128(12 + 13j), out)
    assert list(np.asarray(out)) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 11, 12, 13]
    library.kinds(ctypes.c_int8(1), 2, 3, 4, ctypes.c_int(5), 6, 7, 8, ctypes.c_float(9), 10, ctypes.c_bool(True), 0, 0,
                  out)
    assert list(np.asarray(out))[:11] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1]


def test_numbers_without_a_declaration_go_by_address(library):
    out = np.zeros(6)
    library.plain_kinds(2**40, 0.25, 1 + 2j, True, None, out)
    assert list(out) == [2**40, 0.25, 1, 2, 1, 1]
    library.plain_kinds(np.int64(3), np.float64(4), np.complex128(5j), np.bool_(False), None, out)
    assert list(out) == [3, 4, 0, 5, 0, 1]


def test_number_for_a_declared_pointer(library):
    library.declare("axpy_plain", "void(const long *n, const double *a, const double *x, double *y)")
    y = np.ones(3)
    library.axpy_plain(3, 2, np.arange(3.0), y)
    assert list(y) == [1, 3, 5]


def test_sixteen_pointers_and_no_argument(library):
    out = np.zeros(1, np.int64)
    library.sum16(*range(15), out)
    assert out[0] == sum(range(15))
    library.nothing().wait()


def test_numpy_arrays_are_worked_on_in_place_and_awaited(path, cpu):
    library = native.load(path, cpu)
    library.declare("axpy", AXPY)
    x, y = np.arange(100.0), np.ones(100)
    event = library.axpy(100, 3.0, x, y)
    np.testing.assert_array_equal(y, 1 + 3 * np.arange(100))
    assert event.status == "complete"
    x.flags.writeable = False  # it is const
    library.axpy(100, 0.0, x, y)
    f = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    library.axpy(6, 1.0, f, np.zeros(6))


def test_memory_of_other_kinds(library, cpu):
    from drupe import memory

    library.declare("axpy", "void(long, double, const double *x, double *y)")
    usm = memory.MemoryUSMShared(80, queue=drupe.queue("host"))
    usm.copy_from_host(np.ones(10).view(np.uint8))
    y = da.zeros(10, dtype="float64", device="host")
    library.axpy(10, 2.0, usm, y)
    assert (np.asarray(y) == 2).all()
    block = (ctypes.c_double * 10)()
    library.axpy(10, 2.0, block, y)
    library.declare("length", "void(const char *text, long *n)")
    n = np.zeros(1, np.int64)
    library.length("äbc", n)
    assert n[0] == 4
    library.length(b"abcdef", n)
    assert n[0] == 6


def test_result(library):
    library.declare("dot", "double dot(long n, const double x[n], const double *y)")
    library.declare("small", "signed char(int)")
    library.declare("conjugate", "double complex(double complex)")
    x, r = da.arange(4, dtype="float64", device="host"), da.zeros(1, dtype="float64", device="host")
    library.dot(4, x, x, result=r)
    assert float(r[0]) == 14
    n = np.zeros(1, np.int8)
    library.small(-7, result=n)
    assert n[0] == -7
    z = np.zeros(1, complex)
    library.conjugate(1 + 2j, result=z)
    assert z[0] == 1 - 2j
    library.dot(4, x, x).wait()  # nobody wants it
    with pytest.raises(TypeError, match="one float64"):
        library.dot(4, x, x, result=n)
    with pytest.raises(TypeError, match="declaration"):
        library.nothing(result=r)


def test_pending_arrays_are_computed_first(library):
    library.declare("axpy", AXPY)
    n = 100000
    x = da.ones(n, dtype="float64", device="host") * 2 + 1
    y = da.zeros(n, dtype="float64", device="host")
    library.axpy(n, 1.0, x, y)
    z = y * 2
    assert (np.asarray(z) == 6).all()


# --- What is refused before the call -----------------------------------------------------------------------

def host(n=4, dtype="float64"):
    return da.zeros(n, dtype=dtype, device="host")


REFUSED = [
    (lambda: (1, 1.0, host()), TypeError, r"axpy\(\) takes 4 arguments, and 3 were given"),
    (lambda: (1, 1.0, host(), host(), host()), TypeError, "takes 4 arguments, and 5 were given"),
    (lambda: (1.5, 1.0, host(), host()), TypeError, r"axpy\(\), argument 1 \(long n\): .*integer"),
    (lambda: (2**70, 1.0, host(), host()), OverflowError, "argument 1"),
    (lambda: (1, "2", host(), host()), TypeError, r"argument 2 \(double a\)"),
    (lambda: (1, None, host(), host()), TypeError, "argument 2"),
    (lambda: (1, 1.0, host(dtype="float32"), host()), TypeError, r"argument 3 \(const double x\[n\]\): .*float32"),
    (lambda: (1, 1.0, np.zeros(4, np.float32), host()), TypeError, "argument 3.*float32"),
    (lambda: (1, 1.0, np.zeros(4, ">f8"), host()), TypeError, "byte order"),
    (lambda: (1, 1.0, np.zeros(4, object), host()), TypeError, "Python objects"),
    (lambda: (5, 1.0, host(), host()), ValueError, "argument 3.*has 4 elements, and the declaration asks for 5"),
    (lambda: (4, 1.0, host(), np.zeros(3)), ValueError, "argument 4.*has 3 elements"),
    (lambda: (1, 1.0, np.zeros(8)[::2], host()), ValueError, "side by side"),
    (lambda: (1, 1.0, host(8)[::2], host()), ValueError, "side by side"),
    (lambda: (1, 1.0, host(), [1.0]), TypeError, "argument 4.*not list"),
    (lambda: (1, 1.0, host(), b"12345678"), ValueError, "argument 4.*cannot be written"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused_before_the_call(library, number):
    library.declare("axpy", AXPY)
    arguments, kind, text = REFUSED[number]
    with pytest.raises(kind, match=text):
        library.axpy(*arguments())
    y = np.ones(2)
    library.axpy(2, 1.0, np.ones(2), y)  # and it works on
    assert (y == 2).all()


def test_negative_size_asks_for_nothing(library):
    library.declare("axpy", AXPY)
    library.axpy(-3, 1.0, host(1), host(1)).wait()


def test_read_only_memory_is_refused_where_it_may_be_written(library):
    x = np.zeros(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="cannot be written.*pointer to const"):
        library.nothing(x)


def test_seventeen_arguments_need_a_declaration(library):
    with pytest.raises(TypeError, match="at most 16"):
        library.nothing(*range(17))


@pytest.mark.parametrize("text, why", [
    ("void(double x[m])", "'m' is no parameter"), ("void(double a, double x[a])", "'a' is no integer"),
    ("void(struct point p)", "structures"), ("void(foo x)", "'foo' is no type"), ("void(long double x)", "long double"),
    ("double *(int)", "pointer as its result"), ("void(int, ...)", "variable arguments"), ("void(int", "expected"),
    ("void(int) more", "follows"), ("int", "expected"), ("void(void (*f)(int))", "functions"), ("", "missing"),
    ("void(unsigned double x)", "no type"), ("void(void x)", "no type of a parameter"),
    ("void(double x[18446744073709551617])", "sizes are"), ("void(double x[\xb2])", "sizes are"),
    ("void(double x[4294967296][4294967296])", "no array has"), ("void(int n, double x[n*])", "ends with a star"),
    (("double *, int",), "is not one type"), (("void",), "is not one type"), (("",), "is not one type")])
def test_declaration_that_is_not_understood(library, text, why):
    with pytest.raises(ValueError, match=why):
        library.declare("nothing", text)


def test_declarations_of_types(library):
    for signature in (["long", "double", "const double *", "double *"],
                      [ctypes.c_long, ctypes.c_double, *2 * [ctypes.POINTER(ctypes.c_double)]],
                      [int, float, "double*", ctypes.c_void_p], [np.int64, np.float64, "double *", "double *"],
                      [da.int64, da.float64, "double *", "double *"]):
        library.declare("axpy", signature)
        y = np.ones(2)
        library.axpy(2, 1.5, np.ones(2), y)
        assert (y == 2.5).all()
    for wrong in ([str], [[]]):
        with pytest.raises(TypeError, match="parameter 1"):
            library.declare("axpy", wrong)
    for wrong in (None, b"void()"):
        with pytest.raises(TypeError, match="prototype in C or a sequence"):
            library.declare("nothing", wrong)
    assert library.declare("nothing", "static inline void f(int n);").arguments == ("int n",)


def test_sizes_are_products(library):
    library.declare("nothing", "void(int n, unsigned m, const float a[n][m], float b[static n * 2], float c[4])")
    a, b, c = (host(n, "float32") for n in (6, 4, 4))
    library.nothing(2, 3, a, b, c).wait()
    with pytest.raises(ValueError, match="argument 3.*has 6 elements, and the declaration asks for 8"):
        library.nothing(2, 4, a, b, c)
    with pytest.raises(ValueError, match="argument 5.*has 3 elements"):
        library.nothing(2, 3, a, b, c[:3])


def test_names_that_are_not_there(library, tmp_path):
    with pytest.raises(AttributeError, match="has no function 'absent'"):
        library.absent
    with pytest.raises(OSError, match="cannot be opened"):
        native.load(tmp_path / "absent.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(OSError, match="text.so"):
        native.load(tmp_path / "text.so")
    assert not hasattr(library, "__wrapped__")


def test_libraries_of_the_system():
    mathematics = native.load("m", "host")
    mathematics.declare("hypot", "double(double, double)")
    r = np.zeros(1)
    mathematics.hypot(3, 4, result=r)
    assert r[0] == 5
    assert "hypot(double, double)" in repr(mathematics.hypot) and "libm" in repr(mathematics) + mathematics.path


# --- Order -------------------------------------------------------------------------------------------------

def test_calls_are_asynchronous_and_in_order(library, pipe):
    library.declare("gate", "void(int, double *)")
    library.declare("axpy", AXPY)
    x = da.zeros(1, dtype="float64", device="host")
    first = library.gate(pipe.end, x)
    second = library.axpy(1, 10.0, x, x)
    y = x + 1
    assert first.status != "complete" and second.status != "complete"
    pipe.open()
    assert float(y[0]) == 12
    assert second.status == "complete"


def test_wait_for_and_other_queues(library, pipe):
    library.declare("gate", "void(int, double *)")
    library.declare("axpy", AXPY)
    other = drupe.Queue("host")
    x = da.zeros(1, dtype="float64", device="host")
    first = library.gate(pipe.end, x)
    second = library.axpy(1, 1.0, x, x, queue=other, wait_for=[first])
    assert second.status != "complete"
    pipe.open()
    second.wait()
    assert float(x[0]) == 2
    z = da.zeros(1, dtype="float64", queue=other)
    with pytest.raises(drupe.ExecutionPlacementError, match="different queues"):
        library.axpy(1, 1.0, x, z)
    with pytest.raises(TypeError, match="drupe.Queue"):
        library.axpy(1, 1.0, x, x, queue="host")
    with pytest.raises(TypeError, match="Event"):
        library.axpy(1, 1.0, x, x, wait_for=[1])
    assert library.axpy(1, 1.0, x, x, event=False) is None


def test_arrays_live_until_the_call_is_over(library, pipe):
    library.declare("gate", "void(int, double *)")
    events = [library.gate(pipe.end, da.zeros(1, dtype="float64", device="host")) for _ in range(3)]
    gc.collect()
    for _ in events:
        pipe.open()
    drupe.wait_for(events)


def test_device_that_functions_do_not_run_on(monkeypatch, library):
    class Other:
        device_type = type("T", (), {"name": "gpu"})
        filter_string = "cuda:gpu:0"
    queue = type("Q", (), {"device": Other})()
    with pytest.raises(drupe.UnsupportedError, match="cuda:gpu:0 is another device"):
        native._check_device(queue)


# --- Interrupts --------------------------------------------------------------------------------------------

def test_interrupted_wait_keeps_what_the_function_uses(fresh, path):
    done = fresh("""
        import os, signal, threading, numpy as np, drupe
        from drupe import native
        library = native.load(%r, "host")
        library.declare("announced_gate", "void(int, int, double *)")
        read, write = os.pipe()
        x = np.zeros(1)
        entered = os.pipe()
        threading.Thread(target=lambda: (os.read(entered[0], 1), os.kill(os.getpid(), signal.SIGINT))).start()
        try:
            library.announced_gate(entered[1], read, x)
        except KeyboardInterrupt:
            print("interrupted")
        import sys
        assert sys.getrefcount(x) > 2
        os.write(write, b"x")
        drupe.synchronize("host")
        assert x[0] == 1
        print("done")
    """ % str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["interrupted", "done"]


# --- Loading and unloading ---------------------------------------------------------------------------------

def version_of(library):
    out = np.zeros(1, np.int64)
    library.version(out)
    return out[0]


@pytest.mark.parametrize("in_place", [False, True])
def test_changed_file_is_loaded_anew(tmp_path, in_place):
    target = build(tmp_path / "libchanging.so", 1)
    old = native.load(target, "host")
    again = native.load(target, "host")
    out = np.zeros(1, np.int64)
    old.count(out)
    again.count(out)
    assert out[0] == 2  # the same library
    if not in_place:
        build(target, 2)  # the linker makes a new file
    else:  # as `cp` does; the same code but for a number
        bytes_of = build(tmp_path / "other.so", 2).read_bytes()
        with open(target, "r+b") as file:
            file.write(bytes_of)
    new = native.load(target, "host")
    assert version_of(new) == 2 and (in_place or version_of(old) == 1)
    new.count(out)
    assert out[0] == 1


def test_unloading_waits_for_what_is_queued(path, pipe):
    library = native.load(path, "host")
    library.declare("gate", "void(int, double *)")
    x = da.zeros(1, dtype="float64", device="host")
    library.gate(pipe.end, x)
    ended = []
    thread = threading.Thread(target=lambda: (library.unload(), ended.append(library._library.calls)))
    gate = library.gate
    thread.start()
    while True:  # the thread is in unload() once calls are refused
        try:
            gate(pipe.end, x)
            pipe.open()
        except drupe.InvalidArgumentError as error:
            assert "unloaded" in str(error)
            break
    assert not ended
    pipe.open()
    thread.join(30)
    assert ended == [0]
    with pytest.raises(drupe.InvalidArgumentError, match="'gate' was unloaded"):
        gate(pipe.end, x)
    with pytest.raises(AttributeError, match="was unloaded"):
        library.sum16
    library.unload()


@pytest.mark.parametrize("end", [
    "library.unload()", "del library", "function = library.nothing; del library; del function",
    "del library; drupe.synchronize('host'); native.load('m')"])
def test_destructors_run_without_the_lock_of_python(fresh, path, end):
    done = fresh("""
        import os, threading, drupe
        from drupe import native
        told, gate = os.pipe(), os.pipe()
        thread = threading.Thread(target=lambda: (os.read(told[0], 1), os.write(gate[1], b"x")))
        thread.start()
        library = native.load(%r, "host")
        library.say_farewell(told[1], gate[0])
        drupe.synchronize("host")
        %s
        thread.join()
        print("unloaded")
    """ % (str(path), end), timeout=30)
    assert done.stdout == "unloaded\n", done.stderr


def test_library_as_a_context(path):
    with native.load(path, "host") as library:
        library.nothing()
        nothing = library.nothing
    with pytest.raises(drupe.InvalidArgumentError):
        nothing()


def test_nothing_is_left_behind(path):
    names = ("_NativeLibrary", "_NativeFunction", "Array", "Event")

    def use():
        library = native.load(path, "host")
        library.declare("axpy", AXPY)
        y = np.ones(10)
        library.axpy(10, 1.0, np.ones(10), y)
        with pytest.raises(TypeError):
            library.axpy(10, 1.0, np.ones(10), "text")
        with pytest.raises(ValueError):
            library.axpy(10, 1.0, np.ones(10), np.ones(5))
        library.nothing(da.ones(3, device="host")).wait()
    use()
    gc.collect()
    before = _engine._live()
    for _ in range(5):
        use()
    gc.collect()
    after = _engine._live()
    assert [after[name] for name in names] == [before[name] for name in names]


# --- Random calls against ctypes ---------------------------------------------------------------------------

def test_random_calls(tmp_path):
    spec = importlib.util.spec_from_file_location("soak_native", HERE.parent / "soak" / "native.py")
    soak = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(soak)
    soak.run(300, int.from_bytes(os.urandom(4), "little"), tmp_path, functions=16)


def test_first_number_of_numpy_in_a_process(fresh, path):
    done = fresh("""
        import numpy as np
        from drupe import native
        out = np.zeros(1, np.int32)
        native.load(%r, "host").divide(np.int32(42), np.int32(2), out)
        print(out)
    """ % str(path))
    assert done.stdout == "[21]\n", done.stderr


def test_why_an_argument_is_refused_is_told_whatever_was_raised(library):
    library.declare("nothing", "void(const char *text)")
    with pytest.raises(ValueError, match=r"nothing\(\), argument 1.*surrogates"):
        library.nothing("\ud800")
    with pytest.raises(ValueError, match="cannot include dtype 'M'"):
        library.function("nothing")(np.zeros(1, "M8[s]"))


def test_paths_and_queues_that_are_none(path):
    with pytest.raises(ValueError, match="NUL"):
        native.load(str(path) + "\0x")
    with pytest.raises(TypeError, match="queue must be a drupe.Queue, not int"):
        native.load(path, queue=5)
    assert native.load(os.fsencode(path)).path == str(path)


def test_result_that_cannot_be_written(library):
    out = np.zeros(1, np.int8)
    out.flags.writeable = False
    with pytest.raises(TypeError, match="array of one int8 that can be written"):
        library.function("small", "signed char(int)")(1, result=out)


def test_functions_of_a_text_whose_types_are_not_known_are_not_called_by_address(tmp_path):
    text = """
        #define N 4
        typedef double real;
        typedef real element;
        typedef struct { int x; } point;
        void known(element *x, long n, real a) { for (long i = 0; i < n; i++) x[i] = a; }
        void sized(double x[N], long n) { x[0] = n; }
        void pointers(point *p, point *q) { }
        void mixed(point *p, long n) { }
        #if 1
        void twice(int n) { }
        #else
        void twice(double n) { }
        #endif
    """
    library = native.load(_compile.build(text, target=tmp_path / "libtext.so")[0], "host")
    made, left = _compile.bind(library, text)
    assert {name: one.arguments for name, one in made.items()} == {
        "known": ("double *x", "long n", "double a"), "sized": ("double x[]", "long n"), "pointers": None}
    assert set(left) == {"mixed", "twice"} and "more than once" in left["twice"]
    assert "'point' is no type" in left["mixed"]
    x = np.zeros(4)
    made["known"](x, 3, 2.5)
    made["sized"](x[3:], 7)
    assert x.tolist() == [2.5, 2.5, 2.5, 7.0]
