"""Cells that await under another library's loop: %autoawait."""
import time

import pytest

LOOPS = ["trio", "curio"]


@pytest.fixture
def under(kernel):
    """Switches the kernel to a loop, and back."""

    def switch(name):
        pytest.importorskip(name)
        run = kernel.run("%autoawait " + name)
        assert run.status == "ok" and run.text() == ""

    yield switch
    kernel.run("%autoawait asyncio")
    assert kernel.run("import asyncio; await asyncio.sleep(0, 'asyncio')").result == "'asyncio'"


@pytest.mark.parametrize("name", LOOPS)
def test_a_cell_runs_under_it(kernel, under, name):
    under(name)
    run = kernel.run("import %s\nprint('before')\nawait %s.sleep(0.01)\nprint('after')\n6 * 7" % (name, name))
    assert run.text() == "before\nafter\n" and run.result == "42"
    assert kernel.run("_ + 1").result == "43"  # a cell that awaits nothing
    failed = kernel.run("async def f(): 1/0\nawait f()")
    assert failed.reply["ename"] == "ZeroDivisionError" and len(failed.of("error")) == 1
    assert "site-packages" not in "".join(failed.reply["traceback"])


def test_tasks_of_trio(kernel, under):
    under("trio")
    run = kernel.run("import trio, sniffio\nfirst = trio.Event()\n"
                     "async def say(n):\n    if n == 2: await first.wait()\n"
                     "    print(n)\n    first.set()\n"
                     "async with trio.open_nursery() as nursery:\n    for n in (2, 1):\n"
                     "        nursery.start_soon(say, n)\nsniffio.current_async_library()")
    assert run.text() == "1\n2\n" and run.result == "'trio'"
    failed = kernel.run("async def f(): 1/0\nasync with trio.open_nursery() as nursery:\n    nursery.start_soon(f)")
    assert failed.reply["ename"] == "ExceptionGroup" and "ZeroDivisionError" in "".join(failed.reply["traceback"])


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("code", ["await %s.sleep(600)", "await %s.sleep(0)\nwhile True: pass"])
def test_it_is_interrupted(kernel, under, name, code):
    under(name)
    msg_id = kernel.send("import %s\nprint('begun', flush=True)\n" % name + code % name)
    kernel.told(msg_id, "begun")
    time.sleep(0.1)
    kernel.interrupt()
    run = kernel.finish(msg_id)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("await %s.sleep(0)\n'again'" % name).result == "'again'"
    msg_id = kernel.send("import time\nprint('begun', flush=True)\ntime.sleep(600)")  # the kernel's own way is back
    kernel.told(msg_id, "begun")
    kernel.interrupt()
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"


def test_a_runner_of_the_users(kernel, under):
    kernel.run("import asyncio\ndef runner(coroutine):\n    print('mine')\n    return asyncio.run(coroutine)")
    kernel.run("%autoawait runner")
    run = kernel.run("await asyncio.sleep(0)\n1 + 1")
    kernel.run("%autoawait asyncio")
    assert run.text() == "mine\n" and run.result == "2"


def test_one_that_is_not_installed(kernel):
    kernel.run("import sys\nfor name in [n for n in sys.modules if n.split('.')[0] == 'trio']: del sys.modules[name]\n"
               "class Missing:\n    def find_spec(self, name, *more):\n"
               "        if name == 'trio': raise ModuleNotFoundError(name)\n"
               "sys.meta_path.insert(0, Missing())")
    run = kernel.run("%autoawait trio")
    assert run.text("stderr") == "UsageError: %autoawait trio: the package trio is not installed: %pip install trio\n"
    kernel.run("sys.meta_path.pop(0)")
    assert kernel.run("import asyncio; await asyncio.sleep(0, 'asyncio')").result == "'asyncio'"
