"""How many leases the broker gives and takes back in a second, and how long one waits for it.

`one_connection()` asks, waits for the answer, and gives back. `many_clients()` has a thousand connections that take
turns, some requests in flight at a time, and half of them hold a lease at any time. All answers are read and checked:
no part may have two holders, and nothing may be left at the end. The load shares the machine with the broker, so the
figures are those of both; the broker's own processor time is beside them."""
import argparse
import collections
import json
import os
import pathlib
import resource
import select
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "hosted"))
from brokers import ANSWER_MOST, Broker  # noqa: E402

LEASE = b'{"op":"lease","want":{"kind":"cpu","parts":1}}'


def config(clients):
    """A machine with a part for each client."""
    devices = [{"id": f"cpu{i}", "kind": "cpu", "parts": 250, "memory": 250 << 30,
                "env": {"DRUPE_DEVICES": f"host:cpu:{i}"}} for i in range(-(-clients // 250))]
    return {"devices": devices, "limits": {"connections": clients + 10, "leases": 2 * clients}}


def figures(times, seconds):
    """A pair of requests is one lease that was given back; `times` are those of single requests."""
    times.sort()
    return {"leases_a_second": len(times) / 2 / seconds, "pairs": len(times) / 2,
            **{f"p{share:g}_ms": times[min(len(times) - 1, int(len(times) * share / 100))] * 1e3
               for share in (50, 99, 99.9)}}


def one_connection(broker, seconds=3.0):
    client, times = broker.client(), []
    send, receive, clock = client.socket.send, client.socket.recv, time.perf_counter
    begin = now = clock()
    while now < begin + seconds:
        send(LEASE)
        answer = json.loads(receive(ANSWER_MOST))
        middle = clock()
        send(b'{"op":"return","lease":"%s"}' % answer["lease"].encode())
        if receive(ANSWER_MOST) != b'{"ok":true}':
            raise RuntimeError("a lease was not taken back")
        times += (middle - now, (now := clock()) - middle)
    return figures(times, now - begin)


class Load:
    """Connections that take turns: who holds nothing asks for a lease, who holds one gives it back."""

    def __init__(self, broker, clients):
        self.sockets = {}
        self.poll = select.epoll()
        for _ in range(clients):
            one = broker.client().socket
            self.sockets[one.fileno()] = one
            self.poll.register(one, select.EPOLLIN)
        self.idle = collections.deque(self.sockets)
        self.held, self.parts, self.since, self.times = {}, set(), {}, []

    def begin(self, returns=False):
        """The connection that has rested longest makes its request; `returns`: unless it holds nothing."""
        fd = self.idle.popleft()
        lease = self.held.pop(fd, None)
        if lease is None and returns:
            return
        request = LEASE
        if lease is not None:
            self.parts.remove(lease[1:])
            request = b'{"op":"return","lease":"%s"}' % lease[0].encode()
        self.since[fd] = time.perf_counter()
        self.sockets[fd].send(request)

    def answered(self, fd):
        packet = self.sockets[fd].recv(ANSWER_MOST)
        self.times.append(time.perf_counter() - self.since.pop(fd))
        self.idle.append(fd)
        answer = json.loads(packet)
        if not answer["ok"]:
            raise RuntimeError(answer["error"])
        if "lease" not in answer:
            return
        device, = answer["devices"]
        part = device["id"], device["parts"][0]
        if part in self.parts:
            raise RuntimeError(f"{part} has two holders")
        self.parts.add(part)
        self.held[fd] = (answer["lease"], *part)

    def run(self, seconds, in_flight):
        """Requests for so many seconds; then all give back what they hold. How long it took."""
        begin = time.perf_counter()
        for _ in range(in_flight):
            self.begin()
        while self.since:
            for fd, _ in self.poll.poll():
                self.answered(fd)
                if time.perf_counter() < begin + seconds:
                    self.begin()
        while self.held:
            self.begin(returns=True)
            while self.since:
                for fd, _ in self.poll.poll():
                    self.answered(fd)
        return time.perf_counter() - begin


def many_clients(broker, clients=1000, in_flight=16, seconds=5.0):
    load = Load(broker, clients)
    took = load.run(seconds, in_flight)
    left = broker.client().ask("list")["leases"]
    if left:
        raise RuntimeError(f"{len(left)} leases are left")
    return {"clients": clients, "in_flight": in_flight, **figures(load.times, took)}


def processor_seconds(pid):
    """Of a process, until now."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counted(broker, load, *args):
    """The figures of a load, with the broker's processor time for a lease and its return."""
    before = processor_seconds(broker.process.pid)
    result = load(broker, *args)
    pairs = result.pop("pairs")
    return {**result, "broker_us_a_lease": (processor_seconds(broker.process.pid) - before) / pairs * 1e6}


def measure(seconds=5.0, clients=1000, in_flight=16):
    """Both figures, of a broker of their own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, clients + 200), hard))
    with tempfile.TemporaryDirectory() as folder, Broker(folder, config(clients)) as broker:
        return {"one": counted(broker, one_connection, seconds),
                "many": counted(broker, many_clients, clients, in_flight, seconds)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, default=16, help="requests that wait for an answer at a time")
    options = parser.parse_args()
    for name, result in measure(options.seconds, options.clients, options.in_flight).items():
        print(f"{name:5}", "  ".join(f"{key} {value:,.3f}" if isinstance(value, float) else f"{key} {value}"
                                     for key, value in result.items()))


if __name__ == "__main__":
    main()
