"""How new arrays lie in memory, on which queue they are, and products written into arrays that are there."""
import inspect

import numpy as np
import pytest

import drupe
import drupe.array as da

SHAPES = ((), (4,), (2, 3), (3, 1, 4), (0, 3), (2, 3, 4))
RAN = np.arange(12.).reshape(3, 4)


def alike(ours, theirs):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype.name
    assert ours.flags.c_contiguous == theirs.flags.c_contiguous
    assert ours.flags.f_contiguous == theirs.flags.f_contiguous
    assert (ours.asnumpy() == theirs).all()


@pytest.mark.parametrize("order", ["C", "F", "c", "f", "A", "K", None])
@pytest.mark.parametrize("shape", SHAPES)
def test_makers_have_numpys_order(device, shape, order):
    numpys = "C" if order in ("A", "K", None) else order
    alike(da.zeros(shape, order=order, device=device), np.zeros(shape, order=numpys))
    alike(da.ones(shape, "int32", order=order, device=device), np.ones(shape, "int32", order=numpys))
    alike(da.full(shape, 7, order=order, device=device), np.full(shape, 7, "int64", order=numpys))
    empty, wanted = da.empty(shape, order=order, device=device), np.empty(shape, order=numpys)
    assert empty.shape == shape and empty.flags.f_contiguous == wanted.flags.f_contiguous


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("turned", [False, True])
def test_likes_have_numpys_order(device, turned, order):
    theirs = RAN.T if turned else RAN
    ours = da.asarray(RAN, device=device)
    ours = ours.T if turned else ours
    alike(da.zeros_like(ours, order=order), np.zeros_like(theirs, order=order))
    alike(da.ones_like(ours, order=order), np.ones_like(theirs, order=order))
    alike(da.full_like(ours, 3, order=order), np.full_like(theirs, 3, order=order))
    assert da.isfortran(da.empty_like(ours, order=order)) == np.isfortran(np.empty_like(theirs, order=order))
    alike(da.copy(ours, order), np.copy(theirs, order))
    alike(da.array(ours, order=order), np.array(theirs, order=order))
    alike(da.array(ours, "float32", order=order), np.array(theirs, "float32", order=order))


def test_likes_of_another_shape(device):
    x = da.asarray(RAN, "float32", device=device)
    theirs = RAN.astype("float32")
    alike(da.zeros_like(x, shape=(2, 5)), np.zeros_like(theirs, shape=(2, 5)))
    alike(da.full_like(x, 3, shape=7), np.full_like(theirs, 3, shape=7))
    alike(da.ones_like(x, shape=(2, 2, 3), order="F"), np.ones_like(theirs, shape=(2, 2, 3), order="F"))
    assert da.empty_like(x, shape=()).shape == () and da.empty_like(x, shape=None).shape == x.shape
    with pytest.raises(ValueError, match="negative"):
        da.ones_like(x, shape=-1)


def test_what_lies_right_is_not_copied(device):
    x = da.asarray(RAN, device=device)
    for order, same in (("C", x), ("K", x), ("F", x.T), ("A", x.T), (None, x.T)):
        assert da.asarray(same, order=order) is same
        assert da.asanyarray(same, order=order, copy=False) is same
    turned = da.asfortranarray(x)
    assert da.asfortranarray(turned) is turned and da.isfortran(turned) and not da.isfortran(x)
    assert (turned.asnumpy() == RAN).all()
    alike(da.asarray(RAN.T, order="F", device=device), np.asarray(RAN.T, order="F"))
    alike(da.asarray(x[::2, ::2], order="F"), np.asarray(RAN[::2, ::2], order="F"))
    alike(da.asarray(x.T, order="C"), np.asarray(RAN.T, order="C"))
    with pytest.raises(ValueError, match="needs a copy"):
        da.asarray(x, order="F", copy=False)
    alike(da.eye(3, 4, order="F", device=device), np.eye(3, 4, order="F"))


def test_columns_compute_as_rows_do(device):
    """What takes arrays takes those that lie by columns, and writes into them."""
    x, y = (da.asarray(RAN, order="F", device=device) for _ in range(2))
    assert ((x + y).asnumpy() == 2 * RAN).all() and ((x @ y.T).asnumpy() == RAN @ RAN.T).all()
    assert (da.sum(x, axis=0).asnumpy() == RAN.sum(0)).all()
    assert (da.sort(-x, axis=1).asnumpy() == np.sort(-RAN)).all()
    x += 1
    x[1:, ::2] = 0
    twin = RAN + 1
    twin[1:, ::2] = 0
    assert da.isfortran(x) and (x.asnumpy() == twin).all() and x.tolist() == twin.tolist()


@pytest.mark.parametrize("order", ["X", "", "CF", 5, b"C"])
def test_other_orders_are_refused(order):
    x = da.zeros((2, 2))
    for make in (lambda: da.zeros(2, order=order), lambda: da.ones_like(x, order=order),
                 lambda: da.asarray(x, order=order), lambda: da.copy(x, order), lambda: da.array([1], order=order)):
        with pytest.raises(ValueError, match="order"):
            make()


# --- Queues ---------------------------------------------------------------------------------------------------------

ARGUMENTS = {"arange": (3,), "array": ([1],), "asanyarray": ([1],), "asarray": ([1],), "ascontiguousarray": ([1],),
             "asfortranarray": ([1],), "diag_indices": (3,), "empty": (3,), "empty_like": (da.zeros(2),), "eye": (3,),
             "fft.fftfreq": (4,), "fft.rfftfreq": (4,), "from_numpy": (RAN,), "frombuffer": (bytes(8),),
             "fromfunction": (lambda i: i, (3,)), "fromiter": ([1, 2], "int64"), "full": (3, 1),
             "full_like": (da.zeros(2), 1), "geomspace": (1, 8, 4), "identity": (3,), "indices": ((2, 3),),
             "linspace": (0, 1, 3), "logspace": (0, 1, 3), "ones": (3,), "ones_like": (da.zeros(2),),
             "random.default_rng": (1,), "tri": (3,), "tril_indices": (3,), "triu_indices": (3,), "zeros": (3,),
             "zeros_like": (da.zeros(2),)}


def function(name):
    part, _, last = name.rpartition(".")
    return getattr(getattr(da, part) if part else da, last)


def queue_of(made):
    return queue_of(made[0]) if isinstance(made, tuple) else made.queue


@pytest.mark.parametrize("name", ARGUMENTS)
def test_makers_take_a_queue_under_both_names(device, name):
    queue = drupe.Queue(device)
    for keyword in ("queue", "sycl_queue"):
        assert queue_of(function(name)(*ARGUMENTS[name], **{keyword: queue})) == queue


def test_every_maker_is_tested():
    made = {name for name in da.__all__ if callable(getattr(da, name)) and not isinstance(getattr(da, name), type)
            and "device" in inspect.signature(getattr(da, name)).parameters}
    made |= {f"fft.{name}" for name in da.fft.__all__
             if "device" in inspect.signature(getattr(da.fft, name)).parameters}
    assert made - {"astype", "to_device", "from_dlpack", "providers"} == set(ARGUMENTS) - {"random.default_rng"}


# --- matmul(out=) ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "float16"])
@pytest.mark.parametrize("shapes", [((3, 4), (4, 2)), ((4,), (4,)), ((2, 3, 4), (4, 2)), ((3, 4), (4,)),
                                    ((3, 0), (0, 2)), ((0, 4), (4, 2)), ((1, 5, 3), (4, 3, 2))])
def test_products_into_arrays(device, shapes, dtype):
    a, b = (np.arange(np.prod(shape)).reshape(shape).astype(dtype) for shape in shapes)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    wanted = np.matmul(a, b)
    for out in (da.full(wanted.shape, 9, dtype, device=device),
                da.full(wanted.shape, 9, dtype, device=device, order="F"),
                da.full(wanted.shape, 9, "complex64", device=device)):
        assert da.matmul(x, y, out=out) is out
        assert (out.asnumpy() == wanted).all()
    assert np.matmul(x, y, out=out) is out


def test_products_over_their_operands(device):
    a = np.arange(9.).reshape(3, 3)
    x = da.asarray(a, device=device)
    assert da.matmul(x, x, out=x) is x and (x.asnumpy() == a @ a).all()
    whole = da.zeros((6, 4), device=device)
    whole[:3, :3] = da.asarray(a, device=device)
    da.matmul(whole[:3, :3], whole[:3, :3], out=whole[1:4, 1:])
    assert (whole[1:4, 1:].asnumpy() == a @ a).all() and (whole[0, :3].asnumpy() == a[0]).all()


@pytest.mark.parametrize("out, error, text", [
    (lambda q: da.zeros((3, 2), queue=q), ValueError, "does not fit an output of shape"),
    (lambda q: da.zeros((3, 3), "int32", queue=q), ValueError, "cannot be stored in int32"),
    (lambda q: da.broadcast_to(da.zeros(3, queue=q), (3, 3)), ValueError, "broadcast view"),
    (lambda q: da.zeros((3, 3), queue=drupe.Queue(q.device)), drupe.ExecutionPlacementError, "different queues"),
    (lambda q: np.zeros((3, 3)), TypeError, "out must be")])
def test_products_into_what_does_not_fit(queue, out, error, text):
    x = da.ones((3, 3), queue=queue)
    with pytest.raises(error, match=text):
        da.matmul(x, x, out=out(queue))
