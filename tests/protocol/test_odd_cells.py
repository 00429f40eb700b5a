"""Cells that do what cells rarely do: the kernel answers, and goes on."""
import json
import sys

import support


def test_an_exception_that_is_false_is_an_error(kernel):
    run = kernel.run("class Empty(Exception):\n    __len__ = lambda self: 0\nraise Empty()")
    assert run.status == "error" and run.reply["ename"] == "Empty" and len(run.of("error")) == 1


def test_a_cell_that_stops_the_loop(kernel):
    assert kernel.run("import asyncio; asyncio.get_running_loop().stop()").status == "ok"
    assert kernel.run("import asyncio; await asyncio.sleep(0.01); 7").result == "7"


def test_a_task_that_is_cancelled_before_its_first_step(kernel):
    kernel.run("import asyncio\n"
               "async def reaper():\n"
               "    for _ in range(200):\n"
               "        for task in asyncio.all_tasks():\n"
               "            if task is not asyncio.current_task(): task.cancel()\n"
               "        await asyncio.sleep(0.002)\n"
               "task = asyncio.get_running_loop().create_task(reaper())")
    for _ in range(10):
        assert kernel.run("await asyncio.sleep(0.001)", allow_stdin=True).status in ("ok", "error")
    kernel.run("task.cancel()")
    assert kernel.run("1+1").result == "2"


def test_a_forked_child_that_fails_says_so(kernel):
    run = kernel.run("import os\npid = os.fork()\nif pid == 0: raise ValueError('in the child')\n"
                     "print('status', os.waitpid(pid, 0)[1] >> 8)")
    assert "status 1" in run.text()
    support.wait_until(lambda: kernel.poll() or "in the child" in "".join(
        m["content"]["text"] for m in kernel.log if m["msg_type"] == "stream"), what="the child's traceback")


def test_a_container_in_itself_can_be_displayed(kernel):
    run = kernel.run("x = []; x.append(x); x.append(x)\ndisplay({'application/json': x, 'text/plain': 'x'}, raw=True)")
    assert run.status == "ok" and len(run.of("display_data")) == 1


def test_files_beside_the_notebook_do_not_replace_the_library(spec_folder, tmp_path, monkeypatch):
    """random.py in the notebook's folder: the kernel starts, and the cell can still import its own modules."""
    (tmp_path / "random.py").write_text("raise SystemExit('wrong module')")
    (tmp_path / "mine.py").write_text("answer = 42")
    monkeypatch.chdir(tmp_path)
    kernel = support.Kernel(spec_folder)
    try:
        assert kernel.run("import mine; mine.answer").result == "42"
    finally:
        kernel.close()


def test_a_kernel_with_a_busy_cell_ends_with_its_parent(spec_folder, tmp_path):
    import os
    import subprocess

    import psutil
    launcher = subprocess.Popen(
        [sys.executable, "-c",
         "import sys, time\nsys.path.insert(0, %s)\nimport support\n"
         "k = support.Kernel(%s)\n"
         "k.send('while True:\\n    try:\\n        while True: pass\\n    except BaseException: pass')\n"
         "time.sleep(1)\nprint(k.pid, flush=True)\ntime.sleep(600)"
         % (json.dumps(os.path.dirname(support.__file__)), json.dumps(str(spec_folder)))],
        stdout=subprocess.PIPE, text=True)
    pid = int(launcher.stdout.readline())
    launcher.kill()
    launcher.wait()
    support.wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie", 10,
                       "the kernel to end")


_FAILS = "class Fails(BaseException):\n    def __str__(self): raise Fails\n"
_NO_ITEMS = "class NoItems(dict):\n    def items(self): raise LookupError('no items')\n"
_PAYLOAD = "get_ipython().payload_manager.write_payload({'source': 'x', 'data': NoItems(a=1)})"


def test_an_exception_whose_text_fails_with_any_exception(kernel):
    run = kernel.run(_FAILS + "raise Fails")
    assert run.status == "error" and run.reply["ename"] == "Fails" and len(run.of("error")) == 1
    assert kernel.run("class Names(type):\n    __name__ = property(lambda self: 1/0)\n"
                      "class Odd(Exception, metaclass=Names): pass\nraise Odd").reply["ename"] == "Odd"
    assert kernel.run("1+1").result == "2"


def test_a_payload_that_cannot_be_copied_does_not_cost_the_reply(kernel):
    for code in (_PAYLOAD, "import asyncio; await asyncio.sleep(0)\n" + _PAYLOAD):
        run = kernel.run(_NO_ITEMS + code)
        assert run.status == "ok" and "no items" in run.reply["payload"][0]["data"]


def test_a_task_whose_reply_cannot_be_made_is_answered(kernel):
    run = kernel.run("import asyncio\nfrom drupe.jupyter import streams\nfinish = streams.finish\n"
                     "def broken():\n    streams.finish = finish\n    raise OSError('broken')\n"
                     "streams.finish = broken\nawait asyncio.sleep(0)")
    assert run.status == "error" and run.reply["ename"] == "OSError"
    assert kernel.run("1+1").result == "2"


def test_text_in_a_stream_that_replaced_stdout_is_shown_with_its_cell(kernel):
    run = kernel.run("import io, sys\nmine, sys.stdout = sys.stdout, io.TextIOWrapper(sys.stdout.buffer, 'utf-8')\n"
                     "print('wrapped')")
    assert kernel.run("sys.stdout = mine").status == "ok" and run.text() == "wrapped\n"


def test_a_warning_that_runs_a_cell_while_a_cell_is_compiled(kernel):
    run = kernel.run("import warnings\nbefore = warnings.showwarning\n"
                     "warnings.showwarning = lambda *unused, **ignored: get_ipython().run_cell('print(\"warned\")')\n"
                     "get_ipython().run_cell('1 is 1; None')\nwarnings.showwarning = before")
    assert run.status == "ok" and "warned" in run.text()
