#!/usr/bin/env python3
"""What ./dev lint checks: layers, headers, documents, function lengths, generated files, formatting, clang-tidy."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("base", "broker", "engine", "jkernel", "python", "tests")
LONGEST_FUNCTION = 60
LONGEST_LINE = 120


def sources(*suffixes):
    return sorted(p for folder in FOLDERS for suffix in suffixes for p in (ROOT / folder).rglob(f"*{suffix}"))


def step(title, problems):
    text = "\n".join(problems)
    print(f"{'FAIL' if problems else 'ok  '}  {title}" + (f"\n{text}" if text else ""), flush=True)
    return not problems


def run(*command):
    done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True)
    return [] if done.returncode == 0 else [done.stdout + done.stderr]


def long_functions():
    """C functions whose braces span more than the limit; the style puts both braces in column 0."""
    for path in sources(".c"):
        start = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line == "{":
                start = number
            elif line == "}" and start is not None:
                if number - start - 1 > LONGEST_FUNCTION:
                    yield f"{path.relative_to(ROOT)}:{start}: a function of {number - start - 1} lines"
                start = None


def repeated_names():
    """A name of a C file says which one is meant: two never share it."""
    first = {}
    for path in sources(".c", ".h"):
        other = first.setdefault(path.name, path)
        if other is not path:
            yield f"{path.relative_to(ROOT)}: {other.relative_to(ROOT)} has the same name"


def long_lines():
    for path in [*sources(".py"), *sorted((ROOT / "tools").glob("*.py")), *sorted((ROOT / "notebooks").rglob("*.py"))]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > LONGEST_LINE:
                yield f"{path.relative_to(ROOT)}:{number}: a line of {len(line)} characters"


# What a content security policy forbids, or what would make text into markup.
FORBIDDEN = re.compile(r"\beval\(|new Function\(|\.outerHTML|insertAdjacentHTML|document\.write|setAttribute\('style'"
                       r"|\.innerHTML(?!.*sanitize)")


# Calls with which a room goes around its own rules (see state.h and wait.h there), unless a comment says why not.
BORROWS = re.compile(r"\b(PyDict_GetItem\w*|PyDict_Next|PyList_(?:GetItem|GET_ITEM)|PySequence_Fast\w*"
                     r"|PyWeakref_GetObject|PyImport_AddModule|PySys_GetObject)\(")
OWN_RELEASES = re.compile(r"\b(drupe_queue_release|drupe_queue_collect)\(")


def reference_problems():
    """engine/python: what is borrowed from a container of Python's, and queues that are let go under the GIL."""
    for path in sorted((ROOT / "engine" / "python").rglob("*.c")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{path.relative_to(ROOT)}:{number}"
            if BORROWS.search(line) and "borrowed" not in line:
                yield f"{where}: retain what a dict or list gives, and say /* borrowed for this line alone */"
            if OWN_RELEASES.search(line) and path.name != "wait.c":
                yield f"{where}: drupe_py_queue_release() and drupe_py_collect() do not wait, nor run Python code"


def script_problems():
    """The JupyterLab extension is loaded as it is written: what a bundler would have found is found here."""
    folder = ROOT / "python" / "labextension" / "static"
    for path in sorted(folder.glob("*.js")):
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{path.relative_to(ROOT)}:{number}"
            if len(line) > LONGEST_LINE:
                yield f"{where}: a line of {len(line)} characters"
            if FORBIDDEN.search(line):
                yield f"{where}: not under a strict content security policy: {line.strip()}"
        for names, origin in re.findall(r"^import \{([^}]*)\} from '([^']*)';", text, re.MULTILINE):
            source = folder / origin
            exported = set(re.findall(r"^export (?:async )?(?:const|function|class) (\w+)",
                                      source.read_text(encoding="utf-8"), re.MULTILINE)) if source.is_file() else set()
            for name in (name.strip() for name in names.split(",")):
                if name not in exported:
                    yield f"{path.relative_to(ROOT)}: {origin} does not export {name}"
                elif len(re.findall(rf"\b{name}\b", text)) < 2:
                    yield f"{path.relative_to(ROOT)}: {name} is imported and not used"
        if shutil.which("node"):
            yield from run("node", "--check", path)


def format_problems():
    files = sources(".c", ".h")
    # The pinned wheel beside this interpreter: another version would format differently.
    tool = pathlib.Path(sys.executable).parent / "clang-format"
    return run(tool, "--dry-run", "-Werror", "--style=file", *files) if files else []


def tidy_problems(build):
    problems = run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DDRUPE_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug",
                   f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    if problems:
        return problems
    problems = run("cmake", "--build", build)  # generated headers must exist
    if problems:
        return problems
    database = (build / "compile_commands.json").read_text()
    files = [p for p in sources(".c") if str(p) in database]

    def tidy(path):
        done = subprocess.run(["clang-tidy", "-p", str(build), "--quiet", str(path)], cwd=ROOT, capture_output=True,
                              text=True)
        return re.sub(r"(?m)^\d+ warnings? .*\n?", "", done.stdout) if done.returncode else ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(tidy, files) if text]


def call_problems(build):
    """Between rooms: of the objects that tidy_problems() has built."""
    return run(sys.executable, "tools/check_calls.py", build)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/lint")
    parser.add_argument("--quick", action="store_true", help="only what needs no compiler")
    options = parser.parse_args()
    good = [
        step("layers", run(sys.executable, "tools/check_layers.py")),
        step("public headers", run(sys.executable, "tools/check_headers.py")),
        step("documents", run(sys.executable, "tools/check_documents.py")),
        step("functions under 60 lines", list(long_functions())),
        step("names of C files", list(repeated_names())),
        step("Python lines of up to 120 characters", list(long_lines())),
        step("references in engine/python", list(reference_problems())),
        step("JupyterLab extension", list(script_problems())),
        step("generated files", run(sys.executable, "engine/kernels/gen.py", "--check")),
    ]
    if not options.quick:
        good.append(step("clang-format", format_problems()))
        good.append(step("clang-tidy", tidy_problems(options.build.resolve())))
        good.append(step("calls between rooms", call_problems(options.build.resolve())))
        good.append(step("branches of core that no test reaches", run(sys.executable, "tools/room_coverage.py")))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
