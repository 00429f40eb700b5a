"""The package's surface: what importing costs, and that every public name is there and documented."""
import importlib

import pytest

import drupe
import drupe.array


def test_import_is_light(fresh):
    result = fresh("""
        import sys
        before = set(sys.modules)
        import drupe
        new = set(sys.modules) - before
        assert "drupe._engine" not in new and "numpy" not in new, new
        assert drupe.__version__
        assert len([name for name in new if name.startswith("drupe")]) == 1, new
    """)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("first", ["drupe._members", "drupe._engine", "drupe.array"])
def test_any_module_may_be_imported_first(fresh, first):
    """A function that is a member is pickled by the module it is written in, which a new process imports first."""
    result = fresh(f"import {first}; import drupe; drupe.Queue.memcpy; assert drupe.Queue('host').name")
    assert result.returncode == 0, result.stderr


def test_members_in_python_are_looked_through():
    """IPython shows what a descriptor of a type in C gives, for ? and completion, and not what a property does."""
    import inspect

    for owner, name in ((drupe.Queue, "name"), (drupe.Context, "platform"), (drupe.Event, "execution_status")):
        assert inspect.isgetsetdescriptor(vars(owner)[name]) and vars(owner)[name].__doc__
    with pytest.raises(AttributeError, match="not writable"):
        drupe.Queue("host").name = "other"


def test_the_doctor_is_a_command(fresh):
    result = fresh("import drupe; drupe.doctor()")
    assert result.stderr.endswith("AttributeError: module 'drupe' has no attribute 'doctor'. It is a command: "
                                  "python -m drupe doctor\n")
    assert fresh("from drupe import doctor; doctor.advice").returncode == 0


def test_arrays_do_not_import_numpy(fresh):
    result = fresh("""
        import sys
        import drupe.array as da
        assert float((da.ones(3, device="host") * 2).sum()) == 6
        assert "numpy" not in sys.modules
    """)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", drupe.__all__)
def test_public_names(name):
    thing = getattr(drupe, name)
    assert thing.__doc__
    for one in (thing, *vars(thing).values()) if isinstance(thing, type) else (thing,):
        assert max(map(len, (one.__doc__ or "").splitlines()), default=0) <= 120, one  # front-ends break words else


@pytest.mark.parametrize("module", ["drupe.array", "drupe.memory", "drupe.program", "drupe.utils"])
def test_modules_export_what_they_say(module):
    loaded = importlib.import_module(module)
    assert loaded.__doc__
    for name in loaded.__all__:
        assert hasattr(loaded, name), name


def test_unknown_names():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        drupe.nonsense
    assert "Device" in dir(drupe)


def test_types_are_closed():
    with pytest.raises(TypeError):
        type("Mine", (drupe.Device,), {})
    with pytest.raises(TypeError):
        drupe.Kernel()
    with pytest.raises(TypeError):
        drupe.Device.name = "other"


def test_operations_come_from_the_table():
    import drupe._engine as engine

    for name, operation in engine.operations.items():
        assert getattr(drupe.array, name) is operation or name == "round"  # which takes decimals as well
        assert operation.__name__ == name
        assert operation.__doc__.startswith(name + "(")
        assert operation.nin in (1, 2, 3)
