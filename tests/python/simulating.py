"""What tests of the simulator share: kernels, the errors that they end with, and that no greenlet is left."""
import gc
import traceback

import pytest

from drupe import kernel_api as kapi
from drupe.kernel_api import call_kernel

greenlet = pytest.importorskip("greenlet")


def line_of(function, text):
    """The line of a function's file in which a text stands."""
    code = function.__code__
    with open(code.co_filename) as file:
        return next(number for number, line in enumerate(file, 1) if number >= code.co_firstlineno and text in line)


def failure(kernel, space, *args, **options):
    """The error that a kernel ends with, its frames, and its notes."""
    with pytest.raises(BaseException) as caught:
        call_kernel(kernel, space, *args, **options)
    error = caught.value
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]
    return error, frames, " ".join(getattr(error, "__notes__", ()))


def running_greenlets():
    gc.collect()
    found = [one for one in gc.get_objects() if isinstance(one, greenlet.greenlet)]
    return sum(not one.dead and one.parent is not None for one in found)


@pytest.fixture(autouse=True, scope="module")  # a look takes half a second in a process with many objects
def no_greenlets_are_left():
    before = running_greenlets()
    yield
    assert running_greenlets() == before


def double(item, a):
    a[item.get_id(0)] *= 2


def reverse(item, a, part):
    i, n = item.get_local_id(0), item.get_local_range(0)
    part[i] = a[item.get_global_id(0)]
    kapi.group_barrier(item.get_group())
    a[item.get_global_id(0)] = part[n - 1 - i]
