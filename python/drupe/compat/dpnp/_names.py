"""The names of dpnp, and where each of them comes from."""

MODULES = ("fft", "linalg", "random", "tensor")

# NumPy's types: theirs in dpnp, too.
TYPES = {**{name: name for name in """bool_ byte cdouble complex128 complex64 complexfloating csingle double float16
    float32 float64 floating inexact int_ int8 int16 int32 int64 integer intc intp longlong number short signedinteger
    single ubyte uint8 uint16 uint32 uint64 uintc uintp unsignedinteger ushort ulonglong dtype""".split()},
         "bool": "bool_"}

# Names that drupe.array has, with the same meaning.
SAME = frozenset("""
    abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis arange arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere around array array_equal array_equiv array_split
    asanyarray asarray ascontiguousarray asfortranarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d
    atleast_3d average bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor broadcast_arrays broadcast_shapes broadcast_to can_cast cbrt ceil choose clip
    column_stack compress concat concatenate conj conjugate convolve copy copysign copyto corrcoef correlate cos cosh
    count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices
    diag_indices_from diagflat diagonal diff digitize divide divmod dot dsplit dstack e ediff1d einsum empty empty_like
    equal euler_gamma exp exp2 expand_dims expm1 extract eye fabs fill_diagonal finfo fix flatnonzero flip fliplr
    flipud float_power floor floor_divide fmax fmin fmod frexp from_dlpack frombuffer fromfunction fromiter full
    full_like gcd geomspace gradient greater greater_equal heaviside histogram histogram_bin_edges hsplit hstack hypot
    identity iinfo imag indices inf inner insert interp invert isclose iscomplex iscomplexobj isdtype isfinite
    isfortran isin isinf isnan isneginf isposinf isreal isrealobj isscalar ix_ kron lcm ldexp left_shift less
    less_equal linspace log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
    logspace logsumexp matmul matrix_transpose max maximum mean median meshgrid mgrid min minimum mod moveaxis multiply
    nan nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum
    nanvar negative newaxis nextafter nonzero not_equal ogrid ones ones_like outer pad partition permute_dims pi place
    positive pow power prod ptp put put_along_axis rad2deg radians ravel ravel_multi_index real real_if_close
    reciprocal reduce_hypot remainder repeat reshape result_type right_shift rint roll rollaxis rot90 round row_stack
    rsqrt searchsorted select sign signbit sin sinc sinh sort split sqrt square squeeze stack std subtract sum swapaxes
    take take_along_axis tan tanh tensordot tile trace transpose trapezoid tri tril tril_indices tril_indices_from triu
    triu_indices triu_indices_from true_divide trunc unique unique_all unique_counts unique_inverse unique_values
    unravel_index unstack unwrap vander var vdot vecdot vsplit vstack where zeros zeros_like
""".split())

# Those among them that make arrays, on a device or a queue that is named.
PLACED = frozenset("""
    arange array asanyarray asarray ascontiguousarray asfortranarray empty empty_like eye frombuffer fromfunction
    fromiter full full_like geomspace identity indices linspace logspace ones ones_like tri vander zeros zeros_like
""".split())

# What is written here.
OWN = {
    "_helpers": frozenset("""
        are_same_logical_tensors as_usm_ndarray asnumpy check_limitations check_supported_arrays_type
        default_float_type get_normalized_queue_device get_result_array get_usm_ndarray get_usm_ndarray_or_scalar
        is_cuda_backend is_supported_array_or_scalar is_supported_array_type ndarray synchronize_array_data
    """.split()),
    "_written": frozenset("""
        apply_over_axes asarray_chkfinite asfarray bartlett binary_repr blackman common_type einsum_path fromfile
        fromstring hamming hanning issubdtype iterable kaiser loadtxt mask_indices matvec modf ndim ndindex putmask
        resize shape size sort_complex trim_zeros vecmat
    """.split()),
}

ALL = sorted({*MODULES, *TYPES, *SAME, *OWN["_helpers"], *OWN["_written"]})

_BY_NUMPY = "Write dpnp.asarray(numpy.{0}(dpnp.asnumpy(x), ...)): it takes NumPy's of a copy."
ABSENT = {
    "byte_bounds": "The address of an array is x.usm_data._pointer, and its size x.nbytes.",
    "config": "Drupe is configured as docs/environment.md says.",
    "cumlogsumexp": "Where nothing overflows, write log(cumsum(exp(x - max(x)))) + max(x).",
    "exceptions": "Errors are those of drupe: drupe.ExecutionPlacementError and others.",
    "flatiter": "Write x.reshape(-1).",
    "get_dpnp_descriptor": "It belongs to dpnp's inside. Write dpnp.get_usm_ndarray(x).",
    "get_include": "Extensions in C include drupe/ext.h: drupe.get_include().",
    "histogram2d": "Number the bins with digitize(), and count row * columns + column with bincount().",
    "histogramdd": "Number the bins with digitize(), and count row * columns + column with bincount().",
    "i0": _BY_NUMPY.format("i0"),
    "piecewise": "Write where() or select().",
    "proj": "Write where(isinf(z.real) | isinf(z.imag), complex('inf'), z).",
    "require": "Write asarray(x, dtype=..., order=...).",
    "scipy": "SciPy takes arrays of Drupe where it takes those of the array API; dpnp has linalg, fft and random.",
    "spacing": "Write abs(nextafter(x, inf) - x).",
    "special": "Write drupe.vectorize with math.erf() and its like.",
    "polynomial": _BY_NUMPY.format("polynomial.polynomial.polyfit"),
}
