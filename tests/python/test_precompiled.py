"""CPUs behind OpenCL compute arrays by the precompiled kernels: nothing is compiled, results are those of `host`."""
import json
import os

import numpy as np
import pytest

import drupe
import drupe.array as da

BUILTIN = 1  # a bit of Device.languages
STATEMENTS = """x + y; x - y; x * y; x / y; x ** 2; -x; abs(x); x > y; x == y; x < 0.5; da.sqrt(x); da.exp(x)
da.log(x); da.sin(x); da.cos(x); da.tanh(x); da.expm1(x); da.log1p(x); da.atan2(x, y); da.hypot(x, y); x ** y
da.maximum(x, y); da.where(x > y, x, y); da.clip(x, 0.1, 0.9); da.floor(x); da.isnan(x); x.sum(); x.mean(); x.max()
x.min(); x.std(); da.argmax(x); da.cumulative_sum(x); da.sort(x); da.argsort(x); da.unique_values(i); x[i > 500]; x[i]
x[::2] + 1; x.reshape(10, -1).sum(axis=0); x.reshape(10, -1).T.copy(); da.concat([x, y]); da.stack([x, y])
x.astype('float32'); x.astype('complex64') * 2; i // 3; i % 7; x @ y; da.outer(x[:9], y[:9]); x.all(); da.any(i > 3)
x // y; x % y; da.astype(x, 'float16') + 1; da.linspace(0, 1, 9, device=x.device); da.arange(9, device=x.device)"""
STATEMENTS = STATEMENTS.replace("\n", "; ").split("; ")

FIRST = """
    import json, os
    import drupe, drupe.array as da, drupe.program
    device = drupe.Device("opencl:cpu")
    names = {"da": da}
    for name, values in json.loads(os.environ["VALUES"]).items():
        names[name] = da.asarray(values, device=device)
    for statement in json.loads(os.environ["STATEMENTS"]):
        result = eval(statement, names)
        result.queue.wait()
    info = drupe.program.cache_info()
    programs = [name for _, folders, _ in os.walk(os.environ["POCL_CACHE_DIR"]) for name in folders if len(name) > 8]
    print(info["hits"] + info["misses"], len(programs))
"""


def operands(device):
    rng = np.random.default_rng(3)
    values = {"x": rng.random(1000), "y": rng.random(1000), "i": rng.integers(0, 1000, 1000)}
    return {name: da.asarray(value, device=device) for name, value in values.items()}


def test_the_device_takes_them(opencl):
    assert bool(opencl.languages & BUILTIN) == (opencl.device_type == drupe.enums.device_type.cpu)


def test_no_first_use_builds_a_program(opencl, fresh, tmp_path):
    if not opencl.languages & BUILTIN:
        pytest.skip("this driver calls no functions")
    values = {name: array.tolist() for name, array in operands("host").items()}
    environment = {"VALUES": json.dumps(values), "STATEMENTS": json.dumps(STATEMENTS), "DRUPE_CACHE": "1",
                   "DRUPE_CACHE_DIR": str(tmp_path / "ours"), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    result = fresh(FIRST, **environment)
    assert result.stdout == "0 0\n", result.stdout + result.stderr
    # The same with kernels in OpenCL C is seen by both counts.
    result = fresh(FIRST, **{**environment, "STATEMENTS": '["x + y"]', "DRUPE_FORM": "cpu"})
    looked, programs = map(int, result.stdout.split())
    assert looked == 1 and (programs > 0 or "DRUPE_TEST_DRIVER" in os.environ), result.stderr


@pytest.mark.parametrize("statement", STATEMENTS)
def test_results_are_those_of_host(opencl, statement):
    if not opencl.languages & BUILTIN:
        pytest.skip("this driver calls no functions")
    ours, theirs = (eval(statement, {"da": da, **operands(device)}) for device in ("host", opencl))
    assert theirs.device == opencl and theirs.dtype == ours.dtype
    if "sum" in statement or "mean" in statement or "std" in statement or "@" in statement:
        # The devices divide the elements among other numbers of work-items.
        np.testing.assert_allclose(theirs.asnumpy(), ours.asnumpy(), rtol=1e-13)
    else:
        np.testing.assert_array_equal(theirs.asnumpy(), ours.asnumpy())
