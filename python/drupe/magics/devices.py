"""%devices: what this machine has."""
import json
import os
import subprocess
import sys

from drupe._units import size
from drupe.magics import render
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError, find, one_line
from drupe.magics.device import SELECTOR

# Variables that hide devices: the engine's own, then those that drivers follow.
MASKS = ("DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
         "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "OCL_ICD_FILENAMES", "OCL_ICD_VENDORS",
         "POCL_DEVICES")
_SECONDS = 60
_COMPILED = ((2, "OpenCL C"), (16, "C"))  # bits of Device.languages
_ASK = """
import json, drupe
print(json.dumps([
    {"filter": one.filter_string, "name": one.name, "units": one.max_compute_units, "memory": one.global_mem_size,
     "same": [str(one.backend), str(one.device_type), one.name, one.uuid, one.pci_address]}
    for one in drupe.devices()]))
"""


class Devices(Magic):
    """The devices of this machine: filter, units, memory, name.

    * is the default device. Memory is what this kernel uses of it; a part of a device has none of its own: n/a. With
    --all, devices that a variable of the environment hides are listed too, with its name."""

    name = "devices"
    options = (
        SELECTOR,
        Option("-v", "--verbose", action="store_true", help="driver, platform, clock and what it computes, too"),
        Option("-a", "--all", action="store_true",
               help="hidden devices, too: asks another process without the variables"),
        Option("-l", "--live", action="store_true", help="a dashboard that moves, as %dashboard"),
    )
    examples = (("%devices", "all devices"), ("%devices opencl -o found", "those of OpenCL; found.devices is a list"))

    def line(self, options):
        import drupe

        if options.live and not (options.quiet or options.json):
            dashboard = find(self.shell, "dashboard")
            if dashboard is None:
                raise UsageError("%devices -l needs %dashboard, which this version does not have")
            return dashboard("")
        try:
            found = drupe.devices(options.device)
            everything = drupe.devices() if options.device else found
        except drupe.DeviceError as error:
            raise UsageError(one_line(error)) from None
        masks = [name for name in MASKS if os.environ.get(name, "").strip()]
        hidden = _hidden(masks) if options.all else []
        alone = not any(str(one.backend) != "host" for one in everything)
        advice = _advice() if alone and not masks else []
        return Listing(found, options.verbose, masks, hidden, advice, not found and options.device)


def _ask(environment):
    """The devices that a process with this environment finds, or [] when it fails."""
    try:
        child = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, errors="replace",
                               timeout=_SECONDS, check=False, env=environment, stdin=subprocess.DEVNULL)
        return json.loads(child.stdout.strip().splitlines()[-1]) if child.returncode == 0 else []
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return []


def _without(found, others):
    """Those of `found` that are not among `others`."""
    left = [one["same"] for one in others]
    result = []
    for one in found:
        if one["same"] in left:
            left.remove(one["same"])
        else:
            result.append(one)
    return result


def _hidden(masks):
    """The devices that the variables hide, with the variable that does it."""
    if not masks:
        return []
    bare = {name: value for name, value in os.environ.items() if name not in masks}
    everything = _ask(bare)
    hidden = []
    for mask in masks:
        gone = _without(everything, _ask({**bare, mask: os.environ[mask]}))
        hidden += [{**one, "mask": mask} for one in gone if one["same"] not in [other["same"] for other in hidden]]
    return hidden


def _mask_text(mask):
    job = next((name for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID") if os.environ.get(name)), None)
    ours = mask in ("DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR") or job is None
    return "%s=%s%s" % (mask, os.environ.get(mask, ""), "" if ours else " (set in job %s)" % os.environ[job])


def _advice():
    """What `python -m drupe doctor` finds wrong, as (problem, what to do)."""
    from drupe import doctor

    lines = [(text, advised) for mark, text, advised in doctor.examine(ask_engine=False).lines if mark == "BAD"]
    return lines or [("no driver offers another device", "python -m drupe doctor lists what was checked")]


def _use(device):
    """(bytes in use, bytes there) of a whole device, None of a part."""
    from drupe import memory

    if device.parent_device is not None or "MIG" in device.name.split():
        return None
    pool = memory.pool(device)
    return pool.used, min(pool.limit or device.global_mem_size, device.global_mem_size)


def _facts(device, default):
    import drupe

    known = {"filter": device.filter_string, "default": device == default, "name": device.name,
             "backend": str(device.backend), "type": str(device.device_type)}
    try:
        return {**known, "lost": False, **_figures(device)}
    except drupe.DeviceLostError:  # its driver is not asked any more
        return {**known, "lost": True}


def _figures(device):
    use = _use(device)
    return {
        "units": device.max_compute_units, "memory": device.global_mem_size,
        "used": use and use[0], "limit": use and use[1], "part": use is None,
        "driver": device.driver_version, "platform": device.platform_name, "version": device.version,
        "clock_mhz": device.max_clock_frequency, "fp64": device.has_aspect_fp64, "fp16": device.has_aspect_fp16,
        "compiles": [word for bit, word in _COMPILED if device.languages & bit], "pci_address": device.pci_address,
    }


class Listing(Result):
    """Devices as a table; `devices` has the objects, `hidden` what the environment hides."""

    def __init__(self, devices, verbose=False, masks=(), hidden=(), advice=(), missing=None):
        import drupe

        self.devices = devices
        self.hidden = list(hidden)
        default = drupe.Device()
        self._facts = [_facts(one, default) for one in devices]
        self._verbose = verbose
        self._masks = list(masks)
        self._advice = list(advice)
        self._missing = missing

    def _rows(self):
        rows = []
        for one in self._facts:
            title = one["filter"] + ("*" if one["default"] else "")
            if one["lost"]:
                rows.append((title, "n/a", "lost until a restart", one["name"]))
                continue
            memory = "n/a" if one["part"] else render.meter(
                one["used"], one["limit"], "%s of %s" % (size(one["used"]), size(one["limit"])), 6)
            rows.append((title, one["units"], memory, one["name"]))
        for one in self.hidden:
            rows.append(("(%s)" % one["filter"], one["units"], size(one["memory"]), "hidden by %s: %s" % (
                _mask_text(one["mask"]), one["name"])))
        return rows

    def _details(self):
        """What -v adds, (filter, text) of each device."""
        for one in self._facts:
            if one["lost"]:
                continue
            clock = "%d MHz" % one["clock_mhz"] if one["clock_mhz"] else None
            computes = " ".join(word for word in ("fp64", "fp16") if one[word]) or None
            compiler = "compiles " + " and ".join(one["compiles"]) if one["compiles"] else "precompiled kernels"
            facts = (one["platform"], "driver " + (one["driver"] or "?"), one["version"], clock, computes, compiler,
                     one["pci_address"])
            yield one["filter"], ", ".join(filter(None, facts))
        if self._facts:
            from drupe.array._providers import summary

            yield "linear algebra on CPUs", summary()

    def _notes(self):
        notes = []
        if self._missing:
            notes.append("nothing matches %r; %%devices lists all" % self._missing)
        if self._masks and not self.hidden:
            notes.append("%s may hide devices: %%devices --all shows them" % ", ".join(map(_mask_text, self._masks)))
        for problem, advised in self._advice:
            notes.append("only the built-in device is here: %s%s" % (problem, " -> " + advised if advised else ""))
        return notes

    _TITLES = ("device", "units", "memory in use", "name")

    def text(self, columns=WIDTH):
        import textwrap

        lines = [render.table_text(self._TITLES, self._rows(), columns, right=(1,), flexible=3)]
        if self._verbose:
            for name, text in self._details():
                lines += textwrap.wrap("%s: %s" % (name, text), columns, subsequent_indent="    ")
        for note in self._notes():
            lines += textwrap.wrap(note, columns, subsequent_indent="    ")
        return "\n".join(lines)

    def html(self):
        faint = range(len(self._facts), len(self._facts) + len(self.hidden))
        parts = [render.table_html(self._TITLES, self._rows(), right=(1,), faint=faint, flexible=3)]
        if self._verbose:
            parts += [render.note_html("%s: %s" % one) for one in self._details()]
        return render.element("div", "".join(parts + [render.note_html(one) for one in self._notes()]))

    def data(self):
        return self._facts + [{"filter": one["filter"], "name": one["name"], "units": one["units"],
                               "memory": one["memory"], "hidden_by": one["mask"]} for one in self.hidden]
