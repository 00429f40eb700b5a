"""Functions of elements: objects, as in dpctl, with nin, nout and types."""
import functools

from drupe import array as da
from drupe.compat import NotProvided
from drupe.compat.dpctl.tensor import BINARY, UNARY
from drupe.compat.dpctl.tensor._calling import ahead, array_behind, operands, ordered, target

TYPES = "?bBhHiIlLefdFD"  # NumPy's letters


def _refuse(self):
    """Refused: dpctl's implementations are C++ functions."""
    raise NotProvided("the implementation of a function of elements is a C++ function in dpctl. In Drupe it is a "
                      "kernel that is made for the operands: call the function itself")


class _Function:
    nout = 1
    get_implementation_function = get_implementation_inplace_function = get_type_result_resolver_function = _refuse
    get_type_promotion_path_acceptance_function = get_array_dtype_scalar_type_resolver_function = _refuse

    def __init__(self, name):
        self.name_ = self.__name__ = name
        self._compute = getattr(da, name)
        self.__doc__ = self._compute.__doc__

    @functools.cached_property
    def types(self):
        """The types of operands that are computed without a conversion, such as 'f->f'."""
        import numpy

        found = []
        for letter in TYPES:
            one = da.zeros(0, dtype=numpy.dtype(letter).name)
            try:
                result = numpy.dtype(str(self._compute(*[one] * self.nin).dtype)).char
            except (TypeError, ValueError, NotImplementedError):
                continue
            found.append(f"{letter * self.nin}->{result.replace('q', 'l').replace('Q', 'L')}")
        return found

    def __repr__(self):
        return f"<{type(self).__name__} '{self.name_}'>"

    def __reduce__(self):
        return _named, (self.name_,)


def _named(name):
    from drupe.compat.dpctl import tensor

    return getattr(tensor, name)


class UnaryElementwiseFunc(_Function):
    """A function of one array."""

    nin = 1

    def __call__(self, x, /, *, out=None, order="K"):
        array, into = array_behind(x), target(out)
        result = ordered(self._compute(array, out=into) if out is not None else self._compute(array), order)
        return ahead(result) if out is None else out


class BinaryElementwiseFunc(_Function):
    """A function of two arrays, or of an array and a number."""

    nin = 2

    def __call__(self, x1, x2, /, *, out=None, order="K"):
        both, into = operands(x1, x2), target(out)
        if out is not None:
            self._compute(*both, out=into)
            return out
        return ahead(ordered(self._compute(*both), order))


def functions():
    """All of them, by name."""
    return {**{name: UnaryElementwiseFunc(name) for name in UNARY},
            **{name: BinaryElementwiseFunc(name) for name in BINARY}}
