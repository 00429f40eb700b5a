"""What a text in Fortran defines: subroutines and functions, with prototypes in C that say what their declarations say.

Arguments go by address, as compilers pass them without bind(c), or by value where the text says `value`. An argument
whose type is not understood is void *: so their number is checked in any case. What needs more than an address, such as
an array of unknown shape, is refused.
"""
import re

_HIDDEN = re.compile(r"'(?:[^'\n]|'')*'|\"(?:[^\"\n]|\"\")*\"|!.*|;")
_CONTINUED = re.compile(r"&[ \t]*\n(?:[ \t]*\n)*[ \t]*&?")
_INTERFACE = re.compile(r"^[ \t]*(?:abstract[ \t]+)?interface\b(?![ \t]*[=(%]).*?^[ \t]*end[ \t]*interface\b.*?$",
                        re.I | re.M | re.S)
_UNIT = re.compile(r"^[ \t]*(?P<before>(?!end\b)(?:[\w(),=* \t]*?[\w)])?[ \t]*)\b(?P<kind>subroutine|function)[ \t]+"
                   r"(?P<name>[a-z]\w*)[ \t]*(?:\((?P<arguments>[^()]*)\))?(?P<behind>.*)$", re.I | re.M)
_END = re.compile(r"^[ \t]*end[ \t]*(?:(?:subroutine|function)\b.*)?$|^[ \t]*contains[ \t]*$", re.I | re.M)
_BOUND = re.compile(r"bind\s*\(\s*c\s*(?:,\s*name\s*=\s*[\"'](\w+)[\"']\s*)?\)", re.I)
_COMPONENTS = re.compile(r"^[ \t]*type\b(?![ \t]*\().*?^[ \t]*end[ \t]*type\b.*?$", re.M | re.S)
_TYPE = re.compile(r"^[ \t]*(?P<type>integer|real|complex|logical|double[ \t]*precision|character|class|type|"
                   r"procedure)\b[ \t]*(?:\*[ \t]*(?P<star>\d+)|\((?:[ \t]*kind[ \t]*=)?[ \t]*(?P<kind>\w+)[ \t]*\)|"
                   r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?", re.I)
_SHAPE = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_NAME = re.compile(r"[ \t]*([a-z]\w*)[ \t]*(?:\*[ \t]*(\d+)[ \t]*)?(%s)?[ \t]*(?:\*[ \t]*(\d+))?" % _SHAPE, re.I)
_ATTRIBUTE = re.compile(r"[a-z]\w*(?:%s)?" % _SHAPE)
_ALONE = re.compile(r"^[ \t]*(dimension|allocatable|pointer|value|optional|external)(?:[ \t]*::[ \t]*|[ \t]+)"
                    r"(?=[a-z])(.*)$")
_INNER = re.compile(r"\([^()]*\)")
_INTEGERS = {"1": "int8_t", "2": "int16_t", "4": "int32_t", "8": "int64_t", "c_int": "int", "c_long": "long",
             "c_long_long": "long long", "c_short": "short", "c_signed_char": "signed char", "c_size_t": "size_t",
             **{"%sint%d%s" % (front, size, back): "int%d_t" % size for size in (8, 16, 32, 64)
                for front, back in (("", ""), ("c_", "_t"))}}
_REALS = {"4": "float", "8": "double", "c_float": "float", "c_double": "double", "real32": "float", "real64": "double"}
_TYPES = {"integer": (_INTEGERS, "int"), "real": (_REALS, "float"), "doubleprecision": ({}, "double"),
          "complex": ({kind: "%s complex" % one for kind, one in {**_REALS, "c_float_complex": "float",
                                                                  "c_double_complex": "double"}.items()},
                      "float complex"),
          "logical": ({"4": "int32_t", "1": "int8_t", "8": "int64_t", "c_bool": "bool"}, "int32_t")}


def functions(text):
    """(name, symbol, prototype, why it cannot be called or "") of what a text defines for others."""
    plain = _HIDDEN.sub(lambda match: {"!": "", ";": "\n"}.get(match[0][0], match[0]), text)
    plain = _CONTINUED.sub(" ", plain)
    plain = _INTERFACE.sub(lambda match: "external " + ", ".join(
        one["name"] for one in _UNIT.finditer(match[0])) if _UNIT.search(match[0]) else "", plain)
    found = []
    for match in _UNIT.finditer(plain):
        end = _END.search(plain, match.end())
        body = plain[match.end():end.start() if end else len(plain)]
        bound = _BOUND.search(match["behind"])
        name = match["name"].lower()
        arguments = [one.strip().lower() for one in (match["arguments"] or "").split(",") if one.strip()]
        why = "" if match["kind"].lower() == "subroutine" else "it has a result: make it a subroutine"
        try:
            parameters = _parameters(arguments, body)
        except ValueError as error:
            parameters, why = [], why or str(error)
        symbol = (bound[1] or name) if bound else name + "_"
        found.append((name, symbol, "void %s(%s)" % (name, ", ".join(parameters) or "void"), why))
    return found


def _parameters(arguments, body):
    """The parameters in C. ValueError says what cannot be passed."""
    declared = _declarations(body)
    if "*" in arguments:
        raise ValueError("labels to return to cannot be passed")
    return [_parameter(name, *declared.get(name, ("", "", set()))) for name in arguments]


def _parameter(name, kind, shape, attributes):
    if kind == "character":
        raise ValueError("%s is text, whose length goes with it in a way of the compiler's own" % name)
    if "external" in attributes or kind == "procedure":
        raise ValueError("%s is a procedure, which cannot be passed" % name)
    if kind == "class":
        raise ValueError("%s is of a class, and passed with a descriptor" % name)
    if _open(shape) or {"allocatable", "pointer"} & attributes:
        raise ValueError("%s is passed with a descriptor: give its size, as in %s(n)" % (name, name))
    const = "const " if "intent(in)" in attributes else ""
    if "value" in attributes:
        if "optional" in attributes:
            raise ValueError("%s is optional and goes by value, in a way of the compiler's own" % name)
        if not kind:
            raise ValueError("%s goes by value and has a type that is not understood" % name)
        return "%s %s" % (kind, name)
    return "%s%s *%s" % (const, kind or "void", name)


def _open(shape):
    """Whether a shape leaves an extent to the caller; `*` and a lower bound alone need nothing but the address."""
    flat = _INNER.sub("", _INNER.sub("", shape[1:-1]))
    return any(one.strip() == ".." or one.strip().endswith(":") for one in flat.split(","))


def _declarations(body):
    """{name: (type in C or "", shape or "", attributes)} of what the text of a subroutine declares."""
    found = {}
    alone = []
    for line in _COMPONENTS.sub("", body.lower()).split("\n"):
        match = _TYPE.match(line)
        if match is not None:
            for name, *what in _declared(match, line[match.end():]):
                found.setdefault(name, what)
            continue
        match = _ALONE.match(line)
        if match is not None:
            alone += [(match[1], one[1], one[3] or "") for one in _NAME.finditer(match[2])]
    for word, name, shape in alone:
        kind, before, attributes = found.get(name, ("", "", set()))
        found[name] = (kind, before or shape, attributes | {word})
    return found


def _declared(match, rest):
    """(name, type in C or "", shape or "", attributes) of the names of one line."""
    word = re.sub(r"\s", "", match["type"])
    before, colons, names = rest.partition("::")
    if not colons:
        before, names = "", rest
    attributes = set(_ATTRIBUTE.findall(re.sub(r"\s", "", before)))
    common = next((one[9:] for one in attributes if one.startswith("dimension(")), "")
    given = match[0][match.end("type"):].strip()
    for name, star, shape, behind in _NAME.findall(re.sub(r"=[^,]*", "", names)):
        kind = _kind(word, match["kind"], star or behind or match["star"], given or star or behind)
        yield name, kind, shape or common, attributes


def _kind(word, kind, star, given):
    """The type in C, or "" where it is not understood."""
    if word in ("character", "class", "procedure"):
        return word
    kinds, usual = _TYPES.get(word, ({}, ""))
    if star:
        kind = str(int(star) // 2) if word == "complex" else star  # complex(8) is complex*16
    return kinds.get(kind, "") if given else usual
