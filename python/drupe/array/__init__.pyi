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
add: Operation
all: Operation
any: Operation
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike = None, *, device: DeviceLike = None,
           usm_type: Literal["device", "shared", "host"] | None = None, queue: Queue | None = None) -> Array: ...
def astype(x: Array, dtype: DTypeLike, /, *, copy: builtins.bool | None = True) -> Array: ...
bool: DType
def concat(arrays: Any, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
cos: Operation
divide: Operation
e: float
equal: Operation
exp: Operation
def expand_dims(x: Array, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
float32: DType
float64: DType
floor_divide: Operation
greater: Operation
greater_equal: Operation
inf: float
int32: DType
int64: DType
less: Operation
less_equal: Operation
def linspace(start: Any, stop: Any, num: int, *, dtype: DTypeLike = None, device: DeviceLike = None,
             usm_type: Literal["device", "shared", "host"] | None = None, queue: Queue | None = None,
             endpoint: builtins.bool = True) -> Array: ...
log: Operation
logical_and: Operation
logical_not: Operation
logical_or: Operation
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
not_equal: Operation
pi: float
positive: Operation
pow: Operation
prod: Operation
remainder: Operation
def reshape(x: Array, /, shape: int | Sequence[int]) -> Array: ...
def result_type(*arrays_and_dtypes: Any) -> DType: ...
sin: Operation
sqrt: Operation
square: Operation
def squeeze(x: Array, /, axis: int | tuple[int, ...] | None) -> Array: ...
def stack(arrays: Any, /, *, axis: int | tuple[int, ...] | None = 0) -> Array: ...
subtract: Operation
sum: Operation
def to_device(x: Array, device: DeviceLike, /) -> Array: ...
