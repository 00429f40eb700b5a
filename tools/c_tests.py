#!/usr/bin/env python3
"""Print the programs that the C tests with a word in their names run, one per line: c_tests.py BUILD-FOLDER WORD.

What CMake has written for ctest tells, so that nothing need be built yet."""
import pathlib
import re
import sys

TEST = re.compile(r'^add_test\((?:\[=\[(.*?)\]=\]|(\S+)) "([^"]*)"', re.M)


def programs(build, word):
    """Paths within the build folder; a test that runs something else has none."""
    found = set()
    for path in sorted(build.rglob("CTestTestfile.cmake")):
        for quoted, plain, program in TEST.findall(path.read_text(encoding="utf-8")):
            if re.search(word, quoted or plain) and pathlib.Path(program).is_relative_to(build):
                found.add(str(pathlib.Path(program).relative_to(build)))
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(programs(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2])))
