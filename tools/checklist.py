#!/usr/bin/env python3
"""The table of what bindings of devices offer, with a test for each name: tests/COVERAGE.md, of
tests/python/checklist.toml.

usage: tools/checklist.py [--check]     write the file, or exit 1 if it is not what would be written
"""
import pathlib
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tests/python/checklist.toml"
TABLE = ROOT / "tests/COVERAGE.md"

HEAD = """\
# What is covered

Made by `tools/checklist.py` from `tests/python/checklist.toml`; do not edit. Names are those of dpctl 0.21.1 and of its
development branch; `tests/python/test_checklist.py` sees that each of ours exists and stands in the test that is named.
"""


def load():
    return tomllib.loads(SOURCE.read_text())


def pairs(row):
    """(theirs, ours, test) of each name of a row."""
    own = {name: test for test, names in row.get("tests", {}).items() for name in names.split()}
    found = []
    for name in row["names"].split():
        theirs, _, ours = name.partition("=")
        ours = ours or theirs
        found.append((theirs, ours, own.get(ours, row["test"])))
    return found


def table(checklist):
    lines = [HEAD]
    for row in checklist["row"]:
        lines += [f"## {row['peer']}", "", f"| theirs | ours, in `{row['ours']}` | test |", "|---|---|---|"]
        lines += [f"| `{theirs}` | `{ours}` | `{test}` |" for theirs, ours, test in pairs(row)]
        lines.append("")
    lines += ["## The functions of the C library", "",
              "| theirs | ours, in `engine/include/drupe` | test |", "|---|---|---|"]
    lines += [f"| {row['peer']} | {row['ours']} | `{row['test']}` |" for row in checklist["header"]]
    lines += ["", "## What is absent, and why", "", "| theirs | why |", "|---|---|"]
    for row in checklist["absent"]:
        names = ", ".join(f"`{name}`" for name in row["names"].split())
        lines.append(f"| {row['peer']}: {names} | {' '.join(row['why'].split())} |")
    return "\n".join(lines) + "\n"


def main(argv):
    text = table(load())
    if argv == ["--check"]:
        if TABLE.exists() and TABLE.read_text() == text:
            return 0
        print("tests/COVERAGE.md is not what tools/checklist.py makes: run it", file=sys.stderr)
        return 1
    if argv:
        print(__doc__)
        return 2
    TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
