"""The element types, for tests: all of them on `host`, one of each kind where programs are built for every type.
A test that is marked every_type("uint8") takes these there. DRUPE_TEST_TYPES=all takes all of them everywhere."""
import os

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
TYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)
ONE_OF_EACH_KIND = ("bool", "int32", "uint16", "float16", "float32", "complex64")


def on(filter_string, else_these=ONE_OF_EACH_KIND):
    """The types that are tested on a device, by its filter."""
    everywhere = os.environ.get("DRUPE_TEST_TYPES") == "all"
    return TYPES if everywhere or filter_string.startswith("host") else else_these


def keeps(item):
    """Whether a test that is marked `every_type` runs with its parameters."""
    mark = item.get_closest_marker("every_type")
    if mark is None:
        return True
    parameters = item.callspec.params
    taken = on(parameters["device"], mark.args or ONE_OF_EACH_KIND)
    return all(value in taken for value in parameters.values() if value in TYPES)


def elements(dtype):
    """Numbers of a type whose sums and products stay exact, or wrap alike."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return st.booleans()
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return st.integers(max(-1000, limits.min), min(1000, limits.max))
    if dtype.kind == "c":
        part = elements("f%d" % (dtype.itemsize // 2))
        return st.builds(complex, part, part)
    most = 60 if dtype == np.float16 else 1000
    return st.floats(-most, most, width=8 * dtype.itemsize, allow_subnormal=False)


def arrays(dtype, shape):
    return hnp.arrays(dtype, shape, elements=elements(dtype))




def close(got, expected, ulps=0.0):
    """Equal in shape and type, and in values but for so many units of the last place; NaN beside NaN. Parts of complex
    numbers count together."""
    got, expected = got.asnumpy(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), (got.dtype, expected.dtype, got.shape)
    rtol = ulps * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=0)
