"""What programs for numba.cuda and numba_dpex import from Numba itself, where Numba is not installed.

    from numba import cuda, float32, prange, njit

Types, and jit and njit, which make functions that run on Drupe's devices (drupe.offload), with Numba's types of
numbers.
docs/compat-numba.md says what differs.
"""
from drupe.compat import _numbas, absent

__version__ = "0.60.0"
_TYPES = _numbas.types()
globals().update(_TYPES)
_WRITTEN = {**dict.fromkeys(("jit", "njit", "vectorize"), "compat.numba._functions"), "prange": "offloading.function"}
__all__ = sorted({*_TYPES, *_WRITTEN, "cuda", "types"})

_OTHER = "It is a part of Numba, which is not installed: pip install numba."
_missing = absent(__name__, {
    "guvectorize": "Write a loop over prange() in a function under @njit.",
    "stencil": "Write a loop over prange() in a function under @njit.",
    "cfunc": "Functions in C are for drupe.program.",
    **dict.fromkeys(("config", "core", "errors", "experimental", "extending", "generated_jit", "get_num_threads",
                     "literally", "objmode", "set_num_threads", "threading_layer", "typed", "typeof"), _OTHER),
})
# Not as numba.cuda: a finder that NVIDIA's numba-cuda installs for every module of such a name calls itself for ever.
__getattr__ = _numbas.lazy(globals(), _WRITTEN, _missing, ("types",), {"cuda": "compat.numba_cuda"})


def __dir__():
    return __all__
