"""numba.cuda is drupe.compat.numba_cuda."""
import sys

from drupe.compat import numba_cuda

sys.modules[__name__] = numba_cuda
