"""Soak of crashes: a cell damages the heap of the C library while text is on its way. Each kernel shows the report, and
the text before it, in the cell."""
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

from client import PATIENCE, Failure, Process

_FAULTS = pathlib.Path(__file__).parent.parent / "protocol" / "faults.c"
_CODE = """import ctypes
C = ctypes.CDLL(%r)
for i in range(%d):
    print("x" * %d)
C.fault_double_free()"""


def _crash(folder, library, lines, size):
    """One kernel's end. Raises Failure when its cell does not tell of it."""
    process = Process(folder)
    try:
        client = process.client()
        client.run("pass")
        answer = client.answers[client.execute(_CODE % (str(library), lines, size))]
        client.wait(lambda: answer.of("error"), "the report of %d lines of %d bytes" % (lines, size), PATIENCE / 4)
        text = "".join(content["text"] for content in answer.of("stream") if content["name"] == "stdout")
        client.close()
    finally:
        process.stop()
    if answer.of("error")[0]["ename"] != "KernelCrash" or text != ("x" * size + "\n") * lines:
        raise Failure("%d of %d bytes, then %r" % (len(text), lines * (size + 1), answer.of("error")[0]["evalue"]))


def run(count, seed):
    rng = random.Random(seed)
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "faults.so"
        subprocess.run([*compiler.split(), "-shared", "-fPIC", "-O1", "-w", "-o", str(library), str(_FAULTS),
                        "-lpthread"], check=True)
        for _ in range(count):
            try:
                _crash(folder, library, rng.choice((1, 3, 30)), rng.choice((10, 3000, 100000)))
            except Failure as failure:
                problems.append(str(failure))
    print("  %d of %d reports were shown" % (count - len(problems), count), flush=True)
    return problems
