"""What of the engine's classes of arrays is written in Python. It adds METHODS to Array when it is loaded."""
# Operators of NumPy's, and what each is seen from its right side.
_REFLECTED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
              "true_divide": "__rtruediv__", "floor_divide": "__rfloordiv__", "remainder": "__rmod__",
              "power": "__rpow__", "matmul": "__rmatmul__", "bitwise_and": "__rand__", "bitwise_or": "__ror__",
              "bitwise_xor": "__rxor__", "left_shift": "__rlshift__", "right_shift": "__rrshift__"}
_COMPARED = {"less": "__gt__", "less_equal": "__ge__", "equal": "__eq__", "not_equal": "__ne__", "greater": "__lt__",
             "greater_equal": "__le__"}
# Where names of NumPy are others than those of the array API.
_OURS = {"absolute": "abs", "fabs": "abs", "power": "pow"}


def _number(left):
    """A number that NumPy compares has become an array without dimensions: it is a number again."""
    try:
        return left[()]
    except Exception:
        return left


def _refusal(name, method):
    from drupe import array

    ours = _OURS.get(name, name)
    if method == "__call__" and hasattr(array, ours):
        return TypeError(f"numpy.{name}() takes no arrays on devices: drupe.array.{ours}() computes there, and "
                         "drupe.array.asnumpy(x) copies the values to the host for NumPy")
    full = name if method == "__call__" else f"{name}.{method}"
    return TypeError(f"numpy.{full}() takes no arrays on devices, and drupe.array has no such function: "
                     "drupe.array.asnumpy(x) copies the values to the host for NumPy")


def __array_ufunc__(self, ufunc, method, *inputs, **options):
    """Operators with NumPy's numbers; its functions are refused, with what to call instead.

    An operator whose left side is NumPy's comes here as its ufunc: Array's own operator answers, which takes NumPy's
    numbers and refuses its arrays. Ufuncs that are called by name would have to copy the array to the host.
    """
    name = ufunc.__name__
    if method == "__call__" and len(inputs) == 2 and inputs[1].__class__ is self.__class__:
        left = inputs[0]
        # In +=, the output is the left side, which is refused as it is in +.
        plain = not options or (len(options) == 1 and "out" in options and options["out"][0] is left)
        if plain and left.__class__ is not self.__class__:
            if name in _REFLECTED:
                return getattr(self, _REFLECTED[name])(left)
            if name in _COMPARED:
                return getattr(self, _COMPARED[name])(_number(left))
    raise _refusal(name, method)


def __array_namespace__(self, /, *, api_version=None):
    """The module drupe.array."""
    from drupe import array

    return array


def __format__(self, specification):
    """Without dimensions it is formatted as its number is; str() formats every array."""
    if self.ndim and specification:
        raise TypeError(f"only an array without dimensions takes a format, and this one has {self.ndim}: take one "
                        "element, or convert it with x.asnumpy()")
    return format(str(self) if self.ndim else self.item(), specification)


def __reduce__(self):
    """For pickle, which would copy from the device without a word."""
    raise TypeError("an array on a device is not pickled: pickle its values, x.asnumpy(), and make an array of them "
                    "with drupe.array.asarray()")


def _repr_pretty_(self, printer, cycle):
    """As an element of what IPython prints."""
    from drupe import _repr

    printer.text(_repr.brief(self, printer))


@property
def _interface(self):
    """The description other libraries read."""
    return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.usm_data._pointer, False),
            "strides": self.strides, "offset": self._offset, "version": 1, "syclobj": self.queue}


def signature(parameters):
    """Of an Operation: of objects of foreign types inspect knows a Signature only, which this function is asked for."""
    import inspect

    return inspect.signature(eval("lambda %s: None" % parameters))


METHODS = {"__array_priority__": 1000.0,  # NumPy asks the operand with the highest
           "__sycl_usm_array_interface__": _interface}
METHODS.update((one.__name__, one) for one in (__array_ufunc__, __array_namespace__, __format__, __reduce__,
                                               _repr_pretty_))
