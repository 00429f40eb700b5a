"""jit and njit."""
from drupe.compat import _numbas
from drupe.compiler.dialects import Dialect
from drupe.offloading import vectorize as offloaded
from drupe.offloading.function import Offload

# Options of Numba that say how it compiles, and change no result.
_IGNORED = frozenset(("cache", "debug", "error_model", "fastmath", "forceinline", "forceobj", "inline", "locals",
                      "looplift", "nogil", "nopython", "no_cpython_wrapper", "no_cfunc_wrapper", "pipeline_class"))


class Function(Offload):
    """What @njit makes of a function: with parallel=True its loops over prange() are kernels, and other loops over
    numbers are compiled, too. Arrays of NumPy go to the device, and back where they were written."""

    def __init__(self, function, *, signature=None, **options):
        options.setdefault("parallel", False)
        super().__init__(function, **{"dialect": Dialect(floors=False), **options})
        self._signatures = self._result = None
        if signature is not None:
            self._signatures = _numbas.Signatures(signature, gives=True)
            self._result = _numbas.result(signature)

    def __call__(self, *args, **named):
        if self._signatures is None:
            return super().__call__(*args, **named)
        if named:
            raise TypeError("%s() has a signature, and takes no arguments by name" % self.__name__)
        found = super().__call__(*self._signatures.convert(self.__name__, args))
        return found if self._result is None else _numbas.converted([self._result], [found])[0]

    def __repr__(self):
        return "<numba function %s>" % self.__qualname__


def jit(signature_or_function=None, *, parallel=False, boundscheck=None, **options):
    """A function over numbers and arrays that is compiled where it has loops."""
    for name in options:
        if name not in _IGNORED:
            raise TypeError("jit takes no option %r" % name)
    given = {"parallel": bool(parallel), "checked": True if boundscheck else None}
    if callable(signature_or_function) and not _numbas.is_signature(signature_or_function):
        return Function(signature_or_function, **given)
    if isinstance(signature_or_function, list) and len(signature_or_function) > 1:
        raise NotImplementedError("jit takes one signature, or none: then types are those of each call")
    if isinstance(signature_or_function, list):
        signature_or_function = (signature_or_function or [None])[0]
    return lambda function: Function(function, signature=signature_or_function, **given)


njit = jit


def vectorize(function_or_signatures=(), **options):
    """A function of numbers as one of arrays, with Numba's types of numbers: see drupe.vectorize."""
    return offloaded.vectorize(function_or_signatures, dialect=Dialect(floors=False), **options)
