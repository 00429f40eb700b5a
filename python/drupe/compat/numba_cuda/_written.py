"""What kernels are written with: how each name is compiled, and what it does in the simulator.

x is dimension 0 of CUDA, which runs fastest, and so the last one of Drupe.
"""
import math
import sys
import threading

import drupe.kernel_api as kapi
from drupe.compiler import calls, mathematics, operators, places, tree, types
from drupe.compiler.messages import KernelError
from drupe.compiler.types import Scalar
from drupe.compiler.values import Elements, Items, Known, Number, constant, integer
from drupe.kernel_api._running import running
from drupe.kernel_api.enums import MemoryOrder, MemoryScope

WARP = 32
_AXES = "xyz"


class _Launch(threading.local):
    shared = 0  # bytes of dynamic shared memory of the launch that is simulated


simulated = _Launch()


class Function:
    """A function of kernels. `lower`: how it is compiled; `simulate`: what it does as plain Python, given the frame of
    its caller."""

    def __init__(self, name, lower, simulate):
        self.__name__, self._lower, self._simulate = name, lower, simulate

    def __call__(self, *args, **named):
        return self._simulate(sys._getframe(1), *args, **named)

    def _lowered_call(self, low, args, named):
        return self._lower(low, args, named)

    def __repr__(self):
        return "<numba.cuda function %s>" % self.__name__


class Written(Function):
    """A function of kernels that is written as one."""

    def __init__(self, function):
        super().__init__(function.__name__.strip("_"), self._compiled, lambda frame, *args: function(*args))
        self.function = function

    def _compiled(self, low, args, named):
        return low.call_function(self.function, args, named)


def _item():
    return running("numba.cuda").item


# --- Where a thread is --------------------------------------------------------------------------------------

class Dim3:
    """threadIdx, blockIdx, blockDim or gridDim. `asks`: what tells it; `missing`: of a dimension that a launch has
    not."""

    def __init__(self, name, asks, missing, simulate):
        self._name, self._asks, self._missing, self._simulate = name, asks, missing, simulate

    def _lowered_attribute(self, low, name):
        if name not in _AXES or len(name) != 1:
            raise KernelError("DK011", "%s has x, y and z, not %r." % (self._name, name))
        dim = low.unit.dims - 1 - _AXES.index(name)
        return low.query(self._asks, constant(dim)) if dim >= 0 else constant(self._missing)

    def _of(self, axis):
        item = _item()
        dim = item.dimensions - 1 - axis
        return self._simulate(item, dim) if dim >= 0 else self._missing

    x = property(lambda self: self._of(0))
    y = property(lambda self: self._of(1))
    z = property(lambda self: self._of(2))

    def __repr__(self):
        return "<numba.cuda %s>" % self._name


threadIdx = Dim3("threadIdx", "local_id", 0, lambda item, dim: item.get_local_id(dim))  # noqa: N816
blockIdx = Dim3("blockIdx", "group_id", 0, lambda item, dim: item.get_group().get_group_id(dim))  # noqa: N816
blockDim = Dim3("blockDim", "local_size", 1, lambda item, dim: item.get_local_range(dim))  # noqa: N816
gridDim = Dim3("gridDim", "group_count", 1, lambda item, dim: item.get_group().get_group_range(dim))  # noqa: N816
_place = Dim3("grid", "global_id", 0, lambda item, dim: item.get_global_id(dim))
_extent = Dim3("gridsize", "global_size", 1, lambda item, dim: item.get_global_range(dim))


def _per_axis(name, asked):
    def lower(low, args, named):
        (count,) = mathematics.numbers(name, args, 1)
        if count.const not in (1, 2, 3):
            raise KernelError("DK014", "%s() takes 1, 2 or 3, the number of dimensions." % name)
        found = [asked._lowered_attribute(low, axis) for axis in _AXES[:count.const]]
        return found[0] if len(found) == 1 else Items(found)

    def simulate(frame, count):
        if count not in (1, 2, 3):
            raise ValueError("%s() takes 1, 2 or 3, the number of dimensions" % name)
        found = tuple(asked._of(axis) for axis in range(count))
        return found[0] if count == 1 else found

    return Function(name, lower, simulate)


grid, gridsize = _per_axis("grid", _place), _per_axis("gridsize", _extent)


_linear = Function("linear", lambda low, args, named: integer(low.linear("local"), 0),
                   lambda frame: _item().get_local_linear_id())
_total = Function("total", lambda low, args, named: low.total("local"),
                  lambda frame: _item().get_local_linear_range())


# --- Barriers and fences ------------------------------------------------------------------------------------

def _meet(frame, name="syncthreads()"):
    running(name).barrier(name, _item().get_group(), True, True, frame)


def _alone(name, args, named):
    if args or named:
        raise KernelError("DK008", "%s() takes no arguments." % name)


def _sync_threads(low, args, named):
    _alone("syncthreads", args, named)
    return calls._barrier(low, [], {})


syncthreads = Function("syncthreads", _sync_threads, _meet)


def has_warps(device):
    """Whether a device has sub-groups of 32 work-items, and barriers for them."""
    return list(device.sub_group_sizes or ()) == [WARP] and "cl_khr_subgroups" in device.extensions


def _sync_warp(low, args, named):
    if not low.unit.dialect.warp:
        raise KernelError("DK018", "%s has no barriers of warps of %d threads." % (low.device_name, WARP),
                          "Write syncthreads(), where all threads of the block come by.")
    low.function.barriers = True
    low.emit(tree.Barrier(low.line, 3, "sub"))
    return Known(None)


def _simulated_sync_warp(frame, mask=None):
    running("syncwarp()").barrier("syncwarp()", _item().get_sub_group(), True, True, frame)


syncwarp = Function("syncwarp", _sync_warp, _simulated_sync_warp)


def _fence(name, scope):
    def lower(low, args, named):
        _alone(name, args, named)
        low.emit(tree.Fence(low.line, int(MemoryOrder.ACQ_REL), int(scope)))
        return Known(None)

    return Function(name, lower, lambda frame: kapi.atomic_fence(MemoryOrder.ACQ_REL, scope))


threadfence = _fence("threadfence", MemoryScope.DEVICE)
threadfence_block = _fence("threadfence_block", MemoryScope.WORK_GROUP)
threadfence_system = _fence("threadfence_system", MemoryScope.SYSTEM)


def _syncthreads_count(predicate):
    cell = kapi.local.array(1, "int32")
    kapi.barrier()
    if _linear() == 0:
        cell[0] = 0
    kapi.barrier()
    if predicate:
        kapi.atomic.add(cell, 0, 1)
    kapi.barrier()
    return int(cell[0])


def _syncthreads_and(predicate):
    return int(_syncthreads_count(predicate) == _total())


def _syncthreads_or(predicate):
    return int(_syncthreads_count(predicate) != 0)


syncthreads_count, syncthreads_and, syncthreads_or = map(Written, (
    _syncthreads_count, _syncthreads_and, _syncthreads_or))


# --- Memory -------------------------------------------------------------------------------------------------

def _given(args, named, what):
    given = dict(zip(("shape", "dtype", "alignment"), args), **named)
    if not {"shape", "dtype"} <= set(given) <= {"shape", "dtype", "alignment"}:
        raise KernelError("DK008", "%s takes a shape and a dtype." % what)
    return given["shape"], given["dtype"]


def _shared_array(low, args, named):
    shape, dtype = _given(args, named, "shared.array()")
    if isinstance(shape, Number) and shape.const == 0:
        return _dynamic(low, calls._dtype(dtype))
    return places.make(low, places.shape_of(shape, "shared array"), calls._dtype(dtype), tree.LOCAL)


def _dynamic(low, dtype):
    """The memory whose size the launch says: one, however often it is asked for."""
    size = low.unit.dialect.shared // types.SIZES[dtype]
    if not size:
        raise KernelError("DK018", "shared.array(0, %s) has the bytes that a launch gives, and this one gives %d." % (
            dtype, low.unit.dialect.shared), "Launch it as kernel[blocks, threads, stream, bytes](...).")
    known = low.__dict__.get("dynamic")  # of this run through the function
    if known is None:
        known = low.dynamic = tree.Buffer(low.fresh("dynamic"), dtype, tree.LOCAL, size)
        low.function.buffers.append(known)
    if known.type != dtype:
        raise KernelError("DK012", "shared.array(0, ...) is asked for %s and for %s, which would be the same bytes." % (
            known.type, dtype), "Give one of them a size: shared.array(64, numpy.float32).")
    extent = constant(size)
    return Elements(dtype, known, [extent], [constant(1)], name="the shared array")


def _local_array(low, args, named):
    shape, dtype = _given(args, named, "local.array()")
    return places.make(low, places.shape_of(shape, "local array"), calls._dtype(dtype), tree.PRIVATE)


def _constant(low, args, named):
    (array,) = args
    if not isinstance(array, Elements):
        raise KernelError("DK009", "const.array_like() takes an array of NumPy that is a global variable or one of the "
                          "function around, not %s." % array.type)
    return array


def _numpy_dtype(dtype):
    import numpy

    name = getattr(dtype, "name", None)
    return numpy.dtype(name if isinstance(name, str) and not isinstance(dtype, type) else dtype)


def _simulated_shared(frame, shape, dtype, alignment=None):
    dtype = _numpy_dtype(dtype)
    if shape == 0:
        shape = simulated.shared // dtype.itemsize
        if not shape:
            raise ValueError("shared.array(0, dtype) has the bytes that a launch gives: "
                             "kernel[blocks, threads, stream, bytes](...)")
        frame = _Shared(running("shared.array()").function.__code__)
    return running("shared.array()").local_array(kapi.memory._shape(shape), dtype, frame)


class _Shared:
    """A place in the source for what has none: the dynamic shared memory of a kernel."""

    def __init__(self, code):
        self.f_code, self.f_lasti, self.f_lineno, self.f_back = code, -1, code.co_firstlineno, None


def _simulated_local(frame, shape, dtype, alignment=None):
    return running("local.array()").private_array(kapi.memory._shape(shape), _numpy_dtype(dtype), False, frame)


class shared:  # noqa: N801
    array = Function("shared.array", _shared_array, _simulated_shared)


class local:  # noqa: N801
    array = Function("local.array", _local_array, _simulated_local)


class const:  # noqa: N801
    array_like = Function("const.array_like", _constant, lambda frame, array: array)


# --- Atomic operations --------------------------------------------------------------------------------------

def _bits(op):
    def lower(low, args, named):
        array, index, value = args
        return calls._operate(low, calls._reference(low, array, index), op, [value])

    def simulate(frame, array, index, value):
        return getattr(kapi.AtomicRef(array, index), "fetch_" + op)(value)

    return Function("atomic.%s_" % op, lower, simulate)


def _as_before(name, ours):
    older = getattr(kapi.atomic, ours)
    return Function("atomic." + name, calls._API["atomic." + ours], lambda frame, *args: older(*args))


def _inc(array, index, value):
    """0 behind `value`, and else one more."""
    old = array[index]
    seen = kapi.atomic.cas(array, index, old, 0 if old >= value else old + 1)
    while seen != old:
        old = seen
        seen = kapi.atomic.cas(array, index, old, 0 if old >= value else old + 1)
    return old


def _dec(array, index, value):
    """`value` at 0 and above `value`, and else one less."""
    old = array[index]
    seen = kapi.atomic.cas(array, index, old, value if old == 0 or old > value else old - 1)
    while seen != old:
        old = seen
        seen = kapi.atomic.cas(array, index, old, value if old == 0 or old > value else old - 1)
    return old


def _nan_extreme(array, index, value, larger):
    """The larger or the smaller one, where a NaN gives way to all numbers."""
    ref = kapi.AtomicRef(array, index)
    expected = kapi.PrivateArray(1, array.dtype)
    expected[0] = ref.load()
    old = expected[0]
    done = False
    while not done:
        old = expected[0]
        better = value > old if larger else value < old
        done = ref.compare_exchange(expected, value if math.isnan(old) or better else old)
    return old


def _nanmax(array, index, value):
    return _nan_extreme(array, index, value, True)


def _nanmin(array, index, value):
    return _nan_extreme(array, index, value, False)


def _compare_and_swap(array, old, value):
    return kapi.atomic.cas(array, 0, old, value)


class atomic:  # noqa: N801
    add, sub = _as_before("add", "add"), _as_before("sub", "sub")
    max, min = _as_before("max", "max"), _as_before("min", "min")
    exch, cas = _as_before("exch", "exch"), _as_before("cas", "cas")
    and_, or_, xor = _bits("and"), _bits("or"), _bits("xor")
    inc, dec, nanmax, nanmin = map(Written, (_inc, _dec, _nanmax, _nanmin))
    compare_and_swap = Written(_compare_and_swap)


# --- Numbers ------------------------------------------------------------------------------------------------

def _mathematical(name):
    function = mathematics.FUNCTIONS[name]
    return lambda low, args, named: function(low, name, list(args), True)


def _select(low, args, named):
    cond, a, b = mathematics.numbers("selp", args, 3)
    return operators.select(low, operators.truth(low, cond), a, b)


def _popc(x):
    count = 0
    for at in range(8 * x.dtype.itemsize):
        count += (x >> at) & 1
    return int(count)


def _clz(x):
    bits = 8 * x.dtype.itemsize
    count = 0
    while count < bits and (x >> (bits - 1 - count)) & 1 == 0:
        count += 1
    return count


def _ffs(x):
    bits = 8 * x.dtype.itemsize
    at = 0
    while at < bits and (x >> at) & 1 == 0:
        at += 1
    return 0 if at == bits else at + 1


def _brev(x):
    bits = 8 * x.dtype.itemsize
    result = 0
    for at in range(bits):
        result |= ((x >> at) & 1) << (bits - 1 - at)
    return x.dtype.type(result)


class Counted(Written):
    """A function of an integer's bits."""

    def _compiled(self, low, args, named):
        (x,) = mathematics.numbers(self.__name__, args, 1)
        if x.scalar.kind != 1:
            raise KernelError("DK012", "%s() takes an integer, not %s." % (self.__name__, x.type))
        return super()._compiled(low, [operators.cast(low, x, Scalar(x.scalar.name))], named)

    def __call__(self, x):
        import numpy

        return self.function(numpy.asarray(x)[()])


popc, clz, ffs, brev = map(Counted, (_popc, _clz, _ffs, _brev))
fma = Function("fma", _mathematical("fma"), lambda frame, a, b, c: a*b + c)
cbrt = Function("cbrt", _mathematical("cbrt"), lambda frame, x: math.copysign(abs(x)**(1/3), x))
selp = Function("selp", _select, lambda frame, cond, a, b: a if cond else b)
