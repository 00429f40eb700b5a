"""Tracebacks of errors in kernels: the user's frames, the work-item, and what an index out of bounds was."""
import ast
import itertools
import linecache
import os
import sys
import types

from drupe.kernel_api import older
from drupe.kernel_api.items import Group, Item, NdItem, SubGroup

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _chain(traceback):
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def ours(code):
    """Whether code is of this package."""
    return code.co_filename.startswith(_PACKAGE)


def of_users(traceback):
    """A traceback without the frames of this package; None if no other is left."""
    left = None
    for one in reversed([one for one in _chain(traceback) if not ours(one.tb_frame.f_code)]):
        left = types.TracebackType(left, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return left


def explain(error, run):
    """Say which work-item an error comes from, and where."""
    if run.item is None or type(error).__name__ == "BdbQuit":  # of a debugger that was left
        return
    last = None
    for last in _chain(of_users(error.__traceback__)):
        pass
    if type(error) is IndexError and last is not None:
        message = _index_message(last, str(error))
        if message:
            error.args = (message,)
    try:
        error.add_note("in %s of the kernel %s%s" % (run.who(run.item), run.function.__name__,
                                                     ", line %d" % last.tb_lineno if last is not None else ""))
    except Exception:  # of a class of the user's, whose notes cannot be set
        pass


def where(code, at):
    """File, line and text of the instruction at an offset of code, or of a position in its text."""
    line = ((at if isinstance(at, tuple) else _position(code, at)) or (None,))[0] or code.co_firstlineno
    return code.co_filename, line, linecache.getline(code.co_filename, line).strip()


def place(frame, known):
    """Code, and where in its text a frame stands, as where() takes it. CPython 3.12 and newer may have several
    instructions for one call in the text, one behind each branch before it. `known` keeps what was found of code that
    lives as long."""
    code, at = frame.f_code, frame.f_lasti
    found = known.get((id(code), at))
    if found is None:
        found = _position(code, at)
        known[id(code), at] = found = code, at if found is None or None in found else found
    return found  # by the instruction where there are no columns (-X no_debug_ranges)


def _position(code, at):
    return next(itertools.islice(code.co_positions(), at // 2, None), None) if at >= 0 else None


# --- Debuggers ---------------------------------------------------------------------------------------------

def no_lines():
    """The calling function, which calls kernels, is not for those who step through these: a debugger that is started in
    a kernel would trace it, too."""
    sys._getframe(1).f_trace_lines = False


def debugger_of(trace):
    """The debugger of the standard library's kind behind a trace function, or None."""
    bdb = sys.modules.get("bdb")
    owner = getattr(trace, "__self__", None)
    return owner if bdb is not None and isinstance(owner, bdb.Bdb) else None


def skip_ours(debugger):
    """Stepping stops in no function of ours; from one work-item's end it goes on to where the next one begins."""
    debugger.skip = {*(debugger.skip or ()), "drupe.*"}


def behind(trace):
    """A kernel has returned, and a trace function was set, which the caller has taken away for this call: a debugger
    that was just told to step would stop here."""
    debugger = debugger_of(trace)
    if debugger is not None:
        skip_ours(debugger)
    sys.settrace(trace)


def trace_again(trace, frame):
    """Have a debugger see the frames of a work-item that goes on: they were there before it was started."""
    behind(trace)  # which sets it: CPython 3.11 keeps in each greenlet whether it is traced
    if debugger_of(trace) is None:
        return  # others trace all frames from the first
    while frame is not None:
        if frame.f_trace is None and not ours(frame.f_code):
            frame.f_trace = trace
        frame = frame.f_back


# --- Indices -----------------------------------------------------------------------------------------------

_BINARY = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
           ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b}


def _index_message(last, message):
    """What was indexed with what, for an error at the last entry of a traceback: from the text of that instruction and
    the values of its names. None where that is not known."""
    try:
        node = _subscript(last)
        if node is None:
            return None
        name, asked = ast.unparse(node.value), ast.unparse(node)
        shape = _value(node.value, last.tb_frame).shape
        try:
            return outside(name, shape, _value(node.slice, last.tb_frame), asked)
        except Exception:
            return "%s: %s; %s has the shape %s" % (asked, message, name, tuple(shape))
    except Exception:  # whatever the text and the values are, the error is shown
        return None


def outside(name, shape, index, asked=None):
    """The message for an index that is out of bounds, or None if it is not. asked: the text of the expression."""
    places = index if isinstance(index, tuple) else (index,)
    element = "%s[%s]" % (name, ", ".join(map(str, places)))
    asked = element if asked in (None, element) else "%s is %s, which" % (asked, element)
    if len(places) > len(shape):
        return "%s has %d indices: %s has the shape %s" % (asked, len(places), name, shape)
    for axis, (place, n) in enumerate(zip(places, shape)):
        if hasattr(place, "__index__") and not -n <= place < n:
            return "%s is out of bounds: %s has the shape %s%s" % (
                asked, name, tuple(shape), "" if len(shape) == 1 else ", and axis %d ends at %d" % (axis, n - 1))
    return None


def _subscript(last):
    """The a[i] at which a frame stands, of the syntax tree of its line."""
    positions = next(itertools.islice(last.tb_frame.f_code.co_positions(), last.tb_lasti // 2, None))
    line, end, column, end_column = positions
    if column is None or end is None:
        return None
    lines = [linecache.getline(last.tb_frame.f_code.co_filename, number).encode() for number in range(line, end + 1)]
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    tree = ast.parse("(%s)" % b"".join(lines).decode(), mode="eval").body
    return tree if isinstance(tree, ast.Subscript) else None


def _value(node, frame):
    """The value of an expression of names, numbers and plain arithmetic, which computes nothing of the user's."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals):
            if node.id in names:
                return names[node.id]
    if isinstance(node, ast.Tuple):
        return tuple(_value(one, frame) for one in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, frame)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_value(node.left, frame), _value(node.right, frame))
    if isinstance(node, ast.Call) and not node.keywords:
        function = _function(node.func, frame)
        return function(*(_value(one, frame) for one in node.args))
    if isinstance(node, ast.Subscript):
        found = _value(node.value, frame)
        return getattr(found, "_data", found)[_value(node.slice, frame)]
    raise LookupError("not known without running it")


def _function(node, frame):
    """A function that only tells where a work-item is: item.get_id, or get_global_id in the older spelling."""
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        if isinstance(owner, (Item, NdItem, Group, SubGroup)):
            return getattr(owner, node.attr)
    found = _value(node, frame)
    if getattr(found, "__module__", None) == older.__name__ and found.__name__.startswith("get_"):
        return found
    raise LookupError("not known without running it")
