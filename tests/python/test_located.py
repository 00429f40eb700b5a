"""drupe._located: errors of work that was submitted elsewhere, and the lines that they show."""
import linecache

import pytest

from drupe import _located


@pytest.fixture
def file():
    """Lines that linecache knows, and no disk."""
    name = "<located>"

    def written(*lines):
        linecache.cache[name] = (0, None, [line + "\n" for line in lines], name)
        return name

    yield written
    linecache.cache.pop(name, None)


def test_an_excerpt_has_three_lines_on_each_side_and_an_arrow(file):
    name = file(*(f"line {number}" for number in range(1, 13)))
    assert _located.excerpt(name, 5, 3, "located", False) == (
        "Cell In[3], line 5\n      2 line 2\n      3 line 3\n      4 line 4\n----> 5 line 5\n      6 line 6\n"
        "      7 line 7\n      8 line 8\n")
    assert _located.excerpt(name, 12, 0, "tools.py", False) == (
        "File tools.py:12\n      9 line 9\n     10 line 10\n     11 line 11\n---> 12 line 12\n")
    assert _located.excerpt(name, 1, 0, "tools.py", False).startswith("File tools.py:1\n----> 1 line 1\n")


def test_an_excerpt_in_colours(file):
    assert _located.excerpt(file("x = 1"), 1, 2, "", True) == (
        "\33[36mCell\33[32m In[2], line 1\33[39m\n\33[32m----> 1\33[39m x = 1\n")


def test_long_lines_are_cut_between_characters(file):
    shown = _located.excerpt(file("\u00e9" * 500), 1, 1, "", False).split("\n")[1]
    assert shown == "----> 1 " + "\u00e9" * 100 + "..."


def test_without_source_there_is_no_excerpt(file):
    name = file("x = 1")
    assert _located.excerpt(name, 2, 1, "", False) is None and _located.excerpt(name, 0, 1, "", False) is None
    assert _located.excerpt("<not there>", 1, 1, "", False) is None


def test_source_is_the_line_without_its_indentation(file):
    name = file("    x = 1", "")
    assert _located.source(name, 1) == "x = 1"
    assert _located.source(name, 2) is None and _located.source(None, 0) is None


def test_errors_are_joined_into_the_first_that_no_other_cell_shows():
    elsewhere, also, here, last = (ValueError(text) for text in ("elsewhere", "also", "here", "last"))
    elsewhere._shown_in = also._shown_in = 3
    elsewhere.add_note("of a handler")
    assert _located.joined([elsewhere, also, here, last]) is here
    assert here.__notes__ == ["elsewhere", "of a handler", "also", "last"]
    first, second = (ValueError(text) for text in ("first", "second"))
    first._shown_in = second._shown_in = 3
    assert _located.joined([first, second]) is first and first.__notes__ == ["second"]
