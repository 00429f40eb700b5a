"""Linear algebra: drupe.array.linalg."""
import math
import operator

from drupe.array import linalg, transpose
from drupe.compat import absent

__all__ = [*linalg.__all__, "tensorinv", "tensorsolve"]
globals().update({name: getattr(linalg, name) for name in linalg.__all__})

__getattr__ = absent(__name__, {
    "lu_factor": "Write solve(a, b), which factors and solves; scipy.linalg.lu_factor() takes a copy: dpnp.asnumpy(a).",
    "lu_solve": "Write solve(a, b), which factors and solves.",
})


def tensorinv(a, ind=2):
    """The inverse with regard to tensordot() over `ind` dimensions."""
    ind = operator.index(ind)
    if ind < 1:
        raise ValueError("ind is a number of dimensions above 0, not %d" % ind)
    before, behind = a.shape[:ind], a.shape[ind:]
    return linalg.inv(a.reshape((math.prod(before), math.prod(behind)))).reshape((*behind, *before))


def tensorsolve(a, b, axes=None):
    """x, for which tensordot(a, x, x.ndim) is b. `axes` of a go to its end first."""
    if axes is not None:
        kept = [axis for axis in range(a.ndim) if axis not in axes]
        a = transpose(a, (*kept, *axes))
    shape = a.shape[b.ndim:]
    return linalg.solve(a.reshape((b.size, math.prod(shape))), b.reshape(b.size)).reshape(shape)
