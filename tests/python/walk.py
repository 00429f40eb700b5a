"""Scenes that call the public names of drupe, each run again and again with another call of the backend failing:
`python walk.py DEVICE`, in a process of tests/layers/faulty.py. What is raised must be one of drupe's errors with a
sentence; no object may be left; nothing may crash or hang. Prints what is wrong; exits 0 if nothing is."""
import faulthandler
import gc
import struct
import sys

import fault_layer
import numpy as np
import testwork

import drupe
import drupe.array as da
import drupe.memory
import drupe.program
import drupe.utils
from drupe import _engine

DEVICE = sys.argv[1]
SOURCE = """
typedef struct { long n, stride; double start[2], step[2]; int dtype, reserved; } params;
kernel void sequence_f64(global double *out, const params p)
{ for (long i = get_global_id(0); i < p.n; i += get_global_size(0)) out[i] = p.start[0] + i * p.step[0]; }
"""


def kernel_of(device):
    if device.backend == "host" or str(device.backend).endswith("host"):
        return drupe.Program(None, language="builtin", device=device)["sequence_f64"]
    return drupe.Program(SOURCE, device=device)["sequence_f64"]


def expect(truth):
    if not truth:
        raise AssertionError("a wrong result")


# --- Scenes -----------------------------------------------------------------------------------------------------


def devices():
    device = drupe.Device(DEVICE)
    expect(device in drupe.devices(DEVICE) and device.queue == device.queue)
    for name in dir(type(device)):
        if not name.startswith("_") and not callable(getattr(type(device), name)):
            getattr(device, name)
    drupe.utils.device_info(device)
    try:
        parts = device.create_sub_devices(partition=1)
    except (drupe.UnsupportedError, drupe.OutOfRangeError):
        return
    context = drupe.Context(parts)
    expect(context.device_count == len(parts) and parts[0].parent_device == device)
    queue = drupe.Queue(parts[0])
    queue.barrier().wait()


def queues():
    queue = drupe.Queue(DEVICE, profiling=True)
    other = drupe.Queue(DEVICE)
    memory = drupe.memory.MemoryUSMDevice(4096, queue=queue)
    event = queue.fill(memory, 7, 64)
    done = queue.copy(bytearray(64), memory, 64)
    expect(queue.backend and queue.device == other.device and queue.context == other.context)
    waiting = other.barrier(wait_for=[event, done])
    drupe.Event.wait_for([event, done, waiting])
    expect(waiting.done and waiting.status == "complete" and waiting.error is None and waiting.queue == other)
    try:
        expect(event.times.ended >= event.times.started)
    except drupe.UnsupportedError:
        pass
    queue.wait()
    other.wait()


def tasks():
    queue = drupe.Queue(DEVICE)
    failing = testwork.task(queue, 0.0, "the task fails as planned by the scene")
    behind = queue.barrier()
    try:
        behind.wait()
        raise AssertionError("a dependent of a failed task ran")
    except drupe.DependencyError:
        expect(failing.error is not None and behind.error is not None)
    testwork.task(queue, 0.0).wait()


def memory():
    queue = drupe.Queue(DEVICE)
    kept = []
    for kind in (drupe.memory.MemoryUSMDevice, drupe.memory.MemoryUSMShared, drupe.memory.MemoryUSMHost):
        try:
            kept.append(kind(1000, queue=queue))
        except drupe.UnsupportedError:
            continue
        one = kept[-1]
        one.copy_from_host(bytes(range(200)) * 5)
        expect(bytes(one.copy_to_host()[:3]) == bytes(range(3)) and one.tobytes()[199] == 199 and one.nbytes == 1000)
        one.memset(1)
        if one is not kept[0]:
            kept[0].copy_from_device(one)
        expect(one.__sycl_usm_array_interface__["data"][0] == one._pointer)
    drupe.memory.report()
    pool = drupe.memory.pool(DEVICE)
    expect(pool.used >= 0)
    pool.trim()


def programs():
    device = drupe.Device(DEVICE)
    kernel = kernel_of(device)
    out = drupe.memory.MemoryUSMDevice(800, queue=device.queue)
    params = struct.pack("qqddddii", 100, 1, 5.0, 0, 1.0, 0, 11, 0)
    event = kernel(out, params, global_size=4)
    device.queue.submit(kernel, (out, params), 4, wait_for=event).wait()
    expect(np.frombuffer(out.tobytes(), "f8")[99] == 104)
    expect(kernel.name == "sequence_f64" and kernel.num_args == 2 and kernel.work_group_size > 0)
    for name in dir(type(kernel)):
        if not name.startswith("_"):
            getattr(kernel, name)


def arrays():
    device = drupe.Device(DEVICE)
    x = da.arange(1000, dtype="float32", device=device)
    y = da.asarray(np.arange(1000, dtype="f4"), device=device)
    z = (x + y * 2 - 1)[::2].reshape(20, 25).T
    expect(float(z.sum()) == float((np.arange(1000) * 3.0 - 1)[::2].sum()))
    expect(da.asnumpy(z).shape == (25, 20) and z.copy().tolist()[0][0] == -1)
    m = da.matmul(da.ones((8, 8), device=device), da.full((8, 8), 2.0, device=device))
    expect(m.max().item() == 16 and bool((m == 16).all()))
    da.broadcast_to(da.zeros((1, 4), device=device), (3, 4)).astype("int32").to_device("host").asnumpy()
    expect(da.linspace(0, 1, 5, device=device).tolist() == [0, 0.25, 0.5, 0.75, 1])


SCENES = {devices: False, queues: False, tasks: False, memory: False, programs: True, arrays: True}
SCENES = {scene: builds for scene, builds in SCENES.items() if not sys.argv[2:] or scene.__name__ in sys.argv[2:]}
WAYS = ("any:%d=INTERNAL", "any:%d+=NO_MEMORY", "event:%d=late", "device:lost@%d")


# --- Walking ----------------------------------------------------------------------------------------------------

wrong = []


def judge(problem, where, planned):
    """Whether an exception may come out of a scene."""
    text = str(problem)
    if not planned:
        wrong.append(f"{where}: {type(problem).__name__}: {text}")
    elif not isinstance(problem, (drupe.DeviceError, MemoryError)):
        wrong.append(f"{where}: {type(problem).__name__}: {text}")
    elif isinstance(problem, drupe.DeviceError) and (len(text) < 20 or "None" in text.split()):
        wrong.append(f"{where}: no sentence: {text!r}")


def settle():
    """All failures are told, and nothing is in flight."""
    for _ in range(10):
        try:
            drupe.Device(DEVICE).queue.wait()
            drupe.Device("host").queue.wait()
            return
        except drupe.DeviceError:
            continue
    wrong.append("the default queue does not recover")


def run(scene, where, plan):
    """The number of planned failures."""
    print(where, file=sys.stderr) if "-v" in sys.argv else None
    faulthandler.dump_traceback_later(60, exit=True)
    fault_layer.plan(plan)
    try:
        scene()
    except Exception as problem:  # noqa: B902: whatever it is, it is judged
        judge(problem, where, bool(plan))
        problem.__traceback__ = None
    made = fault_layer.made()
    fault_layer.plan(None)
    settle()
    gc.collect()
    return made


def main():
    for scene, builds in SCENES.items():
        run(scene, f"{scene.__name__}, undisturbed", None)
        run(scene, f"{scene.__name__}, undisturbed again", None)
        before, runs = _engine._live(), 0
        for way in WAYS:
            n, step, made = 1, 11 if builds and DEVICE != "host" else 1, 1
            while made and n < 5000:
                where = f"{scene.__name__}, {way % n}"
                made = run(scene, where, way % n)
                if _engine._live() != before:
                    wrong.append(f"{where}: left {_engine._live()}, before {before}")
                    before = _engine._live()
                n += step
                runs += 1
        print(f"{scene.__name__}: {runs} runs", flush=True)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
