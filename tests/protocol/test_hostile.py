"""What strangers, broken clients and a hostile environment do: each case has a defined end, the kernel serves on."""
import collections
import os
import pathlib
import pty
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import psutil
import pytest
import support
import zmq
from jupyter_client.connect import write_connection_file


# --- clients ---

def test_garbage_on_every_socket(kernel, raw):
    """Random frames, wrong signatures, truncated and endless messages on all five sockets."""
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    info = kernel.manager.get_connection_info()
    sockets = {}
    for name in ("shell", "control", "stdin", "iopub", "hb"):
        socket = raw.context.socket(zmq.XSUB if name == "iopub" else zmq.DEALER)
        socket.linger = 0
        socket.connect("tcp://%s:%d" % (info["ip"], info[name + "_port"]))
        sockets[name] = socket
    good, _ = raw.frames("kernel_info_request")
    for _ in range(2000):
        kind = rng.randrange(4)
        if kind == 0:
            frames = [rng.randbytes(rng.randrange(60)) for _ in range(rng.randrange(1, 9))]
        elif kind == 1:
            frames = good[:rng.randrange(1, len(good))]
        elif kind == 2:
            at = rng.randrange(len(good))
            frames = [*good[:at], rng.randbytes(64), *good[at + 1:]]
        else:
            frames = [b"<IDS|MSG>", *[rng.randbytes(9)] * rng.randrange(8)]
        socket = sockets[rng.choice(list(sockets))]
        socket.send_multipart(frames)
    for name in ("shell", "control", "stdin"):
        sockets[name].send_multipart([b"x"] * 20000)  # more frames than any message has
    assert kernel.run("1+1").result == "2", "seed %d" % seed
    raw.send("control", "kernel_info_request")
    assert raw.receive("control")["content"]["status"] == "ok"


def test_strange_and_many_subscriptions(kernel, raw):
    info = kernel.manager.get_connection_info()
    socket = raw.context.socket(zmq.SUB)
    socket.linger = 0
    socket.sndhwm = socket.rcvhwm = 0
    socket.subscribe(b"\xff\xfe not UTF-8")
    for i in range(500):
        socket.subscribe(b"topic.%d" % i)
    socket.connect("tcp://%s:%d" % (info["ip"], info["iopub_port"]))
    welcomed = set()
    while len(welcomed) < 500:
        assert socket.poll(support.TIMEOUT * 1000), "only %d welcomes" % len(welcomed)
        welcomed.add(socket.recv_multipart()[0])
    assert b"\xff\xfe not UTF-8" not in welcomed
    assert kernel.run("1+1").result == "2"
    socket.close()
    assert kernel.run("print('after')").text() == "after\n"


def test_a_client_that_comes_and_goes(kernel):
    """A thousand connections, each with a request whose reply nobody takes: no descriptor is kept."""
    info = kernel.manager.get_connection_info()
    before = psutil.Process(kernel.pid).num_fds()
    for i in range(1000):
        context = zmq.Context()
        socket = context.socket(zmq.DEALER)
        socket.linger = 0
        socket.connect("tcp://%s:%d" % (info["ip"], info["shell_port"]))
        if i % 10 == 0:
            socket.send_multipart([b"<IDS|MSG>", b"", b"{}", b"{}", b"{}", b"{}"])
        context.destroy(linger=0)
    assert kernel.run("1+1").result == "2"
    support.wait_until(lambda: psutil.Process(kernel.pid).num_fds() <= before + 3, what="the connections to be closed")


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16 + 32)
DEALER = b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06DEALER"
SUB = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB"


def stranger(kernel, channel, kind=DEALER, room=0):
    """A connection that speaks ZMTP, without libzmq. It has shaken hands. `room`: bytes that the system keeps."""
    info = kernel.manager.get_connection_info()
    connection = socket.socket(socket.AF_INET)
    connection.settimeout(support.TIMEOUT)
    if room:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    connection.connect((info["ip"], info[channel + "_port"]))
    connection.sendall(GREETING + kind)
    answer = b""
    while (b"ROUTER" if kind == DEALER else b"XPUB") not in answer:
        part = connection.recv(1000)
        assert part, "the kernel hung up"
        answer += part
    return connection


def frames_without_end(connection, size, count):
    """Send frames of one message. Returns how many the kernel took before it hung up."""
    frame = b"\x03" + struct.pack(">Q", size) + b"x" * size
    for i in range(count):
        try:
            connection.sendall(frame)
        except OSError:
            return i
    return count


def test_a_message_without_an_end_is_bounded(kernel, raw):
    """768 MiB before a signature is seen: the kernel keeps 512 of all that is unfinished, and hangs up on the one
    that has most. Others send 100 MB meanwhile."""
    process = psutil.Process(kernel.pid)
    before = process.memory_info().rss
    with stranger(kernel, "shell") as first, stranger(kernel, "shell") as second:
        assert frames_without_end(second, 32 << 20, 5) == 5
        raw.send("shell", "execute_request", {"code": "", "silent": True, "padding": "y" * 100_000_000})
        assert raw.receive("shell")["content"]["status"] == "ok"
        assert frames_without_end(first, 32 << 20, 19) < 19
        assert process.memory_info().rss - before < 640 << 20
        assert kernel.run("1+1").result == "2"
    support.wait_until(lambda: process.memory_info().rss - before < 100 << 20, what="the memory to be given back")


def test_echoes_of_the_heartbeat_are_bounded(kernel, raw):
    """240 MB of heartbeats whose sender takes no echo, as parts of one message."""
    process = psutil.Process(kernel.pid)
    before = process.memory_info().rss
    with stranger(kernel, "hb") as connection:
        assert frames_without_end(connection, 60000, 4000) < 4000
    assert process.memory_info().rss - before < 50 << 20
    raw.sockets["hb"].send(b"alive")
    assert raw.sockets["hb"].poll(support.TIMEOUT * 1000) and raw.sockets["hb"].recv() == b"alive"


def test_heartbeats_of_the_transport_are_answered(kernel, raw):
    """A client whose libzmq sends PING hangs up when no PONG comes."""
    info = kernel.manager.get_connection_info()
    link = raw.context.socket(zmq.DEALER)
    link.linger = 0
    link.heartbeat_ivl, link.heartbeat_timeout = 20, int(support.TIMEOUT * 500)
    events = link.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    link.connect("tcp://%s:%d" % (info["ip"], info["shell_port"]))
    with stranger(kernel, "shell") as connection:
        connection.sendall(b"\x04\x0b\x04PING\0\0mine")
        answer = b""
        while not answer.endswith(b"\x04\x09\x04PONGmine"):
            part = connection.recv(1000)
            assert part, "the kernel hung up"
            answer += part
    for _ in range(5):
        link.send_multipart(raw.frames("kernel_info_request")[0])
        assert link.poll(support.TIMEOUT * 1000) and link.recv_multipart()[0] == b"<IDS|MSG>"
    assert not events.poll(0)
    link.disable_monitor()


def send_all_or_end(connection, data, times):
    """Send `data` so many times. Returns whether the kernel took it all, without hanging up."""
    try:
        for _ in range(times):
            connection.sendall(data)
    except OSError:
        return False
    return True


def received(connection, *ends):
    """What comes until one of `ends` is in it, or the kernel hangs up."""
    answer = b""
    while not any(end in answer for end in ends):
        try:
            part = connection.recv(1 << 20)
        except ConnectionResetError:
            return answer
        if not part:
            return answer
        answer += part
    return answer


def test_pongs_that_nobody_takes_are_bounded(kernel):
    """1200000 PINGs whose sender takes no PONG."""
    process = psutil.Process(kernel.pid)
    before = process.memory_info().rss
    with stranger(kernel, "shell") as connection:
        assert send_all_or_end(connection, b"\x04\x07\x04PING\0\0" * 40000, 30)
        assert kernel.run("1+1").result == "2"
        assert process.memory_info().rss - before < 50 << 20


def test_small_echoes_of_the_heartbeat_are_bounded(kernel):
    """Empty frames: each costs far more than its bytes."""
    process = psutil.Process(kernel.pid)
    before = process.memory_info().rss
    with stranger(kernel, "hb") as connection:
        assert not send_all_or_end(connection, b"\x01\0" * 100000, 60)
    assert process.memory_info().rss - before < 30 << 20


def test_welcomes_that_nobody_takes_keep_no_text_back(kernel):
    """A client without a key can make itself be welcomed: nobody waits until it has taken what that gave."""
    topic = b"t" * 1000
    command = struct.pack(">BQ", 2, 1 + len(topic))
    both = command + b"\1" + topic + command + b"\0" + topic
    with stranger(kernel, "iopub", SUB) as connection:
        process = psutil.Process(kernel.pid)
        before = process.memory_info().rss
        assert send_all_or_end(connection, both, 20000)  # 45 MB of welcomes
        assert kernel.run("print('seen')").text() == "seen\n"
        assert process.memory_info().rss - before < 30 << 20


@pytest.mark.parametrize("topics", [[b"x" * 1025], [b"topic.%d" % i for i in range(513)]], ids=["long", "many"])
def test_subscriptions_are_bounded(kernel, topics):
    with stranger(kernel, "iopub", SUB) as connection:
        send_all_or_end(connection, b"".join(struct.pack(">BQ", 2, 1 + len(topic)) + b"\1" + topic
                                             for topic in topics), 1)
        send_all_or_end(connection, b"\x04\x0b\x04PING\0\0mine", 1)
        assert b"PONGmine" not in received(connection, b"PONGmine")  # it hung up
    assert kernel.run("1+1").result == "2"


def test_a_subscription_counts_how_often_it_was_made(kernel, raw):
    """One that was made twice and taken back once is there; and SUBSCRIBE and CANCEL of ZMTP 3.1 mean the same."""
    for twice, back in ((b"\0\1\1", b"\0\1\0"), (b"\x04\x0a\x09SUBSCRIBE", b"\x04\x07\x06CANCEL")):
        with stranger(kernel, "iopub", SUB) as connection:
            connection.sendall(twice * 2 + back + b"\x04\x0b\x04PING\0\0mine")
            answer = received(connection, b"PONGmine")
            kernel.run("print('there')")
            answer += received(connection, b"there")
            assert answer.count(b"iopub_welcome") == 1  # it was new once
            connection.sendall(back + b"\x04\x0b\x04PING\0\0last")
            answer = received(connection, b"PONGlast")
            kernel.run("print('no longer')")
            connection.sendall(b"\x04\x0b\x04PING\0\0over")
            assert b"no longer" not in received(connection, b"PONGover")


def test_one_that_reads_little_holds_nobody_up(fresh):
    """A subscriber takes 4 KB at a time, and goes on so until the other client has seen the end of its cell."""
    over = threading.Event()
    with stranger(fresh, "iopub", SUB, 8192) as connection:
        connection.sendall(b"\0\1\1")  # subscribe to all

        def sip():
            while not over.is_set():
                connection.recv(4096)
                over.wait(0.05)

        thread = threading.Thread(target=sip)
        thread.start()
        try:
            run = fresh.run("import sys\nfor i in range(60): sys.stdout.write('x' * 1000000)", timeout=60)
            assert len(run.text()) == 60_000_000 and run.text("stderr") == ""
        finally:
            over.set()
            thread.join()


def test_connections_are_bounded(kernel):
    """Those that are too many are refused, and the others are served."""
    info = kernel.manager.get_connection_info()
    links = []
    try:
        for _ in range(513):
            links.append(socket.create_connection((info["ip"], info["hb_port"]), timeout=support.TIMEOUT))
        taken = [received(link, b"\xff") != b"" for link in links]
        assert taken[0] and not taken[-1]
        assert kernel.run("1+1").result == "2"
    finally:
        for link in links:
            link.close()


def test_connections_leave_descriptors_for_the_program(bare):
    """As many as there can be, on all ports: a cell still opens files."""
    kernel = bare(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))).connect()
    info = kernel.client.get_connection_info()
    links = []
    try:
        for channel in ("shell", "control", "stdin", "iopub", "hb"):
            for _ in range(64):
                links.append(socket.create_connection((info["ip"], info[channel + "_port"]), timeout=support.TIMEOUT))
            received(links[-1], b"\xff")  # that one was accepted, or refused
        assert kernel.run("print(len([open('/dev/null') for _ in range(100)]))") == ("ok", "100\n")
    finally:
        for link in links:
            link.close()


def test_what_came_before_the_connection_broke_is_read(kernel, raw):
    """A client sends a PING and a request and is killed: the PONG cannot be written, and the request counts."""
    process = psutil.Process(kernel.pid)
    frames, _ = raw.frames("execute_request", {"code": "came = 'all the same'"})
    message = b"\x04\x0b\x04PING\0\0mine"
    for i, frame in enumerate(frames):
        message += struct.pack(">BQ", 2 if i == len(frames) - 1 else 3, len(frame)) + frame
    with stranger(kernel, "shell") as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets it
        process.suspend()
        try:
            support.wait_until(lambda: process.status() == psutil.STATUS_STOPPED, what="the kernel to stand still")
            connection.sendall(message)
            connection.close()
        finally:
            process.resume()
    support.wait_until(lambda: kernel.run("globals().get('came', 0)").result == "'all the same'", what="the request")


def test_two_clients_get_their_own_replies_and_both_see_all_output(kernel, raw):
    ids = []
    for i in range(20):
        ids.append(kernel.send("print('one %d')" % i))
        raw.send("shell", "execute_request", {"code": "print('two %d')" % i})
    for msg_id in ids:
        kernel.finish(msg_id)
    for _ in range(20):
        assert raw.receive("shell")["content"]["status"] == "ok"
    texts = collections.defaultdict(str)  # by cell: a line may come in two messages
    while sum(map(len, texts.values())) < 2 * sum(len("one %d\n" % i) for i in range(20)):
        message = raw.receive("iopub")
        assert message, texts
        if message["msg_type"] == "stream":
            texts[message["parent_header"]["msg_id"]] += message["content"]["text"]
    assert sorted(texts.values()) == sorted("%s %d\n" % (who, i) for who in ("one", "two") for i in range(20))


# --- the process's surroundings ---

class Bare:
    """A kernel process started by hand, in surroundings of the test's making."""

    def __init__(self, folder, prepare=None, environment=None, **options):
        self.path, self.info = write_connection_file(str(pathlib.Path(folder) / "bare.json"))
        variables = {**os.environ, "IPYTHONDIR": str(pathlib.Path(folder) / "ipython"), **(environment or {})}
        variables = {name: value for name, value in variables.items() if value is not None}
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen([sys.executable, "-m", "drupe", "-f", self.path], env=variables,
                                        preexec_fn=prepare, **options)
        self.client = None

    def connect(self):
        from jupyter_client import BlockingKernelClient
        self.client = BlockingKernelClient(connection_file=self.path)
        self.client.load_connection_file()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=support.TIMEOUT)
        return self

    def run(self, code, **options):
        """(status, stdout and stderr text) of a cell."""
        texts = []

        def hook(message):
            if message["msg_type"] == "stream":
                texts.append(message["content"]["text"])

        options.setdefault("allow_stdin", False)
        reply = self.client.execute_interactive(code, output_hook=hook, timeout=support.TIMEOUT, **options)
        return reply["content"]["status"], "".join(texts)

    def close(self):
        if self.client:
            self.client.stop_channels()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def bare(tmp_path):
    kernels = []

    def start(*arguments, **options):
        kernels.append(Bare(tmp_path, *arguments, **options))
        return kernels[-1]

    yield start
    for kernel in kernels:
        kernel.close()


def close_standard_descriptors():
    for fd in (0, 1, 2):
        os.close(fd)


def test_started_with_the_standard_descriptors_closed(bare):
    kernel = bare(close_standard_descriptors, stdin=None).connect()
    status, text = kernel.run("import os, subprocess\nprint('python')\nos.write(1, b'descriptor\\n')\n"
                              "subprocess.run(['echo', 'child'])\n"
                              "import sys; print('error', file=sys.stderr)")
    assert status == "ok" and text == "python\ndescriptor\nchild\nerror\n"
    kernel.client.shutdown()
    assert kernel.process.wait(support.TIMEOUT) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("busy", ["pass", "import time; time.sleep(600)", "while True: pass"])
def test_sigterm_and_sighup_are_a_shutdown(bare, tmp_path, number, busy):
    """The exit hooks run, child processes end, clients are told."""
    kernel = bare().connect()
    mark = tmp_path / "hook"
    status, text = kernel.run("import atexit, pathlib, subprocess\n"
                              "atexit.register(pathlib.Path(%r).write_text, 'ran')\n"
                              "print(subprocess.Popen(['sleep', '600']).pid)" % str(mark))
    child = psutil.Process(int(text))
    kernel.client.execute(busy)
    time.sleep(0.3)
    kernel.process.send_signal(number)
    assert kernel.process.wait(support.TIMEOUT) == 0
    assert mark.read_text() == "ran"
    support.wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE,
                       what="the child to end")


def test_sighup_that_is_ignored_stays_so(bare):
    """nohup python -m drupe ..."""
    kernel = bare(lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)).connect()
    kernel.process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert kernel.run("print('alive')") == ("ok", "alive\n")


def test_a_childs_sigterm_is_its_own(kernel):
    """Pool.terminate() and Process.terminate() end the child, not the kernel."""
    run = kernel.run("import multiprocessing, time\n"
                     "p = multiprocessing.get_context('fork').Process(target=time.sleep, args=(600,))\n"
                     "p.start(); p.terminate(); p.join(); print(p.exitcode)")
    assert run.text() == "-15\n"
    assert kernel.run("1").result == "1"


def test_a_terminal_that_closes(bare):
    """The kernel was started by hand in a terminal whose window is closed: it ends, as any program there."""
    master, slave = pty.openpty()

    def own_the_terminal():
        import fcntl
        import termios
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    kernel = bare(own_the_terminal, stdin=slave, stdout=slave, stderr=slave).connect()
    os.close(slave)
    assert kernel.run("print('alive')") == ("ok", "alive\n")
    os.close(master)
    assert kernel.process.wait(support.TIMEOUT) == 0


def test_a_dead_terminal_does_not_matter(bare):
    """The same when SIGHUP does not reach it: descriptors that fail with EIO."""
    master, slave = pty.openpty()
    kernel = bare(os.setsid, stdin=slave, stdout=slave, stderr=slave).connect()
    os.close(slave)
    os.close(master)
    status, text = kernel.run("import os, sys\nprint('python'); os.system('echo child')\n"
                              "print('to the terminal', file=sys.__stdout__)\ntry:\n    os.read(0, 1)\n"
                              "except OSError: pass")
    assert status == "ok" and text == "python\nchild\nto the terminal\n"
    kernel.client.shutdown()
    assert kernel.process.wait(support.TIMEOUT) == 0


def test_a_broken_pipe_is_an_exception(kernel):
    run = kernel.run("import os\nr, w = os.pipe(); os.close(r)\ntry:\n    os.write(w, b'x')\nexcept BrokenPipeError:\n"
                     "    print('broken')\nos.close(w)")
    assert run.text() == "broken\n"


@pytest.mark.parametrize("case", ["read-only", "a file", "no home", "full"])
def test_nowhere_to_write_the_history(bare, tmp_path, case):
    environment, prepare = {}, None
    if case == "read-only":  # for root, who may write everywhere, a folder that nobody can make
        environment["IPYTHONDIR"] = "/proc/no/ipython"
        environment["HOME"] = "/proc/no"
    elif case == "a file":
        (tmp_path / "ipython").write_text("")
    elif case == "no home":
        environment.update(HOME=None, IPYTHONDIR=None, XDG_CONFIG_HOME=None, IPYTHON_DIR=None)
    else:
        def prepare():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    kernel = bare(prepare, environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE).connect()
    for i in range(3):
        status, text = kernel.run("print(%d)" % i)
        assert status == "ok" and text.endswith("%d\n" % i)
    kernel.client.history(hist_access_type="tail", n=2)
    assert kernel.client.get_shell_msg(timeout=support.TIMEOUT)["content"]["status"] == "ok"
    time.sleep(1.5)  # the history is written a second later
    assert kernel.run("print('after')") == ("ok", "after\n")
    kernel.client.shutdown()
    out, error = kernel.process.communicate(timeout=support.TIMEOUT)
    assert kernel.process.returncode == 0
    assert out == b"" and error == b"", error


def test_few_descriptors(bare):
    """Where they suffice for nothing: one line. Where a cell eats the rest: an error in the cell, and life goes on."""
    kernel = bare(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)), stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    out, error = kernel.process.communicate(timeout=support.TIMEOUT)
    assert kernel.process.returncode == 1 and out == b""
    assert error.startswith(b"drupe: ") and error.count(b"\n") == 1, error

    kernel = bare(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))).connect()
    status, text = kernel.run("eaten = []\ntry:\n    while True: eaten.append(open('/dev/null'))\n"
                              "except OSError as e: print('full', len(eaten) > 10)")
    assert (status, text) == ("ok", "full True\n")
    assert kernel.run("print('still here'); 1/0")[0] == "error"
    kernel.client.control_channel.send(kernel.client.session.msg("interrupt_request", {}))
    assert kernel.client.get_control_msg(timeout=support.TIMEOUT)["content"]["status"] == "ok"
    assert kernel.run("for f in eaten: f.close()\nimport subprocess; subprocess.run(['echo', 'works'])")[1] == "works\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without processes of its own")
def test_no_threads_to_be_had(bare, tmp_path):
    """RLIMIT_NPROC: one clear line, not an abort of libzmq's."""
    tmp_path.chmod(0o777)

    def prepare():
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        os.setgid(65533)
        os.setuid(65533)

    path = tmp_path / "bare.json"
    kernel = Bare.__new__(Bare)
    kernel.path, kernel.info = write_connection_file(str(path))
    os.chown(path, 65533, 65533)
    try:
        process = subprocess.run([sys.executable, "-m", "drupe", "-f", str(path)], preexec_fn=prepare, timeout=60,
                                 capture_output=True, cwd="/", env={**os.environ, "HOME": str(tmp_path)})
    except PermissionError:
        pytest.skip("this interpreter cannot be run by another user")
    if b"Permission denied" in process.stderr or b"No module" in process.stderr:
        pytest.skip("this interpreter cannot be read by another user")
    assert process.returncode == 1 and process.stderr.startswith(b"drupe: "), process
    assert process.stderr.count(b"\n") == 1


def test_no_memory_in_a_cell(bare):
    """Allocations fail all over; the kernel replies to the cell, and to the next."""
    kernel = bare().connect()
    size = psutil.Process(kernel.process.pid).memory_info().vms
    psutil.Process(kernel.process.pid).rlimit(resource.RLIMIT_AS, (size + (48 << 20), -1))
    status, text = kernel.run("kept = []\ntry:\n    while True: kept.append(bytearray(1 << 20))\n"
                              "except MemoryError: print('no memory'); kept.clear()")
    assert status == "ok" and "no memory" in text
    assert kernel.run("bytearray(1 << 30)")[0] == "error"
    assert kernel.run("print('alive')") == ("ok", "alive\n")


_JUMPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static long turn;
static long jump(void) { return (turn++ % 3 - 1) * 86400L * 400; }
int clock_gettime(clockid_t id, struct timespec *at)
{
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, at);
    if (id == CLOCK_REALTIME) at->tv_sec += jump();
    return result;
}
"""


def test_a_clock_that_jumps(bare, tmp_path):
    """Years forward and back at every look: nothing waits for the wall clock."""
    (tmp_path / "jumps.c").write_text(_JUMPS)
    library = tmp_path / "jumps.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "jumps.c", "-ldl"], check=True)
    kernel = bare(environment={"LD_PRELOAD": str(library)}).connect()
    assert kernel.run("import time\nfor i in range(3):\n    print(i); time.sleep(0.05)") == ("ok", "0\n1\n2\n")
    assert kernel.run("import asyncio; await asyncio.sleep(0.1); print('awaited')") == ("ok", "awaited\n")
    kernel.client.shutdown()
    assert kernel.process.wait(support.TIMEOUT) == 0
