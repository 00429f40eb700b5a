"""Comms both ways: open, messages, close, buffers, errors, and when they are served."""
import pytest
import support

TARGET = """
def serve(comm, opening):
    kept.append((comm, opening))
    @comm.on_msg
    def _(message):
        data = message['content']['data']
        if data == 'fail': raise ValueError('in the handler')
        print('got', data, message['metadata'].get('m'), [bytes(b) for b in message['buffers']])
        comm.send({'echo': data}, metadata={'n': 1}, buffers=[b'back', bytearray(b'wards')] + message['buffers'])
    @comm.on_close
    def _(message): print('closed with', message['content']['data'])
kept = []
get_ipython().kernel.comm_manager.register_target('served', serve)
"""


@pytest.fixture
def served(kernel):
    kernel.run(TARGET)
    kernel.comm("comm_open", {"comm_id": "c1", "target_name": "served", "data": {"a": 1}})
    yield kernel
    kernel.comm("comm_close", {"comm_id": "c1", "data": {}})


def test_open_message_and_close(served):
    assert served.run("kept[-1][1]['content']['data'], kept[-1][0].comm_id").result == "({'a': 1}, 'c1')"
    run = served.comm("comm_msg", {"comm_id": "c1", "data": "hi"}, metadata={"m": 7}, buffers=[b"\0one", b""])
    assert run.types[0] == run.types[-1] == "status"
    assert run.text() == "got hi 7 [b'\\x00one', b'']\n"
    (answer,) = [m for m in run.messages if m["msg_type"] == "comm_msg"]
    assert answer["content"] == {"comm_id": "c1", "data": {"echo": "hi"}} and answer["metadata"] == {"n": 1}
    assert [bytes(b) for b in answer["buffers"]] == [b"back", b"wards", b"\0one", b""]
    assert served.ask("comm_info_request", {})["comms"] == {"c1": {"target_name": "served"}}
    closed = served.comm("comm_close", {"comm_id": "c1", "data": "bye"})
    assert closed.text() == "closed with bye\n" and "comm_close" not in closed.types
    assert served.ask("comm_info_request", {"target_name": None})["comms"] == {}


def test_comm_info_by_target(served):
    assert list(served.ask("comm_info_request", {"target_name": "served"})["comms"]) == ["c1"]
    for other in ("others", 5, ["served"]):
        assert served.ask("comm_info_request", {"target_name": other})["comms"] == {}


def test_an_unknown_target_is_closed(kernel):
    run = kernel.comm("comm_open", {"comm_id": "nobody", "target_name": "nowhere", "data": {}})
    assert run.of("comm_close") == [{"comm_id": "nobody", "data": {}}] and run.of("error") == []
    assert kernel.comm("comm_msg", {"comm_id": "nobody", "data": {}}).types == ["status", "status"]


def test_errors_of_handlers_are_shown(served):
    run = served.comm("comm_msg", {"comm_id": "c1", "data": "fail"})
    (error,) = run.of("error")
    assert error["ename"] == "ValueError" and "in the handler" in "".join(error["traceback"])
    served.run("def refuse(comm, message): 1/0\nget_ipython().kernel.comm_manager.register_target('refusing', refuse)")
    run = served.comm("comm_open", {"comm_id": "c2", "target_name": "refusing", "data": {}})
    assert run.of("error")[0]["ename"] == "ZeroDivisionError" and run.of("comm_close")[0]["comm_id"] == "c2"
    again = served.comm("comm_open", {"comm_id": "c1", "target_name": "served", "data": {}})
    assert "already" in again.of("error")[0]["evalue"]
    assert list(served.ask("comm_info_request", {})["comms"]) == ["c1"]


@pytest.mark.parametrize("content", [{}, {"comm_id": None}, {"comm_id": 5, "data": []}, {"comm_id": ""}, b"null"])
@pytest.mark.parametrize("msg_type", ["comm_open", "comm_msg", "comm_close"])
def test_odd_comm_messages(kernel, msg_type, content):
    run = kernel.comm(msg_type, content)
    assert run.types == ["status", "error", "status"] and "comm_id" in run.of("error")[0]["evalue"]


def test_a_comm_from_here(kernel):
    run = kernel.run("import comm\nc = comm.create_comm(target_name='there', data={'x': 1}, metadata={'v': '2'},\n"
                     "                     buffers=[memoryview(b'raw')])\n"
                     "c.send({'y': float('nan')}); c.on_msg(lambda m: print('heard', m['content']['data']))\nc.comm_id")
    comm_id = run.result.strip("'")
    opened, sent = [m for m in run.messages if m["msg_type"].startswith("comm")]
    assert opened["content"] == {"comm_id": comm_id, "target_name": "there", "target_module": None, "data": {"x": 1}}
    assert opened["metadata"] == {"v": "2"} and bytes(opened["buffers"][0]) == b"raw"
    assert sent["content"] == {"comm_id": comm_id, "data": {"y": "nan"}}
    assert kernel.comm("comm_msg", {"comm_id": comm_id, "data": 3}).text() == "heard 3\n"
    closed = kernel.run("c.close({'z': 1}); c.close()")
    assert closed.of("comm_close") == [{"comm_id": comm_id, "data": {"z": 1}}]


def test_large_buffers(served):
    big = bytes(range(256)) * 8192
    run = served.comm("comm_msg", {"comm_id": "c1", "data": "fail"}, buffers=[big])
    assert run.of("error")
    served.run("kept[-1][0].on_msg(lambda m: kept[-1][0].send({}, buffers=[m['buffers'][0][::1], bytes(3 << 20)]))")
    run = served.comm("comm_msg", {"comm_id": "c1", "data": 0}, buffers=[big])
    (answer,) = [m for m in run.messages if m["msg_type"] == "comm_msg"]
    assert bytes(answer["buffers"][0]) == big and bytes(answer["buffers"][1]) == bytes(3 << 20)


def test_messages_of_a_busy_cell_wait(served):
    cell = served.send("import time\ntime.sleep(0.4); print('cell done')")
    served.started(cell)
    comm = served.send_comm("comm_msg", {"comm_id": "c1", "data": "later"})
    served.finish(cell)
    served.wait_idle(comm)
    texts = [m["content"]["text"] for m in support.pieces(served.log) if m["msg_type"] == "stream"]
    assert texts.index("cell done\n") < [text.startswith("got later") for text in texts].index(True)


@pytest.mark.parametrize("wait", ["await asyncio.sleep(0.01)",
                                  "get_ipython().kernel.do_one_iteration(); time.sleep(0.01)",
                                  "await get_ipython().kernel.do_one_iteration()"])
def test_a_cell_can_wait_for_a_message(served, wait):
    cell = served.send("import asyncio, time\nheard = []\nkept[-1][0].on_msg(heard.append)\nprint('listens')\n"
                       "while not heard: %s\nprint('cell goes on')\nheard[0]['content']['data']" % wait)
    served.wait_iopub(lambda m: m["msg_type"] == "stream" and "listens" in m["content"]["text"])
    comm = served.send_comm("comm_msg", {"comm_id": "c1", "data": "now"})
    run = served.finish(cell)
    assert run.result == "'now'" and run.text() == "listens\ncell goes on\n"
    states = [(m["parent_header"]["msg_id"] == cell, m["content"]["execution_state"]) for m in served.log
              if m["msg_type"] == "status" and m["parent_header"].get("msg_id") in (cell, comm)]
    # after the comm's idle the cell's busy is said again
    assert states == [(True, "busy"), (False, "busy"), (False, "idle"), (True, "busy"), (True, "idle")]


def test_no_cell_runs_inside_do_one_iteration(served):
    first = served.send("import time\nfor _ in range(20): get_ipython().kernel.do_one_iteration(); time.sleep(0.01)\n"
                        "order = ['first']")
    served.started(first)
    second = served.send("order.append('second'); order")
    served.finish(first)
    assert served.finish(second).result == "['first', 'second']"


def test_a_handler_can_be_interrupted(served):
    served.run("import time\nkept[-1][0].on_msg(lambda m: (print('sleeping'), time.sleep(60)))")
    comm = served.send_comm("comm_msg", {"comm_id": "c1", "data": 0})
    served.wait_iopub(lambda m: m["msg_type"] == "stream" and "sleeping" in m["content"]["text"])
    served.interrupt()
    served.wait_idle(comm)
    assert [m["content"]["ename"] for m in served.of_parent(comm) if m["msg_type"] == "error"] == ["KeyboardInterrupt"]


def test_a_thread_sends_for_its_cell(served):
    run = served.run("import threading, time\n"
                     "def work(): time.sleep(0.2); kept[-1][0].send('from the thread')\n"
                     "threading.Thread(target=work).start()")
    served.run("1")
    late = served.wait_iopub(lambda m: m["msg_type"] == "comm_msg" and m["content"]["data"] == "from the thread")
    assert late["parent_header"]["msg_id"] == run.id


def test_a_silent_cell_keeps_its_comms_in_step(kernel):
    run = kernel.run("import comm; quiet = comm.create_comm(target_name='t'); print('unheard')\n"
                     "!echo unheard", silent=True)
    assert run.types == ["status", "comm_open", "status"]
    kernel.run("quiet.close()")


def test_a_fork_in_a_handler_leaves_one_kernel(served):
    served.run("import os\nkept[-1][0].on_msg(lambda m: os.fork())")
    served.comm("comm_msg", {"comm_id": "c1", "data": 0})
    assert served.run("1+1").result == "2"
    assert "ChildProcessError" not in served.run("_, status = os.wait(); print(status)").text()


def test_display_with_buffers_and_metadata(kernel):
    run = kernel.run("get_ipython().display_pub.publish({'text/plain': 'x'}, {'k': 1}, transient={'display_id': 'd'},\n"
                     "                                  buffers=[b'bytes'])\n"
                     "get_ipython().kernel.send_response(None, 'display_data', {'data': {}, 'metadata': {}}, \n"
                     "                                   metadata={'top': 2}, buffers=[b'2'])")
    first, second = [m for m in run.messages if m["msg_type"] == "display_data"]
    assert first["content"] == {"data": {"text/plain": "x"}, "metadata": {"k": 1}, "transient": {"display_id": "d"}}
    assert bytes(first["buffers"][0]) == b"bytes"
    assert second["metadata"] == {"top": 2} and bytes(second["buffers"][0]) == b"2"


def test_session_send(kernel):
    run = kernel.run("k = get_ipython().kernel\n"
                     "m = k.session.send(k.iopub_socket, 'comm_msg', {'comm_id': 'x', 'data': 1}, "
                     "parent=k.get_parent(),\n"
                     "                   buffers=[b'b'], metadata={'q': 1})")
    (message,) = [m for m in run.messages if m["msg_type"] == "comm_msg"]
    assert message["content"]["data"] == 1 and message["metadata"] == {"q": 1} and bytes(message["buffers"][0]) == b"b"
    assert kernel.run("k.session.session == k.ident").result == "True"
    assert message["header"]["session"] == kernel.run("k.session.session").result.strip("'")
    refused = kernel.run("k.session.send(k.stdin_socket, 'input_request', {})")
    assert "iopub only" in refused.reply["evalue"]


def test_output_for_an_earlier_cell(kernel):
    early = kernel.run("import threading\nearly = get_ipython().get_parent()")
    run = kernel.run("def work():\n    get_ipython().set_parent(early); print('to the early one'); display('shown')\n"
                     "t = threading.Thread(target=work); t.start(); t.join(); print('to this one')")
    assert run.text() == "to this one\n"
    kernel.wait_iopub(lambda m: m["msg_type"] == "display_data" and m["parent_header"]["msg_id"] == early.id)
    texts = [m["content"]["text"] for m in support.pieces(kernel.of_parent(early.id)) if m["msg_type"] == "stream"]
    assert texts == ["to the early one\n"]


def test_the_link_keeps_silent_cells_silent(kernel):
    """What C code publishes through the capsule obeys the cell's silence."""
    code = ("import ctypes\nfrom drupe import _jkernel\n"
            "get = ctypes.pythonapi.PyCapsule_GetPointer; get.restype = ctypes.c_void_p\n"
            "get.argtypes = [ctypes.py_object, ctypes.c_char_p]\n"
            "table = ctypes.cast(get(_jkernel.link, b'drupe._jkernel.link') + 8, ctypes.POINTER(ctypes.c_void_p))\n"
            "retain = ctypes.PYFUNCTYPE(ctypes.c_void_p)(table[0])\n"
            "release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(table[1])\n"
            "publish = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, "
            "ctypes.c_size_t)"
            "(table[2])\ntext = b'{\"data\":{\"text/plain\":\"linked\"},\"metadata\":{}}'\n"
            "cell = retain(); published = publish(cell, b'display_data', text, len(text)); release(cell)")
    assert [c["data"] for c in kernel.run(code).of("display_data")] == [{"text/plain": "linked"}]
    assert kernel.run(code, silent=True).types == ["status", "status"]
    assert kernel.run("published").result == "0"
