"""The notebooks about kernels, those of the sources and those of the course: each runs, with the solutions of its
exercises behind it."""
import json
import pathlib
import re

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "notebooks/sources", ROOT / "notebooks/training"]
NOTEBOOKS = sorted(path for folder in FOLDERS for path in folder.glob("*.ipynb"))
TRAINING = [path for path in NOTEBOOKS if path.parent.name == "training"]

# What must stand in the output of a notebook beyond that no assertion of it fails, and how many pictures it has.
SAID = {
    "000-device-control": (r"dpctl is answered by Drupe \(drupe.compat.dpctl\)", r"no GPU: no device matches 'gpu'|gpu",
                           r"refused: Cannot give \d+ compute units", r"device 32 bytes on",
                           r"300 x 200 distances in [\d,.]+ µs on|There is no OpenCL device here: ",
                           r"Drupe has no SYCL.*drupe/ext.h", r"\d+ rounds, [\d.]+ ms of the host"),
    "001-programming-model": (r"different queues", r"refused: .*bring them together", r"shared \+ host   -> shared",
                              r"\|A \(u - v\)\|² = [\d.]+", r"computed on |There is no OpenCL device here: ",
                              r"y = 64.5", r"told by the event: "),
    "002-heterogeneous-python": (r"plain Python +[\d.]+ s for 200 calls", r"compiled, prange +[\d.]+ s",
                                 r'gpu"\): (on gpu|DeviceNotFoundError: .*There are: .*host:cpu:0)',
                                 r'with device="gpu": (on gpu|DeviceNotFoundError)', r"correct on host:cpu:0",
                                 r"components are an Array .* on |There is no scikit-learn here"),
    "003-kernels": (r"pairs\n  device +", r"262,144 work-items in [\d.]+ s", r"a data race on rows\[",
                    r"DK003: .*\n.*\n +\^+",
                    r"an assertion does not hold, in work-item 700, line \d+ of inside",
                    r"the index 1024 is outside of a dimension of 1024 elements, in work-item 1023"),
    "00-setup": (r"host:cpu:0 +\d+ compute units", r"work-item 3 writes 103", r"DK004: The name 'j'.*\n.*\n +\^"),
    "01-introduction": (r"DK023: 'last'", r"kernel [\d.]+ ms, NumPy [\d.]+ ms"),
    "02-device-control": (r"x \+ y: .*different queues", r"add: .*different queues", r"second waited .* ms, ran"),
    "03-pairwise-distance": (r"largest error \d\.\de-\d\d",),
    "04-black-scholes": (r"kernel: [\d.]+ ms, \d+ million options in a second",),
    "05-k-means": (r"count +2,000,000 of 2,000,000", r"a data race on counts\[", r"no label changes any more"),
    "06-pair-counts": (r"local: [\d.]+ ms for 4,194,304 pairs",),
    "07-nearest-neighbours": (r"private memory: 104 bytes", r"K = 31: "),
    "08-reductions": (r"recursive +[\d.]+ ms", r"do not come to the same barrier"),
}
PICTURES = {"003-kernels": 1, "01-introduction": 1, "03-pairwise-distance": 2, "04-black-scholes": 1, "05-k-means": 1,
            "06-pair-counts": 1, "07-nearest-neighbours": 1, "08-reductions": 1}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def solutions(notebook):
    """The code of the solutions, which are folded in the text."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    folded = re.findall(r"^<details>\n(.*?)^</details>$", text, re.M | re.S)
    return ["\n".join(re.findall(r"^```python\n(.*?)^```$", one, re.M | re.S)) for one in folded]


def text_of(output):
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def test_the_notebooks_are_known():
    assert [path.stem for path in NOTEBOOKS] == list(SAID)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in solutions(notebook)]
    NotebookClient(notebook, kernel_name="drupe", timeout=120, coalesce_streams=True,
                   resources={"metadata": {"path": path.parent}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    said = ESCAPES.sub("", "\n".join(map(text_of, outputs)))
    for pattern in SAID[path.stem]:
        assert re.search(pattern, said), f"{pattern} is not in\n{said}"
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= PICTURES.get(path.stem, 0)
    assert not [output.text for output in outputs if output.get("name") == "stderr" and "Warning" in output.text]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_as_the_others_are(path):
    """Without outputs, formatted as Jupyter writes it, and with links that lead somewhere."""
    text = path.read_text()
    notebook = json.loads(text)
    assert text == json.dumps(notebook, indent=1) + "\n"
    nbformat.validate(notebook)
    assert notebook["metadata"]["kernelspec"]["name"] == "drupe"
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            assert source.startswith("# "), "a cell begins with what it does"
        for target in re.findall(r"\]\(([^)\s#:]+)(?:#\S*)?\)", source) if cell["cell_type"] == "markdown" else ():
            assert (path.parent / target).exists(), target
        assert max(map(len, source.splitlines())) <= 120


@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_a_module_has_exercises_with_solutions(path):
    notebook = nbformat.read(path, as_version=4)
    exercises = [cell for cell in notebook.cells if cell.source.startswith("## Exercise")]
    assert len(exercises) == len(solutions(notebook)) and len(exercises) in (1, 2)
    assert all("assert" in solution or "check(" in solution for solution in solutions(notebook))
    assert notebook.cells[0].source.startswith(f"# {int(path.stem[:2])}. ")


def test_the_course_lists_its_modules():
    first = nbformat.read(TRAINING[0], as_version=4).cells[0].source
    assert re.findall(r"\((\d\d-[\w-]+\.ipynb)\)", first) == [path.name for path in TRAINING[1:]]
