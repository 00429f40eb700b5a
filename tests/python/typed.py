"""What README.md and docs/arrays.md show, as a type checker reads it: see test_stubs.py. Never run."""
import asyncio
from typing import assert_type

import numpy

import drupe
import drupe.array as da
import drupe.memory
import drupe.program

assert_type(drupe.devices(), list[drupe.Device])
x = da.linspace(0, 1, 1_000_000, device="cpu")
total: float = float((2 * x + 1).sum())
program = drupe.Program("kernel void twice(global float *a) { a[get_global_id(0)] *= 2; }", device="opencl")
a = da.ones(16, dtype="float32", device="opencl")
event = program.twice(a, global_size=16)
assert_type(event, drupe.Event)
event.wait(timeout=1.5)
assert_type(drupe.Program("", "host", language="c")["f"], drupe.Kernel)

with drupe.device("gpu"):
    device = drupe.Device("opencl:cpu:0")
half = device.create_sub_devices(device.max_compute_units // 2)[0]
assert_type(half, drupe.Device)
assert_type(device.has_aspect_fp64, bool | None)
assert_type(device.local_mem_size, int | None)
queue = drupe.Queue(device, profiling=True, in_order=False, priority="high")
assert_type(queue.device, drupe.Device)
memory = drupe.memory.MemoryUSMShared(1024, queue=queue)
assert_type(memory.tobytes(), bytes)
first = queue.memcpy_async(memory, bytes(1024), 1024)
second = queue.submit(program.twice, [memory], [256], [16], wait_for=[first])
drupe.wait_for([first, second], timeout=3)
assert_type(second.times.duration, int)
second.add_done_callback(print)
queue.host_task(print, ("done",), wait_for=second)


async def cell() -> None:
    await queue.barrier()
    await asyncio.sleep(0)


y = da.asarray(numpy.arange(10.0), device=device, usm_type="shared")
assert_type(y.to_device("host") @ y, da.Array)
assert_type(da.sqrt(y) + da.mean(y), da.Array)
assert_type(y.shape, tuple[int, ...])
y[1:3] = 5
try:
    queue.wait()
except drupe.BuildError as error:
    print(error.log, error.hint)
except drupe.DeviceError as error:
    print(error.line, error.native_name)
with drupe.checked():
    pass
drupe.program.save(program, "program.bin")
drupe.queue("host").wait()
drupe.Queue("host", priority="urgent")  # expect: arg-type
drupe.Program(5)  # expect: arg-type
event.result()  # expect: attr-defined
