"""python -m drupe doctor, over folders that stand for machines."""
import json
import os

import pytest

from drupe import doctor

DEBIAN = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"
CPU_DRIVER = {"/etc/OpenCL/vendors/pocl.icd": "libpocl.so.2\n", "/usr/lib/libpocl.so.2": ""}
LOADER = {"/usr/lib/x86_64-linux-gnu/libOpenCL.so.1": ""}
GOOD = {"/etc/os-release": DEBIAN, **LOADER, **CPU_DRIVER}


def card(vendor, slot="0000:01:00.0", kind="0x030000"):
    folder = f"/sys/bus/pci/devices/{slot}"
    return {f"{folder}/class": kind + "\n", f"{folder}/vendor": vendor + "\n"}


NVIDIA, AMD, INTEL = card("0x10de"), card("0x1002"), card("0x8086", "0000:00:02.0", "0x038000")
NVIDIA_NODES = {"/dev/nvidiactl": "", "/dev/nvidia0": ""}
NVIDIA_DRIVER = {"/etc/OpenCL/vendors/nvidia.icd": "libnvidia-opencl.so.1", "/usr/lib64/libnvidia-opencl.so.1": ""}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Make a machine of files and variables; the problems that the doctor finds there."""
    for name in ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES", "DRUPE_OPENCL_LIBRARY", "DRUPE_DEVICES",
                 "ONEAPI_DEVICE_SELECTOR", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DRUPE_TEST_ROOT", str(tmp_path))

    def make(files, **variables):
        for path, text in files.items():
            file = tmp_path / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        report = doctor.examine(ask_engine=False)
        return [f"{text} -> {advice}" for mark, text, advice in report.lines if mark == "BAD"]

    return make


def test_a_good_machine(machine):
    assert machine(GOOD) == []
    assert machine({**NVIDIA, **NVIDIA_NODES, **NVIDIA_DRIVER}) == []


@pytest.mark.parametrize("system, package", [
    (DEBIAN, "apt-get install ocl-icd-libopencl1"),
    ("ID=ubuntu\nID_LIKE=debian\n", "apt-get install ocl-icd-libopencl1"),
    ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install ocl-icd"), ("ID=arch\n", "pacman -S ocl-icd"),
    ("ID=opensuse-leap\nID_LIKE=\"suse opensuse\"\n", "zypper install libOpenCL1"),
    ("ID=alpine\n", "apk add opencl-icd-loader"), ("ID=nixos\n", "install the package for nixos"),
    ("", "an unknown system")])
def test_no_loader(machine, system, package):
    (problem,) = machine({"/etc/os-release": system, **CPU_DRIVER})
    assert "libOpenCL.so.1" in problem and package in problem


def test_no_vendor_folder(machine):
    (problem,) = machine({"/etc/os-release": DEBIAN, **LOADER})
    assert "there is no folder /etc/OpenCL/vendors" in problem and "apt-get install pocl-opencl-icd" in problem


def test_empty_vendor_folder(machine):
    (problem,) = machine({"/etc/os-release": DEBIAN, **LOADER, "/etc/OpenCL/vendors/readme": ""})
    assert "names no OpenCL driver" in problem and "pocl-opencl-icd" in problem


def test_a_file_that_names_a_missing_library(machine):
    (problem,) = machine({**GOOD, "/etc/OpenCL/vendors/nvidia.icd": "libnvidia-opencl.so.1"})
    assert "nvidia.icd" in problem and "libnvidia-opencl.so.1" in problem and "nvidia-opencl-icd" in problem
    (problem,) = machine({"/etc/OpenCL/vendors/nvidia.icd": "/opt/strange.so"})
    assert "/opt/strange.so" in problem and "remove /etc/OpenCL/vendors/nvidia.icd" in problem


def test_an_empty_file(machine):
    (problem,) = machine({**GOOD, "/etc/OpenCL/vendors/odd.icd": "\n"})
    assert "odd.icd is empty" in problem


@pytest.mark.parametrize("name", ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"])
def test_wrong_variables(machine, name):
    for value in ("/nowhere", "/nowhere/x.icd"):
        (problem,) = machine(GOOD, **{name: value})
        assert f"{name}={value}" in problem and f"unset {name}" in problem
    (problem,) = machine({"/empty/readme": ""}, **{name: "/empty"})
    assert name in problem and "/empty" in problem
    assert machine({}, **{name: "/etc/OpenCL/vendors/pocl.icd"}) == []


def test_other_variables(machine):
    assert machine(GOOD, OCL_ICD_FILENAMES="libpocl.so.2") == []
    (problem,) = machine({}, DRUPE_OPENCL_LIBRARY="/opt/libCL.so")
    assert "DRUPE_OPENCL_LIBRARY" in problem and "unset" in problem
    assert machine({"/opt/libCL.so": ""}) == []


@pytest.mark.parametrize("gpu, nodes, flag", [(NVIDIA, "/dev/nvidiactl", "--gpus all"), (AMD, "/dev/kfd", "/dev/kfd"),
                                              (INTEL, "/dev/dri/renderD*", "--device /dev/dri")])
def test_no_device_nodes(machine, gpu, nodes, flag):
    problem = machine({**GOOD, **gpu})[0]
    assert nodes in problem and "kernel driver is not loaded" in problem
    problem = machine({"/.dockerenv": ""})[0]
    assert "container" in problem and flag in problem


def test_container_by_control_group(machine):
    problem = machine({**GOOD, **NVIDIA, "/proc/1/cgroup": "0::/kubepods/pod1"})[0]
    assert "container" in problem


@pytest.mark.parametrize("gpu, nodes", [(NVIDIA, list(NVIDIA_NODES)), (INTEL, ["/dev/dri/renderD128"])])
def test_no_permission(machine, monkeypatch, gpu, nodes):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "/dev/" not in str(path) and access(path, mode))
    problem = machine({**GOOD, **gpu, **dict.fromkeys(nodes, "")})[0]
    assert nodes[0] in problem and "usermod -aG render,video" in problem


def test_no_permission_for_the_files(machine, monkeypatch):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith(".icd") and access(path, mode))
    (problem,) = machine(GOOD)
    assert "chmod a+r /etc/OpenCL/vendors/pocl.icd" in problem
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("vendors") and access(path, mode))
    (problem,) = machine({})
    assert "no permission to read /etc/OpenCL/vendors" in problem


@pytest.mark.parametrize("gpu, nodes, package", [(NVIDIA, NVIDIA_NODES, "nvidia-opencl-icd"),
                                                 (AMD, {"/dev/kfd": "", "/dev/dri/renderD128": ""}, "mesa-opencl-icd"),
                                                 (INTEL, {"/dev/dri/renderD128": ""}, "intel-opencl-icd")])
def test_a_gpu_without_its_driver(machine, gpu, nodes, package):
    (problem,) = machine({**GOOD, **gpu, **nodes})
    assert "has no OpenCL driver" in problem and "apt-get install " + package in problem


def test_wsl(machine):
    problems = machine({**GOOD, **NVIDIA, "/dev/dxg": "", **NVIDIA_DRIVER})
    assert problems == []


def test_conda(machine, monkeypatch):
    monkeypatch.setattr("sys.prefix", "/opt/conda")
    (problem,) = machine({"/etc/os-release": DEBIAN, **LOADER}, CONDA_PREFIX="/opt/conda")
    assert "conda install -c conda-forge pocl" in problem
    assert machine({"/opt/conda/etc/OpenCL/vendors/pocl.icd": "libpocl.so.2", "/usr/lib/libpocl.so.2": ""}) == []


def test_limits_are_told(machine):
    machine(GOOD, DRUPE_DEVICES="host:*")
    lines = doctor.examine(ask_engine=False).lines
    assert any("DRUPE_DEVICES=host:*" in text and "unset" in advice for _mark, text, advice in lines)


def command(fresh, *arguments, **variables):
    return fresh(f"import runpy, sys; sys.argv = ['drupe', *{arguments!r}]; runpy.run_module('drupe', "
                 "run_name='__main__', alter_sys=True)", **variables)


def test_doctor_asks_the_engine(fresh):
    result = command(fresh, "doctor")
    assert "device host:cpu:0" in result.stdout and result.stderr == "", result.stderr
    assert result.returncode == (1 if "BAD" in result.stdout else 0)
    result = command(fresh, "doctor", DRUPE_OPENCL_LIBRARY="/nowhere/libOpenCL.so")
    assert result.returncode == 1 and "BAD" in result.stdout and "/nowhere/libOpenCL.so" in result.stdout
    result = command(fresh, "doctor", DRUPE_DEVICES="frog:*")
    assert result.returncode == 1 and "'frog' is not a backend" in result.stdout
    assert command(fresh, "doctor", "now").returncode == 2
    result = command(fresh, "doctor", DRUPE_DEVICES="host:7")
    assert result.returncode == 1 and "BAD  no device at all" in result.stdout
    assert "unset DRUPE_DEVICES" in result.stdout


def test_a_driver_that_crashes_is_told(monkeypatch):
    output, failed = doctor.run_child(["import os; os.abort()"])
    assert failed and "signal 6" in output
    monkeypatch.setattr(doctor, "CHILD_SECONDS", 0.2)
    output, failed = doctor.run_child(["import time; time.sleep(60)"])
    assert failed and "no answer" in output


def test_devices_command(fresh, device):
    result = command(fresh, "devices")
    assert device.filter_string in result.stdout and device.name in result.stdout and result.returncode == 0
    result = command(fresh, "devices", "--long", device.filter_string)
    assert "max_compute_units" in result.stdout and "free_memory" in result.stdout
    result = command(fresh, "devices", "--json")
    assert device.filter_string in [one["filter_string"] for one in json.loads(result.stdout)]
    assert device.platform.name in command(fresh, "devices", "-p").stdout
    result = command(fresh, "devices", "frog")
    assert result.returncode == 2 and result.stderr.startswith("drupe: 'frog'") and "Traceback" not in result.stderr


def test_devices_command_alone(fresh):
    result = command(fresh, "devices", DRUPE_DEVICES="host:*")
    assert "host:cpu:0" in result.stdout and "Only the built-in device" in result.stdout
    result = command(fresh, "devices", "custom", DRUPE_DEVICES="host:*")
    assert "No device matches 'custom'. There are: host:cpu:0." in result.stdout
    assert "There is none." in command(fresh, "devices", DRUPE_DEVICES="host:7").stdout


def test_it_explains_itself(fresh):
    for arguments in ((), ("--help",)):
        result = command(fresh, *arguments)
        assert all(word in result.stdout for word in ("devices", "doctor", "install", "DRUPE_DEVICES"))
    assert command(fresh, "--include-dir").stdout.strip().endswith("include")
    assert command(fresh, "--includes").stdout.startswith("-I")


def test_the_quick_compiler(monkeypatch):
    report = doctor.Report()
    monkeypatch.setenv("DRUPE_QUICK", "0")
    doctor.check_quick(report)
    monkeypatch.delenv("DRUPE_QUICK")
    doctor.check_quick(report)
    (_note, told, advice), (mark, text, _) = report.lines
    assert "DRUPE_QUICK is 0" in told and "C compiler" in advice and report.problems == 0
    assert mark == "ok" and text.endswith(" ms") or "no quick compiler" in text
