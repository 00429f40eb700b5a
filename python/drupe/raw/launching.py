"""How many work-items a kernel of this package gets, and how it is launched."""
import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from drupe._engine import Array, Context, Device, Event, Kernel, Queue
from drupe.raw import scalars

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


class Geometry(NamedTuple):
    """What follows the arguments of a kernel of text.kernel(), and how many work-items it gets."""

    more: "tuple[int, ...]"
    global_size: "tuple[int, ...]"
    local_size: "tuple[int, ...] | None"


def in_chunks(items: int, least: int, device: Device) -> Geometry:
    """Work-items take chunks of so many elements, `least` or more."""
    on_host = device.filter_string.startswith("host")
    chunk = max(least, -(-items // ((32 if on_host else 4) * device.max_compute_units)))
    return Geometry((items, chunk), (-(-items // chunk),), None if on_host else (1,))


def one_by_one(items: int, kernel: Kernel) -> Geometry:
    """Work-items of a GPU take an element each."""
    group = min(_GPU_GROUP, kernel.work_group_size or 1)
    return Geometry((items, 1), (-(-items // group) * group,), (group,))


def in_batches(items: int, width: int, batch: int, kernel: Kernel) -> Geometry:
    """Work-items of a GPU take a batch of elements each: of rows of a width, or with 0 of all."""
    group = min(_GPU_GROUP, kernel.work_group_size or 1)
    if width:  # neighbours in rows share lines of the cache, in whichever direction memory goes
        across = min(32, group, 1 << (width - 1).bit_length())
        groups, sizes = (across, group // across), (width, -(-(items // width) // batch))
    else:
        groups, sizes = (group,), (-(-items // batch),)
    return Geometry((items,), tuple(-(-size // one) * one for size, one in zip(sizes, groups)), groups)


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


class Plans:
    """What was found out for calls with arguments of the same types, shapes and strides, so that the next call does
    without."""

    _MOST = 512

    def __init__(self) -> None:
        self._plans: "dict[Any, Any]" = {}

    def key(self, args: "Sequence[Any]", more: Any) -> "tuple[Any, Queue] | None":
        """By what a call is known, and its queue; None where that is not simple. Of numbers only the type counts."""
        queue: "Queue | None" = None
        parts: "list[Any]" = [os.environ.get("DRUPE_FORM"), more]
        for value in args:
            if type(value) is Array:
                mine = value.queue
                if queue is None:
                    queue = mine
                elif queue != mine:
                    return None
                parts.append((value.dtype.name, value.shape, value.strides, value._offset))
            elif type(value) in (int, float, bool) or scalars.is_numpy(value):
                parts.append(type(value))
            else:
                return None
        return None if queue is None else ((queue.context, *parts), queue)

    def find(self, key: Any) -> Any:
        """A plan or None."""
        return self._plans.get(key)

    def keep(self, key: Any, plan: Any) -> None:
        """Keep a plan for later calls."""
        if len(self._plans) >= self._MOST:
            self._plans.clear()
        self._plans[key] = plan
