"""Memory of kernels: LocalAccessor, PrivateArray and AtomicRef."""
import operator
import sys

from drupe.kernel_api._running import running
from drupe.kernel_api.enums import AddressSpace, MemoryOrder, MemoryScope


def _shape(shape):
    shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    shape = tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in shape):
        raise ValueError("a shape has no negative sizes, and this one is %s" % (shape,))
    return shape


class LocalAccessor:
    """Memory that the work-items of a group share, as an argument of a kernel: each group has such an array of its own
    while it runs, whose elements nobody has written.

    shape: an int or a tuple; dtype: of the elements. Kernels that are launched over an NdRange take it; they read and
    write it as any array.

    >>> LocalAccessor((8, 4), "float32")
    LocalAccessor((8, 4), float32)

    @drupe.kernel
    def reverse(item, a, part):
        i, n = item.get_local_id(0), item.get_local_range(0)
        part[i] = a[item.get_global_id(0)]
        group_barrier(item.get_group())
        a[item.get_global_id(0)] = part[n - 1 - i]

    call_kernel(reverse, NdRange(64, 8), a, LocalAccessor(8, a.dtype))
    """
    __slots__ = ("shape", "dtype", "size", "_dtype", "_nbytes")

    def __init__(self, shape, dtype):
        import numpy

        self.shape, self.dtype = _shape(shape), numpy.dtype(dtype)
        self._dtype = self.dtype.name  # what launches read
        self.size = 1
        for n in self.shape:
            self.size *= n
        self._nbytes = self.size * self.dtype.itemsize

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self.shape)

    def _outside(self, *_):
        raise TypeError("a LocalAccessor has elements inside of a kernel only, to which it is passed: "
                        "call_kernel(kernel, NdRange(...), ..., LocalAccessor(shape, dtype))")

    __getitem__ = __setitem__ = __len__ = __iter__ = _outside

    def __repr__(self):
        return "LocalAccessor(%s, %s)" % (self.shape, self.dtype)


class PrivateArray:
    """An array that one work-item has for itself, made inside of a kernel.

    shape: an int or a tuple, known when the kernel is compiled; dtype: of the elements; fill_zeros: whether they are 0
    at first, and else not written.

    @drupe.kernel
    def norm(item, points, out):
        i = item.get_id(0)
        squares = PrivateArray(3, numpy.float64)
        for k in range(3):
            squares[k] = points[i, k] ** 2
        out[i] = math.sqrt(squares[0] + squares[1] + squares[2])
    """

    def __new__(cls, shape, dtype, fill_zeros=False):
        return running("PrivateArray").private_array(_shape(shape), dtype, fill_zeros, sys._getframe(1))


def _second(old, new):
    return new


def _enumerated(kind, value, what):
    try:
        return kind(value)
    except ValueError:
        raise ValueError("%s is a %s, not %r" % (what, kind.__name__, value)) from None


def _same(old, wanted):
    """Whether a value is the expected one, as devices have it: of floats, the bits."""
    import numpy

    old = numpy.asarray(old)
    return bool(old.tobytes() == numpy.asarray(wanted, old.dtype).tobytes() if old.dtype.kind == "f" else old == wanted)


class AtomicRef:
    """An element of an array on which work-items operate one after the other. Each fetch_...() gives the value before.

    ref, index: the array, and the element's place in it, an int or a tuple. memory_order: what its operations order
    beyond the element. memory_scope: who takes part. address_space: found out by itself; for readers.

    @drupe.kernel
    def histogram(item, values, counts):
        AtomicRef(counts, values[item.get_id(0)]).fetch_add(1)
    """
    __slots__ = ("_ref", "_index", "_run", "memory_order", "memory_scope", "_space")

    def __init__(self, ref, index, memory_order=MemoryOrder.RELAXED, memory_scope=MemoryScope.DEVICE,
                 address_space=None):
        self._run = running("AtomicRef")
        self._ref, self._index = ref, index
        self.memory_order = _enumerated(MemoryOrder, memory_order, "memory_order")
        self.memory_scope = _enumerated(MemoryScope, memory_scope, "memory_scope")
        self._space = address_space if address_space is None else _enumerated(AddressSpace, address_space,
                                                                              "address_space")
        if memory_order == MemoryOrder.CONSUME_UNSUPPORTED:
            raise ValueError("no device orders by CONSUME_UNSUPPORTED; use MemoryOrder.ACQUIRE")
        self._run.one_element(ref, index)

    @property
    def ref(self):
        """The value, as load() gives it."""
        return self._do("load", None, None, sys._getframe(1))

    @property
    def address_space(self):
        """Where the element lies."""
        return self._run.space_of(self._ref) if self._space is None else self._space

    def _do(self, kind, operation, val, frame, integers=False):
        return self._run.atomic(self, kind, operation, val, frame, integers)

    def fetch_add(self, val):
        """Add val."""
        return self._do("update", operator.add, val, sys._getframe(1))

    def fetch_sub(self, val):
        """Subtract val."""
        return self._do("update", operator.sub, val, sys._getframe(1))

    def fetch_min(self, val):
        """Keep the smaller of the value and val."""
        return self._do("update", min, val, sys._getframe(1))

    def fetch_max(self, val):
        """Keep the larger of the value and val."""
        return self._do("update", max, val, sys._getframe(1))

    def fetch_and(self, val):
        """Keep the bits that val has, too; of integers."""
        return self._do("update", operator.and_, val, sys._getframe(1), True)

    def fetch_or(self, val):
        """Set the bits of val; of integers."""
        return self._do("update", operator.or_, val, sys._getframe(1), True)

    def fetch_xor(self, val):
        """Flip the bits of val; of integers."""
        return self._do("update", operator.xor, val, sys._getframe(1), True)

    def load(self):
        """The value."""
        return self._do("load", None, None, sys._getframe(1))

    def store(self, val):
        """Write val; gives nothing."""
        self._do("store", _second, val, sys._getframe(1))

    def exchange(self, val):
        """Write val."""
        return self._do("update", _second, val, sys._getframe(1))

    def compare_exchange(self, expected, desired, expected_idx=0):
        """Write `desired` if the value is expected[expected_idx], and give whether it was; where it was not, the value
        is written into expected[expected_idx]. Floats are compared by their bits."""
        wanted = expected[expected_idx]
        old = self._exchange(wanted, desired, sys._getframe(1))
        if _same(old, wanted):
            return True
        expected[expected_idx] = old
        return False

    def _exchange(self, wanted, desired, frame):
        return self._do("exchange", lambda old, new: new if _same(old, wanted) else old, desired, frame)
