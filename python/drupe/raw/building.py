"""Programs from texts that were put together here, and compilers' errors in terms of what the user wrote.

Each part that the user wrote stands on lines of its own between two comments. So the line that a compiler names leads
to the part. What it says of other lines is left out, unless it says nothing else. (A #line would do, but not all
drivers heed it.)
"""
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from drupe._engine import BuildError, Program, Queue
from drupe.raw.foreign import without_comments

_POSITION = re.compile(r":(?P<line>\d{1,9}):(?P<column>\d{1,9})(?: <Spelling=[^>]*>)?: *")  # behind a path
_NAME = re.compile(r"['`\"\u2018]([A-Za-z_]\w*)['\"\u2019]")
_BEGIN, _END = "/* {0} of the user */", "/* end of {0} */"
_CALLS_A_TYPE = re.compile(r"\b(?:[A-Z]|u?int\d*|float\d*|double|long|short|char|bool|\w+_cast)\s*(?:<[^>]*>\s*)?\(")


def part(name: str, text: str, end: str = "") -> str:
    """What the user wrote, as lines of a text. What ends it counts as the line behind, where compilers notice that
    something is missing."""
    return f"\n{_BEGIN.format(name)}\n{text}\n{end}\n{_END.format(name)}\n"


def check_name(name: str) -> None:
    """ValueError for what cannot be the name of a kernel."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} is no name of a kernel: letters, digits and _, a letter first")


def check_brackets(name: str, text: str) -> None:
    """ValueError where brackets do not match: compilers would look for what is missing in the text around."""
    open_ones: "list[str]" = []
    for char in without_comments(text):
        if char in "([{":
            open_ones.append(char)
        elif char in ")]}":
            if not open_ones or open_ones.pop() + char not in ("()", "[]", "{}"):
                raise ValueError(f"{name}: {char!r} closes no bracket: {text!r}")
    if open_ones:
        raise ValueError(f"{name}: {open_ones[-1]!r} is not closed: {text!r}")


def _places(source: str, parts: "Mapping[str, str]") -> "dict[int, tuple[str, int]]":
    """For each line of a text that is a part's: the part, and the number of the line in it."""
    found: "dict[int, tuple[str, int]]" = {}
    begins = {_BEGIN.format(name): name for name in parts}
    name, first = "", 0
    for number, line in enumerate(source.split("\n"), 1):
        if line in begins:
            name, first = begins[line], number
        elif name and line == _END.format(name):
            name = ""
        elif name:
            found[number] = (name, number - first)
    return found


def _shown(name: str, lines: "list[str]", number: int, column: int, message: str) -> str:
    if number > len(lines):  # what ends the part
        number, column = len(lines), len(lines[-1].encode()) + 1
    shown = lines[number - 1]
    space = re.sub("[^\t]", " ", shown.encode()[:max(column - 1, 0)].decode(errors="ignore"))  # columns count bytes
    return f"{name}, line {number}, column {column}: {message}\n    {shown}\n    {space}^"


def tell(log: str, source: str, parts: "Mapping[str, str]") -> "str | None":
    """The messages of a compiler about the parts, each with the user's line and a mark under its column. None if there
    is no error among them."""
    places, told, errors = _places(source, parts), [], 0
    for line in log.splitlines():
        at = _POSITION.search(line)
        place = places.get(int(at["line"])) if at else None
        if at is None or place is None or "each undeclared identifier is reported only once" in line:
            continue
        message = f"{line[:line.rfind(' ', 0, at.start()) + 1]}{line[at.end():]}"
        errors += "warning:" not in message and "note:" not in message
        told.append(_shown(place[0], parts[place[0]].split("\n"), place[1], int(at["column"]), message))
    return "\n".join(dict.fromkeys(told)) if errors else _missing(log, parts)  # a macro may use what is wrong twice


def _missing(log: str, parts: "Mapping[str, str]") -> "str | None":
    """Of what linkers say, which name no lines: where the name is that they miss."""
    for line in log.splitlines():
        if re.search("(?i)unresolved|undefined", line):
            for word in _NAME.findall(line):
                for name, text in parts.items():
                    found = re.search(rf"\b{word}\b", text)
                    if found:
                        before = text[:found.start()].split("\n")
                        return _shown(name, text.split("\n"), len(before), len(before[-1].encode()) + 1, line.strip())
    return None


def _hint(parts: "Mapping[str, str]") -> str:
    for name, text in parts.items():
        found = _CALLS_A_TYPE.search(text)
        if found:
            return f"\nThe language is C: a conversion in {name} is written (T)(x), not {found[0]}x)."
    return ""


def build(text: str, queue: Queue, language: str, options: str, parts: "Mapping[str, str]") -> Program:
    """A program for the device of a queue; BuildError speaks of the parts."""
    if language == "c":
        options = f"-drupe-table -Werror=implicit-function-declaration {options}"
    try:
        return Program(text, queue=queue, language=language, options=options.strip())
    except BuildError as error:
        told = tell(error.log, text, parts)
        if told is None:  # about the text around, which is no use to show
            told = "\n".join(line[:line.rfind(" ", 0, at.start()) + 1] + line[at.end():] if at else line
                             for line in error.log.strip().splitlines() for at in [_POSITION.search(line)])
        error.args = (f"the kernel was not built for {queue.device.filter_string}:\n{told}{_hint(parts)}",)
        raise


class Cache:
    """Things by what they were made for; each is made once, whichever threads ask."""

    def __init__(self) -> None:
        self._made: "dict[Any, Any]" = {}
        self._lock = threading.Lock()

    def get(self, key: Any, make: "Callable[[], Any]") -> Any:
        """What was made for the key, or what `make` makes now."""
        found = self._made.get(key)
        if found is None:
            with self._lock:
                found = self._made.get(key)
                if found is None:
                    found = self._made[key] = make()
        return found

    def items(self) -> "list[tuple[Any, Any]]":
        """All of it, as pairs."""
        return list(self._made.items())


def language_of(device: Any) -> str:
    """The language that a device's kernels are written in."""
    return "c" if device.filter_string.startswith("host") else "opencl"


def words_of(options: Any) -> str:
    """Options of a compiler, a text or a sequence of them, as one text."""
    text = options if isinstance(options, str) else " ".join(options or ())
    for word in text.split():
        if word.startswith(("-std=c++", "--std=c++", "--use_fast_math", "-use_fast_math", "-arch", "--gpu-architecture",
                            "-lineinfo", "--device-debug")):
            raise ValueError(f"{word!r} is an option of CUDA's compiler. OpenCL C has -cl-fast-relaxed-math, "
                             "-cl-std=CL2.0, -D and -I; C on host has those of the machine's compiler, such as "
                             "-ffast-math")
    return text
