"""What protects people who share a machine, as far as the engine's process can: memory, compilers, caches, figures."""
import contextlib
import os
import pathlib
import stat
import subprocess
import sys
import textwrap

import pytest

ALONE = {"JUPYTERHUB_API_TOKEN": "", "DRUPE_LEASE": "", "DRUPE_MEMORY_WIPE": ""}


# --- Memory ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("environment, wiped", [
    ({}, []), ({"JUPYTERHUB_API_TOKEN": "a-token"}, ["alloc", "free"]), ({"DRUPE_LEASE": "7"}, ["alloc", "free"]),
    ({"DRUPE_LEASE": "7", "DRUPE_MEMORY_WIPE": "free"}, ["free"]),
    ({"DRUPE_LEASE": "7", "DRUPE_MEMORY_WIPE": "0"}, []), ({"DRUPE_MEMORY_WIPE": "alloc"}, ["alloc"])])
def test_memory_is_wiped_under_a_hub(fresh, environment, wiped):
    result = fresh("from drupe import memory; print(sorted(memory.pool('host').wipe))", **{**ALONE, **environment})
    assert result.stdout == f"{wiped}\n" and result.stderr == ""


def test_what_a_program_left_is_not_found_under_a_hub(fresh):
    """The same piece comes back from the pool, without what was in it; alone, it has it still."""
    text = """
        from drupe import memory
        first = memory.MemoryUSMDevice(b"secret" * 1000, device="host")
        where = first._pointer
        del first
        again = memory.MemoryUSMDevice(6000, device="host")
        print(again._pointer == where, again.tobytes().count(b"secret"))
    """
    assert fresh(text, **ALONE).stdout == "True 1000\n"
    assert fresh(text, **{**ALONE, "DRUPE_LEASE": "7"}).stdout == "True 0\n"


# --- Compilers ------------------------------------------------------------------------------------------------

BUILD = """
    import drupe
    from drupe import program
    try:
        program.build("kernel void one(int *a) { a[0] = 1; }", "host", language="c")
        print("built")
    except drupe.BuildError as error:
        print(error)
"""


def compiler(tmp_path, body):
    """A C compiler that tells its version, and then does this."""
    path = tmp_path / "a-compiler"
    path.write_text(f"#!/bin/sh\ncase $1 in --version) echo a compiler; exit;; esac\n{body}\n")
    path.chmod(0o700)
    return str(path)


def living(group):
    """Processes of a group that have not ended; nobody may be there who asks how they did."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, its = path.read_text().rpartition(")")[2].split()[:3]
            if int(its) == group and state not in "ZX":
                found.append(path.parent.name)
    return found


def test_a_compiler_that_takes_all_time_is_stopped(fresh, tmp_path):
    """As the driver of a compiler does, it waits for another process, which takes the time."""
    path = compiler(tmp_path, f"echo $$ > {tmp_path}/pid; (while :; do :; done); exit 1")
    result = fresh(BUILD, DRUPE_CC=path, DRUPE_COMPILER_TIME="1", DRUPE_CACHE="0")
    assert "was stopped" in result.stdout and "DRUPE_COMPILER_TIME" in result.stdout, result.stdout + result.stderr
    assert not living(int((tmp_path / "pid").read_text()))


def test_a_compiler_that_waits_for_ever_is_stopped(fresh, tmp_path):
    path = compiler(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 1000")
    result = fresh(BUILD, DRUPE_CC=path, DRUPE_COMPILER_TIME="1", DRUPE_CACHE="0")
    assert "did not end in time" in result.stdout and "DRUPE_COMPILER_TIME" in result.stdout
    assert not living(int((tmp_path / "pid").read_text()))


def test_a_compiler_that_takes_all_memory_is_stopped(fresh):
    """The machine's own: 40 MiB are less than it needs for anything."""
    result = fresh(BUILD, DRUPE_COMPILER_MEMORY="40M", DRUPE_CACHE="0")
    assert "within the 40.0 MiB" in result.stdout and "DRUPE_COMPILER_MEMORY" in result.stdout, result.stdout
    assert fresh(BUILD, DRUPE_COMPILER_MEMORY="0", DRUPE_COMPILER_TIME="0", DRUPE_CACHE="0").stdout == "built\n"


def test_compilers_have_limits_by_default(fresh, tmp_path):
    path = compiler(tmp_path, "(ulimit -t; ulimit -v; ulimit -f; ulimit -c) >&2; exit 1")
    result = fresh(BUILD, DRUPE_CC=path, DRUPE_CACHE="0", DRUPE_COMPILER_TIME="", DRUPE_COMPILER_MEMORY="")
    # Seconds, KiB, blocks of 512 bytes, and no core.
    assert "120\n4194304\n2097152\n0" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("name, value, allowed", [
    ("DRUPE_COMPILER_TIME", "long", "a number of seconds"), ("DRUPE_COMPILER_MEMORY", "much", "8G")])
def test_limits_that_cannot_be_understood(fresh, name, value, allowed):
    assert allowed in fresh(BUILD.replace("BuildError", "InvalidArgumentError"), **{name: value}).stdout
