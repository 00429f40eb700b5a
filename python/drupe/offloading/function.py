"""drupe.offload: a function over arrays whose loops and expressions are computed on a device; drupe.prange."""
import contextvars
import functools
import operator
import threading
from collections.abc import Callable
from typing import Any

from drupe import _engine
from drupe.compiler.messages import KernelError


def prange(*args: Any) -> range:
    """range(), whose rounds may run side by side: in a function under @drupe.offload such a loop is a kernel, elsewhere
    it is a loop as any other.

    A variable that each round assigns belongs to the round. `s += x`, `s *= x`, `s = min(s, x)` and the like make `s` a
    reduction. There is no break.

    >>> list(drupe.prange(1, 6, 2))
    [1, 3, 5]
    """
    return range(*map(operator.index, args))


prange._is_range = True  # type: ignore[attr-defined]  # kernels take it for range()


_inside = contextvars.ContextVar("_inside", default=False)  # whether an offload function is running


class Offload:
    """What @drupe.offload makes of a function. `py_func` is the function as it was written."""

    _implied = False

    def __init__(self, function: Callable[..., Any], *, device: Any = None, parallel: bool = True,
                 checked: "bool | None" = None, dialect: Any = None) -> None:
        if not callable(function):
            raise TypeError(f"drupe.offload takes a function, not {type(function).__name__}: put @drupe.offload above "
                            "a def")
        functools.update_wrapper(self, function)
        self.py_func = self._device_function = function
        self.device, self._options = device, {"parallel": bool(parallel), "checked": checked, "dialect": dialect}
        self._whole: Any = None
        self._lock = threading.Lock()

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __repr__(self) -> str:
        return f"<drupe.offload {self.__qualname__}>"

    def _rewritten(self) -> Any:
        with self._lock:
            if self._whole is None:
                from drupe.offloading import moving, rewrite

                try:
                    whole = rewrite.Rewritten(self.py_func, self._options)
                except KernelError as error:
                    if not self._implied or error.code not in ("DK001", "DK002"):
                        raise error.with_traceback(None) from None  # no frames of the compiler
                    whole = rewrite.Unchanged(self.py_func)
                whole.writes = moving.Writes(whole.outside)
                self._whole = whole
        return self._whole

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        whole = self._whole or self._rewritten()
        for name in whole.extra:
            kwargs[name] = whole.outside.beyond(name)
        queue = _queue_of(args) or (_queue_of(kwargs.values()) if kwargs else None)
        follows = queue is not None or _inside.get()
        if queue is None:
            queue = _engine.Device(self.device).queue
        moves = None
        if not follows or _has_numpys(args) or _has_numpys(kwargs.values()):
            args, kwargs, moves = self._moved(whole, args, kwargs, queue)
        token, inside = _engine._chosen_device.set(queue.device), _inside.set(True)
        try:
            result = whole.function(*args, **kwargs)
            return result if follows or moves is None else moves.out(result)
        finally:
            _inside.reset(inside)
            _engine._chosen_device.reset(token)
            if moves is not None:
                moves.finish()

    @classmethod
    def called(cls, function, options):
        """A function of the user's that an offload function calls: it goes on where that one is."""
        made = cls(function, **options)
        made._implied = True
        return made

    def _moved(self, whole, args, kwargs, queue):
        from drupe.offloading import moving

        moves = moving.Moves(queue)
        writes = whole.writes
        args = [moves.into(value, *writes.of(at)) for at, value in enumerate(args)]
        kwargs = {name: moves.into(value, *writes.of(name)) for name, value in kwargs.items()}
        if moves.back:
            moves.check_apart()
        return args, kwargs, moves

    def inspect(self) -> Any:
        """What became of the function: its text without the loops that were cut out, and what each of these is."""
        from drupe.offloading import report

        return report.Report(self._rewritten())


def _queue_of(values):
    """The queue of the first array on a device."""
    for one in values:
        if type(one) is _engine.Array:
            return one.queue
        if isinstance(one, tuple):
            found = _queue_of(one)
            if found is not None:
                return found
    return None


def _has_numpys(values):
    for one in values:
        kind = type(one)
        if kind is _engine.Array or kind is int or kind is float:
            continue
        if hasattr(kind, "__array_interface__") and one.ndim:
            return True
        if isinstance(one, tuple) and _has_numpys(one):
            return True
    return False


def offload(function: "Callable[..., Any] | None" = None, **options: Any) -> Any:
    """A function over arrays, written as for NumPy, that is computed on a device.

        @drupe.offload
        def distances(a, b):
            d = np.empty((len(a), len(b)))
            for i in drupe.prange(len(a)):
                for j in range(len(b)):
                    s = 0.0
                    for k in range(a.shape[1]):
                        s += (a[i, k] - b[j, k])**2
                    d[i, j] = math.sqrt(s)
            return d

    Loops over prange() are kernels; other loops over numbers and elements are compiled, too; the rest is drupe.array
    under the name of NumPy. The device is that of the arrays that are on one, else `device`, else that of
    `with drupe.device(...):`. Arrays of NumPy go there, come back in place if they were written, and the results are
    arrays of NumPy then. Options: device; parallel=False runs prange() as range(); checked=True looks at every index of
    the loops. docs/offload.md tells what can be written.
    """
    if function is None:
        return functools.partial(Offload, **options)
    return Offload(function, **options)
