"""For tests of launchers: kernels that are written by hand, and what stands for a kernel in Python."""
import collections

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import _engine

TEXT = """
#ifdef __OPENCL_VERSION__
#define AT global
#else
#define AT
#endif
kernel void add(AT const float *a, AT const float *b, AT float *c)
{ c[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)]; }
kernel void numbers(AT long *out, long a, long b, long c, long d)
{ out[0] = a; out[1] = b; out[2] = c; out[3] = d; }
kernel void places(AT long *out, long rows, long columns)
{ size_t j = get_global_id(0), i = get_global_id(1); if ((long)i < rows && (long)j < columns) out[i * columns + j]++;
  if (i + j == 0) out[rows * columns] = 1000 * (long)get_global_size(1) + (long)get_global_size(0); }
kernel void chunks(AT long *out, long rows, long columns, long chunk)
{ long total = rows * columns;
  for (long i = (long)get_global_id(0) * chunk; i < total && i < (long)(get_global_id(0) + 1) * chunk; i++) out[i]++;
  if (get_global_id(0) == 0) { out[total] = chunk; out[total + 1] = (long)get_global_size(0); } }
kernel void store_bool(AT uchar_ *out, uchar_ v) { out[0] = v; }
kernel void store_int8(AT char *out, char v) { out[0] = v; }
kernel void store_uint8(AT uchar_ *out, uchar_ v) { out[0] = v; }
kernel void store_int16(AT short *out, short v) { out[0] = v; }
kernel void store_uint16(AT ushort_ *out, ushort_ v) { out[0] = v; }
kernel void store_int32(AT int *out, int v) { out[0] = v; }
kernel void store_uint32(AT uint_ *out, uint_ v) { out[0] = v; }
kernel void store_int64(AT long *out, long v) { out[0] = v; }
kernel void store_uint64(AT ulong_ *out, ulong_ v) { out[0] = v; }
kernel void store_float32(AT float *out, float v) { out[0] = v; }
kernel void store_float64(AT double *out, double v) { out[0] = v; }
kernel void store_complex64(AT float *out, float re, float im) { out[0] = re; out[1] = im; }
kernel void store_complex128(AT double *out, double re, double im) { out[0] = re; out[1] = im; }
"""
HEAD = """
typedef unsigned char uchar_; typedef unsigned short ushort_; typedef unsigned int uint_; typedef unsigned long ulong_;
"""
ADD = (("pointer", (0,)), ("pointer", (1,)), ("pointer", (2,)))


@pytest.fixture(scope="module")
def programs():
    made = {}

    def program(device):
        if device.filter_string not in made:
            host = device.backend == "host"
            if host and not device.can_compile("c"):
                pytest.skip("there is no C compiler on this machine")
            made[device.filter_string] = drupe.Program(HEAD + TEXT, device, language="c" if host else "opencl")
        return made[device.filter_string]

    return program


@pytest.fixture
def program(programs, device):
    return programs(device)


class Kernel:
    """A kernel in Python as the launcher sees it: slow() adds one entry for each call that it gets."""
    __slots__ = ("_launcher", "misses", "entry", "given")

    def __init__(self, kernel, plan, form="range", watched=(), **more):
        self.entry, self.given, self.misses = (kernel, plan, form, watched), more, []
        self._launcher = _engine._Launcher(self, self.slow)

    def slow(self, space, wait_for, args):
        self.misses.append((space, wait_for, args))
        self._launcher.add(args, space, *self.entry, **self.given)


def floats(queue, *numbers):
    return da.asarray(numbers, dtype="float32", queue=queue)


def call(kernel, space, *args):
    """A call that is complete, and whether an entry served it."""
    before = len(kernel.misses)
    assert _engine._call_kernel(kernel, space, *args) is None
    return len(kernel.misses) == before


def better(device):
    """One that adds twice."""
    at = "" if device.backend == "host" else "global"
    text = f"""kernel void add({at} const float *a, {at} const float *b, {at} float *c)
               {{ c[get_global_id(0)] = a[get_global_id(0)] + 2 * b[get_global_id(0)]; }}
               kernel void other({at} const float *a, {at} const float *b, long c) {{}}
               kernel void fewer({at} const float *a) {{}}"""
    return drupe.Program(text, device, language="opencl" if at else "c")


Pair, Other = collections.namedtuple("Pair", "x y"), collections.namedtuple("Other", "x y")


class Local:
    __slots__ = ("shape", "_dtype", "_nbytes")

    def __init__(self, shape, dtype):
        self.shape, self._dtype, self._nbytes = shape, dtype, int(np.prod(shape)) * np.dtype(dtype).itemsize


@pytest.fixture
def local():
    _engine._local_accessor(Local)
    yield Local
    _engine._local_accessor(type("None_", (), {}))
