"""The parameters of a kernel, read from text: "raw T x, float32 y" as CuPy writes them, "float *x, int n" as C does."""
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from drupe._engine import UnsupportedError
from drupe.raw import scalars

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_DECLARATION = re.compile(r"(?P<type>[^*]*?)(?P<star>\*?)\s*(?:(?:__)?restrict(?:__)?\b)?\s*"
                          r"(?P<name>[A-Za-z_]\w*)\s*\Z")
_QUALIFIERS = re.compile(r"\b(?:__)?(?:global|private)\b|\bvolatile\b|\bconst\b")
_RESERVED = frozenset(("i", "kernel", "global", "local", "constant", "private", "const", "void", "for", "if", "else",
                       "while", "do", "return", "switch", "case", "struct", "union", "enum", "static", "volatile"))


class Parameter(NamedTuple):
    """`kind`: "element" is a number of each array's own place, or one number for all; "raw" an array from its first
    element on, contiguous; "value" one number. The type is `dtype`, or what `placeholder` stands for."""

    name: str
    kind: str
    dtype: "str | None" = None
    placeholder: "str | None" = None
    output: bool = False

    def __str__(self) -> str:
        return f"{'raw ' if self.kind == 'raw' else ''}{self.type_name} {self.name}"

    @property
    def type_name(self) -> str:
        """As text: the placeholder, or NumPy's name."""
        return self.placeholder or self.dtype or ""


def _check_name(name: str, where: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"{where}: {name!r} is no name of a parameter")
    if name in _RESERVED or name.startswith("_"):
        why = "i is the index of the element" if name == "i" else "take another one"
        raise ValueError(f"{where}: the name {name!r} is reserved: {why}")
    return name


def _known_type(text: str, where: str) -> str:
    found = scalars.named(text)
    if found is None:
        raise ValueError(f"{where}: {text!r} is no type. There are {', '.join(scalars.SCALARS)}, C's names of these, "
                         "and single letters such as T, which stand for the type of an argument. A RawKernel has any "
                         "type")
    return found


def _check_twice(parameters: Sequence[Parameter]) -> None:
    names = [one.name for one in parameters]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"there are two parameters of the name {name!r}")


def read_cupy(inputs: str, outputs: str) -> "tuple[tuple[Parameter, ...], tuple[Parameter, ...]]":
    """The parameters of in_params and out_params."""
    read = []
    for text, output in ((inputs, False), (outputs, True)):
        where = "out_params" if output else "in_params"
        if not isinstance(text, str):
            raise TypeError(f"{where} is text such as 'T x, T y', not {type(text).__name__}")
        read.append(tuple(_one_of_cupy(part, where, output) for part in text.split(",") if text.strip()))
    _check_twice(read[0] + read[1])
    return read[0], read[1]


def _one_of_cupy(text: str, where: str, output: bool) -> Parameter:
    words = text.split()
    raw = words[:1] == ["raw"]
    words = words[raw:]
    if len(words) < 2:
        raise ValueError(f"{where}: {text.strip()!r} is no parameter; write a type and a name, as in 'T x'")
    name, written = _check_name(words[-1], where), " ".join(words[:-1])
    kind = "raw" if raw else "element"
    if len(written) == 1 and written.isalpha():
        return Parameter(name, kind, placeholder=written, output=output)
    return Parameter(name, kind, dtype=_known_type(written, where), output=output)


def read_c(arguments: "str | Sequence[Any]") -> "tuple[Parameter, ...]":
    """The parameters of a list of declarations in C, or of objects with `name`, `dtype` and for pointers a class whose
    name begins with "Vector"."""
    if isinstance(arguments, str):
        parts: "Sequence[Any]" = [part for part in re.split(r"[,;]", arguments) if part.strip()]
    else:
        parts = list(arguments)
    read = tuple(_one_of_c(part) if isinstance(part, str) else _one_object(part) for part in parts)
    if not read:
        raise ValueError("the kernel has no arguments; write them as in C: 'float *z, const float *x, float a'")
    _check_twice(read)
    return read


def _one_of_c(text: str) -> Parameter:
    found = _DECLARATION.match(text.strip())
    if not found or not found["type"].strip():
        raise ValueError(f"arguments: {text.strip()!r} is no parameter; write it as in C: 'float *x' or 'float a'")
    name, star = _check_name(found["name"], "arguments"), bool(found["star"])
    if re.search(r"\b(?:__)?(?:local|constant)\b", found["type"]):
        raise UnsupportedError(f"arguments: {text.strip()!r} has memory of another kind; a RawKernel has it")
    constant = re.search(r"\bconst\b", found["type"]) is not None
    dtype = _known_type(" ".join(_QUALIFIERS.sub(" ", found["type"]).split()), "arguments")
    return Parameter(name, "raw" if star else "value", dtype=dtype, output=star and not constant)


def _one_object(thing: Any) -> Parameter:
    name, dtype = getattr(thing, "name", None), getattr(thing, "dtype", None)
    if not isinstance(name, str) or dtype is None:
        raise TypeError(f"arguments are text, or objects with a name and a dtype, not {type(thing).__name__}")
    pointer = type(thing).__name__.startswith("Vector")
    return Parameter(_check_name(name, "arguments"), "raw" if pointer else "value", dtype=scalars.of_dtype(dtype),
                     output=pointer)
