"""How many work-items a kernel of this package gets, and how it is launched."""
import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from drupe._engine import Array, Context, Device, Event, Kernel, Queue

MOST_NUMBERS = 100  # of a layout: parameters have 1,024 bytes in all on some devices
_GPU_GROUP = 256
LEAST, LEAST_HEAVY = 4096, 16  # elements of a work-item on CPUs; if the kernel has loops, the work of each is unknown


class Form(NamedTuple):
    """`wide`: one work-item of the device for each element, as on GPUs; else each has a chunk. `narrow`: int is enough
    to number the elements."""

    language: str
    wide: bool
    narrow: bool


def form_of(device: Device, items: int) -> Form:
    """The form of a kernel for so many elements. DRUPE_FORM=gpu gives CPUs behind OpenCL that of GPUs, for tests."""
    if device.filter_string.startswith("host"):
        return Form("c", False, False)
    wide = os.environ.get("DRUPE_FORM") == "gpu" or not device.is_cpu
    return Form("opencl", wide, wide and items < 1 << 31)


def launch(kernel: Kernel, args: "list[Any]", items: int, least: int, queue: Queue, wait_for: Any) -> Event:
    """Submit a kernel whose work-items take chunks of so many elements, `least` or more."""
    on_host = queue.device.filter_string.startswith("host")
    chunk = max(least, -(-items // ((32 if on_host else 4) * queue.device.max_compute_units)))
    return kernel(*args, items, chunk, global_size=-(-items // chunk), local_size=None if on_host else 1, queue=queue,
                  wait_for=wait_for)


def launch_wide(kernel: Kernel, args: "list[Any]", items: int, width: int, batch: int, queue: Queue,
                wait_for: Any) -> Event:
    """Submit a kernel whose work-items take a batch of elements each: of rows of a width, or with 0 of all."""
    group = min(_GPU_GROUP, kernel.work_group_size or 1)
    if not width:
        group_sizes, sizes = (group,), (-(-items // batch),)
    else:  # neighbours in rows share lines of the cache, in whichever direction memory goes
        across = min(32, group, 1 << (width - 1).bit_length())
        group_sizes, sizes = (across, group // across), (width, -(-(items // width) // batch))
    padded = tuple(-(-size // one) * one for size, one in zip(sizes, group_sizes))
    return kernel(*args, global_size=padded, local_size=group_sizes, queue=queue, wait_for=wait_for)


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
