"""The disk cache of programs from Python, binaries, and what the compilers in drivers print."""
import os
import sys
import textwrap
import time

import pytest

import drupe
from drupe.program import create_kernel_bundle_from_source, create_program_from_source, load, save

TEXT = "kernel void fill(global int *x, int value) { x[get_global_id(0)] = value; }"
RUN = f"""
    import json, os, time
    import drupe, drupe.program
    from drupe import _engine

    def build(text={TEXT!r}, **options):
        return drupe.Program(text, "WHERE", **options)

    def value(program):
        memory = drupe.memory.MemoryUSMShared(4, queue=program.queue)
        program.fill(memory, 7, global_size=1).wait()
        return int.from_bytes(memory.copy_to_host(), "little")

    def info():
        return drupe.program.cache_info()
"""


@pytest.fixture
def cache(fresh, opencl, tmp_path):
    """Run text in a process with a cache of its own."""
    def run(text, **environment):
        settings = {"DRUPE_CACHE": "1", "DRUPE_CACHE_DIR": str(tmp_path), **environment}
        begin = textwrap.dedent(RUN).replace("WHERE", opencl.filter_string)
        result = fresh(begin + textwrap.dedent(text), **settings)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def test_the_next_process_finds_it(cache):
    first = """
        program = build()
        assert value(program) == 7
        assert info()["misses"] == 1 and info()["hits"] == 0
        _engine._cache_flush(60)
        assert info()["stored"] == 1, info()
    """
    again = """
        program = build()
        assert info()["hits"] == 1 and info()["rejected"] == 0, info()
        assert program.kernel_names == ["fill"]
        assert [kind for _, _, kind in program.fill.arguments] == ["pointer", "value"]
        assert value(program) == 7
        build(options="-DOTHER")
        assert info()["misses"] == 1
        build(cache=False)
        assert info()["misses"] == 1 and info()["hits"] == 1
    """
    cache(first)
    cache(again)
    cache(again, DRUPE_LAYERS="")


def test_it_is_written_while_nothing_happens(cache):
    cache("""
        build()
        limit = time.monotonic() + 60
        while not info()["stored"] and time.monotonic() < limit:
            time.sleep(0.05)
        assert info()["stored"] == 1, info()
    """)


def test_an_exit_does_not_wait_for_it(cache):
    built = float(cache("build(); print(time.monotonic())"))
    quick = time.monotonic() - built < 0.45  # else nothing has happened for so long that it is written
    assert cache("build(); print(info()['hits'])") == "0\n" or not quick


def test_damage_is_built_again(cache, tmp_path):
    cache("build(); _engine._cache_flush(60)")
    entry, = (tmp_path / "programs").glob("*.bin")
    whole = entry.read_bytes()
    for bad in (whole[:-1], whole[:200], b"", whole[:len(whole) // 2] + b"x" + whole[len(whole) // 2 + 1:]):
        entry.write_bytes(bad)
        cache("assert value(build()) == 7; assert info()['rejected'] == 1, info()")
    entry.write_bytes(whole)
    cache("assert value(build()) == 7; assert info()['hits'] == 1")


def test_switched_off(cache, tmp_path):
    cache("build(); _engine._cache_flush(60); assert not info()['on']", DRUPE_CACHE="0")
    assert not list(tmp_path.iterdir())


def test_the_command(cache, opencl, fresh, tmp_path):
    environment = {"DRUPE_CACHE_DIR": str(tmp_path), "DRUPE_CACHE": "1"}
    cache("build(); _engine._cache_flush(60)")

    def command(*arguments, code=0):
        text = f"import runpy, sys; sys.argv = ['drupe', 'cache', *{arguments!r}]; " \
               "runpy.run_module('drupe', run_name='__main__')"
        result = fresh(text, **environment)
        assert result.returncode == code, result.stderr
        assert not result.stderr
        return result.stdout

    assert "1 entries" in command()
    assert opencl.name[:20] in command("list")
    assert "usage" in command("nonsense", code=2)
    assert "freed" in command("clear")
    assert "0 entries" in command()
    environment["DRUPE_CACHE"] = "0"
    assert "off" in command()


def test_binaries(opencl, tmp_path):
    program = drupe.Program(TEXT, opencl)
    binary = program.binary
    again = drupe.Program(binary, opencl, language="binary")
    assert again.kernel_names == ["fill"]
    save(program, tmp_path / "fill.bin")
    loaded = load(tmp_path / "fill.bin", opencl)
    memory = drupe.memory.MemoryUSMShared(4, queue=loaded.queue)
    loaded.fill(memory, 9, global_size=1).wait()
    assert bytes(memory.copy_to_host())[0] == 9
    for wrong in (binary[:-1], binary[1:], b"", b"x" * 1000, bytes(len(binary)), binary + b"x"):
        with pytest.raises(drupe.InvalidArgumentError, match="damaged|empty"):
            drupe.Program(wrong, opencl, language="binary")
    with pytest.raises((drupe.UnsupportedError, drupe.InvalidArgumentError), match="host"):
        drupe.Program(binary, "host", language="binary")
    with pytest.raises(drupe.UnsupportedError, match="host"):
        _ = drupe.Program(None, "host", language="builtin").binary


def test_names_of_dpctl(opencl):
    queue = drupe.Queue(opencl)
    for create in (create_kernel_bundle_from_source, create_program_from_source):
        program = create(queue, TEXT, "-DN=1")
        assert program.queue == queue
        assert program.has_kernel("fill") and not program.has_kernel("nothing")
        kernel = program.get_kernel("fill")
        assert kernel is program.fill
        with pytest.raises(drupe.DeviceNotFoundError):
            program.get_kernel("nothing")
        with pytest.raises(TypeError):
            program.has_kernel(5)
    assert kernel.num_args == 2
    assert kernel.work_group_size >= 1 and kernel.preferred_work_group_size_multiple >= 1
    assert kernel.private_mem_size >= 0 and kernel.local_mem_size == 0
    for name in ("max_num_sub_groups", "max_sub_group_size", "compile_num_sub_groups", "compile_sub_group_size"):
        number = getattr(kernel, name)
        assert number is None or number >= 0
    assert not drupe.program.is_sycl_source_compilation_available()
    with pytest.raises(drupe.UnsupportedError, match="SYCL"):
        drupe.program.create_kernel_bundle_from_sycl_source(queue, "")


def test_numbers_of_a_built_in_kernel():
    kernel = drupe.Program(None, "host", language="builtin").get_kernel("add_f32")
    assert (kernel.max_num_sub_groups, kernel.max_sub_group_size) == (1, 1)
    assert (kernel.compile_num_sub_groups, kernel.compile_sub_group_size) == (0, 0)


_NOISY = """
    import os, subprocess, threading, time
    import drupe
    stop = threading.Event()
    numbers = []
    def write():
        while not stop.is_set():
            os.write(2, b"line %%d\\n" %% len(numbers))
            numbers.append(None)
            time.sleep(0.0001)
    thread = threading.Thread(target=write)
    if %r:
        thread.start()
    for text in ("broken", "kernel void f() { undefined_name; }", "#warning x\\nkernel void f() {}"):
        try:
            drupe.Program(text, %r)
        except drupe.BuildError:
            pass
        subprocess.run(["sh", "-c", "echo child >&2"])
    os.write(2, b"3 errors generated, he said\\n")
    os.write(2, b"12")
    stop.set()
    if thread.is_alive():
        thread.join()
    print(len(numbers))
"""


def test_what_compilers_print_beside_the_log_is_dropped(fresh, opencl):
    result = fresh(_NOISY % (False, opencl.filter_string))
    assert result.returncode == 0, result.stderr
    assert result.stderr == "child\nchild\nchild\n3 errors generated, he said\n12"


def test_what_others_write_meanwhile_arrives(fresh, opencl):
    """All of it; the compiler writes its noise in pieces, and one with a line of another thread in it is not known."""
    result = fresh(_NOISY % (True, opencl.filter_string))
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("child\n") == 3
    assert result.stderr.count("3 errors generated, he said\n") == 1
    assert result.stderr.count("line ") == int(result.stdout) > 0


def test_builds_leave_no_descriptors(opencl):
    drupe.Program(TEXT, opencl)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        drupe.Program(TEXT + f"// {number}", opencl)
    assert len(os.listdir("/proc/self/fd")) <= before
