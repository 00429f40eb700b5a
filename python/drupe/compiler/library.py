"""The library of kernels: blocks of C (clib/), of which a program's text gets those that it uses.

A block begins with a line `//: NAME : NEEDS` and ends at the next one. NEEDS are the names of blocks that its text
calls. The function for tree.Call "exp" of float32 is the block `exp_float32` and the C function `drupe_exp_float32`.

A line `//: NAME : NEEDS | F = a b | T = float32 float64` makes one block for each F and T: `$F` and `$T` stand for
them, in the line and in the text. Of the type `$T`, `$C` is the C type, `$U` the unsigned one of its size, `$W` that
in which C computes without overflow, `$S` the suffix of a float's constants and of C's functions, `$R` the type of a
complex number's parts and `$P` their C type.

common_*.c are for both dialects, c99_*.c and opencl_*.c for one; a dialect's own block wins. Of two in equal places the
one with fewer variables wins, so that a function written for one type replaces that of a list.
"""
import functools
import itertools
import pathlib
import re

from drupe.compiler import types

_OURS = re.compile(r"^// clang-format .*$", re.M)
_FOLDER = pathlib.Path(__file__).parent / "clib"
C_TYPES = {"bool": "int", "float16": "f32", "complex64": "c64", "complex128": "c128",
           **{name: name[0] + name.lstrip("uintfloat") for name in types.INTEGERS + ("float32", "float64")}}
_LISTS = {"ints": types.INTEGERS, "signed": types.SIGNED, "unsigned": types.UNSIGNED,
          "floats": ("float32", "float64"), "complexes": types.COMPLEX}


class _Block:
    def __init__(self, needs, text, values):
        self.needs, self.text, self.values = needs, text, values


def _of_type(name):
    """What stands for a type in a template."""
    real, c = types.real_of(name), C_TYPES[name]
    size = 8 * types.SIZES[name]
    return {"T": name, "C": c, "U": "u%d" % size, "W": "u%d" % max(size, 32), "R": real, "P": C_TYPES[real],
            "S": "f" if real == "float32" else ""}


def _filled(text, values):
    return re.sub(r"\$([A-Z])", lambda match: values[match[1]], text)


def _expanded(head):
    """(name, values, needs) of each block that a head line makes."""
    names, _, rest = head.partition(":")
    needs, *variables = rest.split("|")
    choices = []
    for variable in variables:
        letter, _, words = variable.partition("=")
        listed = [name for word in words.split() for name in _LISTS.get(word, (word,))]
        choices.append([_of_type(one) if letter.strip() == "T" else {letter.strip(): one} for one in listed])
    for chosen in itertools.product(*choices):
        values = {key: value for one in chosen for key, value in one.items()}
        yield _filled(names.strip(), values), values, needs


@functools.cache
def _blocks(dialect):
    """name → _Block, of all files of a dialect."""
    found, ranks = {}, {}
    for path in sorted(_FOLDER.glob("*.c")):
        kind = path.name.partition("_")[0]
        if kind not in ("common", dialect):
            continue
        for part in re.split(r"^//:", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
            head, _, text = part.partition("\n")
            for name, values, needs in _expanded(head.strip()):
                rank = (kind == dialect, -len(values))
                if name not in found or rank > ranks[name]:
                    found[name], ranks[name] = _Block(needs, _OURS.sub("", text).strip(), values), rank
    return found


def has(name, dialect):
    return name in _blocks(dialect)


def text_of(names, dialect):
    """The text of these blocks and of all that they need, needs first."""
    blocks, done, parts = _blocks(dialect), set(), []

    def add(name):
        if name in done:
            return
        done.add(name)
        block = blocks[name]
        for need in _filled(block.needs, block.values).split():
            add(need)
        parts.append(_filled(block.text, block.values))

    for name in names:
        add(name)
    return "\n".join(parts)
