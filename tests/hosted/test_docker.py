"""What a container gets of a lease: the device files and processors that were leased, and nothing else."""
import types

import pytest

hosted = pytest.importorskip("drupe.hosted", reason="this build has no hub")
hub = pytest.importorskip("drupe.hosted.hub", reason="this build has no hub")


def config(devices, **environment):
    lease = types.SimpleNamespace(devices=devices, env=environment)
    return hosted.docker_host_config(types.SimpleNamespace(drupe=types.SimpleNamespace(lease=lease)))


def test_a_container_gets_the_devices_of_its_lease_only():
    gpu = {"id": "gpu0", "nodes": ["/dev/dri/renderD128", "/dev/dri/card0"]}
    found = config([gpu, {"id": "cpu", "nodes": []}], DRUPE_HOST_THREADS="2")
    assert sorted(found["devices"]) == ["/dev/dri/card0:/dev/dri/card0:rw",
                                        "/dev/dri/renderD128:/dev/dri/renderD128:rw"]
    assert found["cpu_quota"] == 2 * found["cpu_period"]
    assert "device_requests" not in found and "privileged" not in found


def test_nvidia_gpus_are_asked_of_its_runtime():
    found = config([{"id": "gpu1", "nodes": ["/dev/nvidia1"]}], CUDA_VISIBLE_DEVICES="GPU-7")
    assert found["device_requests"][0]["DeviceIDs"] == ["GPU-7"]
    assert not found.get("devices")


def test_the_containers_user_may_open_the_device_files(tmp_path):
    node = tmp_path / "renderD128"
    node.touch()
    found = config([{"id": "gpu-0", "nodes": [str(node)]}])
    assert found["group_add"] == [node.stat().st_gid]


def test_a_hub_in_a_container_sees_the_hosts_device_files_elsewhere(tmp_path, monkeypatch):
    node = tmp_path / "dev/drupe-test-9"
    node.parent.mkdir()
    node.touch()
    devices = [{"id": "gpu-0", "nodes": ["/dev/drupe-test-9"]}]
    assert "group_add" not in config(devices)
    monkeypatch.setenv("DRUPE_HOST_ROOT", str(tmp_path))
    assert config(devices) == {"devices": ["/dev/drupe-test-9:/dev/drupe-test-9:rw"],
                               "group_add": [node.stat().st_gid]}


def test_settings_of_an_administrator_stay():
    lease = types.SimpleNamespace(devices=[{"id": "gpu0", "nodes": ["/dev/dri/card7"]}],
                                  env={"DRUPE_HOST_THREADS": "1"})
    spawner = types.SimpleNamespace(drupe=types.SimpleNamespace(lease=lease))
    given = {"cap_drop": ["ALL"], "devices": ["/dev/fuse"], "cpu_quota": 900_000}
    assert hub.with_lease(given, spawner) == {
        "cap_drop": ["ALL"], "devices": ["/dev/fuse", "/dev/dri/card7:/dev/dri/card7:rw"], "cpu_period": 100_000,
        "cpu_quota": 100_000}
    assert given["devices"] == ["/dev/fuse"]


def test_without_a_lease_there_are_no_devices():
    assert hosted.docker_host_config(types.SimpleNamespace(drupe=None)) == {}
