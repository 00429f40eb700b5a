"""SPIR-V: compiled modules on devices, specialisation constants, damaged modules."""
import ctypes
import pathlib
import random
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

import drupe
from drupe.program import (SpecializationConstant, create_kernel_bundle_from_spirv, create_program_from_spirv,
                           parse_spirv_specializations)

FOLDER = pathlib.Path(__file__).parent.parent / "spirv"
WORDS = [int(word, 16) for word in re.findall(r"0x[0-9a-f]{8}", (FOLDER / "constants.inc").read_text())]
CONSTANTS = struct.pack(f"<{len(WORDS)}I", *WORDS)


@pytest.fixture(scope="session")
def taker(opencl):
    if not opencl.languages & 4:
        with pytest.raises(drupe.UnsupportedError) as caught:
            drupe.Program(CONSTANTS, opencl, language="spirv")
        pytest.skip(str(caught.value))
    return opencl


@pytest.fixture(scope="session")
def module(taker, tmp_path_factory):
    """kernels.cl as a SPIR-V module, made and checked with the tools of this machine."""
    for version in range(30, 13, -1):
        clang, translator = shutil.which(f"clang-{version}"), shutil.which(f"llvm-spirv-{version}")
        if clang and translator:
            break
    else:
        pytest.skip("clang and llvm-spirv of one version are not installed")
    folder = tmp_path_factory.mktemp("spirv")
    subprocess.run([clang, "-c", "-target", "spir64", "-x", "cl", "-cl-std=CL1.2", "-Xclang",
                    "-finclude-default-header", "-O2", "-emit-llvm", "-o", folder / "k.bc", FOLDER / "kernels.cl"],
                   check=True)
    subprocess.run([translator, folder / "k.bc", "-o", folder / "k.spv", "--spirv-max-version=1.2"], check=True)
    if shutil.which("spirv-val"):
        subprocess.run(["spirv-val", "--target-env", "spv1.2", folder / "k.spv"], check=True)
    return (folder / "k.spv").read_bytes()


def read(memory, dtype):
    return np.frombuffer(memory.copy_to_host(), dtype)


def shared(array, queue):
    memory = drupe.memory.MemoryUSMShared(array.nbytes, queue=queue)
    memory.copy_from_host(array)
    return memory


def test_kernels_of_a_module(taker, module):
    queue = drupe.Queue(taker)
    program = create_kernel_bundle_from_spirv(queue, module)
    assert sorted(program.kernel_names) == ["count", "reverse", "scale", "square"]
    x = shared(np.arange(100, dtype=np.float32), queue)
    program.scale(x, 2.0, 100, global_size=128).wait()
    assert (read(x, np.float32) == np.arange(100) * 2 + 1).all()
    y = shared(np.arange(8, dtype=np.float64), queue)
    program.square(y, global_size=8).wait()
    assert (read(y, np.float64) == np.arange(8) ** 2).all()
    z = shared(np.arange(32, dtype=np.int32), queue)
    program.reverse(z, drupe.LocalMemory(64), global_size=32, local_size=16).wait()
    assert read(z, np.int32).tolist() == [*range(15, -1, -1), *range(31, 15, -1)]
    narrow, wide = shared(np.zeros(1, np.int32), queue), shared(np.zeros(1, np.int64), queue)
    program.count(narrow, wide, global_size=100).wait()
    assert read(narrow, np.int32)[0] == 100
    assert read(wide, np.int64)[0] == 200


def run_constants(queue, specializations):
    program = create_kernel_bundle_from_spirv(queue, CONSTANTS, specializations=specializations)
    out = shared(np.zeros(5, np.int32), queue)
    program.constants(out, global_size=1).wait()
    return read(out, np.int32).tolist()


def test_values_reach_the_kernel(taker):
    queue = drupe.Queue(taker)
    assert run_constants(queue, None) == [41, 1, 1, 2, 9]
    assert run_constants(queue, []) == [41, 1, 1, 2, 9]
    assert run_constants(queue, {0: -7, 7: 3.5, 3: False, 4000000000: 1 << 40 | 5, 5: 300}) == [-7, 3, 0, 5, 300]
    assert run_constants(queue, [SpecializationConstant(0, np.int32(8)), SpecializationConstant(7, "f4", 2)]) \
        == [8, 2, 1, 2, 9]
    assert run_constants(queue, {7: 2}) == [41, 2, 1, 2, 9]


@pytest.mark.parametrize("specializations, error, part", [
    ({0: 1 << 40}, OverflowError, "int32"),
    ({0: 1.5}, TypeError, "integer"),
    ({9: 1}, drupe.DeviceNotFoundError, "number 9"),
    ([SpecializationConstant(0, np.float64(1))], drupe.InvalidArgumentError, "4 byte"),
    ([5], TypeError, "SpecializationConstant"),
    (5, TypeError, "iterable"),
])
def test_values_that_do_not_fit(taker, specializations, error, part):
    with pytest.raises(error, match=part):
        create_kernel_bundle_from_spirv(drupe.Queue(taker), CONSTANTS, specializations=specializations)


def test_values_are_for_spirv(opencl):
    with pytest.raises(drupe.InvalidArgumentError, match="SPIR-V"):
        drupe.Program("kernel void f() {}", opencl, specializations=[SpecializationConstant(0, np.int32(1))])


def test_parse():
    found = parse_spirv_specializations(CONSTANTS)
    assert [tuple(info) for info in found] == [
        (0, "int32", "count", 4, 41), (7, "float32", "factor", 4, 1.5), (3, "bool", "flag", 1, True),
        (4000000000, "int64", "wide", 8, 4294967298), (5, "int16", "", 2, 9)]
    assert np.dtype(found[1].dtype) == np.float32
    assert parse_spirv_specializations(bytearray(CONSTANTS)) == found
    for wrong in (b"", b"abcd", CONSTANTS[:-4]):
        with pytest.raises(drupe.InvalidArgumentError):
            parse_spirv_specializations(wrong)


def test_specialization_constant():
    one = SpecializationConstant(3, np.int32(7))
    assert (one.id, one.size) == (3, 4)
    assert one == SpecializationConstant(3, "int32", 7) == SpecializationConstant(3, np.dtype("int32"), 7)
    assert hash(one) == hash(SpecializationConstant(3, "i4", 7))
    assert one != SpecializationConstant(4, "i4", 7) and one != SpecializationConstant(3, "i8", 7) and one != 3
    assert ctypes.string_at(one.addressof_ref(), 4) == struct.pack("i", 7)
    assert SpecializationConstant(3, 4, one.addressof_ref()) == one
    assert SpecializationConstant(1, True).size == 1
    assert SpecializationConstant(1, 2.5).size == 8
    assert SpecializationConstant(1, ctypes.c_uint16(5)).size == 2
    for arguments in ((-1, 5), (1 << 32, 5)):
        with pytest.raises(ValueError):
            SpecializationConstant(*arguments)
    for arguments in ((1,), (1, 2, 3, 4), (1, "text"), (1, "complex64", 1)):
        with pytest.raises(TypeError):
            SpecializationConstant(*arguments)
    with pytest.raises(OverflowError):
        SpecializationConstant(1, "int8", 1000)


def test_damaged_modules_are_refused_before_a_driver_sees_them(taker):
    chance = random.Random(5)
    for _ in range(200):
        words = list(WORDS)
        words[chance.randrange(5, len(words))] = chance.choice((0, 0xffffffff, chance.randrange(1 << 32)))
        damaged = struct.pack(f"<{len(words)}I", *words)
        try:
            parse_spirv_specializations(damaged)
        except drupe.InvalidArgumentError as error:
            with pytest.raises(drupe.InvalidArgumentError, match=re.escape(str(error)[:60])):
                create_program_from_spirv(drupe.Queue(taker), damaged)
    with pytest.raises(drupe.InvalidArgumentError, match="cut off"):
        create_program_from_spirv(drupe.Queue(taker), CONSTANTS[:-8])


def test_a_device_without_a_translator_says_what_to_install(fresh, opencl):
    """Where the driver takes SPIR-V itself, there is nothing to install."""
    result = fresh(f"""
        import drupe
        device = drupe.Device({opencl.filter_string!r})
        try:
            drupe.Program(bytes.fromhex({CONSTANTS.hex()!r}), device, language="spirv")
        except drupe.UnsupportedError as error:
            assert "llvm-spirv" in str(error), error
        else:
            assert "SPIR-V" in device.il_version
        try:
            drupe.Program(b"abcd", "host", language="spirv")
        except drupe.UnsupportedError as error:
            assert "SPIR-V" in str(error) and "host" in str(error)
    """, DRUPE_LLVM_SPIRV="/no/such/program")
    assert result.returncode == 0, result.stderr
