"""Kernels in Python: a function is specialised by the types of its arguments, and launched.

`drupe.kernel` makes a Kernel. Its launcher (engine/python/dispatch) knows the variants by the types of arguments and
launches them without running Python; what it does not know comes to Kernel._slow(), which compiles.
"""
import functools
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from drupe import _engine
from drupe.compiler import careful, types
from drupe.compiler.messages import KernelError
from drupe.compiler.names import held

_OPENCL_C = 2  # the bit of OpenCL C in Device.languages
call_kernel, call_kernel_async = _engine._call_kernel, _engine._call_kernel_async
_GPU_LOCAL = {1: (256,), 2: (8, 32), 3: (2, 4, 32)}
_CPU_LOCAL = {1: (128,), 2: (1, 128), 3: (1, 1, 128)}


class Kernel:
    """What @drupe.kernel makes of a function. Launch it by drupe.call_kernel(kernel, Range(n), *arguments), or as
    kernel[Range(n)](*arguments), kernel[NdRange(global, local)](*arguments), kernel[global, local](*arguments).

    >>> import numpy
    >>> @drupe.kernel
    ... def add(item, a, b, c):
    ...     i = item.get_id(0)
    ...     c[i] = a[i] + b[i]
    """

    dialect: Any = None  # a dialects.Dialect, where it was written for another system

    def __init__(self, function: Callable[..., Any], *, checked: "bool | None" = None,
                 local_size: "Sequence[int] | None" = None) -> None:
        if not callable(function):
            raise TypeError(f"drupe.kernel takes a function, not {type(function).__name__}: put it above a def")
        functools.update_wrapper(self, function)
        self.py_func, self.checked = function, checked
        self.local_size = None if local_size is None else tuple(local_size)
        self.grain = 0  # work-items of a chunk on the host; 0: by what they cost
        self.variants: "dict[Any, Any]" = {}
        self._lock, self._told = threading.RLock(), False
        self._launcher = _engine._Launcher(self, functools.partial(_slow, weakref.ref(self)))
        careful.register(self)

    def __getitem__(self, geometry: Any) -> "functools.partial[Any]":
        return functools.partial(_engine._call_kernel, self, space_of(geometry))

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"a kernel is launched over work-items: drupe.call_kernel({self.__name__}, drupe.Range(n), "
                        f"...) or {self.__name__}[drupe.Range(n)](...)")

    def __repr__(self) -> str:
        return f"<drupe.kernel {self.__qualname__}, {len(self.variants)} compiled>"

    def inspect(self, *args: Any, stage: "str | None" = None) -> Any:
        """What became of the function: types, the generated source, its memory, in colours. With arguments (a Range or
        NdRange first): for these, compiled if need be; without: of what was launched last. `stage` is one of
        "names", "types", "tree", "text"."""
        from drupe.compiler import show

        return show.inspect(self, args, stage)

    def clear(self) -> None:
        """Forget what was compiled."""
        with self._lock:
            self.variants.clear()
            self._launcher.clear()


def kernel(function: "Callable[..., Any] | str | None" = None, **options: Any) -> Any:
    """A function as a kernel for devices: it is compiled when it is launched, for the types of its arguments.

        @drupe.kernel
        def add(item, a, b, c):
            i = item.get_id(0)
            c[i] = a[i] + b[i]

        drupe.call_kernel(add, drupe.Range(n), a, b, c)

    The first parameter is the item (an Item over a Range, an NdItem over an NdRange), and may be left out by kernels
    that ask kernel_api.get_global_id(0). Options: `checked=True` looks at every index; `local_size` is the size of
    work-groups over a Range, where that is not left to Drupe. docs/kernels.md tells what kernels can be written with.
    """
    if callable(function):
        return Kernel(function, **options)
    return functools.partial(Kernel, **options)


class DeviceFunction:
    """What @drupe.device_func makes of a function: kernels call it, and so does plain Python."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = self._device_function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<drupe.device_func {self.__qualname__}>"


def device_func(function: "Callable[..., Any] | str | None" = None, **options: Any) -> Any:
    """A function that kernels call. It is compiled with each of them, for the types that it is given.

        @drupe.device_func
        def square(x):
            return x*x
    """
    return DeviceFunction(function) if callable(function) else DeviceFunction


def space_of(geometry: Any) -> "_engine.Range | _engine.NdRange":
    """Range or NdRange from what stands in kernel[...]."""
    if isinstance(geometry, (_engine.Range, _engine.NdRange)):
        return geometry
    if isinstance(geometry, tuple) and len(geometry) == 2:
        return _sized(*geometry)
    return _range(geometry)


def _is_sizes(thing):
    return isinstance(thing, (int, tuple, list)) and thing != () and thing != []


def _range(sizes):
    return _engine.Range(*sizes) if isinstance(sizes, (tuple, list)) else _engine.Range(sizes)


def _sized(sizes, local):
    from drupe import kernel_api

    whole = sizes if isinstance(sizes, _engine.Range) else _range(sizes)
    if local is None or local is kernel_api.DEFAULT_LOCAL_SIZE or not _is_sizes(local):
        return whole
    return _engine.NdRange(whole, _range(local))


# --- Types of arguments ------------------------------------------------------------------------------------

def type_of(value, name):
    """The type of an argument (types.py), and the queue of an array: (type, queue or None)."""
    if isinstance(value, _engine.Array):
        layout = "C" if value.flags["c_contiguous"] else "A"
        return types.Array(str(value.dtype), value.ndim, layout), value.queue
    scalar = types.of_number(_plain(value))
    if scalar is not None:
        if scalar.kind == 1 and not -1 << 63 <= int(value) < (1 << 63 if scalar.weak else 1 << 64):
            raise KernelError("DK019", "The argument %r is %d, which has more than 64 bits." % (name, value))
        return scalar, None
    if isinstance(value, tuple):
        found = [type_of(one, "%s[%d]" % (name, at)) for at, one in enumerate(value)]
        queues = [queue for _type, queue in found if queue is not None]
        return types.Tuple(tuple(one for one, _queue in found), type(value)), queues[0] if queues else None
    from drupe import kernel_api

    if isinstance(value, kernel_api.LocalAccessor):
        _engine._local_accessor(kernel_api.LocalAccessor)
        return types.Array(_dtype_name(value.dtype), len(value.shape), "C", "local"), None
    _refuse(value, name)


def _dtype_name(dtype):
    import numpy

    return numpy.dtype(dtype).name


def _refuse(value, name):
    if hasattr(value, "__array_interface__"):
        raise KernelError("DK007", "The argument %r is an array of NumPy, which is not on a device." % name,
                          "Copy it there: drupe.array.asarray(x); @drupe.offload does that by itself.")
    if isinstance(value, list):
        raise KernelError("DK007", "The argument %r is a list." % name, "Pass an array, or a tuple.")
    raise KernelError("DK007", "The argument %r is %s, which a kernel cannot take." % (
        name, "None" if value is None else "of the type " + type(value).__name__),
        "It takes arrays of drupe.array, numbers, tuples, named tuples and LocalAccessor.")


# --- Variants ----------------------------------------------------------------------------------------------

def dialect_of(device):
    """What a device's kernels are written in; None where it compiles nothing."""
    if device.backend.name == "host":
        return "c99"
    return "opencl" if device.languages & _OPENCL_C else None


def _slow(owner, space, wait_for, args):
    """A launch that the launcher does not know. An error is the user's: it shows no frames of the compiler."""
    try:
        return _launched(owner(), space, wait_for, args)
    except KernelError as error:
        raise error.with_traceback(None) from None


def _launched(kernel, space, wait_for, args):
    names = _parameter_names(kernel, args)
    found = [type_of(value, name) for value, name in zip(args, names)]
    queues = [queue for _type, queue in found if queue is not None]
    if not queues:
        raise KernelError("DK007", "%s() was given no array, so its device is not known." % kernel.__name__,
                          "Pass at least one array of drupe.array.")
    _check_queues(kernel, queues)
    plain = tuple(_plain(value) for value in args)
    with kernel._lock:
        variant = variant_for(kernel, tuple(kind for kind, _queue in found), space, queues[0])
        if variant.kernel is not None:
            _check_memory(variant, space, args)
        guarded = variant.failures or careful.replay()
        if not guarded and variant.kernel is not None:
            _add(kernel, variant, space, plain)
    if variant.kernel is None:
        return _simulated(kernel, space, wait_for, args, queues[0])
    if guarded:
        from drupe.compiler import guard

        return guard.launch(kernel, variant, space, wait_for, plain)
    same = all(one is before for one, before in zip(plain, args))
    return None if same else kernel._launcher(space, wait_for, plain)  # None: the launcher looks again


def _simulated(kernel, space, wait_for, args, queue):
    """Where nothing compiles for `host`: the kernel runs as plain Python, now. Said once of each kernel."""
    from drupe import kernel_api

    if not kernel._told:
        kernel._told = True
        warnings.warn("There is no C compiler for kernels on %s, so %s() runs in the simulator, which is slow. Install "
                      "one (gcc or clang), or use another device." % (queue.device.filter_string, kernel.__name__),
                      stacklevel=3)
    for event in wait_for if isinstance(wait_for, (list, tuple)) else [wait_for] if wait_for else []:
        event.wait()
    queue.wait()
    kernel_api.call_kernel(kernel, space, *args)
    return queue.barrier()


def _plain(value):
    """An argument as the launcher knows it: the number in an object of a derived class, such as an IntEnum."""
    if isinstance(value, (_engine.Array, tuple)):
        return value
    for kind in (bool, int, float, complex):
        if isinstance(value, kind) and not hasattr(value, "dtype"):
            return value if type(value) is kind else kind(value)
    dtype = getattr(value, "dtype", None)
    if types.of_number(value) and dtype is not None:
        import numpy

        kind = getattr(numpy, dtype.name + ("_" if dtype.name == "bool" else ""))
        return value if type(value) is kind else kind(value)
    return value


def _check_queues(kernel, queues):
    """Computation follows data: the arrays of a launch are in one place."""
    other = next((queue for queue in queues if queue != queues[0]), None)
    if other is not None:
        raise _engine.ExecutionPlacementError(
            "the arrays that %s() is given are on different queues (of %s and %s): bring them together with "
            "to_device()" % (
                kernel.__name__, queues[0].device.filter_string, other.device.filter_string))


def _parameter_names(kernel, args):
    code = getattr(kernel.py_func, "__code__", None)
    names = code.co_varnames[:code.co_argcount] if code else ()
    names = names[max(0, len(names) - len(args)):]
    return [*names, *("#%d" % at for at in range(len(names), len(args)))]


def variant_for(kernel, kinds, space, queue):
    """The compiled variant for these types; compiled now if it is not there."""
    grouped = isinstance(space, _engine.NdRange)
    dims = space.global_range.ndim if grouped else space.ndim
    device = queue.device
    checked = careful.is_checked() if kernel.checked is None else kernel.checked
    key = (kinds, grouped, dims, device, bool(checked))
    variant = kernel.variants.get(key)
    if variant is not None and _is_current(variant):
        return variant
    from drupe.compiler import build

    variant = build.compile(kernel, kinds, dims, grouped, device, bool(checked))
    build.make(kernel, variant, queue, work_of(variant, space))
    kernel.variants[key] = variant
    return variant


def _is_current(variant):
    """Whether the globals that were compiled in are what they were; a number that was assigned again is."""
    now = [(owner, name, held(owner, name)) for owner, name, _value in variant.watched]
    same = all(value is before or (type(value) is type(before) and types.of_number(value) and
                                   repr(value) == repr(before))  # 0.0 is not -0.0
               for (_owner, _name, value), (_o, _n, before) in zip(now, variant.watched))
    if same:
        variant.watched = now
    return same


def work_of(variant, space):
    """How much a launch has to do, roughly: work-items times operations (passes.cost())."""
    whole = space.global_range if isinstance(space, _engine.NdRange) else space
    return whole.size() * variant.cost


def _check_memory(variant, space, args):
    """Local memory that no launch can have."""
    local = list(_accessors(args))
    empty = next((one for one in local if not one.size), None)
    if empty is not None:
        raise KernelError("DK018", "%r has no elements." % empty, "Leave it out, or give it one.")
    if variant.text.room is not None:
        items = space.local_range.size()
        needed = sum(one._nbytes for one in local) + items * variant.text.item_bytes
        if needed > variant.text.room:
            raise KernelError("DK018", "A group of %d work-items needs %d KiB of local and private memory, and the "
                              "host has %d KiB for it." % (items, -(-needed // 1024), variant.text.room >> 10),
                              "Use smaller groups or arrays, or arrays in global memory.")


def _accessors(args):
    memory = sys.modules.get("drupe.kernel_api.memory")  # who has one has imported it
    for one in args:
        if isinstance(one, tuple):
            yield from _accessors(one)
        elif memory is not None and isinstance(one, memory.LocalAccessor):
            yield one


def _add(kernel, variant, space, args):
    local = variant.local if variant.form == "range" else None
    kernel._launcher.add(args, space, variant.kernel, tuple(variant.text.params), variant.form, variant.watched,
                         local=local, grain=variant.grain, room=variant.text.room,
                         item_bytes=variant.text.item_bytes)


def local_for(kernel, device, dims):
    """The sizes of work-groups of a Range kernel, in the user's order."""
    if kernel.local_size is not None:
        return kernel.local_size
    gpu = device.device_type.name == "gpu"
    return (_GPU_LOCAL if gpu else _CPU_LOCAL)[dims]
