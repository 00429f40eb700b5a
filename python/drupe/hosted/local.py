"""A hub of one machine: what a jupyterhub_config.py sets.

    from drupe.hosted.local import configure
    configure(c, "/run/drupe-hub", "/srv/drupe-hub")    # c is JupyterHub's configuration

Only the hub's address is a TCP port. Hub, proxy and servers talk to each other by unix sockets, kernels as well.
"""
import os
import pathlib
import pwd
import secrets
import stat
import sys
from urllib.parse import quote

from jupyterhub.auth import Authenticator
from traitlets import Unicode

FIRST_UID, LAST_UID = 1000, 60000  # of people's accounts


class PasswordAuthenticator(Authenticator):
    """Local accounts with one password, which is printed when the hub starts: for trials, not for strangers.

    Without privileges the hub serves only the user who runs it. `password` lets in everybody but the admins, who have
    another one, because each of them may stop what all the others run.
    """

    password = Unicode("", config=True, help="What users type; empty: nobody comes in.")
    admin_password = Unicode("", config=True, help="What admins type; empty: no admin comes in.")

    def is_admin(self, _handler, authentication):
        return authentication["name"] in self.admin_users

    def check_allowed(self, username, _authentication=None):
        return allowed(username) or username in self.admin_users

    async def authenticate(self, _handler, data):
        name = data["username"]
        wanted = self.admin_password if name in self.admin_users else self.password
        typed = data.get("password") or ""
        right = bool(wanted) and secrets.compare_digest(typed.encode(), wanted.encode())
        return name if right and self.check_allowed(name) else None


def allowed(name):
    """Whether this is an account whose servers the hub may start."""
    try:
        uid = pwd.getpwnam(name).pw_uid
    except KeyError:
        return False
    return FIRST_UID <= uid <= LAST_UID if os.geteuid() == 0 else uid == os.geteuid()


def make_folders(run, state):
    """`run` is for the sockets, and users enter it; `state` and `run/private` are the hub's alone."""
    for folder, mode in ((run, 0o755), (run / "servers", 0o755), (run / "private", 0o700), (state, 0o700)):
        folder.mkdir(parents=True, exist_ok=True)
        found = folder.lstat()  # where everybody may write, somebody else may have been first
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise ValueError(f"{folder} is not a folder of the account that runs the hub: remove it, or name another")
        folder.chmod(mode)
    longest = len(os.fsencode(run / "private" / "proxy.sock"))
    if longest > 100:
        raise ValueError(f"{run} is too long for sockets in it: their paths have at most 100 bytes, this one {longest}")


def unix(path):
    return "http+unix://" + quote(str(path), safe="")


def configure(c, run, state, address="http://127.0.0.1:8000", proxy=("configurable-http-proxy",)):
    """Set everything but the authenticator: JupyterHub's own is PAM, by which accounts log in with their passwords."""
    from drupe.hosted import pages, spawner

    run, state = pathlib.Path(run), pathlib.Path(state)
    make_folders(run, state)
    c.JupyterHub.bind_url = address
    c.JupyterHub.hub_bind_url = c.JupyterHub.hub_connect_url = unix(run / "hub.sock")
    c.JupyterHub.hub_socket_mode = 0o666  # servers of all users ask it who is who; it asks for their tokens
    c.JupyterHub.db_url = f"sqlite:///{state / 'jupyterhub.sqlite'}"
    c.JupyterHub.cookie_secret_file = str(state / "cookie_secret")
    c.ConfigurableHTTPProxy.api_url = unix(run / "private" / "proxy.sock")
    c.ConfigurableHTTPProxy.command = [sys.executable, "-m", "drupe.hosted.proxy", *proxy]
    c.ConfigurableHTTPProxy.pid_file = str(run / "private" / "proxy.pid")
    c.JupyterHub.spawner_class = spawner.LeasingSpawner
    c.LeasingSpawner.socket_dir = str(run / "servers")
    c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
    c.Spawner.args = ["--MultiKernelManager.default_kernel_name=drupe",
                      "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    c.Spawner.default_url = "/lab"
    c.Spawner.start_timeout = 120
    c.Spawner.http_timeout = 60
    c.Spawner.poll_interval = 10
    pages.configure(c)
