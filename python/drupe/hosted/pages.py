"""The hub's page "Devices": devices, leases, the queue and load, live.

The pages are handlers of the hub itself, because a service of JupyterHub 6 would need a TCP port. One thread follows
the broker for everybody who looks; each page gets by server-sent events what its user may see.
"""
import asyncio
import json
import pathlib
import threading
import time

from jupyterhub.handlers.base import BaseHandler
from tornado import web
from tornado.iostream import StreamClosedError

from drupe.hosted import load, view
from drupe.hosted.client import Broker, BrokerError

HERE = pathlib.Path(__file__).resolve().parent
BEAT = 2.0  # seconds between two measurements of load, which are signs of life as well
RETRY = 1.0  # seconds until the broker is asked again


class Follower:
    """A thread that knows the broker's state as long as somebody looks."""

    def __init__(self):
        self._lock = threading.Lock()
        self._listeners = {}  # a callback by its loop
        self._thread = None
        self.seen = None  # a state and load, or {"error": text}

    def listen(self, callback):
        with self._lock:
            self._listeners[callback] = asyncio.get_running_loop()
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="drupe-devices", daemon=True)
                self._thread.start()

    def forget(self, callback):
        with self._lock:
            self._listeners.pop(callback, None)

    def _wanted(self):
        """Under no lock: False when the thread may end, which nobody starts again meanwhile."""
        with self._lock:
            if not self._listeners:
                self._thread = None
            return bool(self._listeners)

    def _tell(self, seen):
        self.seen = seen
        with self._lock:
            listeners = list(self._listeners.items())
        for callback, loop in listeners:
            loop.call_soon_threadsafe(callback)

    def _follow(self):
        meter = load.Meter()
        while self._wanted():
            try:
                with Broker(reconnect=False) as broker:
                    broker.connect()
                    broker.watch()
                    state = broker.list()
                    while self._wanted():
                        self._tell({"state": state, "time": time.time(), "load": meter.read(_devices(state))})
                        if _changed(broker):
                            state = broker.list()
            except BrokerError as error:
                self._tell({"error": str(error)})
                time.sleep(RETRY)


def _changed(broker):
    """Wait for news, at most one beat; several at once are one."""
    event = broker.event(BEAT)
    changed = False
    while event is not None:
        changed = changed or event.get("event") == "changed"
        event = broker.event(0)
    return changed


def _devices(state):
    """The devices with their files, which leases tell."""
    nodes = {take["id"]: take["nodes"] for lease in state["leases"] for take in lease["devices"]}
    return [{**one, "nodes": nodes.get(one["id"])} for one in state["devices"]]


follower = Follower()


class DevicesPage(BaseHandler):
    @web.authenticated
    async def get(self):
        self.finish(await self.render_template("devices.html", user=self.current_user))


class DevicesEvents(BaseHandler):
    """The page's events: one object whenever something changes, and with each beat."""

    async def get(self):
        user = self.current_user
        if user is None:
            raise web.HTTPError(403)
        self.set_header("content-type", "text/event-stream")
        self.set_header("cache-control", "no-store")
        news = asyncio.Event()
        follower.listen(news.set)
        if follower.seen is not None:
            news.set()
        try:
            while not self.request.connection.stream.closed():
                await news.wait()
                news.clear()
                text = json.dumps(view.page(follower.seen, user.name, user.admin))
                self.write(f"data: {text}\n\n")
                await self.flush()
        except StreamClosedError:
            pass
        finally:
            follower.forget(news.set)


class Static(web.StaticFileHandler):
    """The page's own files, which are no secrets."""


def configure(c):
    """Add the page "Devices" to a hub, and the looks of the page of profiles."""
    c.JupyterHub.template_paths = [str(HERE / "templates")]
    c.JupyterHub.extra_handlers = handlers()


def handlers():
    return [(r"/devices/?", DevicesPage), (r"/devices/events", DevicesEvents),
            (r"/devices/static/(.*)", Static, {"path": str(HERE / "static")})]
