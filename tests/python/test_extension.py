"""drupe/ext.h: extension modules of others, the example of notebooks/extension and one that calls every function."""
import gc
import pathlib
import re
import sys

import numpy as np
import pytest

import drupe
import drupe.array as da
import drupe.memory
from drupe import ext

HERE = pathlib.Path(__file__).parent
EXAMPLE = HERE.parent.parent / "notebooks/extension/gemv.c"


@pytest.fixture(scope="module")
def extension():
    return ext.build(HERE / "extension.c", libraries=["dl"])


@pytest.fixture(scope="module")
def gemv():
    return ext.build(EXAMPLE, libraries=["openblas"]).gemv


def operands(device, usm_type=None):
    rng = np.random.default_rng(5)
    a, x = rng.random((30, 20)), rng.random(20)
    place = {"device": device} if usm_type is None else {"device": device, "usm_type": usm_type}
    return a @ x, [da.asarray(each, **place) for each in (a, x, np.zeros(30))]


def test_the_example_is_short():
    assert sum(bool(line.strip()) for line in EXAMPLE.read_text().splitlines()) < 40


@pytest.mark.parametrize("place", [("host", None), ("opencl:cpu", "shared")])
def test_gemv(gemv, place):
    try:
        expected, (a, x, y) = operands(*place)
    except drupe.DeviceNotFoundError:
        pytest.skip("no OpenCL CPU on this machine")
    gemv(a, x, y)  # not waited for: the queue keeps the order
    np.testing.assert_allclose(np.array((y + y).tolist()), 2 * expected)


def test_gemv_refuses(gemv, opencl):
    expected, (a, x, y) = operands("host")
    for arguments, error, text in [
            ((a, x), TypeError, "three arrays"),
            ((a, x, a), ValueError, "y must have 1 dimensions, not 2"),
            ((np.ones((30, 20)), x, y), TypeError, "a must be a drupe.array.Array or USM memory, not numpy.ndarray"),
            ((a, x, da.zeros(29, device="host")), ValueError, "y = a @ x needs"),
            ((a, da.zeros(20, dtype="float32", device="host"), y), TypeError, "'f8', not 'f4'"),
            ((a[:, ::2], x[:10], y), ValueError, "a is a strided view"),
            ((da.zeros((30, 20), device=opencl), x, y), ValueError, "a lies in device memory")]:
        with pytest.raises(error, match=re.escape(text)):
            gemv(*arguments)


def test_arguments_live_until_the_work_is_done(extension):
    queue = drupe.Queue("host")
    before = drupe._engine._event_open("gate")
    kept = np.zeros(3)
    count, released = sys.getrefcount(kept), extension.released()
    event = extension.failing(queue, "as planned", kept, [before])
    assert sys.getrefcount(kept) == count + 1
    before._finish()
    with pytest.raises(drupe.OutOfRangeError, match="as planned"):
        event.wait()
    gc.collect()
    queue.wait()
    assert sys.getrefcount(kept) == count and extension.released() == released + 1


def test_a_call_that_fails_releases_too(extension):
    released = extension.released()
    with pytest.raises(TypeError):
        extension.failing("host", "never runs", None, "no event")
    assert extension.released() == released + 1


def test_about(extension):
    x = da.zeros((4, 6), dtype="float32", device="host")[1:, ::2]
    about = extension.about(x)
    assert (about["shape"], about["strides"]) == ((3, 3), (6, 2))
    assert (about["type"], about["itemsize"], about["size"], about["backend"]) == ("f", 4, 9, "host")
    memory = drupe.memory.MemoryUSMShared(10, queue=drupe.queue("host"))
    about = extension.about(memory)
    assert (about["shape"], about["type"], about["kind"], about["queue"]) == ((10,), "u", 1, drupe.queue("host"))
    assert extension.about(da.zeros(2, dtype="bool", device="host"))["type"] == "b"


def test_like(extension):
    assert extension.like(da.zeros((2, 3), dtype="float32", device="host")) is True
    assert extension.like(da.zeros((0, 3), dtype="float32", device="host")) is True
    with pytest.raises(ValueError, match="x must have 2 dimensions, not 1"):
        extension.like(da.zeros(3, dtype="float32", device="host"))


def test_new_and_copy(extension, device):
    x = da.asarray(np.arange(12.0).reshape(3, 4), device=device)
    twin = extension.twin(x)
    assert twin.tolist() == x.tolist() and twin.dtype == x.dtype
    with pytest.raises(ValueError, match="no arrays of type 'c' with 32 bytes"):
        extension.wrong_type(x)


def test_native_work_keeps_the_order(extension, opencl):
    memory = drupe.memory.MemoryUSMShared(1000, queue=drupe.Queue(opencl))
    queue = memory.queue if hasattr(memory, "queue") else memory.sycl_queue
    queue.fill(memory, 1)
    extension.native_fill(memory, 7).wait()
    assert bytes(memory.copy_to_host()) == b"\7" * 1000


def test_a_queue_without_a_driver_says_so(extension):
    memory = drupe.memory.MemoryUSMShared(10, queue=drupe.Queue("host"))
    with pytest.raises(drupe.UnsupportedError, match="queue a host function instead"):
        extension.native_fill(memory, 7)


def test_errors(extension):
    with pytest.raises(drupe.BusyError, match="set by an extension"):
        extension.last_error()


def test_build_tells_what_is_wrong():
    with pytest.raises(RuntimeError, match="broken.c.* cannot be compiled:\n(.|\n)*error:"):
        ext.build("int broken(\n", name="broken")
    with pytest.raises(TypeError, match="needs name="):
        ext.build("int x;\nint y;")
    with pytest.raises(FileNotFoundError):
        ext.build("absent.c")


def test_another_version_is_refused():
    header = (pathlib.Path(ext.get_include()) / "drupe/ext.h").read_text()
    newer = re.sub(r"#define DRUPE_EXT_VERSION +1u", "#define DRUPE_EXT_VERSION 9u", header)
    text = (HERE / "extension.c").read_text().replace("#include <drupe/ext.h>", newer)
    with pytest.raises(ImportError, match="compiled for another version of drupe"):
        ext.build(text, name="extension", libraries=["dl"])


def test_built_once_and_again_when_changed(gemv):
    assert ext.build(EXAMPLE, libraries=["openblas"]).gemv is gemv
    changed = ext.build(EXAMPLE.read_text() + "\n/* changed */\n", name="gemv", libraries=["openblas"])
    assert changed.gemv is not gemv
