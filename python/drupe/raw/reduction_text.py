"""The text of a reduction, and what it is told of a call.

A work-item reduces a part of what goes into one result, a *chunk*, by itself ("rows": the elements of a result lie side
by side; "columns": those of neighbouring results do, so that it reduces up to 256 results at once). On GPUs a group may
do that together ("tree"). Where there are several chunks, their results, the partials, are reduced by a second kernel.
No neutral element is needed for that, because a chunk begins with its first element.
"""
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from drupe.raw import building, text
from drupe.raw.scalars import Scalar, c_value
from drupe.raw.text import Operand, Slot

# Partial results of a loop over a long row, and of one over a shorter one: so no element waits for the one before.
LANES = (64, 8)
BLOCK = 256  # results of a work-item of "columns"


class Parts(NamedTuple):
    """What the user wrote, as parts of a text."""

    map_expr: str
    reduce_expr: str
    post_map_expr: str
    identity: str
    preamble: str


class Shape(NamedTuple):
    """Which text a call needs: "rows", "columns" or "tree", the numbers of dimensions that are reduced and that stay,
    and what is known of the innermost stride of each element operand."""

    walk: str
    reduced: int
    kept: int
    steps: "tuple[str, ...]"
    wide: bool


def field_names(shape: Shape, elements: "Sequence[str]") -> "list[str]":
    """The names of the numbers that a kernel is told, in their order."""
    names = ["results", "reduced", "chunk", "chunks", "blocks"]
    names += [f"r{dim}" for dim in range(shape.reduced)] + [f"k{dim}" for dim in range(shape.kept)]
    for name in elements:
        names.append(f"{name} at")
        names += [f"{name} r{dim}" for dim in range(shape.reduced)] + [f"{name} k{dim}" for dim in range(shape.kept)]
    return names


class ReductionText:
    """Puts the text together. `declared` is the type of partial results as a text; `letters` the placeholders."""

    def __init__(self, name: str, operands: "Sequence[Operand]", outputs: "Sequence[Operand]", declared: str,
                 parts: Parts, shape: Shape, language: str, words: "frozenset[str]", letters: "Mapping[str, Scalar]",
                 size: int) -> None:
        self.name, self.operands, self.outputs, self.declared = name, operands, outputs, declared
        self.parts, self.shape, self.language, self.words, self.letters = parts, shape, language, words, letters
        self.elements = [one for one in operands if one.kind == "element"]
        self.raw = [one for one in operands if one.kind == "raw"]
        self.values = [one for one in operands if one.kind == "value"]
        self.sized = [one for one in self.raw if f"{one.name}_size" in words]
        self.index = {name: place for place, name in
                      enumerate(field_names(shape, [one.name for one in self.elements]))}
        self.space = "global " if language == "opencl" else ""
        self.size = size

    def slots(self) -> "list[Slot]":
        """The parameters of the kernel that reads the operands."""
        slots = [one.slot(self.language) for one in (*self.operands, *self.outputs)]
        slots += [Slot("long", f"{one.name}_size", 7) for one in self.sized]
        byte = "uchar" if self.language == "opencl" else "unsigned char"
        return [*slots, Slot(byte, "_partial", 2, True, False), Slot("_dims", "_d")]

    def kernels(self) -> "dict[str, int]":
        """The names of the kernels of the text, and the numbers of their parameters."""
        return {self.name: len(self.slots()) + 2, f"{self.name}_join": len(self.slots()) + 2}

    def source(self) -> str:
        """The whole text."""
        used = [one.scalar for one in (*self.operands, *self.outputs)]
        lines = [text.head(self.language, self.words, used, self.letters, self.parts.preamble),
                 text.dims_struct(len(self.index)), f"typedef {self.declared} _R;\n",
                 f"typedef char _fits[sizeof(_R) <= {self.size} ? 1 : -1];\n", self._functions()]
        slots = self.slots()
        if self.shape.walk == "tree":
            lines.append(self._tree(self.name, True))
        else:
            walk = self._rows() if self.shape.walk == "rows" else self._apart() if self.shape.wide else self._columns()
            lines.append(text.kernel(self.language, self.name, slots, walk))
        if self.shape.wide:
            lines.append(self._tree(f"{self.name}_join", False))
        else:
            lines.append(text.kernel(self.language, f"{self.name}_join", slots, self._join()))
        return "".join(lines) + text.table(self.language, self.kernels())

    def d(self, name: str) -> str:
        """A number of the layout, as the text has it."""
        return f"_d.v[{self.index[name]}]"

    # --- Functions of one element ----------------------------------------------------------------------------

    def _context(self, without: str = "") -> "tuple[list[str], list[str]]":
        """What every expression sees, but for one name: raw arrays, numbers and sizes; as parameters, and as
        arguments."""
        seen = {one.name: (one.slot(self.language).declared(self.language), one.name) for one in self.raw}
        seen.update((one.name, (f"const {one.declared} {one.name}", f"({one.declared})_v_{one.name}"))
                    for one in self.values)
        seen.update((name, (f"const ptrdiff_t {name}", name)) for name in (f"{one.name}_size" for one in self.sized))
        names = {one.name for one in (*self.operands, *self.outputs)}
        total = f"({self.d('results')} * {self.d('reduced')})"
        for word, value in (("_in_ind_size", total), ("_out_ind_size", self.d("results")), ("n", total)):
            if word in self.words and word not in names:
                seen[word] = (f"const ptrdiff_t {word}", value)
        seen.pop(without, None)
        return [one[0] for one in seen.values()], [one[1] for one in seen.values()]

    def _functions(self):
        declared, _given = self._context()
        mapped = [f"const {one.declared} {one.name}" for one in self.elements]
        mapped += [*declared, "const ptrdiff_t _J", *([] if "i" in {one.name for one in self.operands} else
                                                      ["const ptrdiff_t i"])]
        head = "static inline __attribute__((unused))"
        lines = [f"{head} _R _map({', '.join(mapped)}) {{ return {self.parts.map_expr}}}\n",
                 f"{head} _R _reduce(const _R a, const _R b) {{ return {self.parts.reduce_expr}}}\n"]
        if self.parts.identity:
            lines.append(f"{head} _R _identity(void) {{ return {self.parts.identity}}}\n")
        after = [one.slot(self.language).declared(self.language) for one in self.outputs]
        after = ["const _R a", *after, *self._context("a")[0], "const long _o"]
        lines.append(f"{head} void _post({', '.join(after)})\n{{\n")
        lines += [f"    {one.declared} {one.name} = {one.loaded('_o', self.language)};\n" for one in self.outputs]
        lines.append(f"    do {{{self.parts.post_map_expr}    }} while (0);\n")
        lines += [f"    {one.stored('_o', self.language)}\n" for one in self.outputs]
        return "".join([*lines, "}\n"])

    def _mapped(self, where, index):
        """The call of the map for elements at places."""
        given = [one.loaded(where[one.name], self.language) for one in self.elements]
        given += [*self._context()[1], index, index]
        return f"_map({', '.join(given)})"

    def _ended(self, value, result):
        """What is done with a chunk's result."""
        given = [value, *(one.pointer for one in self.outputs), *self._context("a")[1], result]
        return (f"if ({self.d('chunks')} == 1) _post({', '.join(given)});\n"
                f"        else (({self.space}_R *)_partial)[_c * {self.d('results')} + {result}] = {value};\n")

    # --- Loops -----------------------------------------------------------------------------------------------

    def _chunk(self):
        return (f"    const long _reduced = {self.d('reduced')}, _size = {self.d('chunk')};\n"
                "    while (_begin < _end) {\n")

    def _range(self):
        return ("        long _r = _c * _size;\n"
                "        const long _stop = _r + _size < _reduced ? _r + _size : _reduced;\n")

    def _spread(self, rest, prefix, dims, names, indent="        "):
        """Add to the place of each element operand what the dimensions of a linear number make, the last one first."""
        lines = []
        for dim in range(dims - 1, -1, -1):
            if dim == 0:
                index = rest
            else:
                index = f"{rest} % {self.d(prefix + str(dim))}"
            lines += [f"{indent}{target} += ({index}) * {self.d(f'{one.name} {prefix}{dim}')};\n"
                      for one, target in zip(self.elements, names)]
            if dim:
                lines.append(f"{indent}{rest} /= {self.d(prefix + str(dim))};\n")
        return "".join(lines) if self.elements else ""

    def _runs(self, inner):
        """The loop over stretches of the innermost reduced dimension: from _at to before _at + _run, with the element
        operands at _x + index * stride."""
        last = self.shape.reduced - 1
        names = [f"_in_{one.name}" for one in self.elements]
        lines = [f"        while (_r < _stop) {{\n            const long _width = {self.d(f'r{last}')};\n"
                 "            long _row = _r / _width;\n            const long _at = _r % _width;\n"
                 "            const long _run = _width - _at < _stop - _r ? _width - _at : _stop - _r;\n"]
        for one, name in zip(self.elements, names):
            lines.append(f"            long {name} = _base_{one.name} + _at * {self.d(f'{one.name} r{last}')};\n")
        lines.append(self._spread("_row", "r", last, names, "            ") if last else "            (void)_row;\n")
        return "".join([*lines, inner, "            _r += _run;\n        }\n"])

    def _bases(self, number, dims):
        lines = [f"        long _base_{one.name} = {self.d(f'{one.name} at')};\n" for one in self.elements]
        lines.append(f"        long _rest = {number};\n        (void)_rest;\n")
        return "".join(lines) + self._spread("_rest", "k", dims, [f"_base_{one.name}" for one in self.elements])

    def _steps(self, prefix, dim):
        """The stride of the innermost dimension, for each element operand."""
        return {one.name: step if step != "s" else self.d(f"{one.name} {prefix}{dim}")
                for one, step in zip(self.elements, self.shape.steps)}

    def _rows(self):
        steps = self._steps("r", self.shape.reduced - 1)

        def at(index):
            where = {one.name: f"_in_{one.name} + ({index}) * {steps[one.name]}" for one in self.elements}
            return self._mapped(where, f"_r + {index}")

        inner = "            long _k = 1;\n            _R _part;\n            "
        for lanes in () if self.shape.wide else LANES:
            inner += (f"if (_run >= {2 * lanes}) {{\n                _R _lane[{lanes}];\n"
                      f"                for (int _l = 0; _l < {lanes}; _l++) _lane[_l] = {at('_l')};\n"
                      f"                for (_k = {lanes}; _k + {lanes} <= _run; _k += {lanes})\n"
                      f"                    _UNIT for (int _l = 0; _l < {lanes}; _l++)\n"
                      f"                        _lane[_l] = _reduce(_lane[_l], {at('_k + _l')});\n"
                      f"                for (int _half = {lanes // 2}; _half; _half /= 2)\n"
                      "                    for (int _l = 0; _l < _half; _l++)\n"
                      "                        _lane[_l] = _reduce(_lane[_l], _lane[_l + _half]);\n"
                      "                _part = _lane[0];\n            } else ")
        inner += (f"_part = {at('0')};\n"
                  f"            for (; _k < _run; _k++) _part = _reduce(_part, {at('_k')});\n"
                  "            _acc = _any ? _reduce(_acc, _part) : _part;\n            _any = 1;\n")
        results = self.d("results")
        return (self._chunk() + f"        const long _o = _begin % {results}, _c = _begin / {results};\n"
                + self._range() + self._bases("_o", self.shape.kept)
                + "        _R _acc;\n        int _any = 0;\n" + self._runs(inner)
                + "        " + self._ended("_acc", "_o") + "        _begin++;\n    }\n")

    def _columns(self):
        last, block = self.shape.kept - 1, BLOCK
        steps = self._steps("k", last)
        lines = [self._chunk(), f"        const long _wide = {self.d(f'k{last}')};\n"
                 f"        const long _across = (_wide + {block - 1}) / {block};\n"
                 f"        const long _b = _begin % {self.d('blocks')}, _c = _begin / {self.d('blocks')};\n"
                 f"        const long _from = _b % _across * {block};\n"
                 f"        const int _count = _wide - _from < {block} ? _wide - _from : {block};\n", self._range(),
                 f"        const long _o = _b / _across * _wide + _from;\n", self._bases("_b / _across", last)]
        lines += [f"        _base_{one.name} += _from * {self.d(f'{one.name} k{last}')};\n" for one in self.elements]
        inner_step = {one.name: self.d(f"{one.name} r{self.shape.reduced - 1}") for one in self.elements}
        where = {one.name: f"_in_{one.name} + _k * {inner_step[one.name]} + _l * {steps[one.name]}"
                 for one in self.elements}
        mapped = self._mapped(where, "_r + _k")
        inner = ("            long _k = 0;\n            if (!_any) {\n"
                 f"                for (int _l = 0; _l < _count; _l++) _acc[_l] = {mapped};\n"
                 "                _any = 1;\n                _k = 1;\n            }\n"
                 "            for (; _k < _run; _k++) {\n")
        reduce = f"_acc[_l] = _reduce(_acc[_l], {mapped});\n"
        inner += (f"                if (_count == {block}) {{\n                    _UNIT\n"
                  f"                    for (int _l = 0; _l < {block}; _l++) {reduce}"
                  "                    continue;\n                }\n"  # a loop of a known length is better code
                  f"                for (int _l = 0; _l < _count; _l++) {reduce}"
                 "            }\n")
        lines += [f"        _R _acc[{block}];\n        int _any = 0;\n", self._runs(inner),
                  "        for (int _l = 0; _l < _count; _l++) {\n        ", self._ended("_acc[_l]", "(_o + _l)"),
                  "        }\n        _begin++;\n    }\n"]
        return "".join(lines)

    def _apart(self):
        """On GPUs a work-item takes every so-manieth element of one result, so that neighbours read neighbours."""
        results, chunks = self.d("results"), self.d("chunks")
        return (f"    for (; _begin < _end; _begin++) {{\n        const long _stop = {self.d('reduced')};\n"
                f"        const long _o = _begin % {results}, _c = _begin / {results};\n"
                + self._bases("_o", self.shape.kept) + "        _R _acc;\n"
                + self._every("_c", chunks, self._element(), True) + "        " + self._ended("_acc", "_o") + "    }\n")

    def _join(self):
        """Work-items are results; their partials are reduced."""
        results = self.d("results")
        given = ["_acc", *(one.pointer for one in self.outputs), *self._context("a")[1], "_begin"]
        first = f"const {self.space}_R *_parts = (const {self.space}_R *)_partial + _begin;\n"
        if self.parts.identity:
            begin = f"        _R _acc = {self.d('chunks')} ? _parts[0] : _identity();\n"
        else:
            begin = "        _R _acc = _parts[0];\n"
        return (f"    for (; _begin < _end; _begin++) {{\n        {first}{begin}"
                f"        for (long _c = 1; _c < {self.d('chunks')}; _c++)\n"
                f"            _acc = _reduce(_acc, _parts[_c * {results}]);\n"
                f"        _post({', '.join(given)});\n    }}\n")

    # --- Groups on GPUs --------------------------------------------------------------------------------------

    def _tree(self, name, elements):
        """A kernel whose groups reduce one chunk each: of elements, or all partials of one result."""
        slots = [*self.slots(), Slot("_R", "_tree", 0, True, False, "local")]
        declared = ", ".join(slot.declared("opencl") for slot in slots)
        results = self.d("results")
        lines = [f"kernel void {name}({declared})\n{{\n"
                 "    const int _id = get_local_id(0), _many = get_local_size(0);\n"
                 f"    const long _o = get_group_id(0) % {results}, _c = get_group_id(0) / {results};\n"
                 f"    const long _reduced = {self.d('reduced')}, _size = {self.d('chunk')};\n"]
        if elements:
            lines += [self._range(), self._bases("_o", self.shape.kept)]
        else:
            lines.append(f"    const long _r = 0, _stop = {self.d('chunks')};\n"
                         f"    const {self.space}_R *_parts = (const {self.space}_R *)_partial + _o;\n")
        value = self._element() if elements else f"_parts[_i * {results}]"
        lines.append("    _R _acc;\n    const int _active = _stop - _r < _many ? _stop - _r : _many;\n"
                     f"    if (_id < _active) {{\n{self._every('_r + _id', '_many', value, elements)}"
                     "        _tree[_id] = _acc;\n    }\n"
                     "    for (int _half = 1; _half < _active; _half *= 2) {\n"
                     "        barrier(CLK_LOCAL_MEM_FENCE);\n"
                     "        if (_id % (2 * _half) == 0 && _id + _half < _active)\n"
                     "            _tree[_id] = _reduce(_tree[_id], _tree[_id + _half]);\n    }\n")
        given = [*(one.pointer for one in self.outputs), *self._context("a")[1], "_o"]
        if elements:
            ended = self._ended("_acc", "_o")
            lines.append(f"    if (_id == 0) {{\n        _acc = _tree[0];\n        {ended}    }}\n}}\n")
        else:
            empty = "_active > 0 ? _tree[0] : _identity()" if self.parts.identity else "_tree[0]"
            lines.append(f"    if (_id == 0) _post({', '.join([empty, *given])});\n}}\n")
        return "".join(lines)

    def _element(self):
        """The value of element `_i` along the reduced dimensions."""
        return self._mapped({one.name: f"_in_{one.name}" for one in self.elements}, "_i")

    def _every(self, start, step, value, elements):
        """Reduce elements from `start` on, a step apart, into `_acc`: four at a time, so that four loads are on their
        way at once."""
        def at(target, index):
            lines = f"{{ const long _i = {index};\n"
            if elements:
                lines += "".join(f"            long _in_{one.name} = _base_{one.name};\n" for one in self.elements)
                lines += "            long _row = _i;\n            (void)_row;\n"
                lines += self._spread("_row", "r", self.shape.reduced, [f"_in_{one.name}" for one in self.elements],
                                      "            ")
            return f"        {lines}            {target} = {value}; }}\n"

        four = "".join(at(f"_four[{number}]", f"_at + {number} * _step") for number in range(4))
        return (f"        const long _step = {step};\n        long _at = {start} + _step;\n" + at("_acc", start)
                + "        for (; _at + 3 * _step < _stop; _at += 4 * _step) {\n        _R _four[4];\n" + four
                + "        _acc = _reduce(_acc, _reduce(_reduce(_four[0], _four[1]), _reduce(_four[2], _four[3])));\n"
                "        }\n        for (; _at < _stop; _at += _step) {\n        _R _next;\n" + at("_next", "_at")
                + "        _acc = _reduce(_acc, _next);\n        }\n")


def parts_of(code: "Mapping[str, str]") -> Parts:
    """The parts as they stand in a text."""
    return Parts(*(building.part(name, code[name], "" if name == "preamble" else ";") if code.get(name)
                   else "" for name in Parts._fields))


def value_type(scalar: Scalar, language: str) -> str:
    """The type of partial results; a bool has none of its own in the memory of a group."""
    return "int" if scalar.name == "bool" else c_value(scalar, language)
