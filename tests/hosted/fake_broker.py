"""A broker of the tests' own: it notes every request, answers as it is told to, and sends events when a test wants."""
import contextlib
import json
import os
import select
import socket
import threading

TIMEOUT = 60


class FakeBroker:
    """Listens on `path`. `answers` has, by op, a function of the request that returns the answer's fields."""

    def __init__(self, path):
        self.path = str(path)
        self.requests = []  # in order
        self.answers = {"list": lambda request: {"leases": [], "devices": [], "queue": 0}}
        self._seen = threading.Condition()
        self._clients = {}
        self._subscribed = []
        self.open()

    def open(self):
        self._over = False
        if os.path.exists(self.path):
            os.unlink(self.path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.path)
        self._listener.listen(16)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        """As a broker that dies."""
        self._over = True
        self._thread.join(TIMEOUT)
        self._listener.close()
        for client in list(self._clients.values()):
            client.close()
        self._clients.clear()
        self._subscribed.clear()

    def _run(self):
        while not self._over:
            ready, _, _ = select.select([self._listener, *self._clients.values()], [], [], 0.05)
            for one in ready:
                if one is self._listener:
                    client, _ = self._listener.accept()
                    self._clients[client.fileno()] = client
                else:
                    self._serve(one)

    def _serve(self, client):
        try:
            packet = client.recv(65536)
        except OSError:
            packet = b""
        if not packet:
            self._clients = {number: one for number, one in self._clients.items() if one is not client}
            self._subscribed = [one for one in self._subscribed if one is not client]
            client.close()
            return
        request = json.loads(packet)
        if request["op"] == "subscribe":
            self._subscribed.append(client)
        answer = {"tag": request["tag"], "ok": True, **self.answers.get(request["op"], lambda one: {})(request)}
        with contextlib.suppress(BrokenPipeError):  # it did not wait
            client.send(json.dumps(answer).encode())
        with self._seen:
            self.requests.append({**request, "client": client})
            self._seen.notify_all()

    def event(self, client=None, **fields):
        """To one client, or to who has subscribed."""
        for one in [client] if client is not None else self._subscribed:
            one.send(json.dumps(fields).encode())

    def wait(self, op, after=0):
        """The first request of this kind from the place `after` on, past or to come: its place in the list."""
        with self._seen:
            def found():
                return next((at for at in range(after, len(self.requests)) if self.requests[at]["op"] == op), None)

            assert self._seen.wait_for(lambda: found() is not None, TIMEOUT), \
                "waited in vain for %s; there were %s" % (op, [one["op"] for one in self.requests])
            return found()

    def ops(self):
        with self._seen:
            return [one["op"] for one in self.requests]
