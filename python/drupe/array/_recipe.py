"""What a pending array would take to compute, as text for people."""
from typing import Any, NamedTuple

_VALUE, _ARRAY, _NUMBER = range(3)  # drupe_look_source


class Operation(NamedTuple):
    """One operation of a Recipe, with the names that its text has: "a" for an array, "v1" for a value.

    name: as in drupe.array; "astype" for a change of the data type. inputs: names, or numbers. kernel: which of
    Recipe.kernels computes it, from 1; None if that is not known. place: where it was called, "" if that is not known.
    kept: whether an array of the program has the value.

    >>> operation = (2 * da.zeros(100_000)).pending.operations[0]
    >>> operation.name, operation.inputs, operation.shape
    ('multiply', (2, 'a'), (100000,))
    """
    result: str
    name: str
    inputs: tuple[Any, ...]
    dtype: Any
    shape: tuple[int, ...]
    kernel: "int | None"
    place: str
    kept: bool


class Recipe:
    """What `x.pending` is of an array whose values nobody has needed yet: the operations that would compute them.

    operations: a tuple, in the order in which they are computed; the last one gives the array. inputs: a dictionary of
    the arrays that they read, (dtype, shape) by name. kernels: how many kernels they would be; 0 while another thread
    submits them. It tells what would run at the time when it was made, and keeps nothing alive. As a condition it is
    true. repr() shows it all.

    >>> recipe = (2 * da.zeros(100_000) + 1).pending
    >>> [operation.name for operation in recipe.operations], recipe.kernels
    (['multiply', 'add'], 1)
    """
    __slots__ = ("device", "inputs", "kernels", "more", "operations")

    def __init__(self, device: str, operations: "tuple[Operation, ...]", inputs: "dict[str, Any]", kernels: int,
                 more: bool):
        self.device, self.operations, self.inputs = device, operations, inputs
        self.kernels, self.more = kernels, more

    def __repr__(self):
        count = len(self.operations)
        head = f"Pending: {count} operation{'s' * (count > 1)}"
        if self.kernels:
            head += f", which would run as {self.kernels} kernel{'s' * (self.kernels > 1)} on {self.device}"
        else:
            head += f", which are being submitted to {self.device}"
        rows = [(name, f"array {_type(*array)}", "", "", "") for name, array in self.inputs.items()]
        rows += [(one.result, f"{one.name}({', '.join(map(str, one.inputs))})", _type(one.dtype, one.shape),
                  f"kernel {one.kernel}" if self.kernels > 1 and one.kernel else "", self._remarks(one))
                 for one in self.operations]
        before = ["  (and operations before these)"] if self.more else []
        return "\n".join([head + ":", *before, *_columns(rows)])

    def _remarks(self, one):
        words = "the array" if one is self.operations[-1] else "kept, as a variable has it" if one.kept else ""
        return ": ".join(filter(None, (one.place, words)))


def _type(dtype, shape):
    return f"{dtype} {shape}"


def _columns(rows):
    """Lines of names, what they are, and more about that, below each other."""
    operations = [row for row in rows if row[2]]
    widths = [max(len(row[0]) for row in rows), *(max(len(row[i]) for row in operations) for i in (1, 2, 3))]
    for row in rows:
        cells = [row[0].ljust(widths[0]) + " = " + row[1].ljust(widths[1] if row[2] else 0)]
        cells += [cell.ljust(width) for cell, width in zip(row[2:4], widths[2:], strict=True) if width and row[2]]
        yield "  " + "  ".join([*cells, row[4]]).rstrip()


def _array_name(number):
    """a ... u, then a1 ...: values are v1 and so on."""
    turn, letter = divmod(number, 21)
    return chr(ord("a") + letter) + (str(turn) if turn else "")


def _input(source, what):
    return what if source == _NUMBER else _array_name(what) if source == _ARRAY else f"v{what + 1}"


def of(array, told):
    """The Recipe of an Array, of what the engine has told: see py_pending.c."""
    rows, arrays, kernels, more = told
    operations = []
    for number, (name, inputs, dtype, shape, kernel, place, kept) in enumerate(rows, 1):
        operations.append(Operation(
            f"v{number}", "astype" if name == "copy" else name,
            tuple(_input(*one) for one in inputs) + ((str(dtype),) if name == "copy" else ()), dtype, shape,
            kernel + 1 if kernel >= 0 else None, place, kept))
    inputs = {_array_name(number): one for number, one in enumerate(arrays)}
    return Recipe(array.device.filter_string, tuple(operations), inputs, kernels, more)
