"""Programs that run notebooks and scripts, with the kernel installed under the name of ipykernel's: `python3`.

Where the name is that, nbclient and what is built on it add options for IPython to the kernel's command line.
"""
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

import nbformat
import papermill
import pytest
from nbclient import NotebookClient

SCRIPTS = pathlib.Path(sysconfig.get_path("scripts"))
CODE = "print('kernel:', get_ipython().kernel.implementation, get_ipython().history_manager.hist_file)\n6 * 7"


@pytest.fixture(autouse=True)
def python3(spec_folder, tmp_path, monkeypatch):
    """The kernelspec of that name is ours; nothing of the user's own is read."""
    data = tmp_path / "data" / "kernels" / "python3"
    data.mkdir(parents=True)
    spec = json.loads((spec_folder / "drupe" / "kernel.json").read_text())
    (data / "kernel.json").write_text(json.dumps(spec))
    for name, folder in (("JUPYTER_PATH", tmp_path / "data"), ("JUPYTER_DATA_DIR", tmp_path / "user"),
                         ("JUPYTER_RUNTIME_DIR", tmp_path / "runtime"), ("JUPYTER_CONFIG_DIR", tmp_path / "config")):
        monkeypatch.setenv(name, str(folder))
    (tmp_path / "runtime").mkdir(mode=0o700)
    return spec


@pytest.fixture
def written(tmp_path):
    """A notebook that asks for `python3`, as a file."""
    kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)], metadata={"kernelspec": kernelspec})
    nbformat.write(made, tmp_path / "in.ipynb")
    return tmp_path / "in.ipynb"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240, check=False,
                          **options)
    assert done.returncode == 0, done.stderr
    return done


def check(made, history):
    cell = [cell for cell in made.cells if cell.cell_type == "code"][-1]
    text, result = cell.outputs
    assert text.text == "kernel: drupe %s\n" % history and result.data["text/plain"] == "42"


def test_jupyter_run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(CODE + "\nprint('the end')")
    assert run(SCRIPTS / "jupyter", "run", "--kernel=python3", script).stdout.endswith("the end\n")
    done = run(SCRIPTS / "jupyter", "run", input="print('kernel:', get_ipython().kernel.implementation)")
    assert done.stdout == "kernel: drupe\n"
    script.write_text("1/0")
    failed = subprocess.run([SCRIPTS / "jupyter", "run", script], capture_output=True, text=True, timeout=240,
                            check=False)
    assert failed.returncode != 0 and "ZeroDivisionError" in failed.stderr


def test_jupyter_execute(written):
    run(SCRIPTS / "jupyter", "execute", "--inplace", written)
    check(nbformat.read(written, 4), ":memory:")


def test_nbclient(written):
    made = nbformat.read(written, 4)
    NotebookClient(made, timeout=120).execute()
    check(made, ":memory:")


def test_nbclient_with_options_of_the_user(written, tmp_path):
    made = nbformat.read(written, 4)
    client = NotebookClient(made, timeout=120, extra_arguments=["--IPKernelApp.exec_lines=from_option = 1"],
                            ipython_hist_file=str(tmp_path / "history.sqlite"))
    made.cells[0].source = CODE.replace("6 * 7", "from_option + 41")
    client.execute()
    check(made, tmp_path / "history.sqlite")
    assert (tmp_path / "history.sqlite").exists()


def test_papermill(written, tmp_path):
    out = tmp_path / "out.ipynb"
    papermill.execute_notebook(written, out, progress_bar=False, parameters={"a": 1})
    check(nbformat.read(out, 4), ":memory:")
    run(sys.executable, "-m", "papermill", "--no-progress-bar", "-k", "python3", written, out)
    check(nbformat.read(out, 4), ":memory:")


def test_nbconvert(written, tmp_path):
    run(sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", written, "--output", "out.ipynb")
    check(nbformat.read(tmp_path / "out.ipynb", 4), ":memory:")
    run(sys.executable, "-m", "nbconvert", "--to", "html", "--execute", written, "--output", "out.html",
        "--ExecutePreprocessor.extra_arguments=--InteractiveShell.autocall=1")
    assert "kernel: drupe :memory:" in (tmp_path / "out.html").read_text()


def test_install_under_that_name(tmp_path):
    """`python -m drupe install --name python3` takes the place of ipykernel's kernelspec."""
    run(sys.executable, "-m", "drupe", "install", "--prefix", tmp_path / "prefix", "--name", "python3")
    env = {**os.environ, "JUPYTER_PATH": str(tmp_path / "prefix/share/jupyter")}
    done = run(SCRIPTS / "jupyter", "run", env=env, input="print(get_ipython().kernel.implementation)")
    assert done.stdout == "drupe\n"
