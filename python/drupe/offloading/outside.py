"""What the names of a function stand for that are not its own variables, and functions that are made of its parts.

A function that is made here is a real function of Python: it has the globals and the closure of the user's function,
the user's file and lines, and names of ours in cells beside it.
"""
import ast
import builtins
import importlib
import types

from drupe.offloading import flow

_ABSENT = object()
_IMPORTED = ("numpy", "drupe", "math", "cmath", "numba")  # modules that an import within a function may mean


class Outside:
    """`locals`: the function's own variables; `shared`: those that other code may read or write as well."""

    def __init__(self, function, node):
        self.function, self.node = function, node
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        self.shared = flow.shared(node)
        arguments = node.args
        self.params = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
                                           *filter(None, (arguments.vararg, arguments.kwarg)))]
        declared = {name for one in ast.walk(node) if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
        self.locals = (set(self.params) | flow.stored(*node.body)) - declared
        self.imported = {}
        for one in ast.walk(node):
            if isinstance(one, (ast.Import, ast.ImportFrom)):
                self._note_import(one)

    def _note_import(self, stmt):
        for alias in stmt.names:
            module = alias.name if isinstance(stmt, ast.Import) else stmt.module or ""
            if module.split(".")[0] not in _IMPORTED:
                continue
            try:
                thing = importlib.import_module(module)
            except ImportError:
                continue
            if isinstance(stmt, ast.ImportFrom):
                thing = getattr(thing, alias.name, _ABSENT)
            elif not alias.asname:
                thing = importlib.import_module(module.split(".")[0])
            self.imported[(alias.asname or alias.name).split(".")[0]] = thing

    def name(self, name, otherwise=None):
        """The object that a name stands for which is not a variable of the function."""
        if name in self.imported:
            return self.imported[name]
        return otherwise if name in self.locals else self.beyond(name, otherwise)

    def beyond(self, name, otherwise=None):
        """What Python finds behind the function's own variables."""
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:
                return otherwise
        return self.function.__globals__.get(name, getattr(builtins, name, otherwise))

    def thing(self, node):
        """The object that a name or a dotted name stands for; None where that is not known."""
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.thing(node.value)
            return None if owner is None else getattr(owner, node.attr, None)
        return None

    def fresh(self, name):
        """A name that the function does not use."""
        used = {one.id for one in ast.walk(self.node) if isinstance(one, ast.Name)} | set(self.cells)
        while name in used or name in self.locals:
            name += "_"
        return name

    def make(self, node, given, filename):
        """The function of a def, where the names in `given` stand for these objects."""
        cells = {**self.cells, **{name: types.CellType(value) for name, value in given.items()}}
        names = [ast.arg(name) for name in cells]
        outer = ast.FunctionDef("outer", ast.arguments([], names, None, [], [], None, []), [node], [], None)
        outer.type_params = []
        module = ast.Module([ast.fix_missing_locations(ast.copy_location(outer, node))], [])
        code = _code_of(_code_of(compile(module, filename, "exec"), "outer"), node.name)
        if node.name in code.co_freevars and node.name not in cells:  # it calls itself
            cells[node.name] = types.CellType(self.name(node.name))
        made = types.FunctionType(code, self.function.__globals__, node.name, None,
                                  tuple(cells[name] for name in code.co_freevars))
        made.__module__, made.__qualname__ = self.function.__module__, node.name
        return made


def _code_of(code, name):
    return next(one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == name)


# --- Statements from templates -----------------------------------------------------------------------------

class _Fill(ast.NodeTransformer):
    def __init__(self, parts, place):
        self.parts, self.place = parts, place

    def visit(self, node):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and isinstance(
                self.parts.get(node.value.id), list):
            return self.parts[node.value.id]
        if isinstance(node, ast.Name) and node.id in self.parts:
            part = self.parts[node.id]
            if isinstance(part, str):
                return ast.copy_location(ast.Name(part, node.ctx), self.place)
            return part
        if isinstance(node, (ast.arg, ast.FunctionDef)):
            at = "arg" if isinstance(node, ast.arg) else "name"
            setattr(node, at, self.parts.get(getattr(node, at), getattr(node, at)))
        if hasattr(node, "lineno"):
            ast.copy_location(node, self.place)
        return self.generic_visit(node)


def statements(text, parts, place):
    """The statements of a text, at the place of a node. `parts` are put where their names stand: expressions, other
    names, and lists of statements, whose own places they keep."""
    return _Fill(parts, place).visit(ast.parse(text)).body
