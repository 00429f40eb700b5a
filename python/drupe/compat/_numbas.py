"""What numba_dpex, numba.cuda and Numba itself have in common: types, signatures, and NumPy's arrays as arguments."""
import functools
import importlib
import operator
import re
import sys

_ALIASES = {
    "boolean": "bool", "bool_": "bool", "b1": "bool", "byte": "uint8", "char": "int8", "short": "int16",
    "intc": "int32", "int_": "int64", "intp": "int64", "long_": "int64", "longlong": "int64", "uchar": "uint8",
    "ushort": "uint16", "uintc": "uint32", "uint": "uint64", "uintp": "uint64", "ulonglong": "uint64",
    "float_": "float64", "double": "float64", "c8": "complex64", "c16": "complex128",
    **{"%s%d" % (kind[0], size): "%s%d" % (kind, 8*size) for kind, sizes in (
        ("int", (1, 2, 4, 8)), ("uint", (1, 2, 4, 8)), ("float", (2, 4, 8))) for size in sizes}}
_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64", "complex64", "complex128")


def lazy(names, written, missing, submodules=(), modules=()):
    """The __getattr__ of a module whose `written` {name: module of drupe} are imported when they are asked for, as its
    `submodules`, and `modules` {name: another of drupe}. `names`: its globals; missing(name) raises what tells that a
    name is not there."""
    def find(name):
        if name in written:
            value = getattr(importlib.import_module("drupe." + written[name]), name)
        elif name in submodules:
            value = importlib.import_module("%s.%s" % (names["__name__"], name))
        elif name in modules:
            value = importlib.import_module("drupe." + modules[name])
        else:
            return missing(name)
        names[name] = value
        return value

    return find


class ScalarType:
    """A type of numbers, as Numba names it: float32(1) converts, float32[:] is the type of arrays of them."""

    def __init__(self, name):
        self.name = name

    @property
    def dtype(self):
        import numpy

        return numpy.dtype(self.name)

    def __call__(self, *args):
        if any(isinstance(one, (ScalarType, ArrayType)) for one in args) or not args:
            return Signature(self, args)  # int32(float32), a signature
        return self.dtype.type(*args)

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if not key or not all(isinstance(one, slice) for one in key):
            raise TypeError("the type of an array is written %s[:] or %s[:, :]" % (self.name, self.name))
        layout = "C" if key[-1].step == 1 else "F" if key[0].step == 1 else "A"
        return ArrayType(self, len(key), layout)

    def __eq__(self, other):
        return isinstance(other, ScalarType) and other.name == self.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return self.name


class NoType:
    """The type of what gives nothing: void(float32[:]) is a signature."""

    name = "none"

    def __call__(self, *args):
        return Signature(self, args)

    def __repr__(self):
        return self.name


class ArrayType:
    """float32[:, :] and its like."""

    def __init__(self, dtype, ndim, layout="A"):
        self.dtype, self.ndim, self.layout = dtype, ndim, layout

    def __repr__(self):
        return "array(%s, %dd, %s)" % (self.dtype.name, self.ndim, self.layout)


class Signature:
    """What a function takes and gives."""

    def __init__(self, return_type, args):
        self.return_type, self.args = return_type, tuple(args)

    def __repr__(self):
        return "(%s) -> %s" % (", ".join(map(repr, self.args)), self.return_type)


def types():
    """{name: type} of all names that Numba has for numbers."""
    found = {name: ScalarType(name) for name in _NAMES if name != "bool"}
    found.update({alias: ScalarType(name) for alias, name in _ALIASES.items()})
    found["void"] = found["none"] = NoType()
    return found


# --- Signatures --------------------------------------------------------------------------------------------

class _Kind:
    """What a signature says of one argument: a dtype, and of arrays the number of dimensions."""

    def __init__(self, name, ndim=None):
        if name not in _NAMES:
            raise TypeError("a signature has the type %r, which kernels do not have: they have %s and arrays of these"
                            % (name, ", ".join(_NAMES)))
        self.name, self.ndim = name, ndim

    def __repr__(self):
        return self.name if self.ndim is None else "%s[%s]" % (self.name, ", ".join(":" * self.ndim))


def _split(text):
    """The parts of a text between its outer commas."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [one.strip() for one in parts if one.strip()]


def _kind_of_text(text):
    found = re.fullmatch(r"(\w+)(?:\[([\s:,1]+)\])?", text.strip().removeprefix("types."))
    if not found:
        raise TypeError("a signature is a text such as \"void(float32[:], int32)\", and this part of one is %r" % text)
    name = _ALIASES.get(found[1], found[1])
    return _Kind(name, None if found[2] is None else found[2].count(",") + 1)


def _kind_of(thing):
    """Of a text, a type of ours, or one of Numba's."""
    if isinstance(thing, str):
        return _kind_of_text(thing)
    inner, ndim = getattr(thing, "dtype", None), getattr(thing, "ndim", None)
    if isinstance(ndim, int) and hasattr(inner, "name"):
        return _Kind(inner.name, ndim)
    return _Kind(str(getattr(thing, "name", thing)))


def kinds(signature):
    """The _Kinds of the arguments, and whether something is given back."""
    if isinstance(signature, str):
        found = re.fullmatch(r"\s*([\w.]*(?:\[[^\]]*\])?)\s*\((.*)\)\s*", signature, re.DOTALL)
        if not found:
            raise TypeError("a signature is a text such as \"void(float32[:], int32)\", not %r" % signature)
        return [_kind_of(one) for one in _split(found[2])], found[1].removeprefix("types.") not in ("", "void", "none")
    if hasattr(signature, "return_type"):
        gives = getattr(signature.return_type, "name", "none") not in ("none", "void")
        return [_kind_of(one) for one in signature.args], gives
    if isinstance(signature, tuple):
        return [_kind_of(one) for one in signature], False
    raise TypeError("a signature is a text such as \"void(float32[:], int32)\" or a tuple of types, not %r"
                    % (signature,))


def result(signature):
    """The _Kind of what a function gives; None where that is not said."""
    if isinstance(signature, str):
        name = signature.partition("(")[0].strip().removeprefix("types.")
    else:
        name = getattr(getattr(signature, "return_type", None), "name", "")
    name = _ALIASES.get(name, name)
    return None if name in ("", "void", "none") else _Kind(name)


def converted(kinds, values):
    """Numbers as those of a signature; arrays as they are."""
    return tuple(_converted(kind, one) for kind, one in zip(kinds, values))


def is_signature(thing):
    """Whether it is one, or a list of several."""
    return isinstance(thing, (str, list, tuple)) or hasattr(thing, "return_type")


class Signatures:
    """What a function was declared to take. convert() gives the arguments as it takes them."""

    def __init__(self, given, gives=False):
        several = given if isinstance(given, list) else [given]
        self.all = []
        for one in several:
            found, result = kinds(one)
            if result and not gives:
                raise TypeError("kernels give nothing back: a signature begins with void, and this one is %r" % (one,))
            self.all.append(found)

    def convert(self, name, args):
        """The arguments: numbers become those of the signature that is nearest, arrays must be of its types."""
        fitting = [one for one in self.all if len(one) == len(args) and all(map(_agrees, one, args))]
        if fitting:
            return tuple(map(_converted, min(fitting, key=lambda one: _distance(one, args)), args))
        raise TypeError("%s() was declared for %s, and was given (%s)" % (
            name, " or ".join("(%s)" % ", ".join(map(repr, one)) for one in self.all),
            ", ".join(_described(one) for one in args)))


def _described(value):
    shape = getattr(value, "shape", ())
    name = str(getattr(value, "dtype", type(value).__name__))
    return "%s[%s]" % (name, ", ".join(":" * len(shape))) if shape else name


def _agrees(kind, value):
    if kind.ndim is not None:
        return len(getattr(value, "shape", ())) == kind.ndim and str(value.dtype) == kind.name
    from drupe.compiler import types as compiler_types

    scalar = compiler_types.of_number(value)
    return scalar is not None and scalar.kind <= compiler_types.Scalar(kind.name).kind


def _distance(kinds, values):
    """How far a signature is from the numbers that are given: what is only widened counts less than what becomes
    another kind of numbers, and this less than what may lose digits."""
    import numpy

    from drupe.compiler import types as compiler_types

    total = 0
    for kind, value in zip(kinds, values):
        given = None if kind.ndim is not None else compiler_types.of_number(value)
        if given is not None and given.name != kind.name:
            same = given.kind == compiler_types.Scalar(kind.name).kind
            total += 100 if not numpy.can_cast(given.name, kind.name) else 1 if same else 10
    return total


def _converted(kind, value):
    if kind.ndim is not None:
        return value
    return _numpy_type(kind.name)(value)


@functools.lru_cache(maxsize=None)
def _numpy_type(name):
    import numpy

    return numpy.dtype(name).type


# --- Arrays of NumPy as arguments --------------------------------------------------------------------------

class Moves:
    """The arrays of NumPy among the arguments of one launch: copied to the device before it, and back behind it.

    Each argument has a copy of its own, also where two are one array, and what was written is copied back in the order
    of the arguments. On a device that works in the host's memory, arrays that lie apart are used as they are: nobody
    can tell the difference."""

    def __init__(self, queue):
        self.queue, self.back = queue, []
        self._shares = queue.device.backend.name == "host"

    def all(self, args):
        """The arguments with arrays of the device for those of NumPy. Tuples may have them, too."""
        import numpy

        self._all = [one for one in _flat(args) if isinstance(one, numpy.ndarray)]
        return tuple(self._into(one) for one in args) if self._all else args

    def _into(self, value):
        import numpy

        if isinstance(value, tuple):
            items = [self._into(one) for one in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if not isinstance(value, numpy.ndarray):
            return value
        if hasattr(value, "mask"):
            raise TypeError("a kernel takes no masked arrays: pass x.data and x.mask")
        if value.dtype.name not in _NAMES:
            raise TypeError("a kernel takes arrays of %s, not of %s" % (", ".join(_NAMES), value.dtype))
        from drupe import array

        if self._shares and value.flags.writeable and self._is_apart(value):
            try:
                return array.asarray(value, queue=self.queue, copy=False)
            except ValueError:
                pass
        made = array.asarray(value, queue=self.queue, copy=True)
        self.back.append((made, value))
        return made

    def _is_apart(self, value):
        import numpy

        return sum(numpy.may_share_memory(value, one) for one in self._all) == 1

    def finish(self):
        """Wait, and copy back."""
        self.queue.wait()
        for made, value in self.back:
            if value.flags.writeable:
                value[...] = made.asnumpy()


def launch_moved(kernel, space, args, queue):
    """Launch a kernel that has arrays of NumPy among its arguments, and wait. ValueError: it would write into one that
    is read-only."""
    from drupe import _engine
    from drupe.compiler import launch

    moves = Moves(queue)
    moved = moves.all(args)
    if any(map(_is_frozen, _flat(args))):
        kinds = tuple(launch.type_of(one, "#%d" % at)[0] for at, one in enumerate(moved))
        variant = launch.variant_for(kernel, kinds, space, queue)
        for path, name in variant.written:
            if _is_frozen(functools.reduce(operator.getitem, path, args)):
                raise ValueError("%s() writes into %r, and the array that it was given is read-only" % (
                    kernel.__name__, name))
    _engine._call_kernel_async(kernel, space, [], *moved)
    moves.finish()


def _is_frozen(value):
    return hasattr(value, "flags") and hasattr(type(value), "__array_interface__") and not value.flags.writeable


def _flat(args):
    for one in args:
        if isinstance(one, tuple):
            yield from _flat(one)
        else:
            yield one


def plain(args):
    """The arguments with Drupe's arrays for those of dpctl.tensor."""
    if "drupe.compat.dpctl.tensor._usmarray" not in sys.modules:
        return args
    return tuple(_plain(one) for one in args)


def _plain(one):
    if isinstance(one, tuple):
        items = map(_plain, one)
        return type(one)(*items) if hasattr(one, "_fields") else tuple(items)
    return one._drupe if type(one).__name__ == "usm_ndarray" else one


def has_numpys(args):
    """Whether an argument, or a part of a tuple, is an array of NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and any(isinstance(one, numpy.ndarray) for one in _flat(args))
