#!/usr/bin/env python3
"""How long a notebook waits for its kernel: Drupe beside ipykernel, measured in the same run by the same client.

The client is raw ZeroMQ with a jupyter_client Session, connected before the kernel binds. Kernels take turns, so that
the machine's mood is shared. Nothing here passes or fails."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

KERNELS = {"drupe": ["drupe"], "ipykernel": ["ipykernel_launcher"]}


class Kernel:
    """One kernel process and sockets to it."""

    def __init__(self, module, folder):
        key = os.urandom(16).hex().encode()
        path, info = write_connection_file(str(folder / ("%s-%d.json" % (module[0], time.monotonic_ns()))), key=key)
        self.session = Session(key=key)
        self.context = zmq.Context()
        self.shell = self._connect(zmq.DEALER, info["shell_port"])
        self.control = self._connect(zmq.DEALER, info["control_port"])
        self.iopub = self._connect(zmq.SUB, info["iopub_port"])
        self.started = time.perf_counter()
        environment = {**os.environ, "IPYTHONDIR": str(folder), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        self.process = subprocess.Popen([sys.executable, "-m", *module, "-f", path], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)

    def _connect(self, kind, port):
        socket = self.context.socket(kind)
        socket.linger = 0
        socket.setsockopt(zmq.RECONNECT_IVL, 5)
        if kind == zmq.SUB:
            socket.setsockopt(zmq.RCVHWM, 0)
            socket.subscribe(b"")
        socket.connect("tcp://127.0.0.1:%d" % port)
        return socket

    def close(self):
        self.process.kill()
        self.process.wait()
        self.context.destroy(linger=0)

    def receive(self, socket, timeout=60):
        if not socket.poll(timeout * 1000):
            raise SystemExit("the kernel did not answer within %d s" % timeout)
        _, frames = self.session.feed_identities(socket.recv_multipart())
        return self.session.deserialize(frames)

    def ask(self, socket, msg_type, content):
        """The seconds until the reply, and its id."""
        message = self.session.msg(msg_type, content)
        begun = time.perf_counter()
        self.session.send(socket, message)
        while self.receive(socket)["parent_header"]["msg_id"] != message["header"]["msg_id"]:
            pass
        return time.perf_counter() - begun, message["header"]["msg_id"]

    def wait_idle(self, msg_id):
        while True:
            message = self.receive(self.iopub)
            if message["parent_header"].get("msg_id") == msg_id and message["content"].get("execution_state") == "idle":
                return

    def execute(self, code, **options):
        """The seconds until the reply and until idle."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
                   "stop_on_error": True, **options}
        begun = time.perf_counter()
        reply, msg_id = self.ask(self.shell, "execute_request", content)
        self.wait_idle(msg_id)
        return reply, time.perf_counter() - begun


def measure_start(module, folder):
    """Seconds from spawn to kernel_info_reply, to the first result, and from shutdown to the process's end."""
    kernel = Kernel(module, folder)
    try:
        kernel.ask(kernel.shell, "kernel_info_request", {})
        info = time.perf_counter() - kernel.started
        kernel.execute("1+1")
        first = time.perf_counter() - kernel.started
        begun = time.perf_counter()
        kernel.ask(kernel.control, "shutdown_request", {"restart": False})
        kernel.process.wait(timeout=20)
        return info, first, time.perf_counter() - begun
    finally:
        kernel.close()


def measure_round_trips(module, folder, count):
    """Lists of seconds by name."""
    kernel = Kernel(module, folder)
    try:
        kernel.ask(kernel.shell, "kernel_info_request", {})
        for _ in range(50):
            kernel.execute("pass")
        found = {"pass -> reply": [], "pass -> idle": []}
        for _ in range(count):
            reply, idle = kernel.execute("pass")
            found["pass -> reply"].append(reply)
            found["pass -> idle"].append(idle)
        found["silent pass -> reply"] = [kernel.execute("pass", silent=True, store_history=False)[0]
                                         for _ in range(count)]
        found["1+1 -> idle"] = [kernel.execute("1+1")[1] for _ in range(count)]
        found["kernel_info on control"] = [kernel.ask(kernel.control, "kernel_info_request", {})[0]
                                           for _ in range(count)]
        found["20,000 prints -> idle"] = [kernel.execute("for i in range(20000): print(i)")[1] for _ in range(5)]
        return found
    finally:
        kernel.close()


def measure(rounds, count):
    results = {name: {} for name in KERNELS}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for turn in range(rounds + 1):
            for kernel, module in KERNELS.items():
                values = measure_start(module, folder)
                if turn:  # the first one reads everything from disk
                    for key, value in zip(("spawn -> kernel_info", "spawn -> first result", "shutdown -> gone"), values):
                        results[kernel].setdefault(key, []).append(value)
        for kernel, module in KERNELS.items():
            results[kernel].update(measure_round_trips(module, folder, count))
    return results


def show(results):
    print("%-24s %22s %22s %8s" % ("p50 (p99), ms", *KERNELS, "ratio"))
    for key in results["drupe"]:
        middles = [statistics.median(results[name][key]) for name in KERNELS]
        tails = [sorted(results[name][key])[int(0.99 * (len(results[name][key]) - 1))] for name in KERNELS]
        cells = ["%9.2f (%8.2f)" % (1000 * middle, 1000 * tail) for middle, tail in zip(middles, tails)]
        print("%-24s %22s %22s %8.1f" % (key, *cells, middles[1] / middles[0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="starts of each kernel (default 7)")
    parser.add_argument("--count", type=int, default=300, help="round trips of each kind (default 300)")
    parser.add_argument("--json", metavar="FILE", help="also write every value, in seconds")
    options = parser.parse_args()
    results = measure(options.rounds, options.count)
    show(results)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
