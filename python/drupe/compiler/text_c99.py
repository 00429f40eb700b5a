"""Kernels as C for the host, such that gcc makes vectors of work-items, and tcc takes it as well.

A work-item is a function, and drupe_run_NAME() has the loops over those of its chunks or groups. The last dimension is
the innermost loop: work-items are independent, which the compiler is told where they have no atomic operations and no
private arrays. A kernel with barriers has loops between its barriers instead; text_group.py prints it.
"""
import re

from drupe.compiler import analysis, rows, text, tree, types
from drupe.compiler.analysis import nodes
from drupe.compiler.library import C_TYPES
from drupe.compiler.messages import KernelError
from drupe.compiler.text import element_type, head_of, print_call, scalar_parameter
from drupe.compiler.variants import Text

_TYPEDEFS = {"i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short", "i32": "int",
             "u32": "unsigned", "i64": "long", "u64": "unsigned long", "f32": "float", "f64": "double",
             "c64": "struct { f32 re, im; }", "c128": "struct { f64 re, im; }"}
_INDEPENDENT = """\
#if defined(__clang__)
#define drupe_independent _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__TINYC__)
#define drupe_independent
#else
#define drupe_independent _Pragma("GCC ivdep")
#endif"""
# The engine's numbers of types (drupe_scalar_type).
_SCALARS = {"bool": 2, "int8": 1, "uint8": 2, "int16": 3, "uint16": 4, "int32": 5, "uint32": 6, "int64": 7, "uint64": 8,
            "float16": 4, "float32": 10, "float64": 11}
MOST_STACK, MOST_ITEMS = 1 << 20, 1024  # bytes of fixed size that a group may take, and its work-items


def independent(stmts, apart=()):
    """Whether a compiler may run these statements for several work-items at a time, in any order: what is theirs
    alone must not lie in memory that the compiler takes for common, as a private array in a loop does; those in `apart`
    do not."""
    todo = list(stmts)
    for function in analysis.calls(*stmts):
        if any(one.space == tree.PRIVATE and one.size is not None for one in function.buffers):
            return False
        todo += function.body
        todo += [part for one in analysis.reachable(function) for part in one.body]
    for node in nodes(*todo):
        if isinstance(node, (tree.Atomic, tree.Print, tree.Check, tree.Fence)):
            return False
        buffer = getattr(node, "buffer", None) or getattr(node, "source", None)
        if buffer is not None and buffer.space == tree.PRIVATE and buffer.name not in apart:
            return False
    return True


def no_subgroups():
    return KernelError("DK018", "The device has no sub-groups.",
                       "Use local memory and barriers of the work-group, or another device.")


class Function(text.Function):
    def __init__(self, program, function):
        super().__init__(program, function)
        if function is program.kernel:
            return
        if any(isinstance(node, tree.Barrier) for node in nodes(*function.body)):
            raise KernelError("DK020", "%s() has a barrier, and is not part of the kernel itself." % function.name,
                              "Write the barrier into the kernel, or let the function return once, at its end.")

    def pointer_to(self, buffer):
        return "%s%s *" % ("const " if buffer.readonly else "", element_type(buffer.type))

    def place(self, query):
        if query.what.startswith("sub_group"):
            raise no_subgroups()
        return text.hidden_name(query)

    def failed(self):
        return ("*" if self.function is not self.program.kernel else "") + super().failed()

    def independent(self):
        self.emit("drupe_independent")

    # --- Statements and expressions of this dialect ---

    def _do_fence(self, stmt):
        if stmt.order and stmt.scope > 2:  # a group is one thread
            self.emit(self.program.use("fence") + "();")

    def _do_print(self, stmt):
        self.program.use("print")
        self.emit(print_call(self, stmt.parts, "dprintf(1, "))

    def _of_subgroup(self, node, least):
        raise no_subgroups()

    def own_places(self):
        """Declarations of what follows from other places, in a kernel."""
        lines = []
        if "drupe_linear" in self.hidden:
            linear = self.use_hidden("drupe_id0")
            for dim in range(1, self.program.kernel.dims):
                linear = "(%s) * %s + %s" % (linear, self.use_hidden("drupe_g%d" % dim),
                                             self.use_hidden("drupe_id%d" % dim))
            lines.append("const i64 drupe_linear = %s;" % linear)
        if "drupe_failed" in self.hidden:
            lines.append("int drupe_failed = 0;")
        return lines


def _hidden_parameter(name):
    return {"drupe_failures": "i64 *", "drupe_failed": "int *"}.get(name, "i64 ") + name


def _device_function(program, function):
    printer = Function(program, function)
    lines = printer.print_body()
    passed = program.passed[id(function)] = list(printer.hidden)
    params = ", ".join([_hidden_parameter(one) for one in passed] +
                       [printer.parameter(one) for one in function.params]) or "void"
    result = "void" if function.result == "void" else C_TYPES[function.result]
    head = "static inline %s %s(%s)" % (result, program.function_name(function), params)
    program.printed[id(function)] = "\n".join([head, "{", *lines, "}"])


class Kernel(text.Program):
    """A text with one kernel."""

    dialect = "c99"

    def text(self):
        kernel = self.kernel
        if any(isinstance(node, tree.Barrier) and node.group == "sub" for node in analysis.everything(kernel)):
            raise no_subgroups()
        self._check_private()
        for function in self.functions:
            _device_function(self, function)
        self.params, self.rows, self.unpacked, self.given = [], [], [], []
        if kernel.grouped and any(isinstance(node, tree.Barrier) for node in nodes(*kernel.body)):
            from drupe.compiler.text_group import group_text

            body = group_text(self)
        else:
            body = self._single()
        table = self._table()
        form = "host_groups" if kernel.grouped else "host_range"
        return Text(self.assembled(self._head, [*body, table]), self.name, tuple(self.params), form,
                    *(self.stack if kernel.grouped else ()))

    def assembled(self, head, body):
        """All small functions are inlined: a loop with a call is no vector's."""
        return super().assembled(head, body).replace("\nstatic inline ", "\ndrupe_inline ")

    def _head(self, body):
        parts = [head_of(body, _TYPEDEFS)]
        if "static inline" in body:
            parts.append("#define drupe_inline static inline __attribute__((always_inline))")
        if "drupe_independent" in body:
            parts.append(_INDEPENDENT)
        return "\n".join(parts)

    # --- Parameters ---

    def add(self, kind, name, plan, pointer=None):
        """A parameter: its C type and name. drupe_run_ gets a variable of it."""
        at = len(self.params) + 1
        self.params.append(plan)
        const = kind.endswith("*")
        self.unpacked.append("%s%s = *(%s *)drupe_args[%d];" % (
            kind + "const " if const else "const %s " % kind, name, kind + "const" if const else "const " + kind, at))
        scalar = 7 if pointer is None and kind == "i64" else _SCALARS.get(pointer[0] if pointer else plan[-1], 0)
        self.rows.append('    {%d, %d, %d, sizeof(%s), "%s", "%s"},' % (
            pointer is not None, scalar, bool(pointer and pointer[1]), kind.strip(), name, kind.strip()))

    def take_parameters(self, printer):
        """All of the kernel's parameters, hidden ones first; gives how they are declared and called."""
        kernel = self.kernel
        for dim in range(kernel.dims):
            self.add("i64", "drupe_g%d" % dim, ("global_size", dim))
        for dim in range(kernel.dims if kernel.grouped else 0):
            self.add("i64", "drupe_l%d" % dim, ("local_size", dim))
        if not kernel.grouped:
            self.add("i64", "drupe_chunk", ("chunk",))
        if self.fails:
            self.add("i64 *", "drupe_failures", ("failures",), ("int64", False))
        declared = []
        for param in kernel.params:
            name = printer.c_name(param.buffer.name if param.buffer else param.name)
            if param.source[0] == "local":
                self.add("i64", name + "_bytes", param.source)
                self.unpacked += _local_memory(param.buffer, name, name + "_bytes")
                declared.append((printer.parameter(param), name))
            elif param.buffer is not None:
                self.add(printer.pointer_to(param.buffer), name, param.source,
                         (param.buffer.type, param.buffer.readonly))
                declared.append((printer.parameter(param), name))
            else:
                declared.append(self._scalar(printer, param, name))
        for buffer in kernel.buffers:
            if buffer.space == tree.LOCAL and buffer.size is not None:
                name = printer.c_name(buffer.name)
                self.unpacked.append("%s %s[%d] __attribute__((aligned(64)));" % (
                    element_type(buffer.type), name, buffer.size))
                declared.append((printer.pointer_to(buffer) + name, name))
        self.check_memory(0)
        return declared

    def _scalar(self, printer, param, name):
        plan = []
        pieces, line = scalar_parameter(printer, param, plan)
        for piece, entry in zip(pieces, plan):
            self.add(*piece.split(), entry)
        if line is not None:
            self.unpacked.append(line)
        kind = C_TYPES[param.type]
        return "%s %s" % (kind, name), name

    def _check_private(self):
        """A work-item's arrays lie there, too, in the kernel and in what it calls."""
        needed = sum(one.size * types.SIZES[one.type] for function in (self.kernel, *self.functions)
                     for one in function.buffers if one.space == tree.PRIVATE and one.size is not None)
        if needed > MOST_STACK:
            raise KernelError("DK018", "A work-item needs %d KiB of private memory, and the host has %d KiB for it." % (
                -(-needed // 1024), MOST_STACK >> 10), "Use smaller arrays, or arrays in global memory.")

    def check_memory(self, per_item):
        """Fixed memory of a group lies on a thread's stack."""
        fixed = sum(one.size * types.SIZES[one.type] for one in self.kernel.buffers
                    if one.space == tree.LOCAL and one.size is not None)
        if fixed + per_item * MOST_ITEMS > MOST_STACK:
            raise KernelError("DK018", "A group of %d work-items needs %d KiB of local and private memory, and the "
                              "host has %d KiB for it." % (MOST_ITEMS, (fixed + per_item * MOST_ITEMS) >> 10,
                                                           MOST_STACK >> 10),
                              "Use smaller arrays, or arrays in global memory.")
        self.stack = MOST_STACK - fixed, per_item

    def _table(self):
        count = len(self.params)
        return "\n".join([
            "static const drupe_param_ drupe_params_%s[] = {" % self.name, *self.rows, "};",
            "const drupe_entry_ drupe_entries_[] = {", '    {"%s", %d, drupe_params_%s, drupe_run_%s},' % (
                self.name, count, self.name, self.name), "    {0, 0, 0, 0},", "};"])

    def run_function(self, lines):
        """drupe_run_NAME() with these lines behind its parameters."""
        return "\n".join([
            "static void drupe_run_%s(drupe_size_ drupe_begin, drupe_size_ drupe_end, drupe_size_ drupe_n,"
            % self.name, "                      const void *const *drupe_args)", "{",
            *("    " + line for line in self.unpacked), *("    " + line for line in lines), "    (void)drupe_n;", "}"])

    # --- Kernels without barriers ---

    def _single(self):
        """The function of one work-item, and the loops."""
        printer = Function(self, self.kernel)
        free = ["drupe_independent"] if independent(self.kernel.body) else []
        row = self._row(printer) if free and self.kernel.dims > 1 and not self.kernel.grouped else []
        lines = printer.print_body()
        lines[:0] = ["    " + one for one in printer.own_places()]
        hidden = [one for one in printer.hidden if one not in ("drupe_linear", "drupe_failed")]
        params = self.take_parameters(printer)
        head = "static inline void %s(%s)" % (self.name, ", ".join(
            [_hidden_parameter(one) for one in hidden] + [declared for declared, _name in params] +
            ["%s %s" % (kind, name) for kind, name, _text in row]) or "void")
        call = "%s(%s);" % (self.name, ", ".join(
            hidden + [name for _declared, name in params] + [name for _kind, name, _text in row]))
        lines[:0] = ["    /* %s: %s, read once for a row */" % (name, text) for _kind, name, text in row]
        row = ["const %s %s = %s;" % one for one in row]
        loops = self._groups(hidden, call, free) if self.kernel.grouped else self._rows(call, row + free)
        return "\n".join([head, "{", *lines, "}"]), self.run_function(loops)

    def _row(self, printer):
        """[(C type, name, text)] of what is read once for a row; the printer uses the names from now on."""
        found = []
        for load, outer in rows.loads(self.kernel, printer.body):
            text, name = printer.expr(outer), "drupe_row%d" % len(found)
            same = [one for one in found if one[2] == text]
            found += [] if same else [(C_TYPES[load.type], name, text)]
            printer.texts[id(load)] = (same[0][1] if same else name), load
        return found

    def _rows(self, call, free):
        """The work-items of a Range's chunks, row by row. `free`: lines before the loop over a row's."""
        dims = self.kernel.dims
        total = " * ".join("drupe_g%d" % dim for dim in range(dims))
        lines = ["const i64 drupe_total = %s;" % total,
                 "i64 drupe_at = (i64)drupe_begin * drupe_chunk, drupe_stop = (i64)drupe_end * drupe_chunk;",
                 "if (drupe_stop > drupe_total) drupe_stop = drupe_total;"]
        if dims == 1:
            return lines + free + ["for (i64 drupe_id0 = drupe_at; drupe_id0 < drupe_stop; drupe_id0++)", "    " + call]
        last = dims - 1
        lines += ["while (drupe_at < drupe_stop) {",
                  "    const i64 drupe_row = drupe_at / drupe_g%d, drupe_first = drupe_at %% drupe_g%d;" % (last, last),
                  "    i64 drupe_last = drupe_first + (drupe_stop - drupe_at);",
                  "    if (drupe_last > drupe_g%d) drupe_last = drupe_g%d;" % (last, last)]
        places = [("drupe_id0", "drupe_row")] if dims == 2 else \
            [("drupe_id0", "drupe_row / drupe_g1"), ("drupe_id1", "drupe_row % drupe_g1")]
        lines += ["    const i64 %s = %s;" % pair for pair in places if re.search(r"\b%s\b" % pair[0], call)]
        lines += ["    " + one for one in free]
        return lines + [
            "    for (i64 drupe_id%d = drupe_first; drupe_id%d < drupe_last; drupe_id%d++)" % (last, last, last),
            "        " + call, "    drupe_at += drupe_last - drupe_first;", "}"]

    def _groups(self, hidden, call, free):
        lines, needed = self.group_head(hidden)
        dims = self.kernel.dims
        for dim in range(dims):
            deep = "    " * (dim + 1)
            lines += [deep + one for one in (free if dim == dims - 1 else [])]
            lines.append(deep + "for (i64 drupe_local%d = 0; drupe_local%d < drupe_l%d; drupe_local%d++) {" % (
                dim, dim, dim, dim))
            if "drupe_id%d" % dim in needed:
                lines.append(deep + "    const i64 drupe_id%d = drupe_group%d * drupe_l%d + drupe_local%d;" % (
                    dim, dim, dim, dim))
        lines.append("    " * (dims + 1) + call)
        return lines + ["    " * (dim + 1) + "}" for dim in reversed(range(dims))] + ["}"]

    def group_head(self, needed):
        """The lines that begin the loop over groups, and what is needed in all."""
        needed, dims = set(needed), self.kernel.dims
        needed |= {"drupe_group" + name[-1] for name in needed if name.startswith("drupe_id")}
        lines = []
        for dim in range(dims):
            if dims > 1 or "drupe_groups0" in needed:
                lines.append("const i64 drupe_groups%d = drupe_g%d / drupe_l%d;" % (dim, dim, dim))
        lines.append("for (i64 drupe_number = (i64)drupe_begin; drupe_number < (i64)drupe_end; drupe_number++) {")
        for dim in range(dims):
            if "drupe_group%d" % dim not in needed:
                continue
            below = " * ".join("drupe_groups%d" % one for one in range(dim + 1, dims))
            place = "drupe_number"
            if below:
                place += " / (%s)" % below if "*" in below else " / " + below
            place += " % drupe_groups" + str(dim) if dim else ""
            lines.append("    const i64 drupe_group%d = %s;" % (dim, place))
        return lines, needed


def _local_memory(buffer, name, count):
    """Local memory of as many bytes as the launch says, as an array that lies in the frame of drupe_run_NAME()."""
    kind = element_type(buffer.type)
    return ["%s %s[%s / sizeof(%s) + 1] __attribute__((aligned(64)));" % (kind, name, count, kind)]
