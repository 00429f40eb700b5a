"""python -m drupe doctor: why devices are not found, and what to install.

It looks at what a driver needs, from the hardware up to the loader, without opening a driver in this process; only
the last step asks the engine, in a child that may crash. DRUPE_TEST_ROOT names a folder that stands for / in tests."""
import glob
import os
import subprocess
import sys

LOADER = "libOpenCL.so.1"
VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
TITLES = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "cpu": "this processor"}
NODES = {"nvidia": ("/dev/nvidiactl", "/dev/nvidia[0-9]*"), "amd": ("/dev/kfd", "/dev/dri/renderD*"),
         "intel": ("/dev/dri/renderD*",)}
FOLDERS = ("/usr/local/lib", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu",
           "/usr/lib/wsl/lib")
CHILD_SECONDS = 120

# What to install, by the distribution's ID or the one that it is like.
PACKAGES = {
    "debian": ("apt-get install", {"loader": "ocl-icd-libopencl1", "cpu": "pocl-opencl-icd",
                                   "intel": "intel-opencl-icd", "amd": "mesa-opencl-icd",
                                   "nvidia": "nvidia-opencl-icd"}),
    "ubuntu": ("apt-get install", {"loader": "ocl-icd-libopencl1", "cpu": "pocl-opencl-icd",
                                   "intel": "intel-opencl-icd", "amd": "mesa-opencl-icd",
                                   "nvidia": "libnvidia-compute-<version of your driver>"}),
    "fedora": ("dnf install", {"loader": "ocl-icd", "cpu": "pocl", "intel": "intel-compute-runtime",
                               "amd": "rocm-opencl", "nvidia": "xorg-x11-drv-nvidia-cuda"}),
    "arch": ("pacman -S", {"loader": "ocl-icd", "cpu": "pocl", "intel": "intel-compute-runtime",
                           "amd": "rocm-opencl-runtime", "nvidia": "opencl-nvidia"}),
    "suse": ("zypper install", {"loader": "libOpenCL1", "cpu": "pocl", "intel": "intel-opencl", "amd": "rocm-opencl",
                                "nvidia": "nvidia-compute-G06"}),
    "alpine": ("apk add", {"loader": "opencl-icd-loader", "cpu": "pocl", "intel": "intel-compute-runtime",
                           "amd": "mesa-rusticl", "nvidia": "nvidia's driver, which needs glibc"}),
    "conda": ("conda install -c conda-forge", {"loader": "ocl-icd", "cpu": "pocl", "intel": "intel-compute-runtime",
                                               "amd": "ocl-icd-system", "nvidia": "ocl-icd-system"}),
}
ALIASES = {"rhel": "fedora", "centos": "fedora", "rocky": "fedora", "almalinux": "fedora", "opensuse": "suse",
           "opensuse-leap": "suse", "opensuse-tumbleweed": "suse", "sles": "suse", "linuxmint": "ubuntu",
           "manjaro": "arch", "raspbian": "debian"}


class Report:
    """What was found: lines (mark, text, advice)."""

    def __init__(self):
        self.lines = []

    def good(self, text):
        self.lines.append(("ok", text, ""))

    def note(self, text, advice=""):
        self.lines.append(("note", text, advice))

    def bad(self, text, advice):
        self.lines.append(("BAD", text, advice))

    @property
    def problems(self):
        return sum(mark == "BAD" for mark, _text, _advice in self.lines)


# --- the machine ------------------------------------------------------------------------------------------

def at(path):
    """The path below the folder that stands for /."""
    return os.environ.get("DRUPE_TEST_ROOT", "") + path


def found(pattern):
    return sorted(path[len(at("")):] for path in glob.glob(at(pattern)))


def read(path):
    try:
        with open(at(path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def distribution():
    """(the distribution's family or None, its name)."""
    fields = dict(line.split("=", 1) for line in read("/etc/os-release").splitlines() if "=" in line)
    fields = {key: value.strip("\"'") for key, value in fields.items()}
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    family = next((ALIASES.get(name, name) for name in names if ALIASES.get(name, name) in PACKAGES), None)
    return family, fields.get("PRETTY_NAME") or fields.get("ID") or "an unknown system"


def advice(what):
    """How to install the loader or the driver for a kind of device here."""
    family, name = distribution()
    prefix = os.environ.get("CONDA_PREFIX")
    if prefix and sys.prefix == prefix:
        family = "conda"
    if family is None:
        every = ", ".join(f"{key}: {packages[what]}" for key, (_install, packages) in PACKAGES.items())
        return f"install the package for {name}; elsewhere it is called {every}"
    install, packages = PACKAGES[family]
    return f"{install} {packages[what]}"


def in_container():
    cgroup = read("/proc/1/cgroup")
    return any(found(path) for path in ("/.dockerenv", "/run/.containerenv")) or any(
        word in cgroup for word in ("docker", "containerd", "kubepods", "lxc"))


def graphics_cards():
    """The makers of the machine's display and accelerator cards on the PCI bus."""
    makers = []
    for path in found("/sys/bus/pci/devices/*/class"):
        if read(path).strip()[:4] in ("0x03", "0x12"):
            maker = VENDORS.get(read(path[:-len("class")] + "vendor").strip())
            makers += [maker] if maker and maker not in makers else []
    if not makers and found("/dev/nvidia[0-9]*"):
        makers.append("nvidia")
    return makers


# --- the steps --------------------------------------------------------------------------------------------

def limit():
    """The variable that says which devices there are, or None."""
    return next((name for name in ("DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR") if os.environ.get(name, "").strip()),
                None)


def check_limits(report):
    name = limit()
    if name:
        report.note(f"{name}={os.environ[name].strip()} limits the devices", f"unset {name} to see all of them")


def check_kernel(report):
    """The variables that only the kernel reads; those of the engine are told where it lists devices."""
    from drupe.jupyter import features

    for line in features.problems():
        report.bad(line, f"unset {line.partition('=')[0]}, or correct it")


def check_nodes(report, maker):
    nodes = [node for pattern in NODES[maker] for node in found(pattern)]
    if not nodes and found("/dev/dxg"):
        return report.good(f"{TITLES[maker]} GPU through WSL's /dev/dxg")
    if not nodes:
        text = f"there is a GPU of {TITLES[maker]}, but none of its device nodes ({', '.join(NODES[maker])})"
        if in_container():
            give = "--gpus all (with the NVIDIA container toolkit)" if maker == "nvidia" else \
                "--device /dev/dri" + (" --device /dev/kfd" if maker == "amd" else "")
            return report.bad(text + ": this is a container without them", f"start the container with {give}")
        return report.bad(text + ": its kernel driver is not loaded", "install the driver and restart the machine")
    shut = [node for node in nodes if not os.access(at(node), os.R_OK | os.W_OK)]
    if shut:
        return report.bad(f"no permission to use {', '.join(shut)}",
                          "join the groups of these files (sudo usermod -aG render,video $USER) and log in again")
    return report.good(f"GPU of {TITLES[maker]}: {', '.join(nodes)}")


def check_hardware(report):
    makers = graphics_cards()
    for maker in makers:
        check_nodes(report, maker)
    if not makers:
        report.note("no GPU on the PCI bus" + (" of this container" if in_container() else ""))
    return makers


def opens(library):
    """Why a library cannot be opened, or "". Tried in a child: a driver may crash, and stays loaded."""
    if os.environ.get("DRUPE_TEST_ROOT"):
        places = [library] if "/" in library else [folder + "/" + library for folder in FOLDERS]
        return "" if any(map(found, places)) else f"{library}: cannot open shared object file"
    code = "import ctypes, sys\ntry:\n    ctypes.CDLL(sys.argv[1])\nexcept OSError as error:\n    print(error)"
    return run_child([code, library])[0]


def run_child(arguments):
    """(output, failed) of Python text in a child."""
    try:
        child = subprocess.run([sys.executable, "-c", *arguments], capture_output=True, text=True, errors="replace",
                               timeout=CHILD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer for {CHILD_SECONDS} s", True
    if child.returncode:
        last = child.stderr.strip().splitlines()[-1:] or [""]
        how = f"killed by signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        return f"{how} {last[0]}".strip(), True
    return child.stdout.rstrip(), False


def check_loader(report):
    wanted = os.environ.get("DRUPE_OPENCL_LIBRARY", "").strip()
    why = opens(wanted or LOADER)
    if not why:
        report.good(f"OpenCL's loader: {wanted or LOADER}")
    elif wanted:
        report.bad(f"DRUPE_OPENCL_LIBRARY names a library that cannot be opened: {why}",
                   f"unset DRUPE_OPENCL_LIBRARY, or name a library such as {LOADER}")
    else:
        report.bad(f"OpenCL's loader is missing: {why}", advice("loader"))
    return not why


def vendor_files(report):
    """The files that register drivers; None where a variable decides otherwise."""
    if os.environ.get("OCL_ICD_FILENAMES"):
        report.note(f"OCL_ICD_FILENAMES={os.environ['OCL_ICD_FILENAMES']} names the drivers")
        return None
    name = next((name for name in ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH") if os.environ.get(name)), None)
    folder = os.environ[name] if name else "/etc/OpenCL/vendors"
    own = (os.environ.get("CONDA_PREFIX") or "") + "/etc/OpenCL/vendors"  # a loader of conda looks here
    if not name and own != folder and found(own + "/*.icd"):
        folder = own
    if name and folder.endswith(".icd"):
        if found(folder):
            return [folder]
        report.bad(f"{name}={folder} names a file that is not there", f"unset {name}")
        return []
    if name and not os.path.isdir(at(folder)):
        if "/" not in folder:
            report.note(f"{name}={folder} names one driver")
            return None
        report.bad(f"{name}={folder} is neither a folder nor a file of a driver", f"unset {name}")
        return []
    if os.path.isdir(at(folder)) and not os.access(at(folder), os.R_OK | os.X_OK):
        report.bad(f"no permission to read {folder}", f"sudo chmod a+rx {folder}")
        return []
    files = found(folder + "/*.icd")
    if not files:
        where = f"the folder {folder}" if os.path.isdir(at(folder)) else f"there is no folder {folder}: it"
        report.bad(f"{where} names no OpenCL driver" + (f" ({name})" if name else ""),
                   f"{advice('cpu')}, a driver for the processor" + (f", or unset {name}" if name else ""))
    return files


def owner(library):
    """The maker whose driver a library is, by its name."""
    for word, maker in (("nvidia", "nvidia"), ("amdocl", "amd"), ("rusticl", "amd"), ("mesa", "amd"),
                        ("igdrcl", "intel"), ("intelocl", "cpu"), ("pocl", "cpu")):
        if word in library.lower():
            return maker
    return None


def check_drivers(report):
    """The makers whose drivers are registered and can be opened; None: unknown."""
    files = vendor_files(report)
    if files is None:
        return None
    makers = set()
    for file in files:
        library = read(file).strip().splitlines()[:1]
        if not os.access(at(file), os.R_OK):
            report.bad(f"no permission to read {file}", f"sudo chmod a+r {file}")
        elif not library:
            report.bad(f"{file} is empty: it must name a library", f"install its package again, or remove {file}")
        else:
            why = opens(library[0])
            maker = owner(library[0])
            if why:
                mend = advice(maker) if maker else "install its package again"
                report.bad(f"{file} names a library that cannot be opened: {why}", f"{mend}, or remove {file}")
            else:
                report.good(f"driver {library[0]} ({file})")
                makers.add(maker)
    return makers


def check_match(report, cards, drivers):
    """Each GPU needs the driver of its maker."""
    for maker in cards:
        if drivers is not None and maker not in drivers:
            report.bad(f"the GPU of {TITLES[maker]} has no OpenCL driver", advice(maker))


ASK = """
import drupe
for one in drupe.devices():
    print(f"{one.filter_string}\\t{one.name} ({one.platform_name})")
if not drupe.devices("opencl"):
    try:
        drupe.Device("opencl")
    except drupe.DeviceError as error:
        print(f"\\t{error}")
"""


def check_engine(report):
    """What the engine finds, asked in a child."""
    output, failed = run_child([ASK])
    if failed:
        report.bad(f"the engine does not list devices: {output}",
                   "look at the drivers above; DRUPE_DEVICES=host:* leaves them alone")
        return
    devices = 0
    for line in output.splitlines():
        filter_string, _tab, text = line.partition("\t")
        if filter_string:
            report.good(f"device {filter_string}: {text}")
            devices += 1
        else:
            name = limit()
            report.bad(f"no device of OpenCL, only `host` works: {text}" if devices else f"no device at all: {text}",
                       (f"unset {name}, " if name else "") + "mend what is BAD above, or "
                       f"{advice('cpu')}, a driver for the processor")


QUICK = """
import time, drupe
text = '''static void run(drupe_size_ begin, drupe_size_ end, drupe_size_ n, const void *const *args) {}
const drupe_entry_ drupe_entries_[] = {{"f", 0, 0, run}, {0, 0, 0, 0}};'''
try:
    for _ in range(3):
        begin = time.perf_counter()
        drupe.Program(text, "host", language="c", options="-drupe-table -drupe-quick")
    print(f"a kernel takes it {1000 * (time.perf_counter() - begin):.1f} ms")
except drupe.UnsupportedError as error:
    print(f"-{error}")
"""


def check_quick(report):
    """Whether kernels in Python begin with the quick compiler, tried in a child."""
    output, failed = run_child([QUICK])
    if failed:
        report.bad(f"the quick compiler of C does not work: {output}", "unset DRUPE_QUICK, or set DRUPE_QUICK=0")
    elif output.startswith("-"):
        report.note(output[1:], "the first call of each kernel in Python waits for the C compiler")
    else:
        report.good(f"quick compiler of C: {output}")


def examine(ask_engine=True):
    report = Report()
    report.note(f"system: {distribution()[1]}" + (", in a container" if in_container() else ""))
    check_limits(report)
    check_kernel(report)
    cards = check_hardware(report)
    if check_loader(report):
        check_match(report, cards, check_drivers(report))
    if ask_engine:
        check_engine(report)
        check_quick(report)
    return report


def main(argv):
    if argv:
        sys.stderr.write("usage: python -m drupe doctor\n")
        return 2
    report = examine()
    for mark, text, advised in report.lines:
        print(f"{mark:<5}{text}")
        if advised:
            print(f"     -> {advised}")
    count = report.problems
    print(f"\n{count} problem{'s' if count > 1 else ''}: do what the arrows say." if count else "\nNothing is wrong.")
    return 1 if count else 0
