"""How many work-items a kernel of this package gets, and how it is launched."""
import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from drupe._engine import Array, Context, Device, Event, Kernel, Queue

MOST_NUMBERS = 100  # of a layout: parameters have 1,024 bytes in all on some devices
_GPU_GROUP = 256
_LEAST_CHUNK = 1024


class Form(NamedTuple):
    """`wide`: one work-item of the device for each element, as on GPUs; else each has a chunk. `narrow`: int is enough
    to number the elements."""

    language: str
    wide: bool
    narrow: bool


class Launch(NamedTuple):
    """What a kernel is launched with. `chunk`: elements of a work-item, 0 for a good number of them."""

    kernel: Kernel
    args: "list[Any]"
    items: int
    form: Form
    queue: Queue
    wait_for: Any
    chunk: int = 0


def form_of(device: Device, items: int) -> Form:
    """The form of a kernel for so many elements. DRUPE_FORM=gpu gives CPUs behind OpenCL that of GPUs, for tests."""
    if device.filter_string.startswith("host"):
        return Form("c", False, False)
    wide = os.environ.get("DRUPE_FORM") == "gpu" or not device.is_cpu
    return Form("opencl", wide, wide and items < 1 << 31)


def launch(work: Launch) -> Event:
    """Submit it; returns its Event."""
    kernel, items, queue = work.kernel, work.items, work.queue
    if work.form.language == "c":
        return kernel(*work.args, global_size=items, queue=queue, wait_for=work.wait_for)
    if work.form.wide:
        group = min(_GPU_GROUP, kernel.work_group_size or 1)
        return kernel(*work.args, items, 1, global_size=-(-items // group) * group, local_size=group, queue=queue,
                      wait_for=work.wait_for)
    chunk = work.chunk or max(_LEAST_CHUNK, -(-items // (4 * queue.device.max_compute_units)))
    return kernel(*work.args, items, chunk, global_size=-(-items // chunk), local_size=1, queue=queue,
                  wait_for=work.wait_for)


@contextlib.contextmanager
def in_order(queue: Queue) -> "Iterator[None]":
    """Kernels of the block run behind what was submitted before them and before what follows, as array operations do:
    also on a queue that is out of order."""
    if queue.is_in_order:
        yield
        return
    queue.barrier()
    yield
    queue.barrier()


def default_queue(context: Any) -> Queue:
    """The queue of what PyOpenCL's spelling has as a context."""
    if isinstance(context, Queue):
        return context
    if isinstance(context, Device):
        return context.queue
    if isinstance(context, Context):
        device = context.devices[0]
        return device.queue if device.context == context else Queue(device, context)
    raise TypeError("the first argument is text, as in ElementwiseKernel('T x', 'T y', 'y = x'), or a drupe.Queue, a "
                    f"drupe.Context or a drupe.Device, not {type(context).__name__}")


def dense(array: Array, written: bool) -> "tuple[Array, list[tuple[Array, Array]]]":
    """An array whose elements lie row by row in one piece, for kernels that index it themselves: the array itself or a
    copy; and what is to be copied back afterwards."""
    if array.is_contiguous:
        return array, []
    fresh = array.copy()
    return fresh, [(array, fresh)] if written else []


def after_copies(queue: Queue, arrays: "Sequence[Array]", wait_for: Any) -> Any:
    """`wait_for` of a kernel on a queue that reads copies made on the queues of these arrays."""
    others = [array.queue.barrier() for array in arrays if array.queue != queue]
    if not others:
        return wait_for
    return [*((wait_for,) if isinstance(wait_for, Event) else wait_for), *others]


def copy_back(event: Event, queue: Queue, pairs: "Sequence[tuple[Array, Array]]") -> Event:
    """Write copies to where they came from, behind a kernel; the event of both."""
    for original, fresh in pairs:
        if original.queue != queue:
            event.wait()
        original[...] = fresh
    return pairs[-1][0].queue.barrier() if pairs else event
