"""Kernels as OpenCL C, 1.2 and newer.

The user's dimension d is OpenCL's dims - 1 - d: both run the last, or first, one fastest. A Range may be launched with
more work-items than it has, so that they make whole groups: the others return at once.
"""
import re

from drupe.compiler import text, tree
from drupe.compiler.library import C_TYPES
from drupe.compiler.text import element_type, head_of, print_call, scalar_parameter
from drupe.compiler.variants import Text

_TYPEDEFS = {"i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int", "u32": "uint", "i64": "long",
             "u64": "ulong", "f32": "float", "f64": "double", "c64": "struct { f32 re, im; }",
             "c128": "struct { f64 re, im; }"}
_ASK = {"drupe_id": "get_global_id", "drupe_local": "get_local_id", "drupe_group": "get_group_id",
        "drupe_g": "get_global_size", "drupe_l": "get_local_size", "drupe_groups": "get_num_groups"}
_SUB_ASK = {"sub_group_id": "get_sub_group_id", "sub_group_local_id": "get_sub_group_local_id",
            "sub_group_size": "get_sub_group_size", "sub_group_count": "get_num_sub_groups"}


class _Function(text.Function):
    def pointer_to(self, buffer):
        return "%s%s%s *" % ("" if buffer.space == tree.PRIVATE else buffer.space + " ",
                             "const " if buffer.readonly else "", element_type(buffer.type))

    def place(self, query):
        if query.what in _SUB_ASK:
            self.program.subgroups.add("cl_khr_subgroups")
        return text.hidden_name(query)

    def places(self):
        """Declarations of the hidden names that the function asks for by itself."""
        lines = []
        if "drupe_linear" in self.hidden and not self.is_passed("drupe_linear"):
            dims = range(self.program.kernel.dims)
            linear = self.use_hidden("drupe_id0")
            for dim in dims[1:]:
                linear = "(%s) * %s + %s" % (linear, self.use_hidden("drupe_g%d" % dim),
                                             self.use_hidden("drupe_id%d" % dim))
            lines.append("const i64 drupe_linear = %s;" % linear)
        if "drupe_failed" in self.hidden and not self.is_passed("drupe_failed"):
            lines.append("int drupe_failed = 0;")
        asked = []
        for name in sorted(self.hidden):
            stem, dim = re.fullmatch(r"(\w*?)(\d?)", name).groups()
            if self.is_passed(name):
                continue
            if stem in _ASK:
                asked.append("const i64 %s = %s(%d);" % (name, _ASK[stem], self.program.kernel.dims - 1 - int(dim)))
            elif name[6:] in _SUB_ASK:
                asked.append("const i64 %s = %s();" % (name, _SUB_ASK[name[6:]]))
        return ["    " + line for line in asked + lines]

    def is_passed(self, name):
        if name == "drupe_failures" or re.fullmatch(r"drupe_g\d", name) and not self.program.kernel.grouped:
            return True
        return name in ("drupe_linear", "drupe_failed") and self.function is not self.program.kernel

    def failed(self):
        return ("*" if self.function is not self.program.kernel else "") + super().failed()

    # --- Statements and expressions of this dialect ---

    def _do_barrier(self, stmt):
        flags = "CLK_LOCAL_MEM_FENCE" + (" | CLK_GLOBAL_MEM_FENCE" if stmt.scope >= 3 else "")
        if stmt.group == "sub":
            self.program.subgroups.add("cl_khr_subgroups")
        self.emit("%s(%s);" % ("sub_group_barrier" if stmt.group == "sub" else "barrier", flags))

    def _do_fence(self, stmt):
        if stmt.order:
            self.emit(self.program.use("fence") + "();")

    def _do_print(self, stmt):
        self.emit(print_call(self, stmt.parts, "printf("))

    def _of_subgroup(self, node, least):
        kind, _, how = node.op.partition("_")
        self.program.subgroups.add("cl_khr_subgroups")
        if kind == "shuffle":
            self.program.subgroups.add("cl_khr_subgroup_shuffle" + ("_relative" if how in ("up", "down") else ""))
        args = [self.expr(node.args[0])] + ["(uint)" + self.expr(one, 14) for one in node.args[1:]]
        return "sub_group_%s(%s)" % (node.op, ", ".join(args))


def _device_function(program, function):
    printer = _Function(program, function)
    lines = printer.print_body()
    places = printer.places()
    passed = program.passed[id(function)] = [one for one in printer.hidden if printer.is_passed(one)]
    hidden = ["%s%s" % ({"drupe_failures": "global i64 *", "drupe_failed": "int *"}.get(one, "i64 "), one)
              for one in passed]
    params = ", ".join(hidden + [printer.parameter(one) for one in function.params]) or "void"
    head = "static %s %s(%s)" % ("void" if function.result == "void" else C_TYPES[function.result],
                                 program.function_name(function), params)
    program.printed[id(function)] = "\n".join([head, "{", *places, *lines, "}"])


class Kernel(text.Program):
    """A text with one kernel."""

    dialect = "opencl"

    def __init__(self, kernel, source_line):
        super().__init__(kernel, source_line)
        self.subgroups = set()

    def text(self):
        kernel = self.kernel
        for function in self.functions:
            _device_function(self, function)
        printer = _Function(self, kernel)
        if not kernel.grouped:
            for dim in range(kernel.dims):
                printer.use_hidden("drupe_id%d" % dim)
        lines = printer.print_body()
        places = printer.places()
        plan, params = self._hidden()
        for param in kernel.params:
            if param.buffer is not None:
                params.append(printer.parameter(param))
                plan.append(param.source)
                continue
            more, line = scalar_parameter(printer, param, plan)
            params += more
            if line is not None:
                places.append("    " + line)
        places[:0] = ["    local %s %s[%d];" % (element_type(one.type), printer.c_name(one.name), one.size)
                      for one in kernel.buffers if one.space == tree.LOCAL and one.size is not None]
        if not kernel.grouped:
            outside = " || ".join("drupe_id%d >= drupe_g%d" % (dim, dim) for dim in range(kernel.dims))
            places.append("    if (%s) return;" % outside)
        body = "\n".join(["kernel void %s(%s)" % (self.name, ", ".join(params)), "{", *places, *lines, "}"])
        return Text(self.assembled(self._head, [body]), self.name, tuple(plan), "groups" if kernel.grouped else "range")

    def _hidden(self):
        plan, params = [], []
        if not self.kernel.grouped:
            for dim in range(self.kernel.dims):
                plan.append(("global_size", dim))
                params.append("i64 drupe_g%d" % dim)
        if self.fails:
            plan.append(("failures",))
            params.append("global i64 *drupe_failures")
        return plan, params

    def _head(self, body):
        # Macros: drivers tell kernels' parameters as they are written.
        types_ = head_of(body, _TYPEDEFS, "#define {name} {kind}")
        pragmas = ["OPENCL FP_CONTRACT OFF"]
        if re.search(r"\b(f64|c128)\b", body):
            pragmas.append("OPENCL EXTENSION cl_khr_fp64 : enable")
        pragmas += ["OPENCL EXTENSION %s : enable" % one for one in sorted(self.subgroups)]
        return "\n".join(["#pragma " + one for one in pragmas] + [types_])
