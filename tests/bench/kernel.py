#!/usr/bin/env python3
"""How long a notebook waits for its kernel: Drupe beside ipykernel and xeus-python, in one run and by one client.

The kernels take turns, each time with a fresh process, so that the machine's mood is shared; the figures of all turns
are pooled. IPython alone and a C program that echoes on a ROUTER socket show what bounds them. Nothing here passes or
fails."""
import argparse
import json
import os
import pathlib
import platform
import tempfile

import client
import figures
import report


def add(results, name, found):
    for key, values in found.items():
        results.setdefault(name, {}).setdefault(key, []).extend(values)


def take_turn(results, name, function, *arguments):
    """A turn in which the kernel falls silent is told and repeated, twice at most."""
    for _ in range(3):
        try:
            return add(results, name, function(name, *arguments))
        except client.Silent as silence:
            print("given up: %s" % silence, flush=True)
            add(results, name, {"turns given up": [1]})


def measure(names, rounds, turns):
    results = {name: {} for name in names}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = figures.build_echo(folder)
        for number in range(2 * rounds + 1):
            for kernel in names[number % len(names):] + names[:number % len(names)]:
                # The first one reads everything from disk.
                take_turn(results if number else {}, kernel, figures.start, folder)
            found = figures.bare_shell(folder)
            if number:
                add(results, "IPython alone", found)
        for number in range(rounds):
            add(results, "C echo", figures.echo(program, turns))
            for kernel in names[number % len(names):] + names[:number % len(names)]:
                print("round %d of %d: %s" % (number + 1, rounds, kernel), flush=True)
                take_turn(results, kernel, figures.turn, folder, turns)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each kernel (default 5)")
    parser.add_argument("--turns", type=int, default=200, help="round trips of each kind in a turn (default 200)")
    parser.add_argument("--only", action="append", metavar="KERNEL", help="leave the other kernels out")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--json", metavar="FILE", help="also write every value")
    options = parser.parse_args()
    names = [name for name in client.available() if not options.only or name in options.only]
    before = os.getloadavg()[0]
    results = measure(names, options.rounds, options.turns)
    for name in names:
        results[name]["turns given up"] = [len(results[name].get("turns given up", ()))]
    rows, goals = report.table(results), report.goal_rows(report.Goals(results))
    mood = "Load average before: %.2f; Python %s." % (before, platform.python_version())
    print(mood)
    print(report.terminal(rows), report.terminal(goals), sep="\n\n")
    if options.write:
        report.write("kernel figures", "%s\n\n%s\n\n%s" % (mood, report.markdown(rows), report.markdown(goals)))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
