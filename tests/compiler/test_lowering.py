"""What the passes make of kernels in Python: golden texts of names, types, tree, and C."""
import os
import pathlib
import re

import lowered
import numpy as np
import pytest

import drupe
import drupe.array as da
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


def twice(item, x, at, y):
    y[item.get_id(0)] = x[item.get_id(0)]*2


def gathered(item, x, at, y):
    y[item.get_id(0)] = x[at[item.get_id(0)]]*2


def scattered(item, x, at, y):
    y[at[item.get_id(0)]] = x[item.get_id(0)]*2


def rounded_down(item, x, at, y):
    y[item.get_id(0)] = x[item.get_id(0)]//2


@pytest.mark.parametrize("function, brief", [(twice, True), (gathered, False), (scattered, False),
                                             (rounded_down, False)])
def test_chunks_on_the_host(function, brief):
    """What takes long for its operations has small chunks, so that all processors have some."""
    made, queue = drupe.kernel(function), drupe.Device("host").queue
    args = [da.asarray(one, queue=queue) for one in (np.arange(9.), np.arange(9)[::-1].copy(), np.zeros(9))]
    drupe.call_kernel(made, drupe.Range(9), *args)
    variant, = made.variants.values()
    assert variant.grain > 40_000 if brief else 1000 < variant.grain < 4000
    expected = {twice: np.arange(9.)*2, rounded_down: np.arange(9.)//2}.get(function, np.arange(9.)[::-1]*2)
    assert np.array_equal(args[2].asnumpy(), expected)
