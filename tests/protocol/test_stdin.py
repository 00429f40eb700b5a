"""input() and getpass through the front-end."""
import time

import support
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


def test_a_thread_that_asks_gets_a_clear_error(kernel):
    run = kernel.run("import threading\ndef ask():\n    try: input()\n    except Exception as e: print(e)\n"
                     "t = threading.Thread(target=ask); t.start(); t.join()", allow_stdin=True)
    assert "main thread" in run.text()


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
