"""The decorators and launches of numba_dpex, over those of Drupe."""
import functools
import sys

from drupe import _engine
from drupe.compat import _numbas
from drupe.compiler import launch
from drupe.compiler.dialects import Dialect
from drupe.offloading import function as offloading

_NUMBA = Dialect()
# Options of numba_dpex that say how it compiles, and change no result.
_IGNORED = frozenset(("access_types", "boundscheck", "cache", "debug", "enable_cache", "error_model", "fastmath",
                      "forceobj", "inline_threshold", "nogil", "nopython", "no_cpython_wrapper", "opt", "parallel",
                      "release_gil"))


def _look(what, options):
    for name in options:
        if name not in _IGNORED:
            raise TypeError("%s takes no option %r" % (what, name))
    if options.get("boundscheck"):
        raise TypeError("Drupe looks at indices with @drupe.kernel(checked=True), not with boundscheck=True")


class Kernel(launch.Kernel):
    """What @kernel makes of a function. Numbers follow Numba's rules in it."""

    dialect = _NUMBA

    def __init__(self, function, signature=None):
        super().__init__(function)
        self.signatures = None if signature is None else _numbas.Signatures(signature)

    def __getitem__(self, geometry):
        return functools.partial(self._older, launch.space_of(geometry))

    def _older(self, space, *args):
        """kernel[global_size, local_size](...), which takes arrays of NumPy, too."""
        args = self.declared(args)
        if not _numbas.has_numpys(args):
            return _engine._call_kernel(self, space, *args)
        return _numbas.launch_moved(self, space, args, _queue_of(args))

    def declared(self, args):
        """The arguments as the signature has them."""
        args = _numbas.plain(args)
        return args if self.signatures is None else self.signatures.convert(self.__name__, args)

    def __repr__(self):
        return "<numba_dpex kernel %s, %d compiled>" % (self.__qualname__, len(self.variants))


def _queue_of(args):
    found = next((one.queue for one in _numbas._flat(args) if isinstance(one, _engine.Array)), None)
    return _engine.Device(None).queue if found is None else found


def kernel(function_or_signature=None, **options):
    """A function as a kernel, launched by call_kernel(kernel, Range(n), *arguments)."""
    _look("kernel", options)
    if callable(function_or_signature) and not _numbas.is_signature(function_or_signature):
        return Kernel(function_or_signature)
    return functools.partial(Kernel, signature=function_or_signature)


def device_func(function_or_signature=None, **options):
    """A function that kernels call."""
    _look("device_func", options)
    if callable(function_or_signature) and not _numbas.is_signature(function_or_signature):
        return launch.DeviceFunction(function_or_signature)
    return launch.DeviceFunction


func = device_func  # its older name


def _declared(kernel_fn, args):
    return kernel_fn.declared(args) if isinstance(kernel_fn, Kernel) else _numbas.plain(args)


def call_kernel(kernel_fn, index_space, *kernel_args):
    """Launch a kernel over a Range or an NdRange, and wait."""
    _engine._call_kernel(kernel_fn, index_space, *_declared(kernel_fn, kernel_args))


def call_kernel_async(kernel_fn, index_space, dependent_events, *kernel_args):
    """Launch a kernel behind `dependent_events`; gives (host_task_event, device_event) at once."""
    events = [getattr(one, "_drupe", one) for one in dependent_events]
    pair = _engine._call_kernel_async(kernel_fn, index_space, events, *_declared(kernel_fn, kernel_args))
    dpctl = sys.modules.get("drupe.compat.dpctl")
    return pair if dpctl is None else tuple(map(dpctl.SyclEvent._of, pair))


class Function(offloading.Offload):
    """What @dpjit makes of a function: its loops over prange() are kernels on the device of its arrays."""

    def __init__(self, function, **options):
        super().__init__(function, **{"dialect": _NUMBA, **options})

    def __call__(self, *args, **named):
        if "drupe.compat.dpctl.tensor._usmarray" in sys.modules:
            named = dict(zip(named, _numbas.plain(tuple(named.values()))))
        return super().__call__(*_numbas.plain(args), **named)

    def __repr__(self):
        return "<numba_dpex function %s>" % self.__qualname__


def dpjit(*args, **options):
    """A function over arrays that runs on their device: @dpjit, or @dpjit(...) with options of Numba."""
    _look("dpjit", options)
    if len(args) == 1 and callable(args[0]) and not _numbas.is_signature(args[0]):
        return Function(args[0])
    if args:
        raise TypeError("dpjit takes no signature: what a function is compiled for are the arguments of each call")
    return Function


def offload_to_sycl_device(device):
    """`with offload_to_sycl_device("gpu"):` the device of arrays of NumPy within; dpctl.device_context is the same."""
    from drupe.choice import device as chosen

    return chosen(device)
