"""What to say of data that no array is made of: objects of other libraries, and elements of types that are not here.
The engine raises a TypeError with what these functions return; `kind` is the name of an object's class."""
import sys

_TYPES = "bool, int8 to int64, uint8 to uint64, float16, float32, float64, complex64 and complex128"
_HAS = f"drupe.array has {_TYPES} in native byte order"
# Formats of NumPy, and a type that holds nearly all of their values.
_FORMATS = {"g": ("longdouble", "float64"), "Zg": ("clongdouble", "complex128")}
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
        return (f"{kind} with elements of type {name} cannot become an array: {_HAS}. Convert it first: "
                f'x.astype("{instead}") in NumPy.')
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
    return f"{given!r} is no data type of drupe.array. There are {_TYPES}."


def element(given, kind):
    """Of what stands where a number is expected."""
    if isinstance(given, bytes):
        return f"{_text(kind)}. As numbers of type uint8: asarray(bytearray(x))"
    if isinstance(given, str):
        return _text(kind)
    if kind in _DATES:
        return (f"an array is made of numbers, not of {kind}. Convert the dates first: x.astype(\"int64\") in NumPy "
                "counts in the unit of their type.")
    return f"an array is made of numbers in sequences of equal length, not of {kind}"


def keys(kind):
    """Of what was asked for an element by its number, and has keys."""
    return (f"an array is made of sequences, and {kind} has keys instead of positions. Pass its values: "
            "df.to_numpy() of a table, list(x.values()) of a mapping.")
