"""Cells: counters, order, errors, aborting, awaiting, magics, introspection."""
import sqlite3
import time

import pytest
import support


def test_a_first_cell(kernel):
    run = kernel.run("print('hello from a C kernel')")
    assert run.status == "ok" and run.text() == "hello from a C kernel\n"
    assert run.message["metadata"]["started"]


def test_results_and_underscore(kernel):
    assert kernel.run("6*7").result == "42"
    assert kernel.run("_ + 1").result == "43"
    run = kernel.run("1;")
    assert run.of("execute_result") == []


def test_counter_rises_only_with_history(kernel):
    first = kernel.run("1")
    count = first.reply["execution_count"]
    assert first.of("execute_input")[0]["execution_count"] == count
    assert first.of("execute_result")[0]["execution_count"] == count

    unstored = kernel.run("2", store_history=False)
    assert unstored.of("execute_input")[0]["execution_count"] == count + 1
    assert unstored.reply["execution_count"] == count + 1
    assert unstored.of("execute_result")[0]["execution_count"] == count + 1

    assert kernel.run("", silent=True).reply["execution_count"] == count + 1
    assert kernel.run("3").reply["execution_count"] == count + 1
    assert kernel.run("1/0").reply["execution_count"] == count + 2
    assert kernel.run("4").reply["execution_count"] == count + 3


def test_silent_publishes_only_status(kernel):
    run = kernel.run("quiet = 5; print('unheard'); display('unseen'); quiet", silent=True)
    assert run.types == ["status", "status"] and run.status == "ok"
    assert kernel.run("quiet").result == "5"
    failed = kernel.run("1/0", silent=True)
    assert failed.types == ["status", "status"]
    assert failed.reply["ename"] == "ZeroDivisionError"


def test_user_expressions(kernel):
    run = kernel.run("seven = 7", user_expressions={"good": "seven * 6", "bad": "nowhere"})
    good, bad = run.reply["user_expressions"]["good"], run.reply["user_expressions"]["bad"]
    assert good["status"] == "ok" and good["data"]["text/plain"] == "42"
    assert bad["status"] == "error" and bad["ename"] == "NameError"
    assert kernel.run("1/0", user_expressions={"x": "1"}).reply["user_expressions"] == {}


def test_errors_are_published_and_replied(kernel):
    run = kernel.run("def f():\n    return 1/0\nf()")
    assert run.reply["ename"] == "ZeroDivisionError" and run.reply["evalue"] == "division by zero"
    (error,) = run.of("error")
    assert error["traceback"] == run.reply["traceback"] and len(error["traceback"]) > 1
    assert kernel.run("def f(:").reply["ename"] == "SyntaxError"
    assert kernel.run("%no_such_magic").status == "error"
    assert kernel.run("raise SystemExit(3)").reply["ename"] == "SystemExit"
    assert kernel.run("1").result == "1"


def test_an_exception_that_cannot_be_shown(kernel):
    run = kernel.run("class Mean(Exception):\n"
                     "    def __str__(self): raise RuntimeError('no words')\n"
                     "raise Mean()")
    assert run.status == "error" and run.reply["ename"] in ("Mean", "RuntimeError")
    assert kernel.run("1").result == "1"


def test_a_repr_that_fails_does_not_stop_the_kernel(kernel):
    run = kernel.run("class Bad:\n    def __repr__(self): raise ValueError('no repr')\nBad()")
    assert "no repr" in "".join("".join(e["traceback"]) for e in run.of("error"))
    assert kernel.run("1").result == "1"


@pytest.mark.parametrize("store_history", [True, False])
def test_burst(kernel, store_history):
    """One cell, then four and a completion at once, thirty times: every one is answered."""
    for round_number in range(30):
        first = kernel.send("n = %d" % round_number, store_history=store_history)
        kernel.reply(first)
        ids = [kernel.send("n + %d" % i, store_history=store_history) for i in range(4)]
        ids.append(kernel.client.complete("prin", 4))
        replies = [kernel.reply(msg_id)["content"] for msg_id in ids]
        assert [reply["status"] for reply in replies] == ["ok"] * 5
        for msg_id in (first, *ids):
            kernel.wait_idle(msg_id)
    kernel.log.clear()


def abort_statuses(kernel, code, gate=None, **options):
    ids = [kernel.send(gate.wait + "\n" + code if gate else code, **options)]
    ids += [kernel.send("ran = %d" % i) for i in range(3)]
    completion = kernel.client.complete("prin", 4)
    if gate:
        kernel.arrived()
        gate.open()
    statuses = [kernel.reply(msg_id)["content"]["status"] for msg_id in ids]
    assert kernel.reply(completion)["content"]["status"] == "ok"
    for msg_id in ids:
        kernel.wait_idle(msg_id)
    return statuses, ids


def test_an_error_aborts_the_queued_cells(kernel, gate):
    kernel.run("ran = None")
    statuses, ids = abort_statuses(kernel, "1/0", gate)
    assert statuses == ["error", "aborted", "aborted", "aborted"]
    for msg_id in ids[1:]:
        assert [m["msg_type"] for m in kernel.of_parent(msg_id)] == ["status", "status"]
    assert kernel.run("ran is None").result == "True"


def test_an_immediate_error_aborts_what_was_sent_with_it(kernel):
    for _ in range(10):
        statuses, _ = abort_statuses(kernel, "1/0")
        assert statuses[0] == "error"
        assert set(statuses[1:]) <= {"aborted", "ok"}
        assert sorted(statuses[1:]) == statuses[1:], "an aborted cell came after one that ran"
        assert kernel.run("'alive'").result == "'alive'"


def test_stop_on_error_false_and_success_abort_nothing(kernel):
    assert abort_statuses(kernel, "import time; time.sleep(0.2); 1/0", stop_on_error=False)[0] == ["error"] + ["ok"] * 3
    assert abort_statuses(kernel, "import time; time.sleep(0.2)")[0] == ["ok"] * 4
    assert abort_statuses(kernel, "import time; time.sleep(0.2); 1/0", silent=True)[0] == ["error"] + ["ok"] * 3


def test_aborted_replies_carry_the_counter(kernel, gate):
    failing = kernel.send(gate.wait + "\n1/0")
    queued = kernel.send("1")
    kernel.arrived()
    gate.open()
    count = kernel.reply(failing)["content"]["execution_count"]
    reply = kernel.reply(queued)["content"]
    assert reply == {"status": "aborted", "execution_count": count + 1}


def test_top_level_await(kernel):
    run = kernel.run("import asyncio\nprint('before')\nawait asyncio.sleep(0.05)\nprint('after')\n'done'")
    assert run.status == "ok" and run.text() == "before\nafter\n" and run.result == "'done'"
    failed = kernel.run("await asyncio.sleep(0)\n1/0")
    assert failed.reply["ename"] == "ZeroDivisionError"
    kernel.run("async def numbers():\n    for i in range(3):\n        yield i")
    code = "async with asyncio.timeout(1):\n    found = [i async for i in numbers()]\nfound"
    assert kernel.run(code).result == "[0, 1, 2]"


def test_cells_wait_for_a_cell_that_awaits_and_others_overtake(kernel, gate):
    first = kernel.send(gate.awaited + "\norder = ['first']")
    second = kernel.send("order.append('second'); order")
    completion = kernel.client.complete("prin", 4)
    assert kernel.reply(completion)["content"]["status"] == "ok"
    assert first not in kernel.__dict__["_replies"], "the completion waited for the cell"
    gate.open()
    kernel.finish(first)
    assert kernel.finish(second).result == "['first', 'second']"


def test_a_task_goes_on_after_its_cell(kernel):
    run = kernel.run("async def later():\n"
                     "    await asyncio.sleep(0.3)\n"
                     "    print('from the task')\n"
                     "    finished.append(1)\n"
                     "import asyncio\nfinished = []\ntask = asyncio.create_task(later())")
    assert run.status == "ok"
    other = kernel.run("print('another cell')")
    late = kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "from the task" in m["content"]["text"])
    assert late["parent_header"]["msg_id"] == run.id != other.id
    assert kernel.run("finished").result == "[1]"


def test_context_variables_live_across_cells(kernel):
    kernel.run("import contextvars; v = contextvars.ContextVar('v'); v.set(1)")
    kernel.run("import asyncio; await asyncio.sleep(0); v.set(v.get() + 1)")
    assert kernel.run("v.get()").result == "2"


def test_a_task_that_asks_to_exit_does_not_end_the_kernel(kernel):
    kernel.run("import asyncio\nasync def leave():\n    raise SystemExit(4)\nt = asyncio.create_task(leave())")
    time.sleep(0.2)
    assert kernel.run("1").result == "1"


def test_magics(kernel):
    kernel.run("magic_name = 1")
    assert "magic_name" in kernel.run("%who_ls").result
    timed = kernel.run("%time sum(range(10))")
    assert "time" in timed.text() and timed.result == "45"
    assert kernel.run("%%capture caught\nprint('inside')").text() == ""
    assert kernel.run("caught.stdout").result == "'inside\\n'"
    assert kernel.run("%%time\nprint('timed')").text().startswith("timed\n")


def test_shell_commands(kernel):
    assert kernel.run("!echo from the shell").text().strip() == "from the shell"
    assert kernel.run("lines = !printf 'a\\nb'\nlist(lines)").result == "['a', 'b']"
    assert kernel.run("!exit 3\n_exit_code").result == "3"
    assert "Popen" in kernel.run("!sleep 1 &").reply["evalue"]


def test_payloads(kernel):
    (page,) = kernel.run("zip?").reply["payload"]
    assert page["source"] == "page" and "zip" in page["data"]["text/plain"] and page["start"] == 0
    (following,) = kernel.run("get_ipython().set_next_input('next')").reply["payload"]
    assert following == {"source": "set_next_input", "text": "next", "replace": False}
    assert kernel.run("1").reply["payload"] == []


def test_unsupported_gui_is_a_clear_error(kernel):
    run = kernel.run("%gui qt")
    assert "Drupe has no 'qt' event loop" in run.text("stderr")
    run = kernel.run("%matplotlib qt", timeout=60)
    assert run.status == "error"
    assert kernel.run("1").result == "1"


def test_complete(kernel):
    kernel.run("import os")
    reply = kernel.ask("complete_request", {"code": "os.getp", "cursor_pos": 7})
    assert "getpid" in reply["matches"] or "os.getpid" in reply["matches"]
    types = reply["metadata"]["_jupyter_types_experimental"]
    assert {"start", "end", "text", "type", "signature"} <= set(types[0])
    empty = kernel.ask("complete_request", {"code": "zzzz_nothing", "cursor_pos": 12})
    assert empty["matches"] == [] and empty["cursor_start"] == empty["cursor_end"] == 12


def test_cursor_counts_code_points(kernel):
    code = "x = '\U0001d11e'; pri"
    reply = kernel.ask("complete_request", {"code": code, "cursor_pos": len(code)})
    assert "print" in reply["matches"] and code[reply["cursor_start"]:reply["cursor_end"]] == "pri"


def test_inspect(kernel):
    kernel.run("def documented():\n    'the words'\n    return 1")
    short = kernel.ask("inspect_request", {"code": "documented", "cursor_pos": 10, "detail_level": 0})
    assert short["found"] and "the words" in short["data"]["text/plain"]
    full = kernel.ask("inspect_request", {"code": "documented", "cursor_pos": 10, "detail_level": 1})
    assert "Source" in full["data"]["text/plain"] and "Source" not in short["data"]["text/plain"]
    assert kernel.ask("inspect_request", {"code": "nowhere_at_all", "cursor_pos": 5})["found"] is False


def test_is_complete(kernel):
    assert kernel.ask("is_complete_request", {"code": "x = 1"}) == {"status": "complete"}
    assert kernel.ask("is_complete_request", {"code": "for i in x:"}) == {"status": "incomplete", "indent": "    "}
    assert kernel.ask("is_complete_request", {"code": "x = = 1"}) == {"status": "invalid"}


def test_history(kernel):
    kernel.run("remembered = 'needle'")
    tail = kernel.ask("history_request", {"hist_access_type": "tail", "n": 1, "raw": True, "output": False})
    assert tail["history"][-1][2] == "remembered = 'needle'"
    found = kernel.ask("history_request", {"hist_access_type": "search", "pattern": "*needle*", "raw": True,
                                           "output": False, "n": 5, "unique": True})
    assert any("needle" in entry[2] for entry in found["history"])
    session = kernel.ask("history_request", {"hist_access_type": "range", "session": 0, "start": 1, "stop": 2,
                                             "raw": True, "output": False})
    assert len(session["history"]) == 1
    wrong = kernel.ask("history_request", {"hist_access_type": "guess"})
    assert wrong["status"] == "error" and "tail" in wrong["evalue"]


def test_history_reaches_the_database_while_the_kernel_lives(fresh):
    fresh.run("written = 'to the database'")
    path = fresh.run("str(get_ipython().history_manager.hist_file)").result.strip("'")

    def stored():
        with sqlite3.connect(path) as database:
            return database.execute("SELECT count(*) FROM history WHERE source LIKE 'written = %'").fetchone()[0]

    before = support.wait_until(stored, what="the history")
    fresh.run("written = 'again'")
    support.wait_until(lambda: stored() > before, what="the history")


def test_numpy_and_the_engine_wait_for_first_use(fresh):
    assert fresh.run("import sys; sorted({'numpy', 'matplotlib', 'drupe._engine'} & set(sys.modules))").result == "[]"


def test_what_libraries_look_for(kernel):
    assert kernel.run("type(get_ipython()).__name__").result == "'ZMQInteractiveShell'"
    assert kernel.run("'IPKernelApp' in get_ipython().config").result == "True"
    assert kernel.run("get_ipython().kernel.get_parent()['header']['msg_type']").result == "'execute_request'"
