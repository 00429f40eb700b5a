"""The text of a kernel: its head, its parameters, and the loops over elements, in OpenCL C or in C99.

Both have one body on CPUs, written for the elements from `_begin` to before `_end` of `_n`: each work-item has a chunk
of them. On GPUs it has one, or the body does without these names.
"""
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from drupe._engine import UnsupportedError
from drupe.raw import functions, scalars
from drupe.raw.foreign import without_comments
from drupe.raw.parameters import Parameter

_WORD = re.compile(r"[A-Za-z_]\w*")
_SIZE = re.compile(r"\b(_ind|_in_ind|_out_ind)\.size\(\)")
_KEPT = frozenset(("main", "min", "max", "abs", "clamp", "dot", "cross", "length", "distance", "normalize", "mix",
                   "step", "sign", "select", "any", "all", "mad", "rsqrt", "native", "barrier", "vload", "vstore"))

_HALF = """\
static inline __attribute__((unused)) float _half_load(unsigned short h)
{
    unsigned int sign = (unsigned int)(h & 0x8000) << 16, rest = h & 0x7fff, bits = rest << 13;
    float x;
    __builtin_memcpy(&x, &bits, 4);
    x *= 0x1p112f;
    __builtin_memcpy(&bits, &x, 4);
    bits |= sign | (rest >= 0x7c00 ? 0x7f800000 : 0);
    __builtin_memcpy(&x, &bits, 4);
    return x;
}
static inline __attribute__((unused)) unsigned short _half_store(float x)
{
    unsigned int bits, size, small;
    float tiny;
    __builtin_memcpy(&bits, &x, 4);
    size = bits & 0x7fffffff;
    __builtin_memcpy(&tiny, &size, 4);
    tiny += 0.5f;
    __builtin_memcpy(&small, &tiny, 4);
    unsigned int normal = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
    unsigned int finite = size < 0x38800000 ? small - 0x3f000000 : normal;
    unsigned int high = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
    return (unsigned short)((bits >> 16 & 0x8000) | (size >= 0x47800000 ? high : finite));
}
"""


# In front of a loop whose rounds do not depend on each other.
_UNIT = """\
#ifdef __clang__
#define _UNIT _Pragma("clang loop vectorize(assume_safety)")
#else
#define _UNIT{0}
#endif
"""


class Slot(NamedTuple):
    """A parameter of a compiled kernel. `number` is the engine's number of its type, 0 for others."""

    type: str
    name: str
    number: int = 0
    pointer: bool = False
    constant: bool = True
    space: str = "global"

    def declared(self, language: str) -> str:
        """As it stands among parameters."""
        space = f"{self.space} " if self.pointer and language == "opencl" else ""
        constant = "const " if self.constant else ""
        return f"{space}{constant}{self.type} {'*' if self.pointer else ''}{self.name}"


class Operand(NamedTuple):
    """A parameter of the user's, as one text has it. `kind` is "element" of an array, "raw" or "value"; `declared` the
    type that the user sees, such as T."""

    name: str
    kind: str
    scalar: scalars.Scalar
    declared: str
    output: bool

    @property
    def pointer(self) -> str:
        return self.name if self.kind == "raw" else f"_p_{self.name}"

    def slot(self, language: str) -> Slot:
        """The parameter of the compiled kernel."""
        if self.kind == "value":
            return Slot(scalars.c_memory(self.scalar, language) if self.scalar.name == "bool"
                        else scalars.c_value(self.scalar, language), f"_v_{self.name}",
                        10 if self.scalar.name == "float16" else self.scalar.number)
        return Slot(scalars.c_memory(self.scalar, language), self.pointer, self.scalar.number, True, not self.output)

    def loaded(self, index: str, language: str) -> str:
        """The element at a place, as an expression."""
        if self.scalar.name == "float16":
            if language == "opencl":
                return f"vload_half({index}, {self.pointer})"
            return f"_half_load({self.pointer}[{index}])"
        return f"{self.pointer}[{index}]" + (" != 0" if self.scalar.name == "bool" else "")

    def stored(self, index: str, language: str) -> str:
        """The statement that writes the variable of this name."""
        if self.scalar.name != "float16":
            return f"{self.pointer}[{index}] = {self.name};"
        if language == "opencl":
            return f"vstore_half_rte({self.name}, {index}, {self.pointer});"
        return f"{self.pointer}[{index}] = _half_store({self.name});"


def operand(parameter: Parameter, kind: str, scalar: scalars.Scalar, language: str) -> Operand:
    """What a text has of a parameter."""
    declared = parameter.placeholder or scalars.c_value(scalar, language)
    return Operand(parameter.name, kind, scalar, declared, parameter.output)


def words_of(texts: "Iterable[str]") -> "frozenset[str]":
    """All names in texts of C."""
    return frozenset(word for text in texts for word in _WORD.findall(without_comments(text)))


def sizes_as_names(text: str, raw: "Iterable[str]") -> str:
    """`_ind.size()` and `x.size()` as CuPy writes them, as names; columns stay what they were."""
    text = _SIZE.sub(lambda found: f"{found[1]}_size  ", text)
    for name in raw:
        text = re.sub(rf"\b{name}\.size\(\)", f"{name}_size  ", text)
        method = re.search(rf"\b{name}\.(shape|strides|ndim)\b", text)
        if method:
            raise UnsupportedError(f"{method[0]} is C++: pass what you need of it as a parameter, such as 'int32 "
                                   f"rows'; {name}.size() is known")
    return text


def kernel_name(name: str, words: "Set[str]") -> str:
    """A name of a function in the text that is none of the user's."""
    if name == "kernel":  # the name that CuPy gives where there is none
        name = "elementwise"
    taken = name in words or name in _KEPT or name in functions.MATH
    return f"{name}_kernel" if taken else name


def head(language: str, words: "Set[str]", used: "Iterable[scalars.Scalar]",
         placeholders: "Mapping[str, scalars.Scalar]", preamble: str) -> str:
    """What stands in front of the functions of a text."""
    names = {scalar.name for scalar in used} | {scalar.name for scalar in placeholders.values()}
    double = "float64" in names
    if language == "opencl":
        text = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if double or "double" in words else ""
        text += functions.in_opencl(words, double)
        text += _UNIT.format("")
    else:
        text = functions.in_c(words) + _UNIT.format(' _Pragma("GCC ivdep")')
        if "float16" in names:
            text += _HALF
    text += functions.of_numpy(words, language)
    for name, scalar in sorted(placeholders.items()):
        text += f"typedef {scalars.c_value(scalar, language)} {name};\n"
    return text + preamble


def kernel(language: str, name: str, slots: "Sequence[Slot]", body: str, wide: bool = False) -> str:
    """A kernel with a body for the elements from `_begin` to before `_end` of `_n`. Two parameters follow those that
    are given: `_n`, and how many of these a work-item takes. A `wide` kernel has the first one alone, and the body
    does the rest."""
    slots = (*slots, Slot("long", "_n", 7), Slot("long", "_chunk", 7))
    if language == "opencl":
        declared = ", ".join(slot.declared(language) for slot in (slots[:-1] if wide else slots))
        ours = "" if wide else ("    long _begin = (long)get_global_id(0) * _chunk;\n"
                                "    const long _end = _begin + _chunk < _n ? _begin + _chunk : _n;\n")
        return f"kernel void {name}({declared})\n{{\n{ours}{body}}}\n"
    lines = [f"static void drupe_run_{name}(drupe_size_ _first, drupe_size_ _last, drupe_size_ _all,\n"
             "    const void *const *_args)\n{\n"]
    for number, slot in enumerate(slots, 1):
        type = f"{'const ' if slot.constant else ''}{slot.type} "
        lines.append(f"    {type}*{slot.name} = *({type}*const *)_args[{number}];\n" if slot.pointer else
                     f"    const {slot.type} {slot.name} = *(const {slot.type} *)_args[{number}];\n")
    lines.append("    (void)_all;\n    long _begin = (long)_first * _chunk;\n"
                 "    const long _end = (long)_last * _chunk < _n ? (long)_last * _chunk : _n;\n")
    return "".join(lines) + f"{body}}}\n{_parameter_table(name, slots)}"


def _parameter_table(name: str, slots: "Sequence[Slot]") -> str:
    rows = ""
    for slot in slots:
        type, shown = slot.type + " *" * slot.pointer, slot.name.removeprefix("_p_").removeprefix("_v_")
        rows += (f"    {{{int(slot.pointer)}, {slot.number}, {int(slot.pointer and slot.constant)}, sizeof({type}), "
                 f"\"{shown}\", \"{type}\"}},\n")
    return f"static const drupe_param_ drupe_params_{name}[] = {{\n{rows}    {{0, 0, 0, 0, 0, 0}}}};\n"


def table(language: str, kernels: "Mapping[str, int]") -> str:
    """What ends a text: for C the table of its kernels, by name with the numbers of their parameters."""
    if language == "opencl":
        return ""
    rows = "".join(f"    {{\"{name}\", {count}, drupe_params_{name}, drupe_run_{name}}},\n"
                   for name, count in kernels.items())
    return f"const drupe_entry_ drupe_entries_[] = {{\n{rows}    {{0, 0, 0, 0}}}};\n"


def dims_struct(count: int) -> str:
    """The type of `_d`, the numbers of a layout."""
    return f"typedef struct {{ long v[{count}]; }} _dims;\n"
