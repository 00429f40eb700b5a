"""The figures of one kernel: every function takes a turn with a fresh process and returns {figure: [values]}.

Times are in seconds, rates per second, memory in MiB.
"""
import contextlib
import subprocess
import sys
import time

import zmq

from client import HERE, Kernel, Messages, count, environment, execute_content, free_ports, stream_text

PRINTS = 20000
FLUSHED = 3000
DISPLAYS = 1000
HOLD = 2.0  # seconds for which a C call keeps the GIL


def start(name, folder):
    """From spawn to kernel_info_reply and to the first result; from shutdown to the end of the process."""
    with Kernel(name, folder) as kernel:
        kernel.ask(kernel.shell, "kernel_info_request", {})
        info = time.perf_counter() - kernel.started
        kernel.execute("1+1")
        first = time.perf_counter() - kernel.started
        begun = time.perf_counter()
        kernel.ask(kernel.control, "shutdown_request", {"restart": False})
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs counts as 20 s
            kernel.process.wait(timeout=20)
        gone = time.perf_counter() - begun
    return {"spawn -> kernel_info": [info], "spawn -> first result": [first], "shutdown -> process gone": [gone]}


def bare_shell(folder):
    """From spawn to the end of the first run_cell() of IPython alone."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, str(HERE / "bare_shell.py")], env=environment(folder),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    text = b""
    while b"done" not in text:
        piece = process.stdout.read1()
        if not piece:
            raise SystemExit("IPython alone does not start")
        text += piece
    seconds = time.perf_counter() - begun
    process.stdout.close()
    process.wait()
    return {"spawn -> first result": [seconds]}


def build_echo(folder):
    """Compile echo.c; the path of the program."""
    program = folder / "echo"
    subprocess.run(["cc", "-O2", "-o", str(program), str(HERE / "echo.c"), "-lzmq"], check=True)
    return program


def echo(program, turns):
    """Round trips of a request to a ROUTER socket that sends it back."""
    (port,) = free_ports(1)
    endpoint = "tcp://127.0.0.1:%d" % port
    process = subprocess.Popen([str(program), endpoint], stdin=subprocess.DEVNULL)
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    socket.rcvtimeo = 60000
    socket.connect(endpoint)
    messages, values = Messages(b"key"), []
    try:
        for turn in range(turns + 50):
            frames, _ = messages.request("kernel_info_request", {})
            begun = time.perf_counter()
            socket.send_multipart(frames)
            socket.recv_multipart()
            if turn >= 50:
                values.append(time.perf_counter() - begun)
    finally:
        process.kill()
        process.wait()
        context.destroy(linger=0)
    return {"kernel_info on control": values}


def idle_process(kernel):
    """After the first cell and a second of rest."""
    kernel.execute("1+1")
    time.sleep(1)
    shared, private = kernel.memory()
    return {"idle memory, PSS": [shared], "idle memory, private": [private], "threads": [kernel.threads()]}


def round_trips(kernel, turns):
    for _ in range(50):
        kernel.execute("pass")
    pairs = [kernel.execute("pass")[:2] for _ in range(turns)]
    found = {"pass -> reply": [pair[0] for pair in pairs], "pass -> idle": [pair[1] for pair in pairs]}
    found["silent pass -> reply"] = [kernel.execute("pass", silent=True, store_history=False)[0] for _ in range(turns)]
    found["1+1 -> idle"] = [kernel.execute("1+1")[1] for _ in range(turns)]
    found["kernel_info on control"] = [kernel.info(kernel.control) for _ in range(turns)]
    found["complete impo"] = [kernel.ask(kernel.shell, "complete_request", {"code": "impo", "cursor_pos": 4})[0]
                              for _ in range(turns // 10)]
    return found


def held_gil(kernel):
    """kernel_info on control every 50 ms while a C call keeps the GIL. Who answers afterwards has one value."""
    msg_id = kernel.start_cell("import ctypes; ctypes.PyDLL(None).usleep(%d)" % (HOLD * 1e6))
    time.sleep(0.3)
    end, values = time.perf_counter() + HOLD - 0.5, []
    while time.perf_counter() < end:
        values.append(kernel.ask(kernel.control, "kernel_info_request", {})[0])
        time.sleep(0.05)
    kernel.answer(kernel.shell, msg_id)
    kernel.until_idle(msg_id)
    return {"control, GIL held 2 s": values}


def prints(kernel):
    _, idle, seen = kernel.execute("for i in range(%d): print(i)" % PRINTS)
    text, messages = stream_text(seen)
    lost = PRINTS - sum(a == b for a, b in zip(text.splitlines(), map(str, range(PRINTS))))
    return {"20,000 prints -> idle": [idle], "20,000 prints, messages": [messages], "20,000 prints, lost": [lost]}


def flushed_prints(kernel):
    _, idle, seen = kernel.execute("for i in range(%d): print(i, flush=True)" % FLUSHED)
    text, messages = stream_text(seen)
    lost = FLUSHED - sum(a == b for a, b in zip(text.splitlines(), map(str, range(FLUSHED))))
    return {"flushed prints": [FLUSHED / idle], "flushed prints, messages": [messages / FLUSHED],
            "flushed prints, lost": [lost]}


def displays(kernel):
    _, idle, seen = kernel.execute("for i in range(%d): display(i)" % DISPLAYS)
    return {"display_data": [DISPLAYS / idle], "display_data, lost": [DISPLAYS - count(seen, "display_data")]}


def visible(kernel):
    """From the execute_input of a cell that prints and then sleeps to its text."""
    values = []
    for code in ("print('x'); import time; time.sleep(0.4)", "print('x', end=''); import time; time.sleep(0.4)"):
        frames, msg_id = kernel.messages.request("execute_request", execute_content(code))
        begun = time.perf_counter()
        kernel.shell.send_multipart(frames)
        while stream_text([kernel.iopub.recv_multipart()])[1] == 0:
            pass
        values.append(time.perf_counter() - begun)
        kernel.answer(kernel.shell, msg_id)
        kernel.until_idle(msg_id)
    return {"unflushed print visible": values}


def turn(name, folder, turns):
    """Everything that one running kernel is asked."""
    found = {}
    with Kernel(name, folder) as kernel:
        kernel.ready()
        found.update(idle_process(kernel))
        found.update(round_trips(kernel, turns))
        found.update(held_gil(kernel))
        found.update(visible(kernel))
        for measure in (prints, flushed_prints, displays):
            for _ in range(2):
                for key, values in measure(kernel).items():
                    found.setdefault(key, []).extend(values)
    return found
