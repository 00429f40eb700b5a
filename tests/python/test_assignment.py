"""Elements of NumPy arrays and other buffers that are assigned: straight to where they belong where that can be, else
by an array of their own, with the same outcome."""
import threading

import numpy as np
import pytest

import drupe.array as da

SIZES = (1, 5, 1000, 50_000, 400_000)  # elements of 8 bytes: staged, near, and too large for either
TYPES = ("bool", "int8", "uint16", "int32", "int64", "float32", "float64", "complex64")


def made(count, dtype):
    numbers = np.arange(count) % 251
    return (numbers % 3 == 0) if dtype == "bool" else numbers.astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_whole_arrays(device, dtype, size):
    source = made(size, dtype)
    x = da.zeros(size, dtype=dtype, device=device)
    x[...] = source
    np.testing.assert_array_equal(x.asnumpy(), source)
    kept = source.copy()
    x[:] = source
    source[...] = 0  # at once: what was assigned is there, or has been kept
    np.testing.assert_array_equal(x.asnumpy(), kept)
    assert (x == da.asarray(kept, device=device)).all()


@pytest.mark.parametrize("size", (6, 600, 60_000))
def test_parts_and_other_layouts(device, size):
    rows = made(4 * size, "float64").reshape(4, size)
    for source in (rows, np.asfortranarray(rows), rows[:, ::-1], rows.astype("float32"), rows[:, :0]):
        x, expected = da.zeros((4, source.shape[1]), device=device), np.zeros((4, source.shape[1]))
        x[...], expected[...] = source, source
        np.testing.assert_array_equal(x.asnumpy(), expected)
    x, expected = da.zeros((4, size), device=device), np.zeros((4, size))
    everything = slice(None)
    for key in (1, slice(2, 4), (everything, slice(None, None, 2)), (everything, slice(1, 3)),
                (3, slice(None, None, -1)), slice(2, 2)):
        x[key], expected[key] = rows[key] + 1, rows[key] + 1
        np.testing.assert_array_equal(x.asnumpy(), expected)
    x[...], expected[...] = rows[2], rows[2]  # broadcast
    x[0], expected[0] = rows[:1, :1], rows[:1, :1]
    np.testing.assert_array_equal(x.asnumpy(), expected)
    with pytest.raises(ValueError, match="shape|broadcast"):
        x[...] = rows[:3]
    with pytest.raises(ValueError, match="shape|broadcast"):
        x[1] = np.zeros(size + 1)
    x.T[...], expected.T[...] = rows.T * 3, rows.T * 3
    np.testing.assert_array_equal(x.asnumpy(), expected)


@pytest.mark.parametrize("size", SIZES)
def test_bools_are_zero_or_one(device, size):
    odd = np.full(size, 2, "uint8").view("bool")
    x = da.zeros(size, dtype="bool", device=device)
    x[...] = odd
    assert set(np.asarray(x.asnumpy()).view("uint8").tolist()) == {1}
    assert int(da.sum(x.astype("int32"))) == size


@pytest.mark.parametrize("size", SIZES)
def test_other_buffers(device, size, tmp_path):
    whole = made(size, "float64")
    x = da.zeros(size, device=device)
    mapped = np.memmap(tmp_path / "values", "float64", "w+", shape=size)
    mapped[:] = whole
    read_only = whole.copy()
    read_only.flags.writeable = False
    cast = memoryview(bytearray(whole.tobytes())).cast("d")
    for source in (mapped, read_only, memoryview(whole), cast, whole.tolist()):
        x[...] = 0
        x[...] = source
        np.testing.assert_array_equal(x.asnumpy(), whole)
    with pytest.raises(TypeError):
        x[...] = whole.tobytes()
    with pytest.raises(TypeError):
        x[...] = np.zeros(size, "M8[s]")
    with pytest.raises(TypeError):
        x[...] = np.zeros(size, "S3")


@pytest.mark.parametrize("size", SIZES[1:])
def test_views_of_the_same_memory(device, size):
    """np.asarray() shows the array itself where the host can reach its memory."""
    x = da.asarray(np.arange(float(size)), device=device)
    try:
        seen = np.asarray(x)
    except (TypeError, ValueError, BufferError):
        pytest.skip("the host does not reach this memory")
    shared = np.shares_memory(seen, np.asarray(x))
    x[1:] = seen[:-1]
    expected = np.arange(float(size))
    expected[1:] = np.arange(float(size))[:-1]
    np.testing.assert_array_equal(x.asnumpy(), expected)
    x[...] = np.asarray(x)
    np.testing.assert_array_equal(x.asnumpy(), expected)
    if shared:
        other = da.zeros(size, device=device)
        other[...] = np.asarray(x)
        np.testing.assert_array_equal(other.asnumpy(), expected)


@pytest.mark.parametrize("size", SIZES)
def test_behind_work_in_flight_and_before_what_reads(device, size):
    gate, source = threading.Event(), made(size, "float64")
    x = da.ones(size, device=device)
    queue = x.sycl_queue
    queue.host_task(gate.wait)
    before = x + 1  # reads x as it was
    queue.flush()
    submitted = queue.pending

    def opened():  # a large assignment waits for what is before it
        while queue.pending == submitted:
            pass
        gate.set()

    opener = threading.Thread(target=opened)
    opener.start()
    x[...] = source
    opener.join()
    after = x + 1
    assert (before.asnumpy() == 2).all()
    np.testing.assert_array_equal(after.asnumpy(), source + 1)
    np.testing.assert_array_equal(x.asnumpy(), source)


def test_pending_expressions_keep_what_they_read(device):
    """An expression that is held back reads the elements that were there when it was written."""
    x = da.asarray(np.arange(100_000.0), device=device)
    y = x * 2
    z = (x + y) * 0.5
    x[...] = np.zeros(100_000)
    np.testing.assert_array_equal(y.asnumpy(), np.arange(100_000.0) * 2)
    np.testing.assert_array_equal(z.asnumpy(), np.arange(100_000.0) * 1.5)
    assert (x.asnumpy() == 0).all()
