"""Programs that run whole notebooks: nbclient, papermill, nbconvert --execute."""
import os
import re
import subprocess
import sys

import nbformat
import papermill
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from papermill.exceptions import PapermillExecutionError


@pytest.fixture(autouse=True)
def _our_kernelspec(data_folder, monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", str(data_folder) + os.pathsep + os.environ.get("JUPYTER_PATH", ""))


def notebook(*sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernelspec = {"name": "drupe", "display_name": "Python 3 (Drupe)", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec})


def execute(*sources, **options):
    """Run cells with nbclient; the notebook with its outputs."""
    made = notebook(*sources)
    NotebookClient(made, kernel_name="drupe", **{"timeout": 120, **options}).execute()
    return made


def written(tmp_path, *sources):
    path = tmp_path / "in.ipynb"
    nbformat.write(notebook(*sources), path)
    return path


def text(cell, name="stdout"):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == name)


def errors(cell):
    return [output.ename for output in cell.outputs if output.output_type == "error"]


# --- nbclient ---


def test_a_notebook_with_its_results():
    made = execute("import sys\nprint('out'); print('err', file=sys.stderr); 6*7", "_ + 1")
    first, second = made.cells
    assert text(first) == "out\n" and text(first, "stderr") == "err\n"
    assert first.outputs[-1].data["text/plain"] == "42" and second.outputs[0].data["text/plain"] == "43"
    assert [cell.execution_count for cell in made.cells] == [1, 2]
    times = first.metadata.execution
    assert times["iopub.status.busy"] <= times["iopub.execute_input"] <= times["iopub.status.idle"]
    assert made.metadata.language_info.name == "python" and made.metadata.language_info.file_extension == ".py"


def test_an_error_ends_the_notebook():
    made = notebook("print('fine')", "1/0", "print('never')")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        NotebookClient(made, kernel_name="drupe", timeout=120).execute()
    assert text(made.cells[0]) == "fine\n" and errors(made.cells[1]) == ["ZeroDivisionError"]
    assert made.cells[2].outputs == [] and made.cells[2].execution_count is None


def test_a_result_that_cannot_be_shown_ends_the_notebook():
    with pytest.raises(CellExecutionError, match="no words"):
        execute("class Bad:\n    def __repr__(self): raise ValueError('no words')\nBad()", "1")


def test_errors_that_are_allowed():
    made = execute("1/0", "def f(:", "raise SystemExit(3)", "print('all the same')", allow_errors=True)
    assert [errors(cell) for cell in made.cells] == [["ZeroDivisionError"], ["SyntaxError"], ["SystemExit"], []]
    assert text(made.cells[3]) == "all the same\n"


def test_an_error_that_a_tag_expects():
    made = notebook("1/0", "print('after')")
    made.cells[0].metadata["tags"] = ["raises-exception"]
    NotebookClient(made, kernel_name="drupe", timeout=120).execute()
    assert errors(made.cells[0]) == ["ZeroDivisionError"] and text(made.cells[1]) == "after\n"


@pytest.mark.parametrize("endless", ["import time\nwhile True: time.sleep(0.01)", "import time; time.sleep(600)",
                                     "import asyncio; await asyncio.sleep(600)"])
def test_a_timeout_interrupts(endless):
    """Only this cell is stopped; the kernel serves the next one."""
    made = notebook("print('begin', flush=True)\n" + endless, "print('alive')")
    client = NotebookClient(made, kernel_name="drupe", interrupt_on_timeout=True, allow_errors=True,
                            timeout_func=lambda cell: 3 if cell is made.cells[0] else 120)
    client.execute()
    assert text(made.cells[0]) == "begin\n" and errors(made.cells[0]) == ["KeyboardInterrupt"]
    assert text(made.cells[1]) == "alive\n"


def test_a_timeout_ends_the_run():
    with pytest.raises(CellTimeoutError):
        execute("import time; time.sleep(600)", timeout=1)


def test_there_is_nobody_to_ask():
    for code in ("input('name? ')", "import getpass; getpass.getpass()"):
        made = execute(code, allow_errors=True)
        assert errors(made.cells[0]) == ["StdinNotImplementedError"]


def test_a_display_is_updated_in_the_cell_that_showed_it():
    made = execute("handle = display('first', display_id=True); print('beside')",
                   "handle.update('second')\nfrom IPython.display import display, update_display",
                   "display('third', display_id='mine'); display('fourth', display_id='mine');")
    assert made.cells[0].outputs[0].data["text/plain"] == "'second'"
    assert [output.data["text/plain"] for output in made.cells[2].outputs] == ["'fourth'", "'fourth'"]


def test_output_that_is_cleared():
    made = execute("from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('kept')",
                   "print('gone too')\nclear_output(wait=True)\nprint('kept too')")
    assert text(made.cells[0]) == "kept\n" and text(made.cells[1]) == "kept too\n"


def test_nothing_is_lost_at_idle():
    """What is written last, by Python, by C, by a child, by a thread that the cell joins, is in the notebook."""
    made = execute("import ctypes, os, subprocess, threading\n"
                   "for i in range(5000): print('line', i)\n"
                   "os.write(1, b'descriptor\\n')\n"
                   "ctypes.CDLL(None).puts(b'from C')\n"
                   "subprocess.run(['echo', 'child'])\n"
                   "thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()\n"
                   "print('end', end='')")
    lines = text(made.cells[0]).splitlines()
    assert lines[:5000] == ["line %d" % i for i in range(5000)]
    assert sorted(lines[5000:-1]) == ["child", "descriptor", "from C", "thread"] and lines[-1] == "end"


def test_a_late_failure_of_a_device_ends_the_notebook():
    """The work fails after its cell's last line, and nobody waits for it."""
    failing = ("import drupe, time, testwork\nfrom drupe import _engine\n"
               "event = testwork.task(drupe.Queue('host'), 0.01, 'the bearing broke')\ntime.sleep(0.3)")
    with pytest.raises(CellExecutionError, match="the bearing broke"):
        execute(failing, "print('after')")


LATE = ("import drupe, testwork\nfrom drupe import _engine\ngate = _engine._event_open('gate')\n"
        "event = testwork.task(drupe.Queue('host'), 0.0, 'the bearing broke', [gate])",
        "gate._finish()\nwhile not event.done: pass", "print('never')")


def test_a_failure_after_its_cell_ends_the_notebook():
    with pytest.raises(CellExecutionError, match="the bearing broke") as caught:
        execute(*LATE)
    assert "----> 4 event = testwork.task" in re.sub(r"\x1b\[[0-9;]*m", "", str(caught.value.traceback))


def test_the_state_of_widgets_is_stored():
    made = execute("import ipywidgets\nslider = ipywidgets.IntSlider(value=3); slider", "slider.value = 8",
                   "out = ipywidgets.Output(); display(out)\nwith out: print('captured')")
    states = made.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    (slider,) = [s["state"] for s in states.values() if s["model_name"] == "IntSliderModel"]
    assert slider["value"] == 8
    view = made.cells[0].outputs[0].data["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] in states
    (output,) = [s["state"] for s in states.values() if s["model_name"] == "OutputModel"]
    assert output["outputs"][0]["text"] == "captured\n"


# --- papermill ---


def test_papermill_stops_at_a_failure_after_its_cell(tmp_path):
    nbformat.write(notebook(*LATE), tmp_path / "in.ipynb")
    with pytest.raises(PapermillExecutionError, match="the bearing broke"):
        papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", progress_bar=False)
    made = nbformat.read(tmp_path / "out.ipynb", 4)
    assert not any("never" in str(cell.outputs) for cell in made.cells if cell.cell_type == "code")


def test_papermill_sets_parameters(tmp_path):
    source = notebook("alpha = 1; name = 'nobody'", "print(alpha, name)")
    source.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(source, tmp_path / "in.ipynb")
    papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", progress_bar=False,
                               parameters={"alpha": 0.5, "name": "Zoë"})
    made = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert text(made.cells[2]) == "0.5 Zoë\n"
    assert made.metadata.papermill.exception is None


def test_papermill_saves_a_notebook_that_failed(tmp_path):
    source = written(tmp_path, "print('fine')", "1/0", "print('never')")
    with pytest.raises(PapermillExecutionError, match="division by zero"):
        papermill.execute_notebook(source, tmp_path / "out.ipynb", progress_bar=False)
    made = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    codes = [cell for cell in made.cells if cell.cell_type == "code"]
    assert text(codes[0]) == "fine\n" and errors(codes[1]) == ["ZeroDivisionError"] and not codes[2].outputs


# --- nbconvert ---


def nbconvert(*arguments):
    return subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", *arguments],
                          capture_output=True, text=True, timeout=240, check=False)


def test_nbconvert_executes(tmp_path):
    done = nbconvert(written(tmp_path, "for i in range(2000): print(i)"), "--output", "out.ipynb")
    assert done.returncode == 0, done.stderr
    made = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert text(made.cells[0]).split() == [str(i) for i in range(2000)]


def test_nbconvert_fails_with_the_cell(tmp_path):
    source = written(tmp_path, "def broken():\n    return 1/0\nbroken()")
    done = nbconvert(source, "--output", "out.ipynb")
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr and not (tmp_path / "out.ipynb").exists()
    done = nbconvert(source, "--output", "out.ipynb", "--allow-errors")
    assert done.returncode == 0, done.stderr
    assert errors(nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[0]) == ["ZeroDivisionError"]
