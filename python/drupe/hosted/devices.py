"""python -m drupe.hosted devices: this machine's devices, as drupe-broker's configuration wants them.

One entry is one piece of hardware, however many drivers offer it: what is leased once must not be leased again
under another name. The processor is one entry, whose parts are its threads on `host` and its sub-devices of OpenCL.
Every mask is tried in a new process before it is printed, because drivers differ in which variables they follow.
"""
import json
import os
import pathlib
import subprocess
import sys

from . import mig

MOST_PARTS = 256  # that the broker accepts
SECONDS = 60
IDLE = 1200  # seconds after which a kernel without work gives its device to those who wait
MASKS = ("DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR", "CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "DRUPE_HOST_THREADS")
_ASK = """
import json, drupe
print(json.dumps([{"backend": str(one.backend), "type": str(one.device_type), "name": one.name, "vendor": one.vendor,
                   "uuid": one.uuid, "pci": one.pci_address, "units": one.max_compute_units,
                   "memory": one.global_mem_size} for one in drupe.devices()]))
"""


def seen(**masks):
    """What a new process sees under these masks: a dict for each device. Raises RuntimeError when it sees nothing."""
    env = {name: value for name, value in os.environ.items() if name not in MASKS}
    done = subprocess.run([sys.executable, "-c", _ASK], env={**env, **masks}, capture_output=True, text=True,
                          timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    found = json.loads(done.stdout)
    numbers = {}
    for one in found:
        one["number"] = numbers[one["backend"]] = numbers.get(one["backend"], -1) + 1
        one["uuid"] = plain(one["uuid"])
    return found


def plain(uuid):
    """A UUID as its hexadecimal digits with dashes, or None."""
    digits = "".join(str(uuid or "").split("-")).lower()
    if len(digits) != 32 or not digits.strip("0"):
        return None
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def hardware(found):
    """The devices by the hardware behind them: all of the processor together, others by PCI address or UUID."""
    groups = {}
    for one in found:
        key = "cpu" if one["type"] == "cpu" else one["pci"] or one["uuid"] or f"{one['backend']}:{one['number']}"
        groups.setdefault(key, []).append(one)
    return groups


def same(found, wanted):
    """Whether these are the wanted devices and no others; the numbers may have changed."""
    def key(one):
        return str((one["backend"], one["type"], one["name"], one["pci"], one["uuid"]))
    return sorted(map(key, found)) == sorted(map(key, wanted))


def selector(group, name="number"):
    return ";".join(f"{one['backend']}:{one[name]}" for one in group)


def candidates(group, found):
    """Sets of masks for the devices of one piece of hardware, the best first. UUIDs come before numbers, which are
    others where the driver hides devices: the masks of two leased GPUs are joined to those of both."""
    one = group[0]
    masks = {"DRUPE_DEVICES": selector(group)}
    named = {"DRUPE_DEVICES": selector(group, "uuid")} if all(member["uuid"] for member in group) else masks
    others = [other for other in found if other["type"] == "gpu" and other["vendor"] == one["vendor"]]
    left = [other for other in found if other in group or other not in others]
    shifted = ";".join(f"{member['backend']}:{[x for x in left if x['backend'] == member['backend']].index(member)}"
                       for member in group)
    if _is_nvidias(one):
        name = "GPU-" + one["uuid"] if one["uuid"] else str(_order(one, others))
        yield {"CUDA_VISIBLE_DEVICES": name, **named}
        yield {"CUDA_VISIBLE_DEVICES": name, "DRUPE_DEVICES": shifted}
        yield {"CUDA_VISIBLE_DEVICES": name, **masks}
    elif "intel" in one["vendor"].lower() and one["type"] == "gpu":
        level_zero = {"ZE_AFFINITY_MASK": str(_order(one, others)), "ONEAPI_DEVICE_SELECTOR": "level_zero:*"}
        yield {**level_zero, **named}
        yield {**level_zero, "DRUPE_DEVICES": shifted}
        yield {**level_zero, **masks}
    yield named
    yield masks


def _order(one, others):
    """The place among the maker's GPUs, each counted once."""
    pieces = list(dict.fromkeys(other["pci"] or other["uuid"] or other["number"] for other in others))
    return pieces.index(one["pci"] or one["uuid"] or one["number"])


def nodes(one, root="/"):
    """The device files behind a GPU: those that a container or a user needs to use it."""
    root, pci = pathlib.Path(root), (one["pci"] or "").lower()
    paths = []
    if not pci:
        return paths
    info = root / "proc/driver/nvidia/gpus" / pci / "information"
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("Device Minor:"):
                paths.append(f"/dev/nvidia{line.split(':')[1].strip()}")
        shared = [f"/dev/{name}" for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")]
    else:
        paths += [f"/dev/dri/{node.name}" for node in sorted((root / "sys/bus/pci/devices" / pci / "drm").glob("*"))
                  if node.name.startswith(("renderD", "card"))]
        shared = ["/dev/kfd"] if "amd" in one["vendor"].lower() or "advanced micro" in one["vendor"].lower() else []
    return [*paths, *(name for name in shared if (root / name[1:]).exists())]


def processor(group, ask):
    """The entry of the processor. Each part is a thread of `host` and, where the driver divides it so, a sub-device."""
    host = next((one for one in group if one["backend"] == "host"), None)
    parts = min((host or group[0])["units"], MOST_PARTS)
    others = [one for one in group if one is not host]
    env, each = {"DRUPE_DEVICES": selector(others)}, []
    if host:
        env = {"DRUPE_DEVICES": ";".join(filter(None, ("host:*", selector(others)))), "DRUPE_HOST_THREADS": "{parts}"}
    divided = [one for one in others if _divides(one, parts, ask)]
    if divided or host:
        each = [{"DRUPE_DEVICES": ";".join([*(["host:*"] if host else []), *(f"{one['backend']}:{one['number']}.{part}"
                                                                          for one in divided)])}
                for part in range(parts)]
    entry = {"id": "cpu", "kind": "cpu", "name": (host or group[0])["name"], "parts": parts if each else 1,
             "memory": (host or group[0])["memory"], "env": env}
    return {**entry, "part_env": each} if parts > 1 and each else {**entry, "parts": 1}


def _divides(one, parts, ask):
    try:
        return len(ask(DRUPE_DEVICES=f"{one['backend']}:{one['number']}.*")) == parts
    except RuntimeError:
        return False


def entries(ask=seen, root="/", complain=lambda line: None, listing=mig.listing):
    """The configuration's `devices`, checked; what cannot be leased alone is left out with a complaint. listing() tells
    of GPUs that are divided into MIG instances, each of which is a device."""
    found, made = ask(), []
    units = mig.units(listing()) if any(map(_is_nvidias, found)) else []
    groups = {key: group for key, group in hardware(found).items() if not (units and _is_nvidias(group[0]))}
    chosen = _masks([group for key, group in groups.items() if key != "cpu"], found, ask)
    for key, group in groups.items():
        if key == "cpu":
            made.append(processor(group, ask))
            continue
        _add(made, group[0], chosen.pop(0), root, complain)
    for name, uuid in units:
        try:
            shown = [one for one in ask(CUDA_VISIBLE_DEVICES=uuid) if _is_nvidias(one)]
        except RuntimeError:
            shown = []
        masks = {"CUDA_VISIBLE_DEVICES": uuid, "DRUPE_DEVICES": selector(shown)}
        alone = len(hardware(shown)) == 1 and _only(masks, shown, ask)
        _add(made, {**shown[0], "name": name} if alone else {"name": name}, masks if alone else None, root, complain)
    return made


def _is_nvidias(one):
    return one["type"] == "gpu" and "nvidia" in one["vendor"].lower()


def _add(made, one, masks, root, complain):
    if masks is None:
        complain(f"{one['name']} is left out: no mask makes it the only one visible")
        return
    kind = one["type"] if one["type"] == "gpu" else "accelerator"
    number = sum(other["kind"] == kind for other in made)
    made.append({"id": f"{kind}{number}", "kind": kind, "name": one["name"], "parts": 1, "memory": one["memory"],
                 "env": masks, "nodes": nodes(one, root)})


def _masks(groups, found, ask):
    """The masks of each piece of hardware, or None. Those of all together must show all of them."""
    chosen = [next((masks for masks in candidates(group, found) if _only(masks, group, ask)), None)
              for group in groups]
    shown = [at for at, masks in enumerate(chosen) if masks is not None]
    if len(shown) < 2 or _only(joined([chosen[at] for at in shown]), sum((groups[at] for at in shown), []), ask):
        return chosen
    plain_masks = [{"DRUPE_DEVICES": selector(group)} for group in groups]
    return [masks if _only(masks, group, ask) else None for masks, group in zip(plain_masks, groups)]


def joined(masks):
    """The environment of a lease of several devices, as the broker makes it."""
    found = {}
    for one in masks:
        for name, value in one.items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return {name: (";" if name in ("DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR") else ",").join(values)
            for name, values in found.items()}


def _only(masks, group, ask):
    try:
        return same(ask(**masks), group)
    except RuntimeError:
        return False


def profiles(devices):
    """What people usually want, also of what this machine lacks: the page of profiles then says so."""
    threads = max((one["parts"] for one in devices if one["kind"] == "cpu"), default=1)
    half = max(1, threads // 2)
    made = {"cpu-part": {"title": f"{half} of the processor's {threads} threads", "kind": "cpu", "parts": half},
            "sub-device": {"title": "One sub-device: a single thread", "kind": "cpu", "parts": 1},
            "one-gpu": {"title": "One GPU", "kind": "gpu", "devices": 1},
            "two-gpus": {"title": "Two GPUs", "kind": "gpu", "devices": 2}}
    return made


def configuration(devices):
    """Of a broker for these devices, to begin with."""
    return {"devices": devices, "profiles": profiles(devices), "idle": IDLE}


def main(argv):
    import argparse

    parser = argparse.ArgumentParser(prog="python -m drupe.hosted devices", description=__doc__.split("\n\n")[0])
    parser.add_argument("--profiles", action="store_true", help="a whole configuration, with usual profiles")
    options = parser.parse_args(argv)

    def complain(line):
        sys.stderr.write(f"drupe: {line}\n")

    try:
        devices = entries(complain=complain)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        complain(f"the devices cannot be listed: {error}")
        return 2
    print(json.dumps(configuration(devices) if options.profiles else {"devices": devices}, indent=1))
    return 0
