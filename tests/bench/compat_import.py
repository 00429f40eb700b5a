"""What an import of a module for programs of other systems takes.

usage: tests/bench/compat_import.py [ROUNDS]

Each import in a fresh process that has loaded drupe, its engine and NumPy, as a cell of a notebook has; the median of
several. The goal is 20 ms. Where a system is installed, it answers to its own name: ours is imported by ours then. Time
fails nothing."""
import importlib.util
import statistics
import subprocess
import sys

GOAL = 20.0  # ms
ROUNDS = 15
NAMES = ["dpctl", "dpctl, all names", "dpctl.memory", "dpctl.program", "dpctl.tensor", "dpctl.utils", "dpnp",
         "numba_dpex", "numba.cuda", "pymic"]
OURS = {"numba.cuda": "drupe.compat.numba_cuda"}
CHILD = """
import sys, time
import numpy, drupe, drupe._engine, drupe.compat
drupe.compat.enable()
started = time.perf_counter()
import {name}
{use}
print((time.perf_counter() - started) * 1e3)
"""
ALL = "[getattr({name}, word) for word in {name}.__all__]"


def measure(name):
    """Milliseconds of one import; with ", all names" of everything that the module names, too."""
    module, _, more = name.partition(",")
    if module in OURS and importlib.util.find_spec(module.partition(".")[0]):
        module = OURS[module]
    text = CHILD.format(name=module, use=ALL.format(name=module) if more else "")
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def imports(rounds=ROUNDS):
    """(name, milliseconds) of each that there is, the median of several."""
    from drupe import compat

    tops = set(compat.names())
    for name in NAMES:
        if tops & {name.partition(",")[0], name.partition(",")[0].partition(".")[0]}:
            yield name, statistics.median(measure(name) for _round in range(rounds))


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print("import of a module for other systems' programs, ms")
    for name, took in imports(rounds):
        goal = "" if "," in name else f"   goal {GOAL:.0f} {'met' if took <= GOAL else 'MISSED'}"
        print(f"  {name:<18}{took:6.1f}{goal}")


if __name__ == "__main__":
    main()
