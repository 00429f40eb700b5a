"""What a fresh kernel has not imported yet, and that it is complete once somebody imports it."""
import pytest
import support

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


def test_the_start_is_stored_and_nothing_of_it_stays(spec_folder, tmp_path):
    """In a quiet moment after the start, which the test does not wait for; on a slow machine it is over."""
    code = """
import asyncio, re, sys
from importlib.machinery import PathFinder
for one in list(asyncio.get_running_loop()._scheduled):
    if one._callback.__qualname__.endswith("write"):
        one._run()
"""
    state = ("[type(re._compiler._sre).__name__, "
             "[type(one).__name__ for one in sys.meta_path if 'start' in type(one).__module__]]")
    kernel = support.Kernel(spec_folder, {"DRUPE_CACHE_DIR": str(tmp_path), "DRUPE_CACHE": "1"})
    try:
        run = kernel.run(code + state)
        assert run.result == "['module', []]", run.text()
        assert len(list(tmp_path.glob("start/*"))) == 1
    finally:
        kernel.close()
    again = support.Kernel(spec_folder, {"DRUPE_CACHE_DIR": str(tmp_path), "DRUPE_CACHE": "1"})
    try:
        assert again.run("import re, sys\n" + state).result == "['module', []]"
        assert again.run("import asyncio; [one for one in asyncio.get_running_loop()._scheduled "
                         "if one._callback.__qualname__.endswith('write')]").result == "[]"
        late = again.run("[name for name, one in sys.modules.items() if type(one).__name__ == 'LateModule']")
        assert "'ssl'" in late.result and "'asyncio.sslproto'" in late.result
        assert again.run("import ssl; ssl.create_default_context().verify_mode.name").result == "'CERT_REQUIRED'"
    finally:
        again.close()


MADE = """
def made(ip):
    matchers = [one.__module__.partition(".")[0] for one in ip.Completer.custom_matchers]
    return (sum(type(one).__name__ == "IPCompleter" for one in ip.configurables), matchers.count("drupe"),
            len(list(ip.strdispatchers["complete_command"].s_matches("%cd"))))
"""


def test_threads_that_complete_at_once_have_one_completer(fresh):
    code = MADE + """
import sys, threading
ip, found, before = get_ipython(), [], sys.getswitchinterval()
sys.setswitchinterval(1e-6)
start = threading.Barrier(4)
def ask():
    start.wait()
    found.append((id(ip.Completer), len(ip.Completer.custom_matchers)))
threads = [threading.Thread(target=ask) for _ in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
sys.setswitchinterval(before)
(len(set(found)), made(ip))
"""
    run = fresh.run(code)
    assert run.result == "(1, (1, 1, 1))", run.text()


def test_a_completer_whose_making_was_interrupted_is_made_whole(fresh):
    code = MADE + """
ip = get_ipython()
def stop(*_, **__):
    raise KeyboardInterrupt
ip.set_hook = stop
try:
    ip.Completer
except KeyboardInterrupt:
    del ip.set_hook
    print(made(ip))
"""
    run = fresh.run(code)
    assert run.text().strip() == "(1, 1, 1)", run.text()


def test_an_extension_that_cannot_complete_does_not_take_the_others_with_it(fresh):
    code = MADE + """
ip = get_ipython()
def fail(shell):
    raise ValueError("not here")
ip.log.disabled = True
ip._when_completing.insert(0, fail)
print(made(ip))
"""
    assert fresh.run(code).text().strip() == "(1, 1, 1)"
