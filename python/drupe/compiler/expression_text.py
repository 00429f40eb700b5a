"""Expressions of the lowered tree as C text.

float16 values are float32 variables that hold a float16's value. bool is an int. Integers narrower than int are what
C's promotions make of them, and cast where a result may not fit.
"""
import math
import struct

from drupe.compiler import tree, types
from drupe.compiler.library import C_TYPES
from drupe.compiler.messages import KernelError

# How tightly C binds each operator, and what its operands need at least to stand without parentheses. More of them
# than C asks for where readers, and compilers' warnings, do.
_BINDS = {"*": 13, "/": 13, "//": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, "<=": 10, ">": 10,
          ">=": 10, "==": 9, "!=": 9, "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4}
_LEFT = {"<<": 14, ">>": 14, "<": 12, "<=": 12, ">": 12, ">=": 12, "==": 12, "!=": 12, "&": 14, "^": 14, "|": 14,
         "&&": 6, "||": 6}
_SMALL = ("int8", "int16", "uint8", "uint16")
_LONGEST_PLAIN = 1 << 31


def _parenthesised(text, binds, least):
    return text if binds >= least else "(%s)" % text


class Expressions:
    """Part of a printer of functions. `texts` replaces expressions by what was kept of them, by id."""

    def value(self, node, least=0):
        """An expression where C converts it to its type by itself."""
        if isinstance(node, tree.Const) and node.type in types.INTEGERS:
            return self.integer(node.value, node.type, plain=True)
        return self.expr(node, least)

    def expr(self, node, least=0):
        """The text of an expression; in parentheses where it binds less tightly than `least`."""
        kept = self.texts.get(id(node))
        if kept is not None:
            return kept[0]
        return getattr(self, "_of_" + type(node).__name__.lower())(node, least)

    # --- Constants ---

    def integer(self, value, kind, plain=False):
        value = int(value)
        if kind == "int64" and value == -1 << 63:
            return "(-9223372036854775807L - 1)"
        if kind == "int32" and value == -1 << 31:
            return "(-2147483647 - 1)"
        suffix = {"int64": "L", "uint64": "UL", "uint32": "U"}.get(kind, "")
        if plain and -_LONGEST_PLAIN < value < _LONGEST_PLAIN:
            suffix = ""
        return "%d%s" % (value, suffix)

    def floating(self, value, kind):
        value = float(value)
        real = "float64" if kind == "float64" else "float32"
        if math.isnan(value):
            return self.program.use("nan_" + real) + "()"
        if math.isinf(value):
            return ("-" if value < 0 else "") + self.program.use("inf_" + real) + "()"
        return repr(value) if real == "float64" else _shortest(value) + "f"

    def _of_const(self, node, least):
        if node.type == "bool":
            return "1" if node.value else "0"
        if node.type in types.COMPLEX:
            value, real = complex(node.value), types.real_of(node.type)
            return "%s(%s, %s)" % (self.program.use("complex_" + real), self.floating(value.real, real),
                                   self.floating(value.imag, real))
        text = self.integer(node.value, node.type) if node.type in types.INTEGERS else \
            self.floating(node.value, node.type)
        return _parenthesised(text, 14 if text.startswith("-") else 16, least)

    # --- Variables and memory ---

    def _of_var(self, node, least):
        return self.variable(node.name)

    def variable(self, name):
        return self.c_name(name)

    def pointer(self, buffer):
        """A pointer to a buffer's first element."""
        return self.c_name(buffer.name)

    def element(self, buffer, index):
        return "%s[%s]" % (self.pointer(buffer), self.value(index))

    def _of_load(self, node, least):
        text = self.element(node.buffer, node.index)
        return "%s(%s)" % (self.program.use("from_half"), text) if node.type == "float16" else text

    # --- Operators ---

    def _of_unary(self, node, least):
        text = node.op + self.expr(node.a, 15)
        if node.op == "~" and node.type in _SMALL:
            text = "(%s)%s" % (C_TYPES[node.type], text)
        return _parenthesised(text, 14, least)

    def _operands(self, node, op):
        left, right = _LEFT.get(op, _BINDS[op]), _LEFT.get(op, _BINDS[op] + 1)
        if op in ("&&", "||", "&", "|", "^") and isinstance(node.a, tree.Binary) and node.a.op == op:
            left = _BINDS[op]
        if op == "/":
            return self.expr(node.a, left), self.expr(node.b, right)
        first = self.expr(node.a, left) if op == "<<" or isinstance(node.b, tree.Const) else self.value(node.a, left)
        return first, self._right(node.b, right)

    def _right(self, node, least):
        """A constant beside an operand of its type needs no suffix; one below zero stands in parentheses."""
        text = self.value(node, least)
        return "(%s)" % text if text.startswith("-") else text

    def _of_binary(self, node, least):
        op, kind = node.op, node.type
        if op in ("//", "%"):
            text = "%s %s %s" % (self.expr(node.a, 13), op[0], self._right(node.b, 14))
            return _parenthesised(text, 13, least)
        if node.wraps and op in "+-*" or op == "<<":
            text = self._wrapped(node)
            if text is not None:
                return _parenthesised(text, 14, least)
        left, right = self._operands(node, op)
        if op == "-" and left in ("0.0", "0.0f") and self.program.dialect == "c99":
            left = "(%s)%s" % (C_TYPES[kind], self.program.use("zero"))  # see c99_libm.c
        text = "%s %s %s" % (left, op, right)
        if kind == "float16" and op in "+-*/":
            return "%s(%s)" % (self.program.use("round_half_float32"), text)
        return _parenthesised(text, _BINDS[op], least)

    def _wrapped(self, node):
        """An operation that may not fit its type, as C defines it: unsigned, and cast. None: plain text does."""
        kind, op = node.type, node.op
        if kind in ("uint32", "uint64"):
            return None
        left, right = _LEFT.get(op, _BINDS[op]), _LEFT.get(op, _BINDS[op] + 1)
        if op == "<<":
            first = self.expr(node.a, 14)
            unsigned = "u64" if kind == "int64" else "u32"
            return "(%s)((%s)%s << %s)" % (C_TYPES[kind], unsigned, first, self._right(node.b, right))
        if kind in _SMALL:
            first = "(u32)" + self.expr(node.a, 14) if op == "*" and kind == "uint16" else self.expr(node.a, left)
            return "(%s)(%s %s %s)" % (C_TYPES[kind], first, op, self._right(node.b, right))
        return "(%s)(%s)" % (C_TYPES[kind], self._unsigned(node))

    def _unsigned(self, node, least=0):
        """The text of an int32 or int64 in the unsigned type of its size."""
        if isinstance(node, tree.Binary) and node.wraps and node.op in "+-*":
            binds = _BINDS[node.op]
            text = "%s %s %s" % (self._unsigned(node.a, binds), node.op, self._unsigned(node.b, binds + 1))
            return _parenthesised(text, binds, least)
        suffix = "UL" if node.type == "int64" else "U"
        if isinstance(node, tree.Const) and node.value >= 0:
            return "%d%s" % (node.value, suffix)
        return _parenthesised("(%s)%s" % ("u64" if node.type == "int64" else "u32", self.expr(node, 14)), 14, least)

    def _of_select(self, node, least):
        text = "%s ? %s : %s" % (self.expr(node.cond, 5), self.expr(node.a, 4), self.expr(node.b, 4))
        return _parenthesised(text, 3, least)

    # --- Casts ---

    def _of_cast(self, node, least):
        have, want = node.a.type, node.type
        if have == want or (have, want) == ("float16", "float32"):
            return self.expr(node.a, least)
        if want in types.COMPLEX:
            return self._to_complex(node)
        if have in types.COMPLEX:
            raise ValueError("the tree casts %s to %s" % (have, want))
        if want == "bool":
            zero = "0" if have in types.INTEGERS else "0.0" if have == "float64" else "0.0f"
            return _parenthesised("%s != %s" % (self.expr(node.a, 12), zero), 9, least)
        if want == "float16":
            return self._to_half(node.a)
        if have in types.FLOATS and want == "uint64" and self.program.dialect == "c99":
            wide = "float32" if have == "float16" else have
            return "%s(%s)" % (self.program.use("uint64_of_" + wide), self.expr(node.a))
        text = self.expr(node.a, 14)
        if have in types.FLOATS and want in _SMALL:
            text = "(i32)" + text  # C leaves open what a narrower cast of a larger number gives
        elif have in types.FLOATS and want == "uint32":
            text = "(i64)" + text
        elif have in _SMALL and want in _SMALL and have in types.SIGNED:
            text = "(i32)" + text  # libtcc 0.9.27 keeps the sign of an int8 in memory that becomes a uint16
        elif have in types.FLOATS and want in ("int32", "int64") and self.program.converts_back():
            zero = self.program.use("zero") if want == "int64" else "(i32)" + self.program.use("zero")
            return _parenthesised("(%s)%s + %s" % (C_TYPES[want], text, zero), 12, least)
        return _parenthesised("(%s)%s" % (C_TYPES[want], text), 14, least)

    def _to_half(self, a):
        if a.type == "float64":
            return "%s(%s)" % (self.program.use("round_half_float64"), self.expr(a))
        if a.type in ("bool", "int8", "uint8"):
            return "(f32)%s" % self.expr(a, 14)
        text = self.expr(a) if a.type == "float32" else "(f32)" + self.expr(a, 14)
        return "%s(%s)" % (self.program.use("round_half_float32"), text)

    def _to_complex(self, node):
        have, want = node.a.type, node.type
        if have in types.COMPLEX:
            return "%s(%s)" % (self.program.use("%s_of_%s" % (want, have)), self.expr(node.a))
        real = types.real_of(want)
        return "%s(%s, %s)" % (self.program.use("complex_" + real), self.expr(tree.Cast(real, node.a)),
                               self.floating(0, real))

    # --- Calls ---

    def _of_call(self, node, least):
        if node.function is None:
            block = "%s_%s" % (node.name, node.args[0].type)
            if not self.program.has(block):
                raise KernelError("DK010", "Kernels have no function %s() of %s." % (node.name, node.args[0].type))
            return "%s(%s)" % (self.program.use(block), ", ".join(self.value(one) for one in node.args))
        args = [self.passed(one) for one in self.program.passed[id(node.function)]]
        args += [self.pointer(one) if isinstance(one, tree.Buffer) else self.value(one) for one in node.args]
        return "%s(%s)" % (self.program.function_name(node.function), ", ".join(args))

    def passed(self, hidden):
        """A hidden argument of a device function."""
        own = hidden == "drupe_failed" and self.function is self.program.kernel
        return ("&" if own else "") + self.use_hidden(hidden)

    def _of_atomic(self, node, least):
        block = "%s_%s_%s" % (node.buffer.space, node.op, node.buffer.type)
        if node.order and self.program.has("ordered_" + block):
            block = "ordered_" + block
        if not self.program.has(block):
            raise KernelError("DK018", "There is no atomic %s of %s in %s memory." % (
                node.op, node.buffer.type, node.buffer.space))
        args = ["&" + self.element(node.buffer, node.index), *(self.value(one) for one in node.args)]
        return "%s(%s)" % (self.program.use(block), ", ".join(args))

    def _of_query(self, node, least):
        return self.use_hidden(self.place(node))

    def place(self, query):
        raise NotImplementedError


def _shortest(value):
    """The shortest digits that mean this float32."""
    value = struct.unpack("f", struct.pack("f", value))[0]
    for digits in range(1, 9):
        text = "%.*g" % (digits, value)
        if abs(float(text)) < 3.4e38 and struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            break
    else:
        text = "%.9g" % value
    return text if any(c in text for c in ".e") else text + ".0"
