"""SyclQueue, and what kernels are given."""
import ctypes
import operator

from drupe import _engine
from drupe.compat.dpctl._errors import (SyclDeviceCreationError, SyclKernelInvalidRangeError, SyclKernelSubmitError,
                                        SyclQueueCreationError, raises)
from drupe.compat.dpctl._sycl_context import SyclContext
from drupe.compat.dpctl._sycl_device import SyclDevice
from drupe.compat.dpctl._sycl_event import SyclEvent, behind_all
from drupe.compat.dpctl._wrapping import Wrapped, behind, refuse_capsule
from drupe.enums import backend_type

__all__ = ["LocalAccessor", "RawKernelArg", "SyclKernelInvalidRangeError", "SyclKernelSubmitError", "SyclQueue",
           "SyclQueueCreationError", "WorkGroupMemory"]

_ARGUMENTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64",
              "void_ptr", "local_accessor", "work_group_memory", "raw_kernel_arg")


def __getattr__(name):
    if name != "kernel_arg_type":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from enum import Enum

    made = Enum("kernel_arg_type", ["dpctl_" + word for word in _ARGUMENTS], module=__name__)
    made.__doc__ = "What an argument of a kernel may be."
    globals()[name] = made
    return made


# --- Arguments -------------------------------------------------------------------------------------------------------

_NUMBERS = (ctypes.c_char, ctypes.c_uint8, ctypes.c_int8, ctypes.c_short, ctypes.c_ushort, ctypes.c_int, ctypes.c_uint,
            ctypes.c_long, ctypes.c_ulong, ctypes.c_longlong, ctypes.c_ulonglong, ctypes.c_float, ctypes.c_double)
_SIZES = {"i1": 1, "u1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "i8": 8, "u8": 8, "f4": 4, "f8": 8}
# Elements of copies, by NumPy's codes and by the letters of struct and array.
_ITEMS = {**_SIZES, "b1": 1, "f2": 2, "c8": 8, "c16": 16, "?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "e": 2, "i": 4,
          "I": 4, "l": ctypes.sizeof(ctypes.c_long), "L": ctypes.sizeof(ctypes.c_long), "q": 8, "Q": 8, "f": 4, "d": 8,
          "F": 8, "D": 16}


def _count(value, what):
    number = operator.index(value)
    if number < 0:
        raise ValueError(f"{what} must not be negative, and {number} is")
    return number


class LocalAccessor:
    """Local memory of a work-group, for an argument of a kernel: elements of a type, in up to three dimensions."""

    def __init__(self, dtype, shape):
        if dtype not in _SIZES:
            raise ValueError(f"dtype is one of {', '.join(_SIZES)}, not {dtype!r}")
        lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        if not 1 <= len(lengths) <= 3:
            raise ValueError(f"a LocalAccessor has one to three dimensions, not {len(lengths)}")
        nbytes = _SIZES[dtype]
        for length in lengths:
            nbytes *= _count(length, "a length")
        self._kernel_argument = _engine.LocalMemory(nbytes)

    def __repr__(self):
        return f"LocalAccessor({self._kernel_argument.nbytes} bytes)"


class WorkGroupMemory:
    """Local memory of a work-group: WorkGroupMemory(nbytes) or WorkGroupMemory(dtype, count)."""

    def __init__(self, *args):
        if not 1 <= len(args) <= 2:
            raise TypeError(f"WorkGroupMemory takes nbytes, or a dtype and a count, not {len(args)} arguments")
        if len(args) == 1:
            nbytes = _count(args[0], "nbytes")
        elif isinstance(args[0], str) and args[0] in _SIZES:
            nbytes = _SIZES[args[0]] * _count(args[1], "a count")
        else:
            raise TypeError(f"dtype is one of {', '.join(_SIZES)}, not {args[0]!r}")
        self._kernel_argument = _engine.LocalMemory(nbytes)

    @staticmethod
    def is_available():
        """Whether it may be used: yes."""
        return True

    def __repr__(self):
        return f"WorkGroupMemory({self._kernel_argument.nbytes})"


class RawKernelArg:
    """The bytes of an argument, such as a struct: RawKernelArg(buffer) or RawKernelArg(nbytes, address). They are
    copied at once."""

    def __init__(self, *args):
        if not 1 <= len(args) <= 2:
            raise TypeError("RawKernelArg takes a buffer, or a number of bytes and an address, not "
                            f"{len(args)} arguments")
        if len(args) == 1:
            self._kernel_argument = memoryview(args[0]).tobytes()
        else:
            self._kernel_argument = ctypes.string_at(operator.index(args[1]), _count(args[0], "nbytes"))

    @staticmethod
    def is_available():
        """Whether it may be used: yes."""
        return True

    def __repr__(self):
        return f"RawKernelArg({self._kernel_argument!r})"


def _argument(arg):
    """An argument as Drupe takes it. Plain numbers do not say how large they are, and SYCL does not know the kernel."""
    if isinstance(arg, ctypes.c_char):
        return ctypes.c_int8(arg.value[0])
    if isinstance(arg, _NUMBERS):
        return arg
    given = getattr(arg, "_kernel_argument", None)  # of these classes and of memory
    if given is not None:
        return given
    raise TypeError(f"an argument of a kernel is a number of ctypes, USM memory, a LocalAccessor, WorkGroupMemory or a "
                    f"RawKernelArg, not {type(arg).__name__}")


def _range(given, what):
    """A range as OpenCL counts it: SYCL's last dimension is its first, the one that runs fastest."""
    lengths = list(given)
    if not 1 <= len(lengths) <= 3:
        raise SyclKernelInvalidRangeError(f"a range has one to three dimensions, and {what} has {len(lengths)}")
    return [_count(one, "a length of " + what) for one in reversed(lengths)]


# --- The queue -------------------------------------------------------------------------------------------------------

_PROPERTIES = ("default", "in_order", "enable_profiling")


def _flags(given):
    """property= as Drupe's keywords. SYCL's queues are out of order unless they are asked not to be."""
    words = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for word in words:
        if word not in _PROPERTIES:
            raise ValueError(f"property is one of {', '.join(_PROPERTIES)} or a tuple of them, not {word!r}")
    return {"in_order": "in_order" in words, "profiling": "enable_profiling" in words}


class SyclQueue(Wrapped):
    """A queue: of the best device, of a filter, a SyclDevice, or a SyclContext and one of its devices. It is out of
    order unless property= says "in_order"; "enable_profiling" lets events tell their times."""

    def __init__(self, *args, property=None):
        if len(args) > 2:
            raise TypeError(f"a SyclQueue takes up to two arguments, not {len(args)}")
        first = args[0] if args else None
        refuse_capsule(first, SyclQueueCreationError)
        if len(args) == 1 and isinstance(first, (SyclQueue, _engine.Queue)):
            self._drupe = behind(first)
            return
        if len(args) == 2:
            if not isinstance(first, SyclContext) or not isinstance(args[1], SyclDevice):
                raise TypeError("two arguments are a SyclContext and a SyclDevice")
            device, context = args[1]._drupe, first._drupe
        else:
            if first is not None and not isinstance(first, (str, SyclDevice)):
                raise TypeError(f"a SyclQueue is made of a filter or a SyclDevice, not of {type(first).__name__}")
            with raises(SyclQueueCreationError, SyclDeviceCreationError):
                device = SyclDevice(first)._drupe
            context = None
        flags = _flags(property)
        with raises(SyclQueueCreationError):
            self._drupe = _engine.Queue(device, context, **flags)

    # --- What it is ---

    @property
    def sycl_device(self):
        """Its device."""
        return SyclDevice._of(self._drupe.device)

    @property
    def sycl_context(self):
        """Its context."""
        return SyclContext._of(self._drupe.context)

    @property
    def backend(self):
        """A member of backend_type."""
        return backend_type(self._drupe.backend)

    @property
    def name(self):
        """The name of the device."""
        return self._drupe.name

    @property
    def driver_version(self):
        """The version of the device's driver."""
        return self._drupe.driver_version

    @property
    def is_in_order(self):
        """Whether work starts in the order of its submission."""
        return self._drupe.is_in_order

    @property
    def has_enable_profiling(self):
        """Whether its events carry times."""
        return self._drupe.has_enable_profiling

    def get_sycl_device(self):
        """Its device."""
        return self.sycl_device

    def get_sycl_context(self):
        """Its context."""
        return self.sycl_context

    def print_device_info(self):
        """Print what is most important of the device."""
        self._drupe.print_device_info()

    def __repr__(self):
        words = ["in_order"] * self.is_in_order + ["enable_profiling"] * self.has_enable_profiling
        return f"<dpctl.SyclQueue at {id(self):#x}{', property=' + repr(words) if words else ''}>"

    # --- Kernels ---

    def submit(self, kernel, args, gS, lS=None, dEvents=None):
        """Queue a kernel over the range gS, in work-groups of lS where it is given, both in SYCL's order: the last
        dimension is get_global_id(0) of a kernel in OpenCL C. Gives the SyclEvent; arguments are kept until then."""
        kernel = behind(kernel)
        if not isinstance(kernel, _engine.Kernel):
            raise TypeError(f"a SyclKernel is expected, not {type(kernel).__name__}")
        arguments = [_argument(one) for one in args]
        whole = _range(gS, "gS")
        groups = None if lS is None else _range(lS, "lS")
        if groups is not None and len(groups) != len(whole):
            raise ValueError(f"gS has {len(whole)} dimensions and lS {len(groups)}")
        if groups is not None and 0 in groups:  # which Drupe takes for "as you like"
            raise SyclKernelSubmitError("lengths of lS must not be 0: leave lS out to have the driver choose")
        with raises(SyclKernelSubmitError):
            return SyclEvent._of(self._drupe.submit(kernel, arguments, whole, groups, behind_all(dEvents)))

    submit_async = submit

    def submit_barrier(self, dependent_events=None):
        """An event for everything submitted before, or for these events."""
        return SyclEvent._of(self._drupe.barrier(behind_all(dependent_events)))

    def _submit_keep_args_alive(self, args, dEvents):
        """Keep Python objects until these events are over; gives the event for that."""
        return SyclEvent._of(self._drupe._submit_keep_args_alive(args, behind_all(dEvents)))

    def wait(self):
        """Wait for everything that was submitted."""
        self._drupe.wait()

    # --- Memory ---

    def memcpy_async(self, dest, src, count, dEvents=None):
        """Queue a copy of `count` bytes; gives the event."""
        return self.copy_async(dest, src, count, dEvents)

    def memcpy(self, dest, src, count):
        """Copy `count` bytes and wait."""
        self.copy_async(dest, src, count).wait()

    def copy_async(self, dest, src, count, dEvents=None, dtype="u1"):
        """Queue a copy of `count` elements of a type, "f4" or "f"; gives the event."""
        if not isinstance(dtype, str) or dtype not in _ITEMS:
            raise ValueError(f"dtype is one of {', '.join(_ITEMS)}, not {dtype!r}")
        nbytes = _count(count, "count") * _ITEMS[dtype]
        return SyclEvent._of(self._drupe.copy(behind(dest), behind(src), nbytes, behind_all(dEvents)))

    def copy(self, dest, src, count, dtype="u1"):
        """Copy `count` elements of a type and wait."""
        self.copy_async(dest, src, count, None, dtype).wait()

    def memset_async(self, mem, val, count=0, dEvents=None):
        """Queue setting `count` bytes (0: all) to a value from 0 to 255; gives the event."""
        return SyclEvent._of(self._drupe.memset_async(behind(mem), val, count, behind_all(dEvents)))

    def memset(self, mem, val, count=0):
        """Set `count` bytes (0: all) to a value and wait."""
        self.memset_async(mem, val, count).wait()

    def prefetch(self, mem, count=0):
        """A hint that `count` bytes (0: all) will be used on the device; waits."""
        self._drupe.prefetch(behind(mem), count).wait()

    def mem_advise(self, mem, count, advice):
        """A hint to the driver, in its own numbers; waits."""
        self._drupe.mem_advise(behind(mem), count, advice).wait()
