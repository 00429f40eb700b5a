"""What a call is made with: which arguments are arrays, what types the placeholders have, on which queue it all is."""
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drupe._engine import Array, Device, ExecutionPlacementError, Queue, UnsupportedError
from drupe.raw import scalars
from drupe.raw.parameters import Parameter
from drupe.raw.scalars import Scalar


def check(value: Any, parameter: Parameter) -> None:
    """TypeError for what is neither an array of drupe.array nor a number that the parameter takes."""
    name = parameter.name
    if isinstance(value, Array):
        if parameter.kind == "value":
            raise TypeError(f"{name} is a number, and an array was given; give float({name}) or int({name}), or "
                            f"declare a pointer: '{parameter.type_name} *{name}'")
        if value.dtype.name.startswith("complex"):
            raise scalars.refuse_complex(f"the array {name}")
        return
    kind = type(value).__name__
    if hasattr(value, "__array_interface__") and getattr(value, "shape", ()) != () or isinstance(value, (list, tuple)):
        what = "NumPy array" if hasattr(value, "__array_interface__") else kind
        raise TypeError(f"{name} is a {what}. Copy it to the device first: drupe.array.asarray({name})")
    if scalars.of_number(value) is None:
        wanted = "an array of drupe.array" if parameter.kind == "raw" else "an array of drupe.array or a number"
        raise TypeError(f"{name} is {wanted}, not {kind}")
    if parameter.kind == "raw" or parameter.output:
        what = "an output" if parameter.output else "a raw array"
        raise TypeError(f"{name} is {what}: give an array of drupe.array, not {kind}")


def decide(parameters: "Sequence[Parameter]", values: "Sequence[Any]", device: Device) -> "dict[str, str]":
    """The types that placeholders stand for, by the arrays first, then by numbers. `values` are None for outputs that
    the call does not give."""
    found: "dict[str, tuple[str, str]]" = {}
    for parameter, value in sorted(zip(parameters, values), key=lambda pair: pair[0].output):
        if isinstance(value, Array):
            _meet(found, parameter, value.dtype.name)
    types = {letter: dtype for letter, (dtype, _name) in found.items()}
    weak: "dict[str, list[Any]]" = {}
    for parameter, value in zip(parameters, values):
        letter = parameter.placeholder
        if letter and letter not in types and value is not None and not isinstance(value, Array):
            weak.setdefault(letter, []).append(value)
    for letter, several in weak.items():
        types[letter] = _common(several, device)
    for parameter in parameters:
        if parameter.placeholder and parameter.placeholder not in types:
            raise TypeError(f"no argument tells the type {parameter.placeholder!r} of {parameter.name}; write a type, "
                            f"such as 'float32 {parameter.name}', or give the array")
    return types


def _meet(found, parameter, dtype):
    name, letter = parameter.name, parameter.placeholder
    wanted, other = (parameter.dtype, "") if letter is None else found.setdefault(letter, (dtype, name))
    if wanted == dtype:
        return
    why = f"{other}, of the same type {letter}, is one of {wanted}" if letter else f"the kernel takes {wanted}"
    remedy = f"an output of {wanted}" if parameter.output else f"{name}.astype('{wanted}')"
    raise TypeError(f"{name} is an array of {dtype}, and {why}; give {remedy}")


def _common(values, device):
    import numpy

    name = numpy.result_type(*(scalars.of_number(value) for value in values)).name
    return "float32" if name == "float64" and not device.has_aspect_fp64 else name


def scalar_of(parameter: Parameter, types: "Mapping[str, str]", device: Device) -> Scalar:
    """The type of a parameter in this call."""
    name = types[parameter.placeholder] if parameter.placeholder else parameter.dtype or ""
    if name.startswith("complex"):
        raise scalars.refuse_complex(f"the type of {parameter.name}")
    if name == "float64" and not device.has_aspect_fp64:
        raise UnsupportedError(f"{device.name} has no float64, which {parameter.name} is; take float32")
    if name == "float16" and parameter.kind == "raw":
        raise UnsupportedError(f"{parameter.name} is a raw array of float16, whose elements C does not compute with; "
                               f"give {parameter.name}.astype('float32'), or leave out the word raw")
    return scalars.SCALARS[name]


def queue_of(names: "Iterable[str]", values: "Iterable[Any]", given: "Queue | None",
             default: "Queue | None" = None) -> Queue:
    """The queue that a call runs on: the one it names, else that of its arrays, else the default."""
    if given is not None:
        if not isinstance(given, Queue):
            raise TypeError(f"queue (or stream) is a drupe.Queue, not {type(given).__name__}")
        return given
    found = first = None
    for name, value in zip(names, values):
        if isinstance(value, Array):
            queue = value.queue
            if found is None:
                found, first = queue, name
            elif queue != found:
                raise ExecutionPlacementError(
                    f"{first} is on {found.device.filter_string} and {name} on {queue.device.filter_string}, or on "
                    "another queue of it. Bring them together with to_device(), or name the queue with queue= and "
                    "order the work with wait_for=")
    return found or default or Device().queue
