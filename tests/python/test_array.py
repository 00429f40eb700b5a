"""Arrays: making, attributes, views, conversion, placement and the errors a user meets."""
import array as stdarray
import copy
import inspect
import pickle

import numpy as np
import pytest
from element_types import TYPES

import drupe
import drupe.array as da


@pytest.mark.every_type
@pytest.mark.parametrize("dtype", TYPES)
def test_from_numpy_and_back(device, dtype):
    source = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for variant in (source, source.T, source[:, ::-2], source[1], source[:0], np.asfortranarray(source)):
        x = da.asarray(variant, device=device)
        back = x.asnumpy()
        assert back.dtype == variant.dtype and back.shape == variant.shape
        assert (back == variant).all() and (da.asnumpy(x) == variant).all()


def test_large_copies(device):
    source = np.arange(1 << 18, dtype=np.float64)
    x = da.asarray(source, device=device)
    source[:] = 0
    assert (x.asnumpy() == np.arange(1 << 18)).all()
    small = np.arange(8)
    y = da.asarray(small, device=device)
    small[:] = 0
    assert y.tolist() == list(range(8))


def test_from_buffers(device):
    assert da.asarray(stdarray.array("d", [1, 2]), device=device).tolist() == [1.0, 2.0]
    assert da.asarray(memoryview(stdarray.array("i", [1, 2])), device=device).dtype == "int32"
    assert da.asarray(np.float32(1.5), device=device).dtype == "float32"
    assert da.asarray(np.bool_(True), device=device).tolist() is True


@pytest.mark.parametrize("values, dtype", [
    (3, "int64"), (2.5, "float64"), (True, "bool"), ([], "float64"), ([1, 2], "int64"), ([1, 2.5], "float64"),
    ([True, 3], "int64"), ([[1, 2], [3, 4]], "int64"), (((), ()), "float64"), (range(3), "int64"),
    ([np.float32(1), 2], "float64"), ([np.arange(2), np.arange(2)], "int64")])
def test_from_python(device, values, dtype):
    x = da.asarray(values, device=device)
    expected = np.asarray(values)
    assert x.dtype == dtype and x.shape == expected.shape
    assert (x.asnumpy() == expected).all()
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("wrong, error, text", [
    ([[1, 2], [3]], ValueError, "differ in length"), ([1, [2]], TypeError, "numbers in sequences"),
    (["a"], TypeError, "str holds text"), ("abc", TypeError, "numbers"), ([1, None], TypeError, "NoneType"),
    (object(), TypeError, "object"), (2**70, OverflowError, "int64"),
    (np.zeros(2, np.longdouble), TypeError, "bool, int8 to int64, .*complex64 and complex128"),
    (np.zeros(2, ">f4"), TypeError, "byte order"), (np.zeros(2, object), TypeError, "Python objects"),
    (b"bytes", TypeError, "bytes holds text")])
def test_what_cannot_become_an_array(device, wrong, error, text):
    with pytest.raises(error, match=text):
        da.asarray(wrong, device=device)


def test_there_are_no_other_types(device):
    for wrong in ("int128", np.longdouble, np.dtype("M8[s]")):
        with pytest.raises(TypeError, match="There are bool, .* and complex128.$"):
            da.zeros(2, dtype=wrong, device=device)


class Table:
    """Indexed by keys, as the tables of pandas are; `numbers` is what NumPy is given of it."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return 2

    def __getitem__(self, key):
        raise KeyError(key)


class Convertible(Table):
    def __array__(self, dtype=None, copy=None):
        return self.numbers


def test_objects_that_numpy_converts(device):
    values = np.arange(6).reshape(2, 3)
    for given in (values, values.T, values.astype("float32"), np.zeros((0, 2)), values[0, 0]):
        x = da.asarray(Convertible(given), device=device)
        assert x.dtype == given.dtype and x.shape == given.shape and (x.asnumpy() == given).all()
    assert da.asarray(Convertible(values), dtype="float32", device=device).dtype == "float32"
    y = da.zeros((2, 3), device=device)
    y[...] = Convertible(values)
    assert (y.asnumpy() == values).all()
    with pytest.raises(TypeError, match=r"Convertible holds Python objects.*df\.to_numpy\(.float64.\)"):
        da.asarray(Convertible(values.astype(object)), device=device)
    with pytest.raises(TypeError, match=r"Convertible\.__array__\(\) gave int"):
        da.asarray(Convertible(7), device=device)
    with pytest.raises(ZeroDivisionError):
        da.asarray(type("Bad", (), {"__array__": lambda self: 1 / 0})(), device=device)


def test_what_has_keys_is_refused_with_what_to_type(device):
    for wrong in (Table(None), [Table(None)]):
        with pytest.raises(TypeError, match=r"Table has keys instead of positions.*df\.to_numpy\(\)"):
            da.asarray(wrong, device=device)


class Labelled(Convertible):
    """A column of pandas: x[0] looks for a label, whatever stands at the position 0."""

    def __init__(self, numbers):
        super().__init__(np.asarray(numbers))

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, key):
        return self.numbers[::-1][key]


class Growing(Labelled):
    """Gives one number more each time it is asked."""

    def __array__(self, dtype=None, copy=None):
        self.numbers = np.append(self.numbers, 7)
        return self.numbers


def test_what_numpy_converts_inside_a_list(device):
    numbers = [30.0, 20.0, 10.0]
    for given in ([Labelled(numbers)] * 2, (Labelled(numbers), numbers), [numbers, Labelled(numbers)]):
        assert da.asarray(given, device=device).tolist() == [numbers, numbers]
    assert da.asarray([[Labelled([1, 2])], [Labelled([3, 4])]], device=device).tolist() == [[[1, 2]], [[3, 4]]]
    assert da.asarray([Labelled([True, False])], device=device).dtype == "bool"
    assert da.asarray([Labelled([]), Labelled([])], device=device).shape == (2, 0)
    assert da.asarray([Convertible(np.float64(3)), 4], device=device).tolist() == [3, 4]
    for wrong in ([Labelled([1, 2]), Labelled([1])], [Labelled([1, 2]), 3], [3, Labelled([1, 2])]):
        with pytest.raises((TypeError, ValueError), match="differ in length|sequences of equal length"):
            da.asarray(wrong, device=device)
    with pytest.raises(ZeroDivisionError):
        da.asarray([type("Bad", (), {"__array__": lambda self: 1 / 0})()], device=device)


@pytest.mark.parametrize("start", [0, 1, 7])
def test_what_changes_while_it_is_read_is_refused(device, start):
    """Never more elements are written than there is room for."""
    for given in ([Growing([1] * start)], [[1] * (start + 2), Growing([1] * start)]):
        with pytest.raises(ValueError, match="differ in length at depth 1"):
            da.asarray(given, device=device)


def released():
    view = memoryview(b"1234")
    view.release()
    return view


def test_what_is_no_number_is_refused_by_its_name(device):
    for given, words in ((np.array(["2026-01-01"], "M8[s]"), r"datetime64.*x\.astype\(.int64.\)"),
                         (np.array([3], "m8[ns]"), r"timedelta64.*x\.astype\(.int64.\)"),
                         (np.array(["a"]), "text, not numbers"), (np.array([b"ab"]), "text, not numbers")):
        for one in (given, Convertible(given), [given], [Convertible(given)]):
            with pytest.raises(TypeError, match=words):
                da.asarray(one, device=device)
    with pytest.raises(TypeError, match="numpy.datetime64.*int64"):
        da.asarray(np.datetime64("2026", "s"), device=device)
    with pytest.raises(ValueError, match="closed|released"):
        da.asarray(released(), device=device)


def test_columns_of_pandas_in_a_list(device):
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([10.0, 20.0, 30.0]).sort_values(ascending=False)
    assert da.asarray([column, column], device=device).tolist() == [[30.0, 20.0, 10.0]] * 2
    with pytest.raises(TypeError, match="datetime64"):
        da.asarray(pandas.Series(pandas.date_range("2026-01-01", periods=2)), device=device)


def test_tables_of_pandas(device):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.5, 2.5], "b": [3.0, 4.0]}, index=["x", "y"])
    assert da.asarray(table, device=device).tolist() == [[1.5, 3.0], [2.5, 4.0]]
    assert da.asarray(table["b"], device=device).tolist() == [3.0, 4.0]
    with pytest.raises(TypeError, match="DataFrame holds Python objects"):
        da.asarray(pandas.DataFrame({"a": [1], "b": ["text"]}), device=device)


@pytest.mark.parametrize("name, hint", [
    ("ndarray", "class of arrays is Array"), ("vectorize", "drupe.Program"),
    ("resize", "tile"), ("kaiser", r"asarray\(numpy.kaiser\(x.asnumpy\(\), ...\)\)"),
    ("nonsense", "no attribute 'nonsense'$")])
def test_names_of_numpy_that_are_missing_say_what_there_is(name, hint):
    with pytest.raises(AttributeError, match=hint):
        getattr(da, name)
    assert not hasattr(da, name)


def test_what_is_advised_for_missing_names(device):
    values = np.arange(5.0)
    x = da.asarray(values, device=device)
    assert float(da.sqrt(da.mean(da.square(x - da.mean(x))))) == pytest.approx(values.std())
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


@pytest.mark.parametrize("size", [4, 1 << 16, 1 << 20])
def test_queues_are_let_go_of_when_asarray_is_over(device, size):
    if device.device_type != "cpu":
        pytest.skip("what is small is on its way to a GPU when asarray() returns")

    def use():
        queue = drupe.Queue(device)
        number = queue.number
        drupe.array.asarray(np.ones(size), queue=queue)
        return number

    number = use()
    assert number not in [queue.number for queue in drupe._engine._queues()]


def test_asarray_options(device):
    x = da.asarray([1, 2], device=device)
    assert da.asarray(x) is x and da.asarray(x, dtype="int64") is x
    assert da.asarray(x, copy=True) is not x
    assert da.asarray(x, dtype="float32").dtype == "float32"
    assert da.asarray(x, usm_type="shared").usm_type == "shared"
    assert da.asarray([1.7, -1.7], dtype="int32", device=device).tolist() == [1, -1]
    assert da.asarray(np.arange(3), dtype="float32", device=device).dtype == "float32"
    with pytest.raises(ValueError, match="copy=False"):
        da.asarray(x, dtype="float32", copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        da.asarray([1], device=device, copy=False)
    with pytest.raises(OverflowError, match="int32"):
        da.asarray([2**40], dtype="int32", device=device)


def test_makers(device):
    assert da.zeros((2, 3), device=device).tolist() == [[0.0] * 3] * 2
    assert da.ones(2, dtype="int32", device=device).tolist() == [1, 1]
    assert da.full(2, 7, device=device).dtype == "int64"
    assert da.full((), 2.5, device=device).tolist() == 2.5
    assert da.full(1, True, device=device).dtype == "bool"
    assert da.full(2, 3, dtype="float32", device=device).tolist() == [3.0, 3.0]
    assert da.empty((0, 4), device=device).shape == (0, 4)
    x = da.full((2, 2), 4, dtype="int32", device=device, usm_type="shared")
    for like, value in ((da.zeros_like(x), 0), (da.ones_like(x), 1), (da.full_like(x, 9), 9)):
        assert like.tolist() == [[value] * 2] * 2
        assert (like.dtype, like.usm_type, like.queue) == (x.dtype, "shared", x.queue)
    assert da.empty_like(x, dtype="float64").dtype == "float64"
    assert da.zeros(np.int64(3), device=device).shape == (3,)


@pytest.mark.parametrize("args", [(5,), (2, 7), (7, 2, -2), (0,), (3, 3), (5, 1), (0.5, 3), (0, 1, 0.1), (10, 0, -3),
                                  (-2**62, 2**62, 2**60), (1, 2, 5)])
def test_arange(device, args):
    x, expected = da.arange(*args, device=device), np.arange(*args)
    assert x.dtype == expected.dtype and x.shape == expected.shape
    np.testing.assert_allclose(x.asnumpy(), expected, rtol=1e-15)


def test_arange_errors(device):
    with pytest.raises(ValueError, match="step"):
        da.arange(0, 5, 0, device=device)
    with pytest.raises(TypeError, match="stop must be a number"):
        da.arange("5", device=device)
    with pytest.raises(OverflowError, match="too long"):
        da.arange(0, 1e300, 1, device=device)
    with pytest.raises(ValueError, match="finite"):
        da.arange(0, float("nan"), device=device)
    with pytest.raises(OverflowError, match="9223372036854775808 does not fit into int64"):
        da.arange(2**63 - 2, 2**63 + 1, dtype="int64", device=device)
    with pytest.raises(OverflowError, match="too long"):
        da.arange(float("inf"), device=device)
    assert da.arange(0, float("-inf"), device=device).size == 0
    assert da.arange(3, dtype="float32", device=device).dtype == "float32"


def test_linspace_errors(device):
    with pytest.raises(TypeError, match="num must be an integer, not float"):
        da.linspace(0, 1, 2.5, device=device)
    with pytest.raises(ValueError, match="num must not be negative, and -1 is"):
        da.linspace(0, 1, -1, device=device)
    with pytest.raises(TypeError, match="stop must be a number, not str"):
        da.linspace(0, "1", 3, device=device)


@pytest.mark.parametrize("args, options", [((0, 1, 5), {}), ((1, 0, 7), {}), ((0, 1, 1), {}), ((0, 1, 0), {}),
                                           ((0, 1, 4), {"endpoint": False}), ((-1, 1, 11), {"dtype": "float32"}),
                                           ((0, 9, 4), {"dtype": "int32"}), ((0.1, 0.3, 3), {})])
def test_linspace(device, args, options):
    x, expected = da.linspace(*args, device=device, **options), np.linspace(*args, **options)
    assert x.shape == expected.shape and x.dtype == expected.dtype
    np.testing.assert_allclose(x.asnumpy(), expected, rtol=1e-6)
    if args[2] > 1 and not options:
        assert x.tolist()[-1] == args[1]


def test_attributes(device):
    x = da.zeros((2, 3, 4), dtype="float32", device=device)
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes, x.strides) == ((2, 3, 4), 3, 24, 4, 96, (12, 4, 1))
    assert x.device == device and x.queue == device.queue and x.usm_type == "device"
    assert x.T.shape == (4, 3, 2) and x.T.strides == (1, 4, 12) and not x.T.is_contiguous and x.is_contiguous
    assert x.usm_data.nbytes >= x.nbytes and x.usm_data._pointer == x._pointer
    interface = x[1].__sycl_usm_array_interface__
    assert interface["shape"] == (3, 4) and interface["typestr"] == "<f4" and interface["offset"] == 12
    assert interface["strides"] == (4, 1) and interface["syclobj"] == x.queue
    assert x.__array_namespace__() is da


@pytest.mark.parametrize("kind", ["device", "shared", "host"])
def test_usm_types(device, kind):
    x = da.arange(5, device=device, usm_type=kind)
    assert x.usm_type == kind and (x + 1).usm_type == kind
    assert (x * 2).tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(ValueError, match='"device", "shared" or "host"'):
        da.zeros(1, device=device, usm_type="global")


def test_dtypes():
    for name in TYPES:
        dtype, theirs = getattr(da, name), np.dtype(name)
        assert dtype == name and dtype == theirs and theirs == dtype and dtype == theirs.type and dtype == theirs.str
        assert dtype is da.DType(name) is da.DType(theirs) is da.DType(theirs.type)
        assert dtype.name == str(dtype) == name and dtype.itemsize == theirs.itemsize and dtype.kind == theirs.kind
        assert dtype.str == theirs.str and dtype.dtype == theirs and np.zeros(2, dtype).dtype == theirs
        assert hash(dtype) == hash(name) and repr(dtype) == "drupe.array." + name
        assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert da.DType(float) == "float64" and da.DType(int) == "int64" and da.DType(bool) == "bool"
    assert da.float32 != da.float64 and da.float32 != "float128" and da.float32 != 7
    assert da.result_type("int32", da.float32) == "float64" and da.result_type(da.int32, "int64") == "int64"
    for wrong in ("float128", "g", 3, np.datetime64, np.dtype(">f4"), object()):
        with pytest.raises(TypeError, match="no data type|data type"):
            da.DType(wrong)


@pytest.mark.parametrize("source", ["bool", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("target", ["bool", "int32", "int64", "float32", "float64"])
def test_astype(device, source, target):
    values = np.array([0, 1, 2, 100]).astype(source)
    x = da.asarray(values, device=device)
    y = x.astype(target)
    assert y.dtype == target and (y.asnumpy() == values.astype(target)).all()
    assert (x.astype(target, copy=False) is x) == (source == target)
    assert da.astype(x, target).dtype == target


def test_numbers(device):
    x = da.asarray([[7]], device=device)
    assert float(x) == 7.0 and int(x) == 7 and bool(x) is True and x.item() == 7
    assert [10, 11, 12][da.asarray(2, device=device)] == 12
    assert not da.zeros((), device=device)
    assert f"{x.sum():.2f}" == "7.00" and f"{da.asarray(True, device=device)}" == "True" and f"{x}" == str(x)
    for wrong, error in ((lambda: float(da.ones(2, device=device)), TypeError),
                         (lambda: bool(da.ones(2, device=device)), ValueError),
                         (lambda: bool(da.ones(0, device=device)), ValueError),
                         (lambda: [1][da.zeros((), device=device)], TypeError),
                         (lambda: f"{x:.2f}", TypeError), (lambda: f"{da.zeros((), device=device):no}", ValueError),
                         (lambda: [1][x], TypeError), (lambda: hash(x), TypeError)):
        with pytest.raises(error):
            wrong()


def test_iteration(device):
    x = da.asarray([[1, 2], [3, 4], [5, 6]], device=device)
    assert len(x) == 3 and [row.tolist() for row in x] == [[1, 2], [3, 4], [5, 6]]
    first, second, third = x
    assert third.tolist() == [5, 6]
    scalar = da.asarray(1, device=device)
    for wrong in (lambda: len(scalar), lambda: list(scalar)):
        with pytest.raises(TypeError):
            wrong()


INDICES = [0, -1, (1, 2), (0, -1, 3), slice(None), slice(1, None), slice(None, None, -1), (slice(None), 1),
           (Ellipsis, 0), (0, Ellipsis), (Ellipsis, slice(1, 3)), None, (None, Ellipsis, None), (slice(0, 1), None, 2),
           (slice(None), slice(None), slice(3, None, -2)), slice(5, 1), (slice(1, 1), 0), (), Ellipsis,
           (np.int64(1), slice(np.int32(1), None)), (1, 2, 3), (0, None, slice(None, None, 2), ...)]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing(device, index):
    expected = np.arange(2 * 3 * 4, dtype=np.int32).reshape(2, 3, 4)
    x = da.asarray(expected, device=device)
    view = x[index]
    assert view.shape == expected[index].shape and (view.asnumpy() == expected[index]).all()
    for value in (5, -2.5, True):
        x[index] = value
        expected[index] = value
        assert (x.asnumpy() == expected).all()
    x[index] = view * 0 + 3
    expected[index] = 3
    assert (x.asnumpy() == expected).all()


def test_views_share_elements(device):
    x = da.zeros((3, 4), device=device)
    x[1][2:] = 5
    x.T[0] = 1
    x.reshape(12)[3] = 9
    assert x.tolist() == [[1, 0, 0, 9], [1, 0, 5, 5], [1, 0, 0, 0]]


def test_setitem_values(device):
    x = da.zeros((2, 3), dtype="float32", device=device)
    x[...] = [1, 2, 3]
    assert x.tolist() == [[1, 2, 3]] * 2
    x[0] = np.array([4.0, 5.0, 6.0])
    x[:, 0] = da.asarray([7, 8], device=device)
    assert x.tolist() == [[7, 5, 6], [8, 2, 3]]
    x[:] = x[::-1]
    assert x.tolist() == [[8, 2, 3], [7, 5, 6]]
    for one in drupe.devices():
        x[1] = da.asarray([0.5, 1.5, 2.5], device=one)
        assert x[1].tolist() == [0.5, 1.5, 2.5]


@pytest.mark.parametrize("index, text", [
    (2, "out of bounds for axis 0 with size 2"), ((0, -4), "out of bounds for axis 1 with size 3"),
    ((0, 0, 0), "too many indices"), ((..., ...), "one ellipsis"), ("a", "not with str"), (1.0, "not with float"),
    ([0.5, 1], "of float64"), (np.array([True, False, True]), "axis 0 has 2 elements"), ({}, "not with dict")])
def test_index_errors(device, index, text):
    x = da.zeros((2, 3), device=device)
    with pytest.raises(IndexError, match=text):
        x[index]
    with pytest.raises(IndexError, match=text):
        x[index] = 1
    assert float(x.sum()) == 0


def test_setitem_errors(device):
    x = da.zeros((2, 3), device=device)
    with pytest.raises(ValueError, match="broadcast"):
        x[...] = [1, 2]
    with pytest.raises(TypeError, match="cannot be deleted"):
        del x[0]
    with pytest.raises(ValueError):
        x[:, :, None][0] = da.zeros((5, 5), device=device)
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        x[::0]
    with pytest.raises(TypeError, match="numbers"):
        x[0] = "abc"


def test_reshape(device):
    x = da.arange(12, device=device)
    for shape in ((3, 4), (2, -1), (-1,), (12, 1, 1), 12, -1):
        assert (x.reshape(shape).asnumpy() == np.arange(12).reshape(shape)).all()
    assert x.reshape(3, 4).shape == (3, 4)
    turned = x.reshape(3, 4).T
    assert (turned.reshape(12).asnumpy() == np.arange(12).reshape(3, 4).T.reshape(12)).all()
    assert da.reshape(x, (4, 3)).shape == (4, 3)
    for wrong in ((5,), (-1, -1), (-2, 6), (0, -1), (7, -1)):
        with pytest.raises(ValueError):
            x.reshape(wrong)
    assert da.zeros((0, 3), device=device).reshape(0).shape == (0,)


def test_rearranging(device):
    values = np.arange(6).reshape(1, 2, 3)
    x = da.asarray(values, device=device)
    assert (da.permute_dims(x, (2, 0, 1)).asnumpy() == values.transpose(2, 0, 1)).all()
    assert (da.broadcast_to(x, (4, 2, 3)).asnumpy() == np.broadcast_to(values, (4, 2, 3))).all()
    assert (da.matrix_transpose(x).asnumpy() == values.swapaxes(1, 2)).all()
    assert da.expand_dims(x, axis=-1).shape == (1, 2, 3, 1) and da.squeeze(x, axis=0).shape == (2, 3)
    assert (da.concat([x, x], axis=1).asnumpy() == np.concatenate([values, values], 1)).all()
    assert (da.concat([x, x], axis=None).asnumpy() == np.concatenate([values, values], None)).all()
    assert (da.stack([x[0], x[0] + 1]).asnumpy() == np.stack([values[0], values[0] + 1])).all()
    assert da.concat([x, x.astype("float64")]).dtype == "float64"
    for wrong in (lambda: da.permute_dims(x, (0, 1)), lambda: da.permute_dims(x, (0, 0, 1)),
                  lambda: da.broadcast_to(x, (2, 2)), lambda: da.squeeze(x, axis=1),
                  lambda: da.concat([x, x[:, :1]], axis=2), lambda: da.concat([])):
        with pytest.raises((ValueError, IndexError, drupe.DeviceError)):
            wrong()


def test_copies(device):
    x = da.arange(4, device=device)
    for other in (x.copy(), copy.copy(x), copy.deepcopy(x), x + 0):
        other[0] = 99
    assert x.tolist() == [0, 1, 2, 3]


def test_to_device(device):
    x = da.arange(6, dtype="float32", device=device).reshape(2, 3)
    assert x.to_device(device) is x and x.to_device(x.queue) is x
    for one in drupe.devices():
        y = x.to_device(one)
        assert y.device == one and y.dtype == x.dtype and y.tolist() == x.tolist()
        assert x.T.to_device(one.filter_string).tolist() == x.T.tolist()
    own = drupe.Queue(device)
    y = da.to_device(x, own)
    assert y.queue == own and (y + y).queue == own


def test_placement(device):
    x = da.ones(3, device=device)
    y = da.ones(3, queue=drupe.Queue(device))
    for wrong in (lambda: x + y, lambda: da.add(x, y), lambda: x @ y, lambda: da.concat([x, y])):
        with pytest.raises(drupe.ExecutionPlacementError, match="to_device"):
            wrong()
    assert (x + y.to_device(x.queue)).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="either device or queue"):
        da.zeros(1, device=device, queue=device.queue)
    with pytest.raises(drupe.DeviceNotFoundError, match="There are"):
        da.zeros(1, device="host:gpu")


def test_out_of_memory(device):
    with pytest.raises(drupe.DeviceMemoryError, match="bytes"):
        da.zeros(1 << 48, device=device)
    with pytest.raises((MemoryError, ValueError)):
        da.zeros((1 << 40, 1 << 40), device=device)
    assert da.zeros(3, device=device).tolist() == [0, 0, 0]


@pytest.mark.parametrize("call, text", [
    (lambda: da.zeros(), "missing required argument 'shape'"),
    (lambda: da.zeros(2, color=1), "keyword argument 'color'"),
    (lambda: da.zeros(-1), "negative"), (lambda: da.zeros("2"), "shape must be"),
    (lambda: da.zeros((1,) * 33), "at most 32"),
    (lambda: da.zeros(2, "float32", "host"), "at most 2 positional"), (lambda: da.full(2), "fill_value"),
    (lambda: da.full(2, "x"), "fill_value must be a number"), (lambda: da.zeros_like([1]), "asarray"),
    (lambda: da.ones(2, shape=3), "multiple values for argument 'shape'"), (lambda: da.asnumpy([1]), "not list")])
def test_maker_errors(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 3), (2, 2, 2), (1000,), (2000,), (100, 100), (2, 2, 400),
                                   (7, 200), (5, 8, 60)])
@pytest.mark.parametrize("dtype", ["int64", "float32", "bool", "uint8", "complex64"])
def test_text_is_numpys(device, shape, dtype):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 17 - (8 if dtype != "uint8" else 0)
    values = (values * (1 - 0.5j) if dtype == "complex64" else values).astype(dtype)
    x = da.asarray(values, device=device)
    assert str(x) == np.array2string(values, separator=", ")
    text = repr(x)
    assert text.startswith("array(") and text.endswith(f"dtype={dtype}, device='{device.filter_string}')")
    if dtype == "complex64":
        return  # whose lines NumPy breaks earlier, for the type behind them
    numbers = repr(values)
    body = numbers[len("array("):numbers.rindex("]") + 1] if shape and values.size else ""
    assert body in text


def test_numpy_is_kept_out(device):
    x, theirs = da.ones(3, device=device), np.ones(3)
    for wrong in (lambda: x + theirs, lambda: theirs + x, lambda: x * [1, 2, 3], lambda: x @ theirs,
                  lambda: theirs == x, lambda: da.add(x, theirs), lambda: np.add(theirs, x), lambda: da.sum(theirs)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="drupe.array.asarray"):
        x + theirs
    assert (np.float32(2) * x).tolist() == [2, 2, 2] and (x + np.int64(1)).tolist() == [2, 2, 2]
    assert (x == None) is False and (x != "text") is True  # noqa: E711: falls back to identity


def test_operations_have_signatures():
    assert str(inspect.signature(da.add)) == "(x1, x2, /, *, out=None)"
    assert str(inspect.signature(da.exp)) == "(x, /, *, out=None)"
    assert str(inspect.signature(da.sum)) == "(x, /, axis=None, *, dtype=None, keepdims=False, out=None)"
    assert str(inspect.signature(da.max)) == "(x, /, axis=None, *, keepdims=False, out=None)"
