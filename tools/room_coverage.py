#!/usr/bin/env python3
"""Lines and branches of each room of engine/core that the unit tests of that room's own folder reach.

    python3 tools/room_coverage.py                all rooms, a line each, and the files below the goal
    python3 tools/room_coverage.py queue check    these rooms, with what is not reached in each file

Builds tests/unit/core in build/cov with gcov's counters. Lines with assert or abort are not counted."""

import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/cov"
OBJECTS = BUILD / "engine/core/CMakeFiles/drupe_core.dir"
TESTS = ROOT / "tests/unit/core"
GOAL = (95, 88)  # percent of lines, of branches


def run(*command, **how):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, **how)
    return result.stdout if result.returncode == 0 else sys.exit(result.stdout)


def tests_of_rooms():
    """The names of each folder's tests, from the list for CMake."""
    rooms = collections.defaultdict(list)
    for name, room in re.findall(r"^drupe_\w+_test\((\w+)\s+(\w+)/", (TESTS / "CMakeLists.txt").read_text(), re.M):
        rooms[room].append(name)
    return rooms


def build(tests):
    if not (BUILD / "build.ninja").exists():
        run("cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DDRUPE_TESTS=ON", "-DDRUPE_PYTHON=OFF",
            "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=--coverage -O1 -fno-inline -DDRUPE_TEST_COVERAGE")
    run("ninja", "-C", BUILD, "-j2", *tests)


def measure(room, tests):
    """Run the tests of a room; give each of its files' lines: number, how often, its branches."""
    for old in BUILD.rglob("*.gcda"):
        old.unlink()
    if tests:
        run("ctest", "--test-dir", BUILD, "-j2", "--output-on-failure", "-R", f"^({'|'.join(tests)})$")
    files = {}
    for notes in sorted((OBJECTS / room).glob("*.gcno")):
        text = run("gcov", "--json-format", "--stdout", "--branch-probabilities", notes, cwd=BUILD,
                   stderr=subprocess.DEVNULL)
        source = ROOT / "engine/core" / room / notes.name.removesuffix(".gcno")
        written = source.read_text().splitlines()
        for file in json.loads(text)["files"]:
            if (BUILD / file["file"]).resolve() == source:
                files[source.name] = [line for line in file["lines"]
                                      if not re.search(r"\b(assert|abort)\(", written[line["line_number"] - 1])]
    return files


def figures(lines):
    """Lines reached, lines, branches taken, branches."""
    ways = [way["count"] > 0 for line in lines for way in line["branches"]]
    return [sum(line["count"] > 0 for line in lines), len(lines), sum(ways), len(ways)]


def percent(reached, of):
    return 100 * reached / of if of else 100.0


def show(name, sums):
    print(f"{name:36}{percent(*sums[:2]):7.1f} %{percent(*sums[2:]):7.1f} %   {sums[1]:5} lines {sums[3]:5} branches")


def main(wanted):
    tests, total = tests_of_rooms(), [0] * 4
    build(sum(tests.values(), []))
    for room in wanted or sorted(path.name for path in OBJECTS.iterdir() if path.is_dir()):
        files = measure(room, tests[room])
        rows = {name: figures(lines) for name, lines in files.items()}
        total = [a + b for a, b in zip(total, [sum(column) for column in zip(*rows.values())])]
        show(room, [sum(column) for column in zip(*rows.values())])
        for name, row in rows.items():
            if percent(*row[:2]) < GOAL[0] or percent(*row[2:]) < GOAL[1] or wanted:
                show(f"    {name}", row)
            for line in files[name] if wanted else []:
                missed = sum(way["count"] == 0 for way in line["branches"])
                said = f"{missed} branches" if line["count"] else "not reached"
                if line["count"] == 0 or missed:
                    print(f"        {line['line_number']}: {said}")
    show("all", total)


if __name__ == "__main__":
    main(sys.argv[1:])
