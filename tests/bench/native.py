"""./dev bench native: what a queued call of a library's function costs, pyMIC's charts on processors, copies, and the
import of modules for other systems' programs.

Each figure stands beside a peer of the same run; the best of several runs counts on both sides, of copies the
median. --size N multiplies matrices of another size than 4096."""
import argparse
import ctypes
import glob
import os
import statistics
import subprocess
import tempfile
import time

import compat_import
import numpy as np
from numpy.ctypeslib import ndpointer

import drupe
import drupe.array as da
from drupe import ext, native

TEXT = "void f(double *x, double *y, long n, double a) { (void)x; (void)y; (void)n; (void)a; }\n" \
       "void g(double *x, double *y, long *n, double *a) { (void)x; (void)y; (void)n; (void)a; }\n"
# The same from C: a loop that queues a function of its own.
BURST = r"""
#include <drupe/ext.h>
static drupe_status nothing(void *user) { (void)user; return DRUPE_OK; }
static PyObject *burst(PyObject *module, PyObject *args)
{
    PyObject *object, *array;
    long count;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOl", &object, &array, &count)) return NULL;
    drupe_queue *queue = drupe_ext->queue_of(object);
    PyObject *keep[2] = {array, array};
    for (long i = 0; queue && i < count; i++) {
        PyObject *event = drupe_ext->submit_host(queue, "f", nothing, NULL, NULL, keep, 2, NULL);
        if (!event) return NULL;
        Py_DECREF(event);
    }
    if (!queue) return NULL;
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {{"burst", burst, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native_burst", NULL, -1, functions, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_native_burst(void)
{
    if (drupe_ext_import() < 0) return NULL;
    return PyModule_Create(&module);
}
"""
CALLS, RUNS = 500, 40
ROWS = []


def row(name, ours, peer, limit, unit, more=False):
    """Note a figure: `ours` against `peer`, whose ratio is to be at most, or with `more` at least, `limit`."""
    ratio = ours / peer if peer else float("nan")
    met = "" if limit is None else "  met" if (ratio >= limit if more else ratio <= limit) else "  MISSED"
    goal = "" if limit is None else " (goal %s %g)" % (">=" if more else "<=", limit)
    print("%-62s %10.4g %-5s peer %10.4g  ratio %.2f%s%s" % (name, ours, unit, peer, ratio, goal, met), flush=True)
    ROWS.append((name, ours, peer, ratio))


def best(queue, *functions):
    """Seconds of one call of each, in turns: a list of (on the calling thread, until all are over)."""
    times = [(float("inf"), float("inf"))] * len(functions)
    for _ in range(RUNS):
        for i, function in enumerate(functions):
            begun = time.perf_counter()
            for _ in range(CALLS):
                function()
            called = time.perf_counter()
            queue.wait()
            over = time.perf_counter()
            times[i] = min(times[i][0], (called - begun) / CALLS), min(times[i][1], (over - begun) / CALLS)
    return times


def calls(folder):
    source, path = os.path.join(folder, "calls.c"), os.path.join(folder, "libcalls.so")
    with open(source, "w") as file:
        file.write(TEXT)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", path], check=True)
    library, queue = native.load(path, "host"), drupe.queue("host")
    f, g = library.declare("f", "void(double *, double *, long, double)"), library.g
    x, y = (da.zeros(1000, dtype="float64", device="host") for _ in range(2))
    plain, other = np.zeros(1000), np.zeros(1000)
    burst = ext.build(BURST, name="native_burst").burst
    from_c = min(_timed(lambda: burst(queue, x, CALLS), queue) for _ in range(RUNS)) / CALLS
    code = ctypes.CDLL(path).f
    code.argtypes, code.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_double], None
    typed = ctypes.CDLL(path)["f"]
    typed.argtypes, typed.restype = [ndpointer(np.float64)] * 2 + [ctypes.c_long, ctypes.c_double], None
    first, second = plain.ctypes.data, other.ctypes.data
    kernel = drupe.Program("kernel void k(double *x, double *y, long n, double a) { }", device="host", language="c").k
    of_arrays, by_types, addresses, in_c, (declared, whole), addressed, unwatched = best(
        queue, lambda: code(plain.ctypes.data, other.ctypes.data, 1000, 2.0),
        lambda: typed(plain, other, 1000, 2.0),
        lambda: code(first, second, 1000, 2.0),
        lambda: kernel(x, y, 1000, 2.0, global_size=1),
        lambda: f(x, y, 1000, 2.0),
        lambda: g(x, y, 1000, 2.0),
        lambda: f(x, y, 1000, 2.0, event=False))
    of_arrays, by_types, addresses = of_arrays[0], by_types[0], addresses[0]
    addressed, unwatched = addressed[0], unwatched[0]
    row("queued call above one that C queues", 1e6 * (declared - from_c), 1.0, 1.0, "us")
    row("queued call / ctypes with arrays (x.ctypes.data)", 1e9 * declared, 1e9 * of_arrays, 1.0, "ns")
    row("queued call / ctypes with ndpointer", 1e9 * declared, 1e9 * by_types, 1.0, "ns")
    row("queued call / ctypes with addresses at hand", 1e9 * declared, 1e9 * addresses, 1.0, "ns")
    row("queued call without an event / with one", 1e9 * unwatched, 1e9 * declared, None, "ns")
    row("queued call by address / declared", 1e9 * addressed, 1e9 * declared, None, "ns")
    row("queued call / a kernel in C", 1e9 * declared, 1e9 * in_c[0], None, "ns")
    row("queued and over / a kernel in C", 1e9 * whole, 1e9 * in_c[1], None, "ns")


def _timed(function, queue):
    begun = time.perf_counter()
    function()
    spent = time.perf_counter() - begun
    queue.wait()
    return spent


# --- pyMIC's chart of dgemm --------------------------------------------------------------------------------

def _dgemm():
    """(function, suffix of its integers) of the library that NumPy multiplies with, else of the system's."""
    folder = os.path.join(os.path.dirname(np.__file__), os.pardir, "numpy.libs")
    for path in glob.glob(os.path.join(folder, "*openblas*")):
        library = native.load(path, "host")
        for name in ("scipy_cblas_dgemm64_", "cblas_dgemm64_"):
            try:
                library.function(name)
            except AttributeError:
                continue
            return library.declare(name, DGEMM.replace("INT", "int64_t"))
    return native.load("openblas", "host").declare("cblas_dgemm", DGEMM.replace("INT", "int"))


DGEMM = ("void(int order, int ta, int tb, INT m, INT n, INT k, double alpha, const double *a, INT lda, "
         "const double *b, INT ldb, double beta, double *c, INT ldc)")


def dgemm(n):
    rng = np.random.default_rng(1)
    a, b, c = rng.random((n, n)), rng.random((n, n)), np.zeros((n, n))
    stream, function = native.stream("host"), _dgemm()

    def ours():
        x, y, z = stream.bind(a), stream.bind(b), stream.bind(c, update_device=False)
        stream.invoke(function, 101, 111, 111, n, n, n, 1.0, x, n, y, n, 0.0, z, n)
        z.update_host()
        stream.sync()

    def theirs():
        np.matmul(a, b, out=c)

    mine = other = float("inf")
    for _ in range(4):
        mine, other = min(mine, _seconds(ours)), min(other, _seconds(theirs))
    ours()
    assert np.allclose(c, a @ b)
    row("dgemm of %d, transfer and compute, against NumPy's product" % n, 2e-9 * n**3 / mine, 2e-9 * n**3 / other, 0.97,
        "GF/s", more=True)


def _seconds(function):
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


# --- Copies ------------------------------------------------------------------------------------------------

PAGE = 4096


def _placed_as(address, count):
    """The address of so many ones that lie in their pages as those at `address` do, and what keeps them: how fast
    memcpy() is depends on it. All pages are there."""
    room = np.ones(count + PAGE // 8)
    first = (address - room.ctypes.data) % PAGE // 8
    return room[first:first + count].ctypes.data, room


def _moves(stream, host, size):
    """To the device, memcpy() likewise, from the device, and memcpy() back; memcpy() has memory of its own, which lies
    as that of the copy does. In turns each finds in the caches what the one before last and the last have left."""
    array = stream.bind(host)
    (source, room), (target, other) = (_placed_as(where, size // 8)
                                       for where in (host.ctypes.data, array.device_array()._pointer))
    return (lambda: (array.update_device(), stream.sync()), lambda: ctypes.memmove(target, source, size),
            lambda: (array.update_host(), stream.sync()), lambda: ctypes.memmove(source, target, size)), (room, other)


def copies():
    """The sizes of the chart in notebooks/sources/004-offload.ipynb, and 256 MiB."""
    for device in [one for one in drupe.devices() if one.device_type == "cpu"]:
        stream = native.stream(device)
        for size in (1 << power for power in range(10, 29, 2)):
            moves, kept = _moves(stream, np.ones(size // 8), size)
            turns = [[_seconds(move) for move in moves] for _ in range(max(9, min(3000, (1 << 30) // size)))]
            to, to_peer, back, back_peer = map(statistics.median, zip(*turns))
            del moves, kept
            for name, spent, peer in (("to", to, to_peer), ("from", back, back_peer)):
                amount = "%d KiB" % (size >> 10) if size < 1 << 20 else "%d MiB" % (size >> 20)
                row("copy of %s %s %s, against memcpy" % (amount, name, device.filter_string),
                    size / spent / 1e9, size / peer / 1e9, 0.95, "GB/s", more=True)


# --- Modules for programs of other systems -----------------------------------------------------------------

def imports():
    took, name = max((took, name) for name, took in compat_import.imports(5) if "," not in name)
    row("import of a compat module, the slowest (%s)" % name, took, compat_import.GOAL, 1.0, "ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=4096, help="of the matrices")
    parser.add_argument("--only", choices=("calls", "dgemm", "copies", "imports"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only in (None, "calls"):
            calls(folder)
    if options.only in (None, "dgemm"):
        dgemm(options.size)
    if options.only in (None, "copies"):
        copies()
    if options.only in (None, "imports"):
        imports()


if __name__ == "__main__":
    main()
