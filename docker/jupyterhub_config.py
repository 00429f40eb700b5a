"""The hub of docker/compose.yaml: each server is a container, which has the devices of its lease and no others."""
import os

import drupe.hosted

c = get_config()  # noqa: F821, which JupyterHub defines

c.JupyterHub.bind_url = "http://0.0.0.0:8000"  # of the container; compose.yaml says where the host listens
c.JupyterHub.hub_ip = "0.0.0.0"  # containers of the network drupe-hub reach it, and nobody else
c.JupyterHub.hub_connect_ip = "hub"
c.JupyterHub.db_url = "sqlite:////srv/drupe-hub/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = "/srv/drupe-hub/cookie_secret"

# Put the authenticator of your house here. This one lets in whoever knows one password, under any name: for trials.
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = os.environ["DRUPE_HUB_PASSWORD"]
c.Authenticator.allow_all = True
c.Authenticator.admin_users = set()

c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
c.DockerSpawner.image = os.environ.get("DRUPE_IMAGE", "drupe:0.1.0")
c.DockerSpawner.cmd = ["jupyterhub-singleuser"]
c.DockerSpawner.network_name = "drupe-hub"
c.DockerSpawner.use_internal_ip = True
c.DockerSpawner.remove = True
c.DockerSpawner.notebook_dir = "/home/drupe"
# Without the broker's socket: all containers run as user 1000, whom the broker would take for one person.
c.DockerSpawner.volumes = {"drupe-home-{username}": "/home/drupe"}
c.DockerSpawner.extra_create_kwargs = {"security_opt": ["no-new-privileges"], "cap_drop": ["ALL"]}
c.DockerSpawner.mem_limit = os.environ.get("DRUPE_MEMORY", "8G")
c.Spawner.pre_spawn_hook = drupe.hosted.pre_spawn_hook
c.Spawner.post_stop_hook = drupe.hosted.post_stop_hook
c.DockerSpawner.extra_host_config = drupe.hosted.docker_host_config
