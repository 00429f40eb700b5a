"""tools/check_documents.py: what documents name exists, and the two that everybody reads stay short."""
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CHECK = ROOT / "tools/check_documents.py"


def check(root):
    """The exit status, and the lines that are printed."""
    done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, timeout=60)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def tree(tmp_path):
    """A project of two C files, whose documents name both, a folder, a function, a pattern and a heading."""
    for name, text in {
            "engine/core/queue.c": "int drupe_queue_open(void) { return 0; }\n",
            "engine/core/text/queue_text.c": "",
            "README.md": "# Here\n[more](docs/more.md#what-is-more), [this](#here), [that](https://example.org/a.c)\n",
            "docs/more.md": "# What is *more*\n`core/queue.c`, `engine/core/queue_text.c`, queue*.c,\n`engine/core/`,\n"
                            "`drupe_queue_open()`, `fuzz_NAME.c`, `build/new.c`, [back](../README.md)\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_documents_name_exists():
    status, lines = check(ROOT)
    assert status == 0, lines


def test_a_tree_in_order_passes(tree):
    status, lines = check(tree)
    assert status == 0, lines


@pytest.mark.parametrize("text, problem", [
    ("`core/gone.c`", "core/gone.c does not exist"),
    ("`other/queue.c`", "other/queue.c does not exist"),
    ("`text/queue.c`", "text/queue.c does not exist"),
    ("`ore/queue.c`", "ore/queue.c does not exist"),
    ("`queue_text`.c, `text.c`", "text.c does not exist"),
    ("see gone.h.", "gone.h does not exist"),
    ("gone*.c", "gone*.c does not exist"),
    ("```\nqueue.c ► gone.c\n```", "gone.c does not exist"),
    ("`engine/rooms/`", "the folder engine/rooms/ does not exist"),
    ("`drupe_queue_close()`", "no source has a function drupe_queue_close()"),
    ("[there](gone.md)", "a link to gone.md, which does not exist"),
    ("[there](../README.md#gone)", "a link to ../README.md#gone: no heading of that name"),
    ("[there](#gone)", "a link to #gone: no heading of that name")])
def test_what_does_not_exist_is_told_with_its_page(tree, text, problem):
    with (tree / "docs/more.md").open("a") as page:
        page.write(text + "\n")
    assert check(tree) == (1, ["docs/more.md: " + problem])


def test_a_file_that_moves_away_is_missed(tree):
    shutil.move(tree / "engine/core/queue.c", tree / "engine/queue.c")
    assert check(tree) == (1, ["docs/more.md: core/queue.c does not exist"])


@pytest.mark.parametrize("name, unit, most", [("README.md", "word ", 1200), ("ARCHITECTURE.md", "é", 5120)])
def test_a_page_that_has_outgrown_its_limit_is_told(tree, name, unit, most):
    (tree / name).write_text(unit * most)
    assert check(tree)[0] == 0
    (tree / name).write_text(unit * (most + 1))
    status, lines = check(tree)
    assert status == 1 and len(lines) == 1 and lines[0].startswith(name) and "is the limit" in lines[0]
