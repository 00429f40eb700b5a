"""drupe.vectorize: a function of numbers becomes one of arrays, element by element, as numba.vectorize does it."""
import functools
import re
from collections.abc import Callable
from typing import Any

from drupe import _engine

_SHORT = {"b1": "bool", "boolean": "bool", "bool_": "bool", "c8": "complex64", "c16": "complex128", "double": "float64",
          "float": "float64", "float_": "float64", "int": "int64", "int_": "int64", "intp": "int64", "intc": "int32",
          "uint": "uint64", "uintp": "uint64", "half": "float16",
          **{"%s%d" % (kind[0], size): "%s%d" % (kind, 8*size)
             for kind, sizes in (("int", (1, 2, 4, 8)), ("uint", (1, 2, 4, 8)), ("float", (2, 4, 8)))
             for size in sizes}}
_TARGETS = {None: None, "cpu": "cpu", "parallel": "cpu", "gpu": "gpu", "cuda": "gpu"}
_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def _type(text):
    from drupe.compiler import types

    name = _SHORT.get(text, text)
    if name not in types.NAMES:
        raise TypeError(f"drupe.vectorize knows no type {text!r}. It has {', '.join(types.NAMES)}.")
    return name


def _signature(given):
    """(types of the arguments, type of the result) of "float64(float64, float64)"."""
    text = str(given).replace(" ", "")
    arrow = re.fullmatch(r"\((.*)\)->(\w+)", text)  # how Numba prints a signature
    plain = re.fullmatch(r"(\w+)\((.*)\)", text)
    if not arrow and not plain:
        raise TypeError(f"a signature is a text such as \"float64(float64, float64)\", not {given!r}")
    result, names = (arrow[2], arrow[1]) if arrow else (plain[1], plain[2])
    return tuple(_type(one) for one in names.split(",") if one), _type(result)


class Vectorized:
    """What @drupe.vectorize makes of a function. `py_func` is the function of numbers, `types` its signatures, `nin`
    the number of its arguments."""

    nout = 1

    def __init__(self, function: Callable[..., Any], signatures: Any = (), *, target: "str | None" = None,
                 checked: "bool | None" = None, dialect: Any = None) -> None:
        if target not in _TARGETS:
            raise ValueError(f"target is \"cpu\", \"parallel\", \"gpu\" or \"cuda\", not {target!r}")
        function = getattr(function, "_device_function", function)  # a device function works as well
        if not hasattr(function, "__code__"):
            raise TypeError(f"drupe.vectorize takes a function that is written in Python, not {function!r}")
        functools.update_wrapper(self, function)
        self.py_func = self._device_function = function
        self.nin = function.__code__.co_argcount
        self.target, self.checked, self.dialect = _TARGETS[target], checked, dialect
        listed = isinstance(signatures, (list, tuple)) and not hasattr(signatures, "return_type")
        self._signatures = [_signature(one) for one in (signatures if listed else [signatures])]
        for args, _result in self._signatures:
            if len(args) != self.nin:
                raise TypeError(f"{self.__name__}() takes {self._count()}, and a signature has {len(args)}")
        self.types = ["%s(%s)" % (result, ", ".join(args)) for args, result in self._signatures]
        self._loops: "dict[Any, Any]" = {}

    def __repr__(self) -> str:
        return f"<drupe.vectorize {self.__qualname__}>"

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            raise AttributeError(f"a function under @drupe.vectorize has no {name}(): it works element by element. "
                                 "Write a loop over drupe.prange() in a function under @drupe.offload; a reduction is "
                                 "s += x there.")
        raise AttributeError(f"'Vectorized' object has no attribute {name!r}")

    def __call__(self, *args: Any, out: Any = None) -> Any:
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self._count()}, and {len(args)} were given")
        args = [_listed(one) for one in args]
        if out is None and not any(_is_array(one) for one in args):
            return self._number(args)
        queue = next((one.queue for one in (*args, out) if isinstance(one, _engine.Array)), None)
        if queue is not None and not any(_is_numpy(one) for one in (*args, out)):
            return self._compute(args, out, queue)
        return self._moved(args, out, queue)

    def _count(self):
        return "1 argument" if self.nin == 1 else f"{self.nin} arguments"

    def _number(self, args):
        signature = self._chosen(args)
        if signature is None:
            return self.py_func(*args)
        import numpy

        kinds, result = signature
        return numpy.dtype(result).type(self.py_func(*(numpy.dtype(kind).type(one) for kind, one in zip(kinds, args))))

    def _moved(self, args, out, queue):
        from drupe.offloading import moving

        moves = moving.Moves(queue or _engine.Device(self.target).queue)
        args = [moves.into(one, "#%d" % at, False) for at, one in enumerate(args)]
        into = moves.into(out, "out", True, True)
        if moves.back:
            moves.check_apart()
        try:
            found = self._compute(args, into, moves.queue)
            return found if queue is not None else moves.out(found)
        finally:
            moves.finish()

    def _compute(self, args, out, queue):
        signature = self._chosen(args)
        arrays = [one for one in args if isinstance(one, _engine.Array)]
        shape = _shape(arrays, out)
        loop = self._loop(args, signature, queue.device)
        if out is None:
            out = _engine.empty(shape, dtype=loop.dtype, queue=queue)
        if out.size:
            loop.launch(args, out)
        return out

    def _chosen(self, args):
        """The first signature to which the arguments can be cast without loss; None where there are no signatures."""
        if not self._signatures:
            return None
        for kinds, result in self._signatures:
            if all(_fits(one, kind) for one, kind in zip(args, kinds)):
                return kinds, result
        given = ", ".join(str(getattr(one, "dtype", type(one).__name__)) for one in args)
        raise TypeError(f"{self.__name__}() has no signature for ({given}): it has {'; '.join(self.types)}")

    def _loop(self, args, signature, device):
        from drupe.offloading import elementwise

        kinds = tuple((one.dtype, 1) if isinstance(one, _engine.Array) else (type(one), 0) for one in args)
        key = (kinds, signature, device)
        found = self._loops.get(key)
        if found is None or not found.is_current():
            found = self._loops[key] = elementwise.Elementwise(self, args, signature, device)
        return found

    def inspect(self) -> Any:
        """The kernels, by the types of arguments that the function was called with."""
        return [kernel.inspect() for loop in self._loops.values() for kernel in loop.kernels.values()]


def _listed(value):
    if isinstance(value, (list, tuple)):
        import numpy

        return numpy.asarray(value)
    return value


def _is_numpy(value):
    """An array of NumPy; its scalars are numbers."""
    return hasattr(type(value), "__array_interface__") and (type(value).__name__ == "ndarray" or value.ndim > 0)


def _is_array(value):
    return isinstance(value, _engine.Array) or _is_numpy(value)


def _fits(value, kind):
    from drupe.compiler import types

    scalar = types.of_number(value)
    if scalar is not None and scalar.weak:
        return scalar.kind <= types.Scalar(kind).kind
    import numpy

    return numpy.can_cast(numpy.dtype(str(value.dtype)), kind, "safe")


def _shape(arrays, out):
    from drupe import array

    shapes = {one.shape for one in arrays}
    shape = shapes.pop() if len(shapes) == 1 else array.broadcast_shapes(*shapes) if shapes else out.shape
    if out is not None and out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, and the result {shape}")
    return shape


def vectorize(function_or_signatures: Any = (), **options: Any) -> Any:
    """A function of numbers as one of arrays: it is compiled, and computes element by element on the arrays' device.

        @drupe.vectorize
        def clipped(x, most):
            return x if x < most else most

        @drupe.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cpu")
        def add(a, b):
            return a + b

    Arguments are numbers and arrays, of NumPy or on a device; shapes are broadcast. With signatures, the first one to
    which the arguments can be cast counts; without, types are those of the arguments. target: "cpu", "parallel", "gpu"
    or "cuda", the device of arrays of NumPy. `out=` is an array for the result.
    """
    if callable(function_or_signatures) and not hasattr(function_or_signatures, "return_type"):
        return Vectorized(function_or_signatures, **options)
    for name in ("nopython", "cache", "identity", "fastmath"):  # of Numba, without a meaning here
        options.pop(name, None)
    return functools.partial(Vectorized, signatures=function_or_signatures, **options)


__all__ = ["Vectorized", "vectorize"]
