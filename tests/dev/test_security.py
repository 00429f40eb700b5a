"""docs/security.md: every row says whether it is enforced or advice, and names tests that exist."""
import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TEST = re.compile(r"`([\w/.]+)::(\w+)`")


def rows(text):
    """The cells of each row of the tables, without heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "threat" and set(row[0]) != {"-"}]


def names(path):
    """The functions of a Python or C file."""
    text = path.read_text()
    if path.suffix == ".py":
        functions = ast.FunctionDef, ast.AsyncFunctionDef
        return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, functions)}
    return set(re.findall(r"^(?:static )?\w[\w ]* \**(\w+)\([^;]*$", text, re.M))


def mistakes(text, root=ROOT):
    found = []
    for row in rows(text):
        if len(row) != 4:
            found.append(f"{row[0]}: {len(row)} cells")
            continue
        threat, _, kind, tests = row
        if kind not in ("enforced", "advice"):
            found.append(f"{threat}: it is neither enforced nor advice")
        if not TEST.search(tests) or TEST.sub("", tests).strip(" ,"):
            found.append(f"{threat}: its tests are not `file::name`, ...")
        for file, name in TEST.findall(tests):
            if not (root / file).exists():
                found.append(f"{threat}: there is no {file}")
            elif name not in names(root / file):
                found.append(f"{threat}: {file} has no {name}")
    return found


def test_every_threat_has_a_test():
    text = (ROOT / "docs/security.md").read_text()
    assert len(rows(text)) > 20 and mistakes(text) == []


@pytest.mark.parametrize("row, problem", [
    ("| a | b | enforced | `tests/dev/test_security.py::test_of_nothing` |", "has no test_of_nothing"),
    ("| a | b | enforced | `tests/dev/test_nothing.py::test_it` |", "there is no tests/dev/test_nothing.py"),
    ("| a | b | hoped | `tests/dev/test_security.py::rows` |", "neither enforced nor advice"),
    ("| a | b | advice | none yet |", "its tests are not"), ("| a | b | enforced |", "3 cells"),
    ("| a | b | advice | `tests/unit/base/test_base.c::assert_true` |", "has no assert_true")])
def test_mistakes_are_found(row, problem):
    (line,) = mistakes(row)
    assert problem in line


def test_functions_of_c_are_found():
    assert mistakes("| a | b | advice | `tests/unit/base/test_base.c::processes`, "
                    "`tests/fuzz/fuzz_zmtp.c::LLVMFuzzerTestOneInput` |") == []
