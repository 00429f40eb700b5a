"""input() and getpass through the front-end."""
import contextlib
import time

import pytest
import support
import test_hostile
import zmq


def test_input(kernel):
    msg_id = kernel.send("print('first'); name = input('your name: ')\nprint('hello', name)", allow_stdin=True)
    assert kernel.asked(msg_id) == {"prompt": "your name: ", "password": False}
    kernel.client.input("Zoë \U0001d11e")
    assert kernel.finish(msg_id).text() == "first\nhello Zoë \U0001d11e\n"


def test_getpass(kernel):
    msg_id = kernel.send("import getpass; getpass.getpass('secret? ')", allow_stdin=True)
    assert kernel.asked(msg_id) == {"prompt": "secret? ", "password": True}
    kernel.client.input("hush")
    assert kernel.finish(msg_id).result == "'hush'"


def test_getpass_as_newer_pythons_have_it(kernel):
    msg_id = kernel.send("import getpass; getpass.getpass('pin ', echo_char='*')", allow_stdin=True)
    assert kernel.asked(msg_id) == {"prompt": "pin ", "password": True}
    kernel.client.input("1234")
    assert kernel.finish(msg_id).result == "'1234'"
    assert kernel.run("getpass.getpass(echo_char='**')", allow_stdin=True).reply["ename"] == "ValueError"


def test_end_of_file(kernel):
    msg_id = kernel.send("input()", allow_stdin=True)
    kernel.asked(msg_id)
    kernel.client.input("\x04")
    assert kernel.finish(msg_id).reply["ename"] == "EOFError"


def test_not_allowed(kernel):
    for code in ("input()", "import getpass; getpass.getpass()"):
        run = kernel.run(code, allow_stdin=False)
        assert run.reply["ename"] == "StdinNotImplementedError" and "stdin" in run.reply["evalue"]
    assert kernel.stdin() is None


def test_an_interrupt_breaks_the_wait_and_its_late_answer_is_discarded(kernel):
    msg_id = kernel.send("input('one')", allow_stdin=True)
    kernel.asked(msg_id)
    time.sleep(0.2)
    kernel.interrupt()
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
    kernel.client.input("stale")
    time.sleep(0.2)
    msg_id = kernel.send("input('two')", allow_stdin=True)
    assert kernel.asked(msg_id)["prompt"] == "two"
    kernel.client.input("current")
    assert kernel.finish(msg_id).result == "'current'"


def test_threads_run_while_input_waits(kernel):
    msg_id = kernel.send("import threading, time\nticks = []\ndone = threading.Event()\n"
                         "def tick():\n    while not done.wait(0.01):\n        ticks.append(1)\n"
                         "        if len(ticks) == 21: print('ticked', flush=True)\n"
                         "threading.Thread(target=tick).start()\ninput()\ndone.set()\nlen(ticks)", allow_stdin=True)
    kernel.asked(msg_id)
    kernel.told(msg_id, "ticked")
    kernel.client.input("")
    assert int(kernel.finish(msg_id).result) > 20


@pytest.mark.parametrize("code", [
    "t = threading.Thread(target=ask); t.start(); t.join()",
    "import asyncio; await asyncio.to_thread(ask)",
    "import asyncio; await asyncio.get_running_loop().run_in_executor(None, ask)",
    "pool.submit(ask).result()",
    "import _thread\nlock = _thread.allocate_lock(); lock.acquire()\n"
    "def held():\n    ask(); lock.release()\n_thread.start_new_thread(held, ()); lock.acquire(); lock.release()",
])
def test_threads_ask_for_the_cell_that_started_them(kernel, code):
    kernel.run("import threading, concurrent.futures\ndef ask(): print('got', input('from a thread: '))\n"
               "pool = concurrent.futures.ThreadPoolExecutor(1); pool.submit(int).result()")
    msg_id = kernel.send(code, allow_stdin=True)
    assert kernel.asked(msg_id) == {"prompt": "from a thread: ", "password": False}
    kernel.client.input("this")
    run = kernel.finish(msg_id)
    assert run.status == "ok" and run.text() == "got this\n"


def test_threads_ask_one_after_the_other(kernel):
    msg_id = kernel.send("import threading\ngot = []\ndef ask(): got.append(input('?'))\n"
                         "threads = [threading.Thread(target=ask) for _ in range(3)]\n"
                         "for t in threads: t.start()\ngot.append(input('?'))\nfor t in threads: t.join()\nsorted(got)",
                         allow_stdin=True)
    for answer in "abcd":
        kernel.asked(msg_id)
        assert kernel.stdin() is None
        kernel.client.input(answer)
    assert kernel.finish(msg_id).result == "['a', 'b', 'c', 'd']"


def test_a_thread_whose_cell_has_ended(kernel, gate):
    """Clients take no question of a cell that was replied to."""
    code = ("import threading\ndef ask(before=lambda: None):\n    before()\n    try: input('?')\n"
            "    except Exception as error: said.append(type(error).__name__ + ': ' + str(error))\nsaid = []\n")
    msg_id = kernel.send(code + "t = threading.Thread(target=ask); t.start()\n" + gate.wait, allow_stdin=True)
    kernel.asked(msg_id)
    gate.open()
    kernel.finish(msg_id)
    assert kernel.run("t.join(); said").result == "['EOFError: the cell has ended before an answer came']"
    kernel.run("said.clear(); go = threading.Event()\nt = threading.Thread(target=ask, args=(go.wait,)); t.start()",
               allow_stdin=True)
    run = kernel.run("go.set(); t.join(); said", allow_stdin=True)
    assert "StdinNotImplementedError" in run.result and "has ended" in run.result
    assert kernel.stdin() is None


def test_an_answer_to_an_older_question_does_not_answer_the_newest(kernel, gate):
    """Front-ends tell which question they answer: by its header. Some send none, and mean the newest."""
    kernel.run("import threading\ndef ask():\n    try: input('thread? ')\n    except EOFError: pass")
    started = kernel.send("t = threading.Thread(target=ask); t.start()\n" + gate.wait, allow_stdin=True)
    old = support.wait_until(kernel.stdin, what="input_request")
    gate.open()
    kernel.finish(started)
    kernel.run("t.join()")

    def answer(value, question):
        message = kernel.client.session.msg("input_reply", {"value": value}, parent=question)
        kernel.client.stdin_channel.send(message)

    for parent in ("its header", "the cell's header", "none"):
        asking = kernel.send("input('main? ')", allow_stdin=True)
        new = support.wait_until(kernel.stdin, what="input_request")
        assert new["parent_header"]["msg_id"] == asking and new["content"]["prompt"] == "main? "
        answer("for the thread", old)
        answer("for the cell", {"its header": new, "the cell's header": {"header": new["parent_header"]},
                                "none": None}[parent])
        assert kernel.finish(asking).result == "'for the cell'"
        old = new


def test_an_interrupt_while_a_thread_asks(kernel):
    msg_id = kernel.send("import threading\nt = threading.Thread(target=input); t.start(); t.join()", allow_stdin=True)
    kernel.asked(msg_id)
    kernel.interrupt()
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("t.join(); 'over'").result == "'over'"


def test_a_client_whose_stdin_socket_connects_late(kernel, raw):
    """A client's sockets connect one by one, and nothing tells the kernel when they all have."""
    identity = b"late-stdin"
    shell, stdin = (raw.context.socket(zmq.DEALER) for _ in range(2))
    info = kernel.manager.get_connection_info()
    for socket, port in ((shell, "shell_port"), (stdin, "stdin_port")):
        socket.linger, socket.identity = 0, identity
    shell.connect("tcp://%s:%d" % (info["ip"], info["shell_port"]))

    def execute(code):
        frames, header = raw.frames("execute_request", {"code": code, "allow_stdin": True})
        shell.send_multipart(frames)
        return header["msg_id"]

    given_up = execute("try: input('given up')\nexcept KeyboardInterrupt: print('broken')")
    kernel.started(given_up)
    time.sleep(0.2)
    kernel.interrupt()
    kernel.wait_idle(given_up)

    asking = execute("print('got', input('who? '))")
    kernel.started(asking)
    time.sleep(0.2)
    stdin.connect("tcp://%s:%d" % (info["ip"], info["stdin_port"]))
    assert stdin.poll(support.TIMEOUT * 1000)
    _, frames = raw.session.feed_identities(stdin.recv_multipart())
    question = raw.session.deserialize(frames)
    assert question["content"]["prompt"] == "who? " and question["parent_header"]["msg_id"] == asking
    stdin.send_multipart(raw.frames("input_reply", {"value": "late"})[0])
    kernel.wait_idle(asking)
    said = [m["content"]["text"] for m in kernel.of_parent(asking) if m["msg_type"] == "stream"]
    assert "".join(said) == "got late\n"
    assert not stdin.poll(100)  # the question that was given up does not come


def test_text_is_there_when_the_question_comes(kernel, raw):
    """What a cell printed before input() was written before the question was: a connection that is read without
    waiting has it."""
    info = kernel.manager.get_connection_info()
    shell, stdin = (raw.context.socket(zmq.DEALER) for _ in range(2))
    with test_hostile.stranger(kernel, "iopub", test_hostile.SUB) as listener:
        listener.sendall(b"\0\1\1")
        test_hostile.received(listener, b"iopub_welcome")
        for link, port in ((shell, "shell_port"), (stdin, "stdin_port")):
            link.linger, link.identity = 0, b"in-order"
            link.connect("tcp://%s:%d" % (info["ip"], info[port]))
        listener.setblocking(False)
        for i in range(50):
            code = "print('text %d of it'); input()" % i
            shell.send_multipart(raw.frames("execute_request", {"code": code, "allow_stdin": True})[0])
            assert stdin.poll(support.TIMEOUT * 1000)
            stdin.recv_multipart()
            found = b""
            with contextlib.suppress(BlockingIOError):
                while True:
                    found += listener.recv(1 << 20)
            assert b'"text %d of it' % i in found, i
            stdin.send_multipart(raw.frames("input_reply", {"value": ""})[0])
            assert shell.poll(support.TIMEOUT * 1000)
            shell.recv_multipart()
