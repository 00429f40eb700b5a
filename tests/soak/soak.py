"""./dev soak [NAME] [COUNT] [SEED]: hours of use in minutes. Prints the seed, the figures, and what is wrong."""
import importlib
import pathlib
import random
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "layers")]

SOAKS = {"arrays": 1000000, "cells": 100000, "crashes": 50, "device": 10000, "faults": 10000, "fusion": 1000000,
         "interrupts": 10000,
         "life": 50, "load": 1000000, "submissions": 10000000}


def main(arguments):
    names = [arguments.pop(0)] if arguments and not arguments[0].isdigit() else list(SOAKS)
    if names[0] not in SOAKS:
        print("no soak %r; there are: %s" % (names[0], ", ".join(SOAKS)), file=sys.stderr)
        return 2
    count = int(arguments[0]) if arguments else None
    seed = int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(1 << 32)
    bad = 0
    for name in names:
        print("soak %s, seed %d" % (name, seed), flush=True)
        problems = importlib.import_module(name).run(count or SOAKS[name], seed)
        for problem in problems:
            print("  WRONG: %s" % problem, flush=True)
        bad += len(problems)
        print("  %s" % ("%d wrong" % len(problems) if problems else "all well"), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
