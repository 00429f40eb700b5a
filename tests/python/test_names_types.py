"""Functions with NumPy's names on every data type: the calls of test_names_numpy.py, with arrays of other types."""
import re
import warnings

import numpy as np
import pytest
import test_names_numpy as names

import drupe
import drupe.array as da

OTHERS = ("bool", "int8", "uint8", "int16", "uint16", "uint32", "uint64", "float16", "float32", "complex64",
          "complex128")
KEPT = "MNESZI"  # arrays that keep their types


def cast(name, a, dtype):
    if name in KEPT:
        return a
    return (np.abs(a) if dtype[0] == "u" else a).astype(dtype)


def close(got, expected, dtype, call):
    if isinstance(expected, (list, tuple)):
        for one, other in zip(got, expected):
            close(one, other, dtype, call)
        return
    got, expected = got.asnumpy() if isinstance(got, da.Array) else np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, call
    # NumPy computes small integers in small floats, and numbers in a list are of its integer type.
    small = dtype in ("bool", "int8", "uint8", "int16", "uint16") and got.dtype == "float64"
    weak = re.match(r"polyval\(\[|rint\(", call)
    assert got.dtype == expected.dtype or small and expected.dtype.kind == "f" or weak, call
    loose = {"float16": 1e-2, "float32": 1e-5, "complex64": 1e-5}.get(dtype, 1e-12)
    loose = max(loose, 1e-2 if expected.dtype == "float16" else 1e-5 if expected.dtype == "float32" else 0)
    np.testing.assert_allclose(got, expected, rtol=loose, atol=loose, err_msg=call)


@pytest.mark.parametrize("dtype", OTHERS)
def test_every_type(dtype):
    """On the host device alone: kernels for each type have their own tests."""
    host = {name: cast(name, a, dtype) for name, a in names.HOST.items()}
    arrays = {name: da.asarray(a, device="host") for name, a in host.items()}
    ours = {name: getattr(da, name) for name in da.__all__}
    met, refused = 0, []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for call in names.calls(names.CALLS) + names.calls(names.METHODS):
            if call.startswith("unwrap") and np.dtype(dtype).kind in "biu":
                continue  # of which NumPy's differences wrap
            try:
                expected = names.NUMPYS_OWN[call](host) if call in names.NUMPYS_OWN else \
                    eval(call, {**vars(np), "np": np, **host})
            except (TypeError, ValueError, OverflowError, IndexError):
                continue  # what NumPy refuses
            try:
                got = eval(call, {**ours, "np": np, **arrays})
            except (drupe.DeviceError, TypeError) as error:
                refused.append((call, error))
                continue
            close(got, expected, dtype, call)
            met += 1
    assert met > 250
    # Complex numbers have no order here, and bools are not rounded.
    order = r"max|min|ptp|clip|rint|round|around|fix|fmod|gcd|lcm|sort|arg|median|heaviside|maximum|minimum"
    unexpected = [(call, error) for call, error in refused
                  if not (dtype in ("bool", "complex64", "complex128") and re.search(order, call))]
    assert not unexpected
