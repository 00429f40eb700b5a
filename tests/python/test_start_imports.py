"""What makes the imports of the kernel's start cheap, and that nobody can tell afterwards."""
import json
import marshal
import os
import pathlib
import subprocess
import sys

import pytest

# One start: what `import stored_one` gave, and whether the store is to be written, which it is.
START = """
import sys
del sys.path[0]
from drupe.jupyter import start_imports
end = start_imports.begin()
%s
write = end()
if write is not None:
    write()
import json
print(json.dumps([stored_one.value, write is not None]))
"""


class Place:
    """Folders with a module that a start imports, and the cache's."""

    def __init__(self, tmp_path):
        self.folder, self.earlier, self.cache = tmp_path / "modules", tmp_path / "earlier", tmp_path / "cache"
        for one in (self.folder, self.earlier):
            one.mkdir()
        self.source = self.folder / "stored_one.py"
        self.write("value = 'old'\n")

    def write(self, text):
        self.source.write_text(text)
        self.python("import stored_one")  # and its .pyc

    def python(self, code, **environment):
        environment = {**os.environ, "PYTHONPATH": f"{self.earlier}:{self.folder}", "DRUPE_CACHE_DIR": str(self.cache),
                       "DRUPE_CACHE": "1", **environment}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return subprocess.run([sys.executable, "-c", code], env=environment, check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def start(self, imports="import stored_one", **environment):
        return json.loads(self.python(START % imports, **environment).splitlines()[-1])

    @property
    def store(self):
        (path,) = self.cache.glob("start/*")
        return path

    def change_unseen(self, text):
        """Other code, which only who reads the .pyc finds."""
        (path,) = self.folder.glob("__pycache__/stored_one.*")
        path.write_bytes(path.read_bytes()[:16] + marshal.dumps(compile(text, str(self.source), "exec")))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_the_second_start_takes_what_the_first_has_stored(place):
    assert place.start() == ["old", True]
    place.change_unseen("value = 'new'\n")
    assert place.start() == ["old", False]


def test_a_source_that_changed_is_read(place):
    place.start()
    place.write("value = 'longer than it was'\n")
    assert place.start()[0] == "longer than it was"


def test_a_module_that_comes_earlier_on_the_path_is_found(place):
    place.start()
    (place.earlier / "stored_one.py").write_text("value = 'earlier'\n")
    assert place.start() == ["earlier", True]
    assert place.start() == ["earlier", False]


def test_a_source_that_changed_and_has_its_old_time(place):
    """As files of another version that come with the time of their archive."""
    place.start()
    facts = place.source.stat()
    place.change_unseen("value = 'new'\n")  # as installers compile what they install
    place.source.write_text("value = 'new'\n")
    os.utime(place.source, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert place.start() == ["new", True]
    assert place.start() == ["new", False]


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("name", ["stored_one", "there.stored_one"])
def test_a_module_of_the_folder_is_of_this_folder(place, tmp_path, monkeypatch, name, at):
    """What a start imports from the notebook's folder, as extensions and files of the profile do."""
    imports = f"sys.path.insert({at}, '')\nimport {name} as stored_one"
    place.start()
    for value in ("one", "two"):
        (tmp_path / value / "there").mkdir(parents=True)
        for path in ("stored_one.py", "there/stored_one.py"):
            (tmp_path / value / path).write_text(f"value = {value!r}\n")
    for value in ("one", "two", "one", "two"):
        monkeypatch.chdir(tmp_path / value)
        assert place.start(imports)[0] == (value if at < 2 or "." in name else "old")


def test_a_hook_of_the_path_is_asked(place):
    place.start()
    hook = """
import importlib.machinery
class Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        module.value = "hooked"
sys.path_hooks.insert(0, importlib.machinery.FileFinder.path_hook((Loader, [".py"])))
sys.path_importer_cache.clear()
import stored_one
"""
    assert place.start(hook)[0] == "hooked"


def test_a_hook_of_what_is_no_folder_changes_nothing(place):
    place.start()
    place.change_unseen("value = 'new'\n")
    assert place.start("sys.path_hooks.append(lambda path: 1 / 0)\nimport stored_one") == ["old", False]


def test_a_finder_that_comes_last_is_asked(place, tmp_path):
    """As those of packages that are installed from the folder in which somebody works on them."""
    finder = """
import importlib.util
class Finder:
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, %r) if name == "stored_one" else None
sys.meta_path.append(Finder)
import stored_one
"""
    place.source.unlink()
    for value in ("one", "two", "one", "two"):
        path = tmp_path / f"{value}.py"
        path.write_text(f"value = {value!r}\n")
        assert place.start(finder % str(path))[0] == value


def test_code_that_was_compiled_elsewhere_names_its_file(place):
    """As in an environment that was copied."""
    elsewhere = place.folder.parent / "elsewhere"
    place.write("def value(): pass\nvalue = value.__code__.co_filename\n")
    place.folder.rename(elsewhere)
    place.folder = elsewhere
    for _ in range(2):
        assert place.start()[0] == str(elsewhere / "stored_one.py")


def test_files_of_other_environments_do_not_gather(place):
    for count in range(20):
        place.start(PYTHONPATH=f"{place.folder}:{place.folder}/{count}")
    assert len(list(place.cache.glob("start/*"))) == 8
    assert place.start(PYTHONPATH=f"{place.folder}:{place.folder}/19") == ["old", False]


def test_another_path_has_another_store(place, tmp_path):
    place.start()
    assert place.start(PYTHONPATH=str(place.folder)) == ["old", True]
    assert len(list(place.cache.glob("start/*"))) == 2


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(path.read_bytes()[:-1]),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"\xff" * 4096),
    lambda path: path.write_bytes(path.read_bytes()[:16] + b"\0" * (path.stat().st_size - 16)),
    lambda path: path.chmod(0o666),
    lambda path: path.parent.chmod(0o777),
    lambda path: (path.rename(path.parent.parent / "moved"), path.symlink_to(path.parent.parent / "moved")),
], ids=["cut", "empty", "garbage", "no index", "anybody's", "anybody's folder", "a link"])
def test_a_store_that_cannot_be_trusted_is_not_used(place, damage):
    place.start()
    place.change_unseen("value = 'new'\n")
    damage(place.store)
    assert place.start()[0] == "new"


@pytest.mark.parametrize("environment", [{"DRUPE_CACHE": "0"}, {"DRUPE_CACHE_DIR": "/dev/null/there"}])
def test_where_nothing_is_kept_it_starts_all_the_same(place, environment):
    assert place.start(**environment)[0] == "old"
    assert not place.cache.exists()


def test_stored_modules_are_like_others(place):
    look = """
import importlib, inspect, json, stored_one, string, xml.dom
def facts(module):
    spec = module.__spec__
    return [str(one) for one in (type(spec.loader), module.__loader__ is spec.loader, module.__file__,
            getattr(module, "__cached__", None), spec.origin, spec.has_location, spec.submodule_search_locations,
            getattr(module, "__path__", None),
            module.__package__, inspect.getsource(module)[:20], importlib.reload(module) is module)]
print(json.dumps([facts(one) for one in (stored_one, string, xml.dom)]))
"""
    imports = "import stored_one, string, xml.dom"
    place.start(imports)
    assert not place.start(imports)[1]
    stored = place.python(START % imports + look).splitlines()[-1]
    assert stored == place.python("import sys\ndel sys.path[0]" + look).splitlines()[-1]


def test_stored_expressions_are_the_same(place):
    patterns = [(r"(?P<a>x+)|(y)(?=z)", 0), (r"[\w-]+", 256), ("É+", 2), (b"\\x00+(a)", 0), ("a # b", 64)]
    imports = f"import re, stored_one\nfound = [re.compile(*one) for one in {patterns!r}]"
    place.start(imports)
    code = START % imports + ("\nre.purge()\nagain = [re.compile(*one) for one in %r]\n"
                              "assert found == again and [one.groupindex for one in found] == "
                              "[one.groupindex for one in again]\nassert found[0].match('xx')['a'] == 'xx'\n"
                              "print(type(re._compiler._sre).__name__, re._compiler.compile.__name__)" % (patterns,))
    assert place.python(code).splitlines()[-1] == "module compile"


def test_where_re_has_other_parts_its_expressions_are_left_alone(place):
    code = ("import re, types\nparts = vars(re._compiler)\n"
            "re._compiler = types.SimpleNamespace(**{name: parts[name] for name in parts if name != '_sre'})\n" +
            START % "import stored_one\nre.compile('a+b?')")
    assert json.loads(place.python(code)) == ["old", True]


def test_expressions_that_cannot_be_stored(place):
    imports = """
import re, stored_one
class Text(str): pass
found = [re.compile(one) for one in (Text("(a+)b?"), "(b+)a?", b"(b+)a?")]
assert [one.pattern for one in found] == ["(a+)b?", "(b+)a?", b"(b+)a?"]
"""
    assert [place.start(imports)[1] for _ in range(2)] == [True, False]
    run = subprocess.run([sys.executable, "-bb", "-c", START % imports], text=True, capture_output=True, env={
        **os.environ, "PYTHONPATH": f"{place.earlier}:{place.folder}", "DRUPE_CACHE_DIR": str(place.cache),
        "DRUPE_CACHE": "1"})
    assert run.returncode == 0, run.stderr


# --- Late modules --------------------------------------------------------------------------------------------------

LATE = "import %s as module, stored_one\nkind = type(module).__name__\n"


def late(place, name, code):
    return place.python(START % (LATE % name) + "\nassert kind == 'LateModule'\n" + code).splitlines()[-1]


@pytest.mark.parametrize("again", [False, True], ids=["found", "stored"])
@pytest.mark.parametrize("code, result", [
    ("print(module.machine() != '', type(module).__name__)", "True module"),
    ("print(sorted(dir(module)) == sorted(vars(module)))", "True"),
    ("from platform import *\nprint(machine() != '')", "True"),
    ("module.machine = len\nprint(module.machine([]), module.node() != '')", "0 True"),
    ("del module.machine\nprint(hasattr(module, 'machine'), module.node() != '')", "False True"),
    ("print(hasattr(module, 'nothing'), hasattr(module, '__path__'))", "False False"),
    ("import importlib\nprint(importlib.reload(module) is module)", "True"),
    ("import inspect\nprint(inspect.getsourcefile(module) == module.__file__)", "True"),
    ("import pickle\nprint(pickle.loads(pickle.dumps(module.machine))() == module.machine())", "True"),
])
def test_a_late_module_is_there_when_it_is_asked(place, code, result, again):
    for _ in range(1 + again):
        assert late(place, "platform", code) == result


def test_threads_ask_a_late_module_at_once(place):
    code = """
import concurrent.futures, sys
sys.setswitchinterval(1e-6)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(len({id(one) for one in pool.map(lambda _: module.SSLContext, range(64))}), type(module).__name__)
"""
    assert late(place, "ssl", code) == "1 module"


def test_a_late_module_that_fails_can_be_asked_again(place):
    code = """
sys.modules["_ssl"] = None
try:
    module.SSLContext
except ImportError as error:
    print(error.name)
del sys.modules["_ssl"]
print(module.SSLContext.__name__)
"""
    assert late(place, "ssl", code) == "SSLContext"


OWN = """
start_imports.LATE["late_one"] = None
import late_one as module, stored_one
kind = type(module).__name__
"""


def own(place, text, code):
    """As late(), of a module with this text."""
    (place.folder / "late_one.py").write_text(text)
    return place.python(START % OWN + "\nassert kind == 'LateModule'\n" + code).splitlines()[-1]


def test_a_late_module_that_was_interrupted_is_executed_again(place):
    text = """
def early(): return later()
import signal, builtins
if not hasattr(builtins, "was_here"):
    builtins.was_here = True
    signal.raise_signal(signal.SIGINT)
def later(): return "whole"
"""
    code = """
try:
    module.early
except KeyboardInterrupt:
    print(module.early(), type(module).__name__)
"""
    assert own(place, text, code) == "whole module"


def test_no_thread_sees_half_of_a_late_module(place):
    text = """
def early(): return later()
import builtins
builtins.half.set()
builtins.asked.wait(0.2)
def later(): return "whole"
"""
    code = """
import builtins, threading
builtins.half, builtins.asked = threading.Event(), threading.Event()
one = threading.Thread(target=lambda: module.early)
one.start()
builtins.half.wait()
try:
    print(module.early())
finally:
    builtins.asked.set()
    one.join()
"""
    assert own(place, text, code) == "whole"


@pytest.mark.parametrize("code, result", [
    ("print(sorted(vars(module)) == sorted(dir(module)), 'value' in vars(module))", "True True"),
    ("print(module.__doc__)", "Text."),
    ("import late_one\nprint(type(late_one).__name__)", "module"),  # for extensions that look into its dictionary
    ("import inspect, pkgutil\nprint(pkgutil.get_data('late_one', 'late_one.py')[:7])", "b'\"Text.\"'"),
    ("import importlib.util\nprint(type(importlib.util.find_spec('late_one').loader).__name__, "
     "type(module.__loader__).__name__)", "SourceFileLoader SourceFileLoader"),
    ("for one in list(sys.modules.values()):\n    [hasattr(one, name) for name in ('__file__', '__path__')]\n"
     "print(type(module).__name__)", "LateModule"),
])
def test_a_late_module_is_whole_for_whoever_looks_into_it(place, code, result):
    assert own(place, '"Text."\nvalue = 1\n', code) == result


def test_functions_that_use_a_late_module_are_pickled(place):
    pytest.importorskip("cloudpickle")
    code = """
import cloudpickle, tempfile
print(cloudpickle.loads(cloudpickle.dumps(lambda: tempfile.gettempprefix()))())
"""
    assert late(place, "tempfile", code) == "tmp"


def test_what_asyncio_needs_of_ssl_is_there(place):
    code = """
import asyncio, ssl
assert asyncio.base_events.ssl is ssl is module
assert issubclass(asyncio.sslproto.SSLProtocol, asyncio.BufferedProtocol)
print(type(asyncio.sslproto).__name__, asyncio.sslproto.SSLAgainErrors == (ssl.SSLWantReadError, ssl.SSLSyscallError))
"""
    assert late(place, "ssl", code) == "module True"


def test_the_modules_of_the_table_exist():
    from drupe.jupyter import start_imports

    for name in start_imports.LATE:
        __import__(name)
        assert not hasattr(sys.modules[name], "__path__") and pathlib.Path(sys.modules[name].__file__).suffix == ".py"


def test_threads_compile_expressions_at_once():
    """Each is known by what was compiled for it, also where a warning has compiled another one in between."""
    import re
    import threading
    import warnings

    from drupe.jupyter import start_imports

    expressions = start_imports.Expressions({})
    patterns = ["x{%d}" % count for count in range(300)] + ["[[a]%d" % count for count in range(20)]  # these warn
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        def warn(message, *_):
            re.compile("(%s)%d" % (re.escape(str(message)), threading.get_ident()))

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = warn
            threads = [threading.Thread(target=lambda: [re.compile(one) for one in patterns]) for _ in range(4)]
            re.purge()
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
    finally:
        sys.setswitchinterval(before)
        expressions.close()
    assert {pattern for _, pattern, _ in expressions.known} > set(patterns)
    known = start_imports.Expressions(dict(expressions.known))
    try:
        re.purge()
        again = {key[1:]: known.compile(*key[1:]) for key in expressions.known}
    finally:
        known.close()
    re.purge()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert again == {key: re.compile(*key) for key in again}


def test_the_cache_is_cleared_of_it(place):
    place.start()
    size = place.store.stat().st_size
    text = place.python("import sys\nfrom drupe.program import cache_command\nsys.exit(cache_command(['clear']))")
    assert text.startswith("freed ") and size > 0 and not list(place.cache.glob("start/*"))
    assert place.start() == ["old", True]
