"""Arrays on devices. Made by tools/stubs.py; do not edit."""
import builtins
from collections.abc import Sequence
from typing import Any

from drupe._engine import DeviceLike, DTypeLike, Operation
from drupe._engine import Array as Array
from drupe._engine import DType as DType
from drupe._engine import asarray as asarray
from drupe._engine import asnumpy as asnumpy
from drupe._engine import broadcast_to as broadcast_to
from drupe._engine import empty as empty
from drupe._engine import empty_like as empty_like
from drupe._engine import full as full
from drupe._engine import full_like as full_like
from drupe._engine import matmul as matmul
from drupe._engine import ones as ones
from drupe._engine import ones_like as ones_like
from drupe._engine import permute_dims as permute_dims
from drupe._engine import zeros as zeros
from drupe._engine import zeros_like as zeros_like

__all__: list[str]
class HostCopyWarning(UserWarning): ...
def __array_namespace_info__() -> Any: ...
abs: Operation
acos: Operation
acosh: Operation
add: Operation
all: Operation
def allow_host_copies(allow: builtins.bool = True, /) -> Array: ...
any: Operation
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike = None, *, device: DeviceLike = None,
           usm_type: Literal["device", "shared", "host"] | None = None, queue: Queue | None = None) -> Array: ...
asin: Operation
asinh: Operation
def astype(x: Array, dtype: DTypeLike, /, *, copy: builtins.bool | None = True) -> Array: ...
atan: Operation
atan2: Operation
atanh: Operation
bitwise_and: Operation
bitwise_invert: Operation
bitwise_left_shift: Operation
bitwise_or: Operation
bitwise_right_shift: Operation
bitwise_xor: Operation
bool: DType
def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]: ...
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]: ...
def can_cast(from_: Any, to: Any, /) -> builtins.bool: ...
ceil: Operation
def clip(x: Array, /, min: Any = None, max: Any = None, *, out: Any = None) -> Array: ...
def concat(arrays: Any, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
copysign: Operation
cos: Operation
cosh: Operation
def count_nonzero(x: Array, /, *, axis: int | tuple[int, ...] | None = None,
                  keepdims: builtins.bool = False) -> Array: ...
def cross(x1: Array | complex, x2: Array | complex, /, *, axis: int | tuple[int, ...] | None = -1) -> Array: ...
def diagonal(x: Array, /, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Array: ...
def diff(x: Array, /, *, axis: int | tuple[int, ...] | None = -1, n: Any = 1, prepend: Any = None,
         append: Any = None) -> Array: ...
divide: Operation
def dot(x1: Array | complex, x2: Array | complex, /) -> Array: ...
e: float
def einsum(subscripts: Any, /, *operands: Any, optimize: Any = True) -> Array: ...
equal: Operation
exp: Operation
def expand_dims(x: Array, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
expm1: Operation
def eye(n_rows: Any, n_cols: Any = None, /, *, k: Any = 0, dtype: DTypeLike = None,
        device: DeviceLike = None) -> Array: ...
class finfo:
    def __init__(self, type: Any, /) -> None: ...
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType
def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array: ...
float32: DType
float64: DType
floor: Operation
floor_divide: Operation
greater: Operation
greater_equal: Operation
hypot: Operation
class iinfo:
    def __init__(self, type: Any, /) -> None: ...
    bits: int
    max: int
    min: int
    dtype: DType
inf: float
def inner(x1: Array | complex, x2: Array | complex, /) -> Array: ...
int32: DType
int64: DType
def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool: ...
isfinite: Operation
isinf: Operation
isnan: Operation
def kron(x1: Array | complex, x2: Array | complex, /) -> Array: ...
less: Operation
less_equal: Operation
def linspace(start: Any, stop: Any, num: int, *, dtype: DTypeLike = None, device: DeviceLike = None,
             usm_type: Literal["device", "shared", "host"] | None = None, queue: Queue | None = None,
             endpoint: builtins.bool = True) -> Array: ...
log: Operation
log10: Operation
log1p: Operation
log2: Operation
logaddexp: Operation
logical_and: Operation
logical_not: Operation
logical_or: Operation
logical_xor: Operation
def matrix_transpose(x: Array, /) -> Array: ...
max: Operation
maximum: Operation
def mean(x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: builtins.bool = False) -> Array: ...
def meshgrid(*arrays: Any, indexing: Any = 'xy') -> tuple[Array, ...]: ...
min: Operation
minimum: Operation
def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array: ...
multiply: Operation
nan: float
negative: Operation
newaxis: None
nextafter: Operation
not_equal: Operation
def outer(x1: Array | complex, x2: Array | complex, /) -> Array: ...
pi: float
positive: Operation
pow: Operation
prod: Operation
def providers(device: DeviceLike = None) -> Array: ...
reciprocal: Operation
remainder: Operation
def repeat(x: Array, repeats: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Array: ...
def reshape(x: Array, /, shape: int | Sequence[int]) -> Array: ...
def result_type(*arrays_and_dtypes: Any) -> DType: ...
def roll(x: Array, /, shift: Any, *, axis: int | tuple[int, ...] | None = None) -> Array: ...
round: Operation
sign: Operation
signbit: Operation
sin: Operation
sinh: Operation
sqrt: Operation
square: Operation
def squeeze(x: Array, /, axis: int | tuple[int, ...] | None) -> Array: ...
def stack(arrays: Any, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
def std(x: Array, /, *, axis: int | tuple[int, ...] | None = None, correction: Any = 0.0,
        keepdims: builtins.bool = False) -> Array: ...
subtract: Operation
sum: Operation
tan: Operation
tanh: Operation
def tensordot(x1: Array | complex, x2: Array | complex, /, *, axes: tuple[int, ...] = 2) -> Array: ...
def tile(x: Array, repetitions: Any, /) -> Array: ...
def to_device(x: Array, device: DeviceLike, /) -> Array: ...
def trace(x: Array, /, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: DTypeLike = None) -> Array: ...
def tril(x: Array, /, *, k: Any = 0) -> Array: ...
def triu(x: Array, /, *, k: Any = 0) -> Array: ...
trunc: Operation
def unstack(x: Array, /, *, axis: int | tuple[int, ...] | None = 0) -> tuple[Array, ...]: ...
def var(x: Array, /, *, axis: int | tuple[int, ...] | None = None, correction: Any = 0.0,
        keepdims: builtins.bool = False) -> Array: ...
def vdot(x1: Array | complex, x2: Array | complex, /) -> Array: ...
def vecdot(x1: Array | complex, x2: Array | complex, /, *, axis: int | tuple[int, ...] | None = -1) -> Array: ...
where: Operation
