"""pyMIC's names, each with what a program expects of it, and programs in its manner. The module is imported by its own
name here; how `import pymic` finds it is tested with the finder."""
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import drupe
from drupe.compat import pymic

CC = shutil.which("cc") or shutil.which("gcc")
KERNELS = """
#include <pymic_kernel.h>
#include <complex.h>
PYMIC_KERNEL void empty(void) { }
PYMIC_KERNEL void doubleit_kernel(double *x, const int64_t *n) { for (int64_t i = 0; i < *n; i++) x[i] *= 2; }
PYMIC_KERNEL void double_float(float *x, const int64_t *n) { for (int64_t i = 0; i < *n; i++) x[i] *= 2; }
PYMIC_KERNEL void dgemm_kernel(const double *a, const double *b, double *c, const int64_t *m, const int64_t *n,
                               const int64_t *k, const double *alpha, const double *beta)
{
    for (int64_t i = 0; i < *m; i++)
        for (int64_t j = 0; j < *n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < *k; l++) sum += a[i * *k + l] * b[l * *n + j];
            c[i * *n + j] = *alpha * sum + *beta * c[i * *n + j];
        }
}
PYMIC_KERNEL void zscale(double complex *x, const int64_t *n, const double complex *a)
{
    for (int64_t i = 0; i < *n; i++) x[i] *= *a;
}
PYMIC_KERNEL void is_null(const void *p, int64_t *out) { *out = !p; }
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    if not CC:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("pymic")
    (folder / "kernels.c").write_text(KERNELS)
    subprocess.run([CC, "-shared", "-fPIC", "-I", drupe.get_include(), str(folder / "kernels.c"), "-o",
                    str(folder / "libkernels.so")], check=True)
    return folder / "libkernels.so"


@pytest.fixture(params=list(pymic.devices))
def device(request):
    return pymic.devices[request.param]


@pytest.fixture
def stream(device):
    return device.get_default_stream()


@pytest.fixture
def library(device, built):
    return device.load_library(str(built))


def test_include_folder_has_the_header():
    assert (pathlib.Path(drupe.get_include()) / "pymic_kernel.h").exists()


# --- Every name --------------------------------------------------------------------------------------------

def test_module_level():
    assert pymic.number_of_devices() == len(pymic.devices) >= 1
    assert list(pymic.devices) == list(range(pymic.number_of_devices()))
    assert pymic.devices[0].drupe_device.backend == "host"
    assert issubclass(pymic.OffloadError, Exception)
    from drupe.compat.pymic.offload_error import OffloadError  # where pyMIC has them
    from drupe.compat.pymic.offload_array import OffloadArray
    assert OffloadError is pymic.OffloadError and OffloadArray is pymic.OffloadArray


def test_offload_device(device, built):
    assert pymic.OffloadDevice(device.device_id) == device and hash(device) == hash(device.device_id)
    assert device.get_default_stream() is device.default_stream
    assert device.get_default_stream().get_device() is device
    other = device.create_stream()
    assert other != device.default_stream and other.get_device() is device
    assert repr(device) == "OffloadDevice(%d)" % device.device_id and device.drupe_device.filter_string in str(device)
    with pytest.raises(pymic.OffloadError, match="no device 99"):
        pymic.OffloadDevice(99)
    with pytest.raises(AttributeError):
        device.absent


def test_load_library(device, built, monkeypatch):
    monkeypatch.setenv("PYMIC_LIBRARY_PATH", "/nowhere:%s" % built.parent)
    library = device.load_library("libkernels.so")
    assert isinstance(library, pymic.OffloadLibrary) and "libkernels.so" in repr(library)
    both = device.load_library("libkernels.so", str(built))
    assert len(both) == 2 and all(isinstance(one, pymic.OffloadLibrary) for one in both)
    assert isinstance(device.load_library(("libkernels.so",)), pymic.OffloadLibrary)
    assert isinstance(pymic.OffloadLibrary("libkernels.so"), pymic.OffloadLibrary)
    monkeypatch.delenv("PYMIC_LIBRARY_PATH")
    monkeypatch.chdir(built.parent)
    device.load_library("libkernels.so")
    with pytest.raises(pymic.OffloadError, match="no library 'absent.so' in PYMIC_LIBRARY_PATH"):
        device.load_library("absent.so")
    with pytest.raises(ValueError):
        device.load_library()
    (built.parent / "text.so").write_text("none")
    with pytest.raises(pymic.OffloadError, match="compiled for the processor"):
        device.load_library("text.so")
    with pytest.raises(TypeError):
        device.load_library("libkernels.so", where="there")


def test_kernels_are_tuples(library, device):
    name, function, where, of = library.doubleit_kernel
    assert name == "doubleit_kernel" and where is device and of is library
    assert library.doubleit_kernel is library.doubleit_kernel
    with pytest.raises(AttributeError, match="absent"):
        library.absent


def test_offload_stream(stream, device):
    assert pymic.OffloadStream().get_device() is pymic.devices[0]
    assert pymic.OffloadStream(device) == stream and hash(stream) and str(device.device_id) in repr(stream)
    assert stream.sync() is None and stream.device is device
    for name in ("bind", "copy", "empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "bcast",
                 "bcast_like", "invoke", "invoke_kernel", "allocate_device_memory", "deallocate_device_memory",
                 "transfer_host2device", "transfer_device2host", "transfer_device2device", "translate_device_pointer"):
        assert callable(getattr(stream, name))


def test_invoke(stream, library, device, built):
    a = np.arange(8.0)
    x = stream.bind(a, update_device=False)
    assert x.update_device() is None
    stream.invoke(library.empty)
    stream.invoke(library.doubleit_kernel, x, 8)
    stream.invoke_kernel(library.doubleit_kernel, x, np.int64(8))
    assert x.update_host() is x
    stream.sync()
    np.testing.assert_array_equal(a, 4 * np.arange(8.0))
    plain, strided = np.ones(4), np.ones((4, 2))[:, 0]
    stream.invoke(library.doubleit_kernel, plain, 4)
    stream.invoke(library.doubleit_kernel, strided, 4)
    assert (plain == 2).all() and (strided == 2).all()
    constant = np.ones(4)
    constant.flags.writeable = False
    stream.invoke(library.doubleit_kernel, constant, 4)
    assert (constant == 1).all()
    out = np.zeros(1, np.int64)
    stream.invoke(library.is_null, None, out)
    assert out[0] == 1
    floats = stream.bind(np.ones(3, np.float32))
    stream.invoke(library.double_float, floats, 3)
    floats.update_host()
    z = np.array([1 + 1j, 2])
    stream.invoke(library.zscale, z, 2, 1j)
    stream.sync()
    assert (floats.array == 2).all() and list(z) == [-1 + 1j, 2j]


def test_kernel_of_another_device(stream, built, device):
    other = [one for one in pymic.devices.values() if one != device]
    if not other:
        pytest.skip("there is one device")
    with pytest.raises(pymic.OffloadError, match="the kernel empty is of"):
        stream.invoke(other[0].load_library(str(built)).empty)
    with pytest.raises(TypeError, match="takes a kernel"):
        stream.invoke(print)


def test_spelling_of_the_slides(device, library):
    a = device.bind(np.arange(4.0))
    device.invoke_kernel(library.doubleit_kernel, a, 4)
    device.invoke_kernel("doubleit_kernel", a, 4)
    a.update_host()
    device.sync()
    np.testing.assert_array_equal(a.array, 4 * np.arange(4.0))
    assert (device.zeros(3).array == 0).all()
    with pytest.raises(pymic.OffloadError, match="no library of .* has a kernel 'absent'"):
        device.invoke_kernel("absent")


def test_arrays_have_the_class_and_the_device(stream, device):
    x = stream.ones((2, 3), dtype=int)
    assert type(x) is pymic.OffloadArray and x.device is device and x.stream is stream
    for one in (x + x, x.reshape(6), x.ravel(), abs(x), stream.copy(np.zeros(2)), stream.empty_like(x), -x):
        assert type(one) is pymic.OffloadArray and one.device is device
    x.update_host()
    stream.sync()
    assert repr(x) == repr(x.array) and str(x) == str(x.array)
    direct = pymic.OffloadArray((2, 2), float, "C", True, None, device, stream)
    assert direct.size == 4 and direct.ndim == 2 and direct.base is None
    assert pymic.OffloadArray(3, float, device=device).stream is device.get_default_stream()
    part = pymic.OffloadArray((4,), float, "C", False, direct, device, stream)
    part.fill(2.0)
    direct.update_host()
    stream.sync()
    assert part.base is direct and (direct.array == 2).all()
    assert len(x) == 2 and len(stream.bcast(1.0, ())) == 1
    with pytest.raises(TypeError):
        hash(x)


@pytest.mark.parametrize("make", [
    lambda s, x: x + s.zeros(3), lambda s, x: x * np.zeros(3), lambda s, x: x - s.zeros(4, dtype=int),
    lambda s, x: x + np.zeros(4, int), lambda s, x: x + 1, lambda s, x: x ** 2, lambda s, x: x.fill(1),
    lambda s, x: x.__iadd__(s.zeros(3)), lambda s, x: s.zeros((2, 2)).reverse(), lambda s, x: x.reshape(5),
    lambda s, x: x.__setitem__(slice(0, 4, 2), 1.0), lambda s, x: s.bind([1.0]), lambda s, x: s.bind(np.zeros(8)[::2]),
    lambda s, x: x.fillfrom(np.zeros(4, int))])
def test_values_that_do_not_fit(stream, make):
    stream.zeros(4)[0:2] = stream.ones(2)  # a slice that fits
    with pytest.raises(ValueError):
        make(stream, stream.zeros(4))


def test_types_that_do_not_fit(stream):
    x = stream.zeros(4)
    for wrong in (lambda: x.fillfrom(stream.zeros(4)), lambda: x.fillfrom(np.zeros(3)), lambda: x.__setitem__(1, 2.0)):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("dtype", [int, float, complex])
def test_arithmetic(stream, dtype):
    a, b = np.array([1, 2, 3], dtype), np.array([3, 1, 2], dtype)
    x, y, number = stream.bind(a), stream.bind(b), dtype(2)
    results = [(x + y, a + b), (x - b, a - b), (x * number, a * number), (x ** y, a ** b), (abs(x), abs(a)),
               (x.abs(), abs(a)), (x.reverse(), a[::-1]), (stream.copy(a).zero(), a * 0),
               (stream.copy(a).one(), a * 0 + 1),
               (stream.copy(a).fill(number), a * 0 + 2), (stream.copy(a).fillfrom(b), b)]
    z = stream.copy(a)
    z += y
    z -= number
    z *= b
    results.append((z, (a + b - number) * b))
    s = stream.copy(a)
    s[1:3] = stream.bind(b[:2].copy())
    s.__setslice__(0, 1, np.array([9], dtype))
    results.append((s, np.array([9, 3, 1], dtype)))
    for mine, expected in results:
        mine.update_host()
        stream.sync()
        np.testing.assert_allclose(mine.array, expected)
        assert mine.dtype == expected.dtype


def test_assign_stream(device, stream):
    x = stream.bind(np.arange(3.0))
    other = device.create_stream()
    x.assign_stream(other)
    (y := x + x).update_host()
    other.sync()
    assert list(y.array) == [0, 2, 4]
    for third in pymic.devices.values():
        if third != device:
            with pytest.raises(ValueError):
                x.assign_stream(third.get_default_stream())


# --- Memory by the byte ------------------------------------------------------------------------------------

def test_low_level(stream, library):
    a, b = np.arange(16.0), np.empty(16)
    one, two = stream.allocate_device_memory(a.nbytes), stream.allocate_device_memory(a.nbytes, 4096, True)
    assert stream.transfer_host2device(a.ctypes.data, one, a.nbytes) is None
    stream.invoke(library.doubleit_kernel, one, 16)
    stream.transfer_device2device(one, two, 64, offset_device_src=0, offset_device_dst=64)
    stream.transfer_device2device(one, two, 64, offset_device_src=64)
    stream.transfer_device2host(two, b.ctypes.data, b.nbytes)
    stream.sync()
    np.testing.assert_array_equal(b, 2 * np.roll(a, 8))
    assert stream.translate_device_pointer(two) % 4096 == 0
    for wrong in (lambda: stream.transfer_host2device(a.ctypes.data, 1234, 8),
                  lambda: stream.transfer_host2device(None, one, 8), lambda: stream.transfer_host2device(a, one, 0),
                  lambda: stream.transfer_host2device(a, one, 8, -8),
                  lambda: stream.transfer_device2host(one, a, 8, 128),
                  lambda: stream.allocate_device_memory(-1), lambda: stream.deallocate_device_memory(None)):
        with pytest.raises(ValueError):
            wrong()
    stream.deallocate_device_memory(one)
    with pytest.raises(pymic.OffloadError):
        stream.transfer_host2device(a, one, 8)


# --- Programs ----------------------------------------------------------------------------------------------

def test_dgemm(stream, library):
    m, n, k = 5, 4, 3
    rng = np.random.default_rng(1)
    a, b, c = rng.random((m, k)), rng.random((k, n)), np.zeros((m, n))
    offl_a, offl_b, offl_c = stream.bind(a), stream.bind(b), stream.bind(c)
    stream.invoke(library.dgemm_kernel, offl_a, offl_b, offl_c, m, n, k, 1.0, 0.0)
    offl_c.update_host()
    stream.sync()
    np.testing.assert_allclose(c, a @ b)


def test_environment(fresh, built):
    done = fresh("""
        import numpy as np
        from drupe.compat import pymic
        stream = pymic.devices[0].get_default_stream()
        x = stream.bind(np.arange(4.0))
        stream.invoke(pymic.devices[0].load_library("libkernels.so").doubleit_kernel, x, 4)
        stream.sync()
    """, PYMIC_LIBRARY_PATH=str(built.parent), PYMIC_DEBUG="5", PYMIC_TRACE="1", PYMIC_TRACE_STACKS="full")
    assert done.returncode == 0, done.stderr
    for line in ("PYMIC: looking for libkernels.so", "PYMIC: invoking doubleit_kernel with 2 arguments",
                 "PYMIC: invoke: 1 calls", "PYMIC: sync: 1 calls", "invoke(doubleit_kernel, float64[4], 4)",
                 "bind(float64[4])", "<string>:6 in <module>"):
        assert line in done.stderr, done.stderr
    done = fresh("from drupe.compat import pymic; pymic.devices[0].sync()", PYMIC_DEBUG="no", PYMIC_TRACE="")
    assert done.returncode == 0 and "PYMIC" not in done.stderr
