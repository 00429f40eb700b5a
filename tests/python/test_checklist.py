"""The checklist of what bindings of devices offer: every name is there, and the test that is named shows it."""
import ast
import builtins
import functools
import importlib
import importlib.util
import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
SPEC = importlib.util.spec_from_file_location("checklist", ROOT / "tools/checklist.py")
checklist = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(checklist)
LIST = checklist.load()
HEADER = ROOT / "python/include/drupe/ext.h"


def resolve(path):
    """The module or class of that name."""
    words = path.split(".")
    for count in range(len(words), 0, -1):
        try:
            module = importlib.import_module(".".join(words[:count]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, words[count:], module)
    raise ModuleNotFoundError(path)


@functools.cache
def texts_of(file):
    """The text of each test of a file, by its name."""
    text = (HERE / file).read_text()
    return {node.name: ast.get_source_segment(text, node) for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")}


def says(text, name):
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


@pytest.mark.parametrize("row", LIST["row"], ids=[row["peer"] for row in LIST["row"]])
def test_row(row):
    owner, found = resolve(row["ours"]), checklist.pairs(row)
    used = "".join((ROOT / path).read_text() for path in row.get("used", ()))
    for theirs, ours, test in found:
        file, _, name = test.partition("::")
        text = texts_of(file)[name]
        if used:
            assert says(HEADER.read_text(), ours) and says(used, ours)
            continue
        if theirs.startswith("__") and theirs != ours:
            assert hasattr(owner, theirs), theirs  # Python's own way to use it stands for it
        elif not hasattr(builtins, ours):
            assert hasattr(owner, ours), ours
        assert row.get("table") or says(text, ours), f"{ours} does not stand in {test}"
    known = {ours for _, ours, _ in found}
    for names in row.get("tests", {}).values():
        assert set(names.split()) <= known


@pytest.mark.parametrize("row", LIST["header"], ids=[row["peer"] for row in LIST["header"]])
def test_header(row):
    scenes = (ROOT / row["test"]).read_text()
    text = ""
    for header, prefix in re.findall(r"(?:(\w+\.h): )?(drupe_\w+_)\*", row["ours"]):
        text = (ROOT / "engine/include/drupe" / header).read_text() if header else text
        functions = set(re.findall(rf"DRUPE_API[^;]*?\b({prefix}\w+)\(", text))
        assert functions and any(says(scenes, function) for function in functions)


@pytest.mark.parametrize("row", LIST["absent"], ids=[row["peer"] for row in LIST["absent"]])
def test_what_is_absent(row):
    owner = resolve(row["ours"])
    assert not [name for name in row["names"].split() if hasattr(owner, name)]
    assert len(row["why"]) > 40


def test_the_table_is_what_the_list_makes():
    assert checklist.TABLE.read_text() == checklist.table(LIST), "run tools/checklist.py"
