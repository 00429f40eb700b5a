"""The lowered tree as C text: statements and declarations of both dialects.

render(function, dialect) is the back end's one entry. text_opencl.py and text_c99.py print whole kernels; what is here
prints the functions in them. The text keeps the user's names, and a variable is declared where it is first given a
value, if all that reads it lies behind that.
"""
import contextlib
import re

from drupe.compiler import analysis, library, tree, types
from drupe.compiler.analysis import first, nodes
from drupe.compiler.cnames import Names
from drupe.compiler.expression_text import Expressions
from drupe.compiler.library import C_TYPES
from drupe.compiler.messages import KernelError

_MEMORY = {"bool": "u8", "float16": "u16"}  # C types of elements, where they are not those of variables
_FORMATS = {"int64": "%ld", "uint64": "%lu", "uint32": "%u", "float64": "%.15g", "float32": "%.7g", "float16": "%.7g",
            "bool": "%s"}
_HIDDEN = {"global_id": "drupe_id", "local_id": "drupe_local", "group_id": "drupe_group", "global_size": "drupe_g",
           "local_size": "drupe_l", "group_count": "drupe_groups"}


def render(function, dialect, source_line=None):
    """The Text of a tree.Function in "opencl" (C 1.2 or newer) or "c99" (for the host). source_line(line) gives a line
    of the user's source, as comments; None gives none. Raises KernelError for what the dialect cannot do."""
    if dialect == "opencl":
        from drupe.compiler.text_opencl import Kernel
    elif dialect == "c99":
        from drupe.compiler.text_c99 import Kernel
    else:
        raise ValueError("dialect is \"opencl\" or \"c99\", not %r" % (dialect,))
    return Kernel(function, source_line).text()


def element_type(name):
    return _MEMORY.get(name) or C_TYPES[name]


def hidden_name(query):
    """What a work-item's place is called in the text."""
    name = _HIDDEN.get(query.what)
    return "drupe_" + query.what if name is None else "%s%d" % (name, query.dim)


def head_of(body, typedefs, plain="typedef {kind} {name};"):
    """The typedefs of the names that a text has; `plain`: how those are written that are no structures."""
    found = set(re.findall(r"\b[iufc]\d{1,3}\b", body))
    found |= {"f32"} if "c64" in found else set()
    found |= {"f64"} if "c128" in found else set()
    structure = "typedef {kind} {name};"
    return "\n".join((structure if name[0] == "c" else plain).format(kind=typedefs[name], name=name)
                     for name in typedefs if name in found)


def print_call(printer, parts, function):
    """A call in printf()'s manner that writes the parts and a new line."""
    format_, args = "", []
    for part in parts:
        if isinstance(part, str):
            format_ += part.replace("%", "%%")
            continue
        value = printer.expr(part)
        if part.type in types.COMPLEX:
            one = _FORMATS[types.real_of(part.type)]
            format_ += "(%s%sj)" % (one, one.replace("%", "%+"))
            args += [value + ".re", value + ".im"]
        else:
            format_ += _FORMATS.get(part.type, "%d")
            args.append('%s ? "True" : "False"' % printer.expr(part, 5) if part.type == "bool" else value)
    return '%s"%s\\n"%s);' % (function, _escaped(format_), "".join(", " + one for one in args))


def _escaped(string):
    return "".join(c if c.isascii() and c.isprintable() and c not in '"\\?' else
                   "".join("\\%03o" % byte for byte in c.encode()) for c in string)


def scalar_parameter(printer, param, params):
    """C parameters of a kernel's scalar, with the plan's entries in `params`; and a line that makes it of them."""
    name, path = printer.c_name(param.name), param.source[1]
    if param.source[0] != "value":
        params.append(param.source)
        return ["i64 " + name], None
    if param.type in types.COMPLEX:
        real = C_TYPES[types.real_of(param.type)]
        parts = [printer.names.own("%s_%s" % (name, part)) for part in ("re", "im")]
        params += [("value", path, "%s.%s" % (param.type, part)) for part in ("re", "im")]
        return ["%s %s" % (real, part) for part in parts], "const %s %s = {%s, %s};" % (
            C_TYPES[param.type], name, *parts)
    params.append(("value", path, "float32" if param.type == "float16" else param.type))
    return ["%s %s" % ("u8" if param.type == "bool" else C_TYPES[param.type], name)], None


class Program:
    """What the functions of one text share: names, blocks of the library, and what device functions must be passed."""

    dialect = ""

    def __init__(self, kernel, source_line=None):
        self.kernel, self.source_line = kernel, source_line
        self.names, self.used, self.passed, self.printed, self._back = Names(), {}, {}, {}, None
        self.functions = analysis.reachable(kernel)
        self.failing = {id(one) for one in self.functions if any(isinstance(node, tree.Check) for part in
                        (*analysis.reachable(one), one) for node in nodes(*part.body))}
        self.fails = bool(self.failing) or any(isinstance(node, tree.Check) for node in nodes(*kernel.body))
        self.name = self.names.of(kernel.name, id(kernel), function=True)

    def converts_back(self):
        """Whether a C99 text makes floats of integers: what was made of floats must not seem to be one of these."""
        if self._back is None:
            self._back = self.dialect == "c99" and any(
                isinstance(node, tree.Cast) and node.a.type in types.INTEGERS and node.type not in types.INTEGERS
                for node in analysis.everything(self.kernel))
        return self._back

    def use(self, block):
        """The C function of a block of the library, which the text gets."""
        self.used[block] = True
        return "drupe_" + block

    def has(self, block):
        return library.has(block, self.dialect)

    def function_name(self, function):
        return self.names.of(function.name, id(function), function=True)

    def assembled(self, head, body):
        """The whole text, with the blocks that it uses."""
        parts = [library.text_of(self.used, self.dialect), *(self.printed[id(one)] for one in self.functions), *body]
        text = "\n\n".join(part for part in parts if part) + "\n"
        return head(text) + "\n\n" + text


class Function(Expressions):
    """Prints one function. `hidden` are the names for the work-item's place that its text has."""

    def __init__(self, program, function):
        self.program, self.function = program, function
        self.names = Names(program.names.taken)
        self.hidden, self.lines, self.depth, self.top, self.same = {}, [], 1, [], {}
        self.buffers = {one.name: one for one in function.buffers}
        self.types = {name: kind for name, kind in function.locals.items() if name not in self.buffers}
        self.seen, self.line = analysis.Occurrences(), None
        self.views = {one.name: one for one in function.buffers if one.size is None}
        for param in function.params:
            self.c_name(param.buffer.name if param.buffer else param.name)
        flags = iter(range(1, 1000))
        self.body = analysis.without_else(function.body, lambda: self.new_flag("drupe_broke%d" % next(flags)))
        self.body = analysis.loops_apart(self.body, self.seen, self._another)
        self.total = self.seen.of_all(self.body)
        self.undeclared = {name for name in self.total if name in self.types or name in self.views}
        if function is not program.kernel and any(one.space == tree.LOCAL and one.size is not None
                                                  for one in function.buffers):
            raise KernelError("DK018", "%s() has local memory of its own, which only kernels have." % function.name,
                              "Let it return once, at its end; or give it the local array as an argument.")
        self.at_assign, self.loops, self.texts, self.counters = {}, 0, {}, {}

    # --- Names ---

    def c_name(self, name):
        return self.names.of(self.same.get(name, name))

    def _another(self, name):
        """A variable beside one of this name; C's loops may have equal names."""
        new = "%s %d" % (name, len(self.types))
        self.types[new] = self.types[name]
        if self.types[name] == "int64":
            self.same[new] = name
        return new

    def new_flag(self, name, kind="bool"):
        self.types[name] = kind
        return self.names.keep(name)

    def use_hidden(self, name):
        self.hidden[name] = True
        return name

    # --- Lines ---

    def emit(self, text):
        self.lines.append("    " * self.depth + text)

    @contextlib.contextmanager
    def braces(self, head, end="}"):
        self.emit((head + " {").lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.emit(end)

    def comment(self, stmt):
        """The user's line, before the first statement that comes from it."""
        if stmt.line == self.line or self.program.source_line is None:
            return
        self.line = stmt.line
        shown = self.program.source_line(stmt.line)
        if shown and shown.strip():
            self.emit("/* %s */" % shown.strip().replace("*/", "* /").replace("/*", "/ *"))

    # --- Declarations ---

    def declaration(self, name):
        view = self.views.get(name)
        if view is not None:
            return self.pointer_to(view) + self.c_name(name)
        # The flag is volatile, as PoCL makes wrong code of branches by it around barriers that some groups come to.
        kind = ("volatile " if name == self.function.alive else "") + C_TYPES[self.types[name]]
        return "%s %s" % (kind, self.c_name(name))

    def pointer_to(self, buffer):
        raise NotImplementedError

    def array(self, buffer):
        """The declaration of a private array."""
        start = " = {0}" if buffer.zeroed else ""
        if start and buffer.type in ("complex64", "complex128"):
            start = " = {{0, 0}}"
        return "%s %s[%d]%s;" % (element_type(buffer.type), self.c_name(buffer.name), buffer.size, start)

    def place_declarations(self, stmts):
        """Say for each variable that belongs into this block before which statement it is declared; gives
        statement's id → names."""
        counts = [self.seen.of(stmt) for stmt in stmts]
        here = self.seen.of_all(stmts)
        before = {}
        for name in [one for one in here if one in self.undeclared and here[one] == self.total[one]]:
            places = [i for i, one in enumerate(counts) if one[name]]
            stmt = stmts[places[0]]
            if len(places) == 1 and self._lies_deeper(stmt, name):
                continue
            self.undeclared.discard(name)
            start = first(stmts[places[0]:], name, self.seen)
            if analysis.target(stmt) == name and start == "set":
                self.at_assign[id(stmt)] = True
            elif self.loops and start != "set":
                self.top.append(self.declaration(name) + ";")
            else:
                before.setdefault(id(stmt), []).append(name)
        return before

    def _lies_deeper(self, stmt, name):
        if isinstance(stmt, tree.For) and stmt.var == name:
            return self.is_plain_loop(stmt)
        inside = [one for one in analysis.bodies(stmt) if self.seen.of_all(one)[name]]
        return len(inside) == 1 and self.seen.of_all(inside[0])[name] == self.total[name]

    def is_plain_loop(self, stmt):
        """Whether C's own loop does: nothing but its body reads the variable, and the body does not change it."""
        name = stmt.var
        return self.types[name] == "int64" and 1 + self.seen.of_all(stmt.body)[name] == self.total[name] and \
            name not in analysis.assigned(stmt.body)

    # --- Statements ---

    def block(self, stmts, before=None):
        before = self.place_declarations(stmts) if before is None else before
        for stmt in stmts:
            for name in before.get(id(stmt), ()):
                self.emit(self.declaration(name) + ";")
            self.statement(stmt)

    def statement(self, stmt):
        self.comment(stmt)
        getattr(self, "_do_" + type(stmt).__name__.lower())(stmt)

    def may_fail(self, *exprs):
        return any(id(one) in self.program.failing for one in analysis.calls(*exprs))

    def after(self, *exprs):
        """Behind a statement with a call that may have ended the work-item."""
        if self.may_fail(*exprs):
            with self.braces("if (%s)" % self.failed()):
                self.give_up()

    def failed(self):
        return self.use_hidden("drupe_failed")

    def leave(self):
        """The lines that end the work-item, or get back to where it is ended."""
        result = self.function.result
        if result == "void":
            return ["return;"]
        return ["return %s;" % ("(%s){0, 0}" % C_TYPES[result] if result.startswith("complex") else "0")]

    def end_item(self):
        for line in self.leave():
            self.emit(line)

    def give_up(self):
        """End the work-item, or let it do no more than come to the barriers."""
        if self.function.alive is None:
            self.end_item()
        else:
            self.emit("%s = 0;" % self.variable(self.function.alive))

    def _do_assign(self, stmt):
        left = self.declaration(stmt.name) if self.at_assign.get(id(stmt)) else self.variable(stmt.name)
        self.emit("%s = %s;" % (left, self.value(stmt.value)))
        self.after(stmt.value)

    def _do_point(self, stmt):
        name = stmt.target.name
        left = self.declaration(name) if self.at_assign.get(id(stmt)) else self.variable(name)
        offset = self.expr(stmt.offset, 13)
        self.emit("%s = %s%s;" % (left, self.pointer(stmt.source), "" if offset == "0" else " + " + offset))
        self.after(stmt.offset)

    def _do_store(self, stmt):
        value = stmt.value
        if stmt.buffer.type == "float16":
            inner = value.a if isinstance(value, tree.Cast) and value.a.type in ("float32", "float64") else value
            kind = "float64" if inner.type == "float64" else "float32"
            text = "%s(%s)" % (self.program.use("to_half_" + kind), self.expr(inner))
        else:
            text = self.value(value)
        self.emit("%s = %s;" % (self.element(stmt.buffer, stmt.index), text))
        self.after(stmt.index, value)

    def _do_do(self, stmt):
        self.emit(self.expr(stmt.value) + ";")
        self.after(stmt.value)

    def condition(self, cond):
        """A condition that may end the work-item is computed before it is looked at."""
        if not self.may_fail(cond):
            return self.expr(cond)
        name = self.names.own("drupe_cond")
        self.emit("const int %s = %s;" % (name, self.expr(cond)))
        self.after(cond)
        return name

    def _do_if(self, stmt):
        self.emit("if (%s) {" % self.condition(stmt.cond))
        self.inner(stmt.then)
        other = stmt.other
        while other:
            before = self.place_declarations(other)
            chained = len(other) == 1 and isinstance(other[0], tree.If) and not before and \
                not self.may_fail(other[0].cond)
            self.emit("} else if (%s) {" % self.expr(other[0].cond) if chained else "} else {")
            self.inner(other[0].then if chained else other, None if chained else before)
            other = other[0].other if chained else []
        self.emit("}")

    def inner(self, stmts, before=None):
        self.depth += 1
        self.block(stmts, before)
        self.depth -= 1

    @contextlib.contextmanager
    def looping(self):
        self.loops += 1
        yield
        self.loops -= 1

    def _do_while(self, stmt):
        failing = self.may_fail(stmt.cond)
        cond = self.expr(stmt.cond, 6 if failing else 0)
        if failing:
            cond += " && !" + self.failed()
        always = isinstance(stmt.cond, tree.Const) and stmt.cond.value
        with self.looping(), self.braces("for (;;)" if always else "while (%s)" % cond):
            self.block(stmt.body)
        self.after(stmt.cond)

    def _do_for(self, stmt):
        self.bounds_checked(stmt)
        if stmt.independent:
            self.independent()
        with self.looping(), self.braces(self.loop_head(stmt)):
            if not self.is_plain_loop(stmt):
                self.emit("%s = %s;" % (self.variable(stmt.var), self.counted(stmt)))
            self.block(stmt.body)

    def bounds_checked(self, stmt):
        if self.may_fail(stmt.start, stmt.stop, stmt.step):
            for name in ("start", "stop", "step"):
                expr = getattr(stmt, name)
                if not self.may_fail(expr):
                    continue
                kept = self.names.own("drupe_" + name)
                self.emit("const %s %s = %s;" % (C_TYPES[expr.type], kept, self.expr(expr)))
                self.after(expr)
                self.texts[id(expr)] = kept, expr

    def counted(self, stmt):
        kind = self.types[stmt.var]
        counter = self.counters[id(stmt)]
        return counter if kind in ("int64", "uint64") else "(%s)%s" % (C_TYPES[kind], counter)

    def loop_head(self, stmt):
        """for (i64 i = start; i < stop; i += step), with bounds that the body may change in variables."""
        plain = self.is_plain_loop(stmt)
        kind = "u64" if self.types[stmt.var] == "uint64" else "i64"
        if plain:
            self.undeclared.discard(stmt.var)
            counter = self.c_name(stmt.var)
        else:
            counter = self.counters[id(stmt)] = self.names.own("drupe_at")
        inits = ["%s %s = %s" % (kind, counter, self.value(stmt.start))]
        stop, step = (self._bound(stmt, one, inits) for one in (stmt.stop, stmt.step))
        down = isinstance(stmt.step, tree.Const) and stmt.step.value < 0
        if step in ("1", "-1"):
            change = "%s%s" % (counter, "--" if down else "++")
        else:
            change = "%s -= %s" % (counter, step[1:]) if down else "%s += %s" % (counter, step)
        return "for (%s; %s %s %s; %s)" % (", ".join(inits), counter, ">" if down else "<", stop, change)

    def _bound(self, stmt, expr, inits):
        if self._stays(expr, stmt):
            return self.value(expr, 11)
        name = self.names.own("drupe_" + ("stop" if expr is stmt.stop else "step"))
        inits.append("%s = %s" % (name, self.value(expr)))
        return name

    def _stays(self, expr, stmt):
        """Whether computing it in each round gives the same, for little."""
        changed = None
        for node in nodes(expr):
            if isinstance(node, tree.Var):
                changed = analysis.assigned([stmt]) if changed is None else changed
                if node.name in changed:
                    return False
            elif not isinstance(node, (tree.Const, tree.Query, tree.Binary, tree.Cast)):
                return False
        return True

    def independent(self):
        """Before a loop whose rounds touch no common element."""

    def _do_break(self, stmt):
        self.emit("break;")

    def _do_continue(self, stmt):
        self.emit("continue;")

    def _do_return(self, stmt):
        if stmt.value is None:
            self.end_item()
        else:
            self.emit("return %s;" % self.value(stmt.value))

    def _do_check(self, stmt):
        values = [self.value(one) for one in stmt.values] + ["0", "0"]
        with self.braces("if (!(%s))" % self.condition(stmt.cond)):
            self.emit("%s(%s, %d, %d, %s, %s, %s);" % (
                self.program.use("fail"), self.use_hidden("drupe_failures"), stmt.code, stmt.line,
                self.use_hidden("drupe_linear"), *values[:2]))
            if self.function is not self.program.kernel:
                self.emit("%s = 1;" % self.failed())
            self.give_up()

    # --- Whole device functions ---

    def parameter(self, param):
        if param.buffer is not None:
            return self.pointer_to(param.buffer) + self.c_name(param.buffer.name)
        return "%s %s" % (C_TYPES[param.type], self.c_name(param.name))

    def print_body(self):
        """The lines of the body, behind the declarations that belong before all of it."""
        arrays = [self.array(one) for one in self.function.buffers if one.space == tree.PRIVATE and
                  one.size is not None and self.total[one.name]]
        self.block(self.body)
        return ["    " + line for line in (*arrays, *self.top)] + self.lines
