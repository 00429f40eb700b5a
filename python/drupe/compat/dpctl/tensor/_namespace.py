"""What dpctl.tensor tells of itself, by the array API."""
from drupe.compat.dpctl.tensor._device import Device
from drupe.compat.dpctl.tensor._usmarray import default_float

_KINDS = {"bool": "bool", "signed integer": "int8 int16 int32 int64", "unsigned integer": "uint8 uint16 uint32 uint64",
          "real floating": "float32 float64", "complex floating": "complex64 complex128"}
_GROUPS = {"integral": ("signed integer", "unsigned integer"), "numeric": tuple(_KINDS)[1:]}


class Info:
    """The inspection of dpctl.tensor."""

    def capabilities(self):
        """What depends on data or devices."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self):
        """The device of arrays that name none."""
        return Device.create_device().sycl_device

    def default_dtypes(self, *, device=None):
        """Types of arrays that name none."""
        import numpy

        real = default_float(Device.create_device(device).sycl_device._drupe)
        return {"real floating": numpy.dtype(real), "integral": numpy.dtype("int64"), "indexing": numpy.dtype("int64"),
                "complex floating": numpy.dtype("complex128" if real == "float64" else "complex64")}

    def dtypes(self, *, device=None, kind=None):
        """Types of a kind, by name."""
        import numpy

        kinds = tuple(_KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        kinds = [one for name in kinds for one in _GROUPS.get(name, (name,))]
        if not set(kinds) <= set(_KINDS):
            raise ValueError(f"a kind is one of {', '.join([*_KINDS, *_GROUPS])}, not {kind!r}")
        double = Device.create_device(device).sycl_device.has_aspect_fp64
        return {name: numpy.dtype(name) for one in kinds for name in _KINDS[one].split()
                if double or name not in ("float64", "complex128")}

    def devices(self):
        """All devices."""
        from drupe.compat.dpctl import get_devices

        return get_devices()


def __array_namespace_info__():
    """The inspection of dpctl.tensor."""
    return Info()
