"""docs/ipykernel.md against the kernel, and against ipykernel where that is installed in the version of the tables."""
import importlib
import io
import pathlib
import pkgutil
import re

import pytest

VERSION = "7.4."
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "ipykernel.md"
STATES = ("same", "differs", "no effect", "absent")


def tables():
    """For each marked table (kind, what it is about, {name: state})."""
    found, rows = [], None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        mark = re.fullmatch(r"<!-- (\w+) ?(.*) -->", line)
        if mark:
            rows = {}
            found.append((mark[1], mark[2], rows))
        elif line.startswith("#"):
            rows = None
        elif rows is not None and line.startswith("| `"):
            names, state = line.split("|")[1:3]
            for name in re.findall(r"`([^`]+)`", names):
                assert state.strip() in STATES, line
                rows.setdefault(name, state.strip())
    return found


TABLES = tables()


def table(kind, about=""):
    (rows,) = [rows for one, what, rows in TABLES if (one, what) == (kind, about)]
    return rows


def named(kind):
    return [what for one, what, _ in TABLES if one == kind]


def ask(kernel, code):
    run = kernel.run("import sys\n" + code)
    assert run.status == "ok", run.reply
    return eval(run.result)


@pytest.mark.parametrize("expression", named("names"))
def test_names(kernel, expression):
    rows = table("names", expression)
    there = ask(kernel, "one = %s\n{name: hasattr(one, name) for name in %r}" % (expression, list(rows)))
    assert there == {name: state != "absent" for name, state in rows.items()}


@pytest.mark.parametrize("name", named("traits"))
def test_traits(kernel, name):
    rows = table("traits", name)
    found = ask(kernel, "from drupe.jupyter import application as a, facade as f\n"
                        "cls = {'IPKernelApp': a.IPKernelApp, 'IPythonKernel': f.IPythonKernel}[%r]\n"
                        "none = {n for c in cls.__mro__ for n in a.WITHOUT_EFFECT.get(c.__name__, ())}\n"
                        "set(cls.class_traits(config=True)), none" % name)
    assert set(rows) - found[0] == set()
    assert {name for name, state in rows.items() if state == "no effect"} == found[1]


def test_options(kernel):
    rows = table("options")
    options = ask(kernel, "app = get_ipython().kernel.parent\nsorted({**app.aliases, **app.flags})")
    named = {name.lstrip("-") for name in rows} | {"connection-file"}
    assert named >= set(options) and named - set(options) <= {"theme"}  # an alias of IPython 9


def test_modules(fresh):
    rows = table("modules")
    fresh.run("import drupe.jupyter.shims as s; s._installed = lambda: None")
    found = ask(fresh, "import importlib\ndef there(name):\n    try: importlib.import_module(name)\n"
                       "    except ModuleNotFoundError: return False\n    return True\n"
                       "{name: there(name) for name in %r}" % list(rows))
    assert found == {name: state != "absent" for name, state in rows.items()}


# --- whether the tables name all that ipykernel has ---


@pytest.fixture(scope="module")
def real():
    version = pytest.importorskip("ipykernel").__version__
    if not version.startswith(VERSION):
        pytest.skip("the tables are of ipykernel %s*, and %s is installed" % (VERSION, version))
    return importlib.import_module


def missing(rows, cls, *bases):
    inherited = set().union(*(dir(base) for base in bases))
    return {name for name in dir(cls) if not name.startswith("_")} - inherited - set(rows)


def test_no_name_is_left_out(real):
    shellapp, application = real("IPython.core.shellapp"), real("IPython.core.application")
    traits, singleton = real("traitlets"), real("traitlets.config.configurable").SingletonConfigurable
    zmqshell, hook, kernel = real("ipykernel.zmqshell"), real("ipykernel.displayhook"), "get_ipython().kernel"
    for about, cls, *bases in (
            (kernel + ".parent", real("ipykernel.kernelapp").IPKernelApp, application.BaseIPythonApplication,
             shellapp.InteractiveShellApp),
            (kernel, real("ipykernel.ipkernel").IPythonKernel, singleton),
            ("get_ipython()", zmqshell.ZMQInteractiveShell, real("IPython.core.interactiveshell").InteractiveShell),
            ("get_ipython().displayhook", hook.ZMQShellDisplayHook, real("IPython.core.displayhook").DisplayHook),
            ("get_ipython().display_pub", zmqshell.ZMQDisplayPublisher,
             real("IPython.core.displaypub").DisplayPublisher),
            ("__import__('sys').stdout", real("ipykernel.iostream").OutStream, io.TextIOBase),
            ("__import__('comm').create_comm('t', primary=False)", real("ipykernel.comm").Comm, traits.HasTraits,
             singleton),
            ("__import__('comm').get_comm_manager()", real("ipykernel.comm").CommManager, traits.HasTraits,
             singleton)):
        assert missing(table("names", about), cls, *bases) == set(), about


def test_no_option_is_left_out(real):
    app = real("ipykernel.kernelapp").IPKernelApp
    assert {name.lstrip("-") for name in table("options")} >= {*app().aliases, *app().flags}
    for about, classes in (("IPKernelApp", [app, real("jupyter_client.connect").ConnectionFileMixin]),
                           ("IPythonKernel", real("ipykernel.ipkernel").IPythonKernel.__mro__[:2])):
        own = {name for cls in classes for name in cls.class_own_traits(config=True)}
        assert own - set(table("traits", about)) == set()


def test_no_module_is_left_out(real):
    package = real("ipykernel")
    found = {module.name for module in pkgutil.walk_packages(package.__path__, "ipykernel.", onerror=lambda name: None)}
    assert {name for name in found if not name.startswith("ipykernel.gui.")} - set(table("modules")) == set()
