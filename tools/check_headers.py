#!/usr/bin/env python3
"""Fail when a public header does not compile by itself, or declares a function without a word about it.

A prototype counts as documented when a comment stands on its line, on the line above it, or above the group of
prototypes it belongs to (prototypes without an empty line between them)."""
import pathlib
import re
import subprocess
import sys
import tempfile


def undocumented(text):
    """The names of functions in groups that no comment introduces or accompanies."""
    for group in re.split(r"\n\s*\n", text):
        if "/*" not in group:
            for name in re.findall(r"^DRUPE_API[^(]*?(drupe_\w+)\(", group, re.M):
                yield name


def compiles(header, includes, compiler):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "alone.c"
        source.write_text(f'#include "drupe/{header.name}"\nint alone;\n')
        run = subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                              *(f"-I{include}" for include in includes), source], capture_output=True, text=True)
        return run.returncode == 0, run.stderr


def main(root):
    includes = [root / "base/include", root / "engine/include"]
    problems = []
    headers = sorted(header for include in includes for header in (include / "drupe").glob("*.h"))
    for header in headers:
        problems += [f"{header.name}: {name} has no comment" for name in undocumented(header.read_text())]
        good, text = compiles(header, includes, "cc")
        if not good:
            problems.append(f"{header.name} does not compile alone:\n{text}")
    print("\n".join(problems) or f"headers: {len(headers)} compile alone and are documented")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(__file__).resolve().parent.parent))
