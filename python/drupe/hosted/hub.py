"""JupyterHub's hooks: a server starts with a lease, which ends with it.

    c.Spawner.pre_spawn_hook = drupe.hosted.pre_spawn_hook
    c.Spawner.post_stop_hook = drupe.hosted.post_stop_hook
    c.DockerSpawner.extra_host_config = drupe.hosted.docker_host_config

The profile is spawner.user_options["profile"], or the broker's first one. While a user waits, and until the server
runs, the hub holds the lease; then the server's process, so that the lease ends with it whatever becomes of the hub.
They work with any spawner that tells a process (`pid`) or a container (`object_id`). With others the hub keeps the
lease, until the server stops.
"""
import asyncio
import os

from drupe.hosted.client import BrokerError
from drupe.hosted.session import Session, in_thread

WAIT = 600.0  # seconds for a device; DRUPE_LEASE_WAIT sets another limit
CPU_PERIOD = 100_000  # microseconds, in which a container may use its quota of processor time
STEP = 0.05  # seconds between two looks whether the server has a process
_AWAY = ("closed", "timeout", "unreachable")  # codes of a broker that may be back soon


def wait_limit():
    text = os.environ.get("DRUPE_LEASE_WAIT", "")
    try:
        return float(text) if text else WAIT
    except ValueError:
        raise BrokerError(f"DRUPE_LEASE_WAIT is a number of seconds, not {text!r}", "invalid") from None


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
    session.names = ()  # of the variables that are set
    try:
        profile = chosen_profile(spawner.user_options) or await in_thread(_first_profile, session.broker)
        lease = await session.ask(profile=profile, user=spawner.user.name, label=_label(spawner.name), wait=True,
                                  timeout=wait_limit())
    except BrokerError as error:
        await post_stop_hook(spawner)
        raise _refused(error) from error
    spawner.environment = {**spawner.environment, **lease.env}
    session.names = tuple(lease.env)
    spawner.log.info("%s has lease %s: %s", spawner.user.name, lease.id, lease.title)
    session.adopting = asyncio.create_task(_adopt(spawner, session))


def _label(name):
    """What the broker shows: a line of 128 bytes at most, while users name their servers as they like."""
    text = "".join(one if one.isprintable() else "?" for one in f"server {name}".strip())
    return text.encode()[:128].decode(errors="ignore")


def _first_profile(broker):
    profiles = broker.profiles()
    if not profiles:
        raise BrokerError("the broker has no profiles: name some in its configuration", "no-profile")
    return profiles[0]["name"]


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
    told = None
    while spawner.drupe is session:
        try:
            pid = await server_pid(spawner)
            if pid and spawner.drupe is session:
                await session.adopt(pid)
                spawner.log.info("process %d holds the lease of %s", pid, spawner.user.name)
                return
        except Exception as error:
            if str(error) != told:
                spawner.log.warning("the server of %s does not hold its lease yet: %s", spawner.user.name, error)
            told = str(error)
            # While the hub keeps the lease, it would end with the hub and not with the server: so it tries again when
            # Docker or the broker may be back.
            if isinstance(error, BrokerError) and error.code not in _AWAY:
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
    error = await session.end()
    if error is not None:
        spawner.log.debug("the lease of %s was not returned: %s", spawner.user.name, error)


def docker_host_config(spawner):
    """The device files, processors and NVIDIA GPUs of the lease, as Docker wants them.

    A container has no other devices then: what was leased is enforced, not only told by masks. A number of processors
    (DRUPE_HOST_THREADS) becomes a limit of the container. A hub that is a container itself sees the host's device files
    in a folder, which DRUPE_HOST_ROOT names.
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
        # The container's user is no member of the groups that may open them.
        root = os.environ.get("DRUPE_HOST_ROOT", "")
        groups = sorted({os.stat(root + node).st_gid for node in others if os.path.exists(root + node)})
        config.update({"group_add": groups} if groups else {})
    if nvidia:
        config["device_requests"] = [{"Driver": "nvidia", "Capabilities": [["gpu"]],
                                      "DeviceIDs": env.get("CUDA_VISIBLE_DEVICES", "").split(",")}]
    if env.get("DRUPE_HOST_THREADS", "").isdigit():
        # Not `nano_cpus`, which Docker refuses beside the period that DockerSpawner sets.
        config.update(cpu_period=CPU_PERIOD, cpu_quota=int(env["DRUPE_HOST_THREADS"]) * CPU_PERIOD)
    return config


def with_lease(given, spawner):
    """An administrator's own settings for a container, and what the lease gives. Lists are joined; where both set the
    same number, the lease's counts."""
    joined = dict(given)
    for name, value in docker_host_config(spawner).items():
        joined[name] = [*joined.get(name, []), *value] if isinstance(value, list) else value
    return joined
