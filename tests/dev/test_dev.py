"""The developer command itself: what a new user types first."""
import base64
import contextlib
import io
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

import drupe.array

ROOT = pathlib.Path(__file__).resolve().parents[2]


def dev(*arguments, **environment):
    return subprocess.run([ROOT / "dev", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600,
                          env={**os.environ, **environment})


def notebook(path, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[-1].metadata["tags"] = ["summary"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def run_notebook(path, out):
    return subprocess.run([sys.executable, ROOT / "tools/run_notebook.py", path, "--out", out], capture_output=True,
                          text=True, timeout=120)


def test_the_tour_runs():
    done = dev("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "default device:" in done.stdout and "solve:" in done.stdout
    assert "./dev lab" in done.stdout
    executed = nbformat.read(ROOT / "build/01-tour.ipynb", as_version=4)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert len(code) >= 12
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert sum("image/png" in output.get("data", {}) for cell in code for output in cell.outputs) >= 2
    assert (ROOT / "build/01-tour.html").stat().st_size > 100_000


QUESTION = b"\x1b[c"
SHOW = """
import base64
from IPython.display import Image, display
display(Image(data=base64.b64decode(%r), format="png"))
"""


def png(width, height):
    """A picture of two colours, red on the left."""
    from PIL import Image

    picture, file = Image.new("RGB", (width, height), "blue"), io.BytesIO()
    picture.paste("red", (0, 0, width // 2, height))
    picture.save(file, "PNG")
    return file.getvalue()


def in_terminal(path, out, answer, **environment):
    """What a run of the notebook prints in a terminal that answers questions like this."""
    terminal, inside = pty.openpty()
    shown = b""
    with subprocess.Popen([sys.executable, ROOT / "tools/run_notebook.py", path, "--out", out, "--patience", "120"],
                          stdin=inside, stdout=inside, stderr=inside,
                          env={**os.environ, "TERM": "xterm-256color", "TERM_PROGRAM": "", **environment}) as program:
        os.close(inside)
        with contextlib.suppress(OSError):  # its other end is closed
            while part := os.read(terminal, 65536):
                before = shown.count(QUESTION)
                shown += part
                if shown.count(QUESTION) > before:
                    os.write(terminal, answer)
    os.close(terminal)
    assert program.returncode == 0, shown
    return shown


@pytest.mark.parametrize("answer, environment, begins", [
    (b"\x1b_Gi=31;OK\x1b\\\x1b[?62;c", {}, b"\x1b_Ga=T,f=100,m="),
    (b"\x1b[?62;4;22c", {}, b'\x1bP0;1q"1;1;40;20#'),
    (b"", {"TERM_PROGRAM": "iTerm.app"}, b"\x1b]1337;File=inline=1;size="),
    (b"\x1b[?62;22c", {}, None), (b"", {"TERM": "dumb"}, None)], ids=["kitty", "sixel", "iterm", "plain", "dumb"])
def test_a_terminal_that_can_shows_the_picture(tmp_path, answer, environment, begins):
    picture = png(40, 20)
    notebook(tmp_path / "seen.ipynb", "1", SHOW % base64.b64encode(picture).decode())
    shown = in_terminal(tmp_path / "seen.ipynb", tmp_path / "out", answer, **environment)
    page = (tmp_path / "out/seen.html").resolve().as_uri()
    assert b"To look at: " + page.encode() in shown and page.startswith("file:///")
    assert not any(one in shown for one in (b"\x1bP", b"\x1b_Ga", b"\x1b]")) if begins is None else begins in shown
    if begins and not begins.startswith(b"\x1bP"):
        assert base64.b64encode(picture) in shown
    elif begins:
        shown = shown[shown.index(b"\x1bP"):shown.rindex(b"\x1b\\")]
        colours = dict(re.findall(rb"#(\d+);2;(\d+;\d+;\d+)", shown))
        red, blue = (next(number for number, colour in colours.items() if colour == wanted)
                     for wanted in (b"100;0;0", b"0;0;100"))
        bands = shown.split(b"-")
        assert b"#" + red + b"!20~!20?" in bands[0] and b"#" + blue + b"!20?!20~" in bands[0]
        assert b"#" + red + b"!20B!20?" in bands[3]  # the last two lines of twenty


def test_without_a_terminal_there_is_the_address_alone(tmp_path):
    notebook(tmp_path / "seen.ipynb", SHOW % base64.b64encode(png(4, 4)).decode())
    done = run_notebook(tmp_path / "seen.ipynb", tmp_path / "out")
    assert "\x1b" not in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "file://" in line]
    assert line.startswith("To look at: file:///") and "/out/seen.html (" in line


def test_the_notebooks_are_a_row():
    """Each has a number of its own. 04 is to come."""
    names = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert [name[:3] for name in names] == ["%02d-" % n for n in (1, 2, 3, 5)]


def test_arrays_do_what_they_do_in_numpy(tmp_path):
    done = run_notebook(ROOT / "notebooks/02-arrays.ipynb", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the model is right about 9" in done.stdout and "plate: " in done.stdout
    executed = nbformat.read(tmp_path / "02-arrays.ipynb", as_version=4)
    outputs = {cell.source.splitlines()[0]: cell.outputs for cell in executed.cells if cell.cell_type == "code"}
    assert "[-1. , -0.5,  0. ,  0.5,  1. ]" in next(iter(outputs.values()))[-1].data["text/plain"]
    assert "drupe.array.imag(x) first" in outputs["# What meets what, and what is refused"][0].text
    assert "499999500000" in outputs["# Two queues of one device are two places"][0].text
    assert re.search(r"right about (9|100).* weights are an Array on ", outputs[OTHERS][0].text)
    (picture,) = [output for output in outputs["# What it looks like"] if "image/png" in output.get("data", {})]
    assert len(picture.data["image/png"]) > 5000


OTHERS = "# scikit-learn and SciPy on the same days"


def test_other_libraries_are_missed_kindly(monkeypatch, capsys):
    """With the packages that `./dev run` installs alone."""
    (cell,) = [cell.source for cell in nbformat.read(ROOT / "notebooks/02-arrays.ipynb", as_version=4).cells
               if cell.source.startswith(OTHERS)]
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(cell, {})
    said = capsys.readouterr().out
    assert "There is no scipy and no sklearn here: install both with %pip install scikit-learn" in said


def test_what_the_device_did_is_seen(tmp_path):
    done = run_notebook(ROOT / "notebooks/03-see-your-device.ipynb", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    executed = nbformat.read(tmp_path / "03-see-your-device.ipynb", as_version=4)
    outputs = {cell.source.split()[0]: cell.outputs for cell in executed.cells if cell.cell_type == "code"}
    shown = {magic: outputs[magic][-1].data for magic in ("%devices", "%%opencl", "%%events", "%devtime", "%dashboard")}
    assert all("text/html" in data for data in shown.values())
    assert "24" in next(line for line in shown["%%events"]["text/plain"].splitlines() if line.startswith("wave"))
    assert "20" in next(line for line in shown["%dashboard"]["text/plain"].splitlines() if line.startswith("wave"))
    assert "future" in outputs["%deverrors"][-1].data["text/plain"]
    assert "nonsense" in outputs["try:"][-1].text


def test_an_expression_is_one_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("DRUPE_FUSE_IDLE", "0")  # a busy machine may need so long for a line that it settles by itself
    done = run_notebook(ROOT / "notebooks/05-fusion.ipynb", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"NumPy [\d.]+ ms, eager [\d.]+ ms, fused [\d.]+ ms", done.stdout)
    executed = nbformat.read(tmp_path / "05-fusion.ipynb", as_version=4)
    outputs = {cell.source.splitlines()[0]: cell.outputs for cell in executed.cells if cell.cell_type == "code"}
    trace = outputs["%%events"][-1].data["application/vnd.drupe.trace+json"]
    assert trace["labels"] == ["multiply x3, add, subtract: lines 2-3", "multiply_f64", "add_f64", "subtract_f64"]
    assert len(trace["spans"]) == 6
    assert ": lines 2-3" in outputs["%%events"][-1].data["text/plain"]
    assert "multiply, sum" in outputs["%%events --table"][-1].data["text/plain"]
    assert "7 operations, which would run as 1 kernel" in outputs["# A pending array"][0].text
    assert re.match(r"y: None\nz: Pending: 2 operations(.*\n)+\[.*\]\nz: None\n",
                    outputs["# The end of the cell has settled y; print settles z"][0].text)
    assert "v2 = add(v1, 1)" in outputs["# In place"][0].text
    timed = outputs["%devtime 2 * x * x + 3 * x - 1"][-1].data
    assert "1 submission a loop" in timed["text/plain"]
    assert "\nran     multiply x3, add, subtract\n" in timed["text/plain"]
    assert "ran: multiply x3, add, subtract" in timed["text/html"]
    off = outputs["# Off for a block of code"][0].text
    assert off.startswith("eager: None\nfused: Pending: 2 operations")


def test_a_failing_cell_ends_the_run_with_its_traceback(tmp_path):
    notebook(tmp_path / "bad.ipynb", "print('fine')", "1/0", "print('never')")
    done = run_notebook(tmp_path / "bad.ipynb", tmp_path / "out")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and "1/0" in done.stderr
    assert "\x1b" not in done.stderr
    executed = nbformat.read(tmp_path / "out/bad.ipynb", as_version=4)
    assert executed.cells[0].outputs[0].text == "fine\n"
    assert not executed.cells[2].outputs


def test_an_asynchronous_failure_does_not_pass(tmp_path):
    """Work that fails on the device after its cell's last line must not let the run exit 0."""
    notebook(tmp_path / "late.ipynb",
             "import drupe, time\n"
             "import testwork\n"
             "event = testwork.task(drupe.Queue('host'), 0.01, 'the bearing broke')\n"
             "time.sleep(0.2)  # it has failed by now, and nobody waits for it", "print('after')")
    done = run_notebook(tmp_path / "late.ipynb", tmp_path / "out")
    assert done.returncode == 1, done.stdout
    assert "the bearing broke" in done.stderr


def test_a_kernel_that_dies_is_reported(tmp_path):
    notebook(tmp_path / "dead.ipynb", "import os; os._exit(3)")
    done = run_notebook(tmp_path / "dead.ipynb", tmp_path / "out")
    assert done.returncode == 1 and "kernel died" in done.stderr


def test_the_summary_is_repeated(tmp_path):
    notebook(tmp_path / "good.ipynb", "x = 1", "print('found', x)")
    done = run_notebook(tmp_path / "good.ipynb", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "[ 1/2]" in done.stdout and "\nfound 1\n" in done.stdout


def test_help_lists_every_command():
    text = dev("help").stdout
    lines = re.findall(r"^    ([a-z |-]+)\) ", (ROOT / "dev").read_text().split("main() {")[1], re.M)
    words = {word for line in lines for word in line.split(" | ") if not word.startswith("-")}
    assert {"run", "test", "lab", "console", "lint", "bench", "asan", "setup", "clean", "help"} <= words
    for command in words:
        assert f"\n  {command}" in text


@pytest.mark.parametrize("arguments", [("nonsense",), ("bench", "nonsense")])
def test_an_unknown_word_is_refused(arguments):
    done = dev(*arguments)
    assert done.returncode == 2 and "nonsense" in done.stderr


@pytest.mark.parametrize("word, tests, output", [
    ("fuzz_signature", "C tests", "100% tests passed, 0 tests failed out of 1"),
    ("help_lists_every", "Python tests", "1 passed")], ids=["C", "Python"])
def test_a_word_finds_c_tests_and_python_tests(word, tests, output):
    done = dev("test", word, "tests/dev")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"== {tests} with '{word}' in their names" in done.stdout and output in done.stdout
    assert done.stdout.count("100% tests passed") == (tests == "C tests")


def test_a_word_that_no_test_has_is_told():
    done = dev("test", "no_such_bearing", "tests/dev")
    assert done.returncode == 2 and "nothing matches 'no_such_bearing'" in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [("tests/dev", "-k", "help_lists"), ("-k", "help_lists", "tests/dev")])
def test_paths_and_options_go_to_pytest(arguments):
    done = dev("test", *arguments, "--collect-only")
    assert done.returncode == 0 and "C tests" not in done.stdout, done.stdout + done.stderr
    assert "test_help_lists_every_command" in done.stdout


def test_the_programs_of_c_tests_are_found(tmp_path):
    """Two ways in which CMake quotes names; what runs something else has no program to build."""
    (tmp_path / "unit").mkdir()
    (tmp_path / "unit/CTestTestfile.cmake").write_text(
        f'add_test([=[sums_plain]=] "{tmp_path}/unit/sums")\nadd_test(sums_again "{tmp_path}/unit/sums" "again")\n'
        f'add_test([=[sums_checked]=] "/usr/bin/python3" "sums.py")\nadd_test([=[other]=] "{tmp_path}/unit/other")\n')
    done = subprocess.run([sys.executable, ROOT / "tools/c_tests.py", tmp_path, "sums"], capture_output=True, text=True,
                          timeout=60)
    assert done.stdout == "unit/sums\n", done.stderr


def test_sanitizers_without_a_script_tell_how():
    done = dev("asan")
    assert done.returncode == 0 and "usage: ./dev asan SCRIPT" in done.stdout


def test_missing_packages_without_root_print_the_line_to_type(tmp_path):
    """With nothing installed and no way to become root: one apt-get line and exit status 2."""
    for name, body in {"dpkg-query": "exit 1", "id": "echo 1000", "sudo": "exit 1"}.items():
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\n{body}\n")
        tool.chmod(0o755)
    done = dev("run", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if "apt-get install" in line]
    assert len(lines) == 1 and "libzmq3-dev" in lines[0] and "pocl-opencl-icd" in lines[0]


def test_the_package_line_of_the_documents_is_the_one_dev_installs():
    dev_text = (ROOT / "dev").read_text()
    names = dev_text.split("PACKAGES_RUN=(")[1].split(")")[0].split()
    line = (ROOT / "docs/commands.md").read_text().split("apt-get install")[1].split("```")[0].replace("\\", " ")
    assert sorted(line.split()) == sorted(names)


@pytest.fixture
def tree(tmp_path):
    """A checkout that is set up: its Jupyter writes into the tour, as a run of it does, and its Python packages and
    Drupe itself count as installed."""
    tree = tmp_path / "tree"
    for folder in ("cmake", "base", "engine", "jkernel", "kernelspec", "python", ".venv/bin"):
        (tree / folder).mkdir(parents=True)
    for name in ("dev", "pyproject.toml", "CMakeLists.txt"):
        shutil.copy(ROOT / name, tree / name)
    (tree / "tools").symlink_to(ROOT / "tools")
    shutil.copytree(ROOT / "notebooks", tree / "notebooks")
    (tree / ".venv/bin/python").symlink_to(sys.executable)
    jupyter = ("for one; do case $one in --notebook-dir=*) folder=${one#*=};; esac; done\n"
               "echo ran >>\"$folder/01-tour.ipynb\"\n")
    for path, body in ((tree / ".venv/bin/jupyter", jupyter), (tmp_path / "dpkg-query", "printf installed\n")):
        path.write_text("#!/bin/sh\n" + body)
        path.chmod(0o755)
    for stamp in ("run", "lab", "installed"):
        (tree / ".venv" / (".drupe-" + stamp)).touch()
    return tree


def test_lab_opens_a_copy_of_the_notebooks(tree, tmp_path):
    def lab():
        done = subprocess.run([tree / "dev", "lab"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    original, copy = tree / "notebooks", tree / "build/notebooks"
    names = sorted(path.name for path in original.iterdir())
    before = {path: path.read_bytes() for path in original.rglob("*") if path.is_file()}
    assert f"copies in {copy}" in lab()
    assert {path: path.read_bytes() for path in original.rglob("*") if path.is_file()} == before
    assert [name for name in sorted(path.name for path in copy.iterdir()) if not name.startswith(".")] == names
    assert (copy / "extension/gemv.c").read_bytes() == (original / "extension/gemv.c").read_bytes()
    # The user's change stays; a new original comes where there is none, and is told of where there is one.
    (copy / "mine.ipynb").touch()
    for name in ("01-tour.ipynb", "03-see-your-device.ipynb"):
        with (original / name).open("a") as file:
            file.write("new")
    said = lab()
    assert "01-tour.ipynb has a newer original" in said and "03-see" not in said
    assert (copy / "01-tour.ipynb").read_text().endswith("ran\nran\n") and (copy / "mine.ipynb").exists()
    assert (copy / "03-see-your-device.ipynb").read_text().endswith("new")


@pytest.mark.parametrize("name, refused", [("gemv", "y must have 1 dimensions, not 2"),
                                           ("solver", "xvec is not an array of exec_queue")])
def test_the_notebooks_of_extensions_run(tmp_path, name, refused):
    done = run_notebook(ROOT / f"notebooks/extension/{name}.ipynb", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    text = "".join(output.get("text", "") for cell in nbformat.read(tmp_path / f"{name}.ipynb", as_version=4).cells
                   if cell.cell_type == "code" for output in cell.outputs)
    assert "correct: True" in text and refused in text and "correct: False" not in text


def test_without_a_browser_to_be_had_its_tests_are_left_out(tmp_path):
    """A Debian without node and chromium, whose package sources do not answer."""
    for name in ("bash", "dirname", "id", "mkdir", "tail", "env", "sudo", "cat"):
        found = shutil.which(name)
        if found:
            (tmp_path / name).symlink_to(found)
    (tmp_path / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'E: no chromium here'\nexit 100\n")
    for name in ("dpkg-query", "apt-get"):
        (tmp_path / name).chmod(0o755)
    done = dev("clients", "--if-possible", PATH=str(tmp_path))
    assert done.returncode == 0 and "SKIPPED: the tests in browsers" in done.stdout, done.stdout + done.stderr
    assert dev("clients", PATH=str(tmp_path)).returncode == 2


@pytest.mark.skipif(not shutil.which("ctest"), reason="needs ctest")
@pytest.mark.parametrize("beside, told", [("", 0), ("add_test(mute false)\n", 1),
                                          ('add_test(bad sh -c "echo [  FAILED  ] bad; echo %s; false")\n', 1)])
def test_a_leaksanitizer_that_broke_down_is_no_finding(tmp_path, beside, told):
    words = "==1==LeakSanitizer has encountered a fatal error."
    beside = beside % words if "%s" in beside else beside
    (tmp_path / "CTestTestfile.cmake").write_text('add_test(fine true)\nadd_test(ends sh -c "echo %s; false")\n%s'
                                                  % (words, beside))
    assert subprocess.run(["ctest"], cwd=tmp_path, capture_output=True, timeout=60).returncode != 0
    log = tmp_path / "Testing/Temporary/LastTest.log"
    assert subprocess.run([sys.executable, ROOT / "tools/failures.py", "--of-leaksanitizer", log],
                          timeout=60).returncode == told


@pytest.mark.skipif(not shutil.which("ctest"), reason="needs ctest")
def test_the_reasons_of_failed_c_tests_come_last(tmp_path):
    cases = ("[ RUN      ] good\\n[       OK ] good\\n[ RUN      ] bad\\n[  ERROR   ] --- 1 != 2\\n"
             "[  FAILED  ] bad\\n[ RUN      ] more\\n[       OK ] more\\n[==========] 3 test(s) run.\\n")
    (tmp_path / "CTestTestfile.cmake").write_text(
        'add_test(fine echo all is well)\nadd_test(cases sh -c "printf \'%s\'; exit 1")\n'
        'add_test(plain sh -c "seq 1000; exit 3")\nadd_test(undefined sh -c "echo x.c:1: runtime error: odd; false")\n'
        'add_test(mute false)\n' % cases)
    assert subprocess.run(["ctest"], cwd=tmp_path, capture_output=True, timeout=60).returncode != 0
    done = subprocess.run([sys.executable, ROOT / "tools/failures.py", tmp_path / "Testing/Temporary/LastTest.log"],
                          capture_output=True, text=True, timeout=60)
    said = {block.splitlines()[0]: block.splitlines()[1:] for block in re.split("^-- ", done.stdout, flags=re.M)[1:]}
    assert set(said) == {"cases", "plain", "undefined", "mute"} and done.returncode == 0
    assert [line.strip() for line in said["cases"]] == ["case bad", "[  ERROR   ] --- 1 != 2", "[  FAILED  ] bad"]
    assert said["plain"][-1].strip() == "1000" and len(said["plain"]) == 25
    assert said["undefined"] == ["   x.c:1: runtime error: odd"] and said["mute"] == ["   (no output)"]
