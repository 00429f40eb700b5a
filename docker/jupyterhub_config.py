"""The hub of docker/compose.yaml: each server is a container, which has the devices of its lease and no others."""
import os

import drupe.hosted
from drupe.hosted import pages

c = get_config()  # noqa: F821, which JupyterHub defines

c.JupyterHub.bind_url = "http://0.0.0.0:8000"  # of the container; compose.yaml says where the host listens
c.JupyterHub.hub_ip = "0.0.0.0"  # containers of the network drupe-hub reach it, and nobody else
c.JupyterHub.hub_connect_ip = "hub"
c.JupyterHub.db_url = "sqlite:////srv/drupe-hub/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = "/srv/drupe-hub/cookie_secret"

# Put the authenticator of your house here. This one lets in whoever knows one password, under any name: for trials.
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ["DRUPE_HUB_PASSWORD"]
c.Authenticator.allow_all = True
c.Authenticator.admin_users = set()
c.JupyterHub.shutdown_on_logout = True  # who has logged out needs no device any more

c.JupyterHub.spawner_class = drupe.hosted.LeasingDockerSpawner  # it adds what the lease gives
c.DockerSpawner.image = os.environ.get("DRUPE_IMAGE", "drupe:0.1.0")
c.DockerSpawner.cmd = ["jupyterhub-singleuser"]
c.DockerSpawner.args = ["--MultiKernelManager.default_kernel_name=drupe",
                        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
c.DockerSpawner.default_url = "/lab"
c.DockerSpawner.network_name = "drupe-hub"
c.DockerSpawner.use_internal_ip = True
c.DockerSpawner.remove = True
c.DockerSpawner.poll_interval = 10  # seconds between two looks whether a container is still there
c.DockerSpawner.notebook_dir = "/home/drupe"
# Without the broker's socket: all containers run as user 1000, whom the broker would take for one person.
c.DockerSpawner.volumes = {"drupe-home-{username}": "/home/drupe"}
c.DockerSpawner.extra_host_config = {"security_opt": ["no-new-privileges"], "cap_drop": ["ALL"], "pids_limit": 4096}
c.DockerSpawner.mem_limit = os.environ.get("DRUPE_MEMORY", "8G")
pages.configure(c)  # the page "Devices"
