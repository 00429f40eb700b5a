"""Elements of arrays: indices, row slices, shapes; memory that a kernel makes for itself."""
import ast

from drupe.compiler import operators, tree, types
from drupe.compiler.messages import KernelError
from drupe.compiler.types import INT, Scalar
from drupe.compiler.values import Elements, Items, Known, Number, constant, integer, is_simple


def add(low, a, b):
    return operators.binary(low, "+", a, b)


def times(low, a, b):
    return operators.binary(low, "*", a, b)


def size(low, array):
    """The number of elements."""
    total = constant(1)
    for one in array.shape:
        total = times(low, total, one)
    return total


def packed_strides(low, shape):
    """Of elements that lie side by side in C order."""
    strides = [constant(1)]
    for one in reversed(shape[1:]):
        strides.insert(0, times(low, strides[0], one))
    return strides[:len(shape)]


# --- Indices -----------------------------------------------------------------------------------------------

def _is_index(value):
    return isinstance(value, Number) and value.scalar.kind <= 1


def _plain(low, array, dim, index):
    """An index of one dimension, not negative, as an int."""
    extent = array.shape[dim]
    index = operators.cast(low, index, INT)
    if index.const is not None and extent.const is not None and not -extent.const <= index.const < extent.const:
        raise KernelError("DK013", "The index %d is outside of dimension %d of %s, which has %d elements." % (
            index.const, dim, array.name, extent.const))
    if low.checked:
        low.check_index(array, dim, index)
    if index.natural:
        return index
    if index.const is not None:
        return add(low, extent, index)
    return integer(tree.Call("int64", "wrap_index", [index.expr, extent.expr]), 0)


def _keys(low, array, key):
    """An index as a list with an entry for each dimension: a Number, or a slice."""
    keys = list(key.items) if isinstance(key, Items) else [key]
    dots = [i for i, one in enumerate(keys) if isinstance(one, Known) and one.value is Ellipsis]
    if len(dots) > 1:
        raise KernelError("DK013", "An index can have one `...`.")
    missing = len(array.shape) - (len(keys) - len(dots))
    if missing < 0:
        raise KernelError("DK013", "%s has %d dimension%s, and %d indices were given." % (
            array.name, len(array.shape), "" if len(array.shape) == 1 else "s", len(keys) - len(dots)))
    at = dots[0] if dots else len(keys)
    keys[at:at + len(dots)] = [slice(None)] * missing
    for one in keys:
        if not (_is_index(one) or isinstance(one, slice)):
            raise KernelError("DK013", "%s cannot be indexed by %s." % (array.name, getattr(one, "type", one)),
                              "Use ints, and slices with ints.")
    return keys


def locate(low, array, key):
    """(offset, view): where an index leads. `view` is None for an element, and otherwise an Elements."""
    keys = _keys(low, array, key)
    offset, shape, strides = array.offset, [], []
    packed, inner = array.packed, False
    for dim, one in enumerate(keys):
        stride = array.strides[dim]
        if isinstance(one, slice):
            start, extent, step = _slice(low, array, dim, one)
            part = start and times(low, start, stride)
            whole = one == slice(None)
            packed = packed and (whole or (not shape and step.const == 1))
            shape.append(extent)
            strides.append(times(low, stride, step))
            inner = True
        else:
            packed = packed and not inner
            part = times(low, _plain(low, array, dim, one), stride)
        if part is not None:
            offset = part if offset is None else add(low, offset, part)
    if not shape:
        return offset or constant(0), None
    return offset, Elements(array.dtype, array.buffer, shape, strides, offset, packed, array.name)


def _slice(low, array, dim, key):
    """(start or None for 0, number of elements, step) of a slice, cut to the array as Python does."""
    extent = array.shape[dim]
    if key == slice(None):
        return None, extent, constant(1)
    step = constant(1) if key.step is None else key.step
    if step.const is None or not step.positive:
        raise KernelError("DK013", "The step of a slice is a positive number that is known beforehand.",
                          "Write a loop for other steps.")
    start = None if key.start is None else _bound(low, key.start, extent)
    stop = extent if key.stop is None else _bound(low, key.stop, extent)
    length = stop if start is None else operators.binary(low, "-", stop, start)
    if step.const != 1:
        length = operators.binary(low, "//", add(low, length, constant(step.const - 1)), step)
    if start is not None and not length.natural:
        length = integer(tree.Call("int64", "maximum", [length.expr, tree.Const("int64", 0)]), 0)
    return start, low.once(length), step


def _bound(low, index, extent):
    """An end of a slice between 0 and the extent."""
    if not _is_index(index):
        raise KernelError("DK013", "A slice goes from an int to an int, and %s is given." % index.type)
    index = operators.cast(low, index, INT)
    if index.const == 0:
        return index
    if not index.natural:
        index = integer(tree.Call("int64", "wrap_index", [index.expr, extent.expr]))
        index = integer(tree.Call("int64", "maximum", [index.expr, tree.Const("int64", 0)]), 0)
    return integer(tree.Call("int64", "minimum", [index.expr, extent.expr]), 0)


def key_of(low, node):
    """The index between brackets."""
    if isinstance(node, ast.Slice):
        return slice(*(None if one is None else low.number(one) for one in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.Tuple):
        if not any(isinstance(one, (ast.Slice, ast.Starred)) for one in node.elts):
            return Items(low.values(node.elts))
        return Items([key_of(low, one) for one in node.elts])
    return low.value(node)


# --- Reading and writing -----------------------------------------------------------------------------------

def load(low, array, offset):
    return Number(Scalar(array.dtype), tree.Load(array.dtype, array.buffer, offset.expr))


def get(low, owner, key):
    """owner[key]."""
    if isinstance(owner, Elements):
        offset, view = locate(low, owner, key)
        return view or load(low, owner, offset)
    if isinstance(owner, Items):
        return _item(low, owner, key)
    raise KernelError("DK012", "%s cannot be indexed." % owner.type)


def _item(low, owner, key):
    count = len(owner.items)
    if isinstance(key, slice):
        ends = [one for one in (key.start, key.stop, key.step) if one is not None]
        if not all(isinstance(one.const, int) for one in ends):
            raise KernelError("DK014", "A slice of a tuple goes between ints that are known when the kernel is "
                              "compiled.", "Use numbers, or write a loop.")
        bounds = [None if one is None else one.const for one in (key.start, key.stop, key.step)]
        return Items(owner.items[slice(*bounds)])
    if not _is_index(key):
        raise KernelError("DK013", "A tuple is indexed by an int, not by %s." % key.type)
    if key.const is not None:
        if not -count <= key.const < count:
            raise KernelError("DK013", "The tuple has %d items, and the index is %d." % (count, key.const))
        return owner.items[key.const]
    if not all(isinstance(one, Number) for one in owner.items) or not owner.items:
        raise KernelError("DK014", "The index of this tuple must be known when the kernel is compiled, as its items "
                          "are of different kinds.", "Index it with a number.")
    key = low.once(operators.cast(low, key, INT))
    result = owner.items[-1]
    for place in range(count - 2, -1, -1):
        cond = operators.binary(low, "==", key, constant(place)).expr
        if not key.natural:
            other = operators.binary(low, "==", key, constant(place - count)).expr
            cond = tree.Binary("bool", "||", cond, other)
        result = operators.select(low, cond, owner.items[place], result)
    return result


def put(low, array, key, value):
    """array[key] = value."""
    if not isinstance(array, Elements):
        raise KernelError("DK021", "%s cannot be written to." % array.type, "Write into an array.")
    offset, view = locate(low, array, key)
    low.written(array.buffer)
    if view is None:
        if not isinstance(value, Number):
            raise KernelError("DK012", "An element of %s cannot be %s." % (array.name, value.type))
        low.emit(tree.Store(low.line, array.buffer, offset.expr, element(low, array, value)))
    else:
        fill(low, view, value)


def element(low, array, value):
    """A number as it is stored in the array; a complex number has no place in a real array."""
    if value.scalar.kind == 3 and array.dtype not in types.COMPLEX:
        raise KernelError("DK012", "A complex number does not fit %s, which is %s." % (array.name, array.dtype),
                          "Take its .real.")
    if value.const is not None and value.scalar.weak:
        kind = Scalar(array.dtype).kind
        if kind >= value.scalar.kind:
            return operators.cast(low, value, Scalar(array.dtype)).expr
        value = Number(Scalar(value.expr.type), value.expr)
    return operators.convert(value.expr, array.dtype)


def fill(low, view, value):
    """view[...] = a number, or an array of the same shape, element by element."""
    if not isinstance(value, (Number, Elements)):
        raise KernelError("DK012", "Elements of %s cannot be %s." % (view.name, value.type))
    if isinstance(value, Number):
        value = low.once(value)
    else:
        value = _broadcast(view, value)
    places, outer = [], low.block
    back = _is_behind(low, view, value)
    for extent in view.shape:
        name = low.counter()
        place = integer(tree.Var("int64", name), 0)
        loop = tree.For(low.line, name, tree.Const("int64", 0), extent.expr, tree.Const("int64", 1), [])
        low.emit(loop)
        low.block = loop.body
        if back is not None:  # from the end, as memmove() does it
            other = operators.binary(low, "-", operators.binary(low, "-", extent, constant(1)), place)
            other.low = 0
            place = low.once(operators.select(low, back, other, place))
        places.append(place)
    at = _offset(low, view, places)
    one = value if isinstance(value, Number) else load(low, value, _offset(low, value, places))
    low.emit(tree.Store(low.line, view.buffer, at.expr, element(low, view, one)))
    low.block = outer


def _broadcast(view, value):
    """The value with the shape of a view; dimensions of one element are repeated."""
    if len(value.shape) > len(view.shape):
        raise KernelError("DK013", "%s of %d dimensions is assigned to %d." % (value.name, len(value.shape),
                                                                              len(view.shape)))
    missing = len(view.shape) - len(value.shape)
    shape, strides = [constant(1)] * missing + value.shape, [constant(0)] * missing + value.strides
    for dim, (want, have) in enumerate(zip(view.shape, shape)):
        if have.const == 1 and want.const != 1:
            strides[dim] = constant(0)
        elif None not in (want.const, have.const) and want.const != have.const:
            raise KernelError("DK013", "%d elements are assigned to %d." % (have.const, want.const))
    return Elements(value.dtype, value.buffer, shape, strides, value.offset, False, value.name)


def _is_behind(low, view, value):
    """A bool of the tree: whether a view lies behind the value that it gets, in the same memory, so that elements would
    be written before they are read. None where that cannot be, and for views not known to be of one array."""
    if not isinstance(value, Elements) or value.buffer.name != view.buffer.name:
        return None
    if value.strides != view.strides:
        raise KernelError("DK012", "This reads and writes one array, %s, in different orders." % view.name,
                          "Write a loop, or use an array between.")
    behind = operators.binary(low, ">", view.offset or constant(0), value.offset or constant(0)).expr
    if isinstance(behind, tree.Const):
        return behind if behind.value else None
    return low.once(Number(types.BOOL, behind)).expr


def _offset(low, array, places):
    total = array.offset or constant(0)
    for place, stride in zip(places, array.strides):
        total = add(low, total, times(low, place, stride))
    return total


# --- Memory of the kernel's own ----------------------------------------------------------------------------

def shape_of(value, what):
    """A shape that is known now: a tuple of ints."""
    items = value.items if isinstance(value, Items) else [value]
    sizes = tuple(one.const if isinstance(one, Number) else None for one in items)
    if not sizes or not all(isinstance(one, int) and one > 0 for one in sizes):
        raise KernelError("DK014", "The shape of a %s is made of positive ints that are known when the kernel is "
                          "compiled." % what, "Use numbers, or global variables that hold them.")
    return sizes


def make(low, shape, dtype, space, zeroed=False, name=None):
    """A private array, or local memory of a fixed size."""
    total = 1
    for one in shape:
        total *= one
    buffer = tree.Buffer(low.fresh(name or space), dtype, space, total, zeroed=zeroed)
    low.function.buffers.append(buffer)
    extents = [constant(one) for one in shape]
    return Elements(dtype, buffer, extents, packed_strides(low, extents), name="the %s array" % space)


def view_into(low, name, array):
    """Give a view that is assigned to a variable a pointer and numbers of its own."""
    simple = all(is_simple(one.expr) for one in (*array.shape, *array.strides))
    if array.offset is None and simple and array.buffer.name not in low.roots:  # no view, which may get another place
        return array
    buffer = tree.Buffer(low.slot(name), array.dtype, array.buffer.space)
    low.view_of(buffer, array.buffer)
    offset = array.offset or constant(0)
    low.emit(tree.Point(low.line, buffer, array.buffer, offset.expr))
    shape = [low.keep("%s.shape%d" % (name, i), one) for i, one in enumerate(array.shape)]
    strides = packed_strides(low, shape) if array.packed else \
        [low.keep("%s.stride%d" % (name, i), one) for i, one in enumerate(array.strides)]
    return Elements(array.dtype, buffer, shape, strides, None, array.packed, array.name)
