"""Devices that a broker leases: one machine, many people.

    from drupe.hosted import Broker
    with Broker() as broker:
        lease = broker.lease(profile="one-gpu", wait=True)
        lease.env                          what makes exactly these devices visible to a process

    drupe.hosted.lease(), .extend(3600)    in a notebook: what its kernel holds, and keeping it longer
    drupe.hosted.metrics()                 what this process used of its devices, for Prometheus
    drupe.hosted.park(), .unpark()         the memory of devices waits in host memory, and comes back
    python -m drupe.hosted devices         this machine's devices, as drupe-broker's configuration wants them

Nothing here loads the engine, NumPy or JupyterHub before it is used: hubs and spawners run without devices.
docs/hosting.md takes an administrator from nothing to a running hub.
"""
import importlib

_NAMES = {"Broker": "client", "BrokerError": "client", "Lease": "client", "default_path": "client",
          "LeaseProvisioner": "provisioner", "LeasingDockerSpawner": "containers", "LeasingSpawner": "spawner",
          "docker_host_config": "hub",
          "extend": "kernel_session", "lease": "kernel_session", "LeaseEnded": "kernel_session",
          "DeviceMoved": "kernel_session", "metrics": "accounting",
          "post_stop_hook": "hub", "pre_spawn_hook": "hub",
          "Parking": "parking", "is_parked": "parking", "park": "parking", "parkable": "parking", "unpark": "parking"}
__all__ = sorted(_NAMES)


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module 'drupe.hosted' has no attribute {name!r}")
    value = getattr(importlib.import_module("drupe.hosted." + _NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))
