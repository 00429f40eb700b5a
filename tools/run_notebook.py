#!/usr/bin/env python3
"""Execute a notebook on the Drupe kernel, one line of progress per cell.

Writes the executed notebook and an HTML page. What cells tagged "summary" print is repeated at the end, and a terminal
that can shows the last picture. A cell that fails ends the run with exit status 1 and that cell's traceback."""
import argparse
import base64
import pathlib
import re
import sys
import time

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

import terminal

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Progress:
    """One line per code cell: its number, its first line, how long it took."""

    def __init__(self, notebook):
        self.cells = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code" and cell.source.strip()]
        self.started = 0.0

    def start(self, cell, cell_index, **_):
        if cell_index not in self.cells:
            return
        lines = [line for line in cell.source.splitlines() if line.strip()]
        title = lines[0].strip()
        title = title.lstrip("#% ").strip() if title.startswith("#") else title
        number = self.cells.index(cell_index) + 1
        print(f"  [{number:2d}/{len(self.cells)}] {title[:66]:<66}", end=" ", flush=True)
        self.started = time.perf_counter()

    def done(self, cell, cell_index, **_):
        if cell_index in self.cells:
            print(f"{time.perf_counter() - self.started:6.2f} s", flush=True)


def text_of(cell):
    """The plain text that a cell put out."""
    parts = []
    for output in cell.get("outputs", ()):
        parts.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return "".join(parts).rstrip("\n")


def last_picture(notebook):
    """The bytes of the last PNG that a cell put out, or None."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pictures = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return base64.b64decode(pictures[-1]) if pictures else None


def write_html(notebook, path):
    from nbconvert import HTMLExporter

    path.write_text(HTMLExporter(template_name="lab").from_notebook_node(notebook)[0])


def execute(notebook, source, kernel):
    progress = Progress(notebook)
    client = NotebookClient(notebook, kernel_name=kernel, timeout=600, coalesce_streams=True,
                            resources={"metadata": {"path": source.parent}},
                            on_cell_start=progress.start, on_cell_executed=progress.done)
    try:
        client.execute()
    except CellExecutionError as problem:
        print("failed\n\n" + ANSI.sub("", str(problem)), file=sys.stderr)
        return False
    except DeadKernelError:
        print("failed\n\nThe kernel died while it executed this cell.", file=sys.stderr)
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--kernel", default="drupe")
    parser.add_argument("--patience", type=float, default=0.5, metavar="SECONDS",
                        help="how long a terminal has to say that it can show pictures")
    options = parser.parse_args()
    if not options.notebook.is_file():
        print(f"there is no notebook {options.notebook}", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.read(options.notebook, as_version=4)
    print(f"{options.notebook} on the kernel '{options.kernel}'")
    good = execute(notebook, options.notebook, options.kernel)
    executed = options.out / options.notebook.name
    nbformat.write(notebook, executed)
    page = executed.with_suffix(".html")
    write_html(notebook, page)
    for cell in notebook.cells:
        if good and "summary" in cell.metadata.get("tags", ()):
            print("\n" + text_of(cell))
    picture = last_picture(notebook) if good else None
    if picture:
        terminal.show(picture, options.patience)
    print(f"\nTo look at: {page.resolve().as_uri()} (the executed notebook is {executed.name} beside it)")
    if good:
        print("To explore it yourself in JupyterLab: ./dev lab")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
