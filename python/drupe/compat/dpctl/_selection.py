"""Which devices there are for a program written for dpctl, in which order, and what a filter selects.

The order is that of dpctl: OpenCL before `host`, since OpenCL takes the programs that are written for dpctl, and GPUs
first. DRUPE_DEVICES and ONEAPI_DEVICE_SELECTOR are the engine's affair; SYCL_DEVICE_FILTER, which came before them,
is read here.
"""
import os

from drupe import _engine
from drupe.compat.dpctl._errors import SyclDeviceCreationError, raises

BACKENDS = ("cuda", "hip", "host", "level_zero", "opencl")
TYPES = ("accelerator", "cpu", "custom", "gpu")
HOST_SCORE = 1


def score(device):
    """dpctl's default_selector_score; `host`, which does not take OpenCL C, comes last."""
    return HOST_SCORE if device.backend == "host" else device.default_selector_score


def _parts(text):
    """(backend, type, number) of one filter; None for a part that it does not have."""
    found = [None, None, None]
    words = text.strip().lower().split(":")
    for word in words:
        place = 0 if word in BACKENDS else 1 if word in TYPES else 2 if word.replace(".", "", 1).isdecimal() else None
        if place is None or any(one is not None for one in found[place:]):
            raise SyclDeviceCreationError(
                f"{text!r} is no filter: it is backend:type:number, for example 'opencl:cpu:0', and each part may be "
                f"left out. Backends are {', '.join(BACKENDS)}, types are {', '.join(TYPES)}")
        found[place] = word
    return found


def _allowed(devices, text):
    """What SYCL_DEVICE_FILTER leaves: a list of backend:type:number, where * stands for any."""
    left = []
    for one in filter(None, (part.strip() for part in text.split(","))):
        words = [word for word in one.split(":") if word != "*"]
        backend, kind, number = _parts(":".join(words)) if words else (None, None, None)
        matching = _matching(devices, backend, kind)
        left += matching if number is None else matching[int(number):int(number) + 1]
    return [one for one in devices if one in left]


def _matching(devices, backend, kind):
    return [one for one in devices if backend in (None, one.backend) and kind in (None, one.device_type)]


def devices():
    """All devices, best first."""
    found = sorted(_engine.devices(), key=score, reverse=True)
    text = os.environ.get("SYCL_DEVICE_FILTER", "").strip()
    return _allowed(found, text) if text else found


def select(text):
    """The device of a filter, or of the first of several that there is."""
    found = devices()
    wanted = [_parts(one) for one in text.split(",")]
    for backend, kind, number in wanted:
        matching = _matching(found, backend, kind)
        if number and "." in number:
            return _part(matching, number)
        if int(number or 0) < len(matching):
            return matching[int(number or 0)]
    raise SyclDeviceCreationError(f"no device matches {text!r}. There are: "
                                  f"{', '.join(one.filter_string for one in found) or 'none'}")


def _part(matching, number):
    """A sub-device, as Drupe's filters name it."""
    whole, _, part = number.partition(".")
    if int(whole) < len(matching):
        with raises(SyclDeviceCreationError):
            return _engine.Device(f"{matching[int(whole)].filter_string}.{part}")
    raise SyclDeviceCreationError(f"no device has the number {whole}")


def default():
    """The device of a `with drupe.device(...)` block, else the best one."""
    chosen = _engine._chosen_device.get(None)
    if chosen is not None:
        return chosen
    found = devices()
    if not found:
        raise SyclDeviceCreationError("there is no device: DRUPE_DEVICES, ONEAPI_DEVICE_SELECTOR or SYCL_DEVICE_FILTER "
                                      "leaves none")
    return found[0]
