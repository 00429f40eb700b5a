"""The checklist of what dpctl has: every name is there, and the test that is named shows it."""
import inspect
import pathlib
import tomllib

import pytest
from drupe.compat import NotProvided
from test_checklist import checklist, resolve, says, texts_of

LIST = tomllib.loads((pathlib.Path(__file__).parent / "compat_dpctl.toml").read_text())


def owner_of(row):
    return resolve("drupe.compat." + row["ours"])


@pytest.mark.parametrize("row", LIST["row"], ids=lambda row: row["ours"])
def test_row(row):
    owner, found = owner_of(row), checklist.pairs(row)
    for name, _same, test in found:
        file, _, function = test.partition("::")
        assert hasattr(owner, name), name
        assert row.get("table") or says(texts_of(file)[function], name), f"{name} does not stand in {test}"
    known = {name for name, _same, _test in found}
    for names in row.get("tests", {}).values():
        assert set(names.split()) <= known


@pytest.mark.parametrize("row", LIST["refused"], ids=[row["ours"] for row in LIST["refused"]])
def test_what_is_refused(row):
    owner = owner_of(row)
    for name in row["names"].split():
        assert not hasattr(owner, name)
        with pytest.raises(NotProvided) as raised:
            getattr(owner, name)
        assert name in str(raised.value) and len(str(raised.value)) > 60, name  # it says what to write


@pytest.mark.parametrize("name", LIST["signatures"])
def test_signatures(name):
    owner = owner_of({"ours": name})
    for line in LIST["signatures"][name].strip().replace("\n    ", " ").splitlines():
        word, _, arguments = line.partition("(")
        made = {}
        exec(f"def wanted({arguments}: pass", made)
        assert inspect.signature(getattr(owner, word)) == inspect.signature(made["wanted"]), line


def test_every_public_name_stands_in_it():
    modules = [row["ours"] for row in LIST["row"]]
    for module in ("dpctl", "dpctl.enum_types", "dpctl.memory", "dpctl.program", "dpctl.utils", "dpctl.tensor"):
        rows = [row for row in LIST["row"] if row["ours"] in (module, "dpctl.enum_types")]
        listed = {name for row in rows for name in row["names"].split()}
        for name in owner_of({"ours": module}).__all__:
            assert name in listed or name == "get_include" or f"{module}.{name}" in modules, f"{module}.{name}"
