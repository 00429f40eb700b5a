"""Functions that expressions of kernels may call on every device, beside those that OpenCL C and C have in common.

A text gets only those that it mentions. In C the functions of <tgmath.h> take floats and doubles by one name, as those
of OpenCL C do; in OpenCL C the names of C for floats (sqrtf) are added.
"""
from collections.abc import Set

from drupe.raw import scalars

# Both languages have these, for float and double.
MATH = frozenset("""acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim
    floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma log log10 log1p log2 logb modf nextafter pow remainder rint
    round sin sinh sqrt tan tanh tgamma trunc isnan isinf isfinite signbit""".split())
_OF_FLOATS = {name + "f": name for name in MATH if not name.startswith(("is", "sign"))}
_TWO = frozenset("atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder".split())

_MIN_MAX = """\
#define {0}(a, b) _Generic((a) + (b), int: _{0}_int, unsigned int: _{0}_uint, long: _{0}_long, \\
    unsigned long: _{0}_ulong, long long: _{0}_long, unsigned long long: _{0}_ulong, float: _{0}_float, \\
    double: _{0}_double)((a), (b))
"""


def _of_types(name: str, body: str) -> str:
    names = (("int", "int"), ("uint", "unsigned int"), ("long", "long"), ("ulong", "unsigned long"), ("float", "float"),
             ("double", "double"))
    return "".join(f"static inline __attribute__((unused)) {type} _{name}_{short}({body.format(type)}\n"
                   for short, type in names)


# By word: the text in C.
_C = {
    "min": _of_types("min", "{0} a, {0} b) {{ return b < a ? b : a; }}") + _MIN_MAX.format("min"),
    "max": _of_types("max", "{0} a, {0} b) {{ return a < b ? b : a; }}") + _MIN_MAX.format("max"),
    "abs": _of_types("abs", "{0} a) {{ return a < 0 ? -a : a; }}").replace(
        "float a) { return a < 0 ? -a : a; }", "float a) { return __builtin_fabsf(a); }").replace(
        "double a) { return a < 0 ? -a : a; }", "double a) { return __builtin_fabs(a); }")
    + "#define abs(x) _Generic(+(x), int: _abs_int, unsigned int: _abs_uint, long: _abs_long, \\\n"
      "    unsigned long: _abs_ulong, long long: _abs_long, unsigned long long: _abs_ulong, \\\n"
      "    float: _abs_float, double: _abs_double)(x)\n",
    "clamp": "#define clamp(x, low, high) min(max(x, low), high)\n",
    "mad": "#define mad(a, b, c) ((a) * (b) + (c))\n",
    "rsqrt": "#define rsqrt(x) (1 / sqrt(x))\n",
    "exp10": "#define exp10(x) pow(10, x)\n",
}
_ATOMIC_C = """\
static inline __attribute__((unused)) {type} _add_{type}({type} *p, {type} v)
{{
    {bits} before = __atomic_load_n(({bits} *)p, __ATOMIC_RELAXED), after;
    {type} old, sum;
    do {{
        __builtin_memcpy(&old, &before, sizeof(old));
        sum = old + v;
        __builtin_memcpy(&after, &sum, sizeof(sum));
    }} while (!__atomic_compare_exchange_n(({bits} *)p, &before, after, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}}
"""
_EXTREME_C = """\
static inline __attribute__((unused)) {type} _{name}_{short}({type} *p, {type} v)
{{
    {type} old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while ({test} && !__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {{}}
    return old;
}}
"""
_INTEGERS_C = (("int", "int"), ("uint", "unsigned int"), ("long", "long"), ("ulong", "unsigned long"))


def _atomics_in_c() -> "dict[str, str]":
    """atomicAdd(pointer, value) and its like, by CUDA's names; they return what was there before."""
    add = "".join(f"static inline __attribute__((unused)) {type} _add_{short}({type} *p, {type} v) "
                  "{ return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }\n" for short, type in _INTEGERS_C)
    add += _ATOMIC_C.format(type="float", bits="unsigned int") + _ATOMIC_C.format(type="double", bits="unsigned long")
    every = (*_INTEGERS_C, ("float", "float"), ("double", "double"))
    cases = ", ".join(f"{type} *: _add_{short}" for short, type in every)
    found = {"atomicAdd": f"{add}#define atomicAdd(p, v) _Generic((p), {cases})((p), (v))\n"}
    for name, test in (("atomicMin", "v < old"), ("atomicMax", "old < v")):
        text = "".join(_EXTREME_C.format(type=type, short=short, name=name, test=test) for short, type in _INTEGERS_C)
        cases = ", ".join(f"{type} *: _{name}_{short}" for short, type in _INTEGERS_C)
        found[name] = f"{text}#define {name}(p, v) _Generic((p), {cases})((p), (v))\n"
    return found


_C.update(_atomics_in_c())
_NEEDS = {"clamp": ("min", "max"), "rsqrt": ("sqrt",), "exp10": ("pow",)}


# In OpenCL C: some compilers have macros of these names, and none takes a float beside an int.
_OPENCL = {"min": ("b < a ? b : a", "a, {0} b", "(__typeof__((a) + (b)))(a), (__typeof__((a) + (b)))(b)", "a, b"),
           "max": ("a < b ? b : a", "a, {0} b", "(__typeof__((a) + (b)))(a), (__typeof__((a) + (b)))(b)", "a, b"),
           "abs": ("a < 0 ? -a : a", "a", "+(a)", "a")}


def _in_opencl(name: str, double: bool) -> str:
    """Functions of one name for all types, and a macro that calls them with arguments of one type."""
    body, parameters, given, names = _OPENCL[name]
    text = ""
    for type in ("int", "uint", "long", "ulong", "float", *(("double",) if double else ())):
        what = "fabs(a)" if name == "abs" and type in ("float", "double") else body
        text += (f"static inline {type} __attribute__((overloadable)) _drupe_{name}({type} {parameters.format(type)}) "
                 f"{{ return {what}; }}\n")
    return f"{text}#undef {name}\n#define {name}({names}) _drupe_{name}({given})\n"


_ATOMIC_OPENCL = """\
static inline {type} __attribute__((overloadable)) _drupe_add(volatile global {type} *p, {type} v)
{{
    {bits} before, old = as_{bits}(*p);
    do {{
        before = old;
        old = {cas}((volatile global {bits} *)p, before, as_{bits}(as_{type}(before) + v));
    }} while (old != before);
    return as_{type}(old);
}}
"""


def _atomics_in_opencl(words: "Set[str]", double: bool) -> str:
    """Those of 64 bits only where a type of 64 bits may be meant: not every device has them."""
    text = ""
    for name, short in (("atomicAdd", "add"), ("atomicMin", "min"), ("atomicMax", "max")):
        if name not in words:
            continue
        parts = [(type, f"atomic_{short}") for type in ("int", "uint")]
        wide = [(type, f"atom_{short}") for type in ("long", "ulong")]
        text += "".join(_overload(short, *part) for part in parts)
        text += f"#ifdef cl_khr_int64_{'base' if short == 'add' else 'extended'}_atomics\n" \
                f"#pragma OPENCL EXTENSION cl_khr_int64_{'base' if short == 'add' else 'extended'}_atomics : enable\n"
        text += "".join(_overload(short, *part) for part in wide)
        if short == "add" and double:
            text += _ATOMIC_OPENCL.format(type="double", bits="ulong", cas="atom_cmpxchg")
        text += "#endif\n"
        if short == "add":
            text += _ATOMIC_OPENCL.format(type="float", bits="uint", cas="atomic_cmpxchg")
        text += f"#define {name}(p, v) _drupe_{short}((p), (v))\n"
    return text


def _overload(name: str, type: str, function: str) -> str:
    return (f"static inline {type} __attribute__((overloadable)) _drupe_{name}(volatile global {type} *p, {type} v) "
            f"{{ return {function}(p, v); }}\n")


def in_c(words: "Set[str]") -> str:
    """The head of a text in C that mentions these words."""
    wanted = set(words) | {need for word in words for need in _NEEDS.get(word, ())}
    text = "#include <stdbool.h>\n#include <stddef.h>\n"
    if any(word.endswith("_t") for word in wanted):
        text += "#include <stdint.h>\n"
    if wanted & (MATH | _OF_FLOATS.keys()) or any(word.startswith("M_") for word in wanted):
        text += "#include <tgmath.h>\n#undef I\n"
    elif wanted & {"INFINITY", "NAN"}:
        text += "#include <math.h>\n"
    return text + "".join(part for word, part in _C.items() if word in wanted)


def in_opencl(words: "Set[str]", double: bool) -> str:
    """The head of a text in OpenCL C that mentions these words."""
    text = "".join(_in_opencl(word, double) for word in _OPENCL if word in words)
    text += _atomics_in_opencl(words, double)
    for word in sorted(words & _OF_FLOATS.keys()):
        name = _OF_FLOATS[word]
        if name in _TWO:
            text += f"#define {word}(a, b) {name}((float)(a), (float)(b))\n"
        elif name in ("frexp", "ldexp", "modf"):
            text += f"#define {word}(a, b) {name}((float)(a), (b))\n"
        elif name == "fma":
            text += "#define fmaf(a, b, c) fma((float)(a), (float)(b), (float)(c))\n"
        else:
            text += f"#define {word}(a) {name}((float)(a))\n"
    for name in sorted(scalars.INTEGERS):
        if name + "_t" in words:
            text += f"typedef {scalars.SCALARS[name].value} {name}_t;\n"
    return text


def of_numpy(words: "Set[str]", language: str) -> str:
    """Types by NumPy's names."""
    return "".join(f"typedef {scalars.c_value(scalar, language)} {name};\n"
                   for name, scalar in scalars.SCALARS.items() if name in words and name not in ("bool", "float16"))
