"""What data types and this library can do, in the words of the Python array API."""
from drupe import _engine

_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
          "complex floating": "c", "numeric": "iufc"}
# Of an IEEE type: bits, and the digits of its significand and the least exponent.
_FLOATS = {"float16": (16, 11, -14), "float32": (32, 24, -126), "float64": (64, 53, -1022)}
_REAL = {"complex64": "float32", "complex128": "float64"}
_WIDE = ("float64", "complex128")  # what a device without double precision has not


def _dtype(of):
    return of.dtype if isinstance(of, _engine.Array) else _engine.DType(of)


def isdtype(dtype, kind):
    """Whether a data type is of a kind: a data type, "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric", or one of several in a tuple. ValueError: there is no such kind.

    >>> da.isdtype("int32", "integral")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    dtype = _engine.DType(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return dtype.kind in _KINDS[kind]
    if isinstance(kind, str):
        raise ValueError(f"{kind!r} is no kind of data types; there are {', '.join(_KINDS)}")
    return dtype == _engine.DType(kind)


def can_cast(from_, to, /):
    """Whether values of a data type, or of an array's, keep what they are in another by the rules of promotion.

    from_: an array or a data type. to: a data type. TypeError: what is none.

    >>> da.can_cast("float64", "float32")
    False
    """
    to = _engine.DType(to)
    return _engine._promote(_dtype(from_), to) == to


class finfo:
    """The limits of a floating-point data type, or of an array's: bits, eps, max, min, smallest_normal, dtype. Those
    of a complex type are of its real and imaginary parts.

    type: a data type or an array. ValueError: it is neither of floats nor of complex numbers.

    >>> finfo("complex64").dtype
    drupe.array.float32
    """

    def __init__(self, type, /):
        dtype = _dtype(type)
        if dtype.kind not in "fc":
            raise ValueError(f"finfo takes floating-point types, and {dtype} is none: iinfo() has integers")
        self.dtype = _engine.DType(_REAL.get(dtype.name, dtype))
        self.bits, digits, least = _FLOATS[self.dtype.name]
        self.eps, self.smallest_normal = 2.0 ** (1 - digits), 2.0 ** least
        self.max = (2 - self.eps) * 2.0 ** (1 - least)
        self.min = -self.max

    def __repr__(self):
        return (f"finfo(dtype={self.dtype}, bits={self.bits}, min={self.min!r}, max={self.max!r}, eps={self.eps!r}, "
                f"smallest_normal={self.smallest_normal!r})")


class iinfo:
    """The limits of an integer data type, or of an array's: bits, max, min, dtype.

    type: a data type or an array. ValueError: it is not of integers.

    >>> iinfo("int8").min, iinfo("int8").max
    (-128, 127)
    """

    def __init__(self, type, /):
        self.dtype = _dtype(type)
        if self.dtype.kind not in "iu":
            raise ValueError(f"iinfo takes integer types, and {self.dtype} is none")
        self.bits = 8 * self.dtype.itemsize
        signed = self.dtype.kind == "i"
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -self.max - 1 if signed else 0

    def __repr__(self):
        return f"iinfo(dtype={self.dtype}, bits={self.bits}, min={self.min}, max={self.max})"


class _Info:
    """What __array_namespace_info__() of the Python array API returns.

    >>> da.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """

    def capabilities(self):
        """What is optional in the standard, and how many dimensions an array can have, as a dict.

        >>> da.__array_namespace_info__().capabilities()["max dimensions"]
        32
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _engine._max_dims}

    def default_device(self):
        """The Device of arrays that are made without a word about it.

        >>> da.__array_namespace_info__().default_device() == da.zeros(1).device
        True
        """
        return _engine.empty(0).device

    def devices(self):
        """All devices, as a tuple.

        >>> da.zeros(1).device in da.__array_namespace_info__().devices()
        True
        """
        import drupe

        return tuple(drupe.devices())

    def default_dtypes(self, *, device=None):
        """The types of arrays that are made of Python's numbers, and of indices, as a dict. device: the one whose
        types they are, None for the default one.

        >>> da.__array_namespace_info__().default_dtypes(device="host")["real floating"]
        drupe.array.float64
        """
        real = _engine.empty(0, device=device).dtype
        twin = _engine.dtypes["complex128" if real == "float64" else "complex64"]
        return {"real floating": real, "complex floating": twin, "integral": _engine.dtypes["int64"],
                "indexing": _engine.dtypes["int64"]}

    def dtypes(self, *, device=None, kind=None):
        """The data types of the standard by name that the device has, of a kind as isdtype() knows them: float64 and
        complex128 only where it has double precision. float16 is not among them, since the standard has no such type.

        >>> list(da.__array_namespace_info__().dtypes(device="host", kind="complex floating"))
        ['complex64', 'complex128']
        """
        wide = (_engine.empty(0, device=device).device).has_aspect_fp64
        return {name: dtype for name, dtype in _engine.dtypes.items()
                if name != "float16" and (wide or name not in _WIDE) and (kind is None or isdtype(dtype, kind))}


def __array_namespace_info__():
    """What this library can do: capabilities(), default_device(), default_dtypes(), devices(), dtypes().

    >>> da.__array_namespace_info__().default_dtypes()["integral"] == "int64"
    True
    """
    return _Info()
