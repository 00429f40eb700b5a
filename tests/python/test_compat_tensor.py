"""dpctl.tensor against NumPy: every function with dpctl's signature, and what is an array's alone."""
import pickle

import drupe
import numpy as np
import pytest
from drupe.compat import NotProvided, dpctl
from drupe.compat.dpctl import memory
from drupe.compat.dpctl import tensor as dpt
from drupe.compat.dpctl.tensor import _elementwise

RENAMED = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
           "atanh": "arctanh", "atan2": "arctan2", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
           "pow": "power", "bitwise_right_shift": "right_shift"}
ABOVE_ONE = ("acosh",)
BITS = ("bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "bitwise_and", "bitwise_or", "bitwise_xor")
PLAIN = np.asarray([[0.5, 0.25, 0.75], [0.1, 0.9, 0.3]])


def same(ours, numpys, **options):
    assert isinstance(ours, dpt.usm_ndarray), type(ours)
    np.testing.assert_allclose(dpt.asnumpy(ours), numpys, **options)
    assert ours.shape == np.shape(numpys)


def on(values, **options):
    return dpt.asarray(np.asarray(values), **options)


@pytest.mark.parametrize("name", _elementwise.UNARY)
def test_unary(name):
    values = PLAIN + 1 if name in ABOVE_ONE else (PLAIN * 8).astype("i4") if name in BITS else PLAIN
    expected = 1 / np.sqrt(values) if name == "rsqrt" else getattr(np, RENAMED.get(name, name))(values)
    function = getattr(dpt, name)
    same(function(on(values)), expected, rtol=1e-6)
    out = dpt.empty(values.shape, dtype=expected.dtype)
    assert function(on(values), out=out) is out
    same(out, expected, rtol=1e-6)
    assert function(on(values), order="F").flags.f_contiguous
    assert (function.nin, function.nout) == (1, 1) and function.types and name in repr(function)
    with pytest.raises(ValueError):
        function(on(values), order="Z")
    for wrong in (3, values, [1.0]):
        with pytest.raises(TypeError):
            function(wrong)


@pytest.mark.parametrize("name", _elementwise.BINARY)
def test_binary(name):
    integers = name in BITS
    first = (PLAIN * 8).astype("i4") if integers else PLAIN
    second = np.asarray([1, 2, 3], first.dtype)
    expected = getattr(np, RENAMED.get(name, name))(first, second)
    function = getattr(dpt, name)
    same(function(on(first), on(second)), expected, rtol=1e-6)
    same(function(on(first), 2), getattr(np, RENAMED.get(name, name))(first, 2), rtol=1e-6)
    out = dpt.empty(expected.shape, dtype=expected.dtype)
    assert function(on(first), on(second), out=out) is out
    same(out, expected, rtol=1e-6)
    assert function.nin == 2 and function.types and pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(TypeError):
        function(on(first), second)
    with pytest.raises(dpctl.utils.ExecutionPlacementError):
        function(on(first), on(second, sycl_queue=dpctl.SyclQueue()))


def test_implementations_are_refused():
    for name in ("get_implementation_function", "get_implementation_inplace_function",
                 "get_type_result_resolver_function", "get_type_promotion_path_acceptance_function",
                 "get_array_dtype_scalar_type_resolver_function"):
        with pytest.raises(NotProvided, match="C\\+\\+"):
            getattr(dpt.add, name)()


def test_making(device):
    queue = dpctl.SyclQueue(device.filter_string)
    where = {"sycl_queue": queue, "usm_type": "shared"}
    made = [dpt.arange(2, 8, 2, **where), dpt.zeros((2, 3), **where), dpt.ones(3, dtype="i4", **where),
            dpt.full((2, 2), 7, **where), dpt.linspace(0, 1, 5, **where), dpt.eye(3, 4, k=1, **where),
            dpt.empty((2,), **where), dpt.asarray([1, 2], **where), dpt.from_numpy(np.arange(3), **where)]
    for x in made:
        assert x.sycl_queue == queue and x.usm_type == "shared" and x.device.sycl_queue == queue
    expected = [np.arange(2, 8, 2), np.zeros((2, 3)), np.ones(3, "i4"), np.full((2, 2), 7), np.linspace(0, 1, 5),
                np.eye(3, 4, k=1), None, [1, 2], np.arange(3)]
    for x, values in zip(made, expected):
        if values is not None:
            same(x, values)
    assert made[1].dtype == np.float64 and made[2].dtype == dpt.int32
    x = made[1]
    for like, value in ((dpt.zeros_like(x), 0), (dpt.ones_like(x), 1), (dpt.full_like(x, 5), 5),
                        (dpt.empty_like(x), None)):
        assert like.shape == x.shape and like.sycl_queue == queue and like.usm_type == "shared"
        assert value is None or dpt.asnumpy(like).tolist() == [[value] * 3] * 2
    assert dpt.zeros_like(dpt.zeros((2, 3), order="F")).flags.fnc
    same(dpt.full((2, 2), dpt.asarray([1, 2])), [[1, 2], [1, 2]])
    same(dpt.tril(on(PLAIN), k=-1), np.tril(PLAIN, -1))
    same(dpt.triu(on(PLAIN), k=1), np.triu(PLAIN, 1))
    grids = dpt.meshgrid(dpt.arange(2), dpt.arange(3), indexing="ij")
    for ours, theirs in zip(grids, np.meshgrid([0, 1], [0, 1, 2], indexing="ij")):
        same(ours, theirs)
    same(dpt.from_dlpack(np.arange(3.0)), np.arange(3.0))
    place = dpt.sycl_device_to_dldevice(queue.sycl_device)
    assert dpt.from_dlpack(np.arange(3.0), device=place).sycl_device == queue.sycl_device
    with pytest.raises(NotProvided):
        dpt.from_dlpack(made[0], device=(1, 0))
    same(dpt.copy(made[0], order="F"), [2, 4, 6])
    assert dpt.to_numpy(made[0]).tolist() == dpt.asnumpy(made[0]).tolist() == [2, 4, 6]
    for wrong in (lambda: dpt.zeros(3, order="Z"), lambda: dpt.zeros(3, usm_type="nonsense")):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError, match="two queues"):
        dpt.zeros(3, device=dpctl.SyclQueue(), sycl_queue=queue)


def test_of_other_objects():
    mem = memory.MemoryUSMShared(12)
    memoryview(mem)[:] = bytes(range(12))
    assert dpt.asarray(mem).shape == (12,) and dpt.asarray(mem)._pointer == mem._pointer
    x = dpt.asarray([[1, 2], [3, 4]], dtype="f4")
    assert dpt.asarray(x)._pointer == x._pointer and dpt.asarray(x, copy=True)._pointer != x._pointer

    class Foreign:
        __sycl_usm_array_interface__ = x[::-1].__sycl_usm_array_interface__
    same(dpt.asarray(Foreign()), [[3, 4], [1, 2]])
    same(dpt.asarray([x, x]), np.asarray([[[1, 2], [3, 4]]] * 2))
    assert dpt.asarray(x, order="F").flags.fnc and dpt.asarray(3).shape == ()
    moved = dpt.asarray(x, device="host")
    assert moved.device == dpt.Device.create_device("host")
    same(moved, [[1, 2], [3, 4]])


def test_types():
    assert dpt.finfo("f4").bits == 32 and dpt.finfo(dpt.float64).eps == np.finfo("f8").eps
    assert dpt.iinfo(dpt.int8).max == 127
    assert dpt.isdtype(dpt.int32, "integral") and dpt.result_type(dpt.int32, dpt.float32) == np.dtype("f8")
    assert dpt.can_cast("i4", "f8") and not dpt.can_cast("f8", "i4") and dpt.can_cast("f8", "i4", casting="unsafe")
    x = dpt.asarray([1.7, -2.5])
    same(dpt.astype(x, dpt.int32), [1, -2])
    assert dpt.astype(x, "f8", copy=False)._pointer == x._pointer and dpt.astype(x, "f4", order="F").dtype == "float32"
    same(dpt.astype(dpt.asarray([1 + 2j]), "f4"), [1])
    assert dpt.astype(x, "f4", device="host").device == dpt.Device.create_device("host")
    with pytest.raises(TypeError):
        dpt.astype(x, "i4", casting="safe")
    for name in ("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 "
                 "complex128").split():
        assert getattr(dpt, name) == np.dtype(name) and dpt.zeros(1, dtype=getattr(dpt, name)).dtype == np.dtype(name)
    assert dpt.dtype is np.dtype


def test_the_namespace():
    assert (dpt.e, dpt.pi, dpt.inf, dpt.newaxis) == (np.e, np.pi, np.inf, None) and dpt.nan != dpt.nan
    assert dpt.__array_api_version__ == "2024.12" and dpt.zeros(1).__array_namespace__(api_version="2024.12") is dpt
    info = dpt.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() == dpctl.SyclDevice()
    assert info.default_dtypes(device="host")["integral"] == np.dtype("i8")
    assert dpctl.SyclDevice("host") in info.devices()
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"} and len(info.dtypes()) == 13
    with pytest.raises(ValueError):
        info.dtypes(kind="nonsense")
    with pytest.raises(ValueError):
        dpt.zeros(1).__array_namespace__(api_version="3000.01")


@pytest.mark.parametrize("name", "sum prod max min count_nonzero argmax argmin".split())
def test_reductions(name):
    numpys, ours = getattr(np, name), getattr(dpt, name)
    x, values = on(PLAIN), PLAIN
    same(ours(x), numpys(values))
    same(ours(x, axis=1, keepdims=True), numpys(values, axis=1, keepdims=True))
    out = dpt.empty(2, dtype=numpys(values, axis=1).dtype)
    assert ours(x, axis=1, out=out) is out
    same(out, numpys(values, axis=1))
    with pytest.raises(ValueError):
        ours(x, axis=1, out=dpt.empty(3, dtype=out.dtype))
    with pytest.raises(TypeError):
        ours(x, 1)  # by name alone, as in the array API


def test_reductions_with_places():
    x = on(PLAIN)
    same(dpt.mean(x, 0), PLAIN.mean(0))
    same(dpt.std(x, 0, 1.0, True), PLAIN.std(0, ddof=1, keepdims=True))
    same(dpt.var(x, axis=1), PLAIN.var(1))
    same(dpt.logsumexp(x, axis=1), np.log(np.exp(PLAIN).sum(1)))
    same(dpt.reduce_hypot(x, axis=1), np.sqrt((PLAIN**2).sum(1)))
    same(dpt.all(x > 0, axis=1), [True, True])
    same(dpt.any(x > 0.8, axis=1), [False, True])
    same(dpt.cumulative_sum(x, axis=1), PLAIN.cumsum(1))
    same(dpt.cumulative_prod(x, axis=0, include_initial=True), np.vstack([np.ones(3), PLAIN.cumprod(0)]))
    same(dpt.sum(on([1, 2]), dtype="f4"), 3.0)
    same(dpt.clip(x, 0.2, 0.6), PLAIN.clip(0.2, 0.6))
    same(dpt.where(x > 0.4, x, 0.0), np.where(PLAIN > 0.4, PLAIN, 0))
    same(dpt.diff(x, axis=0, n=1), np.diff(PLAIN, axis=0))
    assert bool(dpt.allclose(x, x + 1e-3, 1e-2)) and not dpt.allclose(x, x + 1e-3)
    with pytest.raises(ValueError):
        dpt.clip(x, 0, 1, out=dpt.empty(6))


def test_matrices():
    x, y = on(PLAIN), on(PLAIN.T)
    same(dpt.matmul(x, y), PLAIN @ PLAIN.T)
    same(dpt.matmul(x, y, dtype="f4", order="F"), PLAIN @ PLAIN.T, rtol=1e-5)
    out = dpt.empty((2, 2))
    assert dpt.matmul(x, y, out) is out
    same(out, PLAIN @ PLAIN.T)
    same(dpt.matrix_transpose(x), PLAIN.T)
    same(dpt.tensordot(x, y, 1), np.tensordot(PLAIN, PLAIN.T, 1))
    same(dpt.vecdot(x, x, axis=0), (PLAIN * PLAIN).sum(0))
    same(x @ y, PLAIN @ PLAIN.T)


def test_searching_and_sorting():
    values = np.asarray([3, 1, 2, 3, 1])
    x = on(values)
    same(dpt.sort(x, descending=True), np.sort(values)[::-1])
    same(dpt.argsort(x, -1), np.argsort(values, kind="stable"))
    largest, places = dpt.top_k(on([[1, 5], [7, 2]]), 2)
    assert dpt.asnumpy(largest).tolist() == [7, 5] and dpt.asnumpy(places).tolist() == [2, 1]
    same(dpt.top_k(on([[1, 5], [7, 2]]), 1, axis=1, mode="smallest").values, [[1], [2]])
    same(dpt.searchsorted(on([1, 2, 3]), on([2, 4]), side="right"), [2, 3])
    same(dpt.isin(x, on([1, 2]), invert=True), np.isin(values, [1, 2], invert=True))
    found = dpt.unique_all(x)
    same(found.values, [1, 2, 3])
    same(found.counts, [2, 1, 2])
    same(dpt.unique_values(x), [1, 2, 3])
    assert dpt.unique_counts(x)._fields == ("values", "counts") and dpt.unique_inverse(x).inverse_indices.shape == (5,)
    with pytest.raises(ValueError):
        dpt.sort(x, kind="nonsense")


def test_shapes():
    x = on(PLAIN)
    for ours, theirs in (
            (dpt.reshape(x, (3, 2), order="F"), PLAIN.reshape((3, 2), order="F")), (dpt.flip(x, axis=0), PLAIN[::-1]),
            (dpt.concat([x, x], axis=1), np.concatenate([PLAIN] * 2, 1)),
            (dpt.stack((x, x), axis=2), np.stack([PLAIN] * 2, 2)),
            (dpt.expand_dims(x), PLAIN[None]), (dpt.squeeze(dpt.expand_dims(x, axis=1)), PLAIN),
            (dpt.moveaxis(x, 0, 1), PLAIN.T), (dpt.permute_dims(x, (1, 0)), PLAIN.T), (dpt.swapaxes(x, 0, 1), PLAIN.T),
            (dpt.repeat(x, 2, axis=1), PLAIN.repeat(2, 1)), (dpt.roll(x, 1, axis=1), np.roll(PLAIN, 1, 1)),
            (dpt.tile(x, (1, 2)), np.tile(PLAIN, (1, 2))), (dpt.unstack(x)[1], PLAIN[1]),
            (dpt.broadcast_to(x, (2, 2, 3)), np.broadcast_to(PLAIN, (2, 2, 3))),
            (dpt.broadcast_arrays(x, dpt.ones(3))[1], np.ones((2, 3)))):
        same(ours, theirs)
    with pytest.raises(ValueError, match="read-only"):
        dpt.broadcast_to(x, (2, 2, 3))[0] = 1


def test_indices_outside():
    """dpctl's "wrap" moves them to the nearest place, which is not what NumPy's does."""
    x = dpt.arange(5)
    same(dpt.take(x, on([-9, -1, 0, 4, 9])), [0, 4, 0, 4, 4])
    same(dpt.take(x, on([-9, -1, 9]), mode="clip"), [0, 0, 4])
    same(dpt.take(on(PLAIN), on([1, 0]), axis=1), PLAIN.take([1, 0], 1))
    dpt.put(x, on([-9, 9]), on([7, 8]))
    same(x, [7, 1, 2, 3, 8])
    y = on(PLAIN)
    dpt.put(y, on([2, 0]), 5.0, axis=1)
    assert dpt.asnumpy(y)[:, [0, 2]].tolist() == [[5, 5], [5, 5]]
    places = on([[2], [0]])
    same(dpt.take_along_axis(on(PLAIN), places, axis=1), np.take_along_axis(PLAIN, np.asarray([[2], [0]]), 1))
    dpt.put_along_axis(y, places, on([[1.0], [2.0]]), axis=1)
    assert dpt.asnumpy(y)[0, 2] == 1 and dpt.asnumpy(y)[1, 0] == 2
    same(dpt.extract(x > 2, x), [7, 3, 8])
    dpt.place(x, x > 2, on([0, 1]))
    same(x, [0, 1, 2, 1, 0])
    same(dpt.nonzero(x)[0], [1, 2, 3])
    for wrong in (lambda: dpt.take(y, on([0])), lambda: dpt.take(x, on([0]), mode="raise")):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(IndexError):
        dpt.take(x, on([0.5]))


# --- usm_ndarray -----------------------------------------------------------------------------------------------------

def test_arrays_over_memory(device):
    queue = dpctl.SyclQueue(device.filter_string)
    mem = memory.MemoryUSMShared(48, queue=queue)
    np.frombuffer(mem, "f4")[:] = range(12)
    x = dpt.usm_ndarray((2, 3), dtype="f4", buffer=mem, strides=(6, 2), offset=1)
    same(x, [[1, 3, 5], [7, 9, 11]])
    assert x.strides == (6, 2) and x._element_offset == 1 and x._pointer == mem._pointer + 4 and x.sycl_queue == queue
    assert x._byte_bounds == (mem._pointer + 4, mem._pointer + 48) and x.usm_data._pointer == mem._pointer
    x[0, 0] = 50
    queue.wait()
    assert np.frombuffer(mem, "f4")[1] == 50
    made = dpt.usm_ndarray((2, 3), dtype="i4", buffer="host", order="F", buffer_ctor_kwargs={"queue": queue})
    assert made.flags.fnc and made.usm_type == "host" and made.sycl_queue == queue and made.strides == (1, 2)
    assert dpt.usm_ndarray(4, buffer="device").dtype == np.float64 and dpt.usm_ndarray((0, 3)).size == 0
    assert dpt.usm_ndarray((2, 2), dtype="f4", buffer=x, array_namespace=np).__array_namespace__() is np
    for wrong in (lambda: dpt.usm_ndarray((13,), dtype="f4", buffer=mem), lambda: dpt.usm_ndarray(3, buffer="nonsense"),
                  lambda: dpt.usm_ndarray(3, order="K"),
                  lambda: dpt.usm_ndarray((2,), dtype="f4", buffer=mem, strides=(-1,))):
        with pytest.raises(ValueError):
            wrong()


def test_what_an_array_has():
    x = on(PLAIN, dtype="f4")
    assert (x.ndim, x.shape, x.size, x.itemsize, x.nbytes, x.dtype) == (2, (2, 3), 6, 4, 24, np.dtype("f4"))
    assert x.sycl_device == x.sycl_queue.sycl_device and x.sycl_context == x.sycl_queue.sycl_context
    assert x.device == dpt.Device.create_device(x.sycl_queue) and x.usm_type == "device"
    same(x.T, PLAIN.T, rtol=1e-6)
    same(x.mT, PLAIN.T, rtol=1e-6)
    x.shape = 3, 2
    assert x.shape == (3, 2) and x.T.shape == (2, 3)
    with pytest.raises(AttributeError):
        x.shape = 7
    z = on([1 + 2j, 3 + 4j])
    z.real, z.imag = 5, on([7.0, 8.0])
    same(z, [5 + 7j, 5 + 8j])
    interface = x.__sycl_usm_array_interface__
    assert interface["syclobj"] == x.sycl_queue and interface["typestr"] == "<f4"
    x._set_namespace(np)
    assert x.__array_namespace__() is np
    assert x.__dlpack_device__() and dpt.from_dlpack(x).shape == (3, 2)
    if x.sycl_device.is_cpu:
        assert np.from_dlpack(x).shape == (3, 2)
    found = pickle.loads(pickle.dumps(x))
    assert isinstance(found, dpt.usm_ndarray) and dpt.asnumpy(found).tolist() == dpt.asnumpy(x).tolist()
    assert x.to_device(x.device) is x and x.to_device("host").sycl_device == dpctl.SyclDevice("host")


def test_flags():
    x = dpt.zeros((2, 3))
    flags = x.flags
    assert flags.c_contiguous and not flags.f_contiguous and flags.contiguous and flags.forc
    assert not flags.fc and not flags.fnc and flags["C"] and flags["WRITABLE"] and flags.flags == 5
    assert flags == dpt.ones((4, 5)).flags and "WRITABLE" in repr(flags)
    flags["W"] = False
    assert not x.flags.writable and not x[0].flags.writable
    for write in (lambda: x.__setitem__(0, 1), lambda: x.__iadd__(1), lambda: dpt.add(x, 1, out=x)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    x.flags.writable = True
    x += 1
    assert dpt.asnumpy(x).sum() == 6
    with pytest.raises(KeyError):
        flags["nonsense"]


@pytest.mark.parametrize("name", "add and floordiv lshift mod mul or pow rshift sub truediv xor".split())
def test_operators(name):
    values, other = np.asarray([5, 9, 12]), np.asarray([1, 2, 3])
    for method in (f"__{name}__", f"__r{name}__"):
        same(getattr(on(values), method)(on(other)), getattr(values, method)(other))
    same(getattr(on(values), f"__{name}__")(2), getattr(values, f"__{name}__")(2))
    same(getattr(on(values), f"__{name}__")(np.int64(2)), getattr(values, f"__{name}__")(np.int64(2)))
    x = on(values.astype("f8") if name == "truediv" else values)
    kept = x
    x = getattr(x, f"__i{name}__")(on(other))
    assert x is kept
    same(x, getattr(values, f"__{name}__")(other))
    assert getattr(x, f"__{name}__")(values) is NotImplemented


def test_operators_of_one():
    x = on([-2, 3])
    same(abs(x), [2, 3])
    same(~x, [1, -4])
    same(-x, [2, -3])
    same(+x, [-2, 3])
    for compare in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        same(getattr(x, compare)(3), getattr(np.asarray([-2, 3]), compare)(3))
    one = on(5)
    assert bool(one) and int(one) == 5 and float(one) == 5.0 and complex(one) == 5 and range(9)[one] == 5
    assert len(x) == 2 and [int(part) for part in x] == [-2, 3]
    x[0] = np.asarray(9)
    x[1:] = [8]
    same(x[x > 8], [9])
    same(x[on([1, 0])], [8, 9])
    with pytest.raises(TypeError):
        hash(x)


def test_nothing_goes_to_the_host_unasked():
    x = dpt.ones(3)
    for wrong in (lambda: np.asarray(x), lambda: x + np.ones(3), lambda: np.ones(3) + x, lambda: dpt.sum(np.ones(3)),
                  lambda: dpt.add(np.ones(3), x), lambda: np.sin(x)):
        with pytest.raises(TypeError):
            wrong()


def test_text():
    x = dpt.asarray([0.123456789, 2.0])
    assert str(x) == "[0.12345679 2.        ]" and repr(x) == "usm_ndarray([0.12345679, 2.        ])"
    assert repr(dpt.ones(2, dtype="f4")) == "usm_ndarray([1., 1.], dtype=float32)"
    assert "shape=(0, 3)" in repr(dpt.zeros((0, 3)))
    with dpt.print_options(precision=2):
        assert str(x) == "[0.12 2.  ]" and dpt.get_print_options()["precision"] == 2
    before = dpt.get_print_options()
    dpt.set_print_options(precision=3)
    assert dpt.usm_ndarray_str(x) == "[0.123 2.   ]" and dpt.usm_ndarray_repr(x, prefix="x") == "x([0.123, 2.   ])"
    dpt.set_print_options(**before)
    assert dpt.usm_ndarray_str(x, precision=1, separator=",") == "[0.1,2. ]"
    with pytest.raises(ValueError):
        dpt.set_print_options(sign="nonsense")


def test_devices():
    place = dpt.Device.create_device("host")
    assert place == dpt.Device.create_device(dpctl.SyclDevice("host")) == dpt.Device.create_device(place.sycl_queue)
    assert place is dpt.Device.create_device(place) and hash(place) == hash(dpt.Device.create_device("host"))
    assert place.sycl_device == dpctl.SyclDevice("host") and place.sycl_context == place.sycl_queue.sycl_context
    place.wait()
    place.print_device_info()
    assert repr(place) == "Device(host:cpu:0)" and dpt.Device.create_device().sycl_device == dpctl.SyclDevice()
    with pytest.raises(TypeError):
        dpt.Device()
    with pytest.raises(TypeError):
        dpt.Device.create_device(3)
    pair = dpt.sycl_device_to_dldevice(dpctl.SyclDevice("host"))
    assert pair[0] == dpt.DLDeviceType.kDLOneAPI == 14 and dpt.dldevice_to_sycl_device(pair) == dpctl.SyclDevice("host")
    with pytest.raises(ValueError):
        dpt.dldevice_to_sycl_device((1, 0))


def test_work_of_arrays_keeps_its_order():
    """On queues that are out of order, too; work that depends on arrays waits for SequentialOrderManager's events."""
    queue = dpctl.SyclQueue()
    assert not queue.is_in_order
    count = 1_000_000
    x = dpt.zeros(count, sycl_queue=queue)
    for _step in range(50):
        x = x * 1 + 1
    assert x._drupe.pending  # it is submitted by what asks for the events
    events = dpctl.utils.SequentialOrderManager[queue].submitted_events
    target = memory.MemoryUSMShared(8 * count, queue=queue)
    queue.memcpy_async(target, x.usm_data, 8 * count, events).wait()
    assert (np.frombuffer(target) == 50).all()


def test_names_come_in_any_order(fresh):
    """A name of a module that is loaded later does not replace what the package needs for others."""
    result = fresh("""
        from drupe.compat.dpctl import tensor as dpt
        for names in (sorted(dpt.__all__), sorted(dpt.__all__, reverse=True)):
            for name in set(vars(dpt)) & set(dpt.__all__) - {"e", "pi", "nan", "inf", "newaxis"}:
                delattr(dpt, name)
            for name in names:
                assert type(getattr(dpt, name)).__name__ != "module", name
        assert float(dpt.exp(dpt.zeros(1))[0]) == 1
    """)
    assert result.returncode == 0, result.stderr


def test_drupes_arrays_go_along():
    import drupe.array as da

    x = da.ones(3, device=drupe.Device("host"))
    assert isinstance(dpt.sum(x), dpt.usm_ndarray) and float(dpt.sum(x)) == 3
    assert da.asarray(dpt.asarray([1, 2])._drupe).tolist() == [1, 2]


def test_scalars_of_numpy_have_types_of_their_own():
    x = dpt.ones(2, dtype="f4", usm_type="shared")
    for result in (x + np.float64(1), np.float64(1) + x, dpt.add(x, np.float64(1)), dpt.add(np.float64(1), x),
                   dpt.where(x > 0, x, np.float64(1)), x * np.asarray(2.0)):
        assert result.dtype == np.float64 and result.usm_type == "shared"
    assert (x + 1.0).dtype == np.float32
    assert (dpt.ones(2, dtype="i1") + np.int64(300)).dtype == np.int64
    x += np.float64(1)
    assert x.dtype == np.float32


def test_equality_is_of_arrays_and_numbers():
    """Python's own answer to == of a list or of NumPy's array would be False."""
    x = on([1, 2])
    for other in ([1, 2], np.asarray([1, 2]), None, "text"):
        with pytest.raises(TypeError, match="compared"):
            x == other  # noqa: B015
        with pytest.raises(TypeError, match="compared"):
            other != x  # noqa: B015


def test_views_of_read_only_arrays_are_read_only():
    x = on([[1, 2, 3], [4, 5, 6]])
    views = (lambda a: dpt.flip(a), lambda a: dpt.permute_dims(a, (1, 0)), lambda a: dpt.expand_dims(a),
             lambda a: dpt.squeeze(a), lambda a: dpt.moveaxis(a, 0, 1), lambda a: dpt.swapaxes(a, 0, 1),
             lambda a: dpt.unstack(a)[0], lambda a: dpt.reshape(a, (3, 2)), lambda a: dpt.asarray(a),
             lambda a: dpt.astype(a, a.dtype, copy=False), lambda a: dpt.broadcast_arrays(a, dpt.ones((2, 3)))[0],
             lambda a: dpt.usm_ndarray(6, dtype=a.dtype, buffer=a), lambda a: dpt.from_dlpack(a, copy=False))
    for view in views[:-1]:
        assert view(x).flags.writable
    x.flags.writable = False
    assert x.__sycl_usm_array_interface__["data"][1] is True
    for view in views[:-1]:
        assert not view(x).flags.writable
    assert dpt.reshape(x.T, (6,)).flags.writable and dpt.reshape(x, (6,), copy=True).flags.writable
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()

    class Described:
        __sycl_usm_array_interface__ = x.__sycl_usm_array_interface__

    assert not dpt.asarray(Described()).flags.writable


def test_nothing_is_made_where_nothing_is_to_do():
    x = on([1, 2])
    assert dpt.asarray(x) is x and dpt.asarray(x, dtype=x.dtype, copy=False) is x
    assert dpt.astype(x, x.dtype, copy=False) is x
    assert dpt.asarray(x, copy=True) is not x and dpt.astype(x, x.dtype) is not x


def test_columns_of_numpy_stay_columns():
    values = np.arange(6.0).reshape(2, 3)
    for order, strides in (("K", (1, 3)), ("A", (1, 3)), ("F", (1, 3)), ("C", (2, 1))):
        x = dpt.asarray(values.T, order=order)
        assert x.strides == strides
        same(x, values.T)
    same(dpt.from_numpy(values.T), values.T)
    assert dpt.from_numpy(values.T).strides == (1, 3) and dpt.from_numpy(values).strides == (3, 1)


def test_an_array_as_the_buffer_is_its_whole_memory():
    x = dpt.arange(6.0)[2:]
    same(dpt.usm_ndarray(2, dtype="f8", buffer=x, offset=x._element_offset), [2, 3])
    same(dpt.usm_ndarray(2, dtype="f8", buffer=x), [0, 1])


def test_the_kind_of_memory_of_results():
    host, shared = dpt.ones((2, 2), usm_type="host"), dpt.ones((2, 2), usm_type="shared")
    for function in (dpt.concat, dpt.stack):
        assert function([host, shared]).usm_type == "shared" and function([host, host]).usm_type == "host"
    for function in (dpt.tril, dpt.triu):
        assert function(host).usm_type == "host"


def test_arrays_of_drupe_are_broadcast():
    first, second = dpt.broadcast_arrays(dpt.ones(3)._drupe, dpt.ones((2, 3))._drupe)
    same(first, np.ones((2, 3)))
    same(second, np.ones((2, 3)))
    with pytest.raises(TypeError):
        dpt.broadcast_arrays(1, dpt.ones(3))


def test_new_memory_has_room_for_steps_backwards():
    x = dpt.usm_ndarray((2, 3), dtype="f4", strides=(-3, 1), buffer="shared", offset=7)
    x[...] = on([[1, 2, 3], [4, 5, 6]])
    assert x.strides == (-3, 1) and x._element_offset == 3 and x.usm_data.nbytes == 24
    assert np.frombuffer(x.usm_data, "f4").tolist() == [4, 5, 6, 1, 2, 3]
    with pytest.raises(ValueError, match="negative"):
        dpt.usm_ndarray((2, -3))
