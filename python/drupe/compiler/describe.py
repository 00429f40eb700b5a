"""The lowered tree as text, for kernel.inspect(stage="tree") and the golden tests."""
from drupe.compiler import tree


def describe(function):
    """A tree.Function, with its device functions before it."""
    lines = []
    for one in (*function.functions, function):
        _function(one, lines)
    return "\n".join(lines) + "\n"


def _function(function, lines):
    params = ", ".join("%s: %s" % (one.name, _kind(one.type, one.buffer)) for one in function.params)
    result = "" if function.result == "void" else " -> " + function.result
    lines.append("%s(%s)%s" % (function.name, params, result))
    for param in function.params:
        if param.source:
            lines.append("  # %s = %s of argument %s" % (param.name, _source(param.source), _path(param.source[1])))
    for name, kind in sorted(function.locals.items()):
        lines.append("  var %s: %s" % (name, kind))
    for one in function.buffers:
        size = "" if one.size is None else "[%s]" % (one.size if isinstance(one.size, int) else expression(one.size))
        lines.append("  %s %s: %s%s" % ("view" if one.size is None else one.space, one.name, one.type, size))
    _block(function.body, lines, 1)


def _kind(kind, buffer):
    if buffer is None:
        return kind
    return "%s%s %s*" % ("const " if buffer.readonly else "", buffer.space, kind)


def _source(source):
    return source[0] if len(source) < 3 else "%s %s" % (source[0], source[2])


def _path(path):
    return ".".join(map(str, path))


def _block(body, lines, depth):
    for stmt in body:
        _statement(stmt, lines, depth)


def _statement(stmt, lines, depth):
    def put(text):
        lines.append("  " * depth + text)

    heads = {tree.If: lambda s: "if %s" % expression(s.cond), tree.While: lambda s: "while %s" % expression(s.cond),
             tree.For: lambda s: "for %s in %s, %s, %s" % (s.var, *map(expression, (s.start, s.stop, s.step)))}
    if type(stmt) in heads:
        put(heads[type(stmt)](stmt))
        _block(stmt.then if isinstance(stmt, tree.If) else stmt.body, lines, depth + 1)
        if stmt.other:
            put("else")
            _block(stmt.other, lines, depth + 1)
        return
    put(_SIMPLE[type(stmt)](stmt))


_SIMPLE = {
    tree.Assign: lambda s: "%s = %s" % (s.name, expression(s.value)),
    tree.Point: lambda s: "%s = %s + %s" % (s.target.name, s.source.name, expression(s.offset)),
    tree.Store: lambda s: "%s[%s] = %s" % (s.buffer.name, expression(s.index), expression(s.value)),
    tree.Do: lambda s: expression(s.value),
    tree.Break: lambda s: "break",
    tree.Continue: lambda s: "continue",
    tree.Return: lambda s: "return" if s.value is None else "return " + expression(s.value),
    tree.Barrier: lambda s: "barrier %s %d" % (s.group, s.scope),
    tree.Fence: lambda s: "fence %d %d" % (s.order, s.scope),
    tree.Check: lambda s: "check %d: %s" % (s.code, expression(s.cond)),
    tree.Print: lambda s: "print %s" % ", ".join(repr(p) if isinstance(p, str) else expression(p) for p in s.parts),
}


def expression(expr):
    """An expression on one line; operators that wrap are marked with w."""
    return _EXPRESSIONS[type(expr)](expr)


def _args(args):
    return ", ".join(one.name if isinstance(one, tree.Buffer) else expression(one) for one in args)


def _const(expr):
    return repr(expr.value) if expr.type in ("int64", "float64", "bool") else "%s(%r)" % (expr.type, expr.value)


_EXPRESSIONS = {
    tree.Const: _const,
    tree.Var: lambda e: e.name,
    tree.Unary: lambda e: "%s%s" % (e.op, expression(e.a)),
    tree.Binary: lambda e: "(%s %s%s %s)" % (expression(e.a), e.op, "w" if e.wraps else "", expression(e.b)),
    tree.Cast: lambda e: "%s(%s)" % (e.type, expression(e.a)),
    tree.Select: lambda e: "(%s if %s else %s)" % (expression(e.a), expression(e.cond), expression(e.b)),
    tree.Call: lambda e: "%s(%s)" % (e.name, _args(e.args)),
    tree.Load: lambda e: "%s[%s]" % (e.buffer.name, expression(e.index)),
    tree.Query: lambda e: "%s(%d)" % (e.what, e.dim),
    tree.Atomic: lambda e: "atomic_%s(%s[%s]%s)" % (e.op, e.buffer.name, expression(e.index),
                                                    "".join(", " + expression(one) for one in e.args)),
    tree.SubGroup: lambda e: "sub_group_%s(%s)" % (e.op, _args(e.args)),
}
