"""NumPy with the names and the types of drupe.array, for programs that run on both."""
import numpy as np

OTHER = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
         "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
         "bitwise_right_shift": "right_shift", "pow": "power", "concat": "concatenate",
         "permute_dims": "transpose"}
FUNCTIONS = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p",
             "log2", "sin", "sinh", "sqrt", "tan", "tanh")
PAIRS = ("atan2", "copysign", "hypot", "logaddexp", "nextafter")

def __getattr__(name):
    """What has the same name and does the same."""
    return getattr(np, name)


def top(a):
    """The largest size of a finite element."""
    a = np.abs(np.asarray(a).astype("complex128" if np.asarray(a).dtype.kind == "c" else "float64"))
    return np.max(a[np.isfinite(a)], initial=0.0)


def values(dtype, shape, seed, kind="plain"):
    """Elements that a program begins with. plain: small ones; wide: of all of the type's range, for integers; odd: with
    infinities, NaN and both zeros, for floats; few: of a handful, so that many are equal."""
    source, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype == bool:
        return np.asarray(source.random(shape) < 0.5)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = ((limits.min, limits.max) if kind == "wide" else
                     (0 if dtype.kind == "u" else -3, 4) if kind == "few" else (0 if dtype.kind == "u" else -50, 50))
        return np.asarray(source.integers(low, high, shape, dtype=dtype, endpoint=True))
    a = source.integers(-9, 10, shape) / 4 if kind == "few" else source.normal(0, 8, shape)
    if dtype.kind == "c":
        a = a + 1j * source.integers(-2, 3, shape)
    elif kind == "odd":
        odd = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-6, 0.5])
        a = np.where(source.random(shape) < 0.3, odd[source.integers(0, odd.size, shape)], a)
    return np.asarray(a).astype(dtype)


def indices(dtype, shape, length, seed):
    """Places along an axis; negative ones too where the type has them."""
    source = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind == "u" else -length
    return np.asarray(source.integers(low, length, shape)).astype(dtype)


def move(a, queue):
    return a.copy()


def lost(a, at):
    """See arrays_program.lost(): the elements stay what they are."""


def pickled(a):
    return a.copy()


exported = viewed = pickled


def _kinds(operands):
    return {np.asarray(a).dtype.kind if not isinstance(a, (bool, int, float, complex)) else
            {bool: "b", int: "i", float: "f", complex: "c"}.get(type(a)) or np.asarray(a).dtype.kind for a in operands}


def _floating(function):
    """Integers are computed in float64 as a whole, where NumPy takes float16 and float32 for narrow ones."""
    def call(*operands, **options):
        if _kinds(operands) <= set("biu"):
            operands = [a.astype("float64") if isinstance(a, (np.ndarray, np.generic)) else float(a) for a in operands]
        return function(*operands, **options)
    return call


for _name, _numpys in OTHER.items():
    globals()[_name] = getattr(np, _numpys)
for _name in (*FUNCTIONS, *PAIRS, "angle"):
    globals()[_name] = _floating(getattr(np, OTHER.get(_name, _name)))
globals()["abs"] = np.abs


def _float_or_itself(name):
    """NumPy makes floats of integers by rint()."""
    def call(x, **options):
        return x.copy() if x.dtype.kind in "iu" and not options else getattr(np, name)(x, **options)
    return call


globals()["round"] = _float_or_itself("rint")


def real(x):
    return x.real.copy()


def imag(x):
    return x.imag.copy()


def where(condition, x, y):
    return np.where(condition, x, y)


def sort(x, axis=-1, descending=False):
    a = np.sort(x, axis=axis, kind="stable")
    return np.flip(a, axis) if descending else a


def argsort(x, axis=-1):
    return np.argsort(x, axis=axis, kind="stable")


def unique_values(x):
    return np.unique_all(x).values  # the first of equal zeros, as Drupe has it


def unique_all(x):
    return tuple(np.unique_all(x))


def unique_counts(x):
    return tuple(np.unique_counts(x))


def unique_inverse(x):
    parts = np.unique_all(x)  # which alone sorts stably, so that each NaN has its place
    return parts.values, parts.inverse_indices


def _half_sums(function):
    """Means and the like of float16 are computed in float32, as Drupe does."""
    def call(x, **options):
        if x.dtype == np.float16:
            return np.asarray(function(x.astype("float32"), **options)).astype("float16")
        return function(x, **options)
    return call


for _name in ("mean", "var", "std"):
    globals()[_name] = _half_sums(getattr(np, _name))


def sum(x, axis=None, keepdims=False):
    """In float64, where floats are: whose result is the one that rounding is compared with."""
    if x.dtype.kind in "fc":
        wide = np.promote_types(x.dtype, "float64")
        return np.asarray(np.sum(x.astype(wide), axis=axis, keepdims=keepdims)).astype(x.dtype)
    return np.sum(x, axis=axis, keepdims=keepdims)


def cumulative_sum(x, axis, include_initial=False):
    """In the widest float, since NumPy adds one after the other, and Drupe several parts of a row."""
    if x.dtype.kind in "fc":
        wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
        return np.cumulative_sum(x.astype(wide), axis=axis, include_initial=include_initial).astype(x.dtype)
    return np.cumulative_sum(x, axis=axis, include_initial=include_initial)


def _wide_matmul(a, b):
    result = np.result_type(a, b)
    if result.kind in "fc":
        wide = np.promote_types(result, "float64")
        return np.asarray(np.matmul(a.astype(wide), b.astype(wide))).astype(result)
    return np.matmul(a, b)


matmul = _wide_matmul
