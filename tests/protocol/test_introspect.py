"""Inspection, completion, history, user expressions, payloads and display ids in detail."""
import datetime

import pytest
import support


def history(kernel, **content):
    content.setdefault("raw", True)
    content.setdefault("output", False)
    reply = kernel.ask("history_request", content)
    assert reply["status"] == "ok", reply
    return reply["history"]


def test_history_of_this_session(fresh):
    for code in ("first = 1", "%time second = 2", "first + 40", "first = 1"):
        fresh.run(code)
    (number,) = {session for session, *_ in history(fresh, hist_access_type="range")}
    every = [[number, 1, "first = 1"], [number, 2, "%time second = 2"], [number, 3, "first + 40"],
             [number, 4, "first = 1"]]
    assert history(fresh, hist_access_type="range") == every
    assert history(fresh, hist_access_type="range", session=0, start=None, stop=None) == every
    assert history(fresh, hist_access_type="range", session=0, start=2, stop=4) == every[1:3]
    assert history(fresh, hist_access_type="range", session=number, start=3) == every[2:]
    assert history(fresh, hist_access_type="range", start=-1) == every[-1:]
    assert history(fresh, hist_access_type="range", start=90) == []
    translated = history(fresh, hist_access_type="range", start=2, stop=3, raw=False)
    assert translated[0][2].startswith("get_ipython().run_line_magic('time'")
    assert history(fresh, hist_access_type="range", start=3, stop=4, output=True)[0][2] == ["first + 40", "41"]
    # the database has them all, after the writer's delay
    assert history(fresh, hist_access_type="tail", n=2) == every[-2:]
    assert history(fresh, n=None)[-4:] == every
    assert history(fresh, hist_access_type="tail", n=0) == [] or len(history(fresh, hist_access_type="tail", n=0)) <= 1


def test_history_search(fresh):
    for code in ("needle = 1", "needle = 1", "hay = 2", "needle = 3"):
        fresh.run(code)

    def found(**content):
        return [entry[2] for entry in history(fresh, hist_access_type="search", **content)]

    assert found(pattern="needle*") == ["needle = 1", "needle = 1", "needle = 3"]
    assert sorted(found(pattern="needle*", unique=True)) == ["needle = 1", "needle = 3"]
    assert found(pattern="needle*", n=1) == ["needle = 3"]
    assert found(pattern="ha? = 2") == ["hay = 2"] and found(pattern="nowhere*") == []
    assert len(found(pattern=None)) >= 4 and len(found(pattern="")) >= 4
    with_output = history(fresh, hist_access_type="search", pattern="hay*", output=True)
    assert with_output[0][2] == ["hay = 2", None]


def test_history_of_an_earlier_session(spec_folder):
    first = support.Kernel(spec_folder)
    first.run("from_before = 'x'")
    (number,) = {session for session, *_ in history(first, hist_access_type="range")}
    first.manager.shutdown_kernel()
    first.close()
    second = support.Kernel(spec_folder)
    try:
        second.run("now = 1")
        expected = [[number, 1, "from_before = 'x'"]]
        assert history(second, hist_access_type="range", session=-1) == expected
        assert history(second, hist_access_type="range", session=number) == expected
        assert history(second, hist_access_type="range", session=99999) == []
        assert history(second, hist_access_type="search", pattern="from_before*", n=1) == expected
        assert history(second, hist_access_type="tail", n=2)[0] == expected[0]
    finally:
        second.close()


def test_inspect_waits_for_no_device(fresh):
    """Front-ends ask while somebody types; the gate opens only afterwards: whatever waited would wait for ever."""
    assert fresh.run("""
import drupe, drupe.array as da
from drupe import _engine
queue, gate = drupe.Queue('host'), _engine._event_open('gate')
x = da.arange(7, device=queue)
behind = queue.barrier(wait_for=[gate])
y = x + 1
both = {'x': x, 'y': y}
""").status == "ok"
    for name in ("y", "both"):
        reply = fresh.ask("inspect_request", {"code": name, "cursor_pos": 1})
        assert "array(shape=(7,), dtype=int64" in reply["data"]["text/plain"]
    assert fresh.run("gate._finish()\nqueue.wait()").status == "ok"
    assert "[1, 2, 3" in fresh.ask("inspect_request", {"code": "y", "cursor_pos": 1})["data"]["text/plain"]


def test_inspect_has_html_at_both_levels(kernel):
    kernel.run("def documented(a, b=1):\n    'words & <tags>'\n    return a < b")
    for level, wanted, missing in ((0, "Docstring", "Source"), (1, "Source", "Docstring")):
        reply = kernel.ask("inspect_request", {"code": "documented(1)", "cursor_pos": 5, "detail_level": level})
        plain, html = reply["data"]["text/plain"], reply["data"]["text/html"]
        for text in (plain, html):
            assert wanted in text and missing not in text
        assert "<h1>" not in html and "<strong>%s" % wanted in html
        assert "words &amp; &lt;tags&gt;" in html and "background" not in html
    shorter = kernel.ask("inspect_request", {"code": "documented", "cursor_pos": 5, "omit_sections": ["Docstring"]})
    assert "Docstring" not in shorter["data"]["text/plain"]
    inside_a_call = kernel.ask("inspect_request", {"code": "documented(", "cursor_pos": 11})
    assert inside_a_call["found"] and "a, b=1" in inside_a_call["data"]["text/plain"].replace("\x1b[32m", "")


@pytest.mark.parametrize("position", [None, True, "3", 7.0, 10**6])
def test_an_odd_cursor_is_the_end(kernel, position):
    reply = kernel.ask("complete_request", {"code": "import sys; sys.plat", "cursor_pos": position})
    assert reply["cursor_end"] == 20 and any("platform" in match for match in reply["matches"])


def test_completion_names_types(kernel):
    kernel.run("class Thing:\n    def method(self): ...\n    attribute = 1\nthing = Thing()")
    reply = kernel.ask("complete_request", {"code": "\U0001d11e = 1; thing.me", "cursor_pos": 15})
    (one,) = [t for t in reply["metadata"]["_jupyter_types_experimental"] if "method" in t["text"]]
    assert one["type"] == "function" and one["end"] == 15 and "method" in "".join(reply["matches"])


def types_of(kernel, code):
    reply = kernel.ask("complete_request", {"code": code, "cursor_pos": len(code)})
    return {one["text"].lstrip("."): one["type"] for one in reply["metadata"]["_jupyter_types_experimental"]}


@pytest.mark.parametrize("jedi", [True, False])
def test_every_completion_has_a_type(fresh, jedi):
    fresh.run("%%config IPCompleter.use_jedi = %s" % jedi)
    fresh.run("""
import os, drupe.array as da
looked = []
class Thing:
    attribute = 1
    def method(self): ...
    @property
    def computed(self): looked.append(1)
thing = thing_two = Thing()
def things(): ...
""")
    for code, expected in (
            ("thi", {"thing": "instance", "thing_two": "instance", "things": "function"}),
            ("import os\nthing", {"thing": "instance", "things": "function"}), ("Thi", {"Thing": "class"}),
            ("thing.m", {"method": "function"}), ("thing.a", {"attribute": "instance"}),
            ("prin", {"print": "function"}), ("import o", {"os": "module"}), ("os.pat", {"path": "module"}),
            ("from os import pa", {"path": "module", "pathconf": "function"}),
            ("whil", {"while": "keyword"}), ("os.path.joi", {"join": "function"})):
        found = types_of(fresh, code)
        assert expected.items() <= found.items(), (code, found)
    assert "computed" in types_of(fresh, "thing.c") and fresh.run("looked").result == "[]"
    for code in ("", "x.", "lst[0].", "thing.attribute.", "d['"):
        assert not {"<unknown>", "variable", "attribute"} & set(types_of(fresh, code).values()), code


@pytest.mark.parametrize("before, length", [("text = '%s'\nos.", 200_000), ("'%s'; os.", 10_000),
                                            ("%s = 1; os.", 10_000)])
def test_completion_behind_a_long_word(fresh, before, length):
    """What it costs must not grow with the square of the length for each completion: here that would be hours."""
    fresh.run("%config IPCompleter.use_jedi = False\nimport os")
    assert types_of(fresh, before % ("x" * length)).items() >= {"path": "module", "pathconf": "function"}.items()


@pytest.mark.parametrize("before", ["from os import%s#", "import%s#"])
def test_completion_behind_much_white_space(fresh, before):
    fresh.run("%config IPCompleter.use_jedi = False\nimport os")
    found = types_of(fresh, before % (" " * 200_000) + "\nos.pa")
    assert found.items() >= {"path": "module", "pathconf": "function"}.items()


def test_the_owner_of_an_attribute_is_not_computed(fresh):
    """Behind a call or an index there is no owner that can be found, whatever bears the name of its last part."""
    fresh.run("%config IPCompleter.use_jedi = False\nimport types\n"
              "real = types.SimpleNamespace(thing=print)\nholder = [types.SimpleNamespace(real="
              "types.SimpleNamespace(thing=1))]\n%config IPCompleter.evaluation = 'dangerous'")
    assert types_of(fresh, "real.thi") == {"thing": "function"}
    assert set(types_of(fresh, "holder[0].real.thi").values()) <= {"instance"}


def test_is_complete_indents(kernel):
    for code, indent in (("if x:", "    "), ("def f():\n  if x:", "      "), ("for i in x:\n    pass", "    ")):
        assert kernel.ask("is_complete_request", {"code": code}) == {"status": "incomplete", "indent": indent}
    assert kernel.ask("is_complete_request", {"code": "%%time"})["status"] == "incomplete"
    assert kernel.ask("is_complete_request", {"code": None}) == {"status": "complete"}


def test_user_expressions_are_rich(kernel):
    run = kernel.run("from IPython.display import HTML",
                     user_expressions={"html": "HTML('<b>x</b>')", "bad": "1/0", "odd": "1 +",
                                       "many": "print('said') or 3"})
    found = run.reply["user_expressions"]
    assert found["html"]["data"]["text/html"] == "<b>x</b>" and found["html"]["metadata"] == {}
    bad = found["bad"]
    assert bad["status"] == "error" and bad["ename"] == "ZeroDivisionError" and bad["traceback"]
    assert found["odd"]["status"] == "error" and found["many"]["data"]["text/plain"] == "3"
    assert run.of("error") == [] and run.status == "ok"


def test_payloads_come_with_failures_too(kernel):
    run = kernel.run("for text in ('one', 'two', 'three'): get_ipython().set_next_input(text, replace=True)\n1/0")
    assert run.reply["payload"] == [{"source": "set_next_input", "text": "three", "replace": True}]  # the last counts
    (page,) = kernel.run("from IPython.core import page; page.page({'text/plain': 'x', 'text/html': '<b>x</b>'}, "
                         "start=-3)"
                         ).reply["payload"]
    assert page == {"source": "page", "data": {"text/plain": "x", "text/html": "<b>x</b>"}, "start": 0}
    (leave,) = kernel.run("exit(keep_kernel=True)").reply["payload"]
    assert leave == {"source": "ask_exit", "keepkernel": True}


def test_when_it_started(kernel):
    run = kernel.run("import time; time.sleep(0.05)")
    started = datetime.datetime.fromisoformat(run.message["metadata"]["started"].replace("Z", "+00:00"))
    assert started.tzinfo is not None and run.message["header"]["date"] > started


def test_display_ids(kernel):
    run = kernel.run("from IPython.display import display, update_display, HTML\n"
                     "h = display('one', display_id='named')\n"
                     "h.update('two')\n"
                     "update_display(HTML('<i>3</i>'), display_id='named', metadata={'text/html': {'k': 1}})\n"
                     "g = display('free', display_id=True)\ndisplay('plain', metadata={'text/plain': {'m': 1}})")
    shown = [(m["msg_type"], m["content"]) for m in run.messages if "display_data" in m["msg_type"]]
    assert [kind for kind, _ in shown] == ["display_data"] + ["update_display_data"] * 2 + ["display_data"] * 2
    assert [c["transient"] for _, c in shown[:3]] == [{"display_id": "named"}] * 3
    assert shown[2][1]["metadata"] == {"text/html": {"k": 1}} and shown[2][1]["data"]["text/html"] == "<i>3</i>"
    assert len(shown[3][1]["transient"]["display_id"]) > 8
    assert shown[4][1]["transient"] == {} and shown[4][1]["metadata"] == {"text/plain": {"m": 1}}
    refused = kernel.run("get_ipython().display_pub.publish({'text/plain': 'x'}, update=True)")
    assert "display_id" in refused.reply["evalue"]


def test_display_hooks_see_and_swallow(kernel):
    run = kernel.run("seen = []\ndef hook(m):\n"
                     "    seen.append((m['msg_type'], m['header']['msg_type'], m['parent_header']['msg_type']))\n"
                     "    m['metadata'] = {'hooked': 1}\n"
                     "    return None if 'secret' in str(m['content']) else m\n"
                     "pub = get_ipython().display_pub; pub.register_hook(hook)\ndisplay('secret'); display('open')\n"
                     "pub.clear_output(); print(pub.unregister_hook(hook), pub.unregister_hook(hook)); seen")
    assert eval(run.result)[1:] == [("display_data", "display_data", "execute_request"),
                                    ("clear_output", "clear_output", "execute_request")]
    (message,) = [m for m in run.messages if m["msg_type"] == "display_data"]
    assert "open" in str(message["content"]) and message["metadata"] == {"hooked": 1}
    assert run.text() == "True False\n"


def test_get_parent_has_the_whole_request(kernel):
    message = kernel.client.session.msg("execute_request", {"code": "m = get_ipython().get_parent()", "silent": False},
                                        metadata={"cellId": "abc"})
    kernel.client.shell_channel.send(message)
    kernel.finish(message["header"]["msg_id"])
    run = kernel.run("m['metadata']['cellId'], m['content']['code'][:4], m['header']['msg_id']")
    assert eval(run.result) == ("abc", "m = ", message["header"]["msg_id"])
