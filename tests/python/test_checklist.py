"""The checklist of what bindings of devices offer: every name is there, every test that is named exists."""
import functools
import importlib
import pathlib
import tomllib

import pytest

HERE = pathlib.Path(__file__).parent
ROWS = tomllib.loads((HERE / "checklist.toml").read_text())["row"]


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


@pytest.mark.parametrize("row", ROWS, ids=[row["peer"] for row in ROWS])
def test_row(row):
    owner = resolve(row["ours"])
    missing = [name for name in row["names"].split() if not hasattr(owner, name.rpartition("=")[2])]
    assert not missing
    file, _, test = row["test"].partition("::")
    assert "def %s(" % test in (HERE / file).read_text()
