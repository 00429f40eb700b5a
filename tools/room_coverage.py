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
FLAGS = ("-DDRUPE_TESTS=ON", "-DDRUPE_PYTHON=OFF", "-DCMAKE_BUILD_TYPE=Debug",
         "-DCMAKE_C_FLAGS=--coverage -O1 -fno-inline -DDRUPE_TEST_COVERAGE")
GOAL = (95, 88)  # percent of lines, of branches
SKIPPED = re.compile(r"\b(assert|abort)\(")


def run(*command, errors=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=BUILD)
    return done.stdout if done.returncode == 0 else sys.exit(done.stdout)


def build():
    """Build all tests; give their names by room, from the list for CMake."""
    rooms = collections.defaultdict(list)
    listed = (ROOT / "tests/unit/core/CMakeLists.txt").read_text()
    for name, room in re.findall(r"^drupe_\w+_test\((\w+)\s+(\w+)/", listed, re.M):
        rooms[room].append(name)
    if not (BUILD / "build.ninja").exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        run("cmake", "-S", ROOT, "-G", "Ninja", *FLAGS)
    run("ninja", "-j2", *sum(rooms.values(), []))
    return rooms


def measure(room, tests):
    for old in BUILD.rglob("*.gcda"):
        old.unlink()
    run("ctest", "-j2", "--output-on-failure", "-R", f"^({'|'.join(tests) or 'none'})$")
    files = {}
    for notes in sorted((OBJECTS / room).glob("*.gcno")):
        source = ROOT / "engine/core" / room / notes.name.removesuffix(".gcno")
        text = source.read_text().splitlines()
        found = json.loads(run("gcov", "--json-format", "--stdout", "-b", notes, errors=subprocess.DEVNULL))["files"]
        files[source.name] = [line for file in found if (BUILD / file["file"]).resolve() == source
                              for line in file["lines"] if not SKIPPED.search(text[line["line_number"] - 1])]
    return files


def show(name, lines):
    parts = [line["count"] > 0 for line in lines], [way["count"] > 0 for line in lines for way in line["branches"]]
    reached = [100 * sum(part) / len(part) if part else 100 for part in parts]
    if not name.startswith(" ") or reached[0] < GOAL[0] or reached[1] < GOAL[1]:
        print(f"{name:36}{reached[0]:7.1f} %{reached[1]:7.1f} %   {len(lines):5} lines {len(parts[1]):5} branches")


def main(wanted):
    rooms, everything = build(), []
    for room in wanted or sorted(path.name for path in OBJECTS.iterdir() if path.is_dir()):
        files = measure(room, rooms[room])
        everything += sum(files.values(), [])
        show(room, sum(files.values(), []))
        for name, lines in files.items():
            show(f"    {name}", lines)
            for line in lines if wanted else []:
                missed = sum(way["count"] == 0 for way in line["branches"])
                if missed or not line["count"]:
                    print(f"{line['line_number']:12}:", f"{missed} branches" if line["count"] else "not reached")
    show("all", everything)


if __name__ == "__main__":
    main(sys.argv[1:])
