"""Expressions as one kernel: where that is switched off, and where it is asked for."""
import functools
import inspect
import numbers
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from drupe import _engine

_F = TypeVar("_F", bound=Callable[..., Any])
_TAKEN = "arrays of drupe.array, numbers, texts, None, and tuples, lists and dictionaries of these"


class eager:
    """Compute each operation at once in a block of code, with a kernel of its own.

        with drupe.array.eager():
            y = 2*x + 1                two kernels, submitted here

    It holds for the thread that enters it, may stand within another one, and within a function of drupe.fuse() it is
    the stronger one. The environment variable DRUPE_FUSE=0 does it for a whole process.

    >>> x = da.zeros(100_000)
    >>> with da.eager():
    ...     y = 2*x + 1
    >>> y.pending is None
    True
    """

    def __enter__(self) -> "eager":
        _engine._eager(1)
        return self

    def __exit__(self, *error: object) -> None:
        _engine._eager(-1)


def fuse(function: _F) -> _F:
    """A function whose array operations are computed together, in as few kernels as there can be.

        @drupe.fuse
        def normal(x):
            y = x - x.mean()
            return y, (y*y).sum()

    It is called as before, each time, and gives what it gave, with the same bits: inside of it results of every size
    are pending, and the arrays that it returns are submitted together at its end. What its variables alone had needs no
    memory. It may branch and loop; what it prints or turns into a number is computed there. It returns arrays,
    numbers, texts, None, and tuples, lists and dictionaries of these.

    TypeError: the function is a generator or asynchronous, is given an array of NumPy, or returns something else.

    >>> @drupe.fuse
    ... def scaled(x, y):
    ...     return (x*y + x)*2 - y
    >>> scaled(da.asarray([1.0, 2.0]), da.asarray([3.0, 4.0])).tolist()
    [5.0, 16.0]
    """
    if not callable(function):
        raise TypeError(f"drupe.fuse() takes a function, not {type(function).__name__}: write @drupe.fuse above its "
                        "def")
    if isinstance(function, type):
        raise TypeError(f"drupe.fuse() takes a function, and {function.__name__} is a class: fuse its methods")
    for kind, is_kind in (("a generator", inspect.isgeneratorfunction), ("asynchronous", inspect.iscoroutinefunction),
                          ("an asynchronous generator", inspect.isasyncgenfunction)):
        if is_kind(function):
            raise TypeError(f"drupe.fuse() cannot take {_name(function)}(), which is {kind}: it goes on after its "
                            "call, and its results are to be computed at the end of that. Fuse a function that it "
                            "calls")

    @functools.wraps(function)
    def fused(*args: Any, **kwargs: Any) -> Any:
        for where, given in [*((f"argument {i}", one) for i, one in enumerate(args, 1)), *kwargs.items()]:
            if _is_numpy(given):
                raise TypeError(f"{_name(function)}(), which drupe.fuse() has made, was given an array of NumPy "
                                f"({where}), which NumPy would compute. Give it drupe.array.asarray(...)")
        _engine._fuse(1)
        try:
            result = function(*args, **kwargs)
        finally:
            _engine._fuse(-1)
        arrays: "list[Any]" = []
        _gather(result, "the result", _name(function), arrays)
        _engine._settle(*arrays)
        return result

    return fused  # type: ignore[return-value]


def _name(function):
    return getattr(function, "__qualname__", type(function).__name__)


def _is_numpy(thing):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(thing, numpy.ndarray)


def _gather(result, where, name, arrays):
    """Add the arrays of a structure to the list."""
    if isinstance(result, _engine.Array):
        arrays.append(result)
    elif isinstance(result, (tuple, list)):
        for i, one in enumerate(result):
            _gather(one, f"{where}[{i}]", name, arrays)
    elif isinstance(result, dict):
        for key, one in result.items():
            _gather(one, f"{where}[{key!r}]", name, arrays)
    elif result is not None and not isinstance(result, (numbers.Number, str, bool)):
        kind = "an array of NumPy" if _is_numpy(result) else f"of type {type(result).__name__}"
        raise TypeError(f"{name}(), which drupe.fuse() has made, may return {_TAKEN}; {where} is {kind}")
