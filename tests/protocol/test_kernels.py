"""Kernels in Python in a notebook: errors with a caret, what inspect() shows, prints, %debug, JupyterLab's debugger."""
import re

import debugging
import pytest

pytest.importorskip("greenlet")

WINDOW = """import drupe, drupe.array as da
@drupe.kernel(checked=True)
def window(item, x, out):
    i = item.get_global_id(0)
    for k in range(4):
        out[i] = out[i] + x[i + k]
x, out = da.arange(16.0), da.ones(16)
with drupe.device("host"):
    drupe.call_kernel(window, drupe.NdRange(16, 4), x, out)"""


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def traceback_of(run):
    return plain("\n".join(run.of("error")[0]["traceback"]))


@pytest.fixture
def fresh_names(kernel):
    yield
    kernel.run("%reset -f")


def test_an_error_has_the_users_line_and_a_caret(kernel, fresh_names):
    run = kernel.run("import drupe, drupe.array as da\n@drupe.kernel\ndef k(item, x):\n    i = item.get_id(0)\n"
                     "    x.append(i)\ndrupe.call_kernel(k, drupe.Range(8), da.ones(8))")
    text = traceback_of(run)
    assert run.reply["ename"] == "KernelError"
    assert "        x.append(i)\n        ^^^^^^^^\n  line 5 of k()\nDevice memory does not grow: write into" in text
    assert "drupe/compiler" not in text and "skipping" not in text  # no frame of ours


def test_inspect_shows_types_and_text(kernel, fresh_names):
    run = kernel.run("import drupe, drupe.array as da\n@drupe.kernel\ndef add(item, a, b):\n    i = item.get_id(0)\n"
                     "    b[i] = a[i] + b[i]\na = da.ones(8)\ndrupe.call_kernel(add, drupe.Range(8), a, a)\n"
                     "add.inspect()")
    shown = run.of("execute_result")[0]["data"]
    assert "a: array(float64, 1d)" in plain(shown["text/plain"]) and "b[i] = a[i] + b[i];" in plain(shown["text/plain"])
    assert shown["text/html"].startswith("<b>add</b>") and "<script" not in shown["text/html"]


def test_a_kernel_prints(kernel, fresh_names):
    run = kernel.run("import drupe, drupe.array as da\n@drupe.kernel\ndef show(item, x):\n    i = item.get_id(0)\n"
                     "    if i == 2:\n        print('item', i, x[i] > 0)\nq = drupe.queue('host')\n"
                     "drupe.call_kernel(show, drupe.Range(8), da.ones(8, sycl_queue=q))")
    assert run.status == "ok", traceback_of(run)
    assert "item 2 True" in run.text()


def test_debug_runs_the_work_group_again(kernel, fresh_names):
    run = kernel.run(WINDOW)
    assert run.reply["ename"] == "HostTaskError" and "drupe/compiler" not in traceback_of(run)
    msg_id = kernel.send("%debug", allow_stdin=True)
    kernel.asked(msg_id)
    kernel.client.input("p i + k, out.tolist()[i]")
    kernel.asked(msg_id)
    kernel.client.input("q")
    text = plain(kernel.finish(msg_id).text())
    assert "Running the work-group of work-item 1" in text and "in the simulator" in text
    assert "x[i + k] is x[16], which is out of bounds" in text and "out[i] = out[i] + x[i + k]" in text
    assert re.search(r"\(16, [\d.]+\)", text)


def test_debug_of_another_error_is_ipythons(kernel, fresh_names):
    kernel.run(WINDOW)
    kernel.run("def f(): 1/0\nf()")
    msg_id = kernel.send("%debug", allow_stdin=True)
    kernel.asked(msg_id)
    kernel.client.input("q")
    text = plain(kernel.finish(msg_id).text())
    assert "simulator" not in text and "1/0" in text


def test_debug_stops_in_the_debugger_of_the_front_end(kernel, fresh_names):
    pytest.importorskip("debugpy")
    front = debugging.Front(kernel).start()
    try:
        kernel.run(WINDOW)
        msg_id = kernel.send("%debug")
        thread, frame = front.stopped()
        assert (frame["name"], frame["line"]) == ("window", 6)
        found = front.variables(frame["id"], "Locals")
        assert found["item"]["value"].startswith("<NdItem 1") and found["k"]["value"] == "0"
        front.go_on(thread)
        assert kernel.finish(msg_id).reply["ename"] == "IndexError"
    finally:
        front.stop()


def test_config_replay(kernel, fresh_names):
    run = kernel.run("%config Drupe.replay = True\nimport drupe, drupe.array as da\n@drupe.kernel\n"
                     "def half(item, x):\n    i = item.get_id(0)\n    assert x[i] < 7\n    x[i] = x[i]/2\n"
                     "x = da.arange(16.0)\ndrupe.call_kernel(half, drupe.Range(16), x)")
    assert run.reply["ename"] == "HostTaskError"
    msg_id = kernel.send("%debug", allow_stdin=True)
    kernel.asked(msg_id)
    kernel.client.input("p x.tolist()[:3]")
    kernel.asked(msg_id)
    kernel.client.input("q")
    text = plain(kernel.finish(msg_id).text())
    assert "[0.0, 1.0, 2.0]" in text and "may differ" not in text
    assert kernel.run("%config Drupe.replay = False").status == "ok"
