"""Whatever is typed behind a magic: it is understood, or refused in one line; Tab never fails."""
import importlib
import types

import pytest
from hypothesis import given, settings, strategies

pytest.importorskip("IPython")
from IPython.core.error import UsageError  # noqa: E402

from drupe import magics  # noqa: E402
from drupe.magics import base, complete  # noqa: E402


def _make(name):
    module, _, attribute = magics.NAMES[name][1].partition(":")
    shell = types.SimpleNamespace(user_ns={"name": 1}, Completer=None)
    return getattr(importlib.import_module("drupe.magics." + module), attribute)(shell)


MAGICS = [_make(name) for name in magics.NAMES]
WORDS = strategies.sampled_from(
    sorted({name for one in MAGICS for option in one.all_options for name in option.names if name.startswith("-")})
    + ["gpu", "opencl:cpu:0", "host:cpu:0{1}.0", "$name", "{name}", "{", "}", "'", '"', "\\", "--", "-", "-1",
       "0", "2:5", "=", "--=", "-n=", "x = 1", "größe", "\0", "\u2028", "#", ";", ""])
LINES = strategies.lists(WORDS | strategies.text(max_size=6), max_size=6).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(LINES, strategies.sampled_from(MAGICS))
def test_a_line_is_understood_or_refused(line, magic):
    try:
        options = magic.parse(line)
        assert hasattr(options, "help")
    except UsageError as error:
        assert "\n" not in str(error) and str(error).startswith("%")


@settings(max_examples=300, deadline=None)
@given(LINES, strategies.sampled_from(MAGICS))
def test_completion_replaces_the_end_of_the_line(line, magic):
    fragment, found = complete._complete_arguments(magic, line)
    assert line.endswith(fragment)
    for text, kind in found:
        assert isinstance(text, str) and isinstance(kind, str)


@pytest.mark.parametrize("magic", MAGICS, ids=lambda one: one.name)
def test_each_explains_itself(magic):
    text = magic.help_text()
    assert max(map(len, text.splitlines())) <= base.WIDTH and len(magic.examples) == 2
    assert all(option.help for option in magic.all_options)
    assert magic.summary[0].endswith(".")
    for typed, _meaning in magic.examples:
        head = typed.splitlines()[0]
        assert head.lstrip("%").split()[0] == magic.name and magic.parse(head.partition(magic.name)[2]) is not None
