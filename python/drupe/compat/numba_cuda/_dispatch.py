"""jit: functions as kernels and device functions, and their launches."""
import functools
import math
import operator
import os
import threading

from drupe import _engine
from drupe.compat import _numbas
from drupe.compat.numba_cuda import _arrays, _devices, _written
from drupe.compiler import calls, dialects, launch, operators
from drupe.compiler.messages import KernelError
from drupe.compiler.values import Number

# Options of numba.cuda that say how it compiles, and change no result.
_IGNORED = frozenset(("cache", "debug", "fastmath", "forceinline", "inline", "launch_bounds", "lineinfo", "lto",
                      "max_registers", "nopython", "opt"))
_DIM3 = 3


def _is_simulated():
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


class Kernel(launch.Kernel):
    """A function as one of Drupe's kernels: one for each number of bytes of dynamic shared memory."""

    def __init__(self, function, dialect, checked):
        super().__init__(function, checked=checked)
        self.dialect = dialect


class DeviceFunction(launch.DeviceFunction):
    """A function that kernels call. With a signature its arguments and its result are converted to the types in it."""

    def __init__(self, function, signature=None):
        super().__init__(function)
        if isinstance(signature, list):
            if len(signature) != 1:
                raise TypeError("a device function has one signature, or none")
            (signature,) = signature
        self._kinds, self._result = None, None
        if signature is not None:
            self._kinds, _gives = _numbas.kinds(signature)
            self._result = _numbas.result(signature)
            self._lowered_call = self._compiled

    def __call__(self, *args):
        if self._kinds is not None:
            args = _numbas.converted(self._kinds, args)
        found = self.py_func(*args)
        return found if self._result is None else _numbas.converted([self._result], [found])[0]

    def _compiled(self, low, args, named):
        if named or len(args) != len(self._kinds):
            raise KernelError("DK008", "%s() was declared for %d arguments." % (self.__name__, len(self._kinds)))
        args = [operators.cast(low, one, calls.scalar_of(kind.name)) if isinstance(one, Number) and kind.ndim is None
                else one for kind, one in zip(self._kinds, args)]
        found = low.call_function(self.py_func, args, {})
        return found if self._result is None else operators.cast(low, found, calls.scalar_of(self._result.name))


class Dispatcher:
    """What @cuda.jit makes of a function: kernel[blocks, threads](*arguments) launches it."""

    def __init__(self, function, signature=None, checked=None):
        functools.update_wrapper(self, function)
        self.py_func = self._device_function = function
        self._signatures = None if signature is None else _numbas.Signatures(signature)
        self._checked, self._kernels, self._arrays = checked, {}, None
        self._lock = threading.Lock()

    def __repr__(self):
        return "<numba.cuda kernel %s>" % self.__qualname__

    def __call__(self, *args, **named):
        raise ValueError("a kernel is launched over blocks of threads: %s[blocks, threads](...)" % self.__name__)

    def __getitem__(self, geometry):
        if not isinstance(geometry, tuple) or not 2 <= len(geometry) <= 4:
            raise ValueError("a launch is written %s[blocks, threads], %s[blocks, threads, stream] or "
                             "%s[blocks, threads, stream, bytes of shared memory]" % ((self.__name__,)*3))
        return self.configure(*geometry)

    def configure(self, griddim, blockdim, stream=0, sharedmem=0):
        """The same as kernel[griddim, blockdim, stream, sharedmem]."""
        return Configured(self, space_of(griddim, blockdim), _devices.stream_of(stream), operator.index(sharedmem))

    def forall(self, ntasks, tpb=0, stream=0, sharedmem=0):
        """A launch with a thread for each of `ntasks`, and some more: the kernel tests its place."""
        threads = tpb or 128
        return self.configure(max(1, math.ceil(ntasks / threads)), threads, stream, sharedmem)

    def specialize(self, *args):
        """The kernel itself, which is compiled for the types of each launch."""
        return self

    def inspect(self, *args, **options):
        """What became of the function: see drupe.kernel's inspect()."""
        kernel = next(reversed(self._kernels.values()), None)
        if kernel is None:
            raise ValueError("%s() was not launched yet, so it is not compiled" % self.__name__)
        return kernel.inspect(*args, **options)

    @property
    def signatures(self):
        """The types that it was declared for."""
        return [] if self._signatures is None else [tuple(one) for one in self._signatures.all]

    def __getattr__(self, name):
        if name.startswith(("inspect_", "get_")):
            raise AttributeError("Drupe's kernels have no %s(): see %s.inspect()" % (name, self.__name__))
        raise AttributeError("'Dispatcher' object has no attribute %r" % name)

    # --- Launches ---

    def declared(self, args):
        """The arguments as the signature has them."""
        return args if self._signatures is None else self._signatures.convert(self.__name__, args)

    def kernel(self, queue, shared):
        """(Kernel, arrays that are passed behind the arguments) for a device."""
        key = (queue.device, shared)
        found = self._kernels.get(key)
        if found is None:
            with self._lock:
                if self._arrays is None:  # what the arrays hold at the first launch counts, as in Numba
                    self._arrays = [(one, one.copy()) for one in dialects.global_arrays(self.py_func)]
                warp = _written.has_warps(queue.device)
                dialect = dialects.Dialect(item=False, cuda=True, shared=shared, warp=warp,
                                           arrays=[one for one, _copy in self._arrays] or [object()])
                found = self._kernels[key] = Kernel(self.py_func, dialect, self._checked)
        return found, self._held(queue)

    def _held(self, queue):
        """The global arrays on a queue; where there are none, an array that says which queue it is."""
        return _on_queue(queue, self) if self._arrays else (_devices.nothing(queue),)

    def simulate(self, space, args, shared):
        """As plain Python."""
        from drupe import simulator

        _written.simulated.shared = shared
        try:
            simulator.call_kernel(self.py_func, space, *args)
        finally:
            _written.simulated.shared = 0


def _on_queue(queue, dispatcher):
    from drupe import array

    placed = dispatcher.__dict__.setdefault("_placed", {})
    found = placed.get(queue)
    if found is None:
        found = placed[queue] = tuple(array.asarray(copy, queue=queue) for _one, copy in dispatcher._arrays)
    return found


class Configured:
    """kernel[blocks, threads, stream, shared]: called with the arguments, it launches."""

    __slots__ = ("_dispatcher", "_space", "_stream", "_shared")

    def __init__(self, dispatcher, space, stream, shared):
        self._dispatcher, self._space, self._stream, self._shared = dispatcher, space, stream, shared
        if shared < 0:
            raise ValueError("a launch gives 0 or more bytes of shared memory, not %d" % shared)

    def __call__(self, *args):
        dispatcher = self._dispatcher
        args = dispatcher.declared(_arrays.unwrapped(args))
        if _is_simulated():
            return dispatcher.simulate(self._space, args, self._shared)
        moved = _numbas.has_numpys(args)
        queue = _queue_of(args) or _devices.queue()
        kernel, held = dispatcher.kernel(queue, self._shared)
        if moved:
            return _numbas.launch_moved(kernel, self._space, (*args, *held), queue)
        _engine._call_kernel_async(kernel, self._space, [], *args, *held)
        return None


def _queue_of(args):
    for one in args:
        if type(one) is _engine.Array:
            return one.queue
        if isinstance(one, tuple) and (found := _queue_of(one)) is not None:
            return found
    return None


def _sizes(given, what):
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    try:
        sizes = tuple(operator.index(one) for one in sizes)
    except TypeError:
        raise TypeError("%s is an int, or a tuple of up to 3 ints, not %r" % (what, given)) from None
    if not 1 <= len(sizes) <= _DIM3:
        raise ValueError("%s has 1 to 3 dimensions, not %d" % (what, len(sizes)))
    if min(sizes) < 1:
        raise ValueError("%s has sizes above 0, and it is %r" % (what, given))
    return sizes


def space_of(griddim, blockdim):
    """The NdRange of a launch, with as many dimensions as it uses. x is the last one."""
    blocks, threads = _sizes(griddim, "the grid"), _sizes(blockdim, "the block")
    dims = max(at + 1 for one in (blocks, threads) for at, n in enumerate(one) if n > 1 or not at)
    blocks, threads = ([*one, 1, 1][:dims][::-1] for one in (blocks, threads))
    return _engine.NdRange(_engine.Range(*(b*t for b, t in zip(blocks, threads))), _engine.Range(*threads))


def jit(func_or_sig=None, device=False, *, argtypes=None, restype=None, link=(), boundscheck=None, bind=None,
        **options):
    """A function as a kernel, or with device=True as one that kernels call.

        @cuda.jit
        def add(a, b, c):
            i = cuda.grid(1)
            if i < c.size:
                c[i] = a[i] + b[i]

        add[blocks, threads](a, b, c)
    """
    for name in options:
        if name not in _IGNORED:
            raise TypeError("cuda.jit takes no option %r" % name)
    if link:
        raise NotImplementedError("cuda.jit(link=...) has no counterpart: kernels in C are for drupe.program")
    signature = argtypes if argtypes is not None else func_or_sig
    if argtypes is not None and restype is not None:
        signature = _numbas.Signature(restype, argtypes)
    if callable(func_or_sig) and not _numbas.is_signature(func_or_sig):
        return _made(func_or_sig, argtypes and signature, device, boundscheck)
    return lambda function: _made(function, signature, device, boundscheck)


def _made(function, signature, device, boundscheck):
    if isinstance(function, (Dispatcher, DeviceFunction)):
        function = function.py_func
    if not hasattr(function, "__code__"):
        raise TypeError("cuda.jit takes a function that is written in Python, not %r" % (function,))
    if device:
        return DeviceFunction(function, signature)
    return Dispatcher(function, signature, True if boundscheck else None)
