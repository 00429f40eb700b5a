"""Declarations of native functions: prototypes in C, and sequences of types, as what the engine takes.

The engine's form is (result or None, parameters), a parameter being (text, pointer, const, data type or None, whether
any elements of one byte do, least number of elements, which parameters multiply that). Data types are drupe.array's."""
import ctypes
import re

_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|([0-9]+)|(\S))")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_MOST_ELEMENTS = 2**63 - 1
_POINTERS = ctypes.sizeof(ctypes.c_void_p)
_SIZES = {"char": 1, "short": ctypes.sizeof(ctypes.c_short), "int": ctypes.sizeof(ctypes.c_int),
          "long": ctypes.sizeof(ctypes.c_long), "longlong": ctypes.sizeof(ctypes.c_longlong)}
_NAMED = {"float": "float32", "double": "float64", "bool": "bool", "_Bool": "bool",
          "size_t": "uint%d" % (8 * _POINTERS), "ssize_t": "int%d" % (8 * _POINTERS),
          "ptrdiff_t": "int%d" % (8 * _POINTERS), "intptr_t": "int%d" % (8 * _POINTERS),
          "uintptr_t": "uint%d" % (8 * _POINTERS), "ulong": "uint%d" % (8 * _SIZES["long"]), "uint": "uint32",
          "ushort": "uint16", "uchar": "uint8"}
for _bits in (8, 16, 32, 64):
    for _sign in ("", "u"):
        _NAMED["%sint%d_t" % (_sign, _bits)] = "%sint%d" % (_sign, _bits)
        _NAMED["%sint%d" % (_sign, _bits)] = "%sint%d" % (_sign, _bits)
_NAMED.update({"float32": "float32", "float64": "float64", "complex64": "complex64", "complex128": "complex128"})
_QUALIFIERS = {"const", "restrict", "__restrict", "__restrict__", "volatile", "register", "extern", "static", "inline",
               "__inline", "struct"}
_WORDS = {"signed", "unsigned", "char", "short", "int", "long", "float", "double", "complex", "_Complex", "void",
          *_NAMED}
_REFUSED = {"struct": "structures", "union": "unions", "enum": "enumerations (write int)", "half": "half floats",
            "__int128": "integers of 128 bits"}


def declaration(signature):
    """What _engine._NativeFunction takes, of a prototype or a sequence of types."""
    if isinstance(signature, str):
        return _Prototype(signature).read()
    if isinstance(signature, (bytes, bytearray)) or not hasattr(signature, "__iter__"):
        raise TypeError("a declaration is a prototype in C or a sequence of types, not %s" % type(signature).__name__)
    return None, tuple(_type(one, index) for index, one in enumerate(signature))


def _type(given, index):
    """A parameter of a sequence: text in C, a data type, a type of Python or of ctypes."""
    if isinstance(given, str) and not _is_dtype_name(given):
        params = _Prototype("void(%s)" % given).read()[1]
        if len(params) != 1:
            raise ValueError("parameter %d: %r is not one type; a sequence has one for each parameter"
                             % (index + 1, given))
        return params[0]
    if isinstance(given, type) and issubclass(given, ctypes._SimpleCData):
        return _ctypes(given)
    if isinstance(given, type) and issubclass(given, ctypes._Pointer):
        return _pointer(_dtype(given._type_), "%s *" % given._type_.__name__)
    name = next((name for one, name in ((int, "int64"), (float, "float64"), (complex, "complex128"), (bool, "bool"))
                 if given is one), None)
    if name is None:
        name = _dtype_name(given, index)
    return name, False, False, name, False, 0, ()


def _is_dtype_name(text):
    return text in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32",
                    "float64", "complex64", "complex128")


def _dtype_name(given, index):
    from drupe import array

    try:
        name = array.dtype(given).name if hasattr(array, "dtype") else str(given)
    except (TypeError, ValueError):
        name = None
    if name is None or not _is_dtype_name(name):
        raise TypeError("parameter %d: %r is no type that a C function takes; write it in C, such as \"double *\""
                        % (index + 1, given))
    return name


def _pointer(dtype, text):
    return text, True, False, dtype, dtype in ("int8", "uint8"), 0, ()


def _dtype(one):
    """The data type of a simple type of ctypes; None for what pointers to it may point to anything."""
    code = getattr(one, "_type_", None)
    if not isinstance(code, str):
        return None
    if code == "?":
        return "bool"
    size = 8 * ctypes.sizeof(one)
    return ("uint%d" if code in "BHILQ" else "int%d" if code in "bchilq" else "float%d" if code in "fd" else
            _unknown(one)) % size


def _unknown(one):
    raise TypeError("%s is no type that a native function takes" % one.__name__)


def _ctypes(one):
    if one is ctypes.c_void_p:
        return "void *", True, False, None, False, 0, ()
    if one is ctypes.c_char_p:
        return "const char *", True, True, "int8", True, 0, ()
    name = _dtype(one)
    return one.__name__, False, False, name, False, 0, ()


class _Prototype:
    """A prototype that is being read, word by word."""

    def __init__(self, text):
        self.text = text
        self.words = [next(part for part in match.groups() if part) for match in
                      _TOKEN.finditer(_COMMENT.sub(" ", text))]
        self.at = 0
        self.named = []  # parameters: [name, entry, sizes]

    def refuse(self, why):
        raise ValueError("the declaration %r is not understood: %s" % (self.text, why))

    def peek(self):
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self, *wanted):
        word = self.peek()
        if wanted and word not in wanted:
            self.refuse("%s is expected before %s" % (" or ".join(map(repr, wanted)),
                                                      repr(word) if word else "its end"))
        self.at += 1
        return word

    def read(self):
        result, const, some = self.base()
        if self.stars()[0]:
            self.refuse("a function with a pointer as its result cannot be queued")
        if self.peek() not in ("(", ""):
            self.take()  # the function's name
        self.take("(")
        if self.peek() == "void" and self.words[self.at + 1:self.at + 2] == [")"]:
            self.take()
        while self.peek() != ")":
            self.parameter()
            if self.peek() != ")":
                self.take(",")
        self.take(")")
        if self.peek() == ";":
            self.take()
        if self.peek():
            self.refuse("%r follows its end" % self.peek())
        return result, tuple(self.sized(*one) for one in self.named)

    def base(self):
        """(data type or None for void, const, whether it is a char) of the words at the beginning."""
        words, const = [], False
        while self.peek() in _QUALIFIERS or self.peek() in _WORDS:
            word = self.take()
            if word == "struct":
                self.refuse("structures are passed by address, as void *")
            const |= word == "const"
            if word in _WORDS:
                words.append(word)
        if not words:
            word = self.peek()
            self.refuse(("%s are not passed" % _REFUSED[word]) if word in _REFUSED else
                        "%r is no type that is known here; pointers to other types are void *" % word if word else
                        "a type is missing")
        return self.scalar(words), const, "char" in words

    def scalar(self, words):
        rest = sorted(words)
        if rest == ["void"]:
            return None
        for name in ("complex", "_Complex"):
            if name in rest:
                rest.remove(name)
                return {("double",): "complex128", ("float",): "complex64", (): "complex128"}.get(tuple(rest)) \
                    or self.refuse("%r is no type" % " ".join(words))
        if len(rest) == 1 and rest[0] in _NAMED:
            return _NAMED[rest[0]]
        if rest == ["double", "long"]:
            self.refuse("long double is not passed")
        sign = "u" if "unsigned" in rest else ""
        kinds = [word for word in rest if word not in ("signed", "unsigned", "int")]
        known = kinds in ([], ["char"], ["short"], ["long"], ["long", "long"])
        size = _SIZES["".join(kinds) or "int"] if known else None
        if size is None or len(rest) - len(kinds) > 2:
            self.refuse("%r is no type" % " ".join(words))
        return "%sint%d" % (sign, 8 * size)

    def stars(self):
        """How many stars follow, and whether const stands among them."""
        count = 0
        while self.peek() == "*" or self.peek() in _QUALIFIERS:
            count += self.take() == "*"
        return (count,)

    def parameter(self):
        begin = self.at
        if self.peek() == ".":
            self.refuse("variable arguments cannot be declared")
        dtype, const, char = self.base()
        stars, = self.stars()
        if self.peek() == "(":
            self.refuse("pointers to functions are void *")
        name = ""
        if re.match(r"[A-Za-z_]", self.peek()):
            name = self.take()
        sizes = []
        brackets = 0
        while self.peek() == "[":
            brackets += 1
            sizes += self.size()
        text = _joined(self.words[begin:self.at])
        pointer = bool(stars or brackets)
        if dtype is None and not pointer:
            self.refuse("%r is no type of a parameter" % text)
        if stars + bool(brackets) > 1:
            dtype = None  # pointers to pointers: their addresses are the caller's affair
        self.named.append((name, (text, pointer, const and pointer, dtype, char and pointer), sizes if pointer else []))

    def size(self):
        """The factors in [...]: numbers and names."""
        factors = []
        self.take("[")
        while self.peek() in ("const", "restrict", "static"):
            self.take()
        while self.peek() != "]":
            word = self.take()
            if not re.fullmatch(r"[A-Za-z_]\w*|[0-9]{1,18}", word):
                self.refuse("sizes are numbers, names of parameters, and products of them")
            factors.append(int(word) if word.isdigit() else word)
            if self.peek() != "]":
                self.take("*")
                if self.peek() == "]":
                    self.refuse("a size ends with a star")
        self.take("]")
        return factors

    def sized(self, name, entry, sizes):
        least = 1 if sizes else 0
        factors = []
        names = {one[0]: index for index, one in enumerate(self.named) if one[0]}
        for factor in sizes:
            if isinstance(factor, int):
                least *= factor
            elif factor not in names:
                self.refuse("%r is no parameter" % factor)
            elif self.named[names[factor]][1][1] or not re.match("u?int", self.named[names[factor]][1][3] or ""):
                self.refuse("%r is no integer" % factor)
            else:
                factors.append(names[factor])
        if least > _MOST_ELEMENTS:
            self.refuse("no array has %d elements" % least)
        if len(factors) > 4:
            self.refuse("a size has at most four names")
        return (*entry, least, tuple(factors))


def _joined(words):
    """Words of C with the blanks that people put between them."""
    text = ""
    for word in words:
        if text and re.match(r"\w", word) and (text[-1].isalnum() or text[-1] == "_"):
            text += " "
        elif word == "*" and text and text[-1] != "*":
            text += " "
        text += word
    return text
