#!/usr/bin/env python3
"""Random kernels, compiled, against the same functions run as plain Python over NumPy's arrays: every bit is compared.

usage: kernels.py [--device FILTER] [--tier quick|best] [--programs N] [--seed S] [--kind exact|rough|groups]
                  [--most N] [--here] [--show]

A program has fifty functions, and N counts functions. Kinds: rough, functions of mathematics, which may be 4 units in
the last place off; groups, kernels with barriers and local memory, against the simulator. --show prints the program of
the seed. What differs is made smaller and printed as a test.
"""
import argparse
import copy
import pickle
import random
import sys
import time

import numpy as np

import kernels_apart
from kernels_program import Program
from kernels_groups import GROUP
from kernels_run import Target, calls_of, defined, in_python, same, simulated
from kernels_shrink import as_test, shrink

EACH = 50
MOST_PROBLEMS = 10
ULPS = 4
TELL = 20  # seconds between words of how far it is


class Wrong(Exception):
    """What a function does that is compiled, and does not do in Python."""


def copied(arguments):
    return {name: one.copy() if isinstance(one, np.ndarray) else one for name, one in arguments.items()}


def differences(program, functions, target):
    """{number of a function: text} of those that give something else. Raises what compiling raises."""
    names = defined(program.text(functions))
    arguments = {name: program.argument(name) for name in program.names(functions)}
    mine = copied(arguments)
    if program.groups:
        failed = {}
        if simulated(names["k"], mine.values(), GROUP):
            return differences_of_each(program, functions, target)
    else:
        calls = calls_of({**names, **mine}, [one.call() for one in functions])
        failed = in_python([names[one.name] for one in functions], calls)
    results = target.run(names["k"], list(arguments.values()), group=GROUP if program.groups else None)
    theirs = dict(zip(arguments, results))
    found = {}
    for at, function in enumerate(functions):
        for letter, rows in (("o_", function.outputs), ("w_", function.scratch)):
            for dtype, row in rows:
                text = _difference(theirs[letter + dtype][row], mine[letter + dtype][row], failed.get(at, ()),
                                   ULPS if program.rough else 0)
                if text is not None:
                    found.setdefault(at, "%s%s[%d], %s" % (letter, dtype, row, text))
    return found


def differences_of_each(program, functions, target):
    """The same of programs of groups, where Python raised: functions that do are left out."""
    if len(functions) == 1:
        return {}
    half = len(functions) // 2
    found = differences(program, functions[:half], target)
    return {**found, **{at + half: text for at, text in differences(program, functions[half:], target).items()}}


def _difference(got, expected, failed, ulps):
    good = same(got, expected, ulps)
    good = good if good.ndim == 1 else good.all(axis=1)
    good[list(failed)] = True
    if good.all():
        return None
    i = int(np.argmin(good))
    return "item %d: %r instead of %r" % (i, got[i], expected[i])


def problems(program, functions, target):
    """[(function, text)] of what is wrong; functions that break the program are found by halves."""
    try:
        found = differences(program, functions, target)
    except Exception as error:  # whatever it is, it is a problem
        if len(functions) == 1:
            return [(functions[0], "%s: %s" % (type(error).__name__, error))]
        cut = _told(error, functions) or len(functions) // 2
        return problems(program, functions[:cut], target) + problems(program, functions[cut:], target)
    return [(functions[at], text) for at, text in found.items()]


def _told(error, functions):
    """Where to cut functions in two, if the error names the one that it comes from."""
    number = (getattr(error, "function", None) or "").lstrip("fh").partition("_")[0]
    names = [one.name for one in functions]
    if "f" + number not in names:
        return None
    at = names.index("f" + number)
    return at + 1 if at == 0 else at


def sort_of(text):
    """What two problems have in common that have one cause, as far as texts tell."""
    return text.partition(" ")[0] + text.partition(" ")[2][:6] if text[1] != "_" else "differs"


def smaller(program, function, text, target):
    """The function made smaller, and what is wrong with it then."""
    sort, small = sort_of(text), copy.deepcopy(function)

    def fails(one):
        return any(sort_of(other) == sort for _function, other in problems(program, [one], target))

    if not fails(small):
        return function, text + " (only beside other functions)"
    shrink(small, fails)
    again = problems(program, [small], target)
    return small, again[0][1] if again else text


def made(seed, count, kind):
    """A program of one of the kinds: "exact", "rough" and "groups"."""
    return Program(seed, count, kind == "rough", groups=kind == "groups")


def fuzz(target, count, seed, kind="exact", most=MOST_PROBLEMS, begins=lambda program: None):
    """Run so many functions; gives (number of functions, texts of problems). `begins` is told of each program."""
    done, found = 0, []
    while done < count and len(found) < most:
        program = made(seed + done, min(EACH, count - done), kind)
        begins(program)
        for function, text in problems(program, program.functions, target)[:most - len(found)]:
            function, text = smaller(program, function, text, target)
            found.append("program %d, %s\n\n%s\n" % (program.seed, text, as_test(program, function)))
        done += len(program.functions)
    return done, found


def _here(chosen):
    """Run in this process; each program and each problem is told when it is there."""
    target = Target(chosen.device, chosen.tier)
    done, found = fuzz(target, chosen.programs, chosen.seed, chosen.kind, chosen.most,
                       lambda program: print("at %d" % program.seed, flush=True))
    for text in found:
        print("WRONG %s: %s" % (target, text), flush=True)
    return 1 if found else 0


def _one(chosen):
    """Run functions that come from stdin."""
    program, functions = pickle.load(sys.stdin.buffer)
    return 1 if problems(program, functions, Target(chosen.device, chosen.tier)) else 0


def _run(chosen):
    """Run in other processes, one after the other: (functions, problems)."""
    at, end, wrong, started, last = chosen.seed, chosen.seed + chosen.programs, 0, time.perf_counter(), 0
    where = ["--device", chosen.device, "--tier", chosen.tier]
    while at < end and wrong < chosen.most:
        lines = kernels_apart.Lines([*where, "--seed", str(at), "--programs", str(end - at), "--most", str(
            chosen.most - wrong), "--kind", chosen.kind])
        for line in lines:
            if line.startswith("at "):
                at = int(line[3:])
                now = time.perf_counter() - started
                if now > last + TELL:
                    last = now
                    print("  %d functions, %.0f a second" % (at - chosen.seed, (at - chosen.seed) / now), flush=True)
            else:
                wrong += line.startswith("WRONG")
                print(line, flush=True)
        if not lines.ended:
            return (end if wrong < chosen.most else at) - chosen.seed, wrong
        wrong += 1
        program = made(at, min(EACH, end - at), chosen.kind)
        print("WRONG " + kernels_apart.told(program, lines.ended, where), flush=True)
        at += EACH
    return at - chosen.seed, wrong


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="host")
    parser.add_argument("--tier", choices=("quick", "best"), default="best")
    parser.add_argument("--programs", type=int, default=5000, help="how many functions")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--most", type=int, default=MOST_PROBLEMS, help="problems after which it ends")
    parser.add_argument("--kind", choices=("exact", "rough", "groups"), default="exact")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.show:
        print(made(chosen.seed, EACH, chosen.kind).text())
        return 0
    if chosen.here or chosen.one:
        return _here(chosen) if chosen.here else _one(chosen)
    print("kernels on %s, %s, seed %d" % (chosen.device, chosen.tier, chosen.seed), flush=True)
    started = time.perf_counter()
    done, wrong = _run(chosen)
    print("%d functions in %.0f s: %s" % (done, time.perf_counter() - started,
                                          "%d wrong" % wrong if wrong else "no difference"), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
