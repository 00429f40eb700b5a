"""What the tests of raw kernels and of kernels of expressions share: devices that compile, comparisons with NumPy."""
import numpy as np
import pytest

import drupe


@pytest.fixture
def target(device):
    """A device on which programs are built, the default one of the test."""
    if not device.can_compile("c" if device.filter_string.startswith("host") else "opencl"):
        pytest.skip("nothing compiles for this device")
    with drupe.device(device):
        yield device


@pytest.fixture(params=["host", "opencl:cpu", "opencl:gpu", "opencl:cpu as a GPU"])
def formed(request, monkeypatch):
    """The devices, and CPUs behind OpenCL once more with work divided as on GPUs."""
    name, _, gpu = request.param.partition(" as a ")
    try:
        device = drupe.Device(name)
    except drupe.DeviceNotFoundError as error:
        pytest.skip(str(error))
    if not device.can_compile("c" if name == "host" else "opencl"):
        pytest.skip("nothing compiles for this device")
    if gpu:
        monkeypatch.setenv("DRUPE_FORM", "gpu")
    with drupe.device(device):
        yield device


def same(x, expected):
    got, expected = x.asnumpy(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)


def close(x, expected, rtol=1e-5):
    got, expected = x.asnumpy(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=rtol)


def numbers(dtype, *shape, seed=3):
    return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)
