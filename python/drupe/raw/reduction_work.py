"""How the work of a reduction is divided."""
import math
import struct
from typing import Any

from drupe._engine import Device, Kernel, LocalMemory, Queue
from drupe.raw import layout
from drupe.raw.launching import LEAST, MOST_NUMBERS, Form, form_of, in_chunks, one_by_one
from drupe.raw.reduction_text import BLOCK, Shape, field_names

_GROUP = 256
_LEAST = 16384  # elements of a chunk on CPUs


class Work:
    """How one call is divided: the layout of the operands, the walk, chunks and work-items. Keeps no array."""

    def __init__(self, queue: Queue, kinds: "list[str]", values: "list[Any]", shape: "tuple[int, ...]",
                 axes: "tuple[int, ...]", ordered: bool) -> None:
        self.results = math.prod(size for axis, size in enumerate(shape) if axis not in axes)
        self.reduced = math.prod(shape[axis] for axis in axes)
        self.form: Form = form_of(queue.device, max(self.results * self.reduced, 1))
        self.device: Device = queue.device
        self.units = self.device.max_compute_units
        self.which = [number for number, kind in enumerate(kinds) if kind == "element"]
        self.memory: "set[int]" = set()
        self.offsets: "list[int]" = []
        self._place(values, shape, axes, ordered)
        self._walk()
        self._divide()

    def _place(self, values, shape, axes, ordered):
        from drupe import array

        arrays = [values[number] for number in self.which]
        seen = [one if one.shape == shape else array.broadcast_to(one, shape) for one in arrays]
        reduced = [shape[axis] for axis in axes]
        strides = [[one.strides[axis] for axis in axes] for one in seen]
        if not ordered and seen and reduced:
            reduced, strides = layout.by_strides(reduced, strides)
        others = [axis for axis in range(len(shape)) if axis not in axes]
        self.over = layout.merge(reduced, strides)
        self.kept = layout.merge([shape[axis] for axis in others],
                                 [[one.strides[axis] for axis in others] for one in seen])
        if self._count() > MOST_NUMBERS:
            order = [*others, *axes]
            for number, one in zip(self.which, seen):
                values[number] = array.permute_dims(one, tuple(order)).copy()
            self.over = layout.Layout((self.reduced,), tuple((1,) for _ in seen))
            self.kept = layout.Layout((self.results,), tuple((self.reduced,) for _ in seen))
        for number in self.which:
            value = values[number]
            whole = value.is_contiguous
            self.offsets.append(0 if whole else value._offset)
            if not whole:
                self.memory.add(number)

    def _count(self):
        dims = len(self.over.sizes) + len(self.kept.sizes)
        return 5 + dims + len(self.which) * (1 + dims)

    def _walk(self):
        walk = "rows"
        if self.results > 1 and self.which:
            inside, across = ([abs(one[-1]) for one in found.strides] for found in (self.over, self.kept))
            lead = max(range(len(self.which)), key=lambda number: (inside[number] > 0) + (across[number] > 0))
            if 0 < across[lead] < inside[lead] or self.reduced <= 1:
                walk = "columns"
        if walk == "rows" and self.form.wide and (self.reduced >= 64 or self.reduced == 0):
            walk = "tree"
        strides = (self.kept if walk == "columns" else self.over).strides
        self.shape = Shape(walk, len(self.over.sizes), len(self.kept.sizes),
                           tuple(layout.step(one[-1]) for one in strides), self.form.wide)

    def _divide(self):
        walk, units = self.shape.walk, self.units
        self.blocks = self.results
        if walk == "columns" and not self.form.wide:
            width = self.kept.sizes[-1]
            self.blocks = self.results // width * -(-width // BLOCK)
        if walk == "tree":
            most, least = 8 * units // self.results, 8 * _GROUP
        elif self.form.wide:
            most, least = 4096 * units // self.results, 16
        else:
            most, least = 4 * units // self.blocks, -(-_LEAST * self.blocks // self.results)
        chunks = max(1, min(most, self.reduced // least)) if self.reduced else 0
        self.chunk = -(-self.reduced // chunks) if chunks else 1
        self.chunks = -(-self.reduced // self.chunk)
        self.items = self.blocks * self.chunks

    def numbers(self) -> bytes:
        """What the kernels are told, in the order of field_names()."""
        given = [self.results, self.reduced, self.chunk, self.chunks, self.blocks, *self.over.sizes, *self.kept.sizes]
        for at, over, kept in zip(self.offsets, self.over.strides, self.kept.strides):
            given += [at, *over, *kept]
        assert len(given) == len(field_names(self.shape, [""] * len(self.which)))
        return struct.pack(f"={len(given)}q", *given)

    def starts(self, first: Kernel, join: Kernel, size: int) -> "list[tuple[Any, ...]]":
        """What each kernel that is needed is launched with: itself, what follows its arguments, the numbers of
        work-items in all and of a group. `size`: bytes of a partial result."""
        started = []
        if self.chunks:
            each = self.results * self.reduced // self.items
            if self.shape.walk == "tree":
                started.append(self._tree(first, self.items, self.chunk, size))
            elif self.form.wide:
                started.append((first, *one_by_one(self.items, first)))
            else:
                started.append((first, *in_chunks(self.items, max(1, LEAST // max(each, 1)), self.device)))
        if self.chunks != 1:
            if self.form.wide:
                started.append(self._tree(join, self.results, self.chunks, size))
            else:
                started.append((join, *in_chunks(self.results, max(1, LEAST // max(self.chunks, 1)), self.device)))
        return started

    def _tree(self, kernel, groups, elements, size):
        """Groups that reduce so many elements each: with work for each work-item, and at least a warp's."""
        group = min(_GROUP, max(32, 1 << max(0, (elements // 8).bit_length() - 1)), kernel.work_group_size or 1)
        return kernel, (LocalMemory(group * size),), (groups * group,), (group,)
