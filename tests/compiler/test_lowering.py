"""What the passes make of kernels in Python: golden texts of names, types, tree, and C."""
import os
import pathlib
import re

import lowered
import pytest

import drupe
from drupe.compiler import describe, kernels, show, text, variants

GOLDEN = pathlib.Path(__file__).parent / "golden" / "lowering"


def written(made):
    """The functions of a text, without the library before them and the table behind them."""
    names = [re.escape(one.name) for one in (*made.function.functions, made.function)]
    begin = re.search(r"^.*\b(drupe_run_)?(%s)\(" % "|".join(names), made.text.text, re.MULTILINE)
    return made.text.text[begin.start():].partition("static const drupe_param_")[0]


def passes(name):
    function, kinds, dims, grouped = lowered.ALL[name]
    tree = kernels.lower(function, kinds, dims=dims, grouped=grouped)
    parts = []
    for dialect in ("c99", "opencl"):
        made = variants.Variant(text.render(tree, dialect), cost=1, grain=1, failures=tree.failures, written=[],
                                watched=tree.watched, sources=tree.sources, lowered=lambda: tree)
        made.kinds = kinds
        shown = show.Inspection(drupe.kernel(function), made)
        if not parts:
            parts += [("names", shown.stage("names")), ("types", shown.stage("types")),
                      ("tree", describe.describe(tree))]
        parts.append((dialect, written(made)))
    return "\n".join("=== %s\n%s" % pair for pair in parts)


@pytest.mark.parametrize("name", lowered.ALL)
def test_golden_passes(name):
    """DRUPE_RENEW=1 writes them anew; read the difference."""
    shown, path = passes(name), GOLDEN / (name + ".txt")
    if os.environ.get("DRUPE_RENEW"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", lowered.ALL)
def test_again_the_same(name):
    """A kernel that is compiled twice has one text: what is kept on disk is found."""
    assert passes(name) == passes(name)


def test_every_golden_text_has_its_kernel():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(lowered.ALL)
