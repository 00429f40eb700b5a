#!/usr/bin/env python3
"""Fail when a document names what does not exist: a file, a folder, a C function, the target of a link.
Fail also when a page has outgrown its limit.

A name with a slash is a path from the root or from the page's folder, or folders that follow each other and a file
somewhere below them: `core/trace.c` is any `trace.c` in `engine/core`. A name without a slash is the name of any
file. A function is `drupe_...()` or `jk_...()`. A name with a word in capitals, such as `fuzz_NAME.c`, stands for
many files and is not looked for.

usage: tools/check_documents.py [ROOT]"""
import fnmatch
import os
import pathlib
import re
import sys

PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md", "docs/internals/*.md")
MOST_WORDS = {"README.md": 1200}
MOST_BYTES = {"ARCHITECTURE.md": 10240}
LEFT_OUT = {"build", "node_modules", "__pycache__"}  # and what begins with a dot
SUFFIXES = "c|h|py|pyi|js|mjs|cl|def|toml|ini|cmake|ipynb|md|png|in"
FILE = re.compile(rf"(?<![\w/.~$<*-])[\w*./-]*[\w*]\.(?:{SUFFIXES})(?![\w/(])")
FOLDER = re.compile(r"`([\w.-]+/[\w./-]*)`")
FUNCTION = re.compile(r"\b((?:drupe|jk)_\w+)\(\)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.M)
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
STANDS_FOR_MANY = re.compile(r"(?<![A-Za-z])[A-Z]{3,}(?=\W|$)")
OTHERS = {"ipython_kernel_config.py", "script.py", "Python.h"}  # of users and of other projects
OURS_IN_CAPITALS = re.compile(r"(README|ARCHITECTURE|CONTRIBUTING|CHANGELOG|COVERAGE|RESULTS)\.md$")


def files_of(root):
    """Every file of the tree, as a path from its root."""
    found = set()
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in LEFT_OUT and not name.startswith(".")]
        found |= {os.path.relpath(os.path.join(folder, name), root) for name in files}
    return found


def folders_of(files):
    return {parent.as_posix() for path in files for parent in pathlib.PurePosixPath(path).parents} - {"."}


def functions_of(root, files):
    """The names of all C functions, macros among them, that the sources mention."""
    names = set()
    for path in files:
        if path.endswith((".c", ".h")):
            names |= set(re.findall(r"\b(?:drupe|jk)_\w+", (root / path).read_text(encoding="utf-8", errors="replace")))
    return names


def known(name, page, paths):
    """Whether a name stands for one of the paths; it may be a pattern."""
    beside = os.path.normpath(os.path.join(os.path.dirname(page), name))
    folder, _, base = name.rpartition("/")
    patterns = {f"/{beside}", f"*/{name}", f"*/{folder}/*/{base}" if folder else f"*/{name}"}
    return any(fnmatch.fnmatchcase("/" + path, pattern) for pattern in patterns for path in paths)


def anchors_of(text):
    """The anchors of a page's headings, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in HEADING.findall(text)}


def link_problems(page, text, root):
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = root / os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else root / page
        if not path.exists():
            yield f"a link to {target}, which does not exist"
        elif anchor and path.suffix == ".md" and anchor not in anchors_of(path.read_text(encoding="utf-8")):
            yield f"a link to {target}: no heading of that name"


def size_problems(page, text):
    words, size = len(text.split()), len(text.encode())
    if words > MOST_WORDS.get(page, words):
        yield f"{words} words; {MOST_WORDS[page]} is the limit: move something to docs/"
    if size > MOST_BYTES.get(page, size):
        yield f"{size} bytes; {MOST_BYTES[page]} is the limit: move something to docs/internals/"


def looked_for(name):
    """Whether a name is of this tree, and of one file or folder (or a pattern)."""
    if name in OTHERS or name.startswith(("build/", ".")):
        return False
    return bool(OURS_IN_CAPITALS.search(name)) or not STANDS_FOR_MANY.search(name.replace("_", "."))


def name_problems(page, text, files, folders, functions):
    plain = LINK.sub("]", text)
    for name in sorted(filter(looked_for, set(FILE.findall(plain)))):
        if not known(name, page, files):
            yield f"{name} does not exist"
    for name in sorted(filter(looked_for, set(FOLDER.findall(FENCE.sub("", plain))))):
        if FILE.fullmatch(name):
            continue
        path = name.rstrip("/")
        if (path != name or name.split("/")[0] in folders) and not known(path, page, folders | files):
            yield f"the folder {name} does not exist"
    for name in sorted(set(FUNCTION.findall(plain)) - functions):
        yield f"no source has a function {name}()"


def problems(root):
    files = files_of(root)
    folders, functions = folders_of(files), functions_of(root, files)
    for page in sorted(path for path in files if any(fnmatch.fnmatchcase(path, pattern) for pattern in PAGES)):
        text = (root / page).read_text(encoding="utf-8")
        for problem in (*link_problems(page, text, root), *size_problems(page, text),
                        *name_problems(page, text, files, folders, functions)):
            yield f"{page}: {problem}"


def main(root):
    found = list(problems(root))
    print("\n".join(found) or "documents: every name in them exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve()))
