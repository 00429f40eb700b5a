"""What stands behind a dot: attributes of arrays, tuples, numbers, modules."""
from drupe.compiler import operators, places, tree, types
from drupe.compiler.items import METHODS
from drupe.compiler.messages import KernelError
from drupe.compiler.names import may_change
from drupe.compiler.types import Scalar
from drupe.compiler.values import Elements, Items, Known, Method, Number, Place, Reference, constant

_ABSENT = object()
_SPACES = {tree.PRIVATE: 0, tree.GLOBAL: 1, tree.LOCAL: 3}  # as kernel_api.AddressSpace numbers them


def attribute(low, owner, name):
    """owner.name"""
    if name in METHODS and isinstance(owner, (Elements, Number, Items)):
        raise KernelError("DK008", "The kernel asks %s() of %s, which is no item: it was given one argument too many."
                          % (name, owner.type), "The first parameter is the item, which a launch gives by itself.")
    for kind, function in _BY_KIND:
        if isinstance(owner, kind):
            return function(low, owner, name)
    raise KernelError("DK011", "%s has no attribute %r." % (owner.type, name))


def _of_array(low, array, name):
    if name == "shape":
        return Items(list(array.shape))
    if name == "ndim":
        return constant(len(array.shape))
    if name == "size":
        return places.size(low, array)
    if name == "dtype":
        import numpy

        return Known(numpy.dtype(array.dtype))
    if name in ("itemsize", "nbytes"):
        width = constant(types.SIZES[array.dtype])
        return width if name == "itemsize" else operators.binary(low, "*", places.size(low, array), width)
    if name == "T":
        packed = array.packed and len(array.shape) < 2
        return Elements(array.dtype, array.buffer, array.shape[::-1], array.strides[::-1], array.offset, packed,
                        array.name)
    remedy = "Device memory does not grow: write into `out[i]`." if name in ("append", "resize", "extend") else \
        "A kernel works on elements: write a loop, or do this outside of the kernel with drupe.array."
    raise KernelError("DK011", "%r is not among what an array has in a kernel (shape, size, ndim, dtype, T)." % name,
                      remedy)


def _of_tuple(low, owner, name):
    fields = getattr(owner.cls, "_fields", ())
    if name in fields:
        return owner.items[fields.index(name)]
    if name in ("append", "extend"):
        raise KernelError("DK011", "A tuple has no %s(): device memory does not grow." % name, "Write into `out[i]`.")
    raise KernelError("DK011", "A tuple has no attribute %r%s." % (
        name, "; its fields are " + ", ".join(fields) if fields else ""))


def _of_number(low, number, name):
    if name in ("real", "imag"):
        if number.scalar.kind < 3:
            number = operators.cast(low, number, types.INT) if number.scalar == types.BOOL else number
            return number if name == "real" else operators.cast(low, constant(0), number.scalar)
        part = types.real_of(number.expr.type)
        scalar = Scalar(types.real_of(number.scalar.name), number.scalar.weak)
        return Number(scalar, tree.Call(part, name, [number.expr]))
    if name == "dtype":
        import numpy

        return Known(numpy.dtype(number.scalar.name))
    if name in ("conjugate", "conj", "item", "astype", "is_integer"):
        return Method(number, name)
    raise KernelError("DK011", "A number (%s) has no attribute %r in a kernel." % (number.type, name))


def _of_known(low, owner, name):
    thing = owner.value
    asked = getattr(thing, "_lowered_attribute", None)  # of an object of drupe.compat
    if asked is not None:
        return asked(low, name)
    if name == "fp64" and getattr(thing, "__name__", "") == "drupe":
        return constant(low.fp64)
    found = getattr(thing, name, _ABSENT)
    if found is _ABSENT:
        raise KernelError("DK011", "%s has no attribute %r." % (owner, name), _instead(thing, name))
    low.unit.read.append((thing, name, found))
    if may_change(thing):
        low.unit.watched.append((vars(thing), name, found))
    return low.known_value(found)


def _instead(module, name):
    """What a module of another system says to write instead of a name that it has not; "" of any other."""
    try:
        getattr(module, name)
    except AttributeError as error:
        if isinstance(error, NotImplementedError):
            return str(error).partition(". ")[2]
    return ""


def _of_place(low, owner, name):
    if name == "dimensions":
        return constant(owner.dims)
    if name == "leader":
        query = tree.Query("int64", "sub_group_local_id") if owner.kind == "SubGroup" else low.linear("local")
        return Number(types.BOOL, tree.Binary("bool", "==", query, tree.Const("int64", 0)))
    return Method(owner, name)


def _of_reference(low, owner, name):
    if name in ("memory_order", "memory_scope"):
        return constant(owner.order if name == "memory_order" else owner.scope)
    if name == "address_space":
        return constant(_SPACES[owner.buffer.space])
    return Method(owner, name)


_BY_KIND = ((Elements, _of_array), (Items, _of_tuple), (Number, _of_number), (Known, _of_known), (Place, _of_place),
            (Reference, _of_reference))
