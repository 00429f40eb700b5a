#!/usr/bin/env python3
"""The list of all names of drupe.array in docs/arrays.md, made of what the installed package tells of itself.

usage: tools/array_names.py [--check]     write the list, or exit 1 if it is old

A row is a function with its second names, and the first sentence of its text. The topic of an operation stands below;
that of other functions is their module's. Run it with the Python that drupe is installed in.
"""
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/arrays.md"
BEGIN, END = "<!-- names: written by tools/array_names.py -->", "<!-- end of names -->"

# Topics in the order of the page: names of operations and of functions in C, and modules of drupe/array.
TOPICS = {
    "Making": (
        "asarray empty zeros ones full empty_like zeros_like ones_like full_like arange linspace eye meshgrid tril "
        "triu asnumpy _making _exchange"),
    "Shape": "broadcast_to permute_dims matrix_transpose expand_dims squeeze _shapes _joining _padding",
    "Indexing": "_indexing _places",
    "Arithmetic": (
        "add subtract multiply divide floor_divide remainder pow negative positive abs square sqrt reciprocal sign "
        "maximum minimum clip fmod divmod float_power fabs fmax fmin cbrt rsqrt hypot gcd lcm"),
    "Rounding": "ceil floor trunc round",
    "Exponents and logarithms": "exp expm1 exp2 log log1p log2 log10 logaddexp logaddexp2 ldexp frexp",
    "Angles": (
        "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh deg2rad rad2deg sinc angle unwrap"),
    "Comparison and choice": (
        "equal not_equal less less_equal greater greater_equal where select heaviside nan_to_num _comparing"),
    "Floating-point and complex numbers": (
        "isfinite isinf isnan isposinf isneginf signbit copysign nextafter real imag conj proj real_if_close "
        "iscomplex iscomplexobj isreal isrealobj isscalar"),
    "Logic and bits": (
        "logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_invert "
        "bitwise_left_shift bitwise_right_shift bitwise_count"),
    "Reductions and statistics": "sum prod max min any all _means _statistics _counting",
    "Sorting, searching, sets": "_sorting _order _sets",
    "Products": "matmul _products _einsum",
    "Neighbours, polynomials, averages": "diff _numeric",
    "Types and devices": (
        "astype result_type can_cast isdtype finfo iinfo to_device __array_namespace_info__ allow_host_copies "
        "HostCopyWarning Array DType _inspect _copies _providers"),
    "Expressions": "_fusing _recipe",
    "Constants": "e pi inf nan newaxis euler_gamma",
    "More": "",
}
CONSTANTS = {"e": "Base of the natural logarithm.", "pi": "Half the circumference of a circle of radius 1.",
             "inf": "Infinity.", "nan": "Not a number.", "newaxis": "None: a new axis, as an index.",
             "euler_gamma": "Euler's constant."}


def sentence(thing):
    """The first sentence of a text; a call in front of it is left out."""
    text = (inspect.getdoc(thing) or "").strip()
    first, _, rest = text.partition("\n\n")
    if re.match(r"\w+\(.*\)$", first):
        first = rest.partition("\n\n")[0]
    first = " ".join(first.split())
    end = re.search(r"(?<![A-Z])[.:](?= [A-Z]|$)|\.$", first)
    return (first[:end.start()] if end else first).replace("|", r"\|") + "."


def rows():
    """Of each topic the rows: the first name, all names, the sentence."""
    import drupe.array as da

    places = {name: topic for topic, names in TOPICS.items() for name in names.split()}
    found = {topic: {} for topic in TOPICS}
    first = {}
    for name in sorted(da.__all__, key=lambda name: (name not in places, name)):
        thing = getattr(da, name)
        if isinstance(thing, da.DType) or inspect.ismodule(thing):
            continue
        if name in CONSTANTS:
            found["Constants"][name] = ([name], CONSTANTS[name])
            continue
        if id(thing) in first:
            first[id(thing)].append(name)
            continue
        module = (getattr(thing, "__module__", None) or "").rpartition(".")[2]
        topic = places.get(name) or places.get(module) or "More"
        first[id(thing)] = [name]
        found[topic][name] = (first[id(thing)], sentence(thing))
    for name in sorted(da.__all__):
        if inspect.ismodule(module := getattr(da, name)) and hasattr(module, "__all__"):
            found[f"The module `{name}`"] = {one: ([one], sentence(getattr(module, one))) for one in module.__all__}
    found["`random.Generator`"] = {one: ([one], sentence(getattr(da.random.Generator, one)))
                                   for one in dir(da.random.Generator) if not one.startswith("_")}
    return found


def table():
    lines = [BEGIN]
    for topic, names in rows().items():
        if names:
            lines += ["", f"### {topic}", "", "| name | what it gives |", "|---|---|"]
            lines += [f"| {', '.join(f'`{one}`' for one in all_names)} | {text} |"
                      for _, (all_names, text) in sorted(names.items())]
    return "\n".join([*lines, "", END])


def page():
    """The page with the list as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return before + table() + rest.partition(END)[2]


def main(argv):
    if argv not in ([], ["--check"]):
        print(__doc__)
        return 2
    if PAGE.read_text(encoding="utf-8") == page():
        return 0
    if argv:
        print("docs/arrays.md has not the names that tools/array_names.py writes: run it", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
