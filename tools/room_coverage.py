#!/usr/bin/env python3
"""Lines and branches of each room of engine/core that the unit tests of that room's own folder reach.

    python3 tools/room_coverage.py                all rooms and the files with something left, a line each
    python3 tools/room_coverage.py queue check    these rooms, with the lines of each file that are left
Builds tests/unit/core in build/cov with gcov's counters. Lines with assert or abort are not counted.
tests/unit/core/ROOM/unreached.txt lists the lines that no test can reach, below "[the reason]" each:
    file.c: the line's text
Status 1 if a branch is neither reached nor listed, or if a listed line is reached or not there."""

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
TESTS = ROOT / "tests/unit/core"
SKIPPED = re.compile(r"\b(assert|abort)\(")


def run(*command, errors=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=BUILD)
    return done.stdout if done.returncode == 0 else sys.exit(done.stdout)


def build():
    """Build all tests; give their names by room, from the list for CMake."""
    rooms = collections.defaultdict(list)
    listed = (TESTS / "CMakeLists.txt").read_text()
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
        files[source.name] = [dict(line, text=text[line["line_number"] - 1].strip())
                              for file in found if (BUILD / file["file"]).resolve() == source
                              for line in file["lines"] if not SKIPPED.search(text[line["line_number"] - 1])]
    return files


def ways(line):
    """How often each way out of a line was taken; a line without a branch has one."""
    return [way["count"] for way in line["branches"]] or [line["count"]]


def read_listed(room):
    """Set of (file, text of a line) that room's list gives a reason for."""
    path, listed, reason = TESTS / room / "unreached.txt", set(), ""
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            if not reason:
                sys.exit(f"{path}: {line}: no [reason] stands before it")
            listed.add(tuple(line.split(": ", 1)))
    return listed


def explain(room, files):
    """Take out the lines that are listed and not wholly reached; give the entries that fit none."""
    listed = read_listed(room)
    stale = set(listed)
    for name, lines in files.items():
        for line in lines:
            if (name, line["text"]) in listed and not all(ways(line)):
                stale.discard((name, line["text"]))
                line["listed"] = True
    return sorted(stale)


def show(name, lines):
    """One line of the table; returns how many ways are neither reached nor listed."""
    every = [count > 0 for line in lines for count in ways(line)]
    listed = sum(not count for line in lines if "listed" in line for count in ways(line))
    left = len(every) - sum(every) - listed
    if left or not name.startswith(" "):
        reached = 100 * sum(every) / max(len(every), 1)
        print(f"{name:36}{reached:7.1f} % of {len(every):5}{listed:7} listed{left:7} left")
    return left


def main(wanted):
    rooms, everything, failed = build(), [], False
    for room in wanted or sorted(path.name for path in OBJECTS.iterdir() if path.is_dir()):
        files = measure(room, rooms[room])
        stale = explain(room, files)
        everything += sum(files.values(), [])
        show(room, sum(files.values(), []))
        for name, lines in files.items():
            show(f"    {name}", lines)
            for line in lines if wanted else []:
                missed = sum(not count for count in ways(line))
                if missed and "listed" not in line:
                    print(f"{line['line_number']:12}: {missed} of {len(ways(line))}  {line['text']}")
        for name, text in stale:
            print(f"    listed, but not there or reached: {name}: {text}")
        failed |= bool(stale)
    return 1 if show("all", everything) or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
