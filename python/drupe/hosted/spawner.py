"""Spawners with leases: what all of them do, and one for the local users of a machine without any TCP port of a server.

Servers of local users listen on unix sockets in folders that only their user and the hub may enter. On the loopback
interface every user of the machine could connect to every server's port, and be there first.
"""
import asyncio
import os
import pwd
from urllib.parse import quote

from jupyterhub.spawner import LocalProcessSpawner, Spawner, _try_setcwd
from traitlets import Bool, Unicode

from drupe.hosted import hub, profiles
from drupe.hosted.client import Broker, BrokerError
from drupe.hosted.session import in_thread

_PORT = 8888  # Jupyter Server refuses a socket beside any other port; with a socket it opens none


class Leasing:
    """For a class before JupyterHub's spawner: the page of profiles, a lease, and where in the queue a user is."""

    drupe = None  # the session of the hooks

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.pre_spawn_hook = self.pre_spawn_hook or hub.pre_spawn_hook
        self.post_stop_hook = self.post_stop_hook or hub.post_stop_hook
        self.options_form = self.options_form or _form
        self.options_from_form = "simple"

    async def progress(self):
        """The place in the queue, then what was leased."""
        told = None
        while self._spawn_pending:
            event = self._event()
            if event != told:
                told = event
                yield event
            await asyncio.sleep(0.2)

    def _event(self):
        if self.drupe is not None and self.drupe.lease is not None:
            return {"progress": 50, "message": f"You have {self.drupe.lease.title}; the server starts"}
        if self.drupe is not None and self.drupe.position:
            return {"progress": 20, "message": f"Waiting for a device: number {self.drupe.position} in the queue"}
        return {"progress": 10, "message": "Asking for a device"}


class LeasingSpawner(Leasing, LocalProcessSpawner):
    """Starts a server as the local user of that name, with the devices that its profile leases."""

    socket_dir = Unicode("/run/drupe/servers", config=True,
                         help="The folder of the servers' unix sockets; every user needs to enter it, none to write.")
    ipc = Bool(True, config=True, help="Whether kernels talk to their server by unix sockets instead of TCP ports.")

    # --- Unix sockets ------------------------------------------------------------------------------------------

    @property
    def server(self):
        server = Spawner.server.fget(self)
        if server is not None and server.proto == "http+unix" and not server.connect_url:
            server.connect_url = f"http+unix://{server.ip}"  # JupyterHub would add a port, which the proxy refuses
        return server

    @server.setter
    def server(self, server):
        Spawner.server.fset(self, server)

    def _socket(self):
        """The path of this server's socket, in a folder of its user."""
        user = pwd.getpwnam(self.user.name)
        folder = os.path.join(self.socket_dir, f"u{user.pw_uid}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(folder, user.pw_uid, user.pw_gid)
        return os.path.join(folder, f"s{self.orm_spawner.id}.sock")

    def get_args(self):
        args = [*super().get_args(), f"--ServerApp.sock={self._socket()}"]
        return [*args, "--KernelManager.transport=ipc"] if self.ipc else args

    def get_env(self):
        env = super().get_env()
        if "DRUPE_BROKER" in os.environ:
            env.setdefault("DRUPE_BROKER", os.environ["DRUPE_BROKER"])
        return env

    async def start(self):
        self.ip, self.port = "127.0.0.1", _PORT
        await super().start()
        return f"http+unix://{quote(self._socket(), safe='')}"

    def make_preexec_fn(self, name):
        if os.geteuid() == 0:
            return super().make_preexec_fn(name)
        home = pwd.getpwnam(name).pw_dir
        return lambda: _try_setcwd(home)  # a hub without privileges serves its own user only


async def _form(spawner):
    """The page of profiles; a sentence when the broker does not answer."""
    try:
        state, offered = await in_thread(_state)
    except BrokerError as error:
        return profiles.unavailable(error)
    return profiles.form(state, offered, hub.chosen_profile(spawner.orm_spawner.user_options))


def _state():
    with Broker() as broker:
        return broker.list(), broker.profiles()
