"""Types of elements, and what they hold."""
from drupe import array as da
from drupe.compat.dpctl.tensor._calling import call

__all__ = ["finfo", "iinfo", "isdtype", "result_type"]


def finfo(dtype, /):
    """The limits of a floating-point type, as NumPy's."""
    import numpy

    return numpy.finfo(getattr(dtype, "dtype", dtype))


def iinfo(dtype, /):
    """The limits of a type of whole numbers, as NumPy's."""
    import numpy

    return numpy.iinfo(getattr(dtype, "dtype", dtype))


def isdtype(dtype, kind):
    """Whether a type is of a kind, such as "integral"."""
    return da.isdtype(dtype, kind)


def result_type(*arrays_and_dtypes):
    """The type that an operation of these has."""
    return call(da.result_type, *arrays_and_dtypes)
