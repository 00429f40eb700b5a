"""JupyterHub's hooks: a server starts with a lease, which ends with it.

    c.Spawner.pre_spawn_hook = drupe.hosted.pre_spawn_hook
    c.Spawner.post_stop_hook = drupe.hosted.post_stop_hook
    c.DockerSpawner.extra_host_config = drupe.hosted.docker_host_config

The profile is spawner.user_options["profile"], or the broker's first one. While a user waits, and until the server runs,
the hub holds the lease; then the server's process, so that the lease ends with it whatever becomes of the hub.
They work with any spawner that tells a process (`pid`) or a container (`object_id`); others keep the lease with the hub.
"""
import asyncio
import logging
import os
import threading

from drupe.hosted.client import Broker, BrokerError

WAIT = 600.0  # seconds for a device; DRUPE_LEASE_WAIT sets another limit
STEP = 0.05  # seconds between two looks whether the server has a process
log = logging.getLogger("drupe.hosted")


class Session:
    """What a spawner has of the broker: `position` while it waits, `lease` afterwards."""

    def __init__(self):
        self.broker = Broker()
        self.lease = self.position = self.adopting = None
        self.names = ()  # of the variables that were set


def wait_limit():
    text = os.environ.get("DRUPE_LEASE_WAIT", "")
    try:
        return float(text) if text else WAIT
    except ValueError:
        raise BrokerError(f"DRUPE_LEASE_WAIT is a number of seconds, not {text!r}", "invalid") from None


async def in_thread(function, *arguments):
    """Run what blocks in a thread of its own: a pool would fill with users who wait for devices."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def settle(result, error):
        if not done.done():
            done.set_exception(error) if error else done.set_result(result)

    def work():
        try:
            outcome = function(*arguments), None
        except Exception as error:
            outcome = None, error
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            pass  # the loop has ended meanwhile, and with it who asked

    threading.Thread(target=work, name="drupe-broker", daemon=True).start()
    return await done


def chosen_profile(options):
    """The profile of a spawner's options; a form gives a list of one."""
    profile = (options or {}).get("profile")
    if isinstance(profile, (list, tuple)):
        profile = profile[0] if profile else None
    return profile or None


async def pre_spawn_hook(spawner):
    """Lease what the user chose, wait for it if need be, and set the environment of the server."""
    await post_stop_hook(spawner)  # what a start that failed has left
    session = spawner.drupe = Session()
    try:
        await in_thread(_lease, session, spawner.user.name, chosen_profile(spawner.user_options), spawner.name)
    except BrokerError as error:
        session.broker.close()
        spawner.drupe = None
        raise _refused(error) from error
    except asyncio.CancelledError:
        session.broker.close()  # a place in the queue goes with its connection
        raise
    session.position = None
    spawner.environment = {**spawner.environment, **session.lease.env}
    session.names = tuple(session.lease.env)
    spawner.log.info("%s has lease %s: %s", spawner.user.name, session.lease.id, session.lease.title)
    session.adopting = asyncio.create_task(_adopt(spawner, session))


def _lease(session, user, profile, server):
    def waiting(position):
        session.position = position

    if profile is None:
        profiles = session.broker.profiles()
        if not profiles:
            raise BrokerError("the broker has no profiles: name some in its configuration", "no-profile")
        profile = profiles[0]["name"]
    session.lease = session.broker.lease(profile, user=user, label=f"server {server}".strip(), wait=True,
                                         timeout=wait_limit(), waiting=waiting)


def _refused(error):
    """What JupyterHub shows to the user as it is."""
    try:
        from jupyterhub.spawner import SpawnException
    except ImportError:  # before JupyterHub 6
        shown = RuntimeError(str(error))
        shown.jupyterhub_message = str(error)
        return shown
    return SpawnException(f"No device: {error}", reason="device", status_code=503 if error.code == "timeout" else 400)


async def _adopt(spawner, session):
    """Give the lease to the server's process as soon as there is one."""
    while spawner.drupe is session:
        pid = await server_pid(spawner)
        if pid:
            try:
                await in_thread(session.broker.adopt, session.lease.id, pid)
                spawner.log.info("process %d holds lease %s", pid, session.lease.id)
            except BrokerError as error:
                spawner.log.warning("process %d cannot hold lease %s: %s", pid, session.lease.id, error)
            return
        await asyncio.sleep(STEP)


async def server_pid(spawner):
    """The number of the server's process, or 0 when there is none yet."""
    if getattr(spawner, "object_id", "") and hasattr(spawner, "docker"):
        container = await spawner.docker("inspect_container", spawner.object_id)
        return container.get("State", {}).get("Pid", 0)
    return getattr(spawner, "pid", 0)


async def post_stop_hook(spawner):
    """Return the lease, and take its variables out of the spawner's environment."""
    session = getattr(spawner, "drupe", None)
    if session is None:
        return
    spawner.drupe = None
    spawner.environment = {name: value for name, value in spawner.environment.items() if name not in session.names}
    try:
        if session.lease is not None:
            await in_thread(session.broker.give_back, session.lease.id)
    except BrokerError as error:
        log.debug("lease %s was not returned: %s", session.lease.id, error)  # it has ended with its process
    finally:
        session.broker.close()


def docker_host_config(spawner):
    """The device files, processors and NVIDIA GPUs of the lease, as Docker wants them.

    A container has no other devices then: what was leased is enforced, not only told by masks. A number of processors
    (DRUPE_HOST_THREADS) becomes a limit of the container.
    """
    session = getattr(spawner, "drupe", None)
    if session is None or session.lease is None:
        return {}
    config, env = {}, session.lease.env
    nodes = sorted({node for device in session.lease.devices for node in device.get("nodes") or []})
    nvidia = [node for node in nodes if node.startswith("/dev/nvidia")]
    others = [node for node in nodes if node not in nvidia]
    if others:
        config["devices"] = [f"{node}:{node}:rw" for node in others]
    if nvidia:
        config["device_requests"] = [{"Driver": "nvidia", "Capabilities": [["gpu"]],
                                      "DeviceIDs": env.get("CUDA_VISIBLE_DEVICES", "").split(",")}]
    if env.get("DRUPE_HOST_THREADS", "").isdigit():
        config["nano_cpus"] = int(env["DRUPE_HOST_THREADS"]) * 1_000_000_000
    return config
