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
abs: Operation
acos: Operation
acosh: Operation
add: Operation
all: Operation
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
ceil: Operation
def clip(x: Array, /, min: Any = None, max: Any = None, *, out: Any = None) -> Array: ...
def concat(arrays: Any, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
copysign: Operation
cos: Operation
cosh: Operation
divide: Operation
e: float
equal: Operation
exp: Operation
def expand_dims(x: Array, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
expm1: Operation
float32: DType
float64: DType
floor: Operation
floor_divide: Operation
greater: Operation
greater_equal: Operation
hypot: Operation
inf: float
int32: DType
int64: DType
isfinite: Operation
isinf: Operation
isnan: Operation
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
min: Operation
minimum: Operation
multiply: Operation
nan: float
negative: Operation
newaxis: None
nextafter: Operation
not_equal: Operation
pi: float
positive: Operation
pow: Operation
prod: Operation
reciprocal: Operation
remainder: Operation
def reshape(x: Array, /, shape: int | Sequence[int]) -> Array: ...
def result_type(*arrays_and_dtypes: Any) -> DType: ...
round: Operation
sign: Operation
signbit: Operation
sin: Operation
sinh: Operation
sqrt: Operation
square: Operation
def squeeze(x: Array, /, axis: int | tuple[int, ...] | None) -> Array: ...
def stack(arrays: Any, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
subtract: Operation
sum: Operation
tan: Operation
tanh: Operation
def to_device(x: Array, device: DeviceLike, /) -> Array: ...
trunc: Operation
where: Operation
