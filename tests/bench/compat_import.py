"""What an import of a module for programs of other systems takes.

usage: tests/bench/compat_import.py [ROUNDS]

Each import in a fresh process that has loaded drupe and its engine, as a cell of a notebook has; the median of several.
The goal is 20 ms. NumPy, which dpctl.tensor loads with the first type of elements, is not part of it. Time fails
nothing."""
import statistics
import subprocess
import sys

GOAL = 20.0  # ms
ROUNDS = 15
NAMES = ["dpctl", "dpctl, all names", "dpctl.memory", "dpctl.program", "dpctl.tensor", "dpctl.utils", "dpnp",
         "numba_dpex", "numba.cuda", "pymic"]
CHILD = """
import sys, time
import drupe, drupe._engine, drupe.compat
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
    text = CHILD.format(name=module, use=ALL.format(name=module) if more else "")
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def main():
    from drupe import compat

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    tops = set(compat.names())
    print("import of a module for other systems' programs, ms")
    for name in NAMES:
        if not tops & {name.partition(",")[0], name.partition(",")[0].partition(".")[0]}:
            continue
        took = statistics.median(measure(name) for _round in range(rounds))
        goal = "" if "," in name else f"   goal {GOAL:.0f} {'met' if took <= GOAL else 'MISSED'}"
        print(f"  {name:<18}{took:6.1f}{goal}")


if __name__ == "__main__":
    main()
