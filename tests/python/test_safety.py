"""What protects people who share a machine, as far as the engine's process can: memory, compilers, caches, figures."""
import contextlib
import os
import pathlib
import stat

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


# --- Caches ---------------------------------------------------------------------------------------------------

KEPT = """
    import drupe
    from drupe import _engine, program
    built = program.build("kernel void one(int *a) { a[0] = 1; }", "host", language="c")
    _engine._cache_flush(60)
    info = program.cache_info()
    print(info["stored"], info["hits"], info["rejected"], info["reason"])
"""


@pytest.fixture
def cached(fresh, tmp_path):
    """Build a program with this folder as the cache; what was stored, found and rejected, and why there is none."""
    def run():
        result = fresh(KEPT, DRUPE_CACHE="1", DRUPE_CACHE_DIR=str(tmp_path / "cache"))
        assert result.returncode == 0 and not result.stderr, result.stderr
        stored, hits, rejected, reason = result.stdout.rstrip("\n").split(" ", 3)
        return int(stored), int(hits), int(rejected), reason

    run.folder = tmp_path / "cache" / "programs"
    return run


def test_what_is_kept_is_private(cached):
    old = os.umask(0)
    try:
        assert cached()[:3] == (1, 0, 0)
    finally:
        os.umask(old)
    paths = [cached.folder, cached.folder.parent, *cached.folder.iterdir()]
    assert [path.name for path in paths if path.stat().st_mode & 0o077] == []
    cached.folder.chmod(0o755)
    assert cached()[:3] == (0, 1, 0)
    assert stat.S_IMODE(cached.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(cached, mode):
    cached.folder.mkdir(parents=True)
    cached.folder.chmod(mode)
    reason = f"The folder {cached.folder} may be written to by others: chmod go-w makes it private."
    assert cached() == (0, 0, 0, reason)
    assert list(cached.folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_is_refused(cached):
    cached()
    entry = next(path for path in cached.folder.iterdir() if path.name != "CACHEDIR.TAG")
    os.chown(entry, 12345, 12345)
    assert cached()[:3] == (1, 0, 1)  # built again, in its place
    assert entry.stat().st_uid == os.geteuid()
    os.chown(cached.folder, 12345, 12345)
    assert cached() == (0, 0, 0, f"The folder {cached.folder} belongs to another user.")


@pytest.mark.parametrize("change", ["writable", "link"])
def test_a_foreign_file_is_not_loaded(cached, tmp_path, change):
    cached()
    entry = next(path for path in cached.folder.iterdir() if path.name != "CACHEDIR.TAG")
    if change == "writable":
        entry.chmod(0o666)
    else:
        entry.rename(tmp_path / "elsewhere")
        entry.symlink_to(tmp_path / "elsewhere")
    assert cached()[:3] == (1, 0, 1)
    assert not entry.is_symlink() and stat.S_IMODE(entry.stat().st_mode) == 0o600


def test_no_folder_of_all_people_is_used(fresh, tmp_path):
    """Compilers work in a folder of their own below TMPDIR, which is gone when they end."""
    path = compiler(tmp_path, 'while [ "$1" != -o ]; do shift; done; stat -c %a "${2%/*}" >&2; exit 1')
    (tmp_path / "shared").mkdir()
    result = fresh(BUILD, DRUPE_CC=path, DRUPE_CACHE="0", TMPDIR=str(tmp_path / "shared"))
    assert "\n700\n" in result.stdout, result.stdout + result.stderr
    assert list((tmp_path / "shared").iterdir()) == []
