"""usm_ndarray: an array over USM memory."""
import numbers
import operator

from drupe import _engine
from drupe import array as da
from drupe.compat.dpctl import memory
from drupe.compat.dpctl.tensor._calling import ahead, behind, operand
from drupe.compat.dpctl.tensor._device import Device, refuse_stream
from drupe.compat.dpctl.tensor._flags import Flags

__all__ = ["usm_ndarray"]

_KINDS = {"device": memory.MemoryUSMDevice, "shared": memory.MemoryUSMShared, "host": memory.MemoryUSMHost}


def default_float(device):
    """The type of floating-point numbers that nobody named, on a device of Drupe's."""
    return "float64" if device.has_aspect_fp64 else "float32"


def _strides_of(shape, order):
    strides, step = [], 1
    for length in shape if order == "F" else reversed(shape):
        strides.append(step)
        step *= length
    return tuple(strides if order == "F" else reversed(strides))


def _reach(shape, strides):
    """How many elements lie before the first one of an array, and how many behind it."""
    if 0 in shape:
        return 0, 0
    steps = [(length - 1) * stride for length, stride in zip(shape, strides)]
    return -sum(one for one in steps if one < 0), sum(one for one in steps if one > 0)


class usm_ndarray:  # noqa: N801 (dpctl's name)
    """An array. strides and offset count elements; `buffer` is a kind of memory, USM memory, or what has some."""

    __array_ufunc__ = None  # NumPy leaves mixed operations to us, and we refuse them
    _writable = True

    def __init__(self, shape, dtype=None, strides=None, buffer="device", offset=0, order="C", buffer_ctor_kwargs=None,
                 array_namespace=None):
        shape = (operator.index(shape),) if hasattr(shape, "__index__") else tuple(map(operator.index, shape))
        if order not in ("C", "F"):
            raise ValueError(f"order is 'C' or 'F', not {order!r}")
        if min(shape, default=0) < 0:
            raise ValueError(f"lengths must not be negative, and the shape is {shape}")
        options = buffer_ctor_kwargs or {}
        if isinstance(buffer, str):
            if buffer not in _KINDS:
                raise ValueError(f"buffer is one of {', '.join(_KINDS)} or USM memory, not {buffer!r}")
            queue = Device.create_device(options.get("queue")).sycl_queue
            dtype = _engine.empty((), dtype or default_float(queue._drupe.device), queue=queue._drupe).dtype
            # New memory has room for the elements alone; as in dpctl, an offset into it means nothing.
            offset, behind_it = _reach(shape, strides if strides is not None else _strides_of(shape, order))
            buffer = _KINDS[buffer]((offset + behind_it + 1) * dtype.itemsize, **{**options, "queue": queue})
        else:
            if isinstance(buffer, usm_ndarray):  # its whole memory: offset counts from there, as _element_offset does
                self._writable = buffer._writable
                buffer = buffer.usm_data
            buffer = memory.as_usm_memory(buffer)
        strides = _strides_of(shape, "F") if strides is None and order == "F" else strides
        dtype = dtype or default_float(buffer._drupe.device)
        self._drupe = _engine._array_over(buffer._drupe, dtype, shape, strides, operator.index(offset),
                                           buffer.sycl_queue._drupe)
        self._namespace = array_namespace

    @classmethod
    def _of(cls, array, writable=True):
        """The one with this Array of Drupe's behind it."""
        self = cls.__new__(cls)
        self._drupe = array
        self._namespace = None
        if not writable:
            self._writable = False
        return self

    # --- What it is ---

    ndim = property(lambda self: self._drupe.ndim, doc="The number of axes.")
    size = property(lambda self: self._drupe.size, doc="The number of elements.")
    itemsize = property(lambda self: self._drupe.itemsize, doc="Bytes of an element.")
    nbytes = property(lambda self: self._drupe.nbytes, doc="Bytes of all elements.")
    strides = property(lambda self: self._drupe.strides, doc="Steps along the axes, in elements.")
    dtype = property(lambda self: self._drupe.dtype.dtype, doc="The type of elements, as NumPy's.")
    usm_type = property(lambda self: self._drupe.usm_type, doc='"device", "shared" or "host".')
    flags = property(Flags, doc="How the elements lie, and whether they may be written.")
    device = property(lambda self: Device.create_device(self.sycl_queue), doc="Its Device.")
    sycl_queue = property(lambda self: ahead(self._drupe.queue), doc="Its SyclQueue.")
    sycl_device = property(lambda self: self.sycl_queue.sycl_device, doc="Its SyclDevice.")
    sycl_context = property(lambda self: self.sycl_queue.sycl_context, doc="Its SyclContext.")
    _pointer = property(lambda self: self._drupe._pointer, doc="The address of the first element.")

    @property
    def shape(self):
        """The lengths of the axes. May be set, where that needs no copy."""
        return self._drupe.shape

    @shape.setter
    def shape(self, shape):
        try:
            self._drupe = da.reshape(self._drupe, shape, copy=False)
        except ValueError as error:
            raise AttributeError(f"this array cannot take the shape {shape} without a copy: {error}") from None

    @property
    def usm_data(self):
        """Its memory."""
        found = memory._Memory._of(self._drupe.usm_data)
        found._placed = self._drupe.queue
        return found

    @property
    def _element_offset(self):
        return self._drupe._offset

    @property
    def _byte_bounds(self):
        """The address of the lowest byte, and of the one behind the highest."""
        if self.size == 0:
            return self._pointer, self._pointer
        reaches = [(length - 1) * stride * self.itemsize for length, stride in zip(self.shape, self.strides)]
        low = sum(one for one in reaches if one < 0)
        return self._pointer + low, self._pointer + sum(one for one in reaches if one > 0) + self.itemsize

    @property
    def __sycl_usm_array_interface__(self):
        """The description that other libraries read."""
        return {**self._drupe.__sycl_usm_array_interface__, "syclobj": self.sycl_queue,
                "data": (self._drupe.__sycl_usm_array_interface__["data"][0], not self._writable)}

    # --- Views ---

    def _view(self, array):
        return self._of(array, self._writable)

    T = property(lambda self: self._view(_transposed(self._drupe)), doc="The transpose of a matrix.")
    mT = property(lambda self: self._view(self._drupe.mT), doc="The last two axes exchanged.")

    @property
    def real(self):
        """The real parts."""
        return self._view(self._drupe.real)

    @real.setter
    def real(self, value):
        self.real[...] = value

    @property
    def imag(self):
        """The imaginary parts."""
        return self._view(self._drupe.imag)

    @imag.setter
    def imag(self, value):
        self.imag[...] = value

    def __getitem__(self, key):
        return self._view(self._drupe[behind(key)])

    def __setitem__(self, key, value):
        if not self._writable:
            raise ValueError("this array is read-only")
        value = behind(value)
        if not isinstance(value, (_engine.Array, numbers.Number)):  # of NumPy, or a sequence
            value = da.asarray(value, queue=self._drupe.queue)
        self._drupe[behind(key)] = value

    def to_device(self, target_device, /, *, stream=None):
        """The array on another device, or itself."""
        refuse_stream(stream)
        queue = Device.create_device(target_device).sycl_queue
        return self if queue == self.sycl_queue else self._of(self._drupe.to_device(queue._drupe))

    # --- Python's protocols ---

    def __array_namespace__(self, api_version=None):
        """dpctl.tensor."""
        from drupe.compat.dpctl import tensor

        if api_version is not None and not isinstance(api_version, str):
            raise TypeError(f"api_version is a string, not {api_version!r}")
        if api_version is not None and not "2021.12" <= api_version <= tensor.__array_api_version__:
            raise ValueError(f"dpctl.tensor follows the array API {tensor.__array_api_version__}, not {api_version!r}")
        return self._namespace or tensor

    def _set_namespace(self, mod):
        self._namespace = mod

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The elements as a capsule of DLPack."""
        refuse_stream(stream)
        if not self._writable and not copy:
            raise BufferError("this array is read-only, which Drupe's capsules do not tell: give copy=True, or set "
                              "flags.writable")
        return self._drupe.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        """Where DLPack finds the elements: (1, 0) is host memory, (14, n) an OpenCL device."""
        return self._drupe.__dlpack_device__()

    def __array__(self, dtype=None, /, *, copy=None):
        raise TypeError("an array is never copied to the host implicitly: write dpctl.tensor.asnumpy(x)")

    def __reduce__(self):
        return usm_ndarray._of, (self._drupe,)

    def __len__(self):
        return len(self._drupe)

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def __str__(self):
        from drupe.compat.dpctl.tensor._print import usm_ndarray_str

        return usm_ndarray_str(self)

    def __repr__(self):
        from drupe.compat.dpctl.tensor._print import usm_ndarray_repr

        return usm_ndarray_repr(self)

    __hash__ = None


def _transposed(array):
    if array.ndim > 2:
        raise ValueError(f"T is of one or two axes, and this array has {array.ndim}: write permute_dims()")
    return array.T


# --- Operators -------------------------------------------------------------------------------------------------------

def _number(name):
    def convert(self):
        return getattr(self._drupe, name)()

    convert.__name__ = name
    return convert


def _unary(function):
    return lambda self: ahead(function(self._drupe))


def _binary(function, swapped=False):
    def operate(self, other):
        found = operand(other, self._drupe)
        if found is None:
            return NotImplemented
        return ahead(function(found, self._drupe) if swapped else function(self._drupe, found))

    return operate


def _equality(function):
    """Python answers == and != by itself where both sides decline, so that a list or NumPy's array would be unequal."""
    def operate(self, other):
        found = operand(other, self._drupe)
        if found is None:
            raise TypeError(f"a usm_ndarray is compared with arrays and numbers, not with {type(other).__name__}")
        return ahead(function(self._drupe, found))

    return operate


def _inplace(function):
    def operate(self, other):
        found = operand(other, self._drupe)
        if found is None:
            return NotImplemented
        if not self._writable:
            raise ValueError("this array is read-only")
        self._drupe = function(self._drupe, found)
        return self

    return operate


for _name in ("bool", "int", "float", "complex", "index"):
    setattr(usm_ndarray, f"__{_name}__", _number(f"__{_name}__"))
for _name in ("abs", "invert", "neg", "pos"):
    setattr(usm_ndarray, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("eq", "ne"):
    setattr(usm_ndarray, f"__{_name}__", _equality(getattr(operator, _name)))
for _name in ("lt", "le", "gt", "ge"):
    setattr(usm_ndarray, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in "add and_ floordiv lshift matmul mod mul or_ pow rshift sub truediv xor".split():
    _bare, _function = _name.rstrip("_"), getattr(operator, _name)
    setattr(usm_ndarray, f"__{_bare}__", _binary(_function))
    setattr(usm_ndarray, f"__r{_bare}__", _binary(_function, swapped=True))
    setattr(usm_ndarray, f"__i{_bare}__", _inplace(getattr(operator, "i" + _name.rstrip("_"))))
