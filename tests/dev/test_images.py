"""docker/: what is true of each Dockerfile, and of the files beside them."""
import ast
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
DOCKER = ROOT / "docker"
HADOLINT = pathlib.Path(sys.executable).parent / "hadolint"
FILES = sorted(DOCKER.glob("Dockerfile*"))


def instructions(text):
    """(word, argument) of each instruction, its lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines()
    return [(word.upper(), rest.strip()) for word, _, rest in (line.strip().partition(" ") for line in joined)]


def mistakes(text):
    """What hadolint does not look for: versions behind an ARG, and a user that exists wherever the image runs."""
    found, arguments, user = [], {}, None
    for word, argument in instructions(text):
        if word == "ARG" and "=" in argument:
            name, _, value = argument.partition("=")
            arguments[name] = value
        if word == "FROM":
            image = re.sub(r"\$\{(\w+)\}", lambda match: arguments.get(match[1], ""), argument.split()[0])
            if not re.search(r".[:@]", image) or image.endswith(":latest"):
                found.append(f"{argument}: which version?")
        if word == "USER":
            user = argument
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", user or ""):
        found.append(f"the last USER is {user}, which is no number of a user without privileges")
    if not text.startswith("#"):
        found.append("a comment at the top says what it is, and how it is built")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_dockerfiles(path):
    assert mistakes(path.read_text()) == []


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is packaged for x86-64 only")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_hadolint(path):
    done = subprocess.run([HADOLINT, "--no-color", "--config", DOCKER / "hadolint.yaml", path], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is packaged for x86-64 only")
def test_hadolint_finds_mistakes(tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM debian\nRUN pip install a\n")
    done = subprocess.run([HADOLINT, "--config", DOCKER / "hadolint.yaml", tmp_path / "Dockerfile"], timeout=60,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "DL3006" in done.stdout and "DL3013" in done.stdout


def test_there_are_dockerfiles():
    assert {"Dockerfile", "Dockerfile.hub", "Dockerfile.intel", "Dockerfile.nvidia"} == {path.name for path in FILES}


GOOD = "# One.\nARG BASE=debian:bookworm-slim\nFROM ${BASE}\nRUN pip install a==1\nUSER 1000:1000\n"


@pytest.mark.parametrize("line, other, problem", [
    ("debian:bookworm-slim", "debian", "which version"), ("debian:bookworm-slim", "debian:latest", "which version"),
    ("USER 1000:1000", "USER root", "root"), ("USER 1000:1000", "", "None"), ("USER 1000:1000", "USER 0:0", "0:0"),
    ("# One.\n", "", "comment")])
def test_mistakes_are_found(line, other, problem):
    assert mistakes(GOOD) == []
    found = mistakes(GOOD.replace(line, other))
    assert len(found) == 1 and problem in found[0]


def test_packages_are_pinned():
    """Those of requirements*.txt, in the versions that ./dev uses as well."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    ours = dict(one.split(";")[0].split("==") for extra in ("run", "clients") for one in extras[extra])
    found = {}
    for path in DOCKER.glob("requirements*.txt"):
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                assert re.fullmatch(r"[a-z0-9.-]+==[0-9][\w.]*", line), f"{path.name}: {line}"
                name, _, version = line.partition("==")
                assert found.setdefault(name, version) == version
    assert {name: version for name, version in found.items() if ours.get(name, version) != version} == {}
    assert set(ours) - set(found) <= {"jupyter-resource-usage", "notebook"}


def test_what_dockerfiles_copy_exists():
    left_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for path in FILES:
        for word, argument in instructions(path.read_text()):
            if word != "COPY" or "--from" in argument:
                continue
            for source in argument.split()[:-1]:
                assert (ROOT / source).exists(), f"{path.name}: {source}"
                assert source == "." or any(pathlib.PurePath(source).match(one) or source.startswith(one + "/")
                                            for one in left_in), f"{path.name}: .dockerignore leaves {source} out"


def test_compose():
    """No service is privileged, only the loopback interface listens, and images have versions."""
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    assert set(services) == {"broker", "hub"}
    for name, service in services.items():
        assert not service.get("privileged"), name
        assert re.search(r":\d+\.\d+\.\d+$", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith("./") or source == "./broker.json", f"{name}: {source} is made by README.md"
    assert services["broker"]["cap_drop"] == ["ALL"] and services["broker"]["network_mode"] == "none"
    compile((DOCKER / "jupyterhub_config.py").read_text(), "jupyterhub_config.py", "exec")


def test_containers_of_one_user_do_not_reach_the_broker():
    """The broker knows people by their user ids, and all these containers have the same one."""
    assert re.search(r"^USER 1000:1000$", (DOCKER / "Dockerfile").read_text(), re.M)
    calls = ast.parse((DOCKER / "jupyterhub_config.py").read_text()).body
    values = {ast.unparse(one.targets[0]): ast.unparse(one.value) for one in calls if isinstance(one, ast.Assign)}
    assert values["c.DockerSpawner.volumes"] == "{'drupe-home-{username}': '/home/drupe'}"
    assert "drupe.sock" not in str(values) and "/run/drupe" not in str(values)
    assert "'no-new-privileges'" in values["c.DockerSpawner.extra_host_config"]
    assert "'cap_drop': ['ALL']" in values["c.DockerSpawner.extra_host_config"]
    assert values["c.JupyterHub.spawner_class"] == "drupe.hosted.LeasingDockerSpawner"
