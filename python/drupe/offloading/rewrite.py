"""An offload function: its loops are cut out, and what remains is a function of Python over arrays on a device.

    for i in drupe.prange(n):               s = f_line_3(range(n), a, s)
        s += a[i]                    →

A loop that is not parallel is called in the same way where it can be compiled, which is known when it is called:

    while x > eps:                          found = f_line_7(x, eps)
        x = x / 2                    →      if found is None: (the loop as it was)
                                            else: (x,) = found
"""
import ast
import copy
import types

from drupe.compiler.messages import KernelError
from drupe.compiler.source import Source
from drupe.offloading import flow, loops, numpy_names, parallel
from drupe.offloading.outside import Outside, statements

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Break, ast.Continue,
           ast.Pass, ast.Assert)
_NO_NUMBERS = (ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
               ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.MatMult)
_SAID = ("print", "input", "open")


class Unchanged:
    """A function that cannot be rewritten, and is called as it is."""

    def __init__(self, function):
        self.function, self.extra, self.loops, self.kept = function, (), [], []
        self.outside = Outside(function, ast.parse("def f(): pass").body[0])


class Rewritten:
    """`function` is what is called; `node` its def; `loops` what was cut out, in order; `extra` names of arrays outside
    of the function, which it takes as keywords."""

    def __init__(self, function, options):
        self.source = source = Source(function)
        self.options, self.loops, self.kept = options, [], []
        self.outside = Outside(function, source.node)
        if any(isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await)) for one in ast.walk(source.node)):
            raise KernelError("DK002", "An offload function is no generator.", "Return arrays.",
                              place=(source, source.node))
        self._live = flow.Liveness(source.node.body, self.outside.shared)
        self._assigned = flow.Assigned(self.outside.params, source.node.body)
        self.extra = sorted(name for name in self._loaded_outside() if numpy_names.is_array(self.outside.name(name)))
        self.outside.locals.update(self.extra)
        self.node = self._def()
        self.function = self._made(function)

    def _loaded_outside(self):
        return flow.loaded(*self.source.node.body) - self.outside.locals

    def _def(self):
        node = copy.copy(self.source.node)
        node.decorator_list, node.returns = [], None
        node.args = arguments = copy.deepcopy(node.args)
        for one in ast.walk(arguments):
            if isinstance(one, ast.arg):
                one.annotation = None
        arguments.defaults, arguments.kw_defaults = [], [None]*(len(arguments.kwonlyargs) + len(self.extra))
        arguments.kwonlyargs += [ast.copy_location(ast.arg(name), node) for name in self.extra]
        node.body = self._block(node.body)
        return ast.fix_missing_locations(node)

    def _made(self, function):
        given = {name: thing for name in self._loaded_outside()
                 if (thing := self._instead_of(self.outside.name(name))) is not None}
        given.update({loop.name: loop for loop in self.loops}, drupe_range=range, drupe_numpy=numpy_names.module())
        made = self.outside.make(self.node, given, self.source.filename)
        made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return made

    def _instead_of(self, thing):
        """What takes the place of a thing outside: NumPy, and functions of the same module or notebook."""
        own = self.source.function
        if isinstance(thing, types.FunctionType) and thing.__globals__ is own.__globals__ and thing is not own:
            from drupe.offloading.function import Offload

            return Offload.called(thing, self.options)
        return numpy_names.instead_of(thing)

    # --- Statements ---

    def _block(self, body):
        return [one for stmt in body for one in self._statement(stmt)]

    def _statement(self, stmt):
        if isinstance(stmt, (ast.Import, ast.ImportFrom)):
            return self._import(stmt)
        if isinstance(stmt, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            return [stmt]
        if isinstance(stmt, ast.For) and self.options["parallel"] and parallel.is_prange(self.outside, stmt.iter):
            return self._parallel(stmt)
        if isinstance(stmt, (ast.For, ast.While)):
            return self._serial(stmt)
        return [self._inner(stmt)]

    def _inner(self, stmt):
        """A statement that stays, with what becomes of its blocks."""
        done = copy.copy(stmt)
        for part in ("body", "orelse", "finalbody"):
            if getattr(stmt, part, None):
                setattr(done, part, self._block(getattr(stmt, part)))
        for part in ("handlers", "cases"):
            if getattr(stmt, part, None):
                setattr(done, part, [self._inner(one) for one in getattr(stmt, part)])
        return done

    def _import(self, stmt):
        names = [alias for alias in stmt.names
                 if (alias.asname or alias.name) in self.outside.imported
                 and numpy_names.instead_of(self.outside.imported[alias.asname or alias.name]) is not None]
        rest = [alias for alias in stmt.names if alias not in names]
        done = []
        if rest:
            done.append(copy.copy(stmt))
            done[0].names = rest
        for alias in names:
            path = alias.name.split(".")[1:] if isinstance(stmt, ast.Import) else \
                (stmt.module.split(".")[1:] + [alias.name])
            done += statements("%s = %s" % (alias.asname or alias.name, ".".join(["drupe_numpy", *path])), {}, stmt)
        return done

    # --- Loops ---

    def _name(self, stmt):
        return self.outside.fresh("%s_line_%d" % (self.source.name, stmt.lineno) +
                                  "_"*sum(loop.stmt.lineno == stmt.lineno for loop in self.loops))

    def _ranged(self, args, stmt):
        call = ast.Call(ast.Name("drupe_range", ast.Load()), args, [])
        return ast.fix_missing_locations(ast.copy_location(call, stmt))

    def _called(self, loop, ranges, names, results, stmt):
        """name(ranges, names), or results = name(...)."""
        args = ranges + [ast.copy_location(ast.Name(one, ast.Load()), stmt) for one in names]
        call = ast.Call(ast.copy_location(ast.Name(loop.name, ast.Load()), stmt), args, [])
        call = ast.copy_location(call, stmt)
        if not results:
            return ast.copy_location(ast.Expr(call), stmt)
        return ast.copy_location(ast.Assign([results], call), stmt)

    def _parallel(self, stmt):
        found = parallel.analyse(self.source, self.outside, stmt, self._live.after.get(stmt, set()))
        found.inputs = [name for name in found.inputs if name not in self.outside.imported]
        loop = loops.ParallelLoop(self, self._name(stmt), found)
        self.loops.append(loop)
        names = [one.name for one in found.reductions]
        results = names and ast.Tuple([ast.Name(one, ast.Store()) for one in names], ast.Store())
        ranges = [self._ranged(args, stmt) for args in found.ranges]
        call = self._called(loop, ranges, found.inputs + names, results, stmt)
        return [ast.fix_missing_locations(call), *self._block(stmt.orelse)]

    def _serial(self, stmt):
        reason = self._unfit(stmt)
        if reason is None:
            live = self._live.after.get(stmt, set())
            changed = flow.stored(stmt)
            outputs = sorted(changed & live)
            missing = [name for name in outputs if name not in self._assigned.before.get(stmt, ())]
            if missing:
                reason = "%r is read behind it, and has no value before it" % missing[0]
        stays = self._inner(stmt)
        if reason is not None:
            self.kept.append((stmt, reason))
            return [stays]
        inputs = (flow.Liveness([stmt]).before & self.outside.locals) - set(self.outside.imported)
        loop = loops.SerialLoop(self, self._name(stmt), stmt, sorted(inputs | set(outputs)), outputs)
        self.loops.append(loop)
        return self._either(loop, stmt, stays)

    def _either(self, loop, stmt, stays):
        ranges = [self._ranged(stmt.iter.args, stmt)] if loop.counted else []
        found = self.outside.fresh("drupe_found")
        call = self._called(loop, ranges, loop.inputs, ast.Name(found, ast.Store()), stmt)
        text = "if found is None:\n    STAYS"
        if loop.outputs:
            text += "\nelse:\n    (%s,) = found" % ", ".join(loop.outputs)
        return [ast.fix_missing_locations(call), *statements(text, {"found": found, "STAYS": [stays]}, stmt)]

    def _is_apart(self, func):
        """Whether what is called has kernels of its own, or talks to the user."""
        thing = self.outside.thing(func)
        if hasattr(thing, "_whole") or hasattr(thing, "_launcher"):
            return True
        return ast.unparse(func) in _SAID or "prange" in getattr(getattr(thing, "__code__", None), "co_names", ())

    def _unfit(self, stmt):
        """Why a loop stays Python, as far as the text alone says it; None where it may be compiled."""
        if self.options["parallel"] and any(parallel.is_prange(self.outside, one) for one in ast.walk(stmt)):
            return "it has a parallel loop"
        for node in ast.walk(stmt):
            if isinstance(node, ast.stmt) and not isinstance(node, _SIMPLE):
                return "it has `%s`" % ast.unparse(node).split("\n")[0]
            if isinstance(node, ast.For) and not (parallel.is_range(self.outside, node.iter)
                                                  or parallel.is_prange(self.outside, node.iter)):
                return "`%s` is no range()" % ast.unparse(node.iter)
            if isinstance(node, _NO_NUMBERS) or isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
                return "`%s` is no number" % ("@" if isinstance(node, ast.MatMult) else ast.unparse(node))
            if isinstance(node, ast.Slice):
                return "it works on whole slices (line %d)" % node.lineno
            if isinstance(node, ast.Call) and self._is_apart(node.func):
                return "it calls %s()" % ast.unparse(node.func)
        names = flow.stored(stmt) & self.outside.shared
        return "%r is a variable of another function, too" % min(names) if names else None

