"""How kernels are written for other systems, where that differs from Drupe's way."""
import ast
import types as pytypes
from dataclasses import dataclass, field

from drupe.compiler.names import Names
from drupe.compiler.source import Source


@dataclass
class Dialect:
    """`item`: whether a first parameter may be the work-item. `cuda`: whether dimension 0 runs fastest, as threadIdx.x
    does. `shared`: bytes of the memory whose size a launch gives, for shared.array(0, dtype). `arrays`: global arrays
    of NumPy that the function reads, which a launch passes behind its arguments. `warp`: whether the device's
    sub-groups have 32 work-items each. `floors`: whether math.floor(), ceil() and trunc() give floats.

    Numbers follow Numba's rules in all of them (types.numbas())."""
    item: bool = True
    cuda: bool = False
    shared: int = 0
    arrays: list = field(default_factory=list)
    warp: bool = False
    floors: bool = True


def global_arrays(function):
    """The arrays of NumPy that a function, and the functions that it calls, read from outside."""
    import numpy

    found, seen, todo = [], set(), [function]
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        for thing in Names(Source(one)).constants.values():
            if isinstance(thing, numpy.ndarray):
                if all(thing is not other for other in found):
                    found.append(thing)
                continue
            inner = getattr(thing, "_device_function", None) or getattr(thing, "py_func", thing)
            if isinstance(inner, pytypes.FunctionType) and not hasattr(thing, "_lowered_call") and _is_readable(inner):
                todo.append(inner)
    return found


def _is_readable(function):
    """Whether it is a function that kernels could call. What they cannot call is refused where it is called."""
    from drupe.compiler.messages import KernelError

    if (function.__module__ or "").partition(".")[0] in ("numpy", "math", "drupe", "numba"):
        return False
    try:
        return isinstance(Source(function).node, ast.FunctionDef) and bool(Names(Source(function)).params is not None)
    except KernelError:
        return False
