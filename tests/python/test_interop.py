"""Arrays and other libraries: buffers, __array__(), NumPy's functions, pickle."""
import copy
import ctypes
import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest

import drupe
import drupe.array as da

pytestmark = pytest.mark.usefixtures("arrays_are_dropped")
DTYPES = list(da.__array_namespace_info__().dtypes())


def some(dtype, shape=(2, 3)):
    """Elements that are exact in every type."""
    return (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)


# --- The buffer protocol, __array__() ---------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_sees_the_elements(device, dtype):
    values = some(dtype, (3, 4))
    x = da.asarray(values, device=device)
    for got, want in ((x, values), (x.T, values.T), (x[::-2, 1:], values[::-2, 1:]), (x[1, 2], values[1, 2])):
        a = np.asarray(got)
        assert a.dtype == values.dtype and a.tolist() == np.asarray(want).tolist()
        assert a.size == 0 or a.ctypes.data == got._pointer
        assert a.flags.writeable
        assert np.asarray(got.__array__()).tolist() == a.tolist()
    assert memoryview(x).nbytes == values.nbytes


def test_views_are_written_and_seen(device):
    x = da.zeros((2, 2), device=device)
    a = np.asarray(x)
    a[0] = 5
    assert x.tolist() == [[5, 5], [0, 0]] and (x + 1).tolist() == [[6, 6], [1, 1]]
    x += a[0, 0]
    x.queue.wait()
    assert a.tolist() == [[10, 10], [5, 5]]
    del x
    gc.collect()
    assert a.tolist() == [[10, 10], [5, 5]]  # the view keeps the array


def test_buffers_of_any_kind(device, tmp_path):
    values = np.arange(6, dtype="int32").reshape(2, 3)
    x = da.asarray(values, device=device)
    assert bytes(x) == values.tobytes() and bytes(x.T) == values.T.tobytes()
    assert np.frombuffer(x, "int32").tolist() == list(range(6))
    (tmp_path / "file").write_bytes(x)
    with open(tmp_path / "other", "wb") as file:
        file.write(x)
    assert (tmp_path / "file").read_bytes() == (tmp_path / "other").read_bytes() == values.tobytes()
    assert memoryview(x).tolist() == values.tolist() and memoryview(x).strides == (12, 4)
    wide = np.asarray(da.broadcast_to(x[0], (4, 3)))
    assert wide.shape == (4, 3) and not wide.flags.writeable
    (ctypes.c_int32 * 6).from_buffer(x)[5] = 77
    assert int(x[1, 2]) == 77


SIMPLE, WRITABLE, ND, STRIDES, C, F, ANY = 0, 1, 8, 0x18, 0x38, 0x58, 0x98


def test_consumers_get_what_they_ask_for(device):
    view, get = ctypes.create_string_buffer(200), ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    x = da.zeros((2, 3), device=device)
    for array, given, refused in ((x, (SIMPLE, ND, STRIDES, C, ANY, WRITABLE | C), (F,)),
                                  (x.T, (STRIDES, F, ANY, WRITABLE | F), (SIMPLE, ND, C)),
                                  (x[:, ::2], (STRIDES, WRITABLE | STRIDES), (SIMPLE, ND, C, F, ANY)),
                                  (da.broadcast_to(x, (2, 2, 3)), (STRIDES,), (WRITABLE | STRIDES, C)),
                                  (x[0, 0], (SIMPLE, ND, STRIDES, C, F, ANY, WRITABLE), ()),
                                  (x[:0], (SIMPLE, C, F), ())):
        for flags in given:
            get(array, view, flags)
            ctypes.pythonapi.PyBuffer_Release(view)
        for flags in refused:
            with pytest.raises(BufferError, match=r"copy\(\)"):
                get(array, view, flags)


def test_array_takes_numpys_arguments(device):
    x = da.asarray([1.5, 2.5], device=device)
    assert x.__array__("int64").tolist() == [1, 2] and x.__array__(copy=True).ctypes.data != x._pointer
    assert x.__array__(np.float64, copy=False).ctypes.data == x._pointer
    with pytest.raises(ValueError, match="copy=False"):
        x.__array__("float32", copy=False)
    assert np.asarray(x, dtype="float32").dtype == "float32" and np.array(x).ctypes.data != x._pointer
    assert np.array([x, x]).tolist() == [[1.5, 2.5]] * 2


def test_failures_of_the_work_come_out_of_a_view(device):
    def fail():
        raise RuntimeError("the task failed")

    for read in (np.asarray, memoryview, lambda x: x.__dlpack__(), lambda x: x.__array__()):
        queue = drupe.Queue(device)
        x = da.zeros(4, device=queue)
        queue.host_task(fail)
        x += 1
        with pytest.raises(drupe.DeviceError, match="task failed"):
            read(x)


@pytest.mark.parametrize("read", ["np.asarray(x)", "memoryview(x)", "np.from_dlpack(x)", "np.array([x, x])"])
def test_an_interrupt_ends_a_view(fresh, read):
    result = fresh(f"""
        import signal, threading
        import numpy as np
        import drupe, drupe.array as da
        queue, opened = drupe.Queue("host"), threading.Event()
        x = da.zeros(4, device=queue)

        def interrupt():
            signal.raise_signal(signal.SIGINT)
            opened.wait(20)

        queue.host_task(interrupt)
        x += 1
        try:
            {read}
        except KeyboardInterrupt as error:
            print("interrupted:", error)
        opened.set()
    """)
    assert result.stdout.startswith("interrupted"), result.stderr


GPU = """
    import pickle
    import numpy as np, pytest
    import drupe, drupe.array as da
    x = da.arange(6, dtype="float32", device="opencl:cpu").reshape(2, 3)
    for refused in (np.asarray, np.array, lambda x: x.__array__()):
        with pytest.raises(TypeError, match=r"x\\.asnumpy\\(\\)"):
            refused(x)
    with pytest.raises(BufferError, match=r"x\\.asnumpy\\(\\)"):
        memoryview(x)
    assert x.__dlpack_device__()[0] == 14  # unified shared memory
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    class Host:
        def __dlpack_device__(self):
            return 1, 0
        def __dlpack__(self, **options):
            return x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    assert da.from_dlpack(Host(), device="host").tolist() == x.tolist()
    assert da.from_dlpack(x, device="host").tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    print("good")
"""


def test_memory_that_the_host_cannot_address(opencl, fresh):
    result = fresh(GPU, DRUPE_FORM="gpu")
    assert result.stdout == "good\n", result.stderr


# --- NumPy's functions ------------------------------------------------------------------------------------------

def same(got, want):
    assert type(got) is da.Array, type(got)
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12)
    assert got.shape == np.shape(want)


CALLS = [
    "np.sin(x)", "np.add(x, y)", "np.absolute(x)", "np.power(x, 2)", "np.arctan2(x, y)",
    "np.add.reduce(x)", "np.add.reduce(x, axis=None)", "np.multiply.reduce(x, 1)",
    "np.maximum.reduce(x, axis=(0, 1), keepdims=True)", "np.logical_and.reduce(x > 1, axis=1)",
    "np.subtract.outer(x, y[0])", "np.mean(x)", "np.mean(x, axis=0, keepdims=True)",
    "np.sum(x, 1)", "np.sum(x, axis=0, keepdims=True)", "np.sum(x, axis=1, dtype='float32')",
    "np.sum(x, axis=None, out=None)", "np.max(x, axis=1)", "np.amin(x)", "np.prod(x, 0)",
    "np.std(x, ddof=1)", "np.var(x, 0)", "np.any(x > 3)", "np.all(x > -1, axis=0)",
    "np.concatenate([x, y])", "np.concatenate((x, y), 1)", "np.stack([x, y], axis=-1)",
    "np.where(x > 2, x, y)", "np.where(x > 2, x, 0)", "np.clip(x, 1, 3)",
    "np.clip(x, a_min=None, a_max=2)", "np.reshape(x, (3, 2))", "np.reshape(x, -1)",
    "np.transpose(x)", "np.transpose(x, (1, 0))", "np.moveaxis(x, 0, 1)", "np.roll(x, 1, 1)",
    "np.flip(x)", "np.flip(x, 0)", "np.tile(x, (2, 1))", "np.repeat(x, 2, axis=1)",
    "np.squeeze(x[:1])", "np.squeeze(x[:1], axis=0)", "np.expand_dims(x, 0)",
    "np.broadcast_to(x, (2, 2, 3))", "np.matmul(x, y.T)", "np.zeros_like(x)",
    "np.full_like(x, 7)", "np.tril(x)", "np.diff(x)", "np.diff(x, n=2, axis=1)",
    "np.copy(x)", "np.count_nonzero(x)", "np.linalg.norm(x)", "np.linalg.norm(x, axis=1)",
    "np.linalg.norm(x, axis=0, keepdims=True)", "np.ones_like(x, dtype='int64')",
    "np.float64(2) * x", "np.float64(2) - x", "np.int64(2) ** x", "np.float32(1) < x",
    "np.cumsum(x)", "np.cumsum(x, 1)", "np.add.accumulate(x)", "np.sort(x, axis=0)",
    "np.multiply.accumulate(x, 1)", "np.argsort(x, kind='stable')", "np.argmax(x, 1)",
    "np.isin(x, [1, 2])", "np.searchsorted(x[0], [0.5, 1])", "np.median(x, axis=0)",
    "np.percentile(x, 50)", "np.unique(x)", "np.sum(x, where=True)", "np.vstack([x, y])",
    "np.pad(x, 1)", "np.average(x, axis=0, weights=[1, 2])", "np.isclose(x, y)", "np.cov(x)",
    "np.sqrt(np.sum(np.square(x), axis=-1))", "np.logaddexp(x, y)", "np.isnan(x)",
]


@pytest.mark.parametrize("call", CALLS)
def test_numpys_functions_compute_on_the_device(device, call):
    a, b = np.arange(6.).reshape(2, 3), np.arange(6., 0, -1).reshape(2, 3)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    got, want = eval(call, {"np": np, "x": x, "y": y}), eval(call, {"np": np, "x": a, "y": b})
    assert got.device == device
    if "float32" in call:
        assert got.dtype == want.dtype
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)
    assert got.shape == np.shape(want)


def test_numpy_is_told_what_shares_memory(device):
    x, y = da.arange(10, device=device), da.arange(10, device=device)
    a = np.asarray(x)
    for shares in (np.may_share_memory, np.shares_memory):
        assert shares(x, a) and shares(a, x[2:]) and shares(x, x[1:])
        assert not shares(x, y) and not shares(y, a) and not shares(x[:5], x[5:])
    wide, number = np.broadcast_arrays(x, None)
    assert wide.tolist() == x.tolist() and number[0] is None
    assert type(np.broadcast_arrays(x, y)[0]) is da.Array


def test_outputs_of_numpys_functions(device):
    x, out = da.arange(3., device=device), da.zeros(3, device=device)
    assert np.add(x, 1, out=out) is out and out.tolist() == [1, 2, 3]
    assert np.sin(x, out) is out and np.sin(x, out=(out,)) is out
    total = da.zeros((), device=device)
    assert np.sum(x, out=total) is total and float(total) == 3
    assert np.add.reduce(x, out=total) is total and float(total) == 3
    assert np.shape(x) == (3,) and np.ndim(x) == 1 and np.size(x) == 3 and np.size(x, 0) == 3
    with pytest.raises(ValueError, match="shape"):
        np.sum(x, out=out)
    for wrong in (lambda: np.add(x, 1, out=np.zeros(3)), lambda: np.sum(x, out=np.zeros(()))):
        with pytest.raises(TypeError, match="out must be"):
            wrong()


@pytest.mark.parametrize("call, words", [
    ("np.sin(x, where=x > 1)", "where="), ("np.add(x, x, dtype='float32')", "dtype=.*astype"),
    ("np.sum(x, where=x > 1)", "where="), ("np.sum(x, initial=5)", "initial="),
    ("np.add.reduce(x, initial=5)", "initial"), ("np.polyfit(x, x, 1)", "asnumpy"),
    ("np.add.at(x, 0, 1)", r"add\.at"), ("np.spacing(x)", "asnumpy"),
    ("np.add.reduceat(x, [0])", "reduceat"), ("np.resize(x, 5)", r"tile\(\)"),
    ("np.linalg.tensorsolve(x, x)", r"numpy\.linalg\.tensorsolve"), ("np.ones(3) + x", r"operator \+.*asarray\(x\)"),
    ("np.ones(3) == x", r"operator ==.*asarray\(x\)"), ("x * np.ones(3)", r"operator \*.*asarray\(x\)"),
    ("np.add(np.ones(3), np.ones(3), out=x)", "asarray"), ("np.where(x > 1, x, np.ones(3))", "asarray"),
    ("np.ones(3).__iadd__(x)", r"operator \+.*asarray\(x\)"), ("np.sin(x, 1, 2)", "argument|asnumpy")])
def test_what_numpys_functions_refuse(device, call, words, arrays_are_dropped):
    if ".reduce" in call:
        arrays_are_dropped.append("NumPy leaks the arguments of a ufunc's method that is overridden and fails")
    with pytest.raises(TypeError, match=words):
        eval(call, {"np": np, "x": da.arange(3., device=device)})


# --- Pickle -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(device, dtype, protocol):
    values = some(dtype, (3, 4))
    for x in (da.asarray(values, device=device), da.asarray(values, device=device, usm_type="shared")[::2, 1:]):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.dtype == x.dtype and y.device == x.device and y.usm_type == x.usm_type
        assert y.tolist() == x.tolist() and y._pointer != x._pointer


def test_pickles_leave_large_buffers_out(device):
    x = da.arange(1000, device=device)
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(data) < 1000 and len(buffers) == 1 and buffers[0].raw().nbytes == x.nbytes
    assert np.frombuffer(buffers[0], "int64").ctypes.data == x._pointer
    assert pickle.loads(data, buffers=buffers).tolist() == x.tolist()
    assert pickle.loads(data, buffers=[bytes(buffers[0])]).tolist() == x.tolist()


def test_copies_of_the_module_copy(device):
    x = da.arange(3, device=device)
    tree = copy.deepcopy({"a": [x, x]})
    assert tree["a"][0] is tree["a"][1] and tree["a"][0].tolist() == x.tolist() and tree["a"][0]._pointer != x._pointer
    assert copy.copy(x).tolist() == x.tolist()
    empty = pickle.loads(pickle.dumps(da.zeros((0, 3), device=device)))
    assert empty.shape == (0, 3)
    scalar = pickle.loads(pickle.dumps(da.asarray(2.5, device=device)))
    assert scalar.shape == () and float(scalar) == 2.5


def test_pickles_are_read_where_the_device_is_missing():
    data = pickle.dumps(da.arange(3, device="host"))
    data = data.replace(b"host:cpu:0", b"host:gpu:9")
    assert pickle.loads(data).tolist() == [0, 1, 2]


def test_other_processes_read_pickles(device):
    data = pickle.dumps(da.arange(3, device=device))
    code = "import pickle, sys; x = pickle.load(sys.stdin.buffer); print(x.tolist(), x.device.filter_string)"
    result = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert result.stdout.decode().split("\n")[0] == f"[0, 1, 2] {device.filter_string}"


def test_numpy_saves_the_values(device, tmp_path):
    x = da.arange(4., device=device)
    np.save(tmp_path / "x.npy", x.asnumpy())
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x.asnumpy())


# --- Others -----------------------------------------------------------------------------------------------------

def test_the_standards_names(device):
    x = da.ones(3, device=device)
    assert x.__array_namespace__() is da and x.__array_namespace__(api_version="2022.12") is da
    for version in ("2020.01", "2030.12"):
        with pytest.raises(ValueError, match=version):
            x.__array_namespace__(api_version=version)
    assert x.to_device(x.device, stream=None) is x and da.to_device(x, device, stream=None) is x
    with pytest.raises(ValueError, match="stream"):
        x.to_device(device, stream=1)


def test_pandas_takes_and_gives_arrays(device):
    pandas = pytest.importorskip("pandas")
    x = da.asarray([1.5, 2.5, 3.5], device=device)
    series = pandas.Series(x)
    assert series.tolist() == [1.5, 2.5, 3.5] and float(series.mean()) == 2.5
    frame = pandas.DataFrame({"a": np.asarray(x), "b": [1., 2., 3.]})
    assert da.asarray(frame, device=device).tolist() == frame.to_numpy().tolist()
    assert da.asarray(series, device=device).tolist() == series.tolist()
    assert da.asarray(pandas.Index([1, 2]), device=device).tolist() == [1, 2]


def test_matplotlib_plots_arrays(device):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    x = da.linspace(0, 1, 5, device=device)
    figure, axes = pyplot.subplots()
    line, = axes.plot(x, x * 2)
    assert list(line.get_ydata()) == [0, 0.5, 1, 1.5, 2]
    axes.scatter(x, x)
    axes.hist(x)
    axes.imshow(x.reshape(1, 5))
    axes.bar(x, x)
    axes.errorbar(x, x, yerr=x)
    figure.canvas.draw()
    pyplot.close(figure)
