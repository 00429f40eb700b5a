"""Load: many requests, slow and dead subscribers, much output, and what a front-end that limits rates may be sent."""
import collections
import signal
import subprocess
import sys
import time

import psutil
import support
from jupyter_client import BlockingKernelClient


LINE = "x" * 180


def stream_messages(messages):
    return [message["content"] for message in messages if message["msg_type"] == "stream"]


def test_many_queued_requests_are_aborted_quickly_and_control_answers_meanwhile(kernel, raw, gate):
    """5,000 cells behind one that fails; ./dev soak load sends a million."""
    count = 5000
    first = raw.send("shell", "execute_request", {"code": gate.wait + "\n1/0"})
    for _ in range(count):
        raw.send("shell", "execute_request", {"code": "pass"})
    asked = time.monotonic()
    raw.send("control", "kernel_info_request")
    assert raw.receive("control")["content"]["status"] == "ok"
    assert time.monotonic() - asked < support.TIMEOUT
    raw.send("shell", "kernel_info_request")
    assert raw.receive("shell")["msg_type"] == "kernel_info_reply"  # the kernel has them all
    gate.open()
    statuses = collections.Counter()
    for _ in range(count + 1):
        message = raw.receive("shell")
        assert message, statuses
        statuses[message["content"]["status"]] += 1
        if message["parent_header"]["msg_id"] == first:
            assert message["content"]["ename"] == "ZeroDivisionError"
    assert statuses == {"error": 1, "aborted": count}
    assert kernel.run("1+1").result == "2"


def test_requests_beyond_the_limit_wait_outside(kernel, raw):
    """Large requests behind a running cell: the kernel holds a bounded part of them, loses none, and runs each."""
    kernel.run("seen = 0")
    sleeper = kernel.send("import time; time.sleep(4)")
    kernel.started(sleeper)
    before = psutil.Process(kernel.pid).memory_info().rss
    raw.sockets["shell"].sndhwm = 0
    padding, count = "x" * (2 << 20), 200
    for _ in range(count):
        raw.send("shell", "execute_request", {"code": "seen += 1", "silent": True, "padding": padding})
    peak = 0
    while len(kernel.log) == 0 or not any(
            m["content"].get("execution_state") == "idle" and m["parent_header"].get("msg_id") == sleeper
            for m in kernel.log):
        peak = max(peak, psutil.Process(kernel.pid).memory_info().rss)
        kernel.poll(0.05)
    for _ in range(count):
        assert raw.receive("shell", 60)["content"]["status"] == "ok"
    assert kernel.run("seen").result == str(count)
    assert peak - before < 330 << 20, "it holds all 400 MiB"


def test_a_subscriber_that_stalls_for_4_seconds_gets_everything(kernel):
    lazy = support.Raw(kernel.manager, most=1)
    try:
        msg_id = kernel.send("for i in range(20000): print('%%06d' %% i, %r, flush=True)" % LINE)
        stalled_until = time.monotonic() + 4
        kernel.finish(msg_id)
        time.sleep(max(0, stalled_until - time.monotonic()))
        texts, last = [], None
        while not last or last["content"].get("execution_state") != "idle" or last["parent_header"]["msg_id"] != msg_id:
            last = lazy.receive("iopub")
            assert last, "the idle was lost"
            if last["msg_type"] == "stream":
                texts.append(last["content"]["text"])
        assert "".join(texts) == "".join("%06d %s\n" % (i, LINE) for i in range(20000))
    finally:
        lazy.close()


def read_to_idle(client, msg_id):
    """(messages up to the idle of the cell, stdout's text, bytes that notes say were left out)"""
    messages = []
    while not messages or messages[-1]["content"].get("execution_state") != "idle" or \
            messages[-1]["parent_header"].get("msg_id") != msg_id:
        messages.append(client.receive("iopub"))
        assert messages[-1], "the idle was lost"
    texts = stream_messages(messages)
    notes = [c["text"] for c in texts if "this client did not read" in c["text"]]
    assert all(c["name"] == "stderr" for c in texts if c["text"] in notes)
    lost = sum(int(note.split("[")[1].split()[0]) for note in notes)
    return messages, "".join(c["text"] for c in texts if c["name"] == "stdout"), lost


def test_a_subscriber_that_never_reads(fresh):
    """It alone misses text, which a note tells; errors and displays it gets. The other client misses nothing."""
    size, count = 1_000_001, 130
    before = psutil.Process(fresh.pid).memory_info().rss
    dead = support.Raw(fresh.manager, most=1)
    try:
        run = fresh.run("for i in range(%d): print('x' * %d)\ndisplay('shown')\n1/0" % (count, size - 1), timeout=90)
        assert run.status == "error" and run.types[-1] == "status"
        assert len(run.of("error")) == len(run.of("display_data")) == 1
        assert len(run.text()) == size * count and run.text("stderr") == ""
        assert psutil.Process(fresh.pid).memory_info().rss - before < 200 << 20
        messages, text, lost = read_to_idle(dead, run.id)
        assert lost > 0 and len(text) + lost == size * count
        types = [m["msg_type"] for m in messages if m["parent_header"].get("msg_id") == run.id]
        assert types.count("error") == types.count("display_data") == 1
        again = fresh.run("print('next')")
        assert again.text() == "next\n"
        assert read_to_idle(dead, again.id)[1:] == ("next\n", 0)
    finally:
        dead.close()


SECOND_CLIENT = """
import sys
from jupyter_client import BlockingKernelClient
client = BlockingKernelClient(connection_file=sys.argv[1])
client.load_connection_file()
client.start_channels()
client.wait_for_ready(timeout=60)
print("ready", flush=True)
lines = {}
while True:
    message = client.get_iopub_msg(timeout=60)
    cell, content = message["parent_header"].get("msg_id"), message["content"]
    if message["msg_type"] == "stream":
        lines[cell] = lines.get(cell, "") + content["text"]
    if content.get("execution_state") == "idle" and cell in lines:
        print(cell, lines[cell].count("x\\n"), "did not read" in lines[cell], flush=True)
"""


def test_a_client_that_is_stopped_and_goes_on(fresh):
    """As by Ctrl-Z, or when a computer sleeps: the other client sees every line of every cell, and it comes back."""
    second = subprocess.Popen([sys.executable, "-c", SECOND_CLIENT, fresh.manager.connection_file], text=True,
                              stdout=subprocess.PIPE)
    try:
        assert second.stdout.readline() == "ready\n"
        second.send_signal(signal.SIGSTOP)
        code = "for i in range(10240): print('%06d' % i + 'x' * 1017)"
        runs = [fresh.run(code) for _ in range(8)]
        expected = "".join("%06d" % i + "x" * 1017 + "\n" for i in range(10240))
        assert [run.text() == expected for run in runs] == [True] * 8
        assert [run.text("stderr") for run in runs] == [""] * 8
        second.send_signal(signal.SIGCONT)
        seen = [second.stdout.readline().split() for _ in range(8)]
        assert [line[0] for line in seen] == [run.id for run in runs]
        assert seen[0][1:] == ["10240", "False"] and seen[-1][2] == "True", seen
        last = fresh.run(code)
        assert second.stdout.readline().split() == [last.id, "10240", "False"]
    finally:
        second.kill()
        second.wait()
        second.stdout.close()


def test_outputs_larger_than_what_is_kept(fresh):
    """Who reads gets them whole, and the idle behind them."""
    run = fresh.run("for i in range(2): display({'text/plain': '%d' % i * (110 << 20)}, raw=True)\nprint('end')",
                    timeout=180)
    assert [(c["data"]["text/plain"][0], len(c["data"]["text/plain"])) for c in run.of("display_data")] == [
        ("0", 110 << 20), ("1", 110 << 20)]
    assert run.types[-1] == "status" and run.text() == "end\n" and run.text("stderr") == ""


def test_64_mib_in_one_print(fresh):
    run = fresh.run("print('y' * (64 << 20))", timeout=90)
    messages = run.sent("stream")
    assert "".join(c["text"] for c in messages) == "y" * (64 << 20) + "\n"
    assert max(len(c["text"].encode()) for c in messages) <= 1 << 20
    assert len(messages) < 100


def test_many_displays_all_arrive(kernel):
    run = kernel.run("for i in range(3000): display(i)", timeout=60)
    assert [c["data"]["text/plain"] for c in run.of("display_data")] == [str(i) for i in range(3000)]


def test_output_stays_under_the_rates_that_servers_allow(kernel):
    """jupyter_server drops what exceeds 1000 messages a second, looked at over 3 s. Streams that alternate cannot be
    merged: they may come 1000 at once, then 600 a second."""
    flushed = kernel.run("for i in range(5000): print(i, flush=True)")
    assert flushed.text() == "".join("%d\n" % i for i in range(5000)) and len(flushed.sent("stream")) < 1000
    bar = kernel.run("import time\nfor i in range(300): print(end='.'); time.sleep(0.001)")
    assert bar.text() == "." * 300 and len(bar.sent("stream")) < 100
    time.sleep(2)  # what the rate allows at once is there again
    started = time.monotonic()
    run = kernel.run("import sys\nfor i in range(1500):\n    print('o', i)\n"
                     "    print('e', i, file=sys.stderr)", timeout=60)
    seconds = time.monotonic() - started
    assert "".join(c["text"] for c in run.sent("stream")) == "".join("o %d\ne %d\n" % (i, i) for i in range(1500))
    assert seconds > (len(run.sent("stream")) - 1000) / 600 - 0.5


def test_a_second_client_becomes_ready_while_a_thread_prints(kernel):
    """wait_for_ready() wants 0.2 s of silence on iopub."""
    kernel.run("import threading, time, sys\ngo_on = True\n"
               "def tick():\n"
               "    i = 0\n"
               "    while go_on:\n"
               "        i += 1\n"
               "        print('tick', i, flush=True)\n"
               "        if i % 3 == 0: print('tock', file=sys.stderr)\n"
               "        time.sleep(0.1)\n"
               "thread = threading.Thread(target=tick); thread.start()")
    try:
        second = BlockingKernelClient(connection_file=kernel.manager.connection_file)
        second.load_connection_file()  # a session of its own: clients are told apart by it
        second.start_channels()
        started = time.monotonic()
        second.wait_for_ready(timeout=support.TIMEOUT)
        assert time.monotonic() - started < support.TIMEOUT
        second.stop_channels()
    finally:
        kernel.run("go_on = False; thread.join()")
    kernel.poll(0.5)
    ticks = "".join(c["text"] for c in stream_messages(kernel.log) if c["name"] == "stdout")
    numbers = [int(line.split()[1]) for line in ticks.splitlines()]
    assert numbers == list(range(1, len(numbers) + 1)), "text of the thread was lost"


def test_nothing_is_published_unless_asked(kernel):
    kernel.run("import asyncio\nasync def idle():\n    while True: await asyncio.sleep(0.05)\n"
               "task = asyncio.create_task(idle())")
    kernel.poll(0.3)
    kernel.log.clear()
    kernel.poll(3)
    assert kernel.log == []
    kernel.run("task.cancel()")


def test_a_large_request_and_a_large_reply(kernel, raw):
    size = 32 << 20
    raw.send("shell", "execute_request", {"code": "t = 'x' * %d" % size, "padding": "y" * size, "silent": True,
                                          "user_expressions": {"n": "len(t)", "t": "t.encode()"}})
    reply = raw.receive("shell", 60)["content"]
    assert reply["user_expressions"]["n"]["data"]["text/plain"] == str(size)
    assert len(reply["user_expressions"]["t"]["data"]["text/plain"]) == size + 3
    kernel.run("del t")
