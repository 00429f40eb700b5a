"""Pools: figures, limits, overwriting; who holds memory; memory between processes."""
import inspect
import pickle
import sys

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import memory as dm

MIB = 1 << 20


@pytest.fixture
def pool(device):
    pool = dm.pool(device)
    device.queue.wait()
    pool.trim()
    yield pool
    pool.limit = None
    pool.wipe = None


def line_of_caller():
    return inspect.currentframe().f_back.f_lineno


# --- Pools -----------------------------------------------------------------------------------------------------

def test_figures_by_kind(pool, device):
    before = pool.by_kind
    held = dm.MemoryUSMHost(MIB, device=device)
    now = pool.by_kind
    assert now["host"]["used"] >= before["host"]["used"] + MIB
    assert now["host"]["count"] == before["host"]["count"] + 1
    assert now["device"] == before["device"]
    assert pool.used == sum(one["used"] for one in now.values())
    assert pool.reserved == sum(one["reserved"] for one in now.values())
    del held
    assert pool.by_kind["host"]["used"] == before["host"]["used"]
    assert pool.peak >= pool.used + MIB
    pool.reset_peak()
    assert pool.peak == pool.used


def test_limit(pool, device):
    everything = pool.limit
    pool.limit = pool.reserved + 4 * MIB
    held = dm.MemoryUSMDevice(3 * MIB, device=device)
    with pytest.raises(drupe.DeviceMemoryError, match="largest holders: 3.00 MiB") as caught:
        dm.MemoryUSMDevice(2 * MIB, device=device)
    assert "limit is" in str(caught.value) and "2.00 MiB" in str(caught.value)
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(drupe.DeviceMemoryError):
        da.zeros(1 << 18, dtype="float64", device=device)
    del held
    assert dm.MemoryUSMDevice(4 * MIB, device=device).nbytes == 4 * MIB
    pool.limit = None
    assert pool.limit == everything
    for wrong in (0, -1):
        with pytest.raises(ValueError):
            pool.limit = wrong


def test_limit_makes_room(pool, device):
    """Arrays that only queued work holds do not stand in the way of the next one."""
    pool.limit = pool.reserved + 24 * MIB
    x = da.ones(1 << 20, dtype="float64", device=device)
    for _ in range(30):
        x = x * 1.0
    assert float(x[7]) == 1.0


def test_limit_from_the_environment(fresh):
    text = """
        import drupe, drupe.memory as dm
        pool = dm.pool("host")
        print(pool.limit, sorted(pool.wipe))
        try:
            dm.MemoryUSMDevice(3 << 20, device="host")
        except drupe.DeviceMemoryError as problem:
            print("refused", dm.MemoryUSMDevice(1 << 20, device="host").nbytes)
        print(pool.reserved)
    """
    result = fresh(text, DRUPE_MEMORY_LIMIT="opencl=1G,host=2M", DRUPE_MEMORY_WIPE="alloc,free",
                   DRUPE_MEMORY_KEEP="0")
    assert result.stdout.split() == ["2097152", "['alloc',", "'free']", "refused", "1048576", "0"], result.stderr
    total = int(fresh(text).stdout.split()[0])
    half = int(fresh(text, DRUPE_MEMORY_LIMIT="opencl=1G, host=50%").stdout.split()[0])
    assert abs(half / total - 0.5) < 0.1


@pytest.mark.parametrize("name, value, wrong", [("DRUPE_MEMORY_LIMIT", "nonsense", "nonsense"), (
    "DRUPE_MEMORY_LIMIT", "host=2G,opencl=4 GB", "4 GB"), ("DRUPE_MEMORY_KEEP", "-1", "-1")])
def test_amounts_that_cannot_be_read_are_told(fresh, name, value, wrong):
    """They are there to protect others on the machine: to run without is no answer."""
    for text in ("drupe.devices()", "drupe.array.ones(3)"):
        result = fresh("import drupe, drupe.array; " + text, **{name: value})
        assert f"InvalidArgumentError: {name}={value} cannot be understood: '{wrong}' is no amount" in result.stderr


@pytest.mark.parametrize("when", ["alloc", "free"])
def test_wipe(pool, device, when):
    pool.wipe = when
    assert pool.wipe == {when}
    for kind in (dm.MemoryUSMDevice, dm.MemoryUSMShared, dm.MemoryUSMHost):
        memory = kind(b"secret" * 1000, device=device)
        address = memory._pointer
        del memory
        again = kind(6000, device=device)
        assert again._pointer == address and again.tobytes() == bytes(6000)
    with pytest.raises(ValueError, match="sometimes"):
        pool.wipe = {"sometimes"}


def test_cost_of_an_allocation_leaves_nothing(pool, device):
    queue = drupe.Queue(device)
    used, references = pool.used, sys.getrefcount(queue)
    for size in range(1, 3000, 7):
        dm.MemoryUSMDevice(size, queue=queue)
    assert pool.used == used and sys.getrefcount(queue) == references


# --- Holders ---------------------------------------------------------------------------------------------------

def test_report_names_the_line(device):
    first = dm.MemoryUSMDevice(9 * MIB, device=device)
    line = line_of_caller() - 1
    several = [dm.MemoryUSMShared(2 * MIB, device=device) for _ in range(3)]
    report = dm.report(device)
    mine = [one for one in report if one.file == __file__]
    assert mine[0].line == line and mine[0].nbytes == first.nbytes and mine[0].count == 1
    assert mine[0].kind == "device" and mine[0].device == device.filter_string
    assert mine[1].nbytes == 6 * MIB and mine[1].count == 3 and mine[1].kind == "shared"
    assert mine[0].function == "test_report_names_the_line" and f"line {line}" in mine[0].place
    assert [one.nbytes for one in report] == sorted((one.nbytes for one in report), reverse=True)
    assert "9.00 MiB" in str(report) and "allocated at" in repr(report)
    assert len([one for one in dm.report(each=True) if one.file == __file__ and one.nbytes == 2 * MIB]) == 3
    del first, several
    assert not [one for one in dm.report(device) if one.file == __file__]


def test_report_names_the_line_of_an_array(device):
    x = da.zeros(MIB, dtype="float32", device=device)
    line = line_of_caller() - 1
    assert [one.line for one in dm.report(device) if one.file == __file__].count(line) == 1
    assert x.size == MIB


def test_memory_error_names_the_line(pool, device):
    pool.limit = pool.reserved + 4 * MIB
    held = dm.MemoryUSMDevice(3 * MIB, device=device)
    line = line_of_caller() - 1
    with pytest.raises(drupe.DeviceMemoryError, match=rf"3\.00 MiB \(device, line {line} of test_memory_pool.py\)"):
        dm.MemoryUSMDevice(3 * MIB, device=device)
    assert held.nbytes == 3 * MIB


# --- Pickling, views -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", [dm.MemoryUSMDevice, dm.MemoryUSMShared, dm.MemoryUSMHost])
def test_pickle(device, kind):
    memory = kind(b"0123456789", device=device)
    again = pickle.loads(pickle.dumps(memory))
    assert type(again) is kind and again.tobytes() == b"0123456789" and again.device == device
    assert again._pointer != memory._pointer
    assert sys.getsizeof(memory) >= 10


def test_pickle_without_the_device():
    made = dm._restore("shared", b"abc", "opencl:accelerator:77")
    assert made.tobytes() == b"abc" and made.usm_type == "shared"


def test_views_of_parts(device):
    x = da.arange(10, dtype="int32", device=device)
    part = dm.as_usm_memory(x[2:5])
    assert part.nbytes == 12 and part._pointer == x._pointer + 8
    assert np.frombuffer(part.tobytes(), np.int32).tolist() == [2, 3, 4]
    part.copy_from_host(np.array([7, 8], np.int32))
    assert x.tolist() == [0, 1, 7, 8, 4, 5, 6, 7, 8, 9]
    part.memset()
    assert x.tolist() == [0, 1, 0, 0, 0, 5, 6, 7, 8, 9]
    backwards = dm.as_usm_memory(x[7:4:-1])
    assert np.frombuffer(backwards.tobytes(), np.int32).tolist() == [5, 6, 7]
    every = dm.as_usm_memory(x[1::4])
    assert every.nbytes == 9 * 4 and every.reference_obj is not None
    assert len(memoryview(dm.as_usm_memory(da.arange(9, dtype="int32", usm_type="host", device=device)[3:]))) == 24


def test_copy(device):
    x = da.arange(6, dtype="int64", usm_type="shared", device=device)
    view, copy = dm.MemoryUSMShared(x), dm.MemoryUSMShared(x, copy=True)
    assert view._pointer == x._pointer and view.reference_obj is x
    assert copy._pointer != x._pointer and copy.reference_obj is None and copy.tobytes() == view.tobytes()
    assert dm.MemoryUSMDevice(x[2:4], copy=True).tobytes() == np.array([2, 3]).tobytes()
    with pytest.raises(ValueError, match="copy=True"):
        dm.MemoryUSMDevice(x)
    other = drupe.Queue(device)
    assert dm.MemoryUSMDevice(x, copy=True, queue=other).queue == other


def test_a_view_in_a_circle_is_collected(device):
    import gc
    import weakref

    class Owner:
        def __init__(self):
            self.base = dm.MemoryUSMDevice(64, device=device)
            self.__sycl_usm_array_interface__ = self.base.__sycl_usm_array_interface__

    owner = Owner()
    owner.view = dm.MemoryUSMDevice(owner)
    assert owner.view.reference_obj is owner
    dead = weakref.ref(owner)
    del owner
    gc.collect()
    assert dead() is None


def test_foreign_interfaces(device):
    base = dm.MemoryUSMDevice(bytes(range(64)), device=device)

    class Foreign:
        def __init__(self, **changes):
            self.__sycl_usm_array_interface__ = {
                "shape": (2, 3), "typestr": "<i2", "data": (base._pointer, False), "strides": None, "offset": 4,
                "version": 1, "syclobj": None, **changes}

    assert dm.MemoryUSMDevice(Foreign()).tobytes() == bytes(range(8, 20))
    assert dm.MemoryUSMDevice(Foreign(strides=(-3, 1))).tobytes() == bytes(range(2, 14))
    target = dm.MemoryUSMDevice(12, device=device)
    target.copy_from_device(Foreign())
    assert target.tobytes() == bytes(range(8, 20))
    for changes in ({"shape": (100,)}, {"typestr": "<q"}, {"typestr": 5}, {"shape": None}, {"data": None},
                    {"data": (12345, False)}, {"strides": (1,)}, {"shape": (1 << 62, 1 << 62)}, {"shape": (-1,)},
                    {"offset": 1 << 62}, {"offset": -1}, {"strides": (1 << 61, 1 << 61)}, {"shape": ()},
                    {"shape": (0, 4)}):
        if changes == {"shape": ()}:
            assert dm.MemoryUSMDevice(Foreign(**changes)).nbytes == 2
        elif changes == {"shape": (0, 4)}:
            assert dm.MemoryUSMDevice(Foreign(**changes)).nbytes == 0
        else:
            with pytest.raises((ValueError, OverflowError)):
                dm.MemoryUSMDevice(Foreign(**changes))


def test_usm_type_in_another_context(device):
    memory = dm.MemoryUSMShared(8, device=device)
    assert memory.get_usm_type() == memory.get_usm_type(memory.queue) == "shared"
    assert memory.get_usm_type(memory.context) == "shared"
    assert memory.get_usm_type(drupe.Context(device)) == "unknown"
    assert memory.get_usm_type_enum() == 2 and memory.get_usm_type_enum(drupe.Context(device)) == 0
    with pytest.raises(TypeError, match="drupe.Context or drupe.Queue"):
        memory.get_usm_type("host")


# --- Between processes -----------------------------------------------------------------------------------------

def test_ipc(fresh):
    memory = dm.MemoryUSMDevice(bytes(100000), device="host")
    name = dm.IPCMemoryHandle(memory)
    result = fresh(f"""
        import drupe, drupe.memory as dm
        view = dm.IPCMemoryHandle.open({name.to_bytes()!r}, "host", 50000)
        drupe.queue("host").fill(dm.MemoryUSMDevice(view), 7).wait()
        print(len(view), view.is_closed, view.tobytes() == b"\\7" * 50000)
        dm.IPCCloseMemHandle(view)
        print(view.is_closed)
    """)
    assert result.stdout.split() == ["50000", "False", "True", "True"], result.stderr
    assert memory.tobytes() == b"\7" * 50000 + bytes(50000)
    gone = name.to_bytes()
    del memory, name
    with pytest.raises(drupe.DeviceNotFoundError, match="freed it"):
        dm.IPCOpenMemHandle(gone, "host")


def test_ipc_refused():
    with pytest.raises(drupe.UnsupportedError, match="4096"):
        dm.IPCGetMemHandle(dm.MemoryUSMDevice(10, device="host"))
    with pytest.raises(drupe.InvalidArgumentError, match="not a handle"):
        dm.IPCOpenMemHandle(bytes(128), "host")
    with pytest.raises(ValueError, match="not a handle"):
        dm.IPCOpenMemHandle(b"abc", "host")
    with pytest.raises(TypeError):
        dm.IPCGetMemHandle(b"abc")
    assert dm.IPCMemoryHandle.is_available("host")
    closed = dm.IPCMemoryHandle(dm.MemoryUSMDevice(4096, device="host"))
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.to_bytes()
    x = da.zeros(4096, dtype="float64", device="host")
    with pytest.raises(ValueError, match="middle"):
        dm.IPCGetMemHandle(dm.as_usm_memory(x[8:]))
