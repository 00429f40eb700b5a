"""What protects people who share a machine, as far as the engine's process can: memory, compilers, caches, figures."""
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
