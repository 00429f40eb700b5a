"""dpctl.tensor of 0.21: arrays over USM memory by the array API 2024.12, computed by drupe.array.

Types of elements are NumPy's; NumPy is loaded with the first that is asked for."""
import importlib
import math

from drupe.compat import absent

_NAMES = {name: module for module, names in {
    "_ctors": "arange asarray asnumpy astype can_cast copy empty empty_like eye from_dlpack from_numpy full full_like "
              "linspace meshgrid ones ones_like to_numpy tril triu zeros zeros_like",
    "_device": "Device",
    "_dlpack": "DLDeviceType dldevice_to_sycl_device sycl_device_to_dldevice",
    "_functions": "all allclose any argmax argmin argsort clip count_nonzero cumulative_prod cumulative_sum diff isin "
                  "logsumexp matmul matrix_transpose max mean min prod reduce_hypot searchsorted sort std sum "
                  "tensordot top_k unique_all unique_counts unique_inverse unique_values var vecdot where",
    "_namespace": "__array_namespace_info__",
    "_print": "get_print_options print_options set_print_options usm_ndarray_repr usm_ndarray_str",
    "_shapes": "broadcast_arrays broadcast_to concat expand_dims extract flip moveaxis nonzero permute_dims place put "
               "put_along_axis repeat reshape roll squeeze stack swapaxes take take_along_axis tile unstack",
    "_types": "finfo iinfo isdtype result_type",
    "_usmarray": "usm_ndarray",
}.items() for name in names.split()}
_TYPES = {"bool": "bool", **{name: name for name in (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128").split()}}
UNARY = tuple("""
abs acos acosh angle asin asinh atan atanh bitwise_invert cbrt ceil conj cos cosh exp exp2 expm1 floor imag isfinite
isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal round rsqrt sign signbit sin sinh sqrt
square tan tanh trunc""".split())
BINARY = tuple("""
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply
nextafter not_equal pow remainder subtract""".split())
_ELEMENTWISE = frozenset(UNARY + BINARY)

e, pi, nan, inf, newaxis = math.e, math.pi, math.nan, math.inf, None
__array_api_version__ = "2024.12"
__all__ = sorted([*_NAMES, *_TYPES, *_ELEMENTWISE, "dtype", "e", "inf", "nan", "newaxis", "pi"])

_LINALG = "It is in drupe.array, whose functions take x._drupe: dpctl.tensor never had it."
_missing = absent(__name__, {
    "proj": "Write where(isinf(x), inf, x), which leaves the sign of the imaginary part.",
    "cumulative_logsumexp": "Write log(cumulative_sum(exp(x - max(x)))) + max(x) where the elements are of like size.",
    "linalg": _LINALG,
    "fft": _LINALG,
    "random": _LINALG,
})


def _load_elementwise():
    from drupe.compat.dpctl.tensor import _elementwise

    globals().update(_elementwise.functions())


def __getattr__(name):
    if name in _NAMES:
        value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    elif name in _ELEMENTWISE:
        _load_elementwise()
        return globals()[name]
    elif name in _TYPES or name == "dtype":
        import numpy

        value = numpy.dtype if name == "dtype" else numpy.dtype(_TYPES[name])
    else:
        return _missing(name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))
