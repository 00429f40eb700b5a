"""What to say of data that no array is made of: objects of other libraries, and elements of types that are not here.
The engine raises a TypeError with what these functions return; `kind` is the name of an object's class."""
import sys

_HAS = "drupe.array has bool, int32, int64, float32 and float64 in native byte order"
_COMPLEX = ("Keep the real and the imaginary parts of complex numbers as two arrays: asarray(x.real), "
            "asarray(x.imag)")
# Formats of struct and of NumPy, and a type that holds nearly all of their values.
_FORMATS = {"b": ("int8", "int32"), "B": ("uint8", "int32"), "h": ("int16", "int32"), "H": ("uint16", "int32"),
            "I": ("uint32", "int64"), "L": ("uint64", "int64"), "Q": ("uint64", "int64"), "N": ("uint64", "int64"),
            "e": ("float16", "float32"), "g": ("longdouble", "float64"), "Zf": ("complex64", None),
            "Zd": ("complex128", None), "Zg": ("clongdouble", None)}
_DATES = ("numpy.datetime64", "numpy.timedelta64")
_SWAPPED = (">", "!") if sys.byteorder == "little" else ("<",)


def _text(kind):
    return f"{kind} holds text, not numbers: {_HAS}"


def elements(kind, given):
    """Of a buffer whose elements have this format of the module struct."""
    if kind in _DATES:  # the buffer of one is of bytes
        return element(None, kind)
    plain = given[1:] if given.startswith(tuple("@=<>!")) else given
    if plain in _FORMATS and not given.startswith(_SWAPPED):
        name, instead = _FORMATS[plain]
        advice = f'Convert it first: x.astype("{instead}") in NumPy.' if instead else _COMPLEX + "."
        return f"{kind} with elements of type {name} cannot become an array: {_HAS}. {advice}"
    if plain.lstrip("0123456789") in ("s", "w", "c"):
        return _text(kind)
    if plain == "O":
        return (f"{kind} holds Python objects, not numbers of one type: {_HAS}. Convert it first: "
                'x.astype("float64") in NumPy, df.to_numpy("float64") of the columns that are numbers in pandas.')
    return (f"{kind} with elements of format '{given}' cannot become an array: {_HAS}. Convert it first, with "
            'x.astype("float64") in NumPy.')


def unreadable(kind, array):
    """Of what gives no buffer, where its data type is the reason; else None."""
    dtype = getattr(array, "dtype", None)
    letter = getattr(dtype, "kind", None)
    if letter == "T":
        return _text(kind)
    if letter not in ("M", "m", "V"):
        return None
    advice = ('x.astype("float32") in NumPy' if letter == "V" else
              'x.astype("int64") in NumPy counts in the unit of the type')
    return f"{kind} with elements of type {dtype} cannot become an array: {_HAS}. Convert it first: {advice}."


def dtype(given):
    """Of what is no data type here."""
    name = repr(given)
    return (f"{name} is no data type of drupe.array. There are bool, int32, int64, float32 and float64."
            + (f" {_COMPLEX}." if "complex" in name else ""))


def element(given, kind):
    """Of what stands where a number is expected."""
    if isinstance(given, complex) or kind.startswith("numpy.complex"):
        return f"an array is made of real numbers, not of {kind}. {_COMPLEX}."
    if isinstance(given, (str, bytes)):
        return _text(kind)
    if kind in _DATES:
        return (f"an array is made of numbers, not of {kind}. Convert the dates first: x.astype(\"int64\") in NumPy "
                "counts in the unit of their type.")
    return f"an array is made of numbers in sequences of equal length, not of {kind}"


def keys(kind):
    """Of what was asked for an element by its number, and has keys."""
    return (f"an array is made of sequences, and {kind} has keys instead of positions. Pass its values: "
            "df.to_numpy() of a table, list(x.values()) of a mapping.")
