"""Names: which are variables of the function, and what the others are; and what a kernel may be written with at all.

A name that the function does not assign is looked up as Python would, in its closure, its globals, the builtins. The
object counts as a constant. `watched` tells which globals were read, so that a launch notices when one became
another object.
"""
import ast
import builtins
import types as pytypes

from drupe.compiler.messages import KernelError

STEADY = ("math", "cmath", "numpy", "scipy", "drupe")  # modules whose names nobody assigns to
_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Return, ast.Expr, ast.Break,
               ast.Continue, ast.Pass, ast.Assert)
_EXPRESSIONS = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.IfExp,
                ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Starred, ast.JoinedStr,
                ast.FormattedValue)
_OTHER = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.keyword, ast.arguments, ast.arg)

# What people write and kernels do not have: the cause, and what to write instead.
_REFUSED = {
    ast.Try: ("try", "A kernel cannot catch exceptions. Test the condition with if."),
    ast.Raise: ("raise", "A kernel cannot raise. `assert condition, \"text\"` ends the work-item and is reported."),
    ast.With: ("with", "Enter it outside of the kernel."),
    ast.FunctionDef: ("a def within a kernel", "Define it outside, under @drupe.device_func."),
    ast.ClassDef: ("a class within a kernel", "Define it outside; named tuples can be passed."),
    ast.Lambda: ("lambda", "Define a function outside, under @drupe.device_func."),
    ast.Import: ("import", "Import it outside of the kernel."),
    ast.ImportFrom: ("import", "Import it outside of the kernel."),
    ast.Global: ("global", "Write results into an array."),
    ast.Nonlocal: ("nonlocal", "Write results into an array."),
    ast.Delete: ("del", "Leave it out: variables end with the kernel."),
    ast.Yield: ("yield", "Write results into an array."),
    ast.YieldFrom: ("yield", "Write results into an array."),
    ast.Await: ("await", "Order work with events, outside of the kernel."),
    ast.ListComp: ("a list", "Device memory does not grow: use PrivateArray(shape, dtype), and a loop."),
    ast.SetComp: ("a set", "Use PrivateArray(shape, dtype), and a loop."),
    ast.DictComp: ("a dict", "Use PrivateArray(shape, dtype), and a loop."),
    ast.GeneratorExp: ("a generator", "Write a loop."),
    ast.Dict: ("a dict", "Use arrays, or a named tuple that is passed to the kernel."),
    ast.Set: ("a set", "Use PrivateArray(shape, dtype)."),
    ast.NamedExpr: (":=", "Assign on a line of its own."),
}


def _is_counted(iterated):
    """Whether a loop is over range(...): over a tuple, enumerate() and zip(), it is not."""
    return isinstance(iterated, ast.Call) and getattr(iterated.func, "id", "") not in ("enumerate", "zip")


def held(owner, name):
    """What a dict of globals, or a closure's cell, holds now; NotImplemented, which no kernel can use, for nothing."""
    if isinstance(owner, dict):
        return owner.get(name, NotImplemented)
    try:
        return owner.cell_contents
    except ValueError:
        return NotImplemented


def looked_up(function, name):
    """(owner, value) of a name that a function reads from outside. The owner is a dict of globals or a closure's cell,
    or None for a builtin. AttributeError where it has no value."""
    if name in function.__code__.co_freevars:
        owner = function.__closure__[function.__code__.co_freevars.index(name)]
    elif name in function.__globals__:
        owner = function.__globals__
    else:
        return None, getattr(builtins, name)
    value = held(owner, name)
    if value is NotImplemented:
        raise AttributeError(name)
    return owner, value


def watched(function, name, owner, value):
    """(globals or cell, name, object), by which a launch notices another one. A builtin may be hidden by a global."""
    return (function.__globals__, name, NotImplemented) if owner is None else (owner, name, value)


def may_change(thing):
    """Whether it is a module whose names somebody may assign to."""
    return isinstance(thing, pytypes.ModuleType) and thing.__name__.partition(".")[0] not in STEADY


class Names:
    """`params` in order, `assigned` variables (parameters among them), `constants`: name → object, `watched`: a list
    of (globals, name, object) of globals that were read, `counts`: how many places assign to a variable."""

    def __init__(self, source):
        self.source = source
        arguments = source.node.args
        self._only_positional(arguments)
        self.params = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        self.assigned, self.constants, self.watched = set(self.params), {}, []
        self.counts = dict.fromkeys(self.params, 1)
        self._checked(source.node.body)
        self._look_up()

    def _only_positional(self, arguments):
        odd = arguments.vararg or arguments.kwarg or (arguments.kwonlyargs or [None])[0]
        if odd:
            raise KernelError("DK003", "The parameter %r is not an ordinary one." % odd.arg,
                              "A kernel's parameters are named one by one, without * and without keywords.",
                              place=(self.source, odd))

    def _checked(self, body):
        for stmt in body:
            for node in ast.walk(stmt):
                self._check(node)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self._count(node.id)
                elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                    self._count(node.target.id)

                elif isinstance(node, ast.For) and not _is_counted(node.iter):
                    self._perhaps(node.body)

    def _perhaps(self, body):
        """In a loop over a tuple, whose rounds are lowered one by one: what a branch assigns in one round may be
        what is read behind another."""
        for inner in (node for stmt in body for node in ast.walk(stmt)):
            if isinstance(inner, (ast.If, ast.While)) or isinstance(inner, ast.For) and _is_counted(inner.iter):
                for node in (node for part in (*inner.body, *inner.orelse) for node in ast.walk(part)):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        self._count(node.id)

    def _count(self, name):
        self.assigned.add(name)
        self.counts[name] = self.counts.get(name, 0) + 1

    def _check(self, node):
        if isinstance(node, (*_STATEMENTS, *_EXPRESSIONS, *_OTHER)):
            return
        what, remedy = _REFUSED.get(type(node), (type(node).__name__, ""))
        statement = isinstance(node, ast.stmt)
        raise KernelError("DK002" if statement else "DK003", "A kernel cannot have %s." % what, remedy,
                          place=(self.source, node))

    def _look_up(self):
        function = self.source.function
        for stmt in self.source.node.body:
            for node in ast.walk(stmt):
                if isinstance(node, ast.Name) and node.id not in self.assigned and node.id not in self.constants:
                    self.constants[node.id] = self._object(node, function)

    def _object(self, node, function):
        try:
            owner, value = looked_up(function, node.id)
        except AttributeError:
            raise KernelError("DK004", "The name %r is not defined." % node.id,
                              "Assign it before the kernel is called, or pass it as an argument.",
                              place=(self.source, node)) from None
        self.watched.append(watched(function, node.id, owner, value))
        return value
