"""sys.stdout and sys.stderr as the rest of Python uses text files, and everything that is written around them."""
import pytest
import support


def test_attributes_of_a_text_file(kernel):
    run = kernel.run("import io, sys\n"
                     "for name, fd in (('stdout', 1), ('stderr', 2)):\n"
                     "    f = getattr(sys, name)\n"
                     "    assert f.encoding == 'utf-8' and f.errors == 'backslashreplace' and f.newlines is None\n"
                     "    assert f.fileno() == fd and not f.isatty() and f.writable() and not f.readable()\n"
                     "    assert not f.seekable() and not f.closed and f.name == '<%s>' % name and f.mode == 'w'\n"
                     "    assert isinstance(f, io.TextIOBase) and f.line_buffering and f.write_through\n"
                     "    assert f.buffer.writable() and not f.buffer.readable() and f.buffer.fileno() == fd\n"
                     "    assert f.buffer.raw and not f.buffer.closed and f.buffer.name == f.name\n"
                     "    f.reconfigure(encoding='utf-8', errors='replace', line_buffering=False, newline=None)\n"
                     "    f.flush(); f.close(); assert not f.closed\n"
                     "    with f: pass\n"
                     "    assert f.write('') == 0\n"
                     "    for bad in (f.read, f.readline, f.tell, lambda: f.seek(0), f.truncate, f.detach):\n"
                     "        try: bad()\n"
                     "        except (OSError, io.UnsupportedOperation): pass\n"
                     "        else: raise AssertionError(bad)\n"
                     "    for bad in (b'x', 1, None):\n"
                     "        try: f.write(bad)\n"
                     "        except TypeError: pass\n"
                     "        else: raise AssertionError(bad)\n"
                     "print('still there')")
    assert run.status == "ok", "\n".join(run.reply["traceback"])
    assert run.text() == "still there\n"


def test_a_copy_of_the_stream_can_be_wrapped(kernel):
    run = kernel.run("import io, sys\nw = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8', write_through=True)\n"
                     "w.write('wrapped\\n'); w.flush(); w.detach()\nprint('after')")
    assert run.text() == "wrapped\nafter\n"


def test_half_a_character_is_shown_when_its_cell_ends(kernel):
    first = kernel.run("import sys\nsys.stdout.buffer.write('\u20ac'.encode()[:2]);")
    assert first.text() == "\ufffd"
    assert kernel.run("sys.stdout.buffer.write(b'next\\n');").text() == "next\n"


def test_original_streams_are_kept_in_order(kernel):
    run = kernel.run("import sys\nprint('one')\nprint('two', end='|', file=sys.__stdout__)\nprint('three')\n"
                     "print('four', end='', file=sys.__stderr__)")
    assert run.text() == "one\ntwo|three\n" and run.text("stderr") == "four"


def test_redirected_and_put_back(kernel):
    run = kernel.run("import contextlib, io, sys\nkept = sys.stdout\n"
                     "sys.stdout = io.StringIO(); print('into the string'); text = sys.stdout.getvalue(); "
                     "sys.stdout = kept\n"
                     "print('seen', repr(text))\n"
                     "with contextlib.redirect_stdout(io.StringIO()) as inner, contextlib.redirect_stderr(inner):\n"
                     "    print('hidden'); print('too', file=sys.stderr)\n"
                     "print(inner.getvalue().split())")
    assert run.text() == "seen 'into the string\\n'\n['hidden', 'too']\n"
    kernel.run("sys.stdout = io.StringIO()")
    assert kernel.run("print('lost to the string')").text() == ""
    kernel.run("sys.stdout = kept")
    assert kernel.run("print('back')").text() == "back\n"


def test_capture_magic_nested(kernel):
    run = kernel.run("%%capture outer\nfrom IPython.utils.capture import capture_output\nprint('first')\n"
                     "with capture_output() as inner:\n    print('inner'); display(1)\n"
                     "print('last', len(inner.outputs))")
    assert run.text() == ""
    assert kernel.run("print(repr(outer.stdout), repr(inner.stdout))").text() == (
        "'first\\nlast 1\\n' 'inner\\n'\n")


def test_logging_handlers_keep_old_streams(kernel):
    kernel.run("import logging, sys\nlogger = logging.getLogger('soak'); logger.propagate = False\n"
               "handler = logging.StreamHandler(); logger.addHandler(handler)")
    run = kernel.run("logger.warning('in a later cell')")
    assert run.text("stderr") == "in a later cell\n"


def test_faulthandler_and_warnings(kernel):
    run = kernel.run("import faulthandler, sys, warnings\nfaulthandler.dump_traceback(sys.stderr, all_threads=False)\n"
                     "warnings.warn('careful')\nprint('after')")
    assert "<module>" in run.text("stderr") or "File" in run.text("stderr")
    assert "UserWarning: careful" in run.text("stderr") and run.text() == "after\n"


def test_descriptor_games(fresh):
    run = fresh.run("import os, sys\nprint('one')\n"
                    "saved = os.dup(1); r, w = os.pipe(); os.dup2(w, 1)\n"
                    "os.write(1, b'into the pipe'); got = os.read(r, 100)\n"
                    "os.dup2(saved, 1); os.close(saved); os.close(w); os.close(r)\n"
                    "print(got); os.write(1, b'back\\n')\n"
                    "os.dup2(2, 1); os.write(1, b'joined\\n'); print('python too')")
    assert run.text() == "one\nb'into the pipe'\nback\npython too\n" and run.text("stderr") == "joined\n"
    run = fresh.run("os.close(1); os.close(2); print('python'); print('err', file=sys.stderr)")
    assert run.text() == "python\n" and run.text("stderr") == "err\n"
    run = fresh.run("import subprocess\nprint(subprocess.run(['echo', 'x'], capture_output=True).stdout)\n1/0")
    assert run.status == "error" and run.text() == "b'x\\n'\n"
    fresh.client.shutdown()
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0


def test_order_of_c_and_children_on_both_descriptors(kernel):
    run = kernel.run("import ctypes, os, subprocess, sys\nlibc = ctypes.CDLL(None)\n"
                     "for i in range(20):\n"
                     "    libc.puts(b'puts %d' % i)\n"
                     "    print('print', i)\n"
                     "    libc.write(2, b'write\\n', 6)\n"
                     "    subprocess.run(['sh', '-c', 'echo child %d; echo child >&2' % i])\n"
                     "    print('error', file=sys.stderr)")
    assert run.text() == "".join("puts %d\nprint %d\nchild %d\n" % (i, i, i) for i in range(20))
    assert run.text("stderr") == "write\nchild\nerror\n" * 20


def test_alternating_streams_keep_their_order_under_load(kernel):
    run = kernel.run("import sys\nfor i in range(400):\n    sys.stdout.write('o%d\\n' % i)\n"
                     "    sys.stderr.write('e%d\\n' % i)")
    assert "".join(c["text"] for c in run.of("stream")) == "".join("o%d\ne%d\n" % (i, i) for i in range(400))


@pytest.mark.parametrize("end", ["import os; get_ipython().ask_exit()", "exit()", "quit()"])
def test_output_before_an_exit_is_not_lost(fresh, end):
    run = fresh.run("for i in range(2000): print(i)\n" + end)
    assert run.text() == "".join("%d\n" % i for i in range(2000))
    assert any(payload["source"] == "ask_exit" for payload in run.reply["payload"])


def test_output_at_the_end_of_the_kernel_is_not_lost(fresh):
    """What a cell printed just before the shutdown, and what exit hooks print."""
    msg_id = fresh.send("import atexit, time\natexit.register(print, 'from the hook')\n"
                        "for i in range(30000): print(i)\ntime.sleep(600)")
    fresh.started(msg_id)
    fresh.wait_iopub(lambda m: m["msg_type"] == "stream" and "29999" in m["content"]["text"], what="the last line")
    fresh.client.shutdown()
    fresh.wait_iopub(lambda m: m["msg_type"] == "stream" and "from the hook" in m["content"]["text"], what="the hook")
    text = "".join(m["content"]["text"] for m in fresh.of_parent(msg_id) if m["msg_type"] == "stream"
                   and m["content"]["name"] == "stdout")
    assert text.startswith("".join("%d\n" % i for i in range(30000)))
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0


def test_sys_exit_in_a_thread_ends_the_thread(kernel):
    run = kernel.run("import sys, threading\nt = threading.Thread(target=lambda: (print('bye'), sys.exit(3)))\n"
                     "t.start(); t.join(); print('kernel')")
    assert run.text() == "bye\nkernel\n"


def test_sys_exit_in_a_cell_is_an_error_and_nothing_ends(kernel):
    run = kernel.run("print('before'); import sys; sys.exit(3)")
    assert run.text() == "before\n" and run.status == "error" and run.reply["ename"] == "SystemExit"
    assert kernel.run("1+1").result == "2"


def test_progress_bars_and_prompts_are_seen_at_once(kernel, gate):
    """Text without a line end leaves while its cell runs on."""
    msg_id = kernel.send("import time\nfor i in range(3):\n    print('\\r%d %%' % i, end='')\n    time.sleep(0.3)\n"
                         + gate.wait)
    for i in range(3):
        kernel.wait_iopub(lambda m, i=i: m["msg_type"] == "stream" and "\r%d %%" % i in m["content"]["text"])
    assert not any(m["content"].get("execution_state") == "idle" for m in kernel.of_parent(msg_id))
    gate.open()
    kernel.finish(msg_id)


def test_threads_and_tasks_write_to_their_cells_at_the_same_time(kernel):
    """Two cells' threads and tasks print while a third cell prints; each text arrives in its own cell, in order."""
    code = ("import threading, time, asyncio\n"
            "def work():\n    for i in range(100): print('{0}', i); time.sleep(0.002)\n"
            "async def task():\n    for i in range(50): print('task {0}', i); await asyncio.sleep(0.004)\n"
            "thread_{0} = threading.Thread(target=work); thread_{0}.start()\n"
            "task_{0} = asyncio.create_task(task());")
    ids = {name: kernel.run(code.format(name)).id for name in ("a", "b")}
    third = kernel.run("for i in range(100): print('third', i); await asyncio.sleep(0.002)")
    kernel.run("await task_a; await task_b; thread_a.join(); thread_b.join()")
    assert third.text() == "".join("third %d\n" % i for i in range(100))

    def text(name):
        return "".join(m["content"]["text"] for m in kernel.of_parent(ids[name]) if m["msg_type"] == "stream")

    for name in ("a", "b"):
        support.wait_until(lambda name=name: kernel.poll() or "task %s 49\n" % name in text(name), what="the last line")
        lines = text(name).splitlines()
        assert [line for line in lines if line.startswith(name)] == ["%s %d" % (name, i) for i in range(100)]
        assert [line for line in lines if line.startswith("task")] == ["task %s %d" % (name, i) for i in range(50)]
