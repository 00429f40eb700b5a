"""Arrays as text, and the options for that: NumPy's, for values that are copied to the host."""
import contextlib
from contextvars import ContextVar

from drupe.compat.dpctl.tensor._calling import array_behind

__all__ = ["get_print_options", "print_options", "set_print_options", "usm_ndarray_repr", "usm_ndarray_str"]

_DEFAULT = {"linewidth": 75, "edgeitems": 3, "threshold": 1000, "precision": 8, "floatmode": "maxprec",
            "suppress": False, "nanstr": "nan", "infstr": "inf", "sign": "-"}
_current = ContextVar("dpctl_print_options", default=_DEFAULT)


def _numpys():
    import numpy

    options = numpy.get_printoptions()
    return {name: options[name] for name in _DEFAULT}


def set_print_options(linewidth=None, edgeitems=None, threshold=None, precision=None, floatmode=None, suppress=None,
                      nanstr=None, infstr=None, sign=None, numpy=False):
    """Change how arrays are printed; numpy=True takes NumPy's present options."""
    given = {name: value for name, value in locals().items() if name != "numpy" and value is not None}
    if numpy and given:
        raise ValueError("numpy=True goes without other options")
    if floatmode is not None and floatmode not in ("fixed", "unique", "maxprec", "maxprec_equal"):
        raise ValueError(f"floatmode is fixed, unique, maxprec or maxprec_equal, not {floatmode!r}")
    if sign is not None and sign not in (" ", "+", "-"):
        raise ValueError(f"sign is ' ', '+' or '-', not {sign!r}")
    _current.set(_numpys() if numpy else {**_current.get(), **given})


def get_print_options():
    """The options as a dict."""
    return dict(_current.get())


@contextlib.contextmanager
def print_options(*args, **kwargs):
    """A block with other options."""
    token = _current.set(_current.get())
    try:
        set_print_options(*args, **kwargs)
        yield get_print_options()
    finally:
        _current.reset(token)


def _text(x, options, separator, prefix, suffix):
    import numpy

    words = {**_current.get(), **{name: value for name, value in options.items() if value is not None}}
    width = words.pop("linewidth")
    values = array_behind(x, "x").asnumpy()
    return numpy.array2string(
        values, max_line_width=width, precision=words["precision"], suppress_small=words["suppress"],
        separator=separator, prefix=prefix, suffix=suffix, threshold=words["threshold"], edgeitems=words["edgeitems"],
        sign=words["sign"], floatmode=words["floatmode"])


def usm_ndarray_str(x, line_width=None, edge_items=None, threshold=None, precision=None, floatmode=None,
                    suppress=None, sign=None, numpy=False, separator=" ", prefix="", suffix=""):
    """The elements as text."""
    options = {"linewidth": line_width, "edgeitems": edge_items, "threshold": threshold, "precision": precision,
               "floatmode": floatmode, "suppress": suppress, "sign": sign}
    return _text(x, _numpys() if numpy else options, separator, prefix, suffix)


def usm_ndarray_repr(x, line_width=None, precision=None, suppress=None, prefix="usm_ndarray"):
    """The elements as text, with the type where it is not the usual one."""
    array = array_behind(x, "x")
    options = {"linewidth": line_width, "precision": precision, "suppress": suppress}
    usual = str(array.dtype) in ("bool", "int64", "float64", "complex128") and array.size
    shape = f", shape={array.shape}" if not array.size else ""
    dtype = "" if usual else f", dtype={array.dtype}"
    start = prefix + "("
    elements = _text(x, options, ", ", start, dtype + ")") if array.size else "[]"
    return f"{start}{elements}{shape}{dtype})"
