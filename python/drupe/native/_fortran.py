"""What a text in Fortran defines: subroutines and functions, with prototypes in C that say what their declarations say.

Arguments go by address, as compilers pass them without bind(c), or by value where the text says `value`. An argument
whose type is not understood is void *: so their number is checked in any case. What needs more than an address, such as
an array of unknown shape, is refused.
"""
import re

_CONTINUED = re.compile(r"&[ \t]*(?:![^\n]*)?\n(?:[ \t]*(?:!.*)?\n)*[ \t]*&?")
_HIDDEN = re.compile(r"'(?:[^'\n]|'')*'|\"(?:[^\"\n]|\"\")*\"|!.*")
_UNIT = re.compile(r"^[ \t]*(?P<before>(?!end\b)(?:[\w(),=* \t]*?[\w)])?[ \t]*)\b(?P<kind>subroutine|function)[ \t]+"
                   r"(?P<name>[a-z]\w*)[ \t]*(?:\((?P<arguments>[^()]*)\))?(?P<behind>.*)$", re.I | re.M)
_END = re.compile(r"^[ \t]*end[ \t]*(?:(?:subroutine|function)\b.*)?$|^[ \t]*contains[ \t]*$", re.I | re.M)
_BOUND = re.compile(r"bind\s*\(\s*c\s*(?:,\s*name\s*=\s*[\"'](\w+)[\"']\s*)?\)", re.I)
_TYPE = re.compile(r"^[ \t]*(?P<type>integer|real|complex|logical|double[ \t]*precision|character|class|type)\b[ \t]*"
                   r"(?:\*[ \t]*(?P<star>\d+)|\((?:[ \t]*kind[ \t]*=)?[ \t]*(?P<kind>\w+)[ \t]*\)|\([^()]*\))?", re.I)
_NAME = re.compile(r"[ \t]*([a-z]\w*)[ \t]*(\([^()]*(?:\([^()]*\)[^()]*)*\))?", re.I)
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
    plain = _CONTINUED.sub(" ", text)
    plain = _HIDDEN.sub(lambda match: match[0] if match[0][0] != "!" else "", plain)
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
    for name in arguments:
        if name == "*":
            raise ValueError("labels to return to cannot be passed")
        if declared.get(name, ("",))[0] == "character":
            raise ValueError("%s is text, whose length goes with it in a way of the compiler's own" % name)
    return [_parameter(name, *declared.get(name, ("", "", ()))) for name in arguments]


def _parameter(name, kind, shape, attributes):
    if ":" in shape or {"allocatable", "pointer"} & set(attributes):
        raise ValueError("%s is passed with a descriptor: give its size, as in %s(n)" % (name, name))
    const = "const " if "intent(in)" in attributes else ""
    if "value" in attributes:
        if not kind:
            raise ValueError("%s goes by value and has a type that is not understood" % name)
        return "%s %s" % (kind, name)
    return "%s%s *%s" % (const, kind or "void", name)


def _declarations(body):
    """{name: (type in C or "", shape or "", attributes)} of what the text of a subroutine declares."""
    found = {}
    for line in body.lower().split("\n"):
        match = _TYPE.match(line)
        if match is None:
            continue
        word = re.sub(r"\s", "", match["type"])
        if word == "character":
            kind = word
        else:
            kinds, usual = _TYPES.get(word, ({}, ""))
            size = match["kind"] or _halved(word, match["star"])
            given = line[match.end("type"):match.end()].strip()
            kind = kinds.get(size, "") if given else usual
        before, _colons, names = line[match.end():].partition("::")
        if not _colons:
            before, names = "", before
        before = re.sub(r"\s", "", before)
        attributes = re.findall(r"[a-z]\w*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?", before)
        common = next((one[9:] for one in attributes if one.startswith("dimension(")), "")
        for name, shape in _NAME.findall(re.sub(r"=[^,]*", "", names)):
            found.setdefault(name, (kind, shape or common, attributes))
    return found


def _halved(word, star):
    """The kind that stands behind a star, where complex(8) is complex*16."""
    return str(int(star) // 2) if star and word == "complex" else star
