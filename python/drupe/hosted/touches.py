"""Whether a cell can touch a device, told from its text and the variables it names. In doubt it can: a cell that waits
for a device without need is a smaller harm than one that fails in its middle."""
import ast
import builtins
import numbers
import sys
import types

_OPEN = frozenset(("eval", "exec", "compile", "__import__", "open_code", "globals", "locals", "vars", "input",
                   "get_ipython", "display", "getattr", "breakpoint"))  # may run or show anything
_HOST = frozenset(("matplotlib", "numpy", "pandas", "scipy"))  # compute on the host what is there
_DEPTH = 3  # of containers in containers
_ITEMS = 1000
_LEAD_ON = frozenset(("builtins", "code", "gc", "importlib", "pdb", "runpy"))  # to whatever there is


def may_use_devices(code, names):
    """`names`: the variables that the cell sees."""
    if not code.strip():
        return False
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return True  # magics, or a mistake
    own = _defined(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or "."]
            if any(not _harmless_module(name) for name in found):
                return True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if not _harmless_name(node.id, own, names):
                return True
    return False


def _defined(tree):
    """The names that the code itself binds."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def _harmless_name(name, own, names):
    if name in names:
        return _harmless(names[name], _DEPTH)
    return name in own or (hasattr(builtins, name) and name not in _OPEN)


def _harmless_module(name):
    top = name.partition(".")[0]
    return top in _HOST or (top in sys.stdlib_module_names and top not in _LEAD_ON)


def _harmless(value, depth):
    if isinstance(value, types.ModuleType):
        return _harmless_module(value.__name__)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        return _harmless_module(value.__module__ or ".")
    if value is None or type(value) in (str, bytes, bool, int, float, complex):
        return True
    if isinstance(value, numbers.Number):
        return type(value).__module__ in ("fractions", "decimal", "numpy")
    if type(value) in (list, tuple, set, frozenset, dict) and depth and len(value) <= _ITEMS:
        items = list(value) + list(value.values()) if type(value) is dict else value
        return all(_harmless(one, depth - 1) for one in items)
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ == "ndarray" and not value.dtype.hasobject
