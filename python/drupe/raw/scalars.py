"""Types of elements, as NumPy and as C name them, and numbers that are to be one.

float16 lies in memory as two bytes and is computed in float: no device needs an extension for it. A bool lies in
memory as one byte, of which everything but 0 is true.
"""
import numbers
from typing import Any, NamedTuple

from drupe._engine import UnsupportedError


class Scalar(NamedTuple):
    """`value` is what an expression computes with, `memory` what lies in an array; `c_memory` is the same in C99, where
    they differ. `number` is the engine's (drupe_scalar_type)."""

    name: str
    size: int
    number: int
    value: str
    memory: str
    c_memory: str


_TABLE = (
    Scalar("bool", 1, 2, "bool", "uchar", "unsigned char"),
    Scalar("int8", 1, 1, "char", "char", "signed char"),
    Scalar("uint8", 1, 2, "uchar", "uchar", "unsigned char"),
    Scalar("int16", 2, 3, "short", "short", "short"),
    Scalar("uint16", 2, 4, "ushort", "ushort", "unsigned short"),
    Scalar("int32", 4, 5, "int", "int", "int"),
    Scalar("uint32", 4, 6, "uint", "uint", "unsigned int"),
    Scalar("int64", 8, 7, "long", "long", "long"),
    Scalar("uint64", 8, 8, "ulong", "ulong", "unsigned long"),
    Scalar("float16", 2, 9, "float", "half", "unsigned short"),
    Scalar("float32", 4, 10, "float", "float", "float"),
    Scalar("float64", 8, 11, "double", "double", "double"),
)
SCALARS = {scalar.name: scalar for scalar in _TABLE}
INTEGERS = frozenset(name for name in SCALARS if "int" in name)

_C_NAMES = {
    "_Bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8", "uchar": "uint8",
    "short": "int16", "short int": "int16", "unsigned short": "uint16", "ushort": "uint16",
    "int": "int32", "signed": "int32", "signed int": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "uint": "uint32", "long": "int64", "long int": "int64", "long long": "int64", "long long int": "int64",
    "unsigned long": "uint64", "unsigned long int": "uint64", "unsigned long long": "uint64", "ulong": "uint64",
    "half": "float16", "float": "float32", "double": "float64", "size_t": "uint64", "ptrdiff_t": "int64",
    **{f"{name}_t": name for name in INTEGERS},
}
_COMPLEX = frozenset(("complex64", "complex128", "cfloat_t", "cdouble_t", "float complex", "double complex",
                      "complex<float>", "complex<double>", "float _Complex", "double _Complex"))


def c_value(scalar: Scalar, language: str) -> str:
    """The type that an expression computes with."""
    if language == "opencl":
        return scalar.value
    return scalar.value if scalar.name in ("bool", "float16") else scalar.c_memory


def c_memory(scalar: Scalar, language: str) -> str:
    """The type of an element in memory."""
    return scalar.memory if language == "opencl" else scalar.c_memory


def refuse_complex(what: str) -> UnsupportedError:
    """The error for complex numbers."""
    return UnsupportedError(
        f"{what} is complex, and expressions of these kernels are C, which computes with complex numbers on no OpenCL "
        "device. Give x.real and x.imag to two parameters, or compute with drupe.array. A RawKernel takes arrays of "
        "complex64 as float2 and of complex128 as double2")


def named(text: str) -> "str | None":
    """The type that a name of NumPy's or of C's means, as NumPy's name; None for a name that means none here."""
    words = " ".join(text.split())
    if words in SCALARS:
        return words
    if words in _COMPLEX:
        raise refuse_complex(f"{words!r}")
    return _C_NAMES.get(words)


def of_dtype(dtype: Any) -> str:
    """The name of a dtype: a DType, a dtype or a class of NumPy's, or text."""
    if isinstance(dtype, str):
        found = named(dtype)
        if found is not None:
            return found
    name = getattr(dtype, "name", None)
    if not isinstance(name, str):
        import numpy

        name = numpy.dtype(dtype).name
    if name in ("complex64", "complex128"):
        raise refuse_complex(f"{name!r}")
    if name not in SCALARS:
        raise TypeError(f"{name!r} is no type of elements here; there are {', '.join(SCALARS)}")
    return name


def of_number(value: Any) -> "str | None":
    """The type of a Python number or a scalar of NumPy's; None for other objects."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(value, "shape", None) == () and not hasattr(value, "queue"):
        name = str(dtype.name)
        if name in SCALARS:
            return name
        if name.startswith("complex"):
            raise refuse_complex(f"the number {value!r}")
        return None
    if isinstance(value, numbers.Real):
        return "float64"
    if isinstance(value, numbers.Complex):
        raise refuse_complex(f"the number {value!r}")
    return None


def is_numpy(value: Any) -> bool:
    """Whether it is a scalar of NumPy's, whose class tells its type."""
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and type(value).__name__ != "ndarray"


def convert(value: Any, name: str, what: str) -> "bool | int | float":
    """A number as a kernel takes it for a parameter of this type."""
    if name == "bool":
        return bool(value)
    if name in INTEGERS:
        if of_number(value) in ("float16", "float32", "float64"):
            raise TypeError(f"{what} is of type {name}, and {value!r} is no integer; write int({value!r}) or "
                            f"another type")
        return int(value)
    if name == "float16":
        import numpy

        return float(numpy.float16(value))
    return float(value)
