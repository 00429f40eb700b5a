"""From a text to a library: the machine's compilers, and what functions a text defines."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

from drupe import _engine, ext

LANGUAGES = ("c", "c++", "fortran")
_TIMEOUT = 300  # seconds
# language: (variable that names the compiler, the usual ones, suffix, options)
_COMPILERS = {
    "c": ("CC", ("cc", "gcc", "clang"), ".c", ["-std=gnu11"]),
    "c++": ("CXX", ("c++", "g++", "clang++"), ".cpp", ["-std=gnu++17"]),
    "fortran": ("FC", ("gfortran", "flang"), ".f90", []),
}
_PACKAGES = {"c": "gcc", "c++": "g++", "fortran": "gfortran"}
_HIDDEN = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:\\\n|[^\n])*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
                     re.S | re.M)
_FUNCTION = re.compile(r"([\w\s*]*?[\s*])([A-Za-z_]\w*)\s*\(([^()]*)\)\s*\{")
_TYPEDEF = re.compile(r"\btypedef\s+([\w\s]+?)\s+([A-Za-z_]\w*)\s*;")
_LINKER = re.compile(r"^(?:\S*/)?(?:ld|ld\.\w+): (?!warning)", re.M)
_LINKER_END = re.compile(r"^collect2: .*\n?|^clang[^:\n]*: error: linker command failed.*\n?", re.M)
_folder = None  # removed when the process ends


class Missing(RuntimeError):
    """There is no compiler for a language."""


def compiler(language):
    """The command of a compiler, as a list of words. Missing says what to install."""
    variable, usual, _suffix, _options = _COMPILERS[language]
    for candidate in (os.environ.get(variable), *usual):
        words = shlex.split(candidate or "")
        if words and shutil.which(words[0]):
            return words
    raise Missing("there is no compiler for %s: install one (on Debian and Ubuntu: apt install %s), or name it in $%s"
                  % (language.capitalize(), _PACKAGES[language], variable))


def build(text, language="c", *, options=(), libraries=(), target=None):
    """Compile a text into a shared library: (its path, the compiler's messages). BuildError, with the messages in
    `log`, when the text has mistakes. Without a target the library lies in a folder of this process."""
    global _folder
    _variable, _usual, suffix, standard = _COMPILERS[language]
    words = compiler(language)
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="drupe-native-")
    folder = pathlib.Path(tempfile.mkdtemp(dir=_folder.name))
    source = folder / ("cell" + suffix)
    source.write_text(text)
    target = pathlib.Path(target) if target else folder / "libcell.so"
    folders = ["/usr/lib", "/usr/local/lib", *(one[2:] for one in options if one.startswith("-L") and one[2:])]
    if "gfortran" in os.path.basename(words[0]):
        standard = ["-fno-diagnostics-show-caret"]  # else its messages do not stand in the line with their places
    command = [*words, "-shared", "-fPIC", "-O2", "-g", *standard, "-Wall", "-I" + ext.get_include(), *options,
               source.name, "-o", str(target.absolute()),
               *(ext._library_option(name, folders) for name in libraries), "-lm"]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT,
                             cwd=folder, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError("the compiler did not end within %d seconds" % _TIMEOUT) from None
    if run.returncode == 0:
        return str(target.absolute()), run.stderr
    log = _LINKER.sub("ld: error: ", run.stderr)
    if log != run.stderr:
        log = _LINKER_END.sub("", log)
    error = _engine.BuildError("%s found errors:\n%s" % (words[0], log.strip()))
    error.log = log
    raise error


# --- What a text defines -----------------------------------------------------------------------------------

def functions(text, language="c"):
    """(name, symbol, prototype, why it cannot be called or "") of the functions that a text defines for others."""
    if language == "fortran":
        from drupe.native import _fortran

        return _fortran.functions(text)
    found = []
    for match in _FUNCTION.finditer(_outside(text)):
        words = [word for word in match[1].split() if word not in ("PYMIC_KERNEL", "extern", "inline")]
        kept = " ".join(words)
        if not words or "static" in words or match[2] in ("if", "for", "while", "switch", "return"):
            continue
        found.append((match[2], match[2], "%s %s(%s)" % (kept, match[2], " ".join(match[3].split())), ""))
    return found


def _outside(text):
    """A text in C without comments, texts, directives and what stands in braces; extern "C" { } counts as nothing."""
    plain = re.sub(r'extern\s+"C"\s*\{', "extern_c_begins", text)
    plain = _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), re.sub(r'extern\s+"C"', "extern", plain))
    kept, depth = [], 0
    for part in re.split(r"([{}])", plain.replace("extern_c_begins", ";")):
        if part == "{":
            kept.append("{" if depth == 0 else "")
            depth += 1
        elif part == "}":
            depth = max(0, depth - 1)
            kept.append(";")
        elif depth == 0:
            kept.append(part)
    return "".join(kept)


def bind(library, text, language="c"):
    """{name: function} of what the text defines and the library has, declared by their prototypes, and {name: why} of
    functions that are left out: by address would be wrong for parameters that go by value."""
    made, left = {}, {}
    for name, symbol, prototype, why in functions(text, language):
        if why:
            left[name] = why
            continue
        try:
            declared = _declared(prototype, text)
            function = _engine._NativeFunction(library._library, symbol, declared)
        except AttributeError:
            continue
        except ValueError as error:
            left[name] = str(error)
            continue
        if name in made and made[name].arguments != function.arguments:
            left[name] = "it is defined more than once, with different parameters"
        made[name] = function
    made = {name: function for name, function in made.items() if name not in left}
    library.__dict__.update(made)
    return made, left


def _declared(prototype, text):
    """The declaration of a prototype; None where it is not understood, and all parameters are addresses."""
    from drupe.native._declare import declaration

    for types, name in reversed(_TYPEDEF.findall(_outside(text))):
        prototype = re.sub(r"\b%s\b(?!\s*[(,)\[])" % name, types, prototype)
    try:
        return declaration(prototype)
    except ValueError:
        try:
            return declaration(re.sub(r"\[[^\]]*\]", "[]", prototype))  # sizes that only the compiler knows
        except ValueError:
            params = prototype[prototype.index("(") + 1:prototype.rindex(")")]
            if all("*" in one or "[" in one for one in params.split(",")):
                return None
            raise
