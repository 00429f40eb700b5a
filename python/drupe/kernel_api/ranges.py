"""How many work-items a kernel has: Range and NdRange."""
import math
import operator

_MOST = 2**63


def _size(value, what):
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None
    if value < 0:
        raise ValueError(f"{what} must not be negative")
    return value


class Range(tuple):
    """How many work-items a kernel has in each of 1 to 3 dimensions, of which the last one runs fastest: a tuple of
    ints. It is empty if one of them is 0.

    >>> Range(4, 5).size()
    20
    """
    __slots__ = ()

    def __new__(cls, dim0, dim1=None, dim2=None):
        dims = 3 if dim2 is not None else 2 if dim1 is not None else 1
        sizes = [_size(one, f"dim{number} of a Range") for number, one in enumerate((dim0, dim1, dim2)[:dims])]
        if math.prod(sizes) >= _MOST:
            raise OverflowError("a Range has fewer than 2**63 work-items")
        return super().__new__(cls, sizes)

    def __getnewargs__(self):
        return tuple(self)

    def __repr__(self):
        return "Range(%s)" % ", ".join(map(str, self))

    def get(self, index, /):
        """The size of a dimension."""
        return self[index]

    def size(self):
        """The number of work-items."""
        return math.prod(self)

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self)

    @property
    def dim0(self):
        """The size of the first dimension."""
        return self[0]

    @property
    def dim1(self):
        """The size of the second dimension; -1 where there is none."""
        return self[1] if len(self) > 1 else -1

    @property
    def dim2(self):
        """The size of the third dimension; -1 where there is none."""
        return self[2] if len(self) > 2 else -1


def _range(value, what):
    if isinstance(value, Range):
        return value
    sizes = tuple(value) if hasattr(value, "__iter__") else (value,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{what} needs 1 to 3 entries")
    return Range(*(_size(one, what) for one in sizes))


class NdRange:
    """How many work-items a kernel has, and how many of them make a group, which shares local memory and meets at
    barriers. Both are a Range, an int or a sequence of ints; the second one divides the first one in each dimension.

    >>> NdRange((64, 64), (8, 8)).local_range.size()
    64
    """
    __slots__ = ("_global", "_local")

    def __init__(self, global_size, local_size):
        self._global, self._local = _range(global_size, "global_size"), _range(local_size, "local_size")
        if len(self._global) != len(self._local):
            raise ValueError("local_size has %d dimension%s and global_size %d"
                             % (len(self._local), "" if len(self._local) == 1 else "s", len(self._global)))
        for dim, (whole, part) in enumerate(zip(self._global, self._local)):
            if part == 0:
                raise ValueError("local_size is 0 in dimension %d; a group has 1 or more work-items" % dim)
            if whole % part:
                raise ValueError("in dimension %d local_size, %d, does not divide global_size, %d; round that up to %d "
                                 "and let the work-items beyond the data return at once"
                                 % (dim, part, whole, (whole // part + 1) * part))

    @property
    def global_range(self):
        """The Range of all work-items."""
        return self._global

    @property
    def local_range(self):
        """The Range of a group's work-items."""
        return self._local

    def get_global_range(self):
        """The Range of all work-items."""
        return self._global

    def get_local_range(self):
        """The Range of a group's work-items."""
        return self._local

    def __eq__(self, other):
        if not isinstance(other, NdRange):
            return NotImplemented
        return (self._global, self._local) == (other._global, other._local)

    def __hash__(self):
        return hash((self._global, self._local))

    def __reduce__(self):
        return NdRange, (self._global, self._local)

    def __repr__(self):
        return f"NdRange({self._global!r}, {self._local!r})"
