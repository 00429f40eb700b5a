"""Names of NumPy, CuPy and dpctl.tensor that drupe.array does not have, with what to use instead; second names."""

# Names by which NumPy, or dpctl.tensor, knows functions that have another one in the array API.
ALIASES = {
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "around": "round",
    "bitwise_not": "bitwise_invert", "conjugate": "conj", "degrees": "rad2deg", "fix": "trunc",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "mod": "remainder", "power": "pow",
    "radians": "deg2rad", "right_shift": "bitwise_right_shift", "rint": "round", "row_stack": "vstack",
    "true_divide": "divide",
}

_TEXT = "NumPy prints it: print(x) shows the values, and numpy.printoptions() says how."
_FILES = "Files are NumPy's work: asarray(numpy.{0}(...)) reads, and numpy.{1}(file, x.asnumpy()) writes."
_ROWS = "Write the loop over rows in Python, or better an operation on whole arrays."
_HOST = "Its result is on the host: take NumPy's of x.asnumpy()."
_ONE_NUMBER = "Arrays hold numbers of one type: bool, integers, floating point and complex."

INSTEAD = {
    "ndarray": "The class of arrays is Array.",
    "usm_ndarray": "The class of arrays is Array; arrays are made by asarray(), empty() and their like.",
    "usm_ndarray_repr": "Write repr(x).",
    "usm_ndarray_str": "Write str(x).",
    "usm_ndarray_to_string": "Write str(x).",
    "ndim": "Read x.ndim.", "size": "Read x.size.", "shape": "Read x.shape.",
    "promote_types": "Take result_type(a, b).", "common_type": "Take result_type() of the arrays.",
    "min_scalar_type": "Numbers of Python take the type of the array beside them: result_type(x, 5).",
    "proj": "Write where(isinf(z.real) | isinf(z.imag), complex('inf'), z).",
    "cumulative_logsumexp": "Where nothing overflows: log(cumulative_sum(exp(x - max(x)))) + max(x).",
    "histogram2d": "Number the bins with digitize(), and count row * columns + column with bincount().",
    "trim_zeros": "Take a slice from the first to the last of flatnonzero(x).",
    "Device": "Devices are drupe.Device; x.device is the one an array lives on.",
    "asmatrix": "Arrays with two dimensions are matrices: x @ y multiplies them.",
    "matrix": "Arrays with two dimensions are matrices: x @ y multiplies them.",
    "bmat": "Take block().",
    "vectorize": "A function of elements is written with operations on whole arrays, or as a kernel: drupe.Program.",
    "frompyfunc": "A function of elements is written with operations on whole arrays, or as a kernel: drupe.Program.",
    "piecewise": "Take where() or select(), which compute all choices and then choose.",
    "resize": "Take tile() to repeat elements, pad() to add some, and a slice to leave some out.",
    "broadcast": "Take broadcast_shapes() for the shape, and broadcast_arrays() for the views.",
    "nditer": _ROWS, "ndenumerate": _ROWS, "ndindex": "Take numpy.ndindex(x.shape).", "flatiter": "Take x.reshape(-1).",
    "nested_iters": _ROWS, "apply_over_axes": "Give the function several axes: sum(x, axis=(0, 2)).",
    "trapz": "It is trapezoid() in NumPy 2 and here.",
    "product": "Take prod().", "cumproduct": "Take cumulative_prod().", "sometrue": "Take any().",
    "alltrue": "Take all().", "in1d": "Take isin().", "msort": "Take sort(x, axis=0).", "round_": "Take round().",
    "asscalar": "Take x.item().", "find_common_type": "Take result_type().", "obj2sctype": "Take DType(obj).",
    "load": _FILES.format("load", "save"), "save": _FILES.format("load", "save"),
    "savez": _FILES.format("load", "savez"), "savez_compressed": _FILES.format("load", "savez_compressed"),
    "loadtxt": _FILES.format("loadtxt", "savetxt"), "savetxt": _FILES.format("loadtxt", "savetxt"),
    "genfromtxt": _FILES.format("genfromtxt", "savetxt"), "fromfile": _FILES.format("fromfile", "save"),
    "memmap": "Map the file with numpy.memmap() and copy parts of it: asarray(part).",
    "fromstring": "Take asarray(numpy.fromstring(...)).", "fromregex": "Take asarray(numpy.fromregex(...)).",
    "array2string": _TEXT, "array_repr": "Write repr(x).", "array_str": "Write str(x).",
    "set_printoptions": _TEXT, "get_printoptions": _TEXT, "printoptions": _TEXT,
    "set_print_options": _TEXT, "get_print_options": _TEXT, "print_options": _TEXT,
    "format_float_positional": "Take NumPy's of x.item().", "format_float_scientific": "Take NumPy's of x.item().",
    "binary_repr": "Take Python's: format(x.item(), 'b').", "base_repr": "Take NumPy's of x.item().",
    "errstate": "Devices report no floating-point exceptions: isfinite() finds NaN and infinities.",
    "seterr": "Devices report no floating-point exceptions: isfinite() finds NaN and infinities.",
    "geterr": "Devices report no floating-point exceptions: isfinite() finds NaN and infinities.",
    "seterrcall": "Devices report no floating-point exceptions: isfinite() finds NaN and infinities.",
    "object_": _ONE_NUMBER, "str_": _ONE_NUMBER, "bytes_": _ONE_NUMBER, "void": _ONE_NUMBER,
    "datetime64": "Count in a unit of your own, in int64.", "timedelta64": "Count in a unit of your own, in int64.",
    "longdouble": "The widest floating-point type is float64.", "clongdouble": "The widest complex type is complex128.",
    "float128": "The widest floating-point type is float64.", "half": "It is float16.", "single": "It is float32.",
    "double": "It is float64.", "csingle": "It is complex64.", "cdouble": "It is complex128.", "intp": "It is int64.",
    "bool_": "It is bool.", "int_": "It is int64.", "uint": "It is uint64.",
    "byte": "It is int8.", "ubyte": "It is uint8.",
    "short": "It is int16.", "ushort": "It is uint16.", "intc": "It is int32.", "uintc": "It is uint32.",
    "longlong": "It is int64.", "ulonglong": "It is uint64.", "complex_": "It is complex128.",
    "float_": "It is float64.",
    "recarray": _ONE_NUMBER, "record": _ONE_NUMBER, "rec": _ONE_NUMBER, "char": _ONE_NUMBER, "strings": _ONE_NUMBER,
    "ma": "Keep a mask beside the array: where(mask, x, 0).", "poly1d": "Take polyval() with the coefficients.",
    "polyfit": "Take NumPy's of x.asnumpy(), and polyval() on the device.",
    "polynomial": "Take NumPy's of x.asnumpy(), and polyval() on the device.",
    "roots": _HOST, "poly": _HOST, "polyadd": _HOST, "polymul": _HOST, "polydiv": _HOST,
    "histogramdd": "Take histogram() of each axis, or bincount() of indices of your own.",
    "packbits": "Take sums of shifted bits: (x << da.arange(8)).",
    "unpackbits": "Take (x[:, None] >> da.arange(8)) & 1.",
    "may_share_memory": "Compare x.usm_data: views share it.", "shares_memory": "Compare x.usm_data: views share it.",
    "ElementwiseKernel": "Kernels are drupe.Program(source).", "RawKernel": "Kernels are drupe.Program(source).",
    "RawModule": "Kernels are drupe.Program(source).", "ReductionKernel": "Kernels are drupe.Program(source).",
    "fuse": "Operations are written one by one.", "cuda": "Devices are drupe.devices().",
    "get_default_memory_pool": "Take drupe.memory.pool(device).", "get_array_module": "Take x.__array_namespace__().",
    "asarray_chkfinite": "Take asarray(), and all(isfinite(x)).",
    "require": "Take ascontiguousarray() or asfortranarray().",
    "mask_indices": "Take nonzero() of a mask.", "i0": "Take SciPy's of x.asnumpy().",
    "sort_complex": "Sort abs(x), or real(x).", "busday_count": "Count days in int64.",
    "get_implementation_function": "Operations have no parts that can be called.",
}


def hint(name, numpys):
    """What to use instead of a name that is not here; `numpys`: NumPy has it."""
    if name in INSTEAD:
        return INSTEAD[name]
    return f"NumPy's takes copies: asarray(numpy.{name}(x.asnumpy(), ...))." if numpys else ""
