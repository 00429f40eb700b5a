"""Subshells: cells in threads of their own beside the main shell, with everything that belongs to a cell kept apart."""
import concurrent.futures
import os
import time

import pytest
import support

ON = {"DRUPE_SUBSHELLS": "1"}


def control(kernel, msg_type, content=None):
    """A request on control; the content of its reply."""
    message = kernel.client.session.msg(msg_type, content or {})
    kernel.client.control_channel.send(message)
    deadline = time.monotonic() + support.TIMEOUT
    while time.monotonic() < deadline:
        reply = kernel.client.get_control_msg(timeout=support.TIMEOUT)
        if reply["parent_header"]["msg_id"] == message["header"]["msg_id"]:
            kernel.wait_idle(message["header"]["msg_id"])
            return reply["content"]
    raise AssertionError("no reply to %s" % msg_type)


def create(kernel):
    reply = control(kernel, "create_subshell_request")
    assert reply["status"] == "ok"
    return reply["subshell_id"]


def delete(kernel, shell):
    assert control(kernel, "delete_subshell_request", {"subshell_id": shell}) == {"status": "ok"}


def send_to(kernel, shell, msg_type, content):
    message = kernel.client.session.msg(msg_type, content)
    message["header"]["subshell_id"] = shell
    kernel.client.shell_channel.send(message)
    return message["header"]["msg_id"]


def send(kernel, shell, code, **options):
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
               "stop_on_error": True, **options}
    return send_to(kernel, shell, "execute_request", content)


def run(kernel, shell, code, **options):
    return kernel.finish(send(kernel, shell, code, **options))


def threads_of(kernel):
    return len(os.listdir("/proc/%d/task" % kernel.pid))


@pytest.fixture(scope="module")
def shared(spec_folder):
    kernel = support.Kernel(spec_folder, ON)
    yield kernel
    kernel.close()


@pytest.fixture
def shell(kernel):
    subshell = create(kernel)
    yield subshell
    control(kernel, "delete_subshell_request", {"subshell_id": subshell})


@pytest.fixture
def own(spec_folder):
    kernel = support.Kernel(spec_folder, ON)
    yield kernel
    kernel.close()


def test_announced_only_when_on(kernel, spec_folder):
    assert "kernel subshells" in kernel.ask("kernel_info_request", {})["supported_features"]
    plain = support.Kernel(spec_folder)
    try:
        assert "kernel subshells" not in plain.ask("kernel_info_request", {})["supported_features"]
        reply = control(plain, "create_subshell_request")
        assert reply["status"] == "error" and reply["evalue"]
        refused = run(plain, "some-id", "1")
        assert refused.reply["ename"] == "SubshellError" and refused.types == ["status", "status"]
        assert "are off" in plain.run("%subshell").text()
    finally:
        plain.close()


def test_create_list_delete(kernel):
    first, second = create(kernel), create(kernel)
    assert control(kernel, "list_subshell_request") == {"status": "ok", "subshell_id": [first, second]}
    delete(kernel, first)
    delete(kernel, second)
    assert control(kernel, "list_subshell_request")["subshell_id"] == []
    assert control(kernel, "delete_subshell_request", {"subshell_id": first})["status"] == "error"
    late = run(kernel, first, "1")
    assert late.reply["ename"] == "SubshellError" and late.types == ["status", "status"]


def test_a_subshell_runs_while_the_main_shell_is_busy(kernel, shell):
    kernel.run("import time\ngo = False")
    main = kernel.send("while not go: time.sleep(0.01)\nprint('main'); 'm'")
    kernel.started(main)
    beside = run(kernel, shell, "print('beside'); go = True; 's'")
    assert beside.text() == "beside\n" and beside.result == "'s'"
    ended = kernel.finish(main)
    assert ended.text() == "main\n" and ended.result == "'m'"
    assert beside.reply["execution_count"] != ended.reply["execution_count"]


def test_two_computing_cells_share_the_interpreter(kernel, shell):
    """Neither is started when the other has ended: each waits for what the other does."""
    main = kernel.send("here = 1\nwhile 'there' not in globals(): pass\ndel there")
    beside = run(kernel, shell, "there = 1\nwhile 'here' not in globals(): pass\ndel here")
    assert beside.status == "ok" and kernel.finish(main).status == "ok"


def test_everything_of_a_cell_is_its_own(kernel, shell):
    """Number, result, error, traceback, payloads, user_expressions, quiet semicolons, display and stderr."""
    kernel.run("import threading, time\nmain_may_end = threading.Event()")
    main = kernel.send("get_ipython().set_next_input('of the main cell')\n"
                       "while not main_may_end.is_set(): time.sleep(0.01)\n'main'",
                       user_expressions={"where": "'in main'"})
    kernel.started(main)
    failed = run(kernel, shell, "import sys\nprint('err', file=sys.stderr)\ndisplay('shown')\n"
                                "raise ValueError('beside')")
    assert failed.reply["ename"] == "ValueError" and failed.text("stderr") == "err\n"
    assert failed.of("error")[0]["evalue"] == "beside" and "ValueError" in "".join(failed.reply["traceback"])
    assert failed.of("display_data")[0]["data"]["text/plain"] == "'shown'" and failed.reply["payload"] == []
    assert run(kernel, shell, "'quiet';").of("execute_result") == []
    asked = run(kernel, shell, "get_ipython().set_next_input('of the subshell')\nmain_may_end.set(); 'sub'",
                user_expressions={"where": "'in sub'"})
    ended = kernel.finish(main)
    assert [p["text"] for p in asked.reply["payload"]] == ["of the subshell"]
    assert [p["text"] for p in ended.reply["payload"]] == ["of the main cell"]
    assert asked.reply["user_expressions"]["where"]["data"]["text/plain"] == "'in sub'"
    assert ended.reply["user_expressions"]["where"]["data"]["text/plain"] == "'in main'"
    assert ended.result == "'main'"
    assert ended.of("execute_result")[0]["execution_count"] == ended.reply["execution_count"]
    assert asked.of("execute_result")[0]["execution_count"] == asked.reply["execution_count"]
    assert ended.of("error") == []


def test_numbers_rise_and_inputs_keep_their_place(kernel):
    shells = [create(kernel) for _ in range(3)]
    ids = [send(kernel, shells[i % 3], "number_%d = get_ipython().execution_count" % i) for i in range(12)]
    runs = [kernel.finish(msg_id) for msg_id in ids]
    counts = [one.reply["execution_count"] for one in runs]
    assert len(set(counts)) == 12 and max(counts) - min(counts) == 11
    for i, one in enumerate(runs):
        count = one.reply["execution_count"]
        assert kernel.run("In[%d]" % count).result == repr("number_%d = get_ipython().execution_count" % i)
    for shell in shells:
        delete(kernel, shell)


def test_status_names_a_cell_that_runs(kernel, shell):
    kernel.run("import threading\nmay_end = threading.Event()")
    first = send(kernel, shell, "while not may_end.wait(0.02): pass")
    kernel.started(first)
    kernel.run("1+1")
    asked = kernel.client.kernel_info()
    kernel.wait_idle(asked)
    kernel.run("may_end.set()")
    kernel.finish(first)
    states = [(m["parent_header"]["msg_id"], m["content"]["execution_state"]) for m in kernel.log
              if m["msg_type"] == "status"]
    begun = states.index((first, "busy"))
    ended = states.index((first, "idle"))
    for position in range(begun, ended):
        if states[position][1] == "idle":
            assert states[position + 1][1] == "busy", "nobody was told that a cell still runs"


def test_a_failure_aborts_only_its_own_queue(kernel, shell):
    kernel.run("import threading\nmay_fail = threading.Event()")
    main = kernel.send("may_fail.wait(60)")
    waiting = kernel.send("'still there'")
    kernel.started(main)
    failed = send(kernel, shell, "may_fail.wait(60)\n1/0")
    aborted = send(kernel, shell, "'never'")
    completion = send_to(kernel, shell, "complete_request", {"code": "impo", "cursor_pos": 4})
    other = create(kernel)
    ran = run(kernel, other, "may_fail.set(); 'ran'")
    assert kernel.finish(failed).reply["ename"] == "ZeroDivisionError"
    assert kernel.finish(aborted).status == "aborted" and ran.result == "'ran'"
    assert "import" in kernel.finish(completion).reply["matches"]
    assert kernel.finish(main).status == "ok" and kernel.finish(waiting).result == "'still there'"
    assert run(kernel, shell, "'goes on'").result == "'goes on'"
    delete(kernel, other)


@pytest.mark.parametrize("code", [
    "while True: pass",
    "import time; time.sleep(60)",
    "import asyncio; await asyncio.sleep(60)",
    "import asyncio\nasync def spin():\n    while True: pass\nawait asyncio.create_task(spin())",
    "import subprocess; subprocess.run(['sleep', '60'], check=True)",
    "!sleep 60\nraise KeyboardInterrupt",
    "import numpy; a = numpy.ones(1000)\nwhile True: a.sum()",
    "import drupe, testwork\nfrom drupe import _engine\nevent = testwork.task(drupe.Queue('host'), 100)\nevent.wait()",
])
def test_an_interrupt_reaches_subshells(kernel, shell, code):
    msg_id = send(kernel, shell, code)
    kernel.started(msg_id)
    time.sleep(0.3)
    kernel.interrupt()
    name = kernel.finish(msg_id).reply["ename"]
    assert name == "KeyboardInterrupt" or "subprocess" in code and name == "CalledProcessError"
    assert run(kernel, shell, "1+1").result == "2" and kernel.run("2+2").result == "4"


@pytest.mark.parametrize("how", ["message", "signal"])
def test_an_interrupt_reaches_all_shells(kernel, shell, how):
    main = kernel.send("import time; time.sleep(60)")
    beside = send(kernel, shell, "while True: pass")
    kernel.started(main)
    kernel.started(beside)
    time.sleep(0.2)
    kernel.interrupt() if how == "message" else kernel.sigint()
    assert kernel.finish(main).reply["ename"] == kernel.finish(beside).reply["ename"] == "KeyboardInterrupt"


def test_random_interrupts_leave_all_shells_alive(own):
    shells = [None, create(own), create(own)]
    codes = ["sum(range(20000))", "print('x')", "1/0", "import asyncio; await asyncio.sleep(0.003)",
             "import time; time.sleep(0.003)",
             "display('d')"]
    pending = []
    for number in range(150):
        pending.append(send(own, shells[number % 3], codes[number % len(codes)], stop_on_error=False))
        time.sleep(0.001 * (number % 5))
        own.sigint()
        if len(pending) > 6:
            assert own.reply(pending.pop(0))["content"]["status"] in ("ok", "error")
    for msg_id in pending:
        assert own.reply(msg_id)["content"]["status"] in ("ok", "error")
    for shell in shells:
        assert run(own, shell, "6*7").result == "42"


def test_awaiting_cells_have_loops_of_their_own(kernel, shell):
    main = kernel.send("import asyncio\nmain_loop = asyncio.get_running_loop()\nwhile 'sub_loop' not in globals():\n"
                       "    await asyncio.sleep(0.01)\nmain_loop is sub_loop")
    beside = run(kernel, shell, "import asyncio\nsub_loop = asyncio.get_running_loop()\nawait asyncio.sleep(0.05)\n"
                                "print('slept'); 'awaited'")
    assert beside.text() == "slept\n" and beside.result == "'awaited'"
    assert kernel.finish(main).result == "False"


def test_threads_and_tasks_keep_their_cell(kernel, shell):
    first = run(kernel, shell, "import asyncio, threading, time\n"
                               "def late():\n    time.sleep(0.3)\n    print('thread')\n"
                               "async def task():\n    await asyncio.sleep(0.3)\n    print('task')\n"
                               "threading.Thread(target=late).start()\n"
                               "kept = asyncio.get_event_loop().create_task(task())")
    for code in ("print('main')", "print('next')"):
        run(kernel, shell if "next" in code else None, code)
    for text in ("thread\n", "task\n"):
        late = kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and text in m["content"]["text"], what=text)
        assert late["parent_header"]["msg_id"] == first.id


def test_comms_in_a_subshell(kernel, shell):
    kernel.run("import comm, threading, time\nkept = []\nstop = threading.Event()\ndef target(one, message):\n"
               "    kept.append(one)\n"
               "    one.on_msg(lambda m: (print('handled in', threading.current_thread().name), "
               "one.send(m['content']['data'])))\n"
               "comm.get_comm_manager().register_target('echo', target)")
    main = kernel.send("while not stop.is_set(): time.sleep(0.01)")
    kernel.started(main)
    opened = send_to(kernel, shell, "comm_open", {"comm_id": "sub-comm", "target_name": "echo", "data": {}})
    kernel.wait_idle(opened)
    message = send_to(kernel, shell, "comm_msg", {"comm_id": "sub-comm", "data": {"value": 7}})
    kernel.wait_idle(message)  # while the main cell runs
    outputs = kernel.of_parent(message)
    text = "".join(m["content"]["text"] for m in outputs if m["msg_type"] == "stream")
    assert text == "handled in subshell-%s\n" % shell
    assert [m["content"]["data"] for m in outputs if m["msg_type"] == "comm_msg"] == [{"value": 7}]
    run(kernel, shell, "stop.set()")
    assert kernel.finish(main).of("comm_msg") == []


def test_input_in_several_shells(kernel, shell):
    asked = [send(kernel, shell, "'sub ' + input('sub?')", allow_stdin=True),
             kernel.send("'main ' + input('main?')", allow_stdin=True)]
    for _ in range(2):  # one question at a time
        question = kernel.client.get_stdin_msg(timeout=support.TIMEOUT)
        assert question["parent_header"]["msg_id"] in asked
        kernel.client.input("answer to " + question["content"]["prompt"])
    assert kernel.finish(asked[0]).result == "'sub answer to sub?'"
    assert kernel.finish(asked[1]).result == "'main answer to main?'"


def test_an_interrupt_breaks_input_in_a_subshell(kernel, shell):
    msg_id = send(kernel, shell, "input('never answered')", allow_stdin=True)
    kernel.client.get_stdin_msg(timeout=support.TIMEOUT)
    kernel.interrupt()
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
    refused = run(kernel, shell, "input()")
    assert refused.reply["ename"] == "StdinNotImplementedError"
    msg_id = kernel.send("input('again')", allow_stdin=True)
    kernel.client.get_stdin_msg(timeout=support.TIMEOUT)
    kernel.client.input("works")
    assert kernel.finish(msg_id).result == "'works'"


def test_history_and_completion_in_subshells(kernel, shell):
    run(kernel, shell, "in_the_subshell = 1")
    msg_ids = []
    for _ in range(5):
        for where in (None, shell):
            msg_ids.append(send_to(kernel, where, "complete_request", {"code": "in_the_sub", "cursor_pos": 10}))
            msg_ids.append(send_to(kernel, where, "history_request", {"hist_access_type": "tail", "n": 50, "raw": True,
                                                                      "output": False}))
            msg_ids.append(send_to(kernel, where, "inspect_request", {"code": "len", "cursor_pos": 3}))
    for msg_id in msg_ids:
        reply = kernel.finish(msg_id).reply
        assert reply["status"] == "ok"
        if "matches" in reply:
            assert reply["matches"] == ["in_the_subshell"]
        if "history" in reply:
            assert "in_the_subshell = 1" in [line for *_, line in reply["history"]]


def test_deletion_lets_the_running_cell_finish(kernel):
    for code in ("import threading\nhold = threading.Event()\nhold.wait(20)\nprint('finished')",
                 "import asyncio, threading\nhold = threading.Event()\n"
                 "while not hold.is_set(): await asyncio.sleep(0.01)\n"
                 "print('finished')"):
        kernel.run("hold = None")
        shell = create(kernel)
        running = send(kernel, shell, code)
        kernel.started(running)
        queued = send(kernel, shell, "'never'")
        kernel.run("1")  # the io thread has seen both
        delete(kernel, shell)
        assert kernel.finish(queued).status == "aborted"
        kernel.run("import time\nwhile hold is None: time.sleep(0.01)\nhold.set()")
        assert kernel.finish(running).text() == "finished\n"


def test_twenty_subshells_and_nothing_is_left(own):
    own.run("1")
    threads = threads_of(own)
    descriptors = len(os.listdir("/proc/%d/fd" % own.pid))
    shells = [create(own) for _ in range(20)]
    for _ in range(3):
        ids = [send(own, shell, "import threading\nprint(threading.current_thread().name)") for shell in shells]
        for shell, msg_id in zip(shells, ids):
            assert own.finish(msg_id).text() == "subshell-%s\n" % shell
    for shell in shells:
        delete(own, shell)
    support.wait_until(lambda: threads_of(own) <= threads, what="the threads to end")
    # A leak is one for each of them. The client's connections of stdin and of the heartbeat may have come since.
    support.wait_until(lambda: len(os.listdir("/proc/%d/fd" % own.pid)) < descriptors + len(shells),
                       what="descriptors to be closed")


def test_many_short_cells_in_many_shells(own):
    """What IPython keeps once for all cells (its traps, compiler flags, display hook) stays in order."""
    shells = [None] + [create(own) for _ in range(4)]
    codes = ["get_ipython() is not None", "import asyncio; await asyncio.sleep(0); True", "1 == 1", "%time 1\nTrue"]
    ids = [send(own, shells[i % 5], codes[i % 4], stop_on_error=False) for i in range(200)]
    for msg_id in ids:
        done = own.finish(msg_id)
        assert done.status == "ok", done.reply
        assert done.result == "True"


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(600)",
                                  "import asyncio; await asyncio.sleep(600)",
                                  "import threading; threading.Event().wait(600)", "input()"])
def test_shutdown_with_subshells_that_run(own, code):
    shell, idle = create(own), create(own)
    msg_id = send(own, shell, code, allow_stdin=True)
    own.started(msg_id)
    main = own.send("import time; time.sleep(600)")
    own.started(main)
    own.client.shutdown()
    assert own.manager.provisioner.process.wait(support.TIMEOUT) == 0
    assert idle


def test_subshell_magic(kernel, shell):
    assert shell in run(kernel, shell, "%subshell").text()
    assert "main shell" in kernel.run("%subshell").text()


def test_requests_from_many_clients_at_once(own):
    """Each client in a thread of its own, with its own subshell, as a front-end with several consoles."""
    def work(number):
        client = support.Raw(own.manager)
        try:
            client.send("control", "create_subshell_request")
            shell = client.receive("control")["content"]["subshell_id"]
            results = []
            for i in range(10):
                client.send("shell", "execute_request", {"code": "x%d = %d" % (number, i), "user_expressions": {
                    "x": "x%d" % number}}, subshell_id=shell)
                reply = client.receive("shell")["content"]
                results.append(int(reply["user_expressions"]["x"]["data"]["text/plain"]))
            client.send("control", "delete_subshell_request", {"subshell_id": shell})
            assert client.receive("control")["content"] == {"status": "ok"}
            return results
        finally:
            client.close()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [list(range(10))] * 4


def test_a_device_error_belongs_to_the_shell_that_caused_it(kernel, shell):
    """A cell that ends meanwhile in another shell does not get the error of one that still runs."""
    kernel.run("import drupe, threading, time, testwork\nfrom drupe import _engine\nfailed = threading.Event()")
    slow = kernel.send("event = testwork.task(drupe.Queue('host'), 0.01, 'of the main shell')\n"
                       "time.sleep(0.3); failed.set(); time.sleep(1.5)")
    other = run(kernel, shell, "failed.wait(20); 'well'")
    assert other.status == "ok"
    main = kernel.finish(slow)
    assert main.status == "error" and "of the main shell" in main.reply["evalue"]
    assert run(kernel, shell, "'still'").status == "ok" and kernel.run("1").status == "ok"


def test_a_subshell_begins_with_what_held_when_it_was_made(kernel):
    """Its thread may come to run only after further cells of the main shell."""
    kernel.run("import contextvars, threading\nfrom drupe.jupyter import subshells\n"
               "place, serve, held = contextvars.ContextVar('place'), subshells.serve, threading.Event()\n"
               "def held_back(subshell):\n    held.wait()\n    serve(subshell)\n"
               "subshells.serve = held_back; place.set('before'); None")
    try:
        first = create(kernel)
        assert kernel.run("place.set('between'); None").status == "ok"
        second = create(kernel)
        assert kernel.run("place.set('behind'); None").status == "ok"
    finally:
        kernel.run("subshells.serve = serve; held.set()")
    third = create(kernel)
    for subshell, value in ((first, "before"), (second, "between"), (third, "behind")):
        assert run(kernel, subshell, "place.get()").result == repr(value)
        delete(kernel, subshell)


def test_the_device_of_a_block(kernel, shell):
    """`with drupe.device(...)` holds for the shell whose cell entered it, over its further cells too."""
    support.need_parts(kernel)
    default = kernel.run("drupe.Device().filter_string").result
    enter = "block%d = drupe.device('host:0.%d'); block%d.__enter__(); None"
    assert kernel.run(enter % (0, 0, 0)).status == "ok"
    assert run(kernel, shell, "drupe.Device().filter_string").result == default
    assert run(kernel, shell, enter % (1, 1, 1)).status == "ok"
    assert kernel.run("drupe.Device().filter_string").result == "'host:cpu:0.0'"
    assert run(kernel, shell, "drupe.Device().filter_string").result == "'host:cpu:0.1'"
    assert kernel.run("block0.__exit__(); drupe.Device().filter_string").result == default
    assert run(kernel, shell, "block1.__exit__(); drupe.Device().filter_string").result == default
