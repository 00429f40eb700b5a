#!/usr/bin/env python3
"""Print the figures of docs/internals/rooms.md: product lines, headers, structs, variables that change, words.

usage: rooms_figures.py [BUILD]     with a folder of object files (build/tests) the variables are counted, too
"""
import pathlib
import re
import subprocess
import sys

from check_calls import OBJECT

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCT = ("engine", "jkernel", "base")
ROOMS = ("engine/core", "engine/backends", "engine/array", "engine/view", "engine/python", "jkernel", "base")
WIDE = 20  # members; a struct with more says why
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|/\*.*?\*/|//[^\n]*', re.S)
# A variable that the program may write: constants that hold addresses are in .data.rel.ro.
VARIABLE = re.compile(r"^[0-9a-f]+ .{6}O \.(?:t?bss|t?data(?!\.rel\.ro))\S*\s+[0-9a-f]+ +(?:\.hidden )?(\S+)$")


def sources():
    names = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.split():
        text = (ROOT / name).read_text(encoding="utf-8") if name.endswith((".c", ".h")) else ""
        if text and "generated" not in text[:400].lower():
            yield name, text


def code_of(text):
    """The text without comments."""
    return COMMENT.sub(lambda found: found.group(1) or " ", text)


def lines_of(text):
    return sum(1 for line in code_of(text).split("\n") if line.strip())


def structs_of(text):
    """(name, text of its members) of each struct that is not a table of functions."""
    for found in re.finditer(r"struct (\w+) \{", text):
        depth, at = 1, found.end()
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        body = text[found.end():at - 1]
        if "(*" not in body or body.count("(*") * 2 < body.count(";"):  # else it is a table of functions
            yield found.group(1), body


def members(body):
    """How many members a struct has, with those of unnamed structs inside."""
    count = 0
    for part in re.sub(r"[{}]", ";", body).split(";"):
        words = re.findall(r"\w+", part.split("[")[0])
        if len(words) > 1 and words[-1] not in ("struct", "union"):
            count += 1 if "(" in part else part.count(",") + 1
    return count


def variables(build):
    counts = dict.fromkeys(ROOMS, 0)
    for path in build.rglob("*.o"):
        found = OBJECT.match(path.relative_to(build).as_posix())
        source = "/".join(found.groups()) if found else ""
        room = next((room for room in ROOMS if source.startswith(room + "/")), None)
        if room and (ROOT / source).is_file():
            table = subprocess.run(["objdump", "-t", str(path)], capture_output=True, text=True, check=True).stdout
            counts[room] += sum(1 for line in table.splitlines() if VARIABLE.match(line))
    return counts


def main():
    lines, headers, wide = 0, [], []
    for name, text in sources():
        lines += lines_of(text)
        if name.endswith(".h"):
            headers.append((text.count("\n"), name))
        wide += [(members(body), struct) for struct, body in structs_of(code_of(text)) if members(body) > WIDE]
    print("product lines   ", lines)
    print("longest headers ", ", ".join("%s %d" % (name, count) for count, name in sorted(headers, reverse=True)[:3]))
    print("widest structs  ", ", ".join("%s %d" % (name, count) for count, name in sorted(wide, reverse=True)))
    for name in ("ARCHITECTURE.md", "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        print("%-16s" % name, len(text.split()), "words,", len(text.encode()), "bytes")
    if len(sys.argv) > 1:
        for room, count in variables(pathlib.Path(sys.argv[1])).items():
            print("variables        %-16s %d" % (room, count))


if __name__ == "__main__":
    main()
