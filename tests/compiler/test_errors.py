"""Errors of kernels: every example of docs/kernel-errors.md raises its code, at the line and place that is meant."""
import linecache
import pathlib
import re
import traceback

import pytest

import drupe
from drupe.compiler.messages import CODES, KernelError

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "kernel-errors.md").read_text(encoding="utf-8")
BEFORE = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
SECTIONS = dict(re.findall(r"^## (DK\d+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
# What is marked in the example's text; None where no place is meant.
MARKED = {
    "DK001": None, "DK002": "try:", "DK003": "[x[i] for i in range(4)]", "DK004": "scael",
    "DK005": "total", "DK006": "value = 1.0", "DK007": None, "DK008": "item.get_id", "DK009": "table[0]",
    "DK010": "numpy.linspace(0, 1, 4)", "DK011": "x.append", "DK012": "x + y", "DK013": "x[0, 1] = 2",
    "DK014": "kapi.PrivateArray(n, numpy.float64)", "DK015": "kapi.group_barrier(item)",
    "DK016": "return x[item.get_id(0)]", "DK017": "factorial(n - 1)",
    "DK018": "kapi.any_of_group(item.get_group(), True)", "DK019": "x[0] + 300", "DK020": "def wait(item, x):",
    "DK021": "pair[0] = 2", "DK022": "break", "DK023": "last",
}
LAST_LINES = {"DK023": "        y[i] = x[i] - last"}  # where the marked text stands on several lines


def example(code):
    return BEFORE + re.search(r"```python\n(.*?)```", SECTIONS[code], re.DOTALL)[1]


def raised(text):
    """The error of a text, and the text's file."""
    filename = "<example>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    with pytest.raises(KernelError) as caught:
        exec(compile(text, filename, "exec"), {"__name__": "example"})
    return caught.value


def test_every_code_has_a_section_and_an_example():
    assert set(SECTIONS) == set(CODES) == set(MARKED)


@pytest.mark.parametrize("code", CODES)
def test_examples(code):
    text = example(code)
    error = raised(text)
    assert error.code == code, error
    message, lines = str(error), str(error).split("\n")
    assert lines[0] == "%s: %s" % (code, error.cause) and error.cause.endswith(".")
    assert not re.search(r"python/drupe|site-packages|Traceback|program\.c|error:|File \"", message)
    if MARKED[code] is None:
        assert error.line is None and "^" not in message
        return
    user_line = text.splitlines()[error.line - 1]
    assert lines[1] == "    " + user_line and error.shown == user_line and error.filename == "<example>"
    start, marks = len(lines[2]) - len(lines[2].lstrip()), lines[2].strip()
    assert set(marks) == {"^"} and lines[1][start:start + len(marks)] == MARKED[code]
    assert lines[1][4:] == LAST_LINES.get(code, lines[1][4:])
    assert lines[3] == "  line %d of %s()" % (error.line, error.function)


@pytest.mark.parametrize("code", [one for one in CODES if one not in ("DK001", "DK007")])
def test_the_traceback_ends_at_the_users_line(code):
    """None of the compiler's frames stand behind it, at most two of what was called, and no other exception."""
    error = raised(example(code))
    frames = traceback.extract_tb(error.__traceback__)
    behind = frames[[one.filename for one in frames].index("<example>") + 1:]
    assert len([one for one in behind if one.filename != "<example>"]) <= (1 if code < "DK022" else 2)
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def test_a_mark_stands_under_the_part_in_an_indented_function():
    def outer():
        @drupe.kernel
        def inner(item, x):
            if item.get_id(0) > 0:
                x[0] = undefined_name + 1
        return inner

    import drupe.array as da

    with pytest.raises(KernelError) as caught:
        drupe.call_kernel(outer(), drupe.Range(4), da.zeros(4))
    lines = str(caught.value).split("\n")
    at = lines[1].index("undefined_name")
    assert lines[2] == " " * at + "^" * len("undefined_name") and caught.value.code == "DK004"


def test_nothing_ran_and_the_next_launch_is_well():
    import drupe.array as da

    text = example("DK005")
    error = raised(text)
    assert error.code == "DK005"
    x = da.zeros(4)

    @drupe.kernel
    def well(item, x):
        x[item.get_id(0)] = 1

    drupe.call_kernel(well, drupe.Range(4), x)
    assert x.asnumpy().tolist() == [1, 1, 1, 1]


def test_a_sentence_of_each_code_is_in_its_section():
    for code in CODES:
        assert len(SECTIONS[code].strip().split("```")[0]) > 20, code
