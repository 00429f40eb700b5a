"""What magics about views do without a kernel: ranges of cells, who holds memory, results and their forms."""
import json
import types

import pytest

pytest.importorskip("IPython")

from IPython.core.error import UsageError  # noqa: E402
import drupe  # noqa: E402
import drupe.array as da  # noqa: E402
from drupe.magics import owners, views  # noqa: E402


@pytest.mark.parametrize("text, expected", [
    ("7", (7, 7)), ("[7]", (7, 7)), ("2:5", (2, 5)), ("3:", (3, 10)), (":4", (1, 4)), ("-3:", (7, 10)), (":", (1, 10)),
    ("-1", (9, 9)), ("-99:", (1, 10))])
def test_ranges_of_cells(text, expected):
    assert views.cell_range(text, 10) == expected


@pytest.mark.parametrize("text", ["", "x", "5:2", "1:2:3", "1.5", "99:"])
def test_what_names_no_cells(text):
    with pytest.raises(UsageError):
        views.cell_range(text, 10)


@pytest.fixture
def shell():
    """As much of a shell as a walk looks at."""
    space = {"Out": {}, "In": []}
    return types.SimpleNamespace(user_ns=space)


def test_variables_share_an_allocation(shell):
    big, other = da.zeros(1000, device="host"), da.zeros(10, device="host")
    shell.user_ns.update(a=big, b={"in": [big[5:]]}, c=other, text="no memory", _hidden=da.zeros(7, device="host"))
    found, complete = owners.by_variable(shell)
    assert complete and [(one.name, one.nbytes, one.shared) for one in found] == \
        [("a", 8000, ["b"]), ("b", 8000, ["a"]), ("c", 80, [])]


def test_pieces_of_memory_count_as_the_whole(shell):
    memory = drupe.memory.MemoryUSMShared(4096, queue=drupe.queue("host"))
    shell.user_ns.update(m=memory, piece=drupe.memory.as_usm_memory(memory))
    found, _ = owners.by_variable(shell)
    assert [(one.name, one.nbytes) for one in found] == [("m", 4096), ("piece", 4096)]


def test_results_and_loops_among_objects(shell):
    kept = da.zeros(1000, device="host")
    loop = [kept]
    loop.append(loop)
    shell.user_ns["Out"][3] = loop
    shell.user_ns["_"] = kept
    found, _ = owners.leaks(shell)
    assert {"Out[3]", "_"} <= {one.name for one in found}
    shell.user_ns["mine"] = kept
    assert not {"Out[3]", "_"} & {one.name for one in owners.leaks(shell)[0]}


def test_a_view_has_the_same_in_all_forms():
    (da.ones(1000, device="host") + 1).queue.wait()
    for kind in ("events", "table", "memory", "dashboard"):
        view = views.View(kind)
        bundle, metadata = view._repr_mimebundle_()
        assert metadata == {views.TRACE: {"kind": kind}}
        assert bundle["text/plain"] == repr(view) == str(view)
        assert bundle["text/html"] == view._repr_html_() and "<script" not in bundle["text/html"]
        assert bundle[views.TRACE]["version"] == 1 == view.data()["version"]
        assert max(len(line) for line in view.text(80).splitlines()) <= 80
    assert json.loads(views.View("events").chrome())["traceEvents"]
    assert drupe._engine._cell() == 0 and drupe._engine._live_show() == []
    assert drupe._engine._live_open("dashboard") == 0
    for bad in ({"kind": "opera"}, {"kind": "events", "hz": 9}, {"kind": 3}):
        with pytest.raises((ValueError, TypeError)):
            drupe._engine._live_open(**bad)
