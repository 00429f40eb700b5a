"""The magics of Drupe, as front-ends see them."""
import json

import pytest


def shown(run):
    """The bundle that a magic displayed."""
    (content,) = run.of("display_data")
    return content["data"]


def refused(run):
    """The line of a UsageError."""
    assert run.status == "error" and run.reply["ename"] == "UsageError" and not run.of("error")
    text = run.text("stderr")
    assert text.startswith("UsageError: ") and text.count("\n") == 1, text
    return text


def completions(kernel, code):
    reply = kernel.ask("complete_request", {"code": code, "cursor_pos": len(code)})
    assert code[reply["cursor_start"]:] == code[reply["cursor_start"]:reply["cursor_end"]]
    return [code[:reply["cursor_start"]] + one for one in reply["matches"]]


def test_nothing_is_loaded_before_it_is_used(fresh):
    loaded = "import sys; [name for name in sys.modules if name.startswith('drupe.')]"
    assert "%devices" in fresh.run("%lsmagic").result and "'drupe.magics.base'" not in fresh.run(loaded).result
    assert completions(fresh, "%devi") == ["%device", "%%device", "%devices"]
    assert "'drupe.magics.base'" not in fresh.run(loaded).result
    assert completions(fresh, "%devices op") == ["%devices opencl"]  # no driver is opened for it
    assert "'drupe._engine'" not in fresh.run(loaded).result
    fresh.run("%devices host")
    assert "'drupe.magics.devices'" in fresh.run(loaded).result


def test_options_that_all_have(kernel):
    assert shown(kernel.run("%devices host"))["text/plain"].startswith("device ")
    assert json.loads(kernel.run("%devices host --json").text())[0]["filter"] == "host:cpu:0"
    run = kernel.run("%devices host -q -o found")
    assert not run.of("display_data") and kernel.run("found.devices[0].filter_string").result == "'host:cpu:0'"
    for code in ("%devices -h", "%devices host --help", "%%devices?", "%device -h"):
        assert kernel.run(code).status == "ok"
    help_text = shown(kernel.run("%devices host -h"))
    assert "Examples:" in help_text["text/plain"] and "<table" in help_text["text/html"]


@pytest.mark.parametrize("code, says", [
    ("%devices --jsn", "did you mean --json?"),
    ("%devices nonsense", "nonsense"),
    ("%devices 'host", "no closing quotation"),
    ("%devices -o 1x", "is no name"),
    ("%devices -o", "expected one argument"),
    ("%devices host cpu", "cpu is not understood"),
    ("%%device\n1", "needs a device"),
    ("%%device zürich\n1", "zürich"),
])
def test_errors_are_one_line(kernel, code, says):
    assert says in refused(kernel.run(code))


def test_completion(kernel):
    kernel.run("import drupe; drupe.devices(); some_name = 1")
    assert {"%devices --json", "%devices -o", "%devices --help"} <= set(completions(kernel, "%devices -"))
    assert "%devices gpu,host:cpu:0" in completions(kernel, "%devices gpu,host:")
    assert "%devices -o some_name" in completions(kernel, "%devices -o some_n")
    assert completions(kernel, "%devices --output=some_n") == ["%devices --output=some_name"]


def test_inspection(kernel):
    for code in ("%devices", "%%device", "%devices?"):
        reply = kernel.ask("inspect_request", {"code": code, "cursor_pos": 4, "detail_level": 0})
        assert reply["found"] and reply["data"]["text/plain"].count("\n    %") >= 2, reply
        assert "text/html" in reply["data"]


HERE = "\nimport drupe.array\nstr(drupe.array.ones(2).device.filter_string)"


def test_the_device_of_a_cell(kernel):
    assert kernel.run("%%device host" + HERE).result == "'host:cpu:0'"
    before = kernel.run(HERE).result
    kernel.run("part = 0; where = 'host'")
    kernel.run("%device $where:cpu:0{1}.{part}")
    try:
        assert ":0.0" in kernel.run(HERE).result and ":0.0" in shown(kernel.run("%device"))["text/plain"]
        assert kernel.run("%%device host\nimport asyncio\nawait asyncio.sleep(0)" + HERE).result == "'host:cpu:0'"
        failed = kernel.run("\n%%device host\n\n1/0")
        assert failed.reply["ename"] == "ZeroDivisionError" and "line 3" in "".join(failed.reply["traceback"])
        assert ":0.0" in kernel.run(HERE).result  # left after the failure
        assert kernel.run("%%device host\n%%time" + HERE).result == "'host:cpu:0'"
        assert kernel.run("%%time\n%%device host" + HERE).result == "'host:cpu:0'"
        assert ":0.0" in kernel.run(HERE).result
        inner = kernel.run("%%device host\n_ = get_ipython().run_cell('1')" + HERE)
        assert "'host:cpu:0'" in [content["data"]["text/plain"] for content in inner.of("execute_result")]
    finally:
        kernel.run("%device host")
    assert kernel.run("from drupe._engine import _chosen_device; _chosen_device.set(None)" + HERE).result == before
