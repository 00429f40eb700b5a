"""Streams, display and figures: nothing lost, in order, in the right cell."""
import base64
import json

import pytest
import support


def test_stdout_and_stderr_keep_their_order(kernel):
    run = kernel.run("import sys\nfor i in range(3):\n    print('o%d' % i)\n    print('e%d' % i, file=sys.stderr)")
    assert "".join(content["text"] for content in run.of("stream")) == "o0\ne0\no1\ne1\no2\ne2\n"
    assert [content["name"] for content in run.of("stream")] == ["stdout", "stderr"] * 3


def test_python_descriptor_subprocess_and_c_keep_their_order(kernel):
    run = kernel.run("import ctypes, os, subprocess, sys\n"
                     "libc = ctypes.CDLL(None)\n"
                     "for i in range(3):\n"
                     "    print('python', i)\n"
                     "    os.write(1, b'descriptor %d\\n' % i)\n"
                     "    subprocess.run(['echo', 'child', str(i)])\n"
                     "    libc.printf(b'c %d\\n', i)\n"
                     "    sys.stdout.write('write %d\\n' % i)")
    expected = "".join("python %d\ndescriptor %d\nchild %d\nc %d\nwrite %d\n" % ((i,) * 5) for i in range(3))
    assert run.text() == expected


def test_c_text_without_a_newline_comes_before_the_next_print_and_the_end(kernel):
    run = kernel.run("libc = __import__('ctypes').CDLL(None)\n"
                     "libc.printf(b'half ')\nprint('line')\nlibc.printf(b'rest')")
    assert run.text() == "half line\nrest"


def test_os_system_and_stdout_as_a_file(kernel):
    run = kernel.run("import os, subprocess, sys\nos.system('echo system')\n"
                     "subprocess.run(['echo', 'given'], stdout=sys.stdout)\n"
                     "print(sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.isatty())")
    assert run.text() == "system\ngiven\n1 2 False\n"


def test_big_output_is_complete_and_few_messages(kernel):
    run = kernel.run("for i in range(20000): print(i)")
    assert run.text() == "".join("%d\n" % i for i in range(20000))
    assert len(run.sent("stream")) < 1000
    flushed = kernel.run("for i in range(5000): print(i, flush=True)")
    assert flushed.text() == "".join("%d\n" % i for i in range(5000))
    assert len(flushed.sent("stream")) < 1000


def test_a_subscriber_that_does_not_read_costs_the_others_nothing(kernel):
    """And it gets every line, and the idle, when it reads at last."""
    lazy = support.Raw(kernel.manager, most=1000)
    try:
        line = "x" * 180
        run = kernel.run("for i in range(20000): print('%%06d' %% i, %r, flush=True)" % line)
        expected = "".join("%06d %s\n" % (i, line) for i in range(20000))
        assert run.text() == expected
        messages = []
        while not messages or messages[-1]["content"].get("execution_state") != "idle":
            messages.append(lazy.receive("iopub"))
            assert messages[-1], "the idle was lost"
        assert "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream") == expected
    finally:
        lazy.close()


def test_a_print_is_visible_before_its_cell_ends(kernel, gate):
    msg_id = kernel.send("print('early')\n" + gate.wait)
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and m["content"]["text"].startswith("early"))
    assert "idle" not in [m["content"].get("execution_state") for m in kernel.of_parent(msg_id)]
    gate.open()
    kernel.finish(msg_id)


def test_one_large_text(kernel):
    run = kernel.run("print('x' * 3_000_000, end='')")
    assert run.text() == "x" * 3_000_000


def test_lone_surrogates_break_nothing(kernel):
    run = kernel.run("print('a\\ud800b', 'ok'); '\\udcff'")
    assert run.text() == "a\\ud800b ok\n" and run.status == "ok"
    assert kernel.run("display({'text/plain': 'x\\ud800y'}, raw=True)").of("display_data")[0]["data"] == {
        "text/plain": "x\ufffdy"}
    assert kernel.run("raise ValueError('\\ud800')").reply["ename"] == "ValueError"


def test_lone_surrogates_in_the_code_break_nothing(kernel, raw):
    """jupyter_client refuses to send them; JavaScript does not."""
    raw.session.pack = lambda value: json.dumps(value, default=str).encode()
    for code in ("s = 'in the code: \ud83d'", "# \ud800", "\udfff"):
        raw.send("shell", "execute_request", {"code": code})
        assert raw.receive("shell")["content"]["status"] in ("ok", "error")
        raw.send("shell", "complete_request", {"code": code, "cursor_pos": len(code)})
        assert raw.receive("shell")["content"]["status"] == "ok"
    assert kernel.run("1").result == "1"
    assert kernel.ask("history_request", {"hist_access_type": "tail", "n": 1})["status"] == "ok"


def test_text_of_every_kind(kernel):
    text = "äöü €\U0001d11e\u0000 end"
    assert kernel.run("print(%r, end='')" % text).text() == text


def test_huge_integers_and_odd_json(kernel):
    run = kernel.run("display({'application/json': {'big': 10**400, 'nan': float('nan'), 'bytes': b'abc', 'set': {1}, "
                     "3: 'key', (1, 2): 'tuple'}, 'text/plain': 'x'}, raw=True)")
    (content,) = run.of("display_data")
    data = content["data"]["application/json"]
    assert data["big"] == 10**400 and data["nan"] == "nan" and data["bytes"] == base64.b64encode(b"abc").decode()
    assert data["set"] == [1] and data["3"] == "key" and data["(1, 2)"] == "tuple"
    json.dumps(content, allow_nan=False)
    assert kernel.run("2**4000").result == str(2**4000)
    assert kernel.run("loop = {}; loop['me'] = loop; display({'application/json': loop}, raw=True)").status == "ok"


def test_sys_stdout_is_a_text_file(kernel):
    run = kernel.run("import io, sys\n"
                     "assert isinstance(sys.stdout, io.TextIOBase) and sys.stdout.writable()\n"
                     "assert not sys.stdout.closed and sys.stdout.encoding == 'utf-8'\n"
                     "sys.stdout.writelines(['a', 'b\\n'])\n"
                     "sys.stdout.buffer.write('\u20ac\\n'.encode()[:2]); "
                     "sys.stdout.buffer.write('\u20ac\\n'.encode()[2:])\n"
                     "sys.stdout.buffer.flush(); sys.stdout.flush(); sys.stdout.close()\n"
                     "print('written', sys.stdout.write('four'))\n"
                     "try:\n    sys.stdout.write(b'bytes')\nexcept TypeError as e:\n    print(e)")
    assert run.status == "ok", run.reply
    assert run.text() == "ab\n\u20ac\nfourwritten 4\nwrite() argument must be str, not bytes\n"


def test_a_thread_prints_into_the_cell_that_started_it(kernel):
    first = kernel.run("import threading, time\n"
                       "def late():\n"
                       "    time.sleep(0.4)\n"
                       "    print('from the thread')\n"
                       "    threading.Thread(target=lambda: print('from its thread')).start()\n"
                       "threading.Thread(target=late).start()")
    other = kernel.run("print('from another cell')")
    for text in ("from the thread", "from its thread"):
        late = kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and text in m["content"]["text"], what=text)
        assert late["parent_header"]["msg_id"] == first.id
    assert other.text() == "from another cell\n"


def test_a_subclass_and_an_executor_print_into_their_cell(kernel):
    run = kernel.run("import threading, concurrent.futures\n"
                     "class Own(threading.Thread):\n"
                     "    def run(self): print('own')\n"
                     "t = Own(); t.start(); t.join()\n"
                     "with concurrent.futures.ThreadPoolExecutor(2) as pool: list(pool.map(print, 'ab'))\n"
                     "try:\n    t.start()\nexcept RuntimeError as e: print('once')")
    assert sorted(run.text().split()) == ["a", "b", "once", "own"]


@pytest.mark.parametrize("submit", [
    "pool.submit(late)",
    "pool.map(lambda _: late(), [1])",
    "asyncio.get_event_loop().run_in_executor(pool, late)",
    "task = asyncio.get_event_loop().create_task(asyncio.to_thread(late))",
    "threading.Timer(0.2, late).start()",
    "_thread.start_new_thread(late, ())",
    "_thread.start_new_thread(lambda first, second: late(), (1,), {'second': 2})",
])
def test_work_of_threads_goes_to_the_cell_that_gave_it(kernel, submit):
    """Also when a worker thread is older, was started by another cell and the submitting cell has ended."""
    kernel.run("import _thread, asyncio, concurrent.futures, threading, time\n"
               "pool = concurrent.futures.ThreadPoolExecutor(1)\npool.submit(print, 'warm').result()\n"
               "def late():\n    time.sleep(0.3)\n    print('late work')")
    given = kernel.run(submit + "\nNone")
    kernel.run("print('another cell')")
    late = kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "late work" in m["content"]["text"])
    assert late["parent_header"]["msg_id"] == given.id
    kernel.run("pool.shutdown()")


def test_threads_and_executors_show_no_frame_of_the_kernel(kernel):
    run = kernel.run("import _thread, concurrent.futures, time, threading\ndef fail():\n"
                     "    raise ValueError('in a thread')\n"
                     "t = threading.Thread(target=fail); t.start(); t.join()\n"
                     "_thread.start_new_thread(fail, ())\n"
                     "with concurrent.futures.ThreadPoolExecutor(1) as pool: pool.submit(fail).result()")

    def shown():
        kernel.poll()
        return "".join(m["content"]["text"] for m in kernel.of_parent(run.id) if m["msg_type"] == "stream")

    support.wait_until(lambda: shown().count("in a thread") >= 2, what="what the threads had to say")
    text = shown() + "".join(run.reply["traceback"])
    assert text.count("in a thread") >= 3 and "drupe/jupyter" not in text


def test_a_forked_child_prints_and_the_kernel_goes_on(kernel):
    run = kernel.run("import os\npid = os.fork()\n"
                     "if pid == 0:\n    print('child', flush=True)\n    os._exit(0)\n"
                     "os.waitpid(pid, 0)\nprint('parent')")
    assert sorted(run.text().split()) == ["child", "parent"]
    run = kernel.run("pid = os.fork()\nif pid:\n    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    assert run.text() == "0\n", "a child that came to the end of its cell must end"
    assert kernel.run("1+1").result == "2"


def test_multiprocessing(kernel):
    kernel.run("import multiprocessing\ncontext = multiprocessing.get_context('fork')")
    run = kernel.run("with context.Pool(2) as pool: print(pool.map(abs, [-1, -2]))")
    assert run.text("stdout") == "[1, 2]\n"


def test_display_ids_and_updates(kernel):
    run = kernel.run("h = display('one', display_id='d1'); h.update('two')")
    (shown,), (updated,) = run.of("display_data"), run.of("update_display_data")
    assert shown["transient"] == updated["transient"] == {"display_id": "d1"}
    assert shown["data"]["text/plain"] == "'one'" and updated["data"]["text/plain"] == "'two'"
    later = kernel.run("h.update('three')")
    assert later.of("update_display_data")[0]["transient"] == {"display_id": "d1"}


def test_clear_output(kernel):
    run = kernel.run("from IPython.display import clear_output\nprint('a'); clear_output(wait=True); print('b')")
    assert run.types == ["status", "execute_input", "stream", "clear_output", "stream", "status"]
    assert run.of("clear_output") == [{"wait": True}]


def test_rich_results(kernel):
    run = kernel.run("from IPython.display import HTML\nHTML('<b>x</b>')")
    (content,) = run.of("execute_result")
    assert content["data"]["text/html"] == "<b>x</b>" and content["metadata"] == {}


def test_print_and_display_keep_their_order(kernel):
    run = kernel.run("print('1'); display('2'); print('3'); 4")
    assert run.types == ["status", "execute_input", "stream", "display_data", "stream", "execute_result", "status"]


@pytest.mark.parametrize("how", ["plt.plot([1, 2]);", "import asyncio; await asyncio.sleep(0); plt.plot([1, 2]);"])
def test_matplotlib_inline(kernel, how):
    run = kernel.run("import matplotlib.pyplot as plt\n" + how, timeout=60)
    (figure,) = run.of("display_data")
    assert base64.b64decode(figure["data"]["image/png"]).startswith(b"\x89PNG")
    assert kernel.run("1").of("display_data") == []


def test_matplotlib_magic(kernel):
    assert kernel.run("%matplotlib inline", timeout=60).status == "ok"
    run = kernel.run("import matplotlib.pyplot as plt\nfor i in range(2):\n    plt.figure(); plt.plot([i])\n"
                     "    plt.show()")
    assert len(run.of("display_data")) == 2


@pytest.mark.parametrize("make", ["threading.Thread(target=fail)", "threading.Timer(0, fail)", "Own()"])
def test_a_thread_traceback_shows_only_its_own_frames(kernel, make):
    run = kernel.run("import threading\ndef fail(): print('in it'); 1/0\nclass Own(threading.Thread):\n"
                     "    def run(self): fail()\nt = %s; t.start(); t.join(); '_set_ident' in t.__dict__" % make)
    assert run.text() == "in it\n" and run.result == "False"
    assert "ZeroDivisionError" in run.text("stderr") and "drupe" not in run.text("stderr")
