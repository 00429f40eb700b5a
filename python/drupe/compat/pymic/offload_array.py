"""OffloadArray: that of drupe.native with pyMIC's rules for operands."""
import numpy

from drupe import native
from drupe.compat.pymic import _trace

_NUMBERS = {"i": int, "f": float, "c": complex}


class OffloadArray(native.OffloadArray):
    """An array with a part on the host, `array`, and a part on a device. Operands have its shape and its type."""

    __hash__ = None  # as in pyMIC

    def __init__(self, shape, dtype, order="C", alloc_arr=True, base=None, device=None, stream=None):
        from drupe.compat.pymic.offload_device import devices

        if stream is None:
            stream = (devices[0] if device is None else device).get_default_stream()
        super().__init__(shape, dtype, order, alloc_arr, None, None, stream)
        self.base = base
        if base is not None:
            self._device, self.array = base._device.reshape(self._lying), base.array.reshape(self.shape)

    def _operand(self, other):
        if isinstance(other, (native.OffloadArray, numpy.ndarray)):
            if tuple(other.shape) != self.shape:
                raise ValueError("the shapes of the arrays differ: %s and %s" % (self.shape, tuple(other.shape)))
            if other.dtype != self.dtype:
                raise ValueError("the types of the arrays differ: %s and %s" % (self.dtype, other.dtype))
        elif isinstance(other, (bool, int, float, complex, numpy.generic)):
            self._check_number(other)
        return super()._operand(other)

    def _check_number(self, number):
        if self.dtype != numpy.dtype(type(number)):
            raise ValueError("an array of %s takes numbers of this type, not %s" % (self.dtype, type(number).__name__))

    def fill(self, value):
        """Set all elements to a number of the array's type. The array itself."""
        self._check_number(value)
        return super().fill(value)

    def zero(self, zero_value=None):
        """Set all elements to zero. The array itself."""
        return super().fill(0 if zero_value is None else zero_value)

    def one(self, one_value=None):
        """Set all elements to one. The array itself."""
        return super().fill(1 if one_value is None else one_value)

    def fillfrom(self, array):
        """Set all elements to those of a NumPy array. The array itself."""
        if not isinstance(array, numpy.ndarray):
            raise TypeError("fillfrom() takes a numpy.ndarray, not %s" % type(array).__name__)
        if array.shape != self.shape:
            raise TypeError("the shapes of the arrays differ: %s and %s" % (self.shape, array.shape))
        return super().fillfrom(array)

    def assign_stream(self, stream):
        """Go on in another stream of the same device."""
        if stream.get_device() != self.device:
            raise ValueError("the stream is of %s, the array of %s" % (stream.get_device(), self.device))
        super().assign_stream(stream)

    def reverse(self):
        """The elements in reverse order, in a new array."""
        if self.ndim > 1:
            raise ValueError("an array of several dimensions is not reversed")
        return super().reverse()

    def __len__(self):
        return self.shape[0] if self.shape else 1

    def __setitem__(self, index, sequence):
        if not isinstance(index, slice):
            raise TypeError("elements are set by slices, such as a[2:5], not by %s" % type(index).__name__)
        if index.step not in (None, 1):
            raise ValueError("a slice with the step %r is not set" % index.step)
        super().__setitem__(index, sequence)

    def __repr__(self):
        return repr(self.array)


for _name in ("update_device", "update_host"):
    setattr(OffloadArray, _name, _trace.traced(getattr(OffloadArray, _name)))
