"""A spawner whose servers are containers of Docker: each has the devices of its lease, and no others.

    c.JupyterHub.spawner_class = drupe.hosted.LeasingDockerSpawner
"""
from dockerspawner import DockerSpawner

from drupe.hosted import hub, spawner


class LeasingDockerSpawner(spawner.Leasing, DockerSpawner):
    """DockerSpawner with a page of profiles. What the lease gives is added to `extra_host_config`."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        given = self.extra_host_config
        if given is not hub.docker_host_config:
            self.extra_host_config = lambda one: hub.with_lease(given(one) if callable(given) else given, one)
