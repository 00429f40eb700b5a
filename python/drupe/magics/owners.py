"""Who keeps device memory alive: walks through what Python objects refer to."""
import gc
import sys
import time
import types

SECONDS = 0.5  # a walk is given up after so long
OBJECTS = 300000

_ENDS = (types.ModuleType, types.FunctionType, types.CodeType, types.FrameType, type, str, bytes, int, float, complex)


class Owner:
    """What one name keeps alive: {number of an allocation: its bytes}."""

    def __init__(self, name, found, shared=()):
        self.name = name
        self.found = found
        self.shared = sorted(shared)  # other names that keep some of it

    @property
    def nbytes(self):
        return sum(self.found.values())


def _memory_types():
    from drupe import _engine

    return (_engine.Array, _engine.MemoryUSMDevice, _engine.MemoryUSMShared, _engine.MemoryUSMHost)


def allocation(thing):
    """The number and the bytes of the allocation behind an array or a piece of memory."""
    memory = thing if hasattr(thing, "reference_obj") else thing.usm_data
    while memory.reference_obj is not None and hasattr(memory.reference_obj, "reference_obj"):
        memory = memory.reference_obj
    return memory._allocation, memory.nbytes


class Walk:
    """Finds allocations from roots on. An object is looked into once for each root."""

    def __init__(self, hidden=()):
        self._types = _memory_types()
        self._hidden = {id(one) for one in hidden}
        self._end = time.monotonic() + SECONDS
        self.complete = True

    def found(self, root, into_frames=False):
        seen, waiting, result = {id(root)}, [] if id(root) in self._hidden else [root], {}
        while waiting:
            one = waiting.pop()
            if isinstance(one, self._types):
                number, nbytes = allocation(one)
                result[number] = nbytes
                continue
            if isinstance(one, _ENDS) and not (into_frames and isinstance(one, types.FrameType)):
                continue
            if len(seen) > OBJECTS or time.monotonic() > self._end:
                self.complete = False
                break
            for other in gc.get_referents(one):
                if id(other) not in seen and id(other) not in self._hidden:
                    seen.add(id(other))
                    waiting.append(other)
        return result


def _is_hidden(name):
    """Names that IPython keeps, not the user."""
    return name.startswith("_") or name in ("In", "Out", "exit", "quit", "get_ipython", "open")


def by_variable(shell):
    """An Owner for each variable of the user that keeps device memory alive, the biggest first; and whether all was
    looked at."""
    space = shell.user_ns
    walk = Walk(hidden=[space, space.get("Out"), shell, gc.garbage])
    owners = []
    for name, value in list(space.items()):
        if not _is_hidden(name):
            found = walk.found(value)
            if found:
                owners.append(Owner(name, found))
    for one in owners:
        one.shared = sorted(other.name for other in owners
                            if other is not one and other.found.keys() & one.found.keys())
    return sorted(owners, key=lambda one: (-one.nbytes, one.name)), walk.complete


def _error():
    """The last exception that was shown, as the interpreter remembers it."""
    return getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)


def _frames(error):
    """The frames of an exception and of those that led to it."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = error.__traceback__
        while trace is not None:
            yield trace.tb_frame
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def _result_names(space):
    """Names of results that IPython keeps, with one value each."""
    for number, value in list(space.get("Out", {}).items()):
        yield "Out[%s]" % number, value
    for name in ("_", "__", "___"):
        if name in space:
            yield name, space[name]


def leaks(shell):
    """Owners of device memory that no variable of the user keeps: results, the last traceback, other objects; and
    whether all was looked at."""
    variables, complete = by_variable(shell)
    kept = {number for one in variables for number in one.found}
    space, owners = shell.user_ns, {}
    walk = Walk(hidden=[space, space.get("Out"), shell])

    def add(name, found):
        new = {number: nbytes for number, nbytes in found.items() if number not in kept}
        if new:
            owners.setdefault(name, {}).update(new)

    for name, value in _result_names(space):
        add(name, walk.found(value))
    for frame in _frames(_error()):
        if frame.f_locals is not space:
            for name, value in list(frame.f_locals.items()):
                add("traceback: %s in %s()" % (name, frame.f_code.co_name), walk.found(value))
    known = kept.union(*owners.values()) if owners else kept
    for name, found in _others(walk, known):
        add(name, found)
    result = [Owner(name, found) for name, found in owners.items()]
    for one in result:
        one.shared = sorted(other.name for other in result
                            if other is not one and other.found.keys() & one.found.keys())
    return sorted(result, key=lambda one: (-one.nbytes, one.name)), complete and walk.complete


def _others(walk, known):
    """Memory that is alive and reached from none of the names: by the objects that refer to it."""
    kinds = _memory_types()
    for one in gc.get_objects():
        if isinstance(one, kinds):
            number, nbytes = allocation(one)
            if number not in known:
                yield "an object of no name", {number: nbytes}
        elif isinstance(one, (list, dict, tuple, set)) and len(one) < 10000:
            values = one.values() if isinstance(one, dict) else one
            try:
                found = dict(allocation(value) for value in values if isinstance(value, kinds))
            except RuntimeError:  # it changed meanwhile
                continue
            if any(number not in known for number in found):
                yield "a %s of no name" % type(one).__name__, {number: nbytes for number, nbytes in found.items()
                                                              if number not in known}


def free_traceback(shell):
    """Forget the last exception with its frames. Returns what it was, or None."""
    error = _error()
    for frame in _frames(error):
        try:
            frame.clear()
        except RuntimeError:
            continue  # it runs
        frame.f_locals  # up to Python 3.12 a copy of the variables, which is made anew by looking at it
    for name in ("last_exc", "last_value", "last_type", "last_traceback"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    printer = getattr(shell, "InteractiveTB", None)
    if printer is not None:
        printer.tb = None
    gc.collect()
    return None if error is None else type(error).__name__
