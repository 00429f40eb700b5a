"""Which variables of a function are read after a place, and which are certain to have a value before it.

Both questions are asked of loops that are cut out of the function: what is read afterwards must come out of the loop,
and what has a value before can go in. Where the answer is not certain it errs to the safe side: read, and no value.
"""
import ast

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp,
           ast.GeneratorExp)


def loaded(*nodes):
    """The names that are read within these nodes; those that are changed by `x += 1` are among them."""
    found = set()
    for top in nodes:
        for node in ast.walk(top) if top is not None else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


def stored(*nodes):
    """The names that are assigned within these nodes."""
    found = set()
    for top in nodes:
        for node in ast.walk(top) if top is not None else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                found.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                found.add(node.name)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                found.add(node.name)
    return found


def shared(function):
    """Names that other code than the function's own statements may read or write: those of functions within it, and
    those that are global or nonlocal."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, _SCOPES) and node is not function:
            found |= loaded(node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
    return found


class Liveness:
    """`after[loop]` is the set of names whose values may be read behind a loop of the function. `always` is read
    wherever the function is left."""

    def __init__(self, body, always=()):
        self.after, self._breaks, self._continues, self._always = {}, [], [], set(always)
        self.before = self.block(body, set(self._always))

    def block(self, body, out):
        """What is read of what was assigned before these statements, where `out` is read behind them."""
        for stmt in reversed(body):
            out = getattr(self, "_" + type(stmt).__name__.lower(), self._plain)(stmt, out)
        return out

    def _plain(self, stmt, out):
        return (out - stored(stmt)) | loaded(stmt) if isinstance(stmt, (ast.Assign, ast.AnnAssign, ast.AugAssign)) \
            else out | loaded(stmt)

    def _if(self, stmt, out):
        return loaded(stmt.test) | self.block(stmt.body, out) | self.block(stmt.orelse, out)

    def _loop(self, stmt, out, asked, targets):
        """A loop, whose head reads `asked` and assigns `targets` in each round."""
        self.after[stmt] = self.after.get(stmt, set()) | out
        last = self.block(stmt.orelse, out)
        self.after[stmt] |= last
        head = asked | last
        self._breaks.append(out)
        while True:
            self._continues.append(head)
            more = head | (self.block(stmt.body, head) - targets)
            self._continues.pop()
            if more == head:
                break
            head = more
        self._breaks.pop()
        return head

    def _while(self, stmt, out):
        return self._loop(stmt, out, loaded(stmt.test), set())

    def _for(self, stmt, out):
        return self._loop(stmt, out, loaded(stmt.target), stored(stmt.target)) | loaded(stmt.iter)

    def _break(self, stmt, out):
        return self._breaks[-1] if self._breaks else set()

    def _continue(self, stmt, out):
        return self._continues[-1] if self._continues else set()

    def _return(self, stmt, out):
        return loaded(stmt.value) | self._always

    def _raise(self, stmt, out):
        return loaded(stmt) | self._always

    def _with(self, stmt, out):
        out = self.block(stmt.body, out)
        for item in stmt.items:
            out = (out - stored(item.optional_vars)) | loaded(item.context_expr, item.optional_vars)
        return out

    def _try(self, stmt, out):
        handlers = [part for handler in stmt.handlers for part in handler.body]
        elsewhere = loaded(*handlers, *(handler.type for handler in stmt.handlers), *stmt.finalbody)
        out = self.block(stmt.finalbody, out)
        outer, self._always = self._always, self._always | elsewhere
        inner = out | elsewhere
        before = self.block(stmt.body, self.block(stmt.orelse, inner))
        self._always = outer
        for handler in stmt.handlers:
            before = before | self.block(handler.body, out)
        return before | inner

    _trystar = _try

    def _match(self, stmt, out):
        before = out | loaded(stmt.subject)
        for case in stmt.cases:
            before |= self.block(case.body, out) | loaded(case.pattern, case.guard)
        return before


def carried(body, targets=()):
    """The names that a round of a loop may read before it has assigned them, those of the loop's own target apart."""
    return Liveness(body).before - set(targets)


class Assigned:
    """`before[loop]` is the set of names that are certain to have a value where the loop begins."""

    def __init__(self, params, body):
        self.before = {}
        self._block(body, frozenset(params))

    def _block(self, body, have):
        """What has a value behind these statements; None where their end is not reached."""
        for stmt in body:
            have = self._statement(stmt, have)
            if have is None:
                return None
        return have

    def _statement(self, stmt, have):
        if isinstance(stmt, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return None
        if isinstance(stmt, ast.If):
            return _meet(self._block(stmt.body, have), self._block(stmt.orelse, have))
        if isinstance(stmt, (ast.For, ast.While)):
            self.before[stmt] = have
            inside = have | stored(stmt.target) if isinstance(stmt, ast.For) else have
            self._block(stmt.body, inside)
            self._block(stmt.orelse, have)
            return have
        if isinstance(stmt, ast.With):
            inside = have | stored(*(item.optional_vars for item in stmt.items))
            return self._block(stmt.body, inside)
        if isinstance(stmt, ast.Try):
            return self._try(stmt, have)
        if isinstance(stmt, ast.Delete):
            return have - stored(stmt)
        if isinstance(stmt, ast.Match):
            for case in stmt.cases:
                self._block(case.body, have)
            return have
        return have | stored(stmt)

    def _try(self, stmt, have):
        inside = self._block(stmt.body, have)
        ends = None if inside is None else self._block(stmt.orelse, inside)
        for handler in stmt.handlers:
            ends = _meet(ends, self._block(handler.body, have))
        last = self._block(stmt.finalbody, have)
        return None if ends is None or last is None else ends | last


def _meet(a, b):
    return b if a is None else a if b is None else a & b
