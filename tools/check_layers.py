#!/usr/bin/env python3
"""Fail when a C file includes a header that its room may not use (tools/layers.ini), when a source file is longer than
600 lines or a header than 250, or when docs/internals/rooms.svg is not what tools/draw_rooms.py makes of the includes.

tools/check_calls.py checks the calls between the rooms, which takes objects."""
import configparser
import pathlib
import re
import sys

import draw_rooms

STANDARD = re.compile(r"^(assert|ctype|dirent|dlfcn|elf|errno|fcntl|float|glob|inttypes|limits|link|locale|malloc|math|"
                      r"poll|pthread|regex|sched|search|semaphore|setjmp|signal|spawn|stdalign|stdarg|stdatomic|"
                      r"stdbool|stddef|stdint|stdio|stdio_ext|stdlib|stdnoreturn|string|strings|time|ucontext|"
                      r"unistd|sys/[a-z]+|linux/[a-z]+|netinet/[a-z]+|arpa/[a-z]+|net/if|netdb|ifaddrs)\.h$")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
LONGEST = 600
LONGEST_HEADER = 250
SOURCES = ("*.c", "*.h", "*.py", "*.cl", "*.js", "*.def", "*.toml")


def rooms_of(root):
    config = configparser.ConfigParser()
    config.read(root / "tools/layers.ini")
    return {name: (set(config[name].get("may", "").split()) | {name}, config[name].get("system", "").split())
            for name in config.sections()}


def room_of(path, rooms):
    """The room with the longest name that holds the path, or None."""
    inside = [room for room in rooms if path.startswith(room + "/")]
    return max(inside, key=len, default=None)


def target_of(name, including, headers):
    """The project's header that an include names, as a path from the root, or None for an outside header."""
    for candidate in (f"{including.rpartition('/')[0]}/{name}", name, f"engine/{name}", f"engine/include/{name}",
                      f"base/include/{name}", f"jkernel/{name}", f"python/include/{name}"):
        if candidate in headers:
            return candidate
    return None


def check_file(path, text, rooms, headers, arrows):
    """What is wrong with the file's includes; notes in `arrows` which room it includes from."""
    room = room_of(path, rooms)
    if room is None:
        return
    may, system = rooms[room]
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(2)
        target = target_of(name, path, headers)
        if target is not None:
            arrows.add((room, room_of(target, rooms)))
            if room_of(target, rooms) not in may:
                yield f"{path}:{number}: {room} may not include {room_of(target, rooms)} ({name})"
        elif match.group(1) == "<" and not STANDARD.match(name) and not any(name.startswith(s) for s in system):
            yield f"{path}:{number}: {room} may not include <{name}>"


def main(root, write):
    rooms = rooms_of(root)
    folders = ("base", "broker", "engine", "jkernel", "python", "tests", "tools")
    files = sorted(path for folder in folders for pattern in SOURCES for path in (root / folder).rglob(pattern))
    headers = {p.relative_to(root).as_posix() for p in files if p.suffix in (".h", ".def")}
    problems, arrows = [], set()
    for path in files:
        relative = path.relative_to(root).as_posix()
        text = path.read_text(errors="replace")
        if path.suffix in (".c", ".h"):
            problems += check_file(relative, text, rooms, headers, arrows)
        length = text.count("\n")
        if path.suffix == ".h" and length > LONGEST_HEADER:
            problems.append(f"{relative}: {length} lines; {LONGEST_HEADER} is the limit of a header")
        if length > LONGEST:
            problems.append(f"{relative}: {length} lines; {LONGEST} is the limit: more than one job?")
    problems += draw_rooms.problems(root, list(rooms), arrows, write)
    print("\n".join(problems) or f"layers: {len(files)} files in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(__file__).resolve().parent.parent, sys.argv[1:] == ["--draw"]))
