"""Cells that fail in what comes after their code: an object that cannot be shown, an error that is hard to show."""
import re

import psutil
import pytest

BAD = "class Bad:\n    def __repr__(self): raise ValueError('no repr')\n"
PALE = "class Pale:\n    def __repr__(self): return 'pale'\n    def _repr_html_(self): raise KeyError('no html')\n"


def the_error(run):
    """What the cell shows and what the reply says are one error."""
    (shown,) = run.of("error")
    assert run.status == "error"
    assert {name: run.reply[name] for name in shown} == shown
    return shown


@pytest.mark.parametrize("before", ["", "import asyncio; await asyncio.sleep(0)\n"])
@pytest.mark.parametrize("code, ename", [(BAD + "Bad()", "ValueError"), (PALE + "Pale()", "KeyError"),
                                         (BAD.replace("ValueError", "MemoryError") + "Bad()", "MemoryError")])
def test_a_result_that_cannot_be_shown_fails_its_cell(kernel, gate, before, code, ename):
    failing = kernel.send(gate.wait + "\n" + before + code)
    queued = kernel.send("1")
    kernel.arrived()
    gate.open()
    run = kernel.finish(failing)
    assert the_error(run)["ename"] == ename
    assert [result["data"] for result in run.of("execute_result")] == (
        [{"text/plain": "pale"}] if ename == "KeyError" else [])
    assert kernel.finish(queued).status == "aborted"
    assert kernel.run("1").result == "1"


def test_so_does_one_in_the_middle_and_the_cell_goes_on(kernel):
    run = kernel.run(BAD + "display(Bad())\nprint('went on')")
    assert the_error(run)["ename"] == "ValueError" and run.text() == "went on\n"


def test_so_does_one_that_is_shown_after_the_code(kernel):
    run = kernel.run(BAD + "from IPython import get_ipython\ndef late():\n"
                     "    get_ipython().events.unregister('post_execute', late); display(Bad())\n"
                     "get_ipython().events.register('post_execute', late)\n1")
    assert the_error(run)["ename"] == "ValueError" and run.result == "1"


def test_whose_cell_it_is(kernel):
    """A cell that another one runs has a result of its own; a thread fails no cell; nor does what a client asks for."""
    run = kernel.run(BAD + "inner = get_ipython().run_cell('Bad()')\ninner.success")
    assert run.status == "ok" and run.result == "False"
    run = kernel.run("import threading\nt = threading.Thread(target=display, args=(Bad(),)); t.start(); t.join()")
    assert run.status == "ok" and run.of("error")[0]["ename"] == "ValueError"
    run = kernel.run("bad = Bad()", user_expressions={"bad": "bad"})
    assert run.status == "ok"


def test_no_memory(fresh):
    """Where even the usual traceback finds none, there is an error and no raw text."""
    run = fresh.run("import resource\nmost = resource.getrlimit(resource.RLIMIT_AS)[1]\n"
                    "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
                    "resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), most))\n"
                    "kept, size = [], 1 << 20\n"
                    "while True:\n"
                    "    try:\n        kept.append(bytearray(size))\n"
                    "    except MemoryError:\n        if size < 1 << 16: raise\n        size //= 2")
    shown = the_error(run)
    assert shown["ename"] == "MemoryError" and "kept.append(bytearray(size))" in "".join(shown["traceback"])
    assert run.text("stdout") == run.text("stderr") == ""
    process = psutil.Process(fresh.pid)
    process.rlimit(psutil.RLIMIT_AS, (process.rlimit(psutil.RLIMIT_AS)[1],) * 2)
    assert fresh.run("del kept; 1 + 1").result == "2"


def test_an_error_whose_formatting_fails(kernel):
    run = kernel.run("class Odd(Exception):\n"
                     "    def _render_traceback_(self): raise TypeError('no lines')\nraise Odd('the words')")
    shown = the_error(run)
    assert shown["ename"] == "Odd" and "the words" in "".join(shown["traceback"])
    assert run.text("stdout") == run.text("stderr") == ""


def test_several_errors_at_once(kernel):
    run = kernel.run("import asyncio\nasync def f(): 1/0\nasync def g(): [][0]\n"
                     "async with asyncio.TaskGroup() as group:\n"
                     "    group.create_task(f()); group.create_task(g())")
    shown = the_error(run)
    text = "".join(shown["traceback"])
    assert shown["ename"] == "ExceptionGroup" and "ZeroDivisionError" in text and "IndexError" in text
    assert "site-packages/IPython" not in text and "drupe/jupyter" not in text
    assert run.text("stderr") == ""


GROUP = "def member():\n    try: 1/0\n    except Exception as error: return error\n"


@pytest.mark.parametrize("code, shown", [
    ("raise KeyError('x') from ExceptionGroup('all', [member()])", True),
    ("try: raise ExceptionGroup('all', [member()])\nexcept ExceptionGroup: raise KeyError('x')", True),
    ("try: raise ExceptionGroup('all', [member()])\nexcept ExceptionGroup: raise KeyError('x') from None", False),
    ("try: raise ExceptionGroup('all', [member()])\nexcept ExceptionGroup: raise KeyError('x') from OSError()", False),
])
def test_the_group_that_an_error_comes_from(kernel, code, shown):
    """Where the standard library shows it; all else has IPython's traceback."""
    text = "".join(the_error(kernel.run(GROUP + code))["traceback"])
    assert "KeyError" in text and ("ZeroDivisionError" in text) is shown and ("-" * 75 in text) is not shown


@pytest.mark.parametrize("returned, lines", [
    ("None", None), ("7", None), ("'one\\ntwo'", ["one", "two"]), ("('one', 2)", ["one", "2"]), ("[]", [])])
def test_an_error_that_shows_itself(kernel, returned, lines):
    """As IPython has it, a list of lines; other things are not what a client is sent."""
    run = kernel.run("class Odd(Exception):\n"
                     "    def _render_traceback_(self): return %s\nraise Odd('the words')" % returned)
    shown = the_error(run)
    assert shown["ename"] == "Odd" and shown["evalue"] == "the words"
    if lines is None:
        assert "the words" in "".join(shown["traceback"])
    else:
        assert shown["traceback"] == lines


def test_a_group_is_shown_as_the_user_has_chosen(kernel):
    """%xmode. Frames of Drupe are left out of all parts but in Verbose, where there is another frame."""
    code = ("import drupe\ndef fail():\n    try: drupe.device('npu').__enter__()\n"
            "    except Exception as error: return error\nraise ExceptionGroup('all', [fail()])")

    def shown():
        return "\n".join(the_error(kernel.run(code))["traceback"])

    try:
        text = shown()
        assert "ExceptionGroup: all" in text and "Cell In[" in text and "'npu'" in text and "drupe/" not in text
        kernel.run("%xmode Verbose")
        assert "drupe/" in shown()
        kernel.run("%xmode Minimal")
        text = shown()
        assert "ExceptionGroup: all" in text and "'npu'" in text and "Cell In[" not in text
    finally:
        kernel.run("%xmode Context")


def test_frames_of_ours_are_in_no_plain_traceback(kernel):
    code = ("import drupe\ndef outer():\n    try: drupe.device('npu').__enter__()\n"
            "    except Exception as error: raise ValueError('all') from error\nouter()")
    try:
        kernel.run("%xmode Plain")
        text = "\n".join(the_error(kernel.run(code))["traceback"])
    finally:
        kernel.run("%xmode Context")
    text = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert "'npu'" in text and "ValueError: all" in text and all("line %d" % n in text for n in (3, 4, 5)), text
    assert "drupe/" not in text and "site-packages/IPython" not in text


def test_a_group_out_of_a_magic(kernel):
    """Frames of IPython are in no traceback of its own, and in none of these, in whatever depth."""
    text = "\n".join(the_error(kernel.run("%%time\nraise ExceptionGroup('all', [ValueError()])"))["traceback"])
    assert "ExceptionGroup: all" in text and "Cell In[" in text and "site-packages/IPython" not in text
