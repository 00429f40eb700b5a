"""The check of the rooms finds what it is there for: includes, calls, circles, exceptions without a reason."""
import configparser
import importlib
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent

INI = """
[engine/low]
may =
[engine/low/upper]
may = engine/low
"""


@pytest.fixture
def tools(monkeypatch):
    """check_layers and check_calls, as modules."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("check_layers"), importlib.import_module("check_calls")


@pytest.fixture
def tree(tmp_path):
    """Two rooms with a file each: low/a.c calls upward, low/upper/b.c calls downward."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/layers.ini").write_text(INI)
    texts = {"engine/low/a.h": "void low(void);\n", "engine/low/upper/b.h": "void high(void);\n",
             "engine/low/a.c": "void high(void);\nvoid low(void);\nvoid low(void) { high(); }\n",
             "engine/low/upper/b.c": "void high(void);\nvoid low(void);\nvoid high(void) { low(); }\n"}
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".c":
            target = tmp_path / "build" / path.parent.relative_to(tmp_path) / "CMakeFiles/x.dir" / f"{path.name}.o"
            target.parent.mkdir(parents=True)
            subprocess.run(["cc", "-c", str(path), "-o", str(target)], check=True)
    return tmp_path


def problems(tools, root, excepted=None):
    layers, calls = tools
    rooms = layers.rooms_of(root)
    files = calls.files_of(root, root / "build", rooms)
    return calls.call_problems(files, rooms, calls.words_of_headers(root, rooms), excepted or {})[0]


def test_call_upward(tools, tree):
    found = problems(tools, tree)
    assert len(found) == 1 and "engine/low/a.c: engine/low may not use engine/low/upper (high" in found[0]


def test_call_of_an_exception(tools, tree):
    assert problems(tools, tree, {"engine/low": {"high": "a reason"}}) == []


def test_object_of_a_file_that_is_gone(tools, tree):
    (tree / "engine/low/a.c").unlink()
    assert problems(tools, tree) == []


def test_exception_needs_a_reason(tools):
    _, calls = tools
    config = configparser.ConfigParser()
    config.read_string("[room]\nupward =\n    used: why\n    unused: why\n    silent:\nregistered =\n    hook: why\n")
    files = {"room/a.c": (set(), {"used", "silent"})}
    found = list(calls.exception_problems(config, {"room": {"hook"}}, files))
    assert [problem.split("'")[1] for problem in found] == ["unused", "silent"]


@pytest.mark.parametrize("size", [2, 4])
def test_circle(tools, size):
    _, calls = tools
    names = [f"engine/low/{i}.c" for i in range(size)]
    graph = {name: {names[(i + 1) % size]} for i, name in enumerate(names)}
    graph["engine/low/9.c"] = {names[0]}  # uses the circle, and is not in it
    rooms = {"engine/low": ({"engine/low"}, [])}
    assert calls.circles_of(graph) == [names]
    assert len(calls.circle_problems(graph, rooms)) == (size > calls.LARGEST)


def test_include_upward(tools, tree):
    layers, _ = tools
    rooms, arrows = layers.rooms_of(tree), set()
    headers = {"engine/low/a.h", "engine/low/upper/b.h"}
    text = '#include "upper/b.h"\n'
    found = list(layers.check_file("engine/low/a.c", text, rooms, headers, arrows))
    assert len(found) == 1 and "may not include engine/low/upper" in found[0]
    assert arrows == {("engine/low", "engine/low/upper")}
    assert not list(layers.check_file("engine/low/upper/b.c", '#include "low/a.h"\n', rooms, headers, arrows))


def test_picture(tools, tmp_path):
    draw = importlib.import_module("draw_rooms")
    arrows = {("a", "b"), ("b", "c"), ("a", "c")}
    assert draw.problems(tmp_path, ["a", "b", "c"], arrows, False)  # there is none
    assert not draw.problems(tmp_path, ["a", "b", "c"], arrows, True)
    assert (tmp_path / draw.PICTURE).read_text().count("<line ") == 2  # a -> c is implied
    assert xml.etree.ElementTree.parse(tmp_path / draw.PICTURE).getroot().tag.endswith("svg")  # browsers draw no other
    assert draw.problems(tmp_path, ["a", "b", "c"], arrows - {("a", "b")}, False)
