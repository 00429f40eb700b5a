#!/usr/bin/env python3
"""Print what failed in a run of ctest, from its Testing/Temporary/LastTest.log.

With --of-leaksanitizer print nothing, and exit with 0 if LeakSanitizer itself broke down in each test that failed: it
walks the threads at the end of a process, and may fault when one ends meanwhile; the cases have passed then.

A test may print thousands of lines around the one that matters, and the end of a log is what people and services
show. Of each failed test: the cases of cmocka that failed, with what they said, and the report of a sanitizer; else
the last lines."""
import pathlib
import re
import sys

MOST = 25  # lines of a case, or of a test that has none
REPORT = 45  # of a sanitizer
TEST = re.compile(r"^\d+/\d+ Test: (.*?)\n(.*?)^-{20,}\nTest (Pass|Fail)", re.S | re.M)
OUTPUT = re.compile(r"^Output:\n-+\n(.*?)(?:<end of output>.*)?\Z", re.S | re.M)
CASE = re.compile(r"^\[ RUN      \] (\S+)\n(.*?)(?=^\[ RUN      \]|^\[==========\]|\Z)", re.S | re.M)
FOUND = re.compile(r"^.*(?:ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error: )", re.M)
BROKE_DOWN = "LeakSanitizer has encountered a fatal error"


def cut(lines, most):
    """The first and the last of many lines."""
    if len(lines) <= most:
        return lines
    half = most // 2
    return [*lines[:half], "... %d lines ..." % (len(lines) - 2 * half), *lines[-half:]]


def reasons(output):
    """Lines that say why a test failed."""
    lines = []
    for name, text in CASE.findall(output):
        if "[       OK ]" in text or "[  SKIPPED ]" in text:
            continue
        lines += ["case " + name, *cut([line for line in text.splitlines() if line.strip()], MOST)]
    for match in FOUND.finditer(output):
        if match.group() not in lines:
            lines += output[match.start():].splitlines()[:REPORT]
            break
    return lines or output.splitlines()[-MOST:] or ["(no output)"]


def summary(log):
    """A line per failed test, with the reasons below."""
    lines = []
    for name, text, result in TEST.findall(log):
        if result == "Fail":
            found = OUTPUT.search(text)
            lines += ["-- " + name, *("   " + line for line in reasons(found.group(1) if found else text))]
    return "\n".join(lines)


def of_leaksanitizer(log):
    """Whether nothing else has failed."""
    texts = [text for _name, text, result in TEST.findall(log) if result == "Fail"]
    return bool(texts) and all(BROKE_DOWN in text and "[  FAILED  ]" not in text and not FOUND.search(text)
                               for text in texts)


if __name__ == "__main__":
    content = pathlib.Path(sys.argv[-1]).read_text(errors="replace")
    if "--of-leaksanitizer" in sys.argv:
        sys.exit(not of_leaksanitizer(content))
    print(summary(content))
