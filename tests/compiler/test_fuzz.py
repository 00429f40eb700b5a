"""A short run of the fuzzer of kernels, ./dev soak kernels: random functions against plain Python, with fixed seeds."""
import re

import kernels
import kernels_apart
import numpy as np
import pytest
from kernels_program import Program
from kernels_run import Target, defined

import drupe
from drupe.compiler import operators

# Tier or device, functions, seed, kind.
RUNS = [("quick", 2000, 20261126, "exact"), ("quick", 300, 7, "rough"), ("quick", 200, 9, "groups"),
        ("best", 50, 300, "exact"), ("best", 25, 300, "groups"), ("opencl", 50, 500, "exact"),
        ("opencl", 25, 7, "groups")]


def target_of(name):
    if np.lib.NumpyVersion(np.__version__) < "2.3.0":
        pytest.skip("NumPy's numbers have other types there")
    try:
        made = Target("opencl:cpu" if name == "opencl" else "host", name)
        made.run(defined("def k(item, x):\n    x[0] = 1\n")["k"], [np.zeros(1)])
    except (drupe.DeviceNotFoundError, drupe.UnsupportedError) as error:
        pytest.skip(str(error))
    return made


@pytest.mark.parametrize("name, count, seed, kind", RUNS)
def test_no_difference(name, count, seed, kind):
    done, found = kernels.fuzz(target_of(name), count, seed, kind, most=1)
    assert not found, found[0]
    assert done == count


def test_a_seed_makes_one_program():
    assert Program(5).text() == Program(5).text() != Program(6).text()
    compile(Program(5).text(), "<program>", "exec")


def test_what_is_wrong_is_found_and_made_small(monkeypatch):
    """A compiler that takes ^ for |."""
    right = operators.binary
    monkeypatch.setattr(operators, "binary", lambda low, sign, a, b: right(low, "|" if sign == "^" else sign, a, b))
    done, found = kernels.fuzz(target_of("quick"), 200, 1, most=1)
    assert len(found) == 1
    test = found[0].partition("\n\n")[2]
    assert len(re.findall("[\\^]|bitwise_xor", test)) == 1 and test.startswith("def test_f")
    assert len(test.partition("'''")[2].partition("'''")[0].strip().split("\n")) <= 6
    compile(test, "<test>", "exec")


def test_a_crash_is_told_with_the_program(monkeypatch):
    """The process that runs programs has ended; what is told names the seed."""
    monkeypatch.setattr(kernels_apart, "ends_badly", lambda program, functions, arguments: any(
        one.name == "f3" for one in functions))
    monkeypatch.setattr(kernels_apart, "shrink", lambda function, fails: fails(function))
    told = kernels_apart.told(Program(1, 6), "it ends by SIGSEGV", [])
    assert "program 1, f3: it ends by SIGSEGV" in told and "def test_f3_of_program_1(target):" in told


@pytest.mark.parametrize("arguments, code, text", [
    (["--show", "--seed", "3"], 0, "def k(item, "),
    (["--here", "--programs", "20", "--seed", "3"], 0, "at 3"),
    (["--programs", "60", "--seed", "3", "--kind", "rough"], 0, "60 functions in")])
def test_the_command(arguments, code, text, capfd):
    target_of("quick")
    assert kernels.main([*arguments, "--tier", "quick"]) == code
    assert text in capfd.readouterr().out
