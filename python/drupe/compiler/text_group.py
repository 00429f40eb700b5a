"""Kernels with barriers as C for the host: loops over a group's work-items between its barriers (regions.py).

Variables that live from one region to the next lie in arrays, NAME_items, of which a region has its work-item's element
in a variable. Private arrays that do are interleaved, so that neighbours in a vector are neighbours in memory.
"""
import re

from drupe.compiler import analysis, tree, types
from drupe.compiler.library import C_TYPES
from drupe.compiler.regions import Planner, Region
from drupe.compiler.text import element_type
from drupe.compiler.text_c99 import Function, independent

# Names of a work-item's place; others are the group's.
_OF_ITEM = re.compile(r"drupe_(id\d|local\d|item|linear|failed)")


class _Group(Function):
    """Prints a group's work. `region` is the Region that is being printed, None for what the group does itself: there,
    a value is that of the first work-item that has not ended, the leader."""

    def __init__(self, program, kernel):
        super().__init__(program, kernel)
        own = {name: one for name, one in self.buffers.items() if one.space == tree.PRIVATE or one.size is None}
        planner = Planner(self.body, self.types, own, self.seen, program.failing, self._fresh)
        self.plan, self.body = planner.plan(), planner.body
        self.total = self.seen.of_all(self.body)
        self.kept = {*self.plan.shared, *self.plan.items, *self.plan.rebuilt}
        self.arrays = {one.name: one for one in self.plan.arrays}
        self.whole = self._whole()
        self.region, self.labels, self.jumps, self.plain, self.ended = None, 0, False, set(), False
        self.leader = "drupe_first" if self.plan.masked else "0"
        self.stored = {name: self.names.own(self.c_name(name) + "_items") for name in self.plan.items}

    def _fresh(self, name, kind):
        name = self.names.keep(self.names.own(name))
        self.types[name] = kind
        return name

    def _whole(self):
        """Private arrays that something needs a pointer to: their elements lie side by side."""
        found = set()
        for node in analysis.nodes(*self.body):
            if isinstance(node, tree.Point):
                found.add(node.source.name)
            elif isinstance(node, tree.Call):
                found.update(one.name for one in node.args if isinstance(one, tree.Buffer))
        return found

    # --- Names, by where they stand ---

    def _item(self):
        """The work-item's number in its group."""
        if self.region is None:
            return self.leader
        return self.use_hidden("drupe_local0" if self.program.kernel.dims == 1 else "drupe_item")

    def variable(self, name):
        if self.region is None and name in self.stored:
            return "%s[%s]" % (self.stored[name], self.leader)
        return super().variable(name)

    def _of_var(self, node, least):
        if self.region is None and node.name in self.plan.rebuilt:
            return self.expr(self.plan.rebuilt[node.name], least)
        return super()._of_var(node, least)

    def pointer(self, buffer):
        if buffer.name in self.arrays:
            return "(%s + %s * %d)" % (self.c_name(buffer.name), self._item(), buffer.size)
        return self.variable(buffer.name)

    def element(self, buffer, index):
        if buffer.name not in self.arrays:
            return super().element(buffer, index)
        name, item, at = self.c_name(buffer.name), self._item(), self.value(index, 13)
        if buffer.name in self.whole:
            return "%s[%s * %d + %s]" % (name, item, buffer.size, at)
        if at in "01":
            return "%s[%s]" % (name, item if at == "0" else "drupe_items + " + item)
        return "%s[%s * drupe_items + %s]" % (name, at, item)

    def _of_query(self, node, least):
        if self.region is not None or node.what not in ("local_id", "global_id"):
            return super()._of_query(node, least)
        dims, place = self.program.kernel.dims, self.leader
        if place != "0" and dims > 1:
            below = " * ".join("drupe_l%d" % one for one in range(node.dim + 1, dims))
            place = "%s / (%s)" % (place, below) if below else place
            place = "(%s %% drupe_l%d)" % (place, node.dim) if node.dim else "(%s)" % place
        if node.what == "local_id":
            return place
        return "(%s * drupe_l%d + %s)" % (self.use_hidden("drupe_group%d" % node.dim), node.dim, place)

    def leave(self):
        lines = [] if self.region.last else ["drupe_ended[%s] = 1;" % self._item()]
        self.jumps = self.jumps or self.loops > 0
        return lines + ["goto drupe_next%d;" % self.labels if self.loops else "continue;"]

    # --- The group ---

    def steps(self, steps):
        for one in steps:
            if isinstance(one, Region):
                self._print_region(one)
            else:
                self._print_step(one)

    def _print_step(self, step):
        stmt = step.stmt
        self.comment(stmt)
        if isinstance(stmt, tree.If):
            self._print_if(stmt, step.bodies)
        elif isinstance(stmt, tree.While):
            always = isinstance(stmt.cond, tree.Const) and stmt.cond.value
            with self.looping(), self.braces("for (;;)" if always else "while (%s)" % self.expr(stmt.cond)):
                self.steps(step.bodies[0])
        elif isinstance(stmt, tree.For):
            with self.looping(), self.braces(self.loop_head(stmt)):
                if self.is_plain_loop(stmt):
                    self.plain.add(stmt.var)
                else:
                    self.emit("%s = %s;" % (self.variable(stmt.var), self.counted(stmt)))
                self.steps(step.bodies[0])
        else:
            self.statement(stmt)

    def _print_if(self, stmt, parts):
        self.emit("if (%s) {" % self.expr(stmt.cond))
        for at, part in enumerate(parts):
            if at and not part:
                break
            if at:
                self.emit("} else {")
            self.depth += 1
            self.steps(part)
            self.depth -= 1
        self.emit("}")

    # --- Regions ---

    def _print_region(self, region):
        outside = self.lines, self.hidden, self.top, self.loops, self.depth
        dims = self.program.kernel.dims
        self.lines, self.hidden, self.top, self.loops, self.region = [], {}, [], 0, region
        self.labels, self.jumps, self.depth = self.labels + 1, False, self.depth + dims
        names, everywhere = self.seen.of_all(region.stmts), self.total
        self.undeclared = {name for name in names if name not in self.kept and
                           (name in self.types or name in self.views)}
        self.total = {**everywhere, **{name: names[name] for name in self.undeclared}}
        items = [name for name in self.plan.items if names[name]]
        self._take_up(region, items, self._needed(names))
        before, self.lines = self.lines, []
        self.block(region.stmts)
        for name in items:
            if name in analysis.assigned(region.stmts):
                self.emit("%s[%s] = %s;" % (self.stored[name], self._item(), self.c_name(name)))
        if self.jumps:
            self.emit("drupe_next%d:;" % self.labels)
        body = before + ["    " * self.depth + one for one in self.top] + self.lines
        free = independent(region.stmts, self.arrays)
        self._loops(region, outside, body, free)
        self.total = everywhere
        self.ended = self.ended or region.ends
        if self.plan.masked and region.ends and not region.last:
            self.emit("while (drupe_first < drupe_items && drupe_ended[drupe_first]) drupe_first++;")
            self.emit("if (drupe_first == drupe_items) goto drupe_over;")

    def _take_up(self, region, items, rebuilt):
        """What the region's work-item has from before."""
        for name in rebuilt:
            self.emit("const %s = %s;" % (self.declaration(name), self.value(self.plan.rebuilt[name])))
        for name in items:
            known = analysis.first(region.stmts, name, self.seen) != "set"
            begin = next(stmt for stmt in region.stmts if self.seen.of(stmt)[name])
            if not known and analysis.target(begin) == name:
                self.at_assign[id(begin)] = True
                continue
            value = " = %s[%s]" % (self.stored[name], self._item()) if known else ""
            self.emit(self.declaration(name) + value + ";")
        names = self.seen.of_all(region.stmts)
        for one in self.function.buffers:
            if one.space == tree.PRIVATE and one.size is not None and one.name not in self.arrays and names[one.name]:
                self.emit(self.array(one))

    def _needed(self, names):
        """The variables to compute again, each behind those that it is made of."""
        found, todo = set(), list(names)
        while todo:
            name = todo.pop()
            if name in self.plan.rebuilt and name not in found:
                found.add(name)
                todo += self.seen.of(self.plan.rebuilt[name])
        return [name for name in self.plan.rebuilt if name in found]

    def _loops(self, region, outside, body, free):
        """The loops over work-items around a region's lines."""
        dims = self.program.kernel.dims
        places = self.own_places()
        if self.plan.masked and (self.ended or region.looped):
            places.insert(0, "if (drupe_ended[%s]) continue;" % self._item())
        hidden = self.hidden
        self.region = None
        self.lines, self.hidden, self.top, self.loops, self.depth = outside
        self.hidden.update((name, True) for name in hidden if not _OF_ITEM.fullmatch(name))
        for dim in range(dims):
            if free and dim == dims - 1:
                self.emit("drupe_independent")
            name = "drupe_local%d" % dim
            self.emit("for (i64 %s = 0; %s < drupe_l%d; %s++) {" % (name, name, dim, name))
            self.depth += 1
            if "drupe_id%d" % dim in hidden:
                group = self.use_hidden("drupe_group%d" % dim)
                self.emit("const i64 drupe_id%d = %s * drupe_l%d + %s;" % (dim, group, dim, name))
        if "drupe_item" in hidden:
            place = "drupe_local0 * drupe_l1 + drupe_local1" if dims == 2 else \
                "(drupe_local0 * drupe_l1 + drupe_local1) * drupe_l2 + drupe_local2"
            self.emit("const i64 drupe_item = %s;" % place)
        for line in places:
            self.emit(line)
        self.lines += body
        for _dim in range(dims):
            self.depth -= 1
            self.emit("}")

    # --- Memory ---

    def memory(self):
        """Declarations of what a group has beside its local memory, and how many bytes a work-item has of it."""
        lines, size = [], int(self.plan.masked)
        aligned = "__attribute__((aligned(64)))"
        if self.plan.masked:
            lines.append("u8 drupe_ended[drupe_items];")
        for name, stored in self.stored.items():
            view = self.views.get(name)
            kind = self.pointer_to(view) if view else C_TYPES[self.types[name]] + " "
            size += 8 if view else max(4, types.SIZES[self.types[name]])
            lines.append("%s%s[drupe_items] %s;" % (kind, stored, aligned))
        for one in self.plan.arrays:
            size += one.size * types.SIZES[one.type]
            lines.append("%s %s[%d * drupe_items] %s;" % (
                element_type(one.type), self.c_name(one.name), one.size, aligned))
        if lines:
            count = " * ".join("drupe_l%d" % dim for dim in range(self.program.kernel.dims))
            lines.insert(0, "const i64 drupe_items = %s;" % count)
        return lines, size

    def start(self):
        """What each group begins with."""
        lines = []
        if self.plan.masked:
            lines += ["i64 drupe_first = 0;",
                      "for (i64 drupe_item = 0; drupe_item < drupe_items; drupe_item++) drupe_ended[drupe_item] = 0;"]
        for one in self.plan.arrays:
            if one.zeroed:
                zero = "(%s){0, 0}" % C_TYPES[one.type] if one.type in types.COMPLEX else "0"
                lines.append("for (i64 drupe_item = 0; drupe_item < %d * drupe_items; drupe_item++)" % one.size)
                lines.append("    %s[drupe_item] = %s;" % (self.c_name(one.name), zero))
        lines += [self.declaration(name) + ";" for name in sorted(self.plan.shared - self.plain)
                  if self.total[name]]
        return lines


def group_text(program):
    """drupe_run_NAME() of a kernel with barriers."""
    printer = _Group(program, program.kernel)
    printer.depth = 2
    program.take_parameters(printer)
    memory, size = printer.memory()
    program.check_memory(size)
    program.unpacked += memory
    printer.steps(printer.plan.steps)
    lines, _needed = program.group_head(printer.hidden)
    lines += ["    " + line for line in printer.start()]
    end = ["    drupe_over:;"] if any("goto drupe_over;" in line for line in printer.lines) else []
    return [program.run_function(lines + [line[4:] for line in printer.lines] + end + ["}"])]
