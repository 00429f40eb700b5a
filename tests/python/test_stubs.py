"""Stubs: they are what the package tells of itself, and a type checker takes the documented examples."""
import ast
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import drupe
from drupe import _engine

ROOT = pathlib.Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("stubs", ROOT / "tools/stubs.py")
stubs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stubs)


@pytest.mark.parametrize("path, text", stubs.files().items(), ids=lambda value: getattr(value, "name", ""))
def test_they_are_what_the_package_tells(path, text):
    assert path.read_text() == text, "run tools/stubs.py"
    assert (path.parents[path.parent.name == "array"] / "py.typed").exists()


def test_every_public_name_is_there():
    tree = ast.parse(stubs.engine_stub())
    written = {node.name: {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
               for node in tree.body if isinstance(node, ast.ClassDef)}
    for name in ("Device", "Queue", "Event", "Context", "Program", "Kernel", "Array", "MemoryUSMShared"):
        public = {one for one in vars(getattr(_engine, name)) if not one.startswith("_")}
        assert public and public <= written[name]
    package = stubs.package_stub()
    assert all(re.search(rf"\b{name}\b", package) for name in drupe.__all__)


def test_a_type_checker_takes_the_examples(tmp_path):
    if shutil.which("mypy", path=str(pathlib.Path(sys.executable).parent)) is None:
        pytest.skip("mypy is not installed beside this Python (pip install mypy)")
    file = ROOT / "tests/python/typed.py"
    options = ["--strict", "--disable-error-code=no-untyped-call", "--follow-imports=silent", "--show-error-codes",
               "--no-error-summary", "--cache-dir", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "mypy", *options, str(file)], capture_output=True, text=True,
                          timeout=250, cwd=tmp_path, check=False)
    lines = file.read_text().splitlines()
    expected = [f"{number} {line.partition('# expect: ')[2]}" for number, line in enumerate(lines, 1)
                if "# expect: " in line]
    found = [f"{number} {code}" for number, code in re.findall(r"typed\.py:(\d+): error: .*\[(.*)\]", done.stdout)]
    assert found == expected, done.stdout + done.stderr
