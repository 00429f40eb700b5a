"""NumPy's functions over arrays of drupe.array: what Array.__array_ufunc__() and __array_function__() do.

A function of NumPy is the one of drupe.array that has its name, or the name that a table below gives it, and its
arguments are handed on by name. What is left at NumPy's default and ours does not know is dropped; anything else that
ours does not know is an error. Functions whose meaning differs have an adapter."""
import functools
import inspect

from drupe import _engine

_MODULES = {"numpy": "drupe.array", "numpy.linalg": "drupe.array.linalg", "numpy.fft": "drupe.array.fft"}

# Operators of NumPy's, and what each is seen from its right side.
_REFLECTED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
              "true_divide": "__rtruediv__", "floor_divide": "__rfloordiv__", "remainder": "__rmod__",
              "power": "__rpow__", "matmul": "__rmatmul__", "bitwise_and": "__rand__", "bitwise_or": "__ror__",
              "bitwise_xor": "__rxor__", "left_shift": "__rlshift__", "right_shift": "__rrshift__"}
_COMPARED = {"less": "__gt__", "less_equal": "__ge__", "equal": "__eq__", "not_equal": "__ne__", "greater": "__lt__",
             "greater_equal": "__le__"}

# Where names of NumPy are others than those of the array API, beside the second names that drupe.array has.
_OURS = {"concatenate": "concat", "cumprod": "cumulative_prod", "cumsum": "cumulative_sum"}
_KEYWORDS = {"a_max": "max", "a_min": "min", "ddof": "correction", "newshape": "shape", "reps": "repetitions"}
# Parameters of functions that inspect knows none of in some versions of NumPy.
_PARAMETERS = {"concatenate": ("arrays", "axis", "out", "dtype", "casting"), "where": ("condition", "x", "y"),
               "dot": ("a", "b", "out"), "vdot": ("a", "b"), "inner": ("a", "b"),
               "empty_like": ("prototype", "dtype", "order", "subok", "shape", "device"),
               "can_cast": ("from_", "to", "casting"), "bincount": ("x", "weights", "minlength")}
_DEFAULTS = {"casting": "same_kind", "order": "K", "subok": True, "where": True}
# Parameters without an effect here: sorts are stable.
_IDLE = {("sort", "kind"), ("argsort", "kind")}
# Operands for which lists of numbers are taken, as NumPy does; they go to where the arrays are.
_LISTS = {("digitize", "bins"), ("interp", "fp"), ("interp", "xp"), ("isin", "test_elements"), ("searchsorted", "v"),
          ("take", "indices"), ("average", "weights")}

# Reductions that a ufunc's methods are; NumPy's begin with axis 0.
_REDUCED = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
            "logical_or": "any"}
_ACCUMULATED = {"add": "cumulative_sum", "multiply": "cumulative_prod"}


# --- Which function ----------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def _find(name, module="numpy"):
    """The function of drupe.array that computes what NumPy's of this name does, or None."""
    import importlib

    from drupe.array import _refused

    if module not in _MODULES:
        return None
    try:
        ours = importlib.import_module(_MODULES[module])
    except ImportError:
        return None
    if module == "numpy":
        name = _OURS.get(name) or _refused.ALIASES.get(name, name)
    known = getattr(ours, "__all__", None) or dir(ours)
    return getattr(ours, name) if name in known and callable(getattr(ours, name)) else None


def _refusal(name):
    from drupe.array import _refused

    instead = _refused.INSTEAD.get(name, "It would compute on the host:")
    return TypeError(f"numpy.{name}() takes no arrays on devices, and drupe.array has no such function. {instead} "
                     "drupe.array.asnumpy(x) copies the values for NumPy.")


# --- Arguments ---------------------------------------------------------------------------------------------------

class _Plan:
    """How arguments of NumPy's function become those of ours."""

    def __init__(self, name, numpys, ours):
        self.name, self.ours = name, ours
        self.names, self.defaults = _parameters(name, numpys)
        self.positions, self.keywords, self.variadic = 0, set(), False
        for parameter in inspect.signature(ours).parameters.values():
            self.variadic |= parameter.kind == parameter.VAR_POSITIONAL
            if parameter.kind == parameter.POSITIONAL_ONLY:
                self.positions += 1
            elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                self.keywords.add(parameter.name)
        # Names of the parameters behind the operands, where ours takes those by position only.
        self.leading = self.names[:self.positions]

    def call(self, args, options):
        if self.variadic or not self.names:
            return self.ours(*args, **options)
        if len(args) > len(self.names):
            raise TypeError(f"numpy.{self.name}() takes {len(self.names)} arguments at most, and {len(args)} are given")
        given = dict(zip(self.names, args))
        given.update(options)
        for name, value in given.items():
            if (self.name, name) in _LISTS and isinstance(value, (list, tuple)):
                given[name] = _beside(given, value)
        by_place, by_name, out = {}, {}, None
        for name, value in given.items():
            ours = _KEYWORDS.get(name, name)
            if name in self.leading:
                by_place[self.leading.index(name)] = value
            elif ours in self.keywords:
                by_name[ours] = value
            elif name == self.names[0]:
                by_place[0] = value
            elif name == "out" and value is not None:
                out = value
            elif not self.is_default(name, value):
                raise TypeError(f"numpy.{self.name}() of arrays on devices is drupe.array.{_name(self.ours)}(), "
                                f"which takes no {name}=")
        by_name = {name: value for name, value in by_name.items() if not _is_missing(value)}
        result = self.ours(*[by_place[i] for i in sorted(by_place)], **by_name)
        return result if out is None else _store(out, result)

    def is_default(self, name, value):
        if value is None or _is_missing(value) or (self.name, name) in _IDLE:
            return True
        return any(type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default
                   for default in (self.defaults.get(name), _DEFAULTS.get(name)))


def _beside(given, numbers):
    """An array of numbers where the array among the arguments is."""
    from drupe import array

    others = [x for x in given.values() if isinstance(x, array.Array)]
    return array.asarray(numbers, queue=others[0].queue if others else None)


def _name(ours):
    return getattr(ours, "__name__", str(ours))


def _parameters(name, numpys):
    """Names of NumPy's parameters in order, and their defaults."""
    if name in _PARAMETERS:
        return list(_PARAMETERS[name]), {}
    try:
        parameters = inspect.signature(numpys).parameters.values()
    except (TypeError, ValueError):
        return [], {}
    if any(parameter.kind == parameter.VAR_POSITIONAL for parameter in parameters):
        return [], {}
    return ([parameter.name for parameter in parameters],
            {parameter.name: parameter.default for parameter in parameters})


def _is_missing(value):
    """NumPy's mark for an argument that was not given."""
    return type(value).__name__ == "_NoValueType"


def _store(out, result):
    """out= of a function whose counterpart has none."""
    out = out[0] if isinstance(out, tuple) else out
    _own(out)
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, and the result {result.shape}")
    out[...] = result
    return out


def _own(x):
    from drupe.array import Array

    if not isinstance(x, Array):
        raise TypeError(f"out must be a drupe.array.Array where an operand is one, not {type(x).__name__}")


@functools.lru_cache(maxsize=None)
def _plan(name, module, numpys):
    ours = _find(name, module)
    return ours and _Plan(name, numpys, ours)


# --- Functions whose meaning differs -------------------------------------------------------------------------------

def _squeeze(a, axis=None):
    from drupe import array

    return array.squeeze(a, tuple([i for i, n in enumerate(a.shape) if n == 1]) if axis is None else axis)


def _transpose(a, axes=None):
    from drupe import array

    return array.permute_dims(a, axes)


def _broadcast_arrays(*args, subok=False):
    """With things among them that are no arrays of ours, None or text such as matplotlib has there, NumPy's."""
    from drupe import array

    if all(isinstance(a, array.Array) for a in args):
        return array.broadcast_arrays(*args)
    import numpy

    return numpy.broadcast_arrays(*[numpy.asarray(a) if isinstance(a, array.Array) else a for a in args])


def _shares(a, b, max_work=None):
    """numpy.shares_memory() and may_share_memory(), for arrays of ours and of NumPy's."""
    import numpy

    from drupe import array

    ours = [isinstance(x, array.Array) for x in (a, b)]
    if all(ours) and a.usm_data._allocation != b.usm_data._allocation:
        return False
    if not all(_engine._host_reaches(x) for x, own in zip((a, b), ours) if own):
        return all(ours)  # the same allocation, as far as that tells
    return numpy.may_share_memory(*[numpy.asarray(x) for x in (a, b)])


def _size(a, axis=None):
    return a.size if axis is None else a.shape[axis]


def _copy(a, order="K", subok=False):
    return a.copy()


def _where(condition, *choices):
    from drupe import array

    if choices:
        return array.where(condition, *choices)
    if "nonzero" not in array.__all__:
        raise _refusal("where")
    return array.nonzero(condition)


def _cumulative(name):
    def cumulative(a, axis=None, dtype=None, out=None):
        from drupe import array

        if name not in array.__all__:
            raise _refusal({"cumulative_sum": "cumsum"}.get(name, "cumprod"))
        if axis is None:
            a, axis = a.reshape(-1), 0
        result = getattr(array, name)(a, axis=axis, dtype=dtype)
        return result if out is None else _store(out, result)

    return cumulative


def _norm(x, ord=None, axis=None, keepdims=False):
    """numpy.linalg.norm()."""
    from drupe import array

    linalg = getattr(array, "linalg", None)
    matrix = ord is not None and (x.ndim == 2 if axis is None else isinstance(axis, tuple) and len(axis) == 2)
    if matrix and linalg:
        at = (0, 1) if axis is None else tuple(a % x.ndim for a in axis)
        last = array.moveaxis(x, at, (-2, -1))
        result = linalg.matrix_norm(last, ord=ord, keepdims=keepdims)
        return array.moveaxis(result, (-2, -1), at) if keepdims else result
    if ord is not None and axis is None and x.ndim > 2:
        raise ValueError("numpy.linalg.norm(): ord= is of vectors and matrices: say which axes they are, axis=")
    if linalg and not matrix:
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    if ord not in (None, 2, "fro") or matrix and ord == 2:
        raise _refusal("linalg.norm")
    return array.sqrt(array.sum(array.square(array.abs(x)), axis=axis, keepdims=keepdims))


_ADAPTERS = {
    ("numpy", "broadcast_arrays"): _broadcast_arrays,
    ("numpy", "copy"): _copy,
    ("numpy", "cumprod"): _cumulative("cumulative_prod"),
    ("numpy", "cumsum"): _cumulative("cumulative_sum"),
    ("numpy", "may_share_memory"): _shares,
    ("numpy", "ndim"): lambda a: a.ndim,
    ("numpy", "shape"): lambda a: a.shape,
    ("numpy", "shares_memory"): _shares,
    ("numpy", "size"): _size,
    ("numpy", "squeeze"): _squeeze,
    ("numpy", "transpose"): _transpose,
    ("numpy", "where"): _where,
    ("numpy.linalg", "norm"): _norm,
}


# --- What Array calls ------------------------------------------------------------------------------------------------

def function(numpys, args, options):
    """Array.__array_function__()."""
    name, module = numpys.__name__, numpys.__module__
    adapter = _ADAPTERS.get((module, name))
    if adapter:
        return adapter(*args, **options)
    plan = _plan(name, module, numpys)
    if not plan:
        raise _refusal(module[6:] + "." + name if module != "numpy" and module.startswith("numpy.") else name)
    return plan.call(args, options)


def _number(left):
    """A number that NumPy compares has become an array without dimensions: it is a number again."""
    try:
        return left[()]
    except Exception:
        return left


def _operator(x, name, inputs, options):
    """An operator whose left side is NumPy's comes as its ufunc: Array's own operator answers, which takes NumPy's
    numbers and refuses its arrays. None: it was no such operator."""
    left, right = inputs
    # In +=, the output is the left side, which is refused as it is in +.
    plain = not options or (len(options) == 1 and "out" in options and options["out"][0] is left)
    if not plain or type(right) is not type(x) or type(left) is type(x):
        return None
    if name in _REFLECTED:
        return getattr(x, _REFLECTED[name])(left)
    return getattr(x, _COMPARED[name])(_number(left)) if name in _COMPARED else None


def _reduced(ufunc, inputs, options):
    """ufunc.reduce() and ufunc.accumulate(), whose axis is 0 unless it is given."""
    names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
    given = {**dict(zip(names, inputs)), **options}
    x, out = given.pop("array"), given.pop("out", None)
    axis = given.pop("axis", 0)
    kept = {name: value for name, value in given.items()
            if value is not None and not _is_missing(value) and value is not (name == "where")}
    if kept.keys() - {"dtype", "keepdims"}:
        raise TypeError(f"numpy.{ufunc.__name__}.reduce() of arrays on devices takes axis, dtype, keepdims and out, "
                        f"not {', '.join(sorted(kept.keys() - {'dtype', 'keepdims'}))}")
    out = out[0] if isinstance(out, tuple) else out
    return x, axis, kept, out


def _method(ufunc, method, inputs, options):
    from drupe import array

    name = ufunc.__name__
    table = {"reduce": _REDUCED, "accumulate": _ACCUMULATED}.get(method, {})
    ours = getattr(array, table[name], None) if name in table else None
    if ours:
        x, axis, options, out = _reduced(ufunc, inputs, options)
        if method == "accumulate" and x.ndim == 0:
            raise TypeError("cannot accumulate on a scalar")
        result = ours(x, axis=axis, **options)
        return result if out is None else _store(out, result)
    if method == "outer" and len(inputs) == 2 and _find(name) and not options:
        a, b = inputs
        return _find(name)(a.reshape(a.shape + (1,) * b.ndim), b)
    raise _refusal(f"{name}.{method}")


def universal(x, ufunc, method, inputs, options):
    """Array.__array_ufunc__()."""
    name = ufunc.__name__
    if method != "__call__":
        return _method(ufunc, method, inputs, options)
    if len(inputs) == 2:
        result = _operator(x, name, inputs, options)
        if result is not None:
            return result
    ours = _find(name)
    out = options.get("out")
    kept = [key for key, value in options.items() if key != "out" and value is not None and
            not (isinstance(value, (bool, str)) and value == _DEFAULTS.get(key))]
    if not ours or len(out or ()) > 1:
        raise _refusal(name)
    if kept:
        raise TypeError(f"numpy.{name}() of arrays on devices is drupe.array.{_name(ours)}(), which takes no "
                        f"{', '.join(f'{key}=' for key in kept)}: convert with astype(), choose with where()")
    if not out:
        return ours(*inputs)
    _own(out[0])
    return ours(*inputs, out=out[0])
