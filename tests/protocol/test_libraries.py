"""What libraries do when they have recognised a notebook: one test each, with the real library."""
import zipfile

import pytest
import support

VIEW = "application/vnd.jupyter.widget-view+json"


def data_of(run, msg_type="display_data"):
    return [content["data"] for content in run.of(msg_type)]


# --- widgets ---


def test_tqdm_shows_its_notebook_bar(fresh):
    run = fresh.run("from tqdm.auto import tqdm\nfor i in tqdm(range(3)): pass", timeout=60)
    assert run.status == "ok" and run.text("stderr") == ""
    assert [VIEW in data for data in data_of(run)] == [True]
    updates = [c["data"]["state"] for c in run.of("comm_msg") if c["data"].get("method") == "update"]
    assert {"value": 3.0} in [{k: v for k, v in state.items() if k == "value"} for state in updates]


@pytest.fixture(scope="module")
def widgets(shared):
    run = shared.run("import ipywidgets as w, warnings", timeout=60)
    assert run.status == "ok"


def update(kernel, model, state, **more):
    """What a front-end sends when the user moves a widget."""
    data = {"method": "update", "state": state, "buffer_paths": more.pop("paths", [])}
    return kernel.comm("comm_msg", {"comm_id": model, "data": data}, **more)


def model_of(kernel, name):
    return kernel.run("%s.model_id" % name).result.strip("'")


def test_a_slider_moves_both_ways(kernel, widgets):
    run = kernel.run("seen = []\n"
                     "s = w.IntSlider(value=1); s.observe(lambda c: (seen.append(c.new), print('now', c.new)), "
                     "'value')\ns")
    assert VIEW in data_of(run, "execute_result")[0]
    assert len(run.of("comm_open")) == 3  # slider, layout, style
    model = model_of(kernel, "s")
    moved = update(kernel, model, {"value": 42})
    assert moved.text() == "now 42\n" and kernel.run("s.value, seen").result == "(42, [42])"
    echo = [c["data"] for c in moved.of("comm_msg") if c["comm_id"] == model]
    assert {"method": "echo_update", "state": {"value": 42}, "buffer_paths": []} in echo
    back = kernel.run("s.value = 7")
    assert {"method": "update", "state": {"value": 7}, "buffer_paths": []} in [c["data"] for c in back.of("comm_msg")]
    wrong = update(kernel, model, {"value": "no number"})
    assert wrong.of("error")[0]["ename"] == "TraitError" and kernel.run("s.value").result == "7"
    clicked = kernel.run("b = w.Button(); b.on_click(lambda b: 1/0); b.model_id").result.strip("'")
    content = {"comm_id": clicked, "data": {"method": "custom", "content": {"event": "click"}}}
    assert kernel.comm("comm_msg", content).of("error")[0]["ename"] == "ZeroDivisionError"


def test_a_front_end_asks_for_the_state_of_all_widgets(kernel, widgets):
    kernel.run("s2 = w.IntSlider(value=5)")
    opened = kernel.comm("comm_open", {"comm_id": "ctl", "target_name": "jupyter.widget.control", "data": {}},
                         metadata={"version": "1.0.0"})
    assert opened.of("comm_close") == [] and opened.of("error") == []
    asked = kernel.comm("comm_msg", {"comm_id": "ctl", "data": {"method": "request_states"}})
    (answer,) = [c["data"] for c in asked.of("comm_msg") if c["comm_id"] == "ctl"]
    assert answer["method"] == "update_states" and model_of(kernel, "s2") in answer["states"]
    known = kernel.ask("comm_info_request", {"target_name": "jupyter.widget"})["comms"]
    assert model_of(kernel, "s2") in known and "ctl" not in known


def test_an_output_widget_catches_by_message(kernel, widgets):
    kernel.run("o = w.Output()")
    run = kernel.run("with o:\n    print('caught'); display('shown'); 1/0\nprint('free')")
    model = model_of(kernel, "o")
    states = [m["content"]["data"]["state"].get("msg_id") if m["msg_type"] == "comm_msg" else m["msg_type"]
              for m in support.pieces(run.messages)[2:-1]]
    assert states == [run.id, "stream", "display_data", "error", "", "stream"] and run.status == "ok"
    assert kernel.run("o.clear_output()").of("clear_output") == [{"wait": False}]
    content = [{"output_type": "stream", "name": "stdout", "text": "x"}]
    assert update(kernel, model, {"outputs": content}).of("error") == []
    assert kernel.run("o.outputs[0]['text']").result == "'x'"
    kernel.run("out2 = w.Output(); b2 = w.Button()\n@out2.capture()\ndef clicked(b): print('from the click')\n"
               "b2.on_click(clicked)")
    content = {"comm_id": model_of(kernel, "b2"), "data": {"method": "custom", "content": {"event": "click"}}}
    click = kernel.comm("comm_msg", content)
    assert click.text() == "from the click\n"
    assert click.of("comm_msg")[0]["data"]["state"] == {"msg_id": click.id}


def test_interact(kernel, widgets):
    run = kernel.run("@w.interact(x=(0, 5))\ndef g(x): print('x is', x); return x * 2\nslider = g.widget.children[0]")
    assert "x is 2\n" in run.text() and any(VIEW in data for data in data_of(run))
    assert "x is 4\n" in update(kernel, model_of(kernel, "slider"), {"value": 4}).text()


def test_widgets_with_binary_values(kernel, widgets):
    opened = kernel.run("i = w.Image(value=b'\\x89PNG' + bytes(100_000))")
    (image,) = [m for m in opened.messages if m["msg_type"] == "comm_open" and m["buffers"]]
    assert image["content"]["data"]["buffer_paths"] == [["value"]]
    assert bytes(image["buffers"][0]) == b"\x89PNG" + bytes(100_000)
    moved = update(kernel, model_of(kernel, "i"), {"format": "jpeg"}, paths=[["value"]], buffers=[b"new\0bytes"])
    assert moved.of("error") == []
    assert kernel.run("bytes(i.value), i.format").result == "(b'new\\x00bytes', 'jpeg')"


def test_anywidget_with_numpy(kernel):
    run = kernel.run("import anywidget, traitlets, numpy as np\n"
                     "class Plot(anywidget.AnyWidget):\n"
                     "    _esm = 'export default { render() {} }'\n"
                     "    count = traitlets.Int(0).tag(sync=True)\n"
                     "    data = traitlets.Any().tag(sync=True, to_json=lambda v, w: {'data': memoryview(v)},\n"
                     "        from_json=lambda v, w: np.frombuffer(v['data'], dtype='f8'))\n"
                     "p = Plot(data=np.arange(3.0))\np.on_msg(lambda w, content, buffers: "
                     "print(content, [type(b).__name__ for b in buffers], [bytes(b) for b in buffers]))\np", timeout=60)
    assert run.status == "ok", run.reply
    assert VIEW in data_of(run, "execute_result")[0]
    opened = [m for m in run.messages if m["msg_type"] == "comm_open" and m["buffers"]]
    assert opened and len(bytes(opened[0]["buffers"][0])) == 24
    model = model_of(kernel, "p")
    moved = update(kernel, model, {"count": 3, "data": {}}, paths=[["data", "data"]], buffers=[bytes(16)])
    assert moved.of("error") == []
    assert kernel.run("p.count, p.data.tolist()").result == "(3, [0.0, 0.0])"
    custom = kernel.comm("comm_msg", {"comm_id": model, "data": {"method": "custom", "content": "hi"}}, buffers=[b"\1"])
    assert custom.text() == "hi ['memoryview'] [b'\\x01']\n"
    reply = kernel.run("p.send('out', buffers=[np.arange(2, dtype='u1')])")
    assert bytes([m for m in reply.messages if m["msg_type"] == "comm_msg"][0]["buffers"][0]) == b"\0\1"


@pytest.mark.parametrize("serve", ["k.do_one_iteration()", "pool.submit(k.do_one_iteration).result()"])
def test_ui_polled_in_a_cell(kernel, widgets, serve):
    """What jupyter-ui-poll does: the cell, or a thread of it, serves widget messages and keeps other cells out."""
    cell = kernel.send("import time, concurrent.futures as f\npool = f.ThreadPoolExecutor(1)\nflag = w.Checkbox()\n"
                       "print(flag.model_id)\nk = get_ipython().kernel\n"
                       "parent = k._parent_ident, k.get_parent()\nassert 'execute_request' in k.shell_handlers\n"
                       "while not flag.value:\n    %s; k.set_parent(*parent); time.sleep(0.005)\nflag.value" % serve)
    text = kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and m["parent_header"]["msg_id"] == cell)
    data = {"method": "update", "state": {"value": True}, "buffer_paths": []}
    kernel.send_comm("comm_msg", {"comm_id": text["content"]["text"].strip(), "data": data})
    assert kernel.finish(cell).result == "True"


# --- display ---


def test_rich(kernel):
    run = kernel.run("import rich; from rich.table import Table\nrich.print('[red]colour')\n"
                     "t = Table('a'); t.add_row('1'); t")
    assert "colour" in data_of(run)[0]["text/html"]
    assert "┃" in run.result


@pytest.mark.parametrize("wait", ["", "import asyncio; await asyncio.sleep(0)\n"])
def test_matplotlib_inline(kernel, wait):
    run = kernel.run("import matplotlib.pyplot as plt\n%splt.plot([1, 2]); plt.title('t')\n"
                     "print('before the figure')" % wait,
                     timeout=60)
    assert run.types[-2:] == ["display_data", "status"] and "image/png" in data_of(run)[0]
    assert kernel.run("plt.get_fignums()").result == "[]"


def test_ipympl(kernel):
    run = kernel.run("%matplotlib widget\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots(); ax.plot([1, 2])\n"
                     "fig.canvas",
                     timeout=60)
    assert run.status == "ok" and VIEW in data_of(run, "execute_result")[0]
    model = model_of(kernel, "fig.canvas")
    moved = kernel.comm("comm_msg", {"comm_id": model, "data": {"method": "custom", "content": {"type": "draw"}}})
    sent = [m for m in moved.messages if m["msg_type"] == "comm_msg" and m["buffers"]]
    assert sent and all(m["content"]["comm_id"] == model for m in sent)
    assert max(len(b) for m in sent for b in m["buffers"]) > 1000  # the picture
    kernel.run("plt.close('all')\n%matplotlib inline")


def test_plotly(kernel):
    run = kernel.run("import plotly.graph_objects as go\ngo.Figure(go.Scatter(y=[1, 2])).show()", timeout=60)
    assert data_of(run)[0]["application/vnd.plotly.v1+json"]["data"][0]["type"] == "scatter"


def test_pandas(kernel):
    run = kernel.run("import pandas as pd\npd.DataFrame({'a': [1]})", timeout=60)
    assert "<table" in data_of(run, "execute_result")[0]["text/html"]


# --- input, magics, commands ---


def test_debug_after_an_error(kernel):
    kernel.run("def broken(n): return n / 0\nbroken(3)")
    cell = kernel.send("%debug", allow_stdin=True)
    assert "ipdb" in kernel.asked(cell)["prompt"]
    kernel.client.input("p n + 4")
    kernel.asked(cell)
    kernel.client.input("q")
    run = kernel.finish(cell)
    assert run.status == "ok" and "7\n" in run.text()


def test_breakpoint(kernel):
    cell = kernel.send("def stops():\n    x = 5\n    breakpoint()\n    return x + 1\nstops()", allow_stdin=True)
    kernel.asked(cell)
    kernel.client.input("x = 40")
    kernel.asked(cell)
    kernel.client.input("c")
    assert kernel.finish(cell).result == "41"


def test_timeit_run_writefile(kernel, tmp_path):
    assert "per loop" in kernel.run("%%timeit -n 2 -r 2\n1 + 1").text()
    path = tmp_path / "written.py"
    assert "Writing" in kernel.run("%%%%writefile %s\nprint('from the file'); ran = 5" % path).text()
    assert kernel.run("%%run %s" % path).text() == "from the file\n"
    assert kernel.run("ran").result == "5"
    assert "from the file" in kernel.run("%%load %s" % path).reply["payload"][0]["text"]


def test_pip_install(kernel, tmp_path):
    wheel = tmp_path / "drupe_tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("drupe_tiny.py", "value = 'installed'\n")
        archive.writestr("drupe_tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: drupe-tiny\nVersion: 1.0\n")
        archive.writestr("drupe_tiny-1.0.dist-info/WHEEL",
                         "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("drupe_tiny-1.0.dist-info/RECORD", "")
    run = kernel.run("%%pip install --no-index --no-deps --target %s %s" % (tmp_path / "into", wheel), timeout=120)
    assert "Successfully installed" in run.text()
    assert kernel.run("import sys; sys.path.insert(0, %r); import drupe_tiny; drupe_tiny.value"
                      % str(tmp_path / "into")).result == "'installed'"


# --- processes, threads, tasks ---


def test_fork(kernel):
    run = kernel.run("import os\npid = os.fork()\nif pid == 0:\n    print('in the child', flush=True); os._exit(3)\n"
                     "print('left with', os.waitpid(pid, 0)[1] >> 8)")
    assert sorted(run.text().splitlines()) == ["in the child", "left with 3"] and run.status == "ok"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(kernel, method):
    run = kernel.run("import multiprocessing as mp\ncontext = mp.get_context(%r)\n"
                     "with context.Pool(2) as pool: values = pool.map(abs, [-1, -2])\n"
                     "process = context.Process(target=print, args=('from a process',))\n"
                     "process.start(); process.join()\nvalues, process.exitcode" % method, timeout=60)
    assert run.result == "([1, 2], 0)" and "from a process\n" in run.text()


def test_concurrent_futures(kernel):
    run = kernel.run("from concurrent.futures import ThreadPoolExecutor, ProcessPoolExecutor\n"
                     "with ThreadPoolExecutor(2) as e:\n"
                     "    e.submit(print, 'from a thread'); a = list(e.map(abs, [-1, -2]))\n"
                     "with ProcessPoolExecutor(2) as e:\n    b = list(e.map(abs, [-3]))\na, b", timeout=60)
    assert run.result == "([1, 2], [3])" and run.text() == "from a thread\n"


def test_a_task_that_outlives_its_cell(kernel):
    run = kernel.run("import asyncio\nasync def later():\n    await asyncio.sleep(0.2); display('late')\n"
                     "task = asyncio.create_task(later())")
    kernel.run("1")
    late = kernel.wait_iopub(lambda m: m["msg_type"] == "display_data" and "late" in m["content"]["data"]["text/plain"])
    assert late["parent_header"]["msg_id"] == run.id
