"""What a fresh kernel has not imported yet, and that it is complete once somebody imports it."""
import pytest

REPLACED = ("(pdb.Pdb is d.Pdb is d.InterruptiblePdb, pdb.set_trace is d.set_trace, "
            "pdb.__spec__.loader is pdb.__loader__)")


def test_starts_without_what_only_some_cells_need(fresh):
    code = "import sys; sorted({'pdb', 'IPython.core.debugger', 'jedi', 'matplotlib', 'numpy'} & set(sys.modules))"
    assert fresh.run(code).result == "[]"


@pytest.mark.parametrize("first", ["import pdb; import IPython.core.debugger as d",
                                   "import IPython.core.debugger as d; import pdb"])
def test_pdb_is_the_interruptible_one(fresh, first):
    assert fresh.run("%s\n%s" % (first, REPLACED)).result == "(True, True, True)"
    # and its source is still found
    assert fresh.run("import inspect; 'class Pdb' in inspect.getsource(pdb)").result == "True"


def test_garbage_is_collected_after_the_start(fresh):
    assert fresh.run("import gc; gc.isenabled(), gc.get_freeze_count()").result == "(True, 0)"
    fresh.run("class A: pass\na = A(); a.me = a\nimport weakref; w = weakref.ref(a); del a; gc.collect()")
    assert fresh.run("w() is None").result == "True"
