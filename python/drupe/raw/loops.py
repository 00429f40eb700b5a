"""The body of an elementwise kernel: the loops over elements, and what is done for one.

On CPUs there is one loop over a row, which compilers vectorise. On GPUs a work-item loads a *batch* of elements,
computes them, and stores them. So many loads are on their way at once, which is what memory's bandwidth needs.
"""
from collections.abc import Mapping, Sequence

from drupe.raw.text import Operand

_MOST_BATCH = 8


class Loops:
    """`sizes` and `steps` as those of a layout, and whether it `strided`. `parts` are what the user wrote."""

    def __init__(self, operands: "Sequence[Operand]", sizes: "Sequence[int]", steps: "Sequence[str]", strided: bool,
                 language: str, wide: bool, narrow: bool, words: "frozenset[str]", parts: "Mapping[str, str]") -> None:
        self.operands, self.steps, self.strided, self.language = operands, steps, strided, language
        self.wide, self.words, self.parts, self.dims = wide, words, parts, len(sizes)
        self.index = "int" if narrow else "long"
        self.elements = [operand for operand in operands if operand.kind == "element"]
        self.loose = any(operand.kind == "raw" and operand.output for operand in operands)
        self.batch = batch_of(operands)

    def body(self) -> str:
        """All of it."""
        lines = [f"    const {one.declared} {one.name} = _v_{one.name};\n"
                 for one in self.operands if one.kind == "value"]
        names = {one.name for one in self.operands}
        if "n" in self.words and "n" not in names:
            lines.append("    const ptrdiff_t n = _n;\n")
        if "_ind_size" in self.words:
            lines.append("    const ptrdiff_t _ind_size = _n;\n")
        if self.wide:
            loops = self._wide_strided() if self.strided else self._wide_flat()
        else:
            loops = self._strided() if self.strided else self._flat()
        return "".join(lines) + self.parts.get("loop_prep", "") + loops + self.parts.get("after_loop", "")

    # --- CPUs ------------------------------------------------------------------------------------------------

    def _unit(self):
        """Elements depend on no others, unless the operation indexes an output itself."""
        return "" if self.loose else "    _UNIT\n"

    def _places(self, at):
        """Where the element of each operand is, if all lie in one piece."""
        return {one.name: at if step == "1" else "0" for one, step in zip(self.elements, self.steps)}

    def _flat(self):
        element = self._element(self._places("i"))
        return f"{self._unit()}    for (ptrdiff_t i = _begin; i < _end; i++) {{\n{element}    }}\n"

    def _number(self, what):
        """A number of the layout: a size, an operand's offset, or one of its strides."""
        if isinstance(what, int):
            return f"_d.v[{what}]"
        number, dim = what
        count = len(self.elements)
        return f"_d.v[{self.dims + number if dim is None else self.dims + count + number * self.dims + dim}]"

    def _stride(self, number):
        """The stride of the innermost dimension."""
        return self.steps[number] if self.steps[number] != "s" else self._number((number, self.dims - 1))

    def _start(self, number):
        """The place of an operand's element `_at` of row 0."""
        return f"{self._number((number, None))} + (long)_at * {self._stride(number)}"

    def _outer(self, targets, indent):
        """Add to places what the row makes, the last dimension of it first."""
        lines = []
        for dim in range(self.dims - 2, -1, -1):
            lines.append(f"{indent}{{\n{indent}    const {self.index} _size = {self._number(dim)}, _j = _row % _size;\n"
                         f"{indent}    _row /= _size;\n")
            lines += [f"{indent}    {target} += _j * {self._number((number, dim))};\n"
                      for number, target in enumerate(targets)]
            lines.append(f"{indent}}}\n")
        return "".join(lines)

    def _strided(self):
        index, places = self.index, [f"_at_{one.name}" for one in self.elements]
        lines = [f"    while (_begin < _end) {{\n        const {index} _width = {self._number(self.dims - 1)};\n"
                 f"        {index} _row = ({index})_begin / _width, _at = ({index})_begin % _width;\n"
                 f"        const {index} _left = _end - _begin, _run = _width - _at < _left ? _width - _at : _left;\n"]
        where = {}
        for number, (one, place) in enumerate(zip(self.elements, places)):
            lines.append(f"        long {place} = {self._start(number)};\n"
                         f"        const long _step_{one.name} = {self._stride(number)};\n"
                         f"        (void)_step_{one.name};\n")
            inner = {"0": "", "1": " + _k"}.get(self.steps[number], f" + _k * _step_{one.name}")
            where[one.name] = place + inner
        lines.append(self._outer(places, "        "))
        lines.append(f"    {self._unit()}        for (long _k = 0; _k < _run; _k++) {{\n"
                     "            const ptrdiff_t i = _begin + _k;\n            (void)i;\n"
                     f"{self._element(where)}        }}\n        _begin += _run;\n    }}\n")
        return "".join(lines)

    def _element(self, where):
        """One element: `continue` and `break` of the operation lead to the stores."""
        lines = [f"        {'' if one.output else 'const '}{one.declared} {one.name} = "
                 f"{one.loaded(where[one.name], self.language)};\n" for one in self.elements]
        lines.append(f"        do {{{self.parts['operation']}        }} while (0);\n")
        lines += [f"        {one.stored(where[one.name], self.language)}\n" for one in self.elements if one.output]
        return "".join(lines)

    # --- GPUs ------------------------------------------------------------------------------------------------

    def _wide_flat(self):
        last = self.batch - 1
        return ("    const long _step = get_global_size(0);\n    long _i = get_global_id(0);\n"
                f"    for (; _i + {last} * _step < _n; _i += {self.batch} * _step) {{\n"
                + self._batched(self._places("_i + _u * _step"), "_i + _u * _step") + "    }\n"
                "    for (; _i < _n; _i += _step) {\n        const ptrdiff_t i = _i;\n"
                + self._element(self._places("i")) + "    }\n")

    def _wide_strided(self):
        """Work-items have two dimensions: places in a row, and batches of neighbouring rows."""
        index, places = self.index, [f"_at_{one.name}" for one in self.elements]
        start = "".join(f"            long {place} = {self._start(number)};\n" for number, place in enumerate(places))
        batch = self.batch
        kept = "".join(f"        long _o_{one.name}[{batch}];\n" for one in self.elements)
        keep = "".join(f"            _o_{one.name}[_u] = _at_{one.name};\n" for one in self.elements)
        outer = self._outer(places, "            ")
        return (f"    const {index} _width = {self._number(self.dims - 1)}, _rows = ({index})_n / _width;\n"
                f"    const {index} _at = get_global_id(0);\n"
                f"    {index} _first = (({index})get_global_id(1)) * {batch};\n"
                "    if (_at >= _width) _first = _rows;\n"
                f"    if (_first < _rows && _rows - _first >= {batch}) {{\n{kept}        #pragma unroll\n"
                f"        for (int _u = 0; _u < {batch}; _u++) {{\n            {index} _row = _first + _u;\n"
                f"{start}{outer}{keep}        }}\n"
                + self._batched({one.name: f"_o_{one.name}[_u]" for one in self.elements},
                                "((long)_first + _u) * _width + _at")
                + f"        _first = _rows;\n    }}\n    for (; _first < _rows; _first++) {{\n"
                f"            {index} _row = _first;\n            const ptrdiff_t i = (long)_first * _width + _at;\n"
                f"{start}{outer}" + self._element(dict(zip((one.name for one in self.elements), places))) + "    }\n")

    def _batched(self, where, index):
        """A batch of elements, of which `_u` is one."""
        loop = f"        #pragma unroll\n        for (int _u = 0; _u < {self.batch}; _u++) "
        lines = [f"        {one.declared} _l_{one.name}[{self.batch}];\n" for one in self.elements]
        lines.append(loop + "{\n" + "".join(
            f"            _l_{one.name}[_u] = {one.loaded(where[one.name], self.language)};\n" for one in self.elements)
            + "        }\n")
        lines.append(loop + f"{{\n        const ptrdiff_t i = {index};\n")
        lines += [f"        {'' if one.output else 'const '}{one.declared} {one.name} = _l_{one.name}[_u];\n"
                  for one in self.elements]
        lines.append(f"        do {{{self.parts['operation']}        }} while (0);\n")
        outputs = [one for one in self.elements if one.output]
        lines += [f"        _l_{one.name}[_u] = {one.name};\n" for one in outputs]
        lines.append("        }\n" + loop + "{\n")
        for one in outputs:  # stored() is about the name of a variable
            lines.append(f"            {one.declared} {one.name} = _l_{one.name}[_u];\n"
                         f"            {one.stored(where[one.name], self.language)}\n")
        return "".join([*lines, "        }\n"])


def batch_of(operands: "Sequence[Operand]") -> int:
    """How many elements a work-item of a GPU takes: 16 bytes of the smallest type, but a few at least."""
    sizes = [one.scalar.size for one in operands if one.kind == "element"]
    return min(_MOST_BATCH, max(4, 16 // min(sizes, default=4)))
