"""Cells that the server sends to the kernel, not the browser: jupyter-server-nbmodel and jupyter-server-documents."""
import json
import os
import struct
import time
import urllib.error

import pytest
from servers import ROOT, TIMEOUT

EXTENSIONS = ROOT / "build" / "servers"
CELLS = {"text": "import sys\nprint('one')\nprint('two', file=sys.stderr)\n1+1",
         "late": "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.1)",
         "shown": "from IPython.display import display\ndisplay('first')",
         "device": "import drupe.array as da\nfloat(da.arange(10, device='host').sum())",
         "error": "1/0"}

pytestmark = pytest.mark.skipif(not EXTENSIONS.is_dir(), reason="./dev clients installs the extensions")


def texts(outputs):
    """What the outputs say, streams of one name joined."""
    said = {}
    for output in outputs:
        data = output.get("data", {}).get("text/plain", output.get("text", output.get("ename")))
        kind = output.get("name", output["output_type"])
        said[kind] = said.get(kind, "") + "".join(data)
    return said


def check(by_cell):
    assert texts(by_cell["text"]) == {"stdout": "one\n", "stderr": "two\n", "execute_result": "2"}
    assert texts(by_cell["late"]) == {"stdout": "0\n1\n2\n"}
    assert texts(by_cell["shown"]) == {"display_data": "'first'"}
    assert texts(by_cell["device"]) == {"execute_result": "45.0"}
    assert texts(by_cell["error"]) == {"error": "ZeroDivisionError"}


def eventually(function, what):
    deadline = time.monotonic() + TIMEOUT
    while not (result := function()):
        assert time.monotonic() < deadline, "waited in vain for " + what
        time.sleep(0.1)
    return result


@pytest.fixture
def extended(make_server):
    def make(*names):
        path = os.pathsep.join(filter(None, [str(EXTENSIONS), os.environ.get("PYTHONPATH")]))
        return make_server(*["--ServerApp.jpserver_extensions=%s=True" % name for name in names], PYTHONPATH=path)

    return make


def test_nbmodel(extended):
    server = extended("jupyter_server_nbmodel")
    kernel = server.rest("api/kernels", "POST", {"name": "drupe"})

    def execute(code):
        answer, _ = server.call("api/kernels/%s/execute" % kernel["id"], "POST", {"code": code})
        place = answer.headers["Location"].lstrip("/")

        def result():
            answer, content = server.call(place)
            return content if answer.status == 200 else None

        return eventually(result, "the result of " + code)

    def outputs(code):
        return json.loads(execute(code)["outputs"])

    by_cell = {name: outputs(code) for name, code in CELLS.items()}
    check(by_cell)
    assert execute("1/0")["status"] == "error" and execute("1")["status"] == "ok"


def murmur2(text):
    """The hash (MurmurHash2 of 32 bits, seed 0) by which the server knows that it has the source that is meant."""
    data, mask, factor = text.encode(), 0xFFFFFFFF, 0x5BD1E995
    value, rest = len(data), len(data) % 4
    for (word,) in struct.iter_unpack("<I", data[:len(data) - rest]):
        word = word * factor & mask
        value = value * factor & mask ^ (word ^ word >> 24) * factor & mask
    if rest:
        value = (value ^ int.from_bytes(data[-rest:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return str(value ^ value >> 15)


def test_documents(extended):
    """The notebook lives in the server, which saves it with its outputs; nobody has it open."""
    server = extended("jupyter_server_fileid", "jupyter_server_documents")
    cells = [{"cell_type": "code", "id": name, "metadata": {}, "source": code, "outputs": [], "execution_count": None}
             for name, code in CELLS.items()]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    server.rest("api/contents/x.ipynb", "PUT", {"type": "notebook", "content": notebook})
    session = server.rest("api/sessions", "POST", {"path": "x.ipynb", "name": "x.ipynb", "type": "notebook",
                                                   "kernel": {"name": "drupe"}})
    identity = server.rest("api/fileid/index?path=x.ipynb", "POST", {})["id"]
    request = {"document_id": "json:notebook:" + identity,
               "cells": [{"cell_id": cell["id"], "source_hash": murmur2(cell["source"])} for cell in cells]}

    def accepted():
        try:
            return server.call("api/kernels/%s/execute" % session["kernel"]["id"], "POST", request)[0]
        except urllib.error.HTTPError as error:
            assert error.code == 400  # it has not loaded the notebook yet
            return None

    def saved():
        try:
            found = json.loads((server.notebooks / "x.ipynb").read_text(encoding="utf-8"))["cells"]
        except json.JSONDecodeError:
            return None  # the server is writing it just now
        return found if found[-1]["outputs"] else None

    eventually(accepted, "the document")
    by_cell = {cell["id"]: cell["outputs"] for cell in eventually(saved, "the outputs in the file")}
    check(by_cell)
