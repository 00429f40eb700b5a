"""Imports of names that Drupe answers: whose, when, and that installed libraries notice nothing."""
import textwrap

import pytest

LIBRARY = '''
    """An installed library that can do without dpctl."""
    import importlib
    import importlib.util


    def names():
        """How it finds dpctl, in each way."""
        found = []
        try:
            import dpctl
            found.append("import")
        except ImportError as error:
            assert type(error) is ModuleNotFoundError and error.name == "dpctl"
            assert str(error) == "No module named 'dpctl'"
        try:
            import dpctl.memory
            found.append("import of a submodule")
        except ImportError as error:
            assert type(error) is ModuleNotFoundError and str(error) == "No module named 'dpctl'"
        try:
            from dpctl import memory
            found.append("from")
        except ImportError as error:
            assert str(error) == "No module named 'dpctl'"
        try:
            importlib.import_module("dpctl")
            found.append("import_module")
        except ImportError as error:
            assert str(error) == "No module named 'dpctl'"
        if importlib.util.find_spec("dpctl") is not None:
            found.append("find_spec")
        exec("try: import dpctl; found.append('exec')\\nexcept ImportError: pass", {"found": found})
        return found


    try:
        import dpctl
        HAS_DPCTL = True
    except ImportError:
        HAS_DPCTL = False
'''


@pytest.fixture
def run(fresh, tmp_path):
    """Run text as a program beside which a library is installed and a module of the program's own lies."""
    installed = tmp_path / "lib/site-packages"
    installed.mkdir(parents=True)
    (installed / "library.py").write_text(textwrap.dedent(LIBRARY))
    own = tmp_path / "own"
    own.mkdir()
    (own / "part.py").write_text("import dpctl\nfrom dpctl import memory\n")

    def run(text, **environment):
        result = fresh("import sys\n" + textwrap.dedent(text), PYTHONPATH=f"{own}:{installed}", **environment)
        assert result.returncode == 0, result.stderr
        return result

    return run


def test_a_program_is_answered_and_told_once(run):
    result = run("""
        import drupe.compat
        drupe.compat.enable()
        import dpctl
        import dpctl.memory, dpctl.memory as other
        from dpctl import memory
        import part
        import drupe.compat.dpctl.memory as ours
        assert dpctl is sys.modules["drupe.compat.dpctl"] is part.dpctl
        assert dpctl.memory is other is memory is ours is part.memory is sys.modules["dpctl.memory"]
        assert dpctl.__name__ == dpctl.__spec__.name == "drupe.compat.dpctl", dpctl.__spec__
        assert memory.__name__ == memory.__spec__.name == "drupe.compat.dpctl.memory"
    """)
    assert result.stderr == "dpctl is answered by Drupe (drupe.compat.dpctl); docs/compat-dpctl.md says what differs\n"


def test_nothing_is_answered_that_was_not_enabled(run):
    run("""
        import drupe.compat
        assert not drupe.compat.is_enabled()
        try:
            import dpctl
        except ModuleNotFoundError as error:
            assert error.name == "dpctl"
        else:
            raise AssertionError("answered")
    """)


@pytest.mark.parametrize("before", [False, True])
def test_installed_libraries_find_what_they_found(run, before):
    """Those that were imported before the first answer, and those that come after it."""
    first, then = ("import library", "import dpctl") if before else ("import dpctl", "import library")
    result = run(f"""
        import drupe.compat
        drupe.compat.enable()
        {first}
        {then}
        assert library.HAS_DPCTL is False
        assert library.names() == []
        import dpctl, dpctl.memory  # after its attempts, too
        assert library.names() == []
    """)
    assert result.stderr.count("\n") == 1


def test_what_can_be_asked_of_a_name_that_is_answered(run):
    """The guard changes nothing for the program itself."""
    run("""
        import importlib, importlib.util
        import drupe.compat
        drupe.compat.enable()
        assert importlib.util.find_spec("dpctl") is not None and "dpctl" not in sys.modules
        assert importlib.import_module("dpctl").__name__ == "drupe.compat.dpctl"
        assert importlib.import_module(".memory", "dpctl") is sys.modules["dpctl.memory"]
        assert importlib.util.find_spec("dpctl.memory") is not None
        assert importlib.util.find_spec("dpctl.nowhere") is None
        assert __import__("dpctl.memory") is sys.modules["dpctl"]
        text = {}
        exec("import dpctl.memory", text)
        assert text["dpctl"] is sys.modules["dpctl"]
        try:
            import dpctl.nowhere
        except ModuleNotFoundError as error:
            assert "dpctl.nowhere" in str(error)
        else:
            raise AssertionError("found")
    """)


def test_an_installed_one_wins(run, tmp_path):
    (tmp_path / "lib/site-packages/dpctl.py").write_text("REAL = True\n")
    result = run("""
        import drupe.compat
        drupe.compat.enable()
        import builtins, dpctl, library
        assert dpctl.REAL and library.HAS_DPCTL
        assert builtins.__import__.__module__ == "builtins"
    """)
    assert result.stderr == ""


def test_the_switch(run):
    run("""
        import builtins, importlib, importlib.util
        import drupe.compat
        usual = builtins.__import__, importlib.import_module, importlib.util.find_spec, list(sys.meta_path)
        for _round in range(2):
            drupe.compat.enable()
            drupe.compat.enable()
            assert drupe.compat.is_enabled()
            import dpctl.memory
            drupe.compat.disable()
            drupe.compat.disable()
            assert not drupe.compat.is_enabled()
            now = builtins.__import__, importlib.import_module, importlib.util.find_spec, list(sys.meta_path)
            assert now == usual
            assert "dpctl" not in sys.modules and "dpctl.memory" not in sys.modules
            try:
                import dpctl
            except ModuleNotFoundError:
                pass
            else:
                raise AssertionError("answered")
    """)


def test_somebody_else_before_the_guard_stays(run):
    run("""
        import builtins
        import drupe.compat
        drupe.compat.enable()
        import dpctl
        guard = builtins.__import__
        def theirs(*args, **options):
            return guard(*args, **options)
        builtins.__import__ = theirs
        import library
        assert library.names() == []
        drupe.compat.disable()
        assert builtins.__import__ is theirs
        import colorsys
    """)


@pytest.mark.parametrize("value, enabled, told", [("", True, 0), ("1", True, 0), ("0", False, 0), ("off", True, 1)])
def test_the_variable(run, value, enabled, told):
    run(f"""
        import drupe.compat
        from drupe.jupyter import features
        drupe.compat.enable_at_start()
        assert drupe.compat.is_enabled() is {enabled}
        assert len([line for line in features.problems() if "DRUPE_COMPAT" in line]) == {told}
    """, DRUPE_COMPAT=value)


def test_a_name_below_a_package_that_is_not_there(run):
    result = run("""
        from drupe.compat import _provided
        _provided.PROVIDED["nowhere.tool"] = ("dpctl", "compat-dpctl.md")
        import drupe.compat
        drupe.compat.enable()
        from nowhere import tool
        import nowhere.tool.memory
        assert nowhere.tool is tool and tool.memory.__name__ == "drupe.compat.dpctl.memory"
        try:
            nowhere.njit
        except AttributeError as error:
            assert str(error) == "nowhere is not installed; Drupe answers only nowhere.tool"
        else:
            raise AssertionError("found")
        installed = {"__name__": "library", "__file__": "/x/site-packages/library.py", "found": []}
        exec("try: import nowhere\\nexcept ImportError as error: found.append(error.name)", installed)
        exec("try: from nowhere import tool\\nexcept ImportError as error: found.append(error.name)", installed)
        exec("try: import nowhere.tool\\nexcept ImportError as error: found.append(error.name)", installed)
        assert installed["found"] == ["nowhere"] * 3, installed["found"]
        drupe.compat.disable()
        assert not [name for name in sys.modules if name.startswith("nowhere")]
    """)
    assert result.stderr.startswith("nowhere.tool is answered by Drupe (drupe.compat.dpctl)")


def test_a_name_below_an_installed_package(run, tmp_path):
    (tmp_path / "lib/site-packages/partly").mkdir()
    (tmp_path / "lib/site-packages/partly/__init__.py").write_text("def usual(): return 1\n")
    run("""
        from drupe.compat import _provided
        _provided.PROVIDED["partly.tool"] = ("dpctl", "compat-dpctl.md")
        import drupe.compat
        drupe.compat.enable()
        import partly
        from partly import tool
        assert partly.usual() == 1 and tool.__name__ == "drupe.compat.dpctl"
        installed = {"__name__": "library", "__file__": "/x/site-packages/library.py", "found": []}
        exec("import partly; found.append(partly.usual())", installed)
        exec("try: from partly import tool\\nexcept ImportError as error: found.append(str(error))", installed)
        assert installed["found"] == [1, "cannot import name 'tool' from 'partly'"]
        drupe.compat.disable()
        assert not hasattr(partly, "tool") and sys.modules["partly"] is partly
    """)


def test_what_is_absent_says_what_to_write(run):
    run("""
        import drupe.compat
        drupe.compat.enable()
        import dpctl
        assert not hasattr(dpctl, "set_global_queue") and not hasattr(dpctl, "nothing")
        said = ("Drupe does not provide dpctl.set_global_queue. Give the queue itself to what uses it, or write `with "
                "dpctl.device_context(which):`.")
        try:
            dpctl.set_global_queue
        except drupe.compat.NotProvided as error:
            assert str(error) == said and isinstance(error, (NotImplementedError, AttributeError))
        try:
            from dpctl import set_global_queue
        except ImportError as error:
            assert str(error) == said
        try:
            from dpctl import nothing
        except ImportError as error:
            assert "cannot import name 'nothing'" in str(error)
    """)


def test_names(run):
    run("""
        import drupe.compat
        from drupe.compat import _provided
        names = drupe.compat.names()
        assert names["dpctl"] == "drupe.compat.dpctl" and set(names) <= set(_provided.PROVIDED)
        _provided.PROVIDED["other"] = ("not_there", "compat.md")
        assert drupe.compat.names() == names
    """)


def test_a_program_is_run_with_them(run, tmp_path, fresh):
    program = tmp_path / "program.py"
    program.write_text("import sys, dpctl, beside\nprint(sys.argv[1:], dpctl.__name__, beside.dpctl is dpctl)\n")
    (tmp_path / "beside.py").write_text("import dpctl\n")
    run(f"""
        import subprocess
        ran = subprocess.run([sys.executable, "-m", "drupe.compat", {str(program)!r}, "a", "-b"], capture_output=True,
                             text=True)
        assert ran.stdout == "['a', '-b'] drupe.compat.dpctl True\\n", ran
        told = subprocess.run([sys.executable, "-m", "drupe.compat", "--help"], capture_output=True, text=True)
        assert told.returncode == 0 and "drupe.compat.dpctl" in told.stdout
    """)


def test_threads_import_the_same(run):
    run("""
        import threading
        import drupe.compat
        drupe.compat.enable()
        found, gate = [], threading.Barrier(8)
        def work():
            gate.wait()
            import dpctl.memory
            found.append((dpctl, dpctl.memory))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(found) == 8 and len(set(map(id, sum(found, ())))) == 2
    """)


def test_the_guard_leaves_no_trace(run, tmp_path):
    """A module that warns whoever imports it names that line, and a traceback shows no frame of Drupe's."""
    (tmp_path / "own/old.py").write_text("import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n")
    run("""
        import builtins, importlib, inspect, traceback, warnings
        import drupe.compat
        drupe.compat.enable()
        usual = builtins.__import__, importlib.import_module
        import dpctl
        assert builtins.__import__ is not usual[0] is builtins.__import__.__wrapped__
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            import old
        assert told[0].filename == "<string>", told
        for attempt in (lambda: __import__("not_there"), lambda: importlib.import_module("not_there")):
            try:
                attempt()
            except ModuleNotFoundError as error:
                assert "_finder" not in "".join(traceback.format_exception(error))
            else:
                raise AssertionError("found")
        assert inspect.signature(importlib.import_module) == inspect.signature(usual[1])
        assert __import__(name="dpctl") is importlib.import_module(name="dpctl") is dpctl
        for wrong in (lambda: __import__(), lambda: __import__(1), lambda: __import__(nonsense=1)):
            try:
                wrong()
            except TypeError:
                continue
            raise AssertionError("taken")
        drupe.compat.disable()
        assert (builtins.__import__, importlib.import_module) == usual
    """)


def test_text_that_is_run_under_a_name_counts_for_who_runs_it(run, tmp_path):
    (tmp_path / "lib/site-packages/runs.py").write_text("def text(source, names):\n    exec(source, names)\n")
    run("""
        import drupe.compat
        drupe.compat.enable()
        import runs
        for source in ("import dpctl", "import dpctl.memory"):  # before and after the first answer
            try:
                runs.text(source, {"__name__": "generated"})
            except ModuleNotFoundError:
                pass
            else:
                raise AssertionError("answered")
            names = {"__name__": "generated"}
            exec(source, names)
            assert names["dpctl"].__name__ == "drupe.compat.dpctl"
    """)


def test_one_that_is_installed_later_is_found_by_libraries(run, tmp_path):
    result = run(f"""
        import importlib, os
        import drupe.compat
        drupe.compat.enable()
        import dpctl, dpctl.memory, library
        ours = dpctl
        assert library.HAS_DPCTL is False and library.names() == []
        os.makedirs({str(tmp_path / "lib/site-packages/dpctl")!r})
        for name in ("__init__", "memory"):
            open({str(tmp_path / "lib/site-packages/dpctl")!r} + f"/{{name}}.py", "w").close()
        importlib.invalidate_caches()
        assert library.names() == ["import", "import of a submodule", "from", "import_module", "find_spec", "exec"]
        import dpctl.memory
        assert dpctl.__name__ == "dpctl" and dpctl.memory.__name__ == "dpctl.memory"
        assert ours.SyclDevice is not None and library.names()
        drupe.compat.disable()
        assert sys.modules["dpctl"] is dpctl
    """)
    assert result.stderr.count("installed by now") == 1


def test_another_module_in_its_place_is_left_alone(run, tmp_path):
    (tmp_path / "lib/site-packages/finds.py").write_text("def it():\n    import dpctl\n    return dpctl\n")
    run("""
        import types
        import drupe.compat
        drupe.compat.enable()
        import dpctl, finds
        theirs = sys.modules["dpctl"] = types.ModuleType("dpctl")
        assert finds.it() is theirs
        drupe.compat.disable()
        assert sys.modules["dpctl"] is theirs
    """)


def test_helpers_of_the_standard_library_count_for_who_calls_them(run, tmp_path):
    (tmp_path / "lib/site-packages/helped.py").write_text(textwrap.dedent("""
        import pkgutil, pydoc, timeit
        from unittest import mock

        def ways():
            return (lambda: pkgutil.resolve_name("dpctl.memory"), lambda: timeit.timeit("import dpctl", number=1),
                    lambda: mock.patch("dpctl.get_devices").__enter__())

        def refused():
            for way in ways():
                try:
                    way()
                except (ImportError, AttributeError):
                    continue
                return False
            return pydoc.locate("dpctl") is None
    """))
    run("""
        import pkgutil, pydoc, timeit
        from unittest import mock
        import drupe.compat
        drupe.compat.enable()
        import helped
        assert helped.refused()
        assert pkgutil.resolve_name("dpctl.memory").__name__ == "drupe.compat.dpctl.memory"
        timeit.timeit("import dpctl", number=1)
        with mock.patch("dpctl.get_devices"):
            pass
        assert pydoc.locate("dpctl").__name__ == "drupe.compat.dpctl"
        import library
        assert library.names() == []
    """)


def test_a_module_that_is_absent_is_not_found(run):
    """It says what to write, in the class of errors that programs catch."""
    run("""
        import drupe.compat
        drupe.compat.enable()
        try:
            import dpctl.tensor.linalg
        except ModuleNotFoundError as error:
            assert error.name == "dpctl.tensor.linalg" and "drupe.array" in str(error)
        else:
            raise AssertionError("found")
    """)
