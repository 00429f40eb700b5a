#!/usr/bin/env python3
"""Fail when the objects of a room call, or use data of, a room that it may not use (tools/layers.ini).

usage: tools/check_calls.py BUILD-FOLDER     of objects that are up to date

An undefined symbol of an object has to be defined in its own room or in one that the room may include from. Between
halls (engine/core and engine/array) it is enough that a header of such a room declares it: engine/include and
backends/backend.h are interfaces that other rooms implement. Within a hall it is not.

More than three files of a room that call each other in a circle fail, too."""
import collections
import configparser
import pathlib
import re
import subprocess
import sys

from check_layers import room_of, rooms_of

OBJECT = re.compile(r"(.*?)/?CMakeFiles/[^/]+\.dir/(.*)\.o$")
LARGEST = 3


def symbols_of(objects):
    """(defined, undefined) of each object."""
    found, name = {}, None
    for start in range(0, len(objects), 100):
        output = subprocess.run(["nm", "-P", "-A", *objects[start:start + 100]], capture_output=True, text=True,
                                check=True).stdout
        for line in output.splitlines():
            name, symbol, kind = line.split()[:3]
            defined, undefined = found.setdefault(name.rstrip(":"), (set(), set()))
            if kind == "U":
                undefined.add(symbol)
            elif kind in "TDBRVWC":
                defined.add(symbol)
    return found


def files_of(root, build, rooms):
    """(defined, undefined) of each source file that stands in a room; objects of files that are gone are left out."""
    sources = {}
    for path in build.rglob("*.o"):
        match = OBJECT.match(path.relative_to(build).as_posix())
        source = f"{match.group(1)}/{match.group(2)}" if match else ""
        if room_of(source, rooms) and (root / source).is_file():
            sources.setdefault(source, str(path))
    symbols = symbols_of(list(sources.values()))
    return {source: symbols.get(path, (set(), set())) for source, path in sorted(sources.items())}


def hall_of(room):
    return "/".join(room.split("/")[:2])


def words_of_headers(root, rooms):
    """The identifiers in the headers of each room."""
    words = collections.defaultdict(set)
    for top in ("broker", "engine", "jkernel", "python", "base"):
        for path in (root / top).rglob("*.h"):
            room = room_of(path.relative_to(root).as_posix(), rooms)
            if room:
                words[room].update(re.findall(r"\w+", path.read_text(errors="replace")))
    return words


def circles_of(graph):
    """Strongly connected components of more than one node (Tarjan), largest first."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = []
            while not circle or circle[-1] != node:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def call_problems(files, rooms, words, excepted):
    """What is called that may not be, and the calls between files."""
    owner = {symbol: source for source, (defined, _) in files.items() for symbol in defined}
    calls = collections.defaultdict(set)
    problems = []
    for source, (_, undefined) in files.items():
        room = room_of(source, rooms)
        may = rooms[room][0]
        for symbol in sorted(undefined & owner.keys()):
            other = room_of(owner[symbol], rooms)
            calls[source].add(owner[symbol])
            if other in may or symbol in excepted.get(room, ()):
                continue
            declared = any(symbol in words[third] for third in may)
            if hall_of(other) == hall_of(room) or not declared:
                problems.append(f"{source}: {room} may not use {other} ({symbol} of {owner[symbol]})")
    return problems, calls


def circle_problems(calls, rooms):
    problems = []
    for room in rooms:
        inside = {s: {o for o in others if room_of(o, rooms) == room} for s, others in calls.items()
                  if room_of(s, rooms) == room}
        graph = collections.defaultdict(set, inside)
        for others in inside.values():
            for other in others:
                graph.setdefault(other, set())
        for circle in circles_of(graph):
            names = " ".join(path.removeprefix(room + "/") for path in circle)
            if len(circle) > LARGEST:
                problems.append(f"{room}: {len(circle)} files call each other in a circle: {names}")
    return problems


def reasons_of(section, key):
    """{name: reason} of an entry with a line `name: reason` for each."""
    lines = (line.partition(":") for line in section.get(key, "").strip().splitlines())
    return {name.strip(): why.strip() for name, _, why in lines}


def exception_problems(config, words, files):
    """Each exception is one that exists, and has a reason."""
    for room in config.sections():
        for name, why in reasons_of(config[room], "registered").items():
            if name not in words[room] or not why:
                yield f"layers.ini: '{name}', registered with {room}, stands in no header of it, or has no reason"
        used = {symbol for source, (_, undefined) in files.items() if source.startswith(room + "/")
                for symbol in undefined}
        for name, why in reasons_of(config[room], "upward").items():
            if name not in used or not why:
                yield f"layers.ini: '{name}' is not used by {room}, or has no reason"


def main(root, build):
    rooms = rooms_of(root)
    config = configparser.ConfigParser()
    config.read(root / "tools/layers.ini")
    words = words_of_headers(root, rooms)
    files = files_of(root, build, rooms)
    if not files:
        print(f"calls: there are no objects in {build}")
        return 1
    excepted = {room: reasons_of(config[room], "upward") for room in config.sections()}
    problems, calls = call_problems(files, rooms, words, excepted)
    problems += circle_problems(calls, rooms)
    problems += exception_problems(config, words, files)
    print("\n".join(problems) or f"calls: those of {len(files)} files in order")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(__file__).resolve().parent.parent, pathlib.Path(sys.argv[1]).resolve()))
