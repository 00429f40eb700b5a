"""call_kernel() and run_group(): kernels as plain Python."""
import types

from drupe.kernel_api._running import here
from drupe.kernel_api.ranges import NdRange, Range
from drupe.simulator import traces
from drupe.simulator.arguments import Arguments
from drupe.simulator.options import chosen
from drupe.simulator.run import Run
from drupe.simulator.stop import Stop

_POSITIONAL = 0x04  # of code objects: *args


def function_of(kernel):
    """The Python function of a kernel: of what @drupe.kernel gives, or the function itself."""
    function = getattr(kernel, "py_func", None) or getattr(kernel, "__wrapped__", None) or kernel
    if not isinstance(function, types.FunctionType):
        raise TypeError("a kernel is a Python function, which may stand under @drupe.kernel, not %s"
                        % type(kernel).__name__)
    return function


def takes_item(function, count):
    """Whether a kernel takes an item before `count` arguments; in the older spelling there is none."""
    code = function.__code__
    most, least = code.co_argcount, code.co_argcount - len(function.__defaults__ or ())
    if code.co_flags & _POSITIONAL or least <= count + 1 <= most:
        return True
    if most == count:
        return False
    raise TypeError("the kernel %s(%s) takes %d argument%s beside the item, and %d %s given"
                    % (function.__name__, ", ".join(code.co_varnames[:most]), max(0, most - 1),
                       "" if most == 2 else "s", count, "is" if count == 1 else "are"))


def parameter_names(function, count, item):
    """The names of a kernel's parameters, for messages."""
    code = function.__code__
    names = list(code.co_varnames[item:code.co_argcount])[:count]
    return names + ["argument %d" % (number + 1) for number in range(len(names), count)]


def _space(space):
    if not isinstance(space, (Range, NdRange)):
        raise TypeError("the second argument of call_kernel() is a Range or an NdRange, not %s" % type(space).__name__)
    return space


def _simulate(kernel, space, args, options, part=None, stop=None):
    """Run a kernel. part: the only group to run, or None."""
    function, grouped = function_of(kernel), isinstance(_space(space), NdRange)
    item = takes_item(function, len(args))
    arguments = Arguments(args, parameter_names(function, len(args), item), grouped)
    run = Run(function, space, arguments, item, chosen(options), stop)
    before, here.run = here.run, run
    arguments.before()
    try:
        run.all(part)
    except BaseException as error:
        traces.explain(error, run)
        raise
    finally:
        here.run = before
        try:
            run.close()
        finally:
            arguments.back()


def call_kernel(kernel_fn, index_space, /, *kernel_args, **options):
    """Run a kernel as plain Python, work-item by work-item, and return when all have ended.

    kernel_fn: a function, which may stand under @drupe.kernel. index_space: a Range or an NdRange. kernel_args: arrays
    of NumPy; arrays of devices, which are copied to the host before and back behind it; numbers, tuples,
    LocalAccessors.
    options: races, uninitialized, seed, sub_group_size, progress; see drupe.simulator.options.

    The function itself runs: print(), breakpoint() and debuggers work in it. An error names the work-item. IndexError:
    an index is out of bounds. DataRaceError, BarrierDivergenceError, UninitializedMemoryError: see drupe.simulator.

    >>> a = numpy.arange(4.0)
    >>> def double(item, a): a[item.get_id(0)] *= 2
    >>> call_kernel(double, Range(4), a)
    >>> a
    array([0., 2., 4., 6.])
    """
    try:
        _simulate(kernel_fn, index_space, kernel_args, options)
    except BaseException as error:
        error.__traceback__ = traces.of_users(error.__traceback__)
        raise  # adds no frame of ours


def run_group(kernel_fn, index_space, group_id, args=(), *, stop_at=None, line=None, hook=None, **options):
    """Run one work-group of a kernel alone, and give whether it has stopped where it was to.

    group_id: the group's place, an int or a tuple; over a Range, which has no groups, the work-item's. args: as
    call_kernel() takes them. stop_at: the work-item to stop at, by its place among all, an int (its number among all
    where there is more than one dimension) or a tuple. line: of the kernel's file; its first one if None. hook: what is
    called with the frame there; None for a debugger, as breakpoint() would start. options: as call_kernel() takes them.

    >>> def square(item, a): a[item.get_id(0)] **= 2
    >>> run_group(square, Range(8), 5, [a], stop_at=5, hook=lambda frame: print(frame.f_locals["item"]))
    <Item 5 of 8>
    True
    """
    try:
        grouped = isinstance(_space(index_space), NdRange)
        whole = index_space.global_range if grouped else index_space
        counts = [n // part for n, part in zip(whole, index_space.local_range)] if grouped else whole
        stop = None if stop_at is None else Stop(_place(stop_at, whole, "stop_at"), line, hook)
        _simulate(kernel_fn, index_space, tuple(args), options, _place(group_id, counts, "group_id"), stop)
        return stop is not None and stop.met
    except BaseException as error:
        error.__traceback__ = traces.of_users(error.__traceback__)
        raise


def _place(given, extent, what):
    """A place in a range, of a tuple or a number."""
    place = tuple(given) if hasattr(given, "__iter__") else None
    if place is None:
        number, place = given, ()
        for n in reversed(extent):
            place, number = (number % n, *place) if n else (0, *place), number // n if n else 1
        if number:
            place = None
    if place is None or len(place) != len(extent) or not all(0 <= i < n for i, n in zip(place, extent)):
        raise ValueError("%s=%s is not a place in the range %s" % (what, given, tuple(extent)))
    return place
