"""How the elements of several arrays of one shape lie in memory, in as few dimensions as possible."""
import math
from collections.abc import Sequence
from typing import NamedTuple


class Layout(NamedTuple):
    """`sizes` of the dimensions that are left, the last one the fastest (one at least), and for each array its
    `strides`, in elements. Where an element is: the sum over the dimensions of its index times the stride."""

    sizes: "tuple[int, ...]"
    strides: "tuple[tuple[int, ...], ...]"


def merge(sizes: "Sequence[int]", strides: "Sequence[Sequence[int]]") -> Layout:
    """Leave out dimensions of one element, and join two where for each array the second goes on in the first. The order
    of the elements stays."""
    kept: "list[int]" = []
    lists: "list[list[int]]" = [[] for _ in strides]
    for axis, size in enumerate(sizes):
        if size == 1:
            continue
        if kept and all(mine[-1] == size * one[axis] for mine, one in zip(lists, strides)):
            kept[-1] *= size
            for mine, one in zip(lists, strides):
                mine[-1] = one[axis]
            continue
        kept.append(size)
        for mine, one in zip(lists, strides):
            mine.append(one[axis])
    if not kept:
        return Layout((1,), tuple((0,) for _ in strides))
    return Layout(tuple(kept), tuple(map(tuple, lists)))


def by_strides(sizes: "Sequence[int]", strides: "Sequence[Sequence[int]]") -> "tuple[list[int], list[list[int]]]":
    """The dimensions in the order in which the last array lies in memory, for work that does not care."""
    lead = strides[-1]
    order = sorted(range(len(sizes)), key=lambda axis: (-abs(lead[axis]) if lead[axis] else 0, axis))
    return [sizes[axis] for axis in order], [[one[axis] for axis in order] for one in strides]


def row_strides(shape: "Sequence[int]") -> "tuple[int, ...]":
    """The strides of an array whose elements lie row by row without gaps."""
    return tuple(math.prod(shape[axis + 1:]) for axis in range(len(shape)))


def step(stride: int) -> str:
    """What a text knows of a stride: "0", "1", or "s" for one that is told by each call."""
    return str(stride) if stride in (0, 1) else "s"
