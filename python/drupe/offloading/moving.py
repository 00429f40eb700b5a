"""Arrays of NumPy in an offload function: they become arrays of its device, and what was written comes back in place.

Where the device reaches the host's memory nothing is copied: the array of the device is the same elements. Elsewhere an
array is copied in, and back if the function may have written into it.
"""
import ast

from drupe import _engine
from drupe.compiler.messages import KernelError
from drupe.offloading import flow

# Functions and methods that write into what they are given first.
_WRITING = frozenset("""at copyto fill fill_diagonal itemset partition place put put_along_axis putmask resize setfield
    setflags shuffle sort __setitem__""".split())
_PURE = frozenset("""abs bool complex enumerate float id int isinstance len max min prange range repr reversed round
    sorted str sum tuple type zip""".split())
_FRESH = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Constant, ast.JoinedStr)


class Writes:
    """Into which of its arguments a function may write, or certainly does."""

    def __init__(self, outside):
        arguments = outside.node.args
        self._names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        self._rest, self._more = (one and one.arg for one in (arguments.vararg, arguments.kwarg))
        self._params = set(outside.params)
        self._maybe, self._certain = _written(outside)

    def of(self, which):
        """(name, may be written, is written) of the argument at a place or with a name."""
        if isinstance(which, int):
            which = self._names[which] if which < len(self._names) else self._rest
        elif which not in self._params and self._more is not None:
            which = self._more
        return which or "argument", which in self._maybe, which in self._certain


def _written(outside):
    """The names whose elements the function may write, and those of which it does for certain."""
    found, certain, alias = set(), set(), {}
    for node in ast.walk(outside.node):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.withitem)):
            _note_alias(node, alias)
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found |= _roots(node.value)
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                certain.add(node.value.id)
        if isinstance(node, ast.AugAssign):
            found |= _roots(node.target)
        if isinstance(node, ast.Call):
            found |= _passed(outside, node)
    todo = list(found)
    while todo:
        for name in alias.get(todo.pop(), ()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found, certain - flow.stored(*outside.node.body)


def _note_alias(node, alias):
    value = getattr(node, {ast.For: "iter", ast.withitem: "context_expr"}.get(type(node), "value"))
    targets = node.targets if isinstance(node, ast.Assign) else [
        node.optional_vars if isinstance(node, ast.withitem) else node.target]
    for target in targets:
        for name in _roots(target) if target is not None and value is not None else ():
            alias.setdefault(name, set()).update(_roots(value))


def _roots(node):
    """The names whose elements an expression may be a view of."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, _FRESH):
        return set()
    if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        return _roots(node.value)
    return set().union(*(_roots(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)))


def _passed(outside, call):
    """What a call may write into."""
    thing = outside.thing(call.func)
    named = {one.arg: one.value for one in call.keywords}
    found = _roots(named["out"]) if "out" in named else set()
    name = getattr(thing, "__name__", None)
    if isinstance(call.func, ast.Attribute) and thing is None:  # a method
        return found | _roots(call.func.value) if call.func.attr in _WRITING else found
    module = (getattr(thing, "__module__", None) or "").split(".")[0]
    if name in _PURE or module in ("math", "cmath") or (module in ("numpy", "drupe") and name not in _WRITING) or (
            type(thing).__name__ == "ufunc"):
        return found
    return found.union(*(_roots(one) for one in (*call.args, *named.values())))


class Moves:
    """The arrays of one call. `queue`: where they go."""

    def __init__(self, queue):
        self.queue, self.moved, self.back = queue, {}, []
        self.shares = queue.device.backend.name == "host" or queue.device.has_aspect_usm_system_allocations

    def into(self, value, name, writes=False, certain=False):
        """An argument as the function gets it. `writes`: the function may write into it; `certain`: it does."""
        if isinstance(value, _numpy().ndarray):
            known = self.moved.get(id(value))
            if known is None:
                self.moved[id(value)] = known = [*self._array(value, name), value]
            array, shared, _value = known
            if writes and not shared:
                self._note_back(known, name, certain)
            return array
        if isinstance(value, tuple):
            items = [self.into(one, name, writes) for one in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value

    def _array(self, value, name):
        """(array, whether it is the same memory)."""
        from drupe import array

        if hasattr(value, "mask"):
            raise KernelError("DK007", "The argument %r is a masked array, and arrays on devices have no masks." % name,
                              "Pass x.filled(value), and the mask as an array of its own.")
        if self.shares and value.flags.writeable:
            try:
                return array.asarray(value, queue=self.queue, copy=False), True
            except ValueError:
                pass
        try:
            return array.asarray(value, queue=self.queue, copy=True), False
        except TypeError as error:
            raise KernelError("DK007", "The argument %r cannot go to a device: %s." % (name, str(error).rstrip("."))) \
                from None

    def _note_back(self, known, name, certain):
        value = known[2]
        if not value.flags.writeable:
            if certain:
                raise KernelError("DK021", "The argument %r is read-only, and the function writes into it." % name)
            return
        if all(one is not known for one in self.back):
            self.back.append(known)

    def check_apart(self):
        """Arrays that overlap lie apart where they are copied: what is written to one is not seen in the other."""
        for _array, _shared, one in self.back:
            for _a, _s, other in self.moved.values():
                if other is not one and _numpy().may_share_memory(one, other):
                    raise KernelError("DK007", "Two array arguments are views of the same elements, and the function "
                                      "writes into one of them, but %s would get a copy of each." %
                                      self.queue.device.name,
                                      "Pass the whole array, and take the views in the function.")

    def out(self, value):
        """A result as the caller gets it."""
        if isinstance(value, _engine.Array):
            for array, _shared, given in self.moved.values():
                if array is value:
                    return given
            found = value.asnumpy()  # asked for: nothing is copied implicitly
            return found[()] if not found.ndim else found
        if isinstance(value, (tuple, list)):
            items = [self.out(one) for one in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {key: self.out(one) for key, one in value.items()}
        return value

    def finish(self):
        """Wait for the work on what is shared, and copy back what may have been written."""
        for array, _shared, given in self.back:
            given[...] = array.asnumpy()
        self.queue.wait()


def _numpy():
    import numpy

    return numpy
