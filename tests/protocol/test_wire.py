"""What goes over the wire: signatures, identities, statuses, requests that are odd but legal."""
import subprocess
import sys
import time

import pytest
import support

ASK_FEATURES = """
import json, sys, zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session
from drupe import _jkernel
from drupe.jupyter import features

features.supported = lambda: json.loads(sys.argv[2])
path, info = write_connection_file(sys.argv[1])
server = _jkernel.Server(path, features.kernel_info("1.2"))
assert json.loads(server.kernel_info)["implementation_version"] == "1.2"
session = Session(key=info["key"].encode())
socket = zmq.Context().socket(zmq.DEALER)
socket.connect("tcp://127.0.0.1:%d" % info["control_port"])
session.send(socket, "kernel_info_request")
assert socket.poll(20000)
print(json.dumps(session.recv(socket, 0)[1]["content"]["supported_features"]))
socket.close(0)
server.close()
"""


@pytest.mark.parametrize("features", ["[]", '["debugger", "kernel subshells"]'])
def test_features_are_announced_as_the_server_was_told(tmp_path, features):
    done = subprocess.run([sys.executable, "-c", ASK_FEATURES, str(tmp_path / "c.json"), features],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == features, done.stderr


def test_kernel_info_on_shell_and_control(raw):
    for channel in ("shell", "control"):
        raw.send(channel, "kernel_info_request")
        reply = raw.receive(channel)
        assert reply["msg_type"] == "kernel_info_reply"
        content = reply["content"]
        assert content["status"] == "ok"
        assert content["implementation"] == "drupe"
        assert content["language_info"]["name"] == "python"
        assert content["protocol_version"] == reply["header"]["version"] == "5.6"
        assert isinstance(content["banner"], str) and content["help_links"][0]["url"].startswith("https://")


def test_heartbeat_echoes(raw):
    raw.sockets["hb"].send(b"are you there")
    assert raw.sockets["hb"].poll(support.TIMEOUT * 1000)
    assert raw.sockets["hb"].recv() == b"are you there"


def test_a_new_subscriber_is_told_the_state(kernel, tmp_path):
    """It may have missed that: after a restart, a request can be quicker than the subscription."""
    def told():
        client = support.Raw(kernel.manager)
        client.close()
        assert client.first["msg_type"] == "iopub_welcome" and client.state["msg_type"] == "status"
        return client.state["content"]["execution_state"], client.state["parent_header"].get("msg_id")

    assert told() == ("idle", None)
    busy = kernel.send("import os, time\nwhile not os.path.exists(%r): time.sleep(0.01)" % str(tmp_path / "go"))
    kernel.started(busy)
    assert told() == ("busy", busy)
    (tmp_path / "go").touch()
    assert kernel.finish(busy).status == "ok"


def test_a_second_subscriber_is_welcomed(raw):
    message = raw.first
    assert message["msg_type"] == "iopub_welcome"
    assert message["parent_header"] == {} and message["metadata"] == {}
    assert message["header"]["session"]


def test_a_wrong_signature_is_dropped_and_the_next_message_served(kernel, raw):
    frames, header = raw.frames("execute_request", {"code": "forged = True", "silent": False})
    at = frames.index(b"<IDS|MSG>") + 1
    for signature in (b"0" * len(frames[at]), b"", frames[at][:-1], frames[at] + b"0"):
        raw.sockets["shell"].send_multipart([*frames[:at], signature, *frames[at + 1:]])
    assert raw.receive("shell", 0.5) is None
    assert kernel.run("'forged' in globals()").result == "False"


def test_a_replayed_message_is_executed_once(kernel, raw):
    kernel.run("replays = 0")
    frames, header = raw.frames("execute_request", {"code": "replays += 1"})
    raw.sockets["shell"].send_multipart(frames)
    assert raw.receive("shell")["parent_header"]["msg_id"] == header["msg_id"]
    raw.sockets["shell"].send_multipart(frames)
    assert raw.receive("shell", 0.5) is None
    assert kernel.run("replays").result == "1"


def test_malformed_frames_do_not_stop_the_kernel(kernel, raw):
    shell = raw.sockets["shell"]
    shell.send_multipart([b"no delimiter at all"])
    shell.send_multipart([b"<IDS|MSG>"])
    shell.send_multipart([b"<IDS|MSG>", b"00", b"{"])
    shell.send_multipart([b""])
    assert kernel.run("1+1").result == "2"


def test_unknown_types_are_busy_and_idle_and_no_reply(raw):
    msg_id = raw.send("shell", "teleport_request", {"to": "Mars"})
    assert raw.status_of(msg_id) == ["busy", "idle"]
    assert raw.receive("shell", 0.3) is None


def test_missing_optional_fields(raw):
    raw.send("shell", "execute_request", {"code": "6*7"})
    assert raw.receive("shell")["content"]["status"] == "ok"
    for msg_type in ("complete_request", "inspect_request", "is_complete_request", "history_request",
                     "comm_info_request"):
        raw.send("shell", msg_type, {})
        reply = raw.receive("shell")
        assert reply["msg_type"] == msg_type.replace("request", "reply")
        assert reply["content"]["status"] in ("ok", "complete", "incomplete"), reply["content"]


def test_an_execute_request_without_code_is_an_error_reply(raw):
    raw.send("shell", "execute_request", {})
    content = raw.receive("shell")["content"]
    assert content["status"] == "error" and content["ename"] and isinstance(content["execution_count"], int)


def test_null_target_name(raw):
    raw.send("shell", "comm_info_request", {"target_name": None})
    assert raw.receive("shell")["content"] == {"status": "ok", "comms": {}}


def test_extra_header_fields_come_back(raw):
    raw.send("shell", "kernel_info_request", {}, subshell_id=None, **{"x-custom": [1, {"a": None}]})
    parent = raw.receive("shell")["parent_header"]
    assert parent["x-custom"] == [1, {"a": None}]


def test_one_session_and_objects_everywhere(kernel):
    run = kernel.run("print('x'); 1")
    sessions = {message["header"]["session"] for message in run.messages} | {run.message["header"]["session"]}
    assert len(sessions) == 1 and sessions != {""}
    for message in run.messages:
        for part in ("header", "parent_header", "metadata", "content"):
            assert isinstance(message[part], dict), (message["msg_type"], part)


def test_order_of_a_cell(kernel):
    run = kernel.run("print('out'); 5")
    assert run.types == ["status", "execute_input", "stream", "execute_result", "status"]
    assert [content["execution_state"] for content in run.of("status")] == ["busy", "idle"]


def test_unknown_comm_targets_are_closed(kernel):
    message = kernel.client.session.msg("comm_open", {"comm_id": "c1", "target_name": "nobody", "data": {}})
    kernel.client.shell_channel.send(message)
    kernel.wait_idle(message["header"]["msg_id"])
    types = [m["msg_type"] for m in kernel.of_parent(message["header"]["msg_id"])]
    assert types == ["status", "comm_close", "status"]


def test_control_answers_while_the_gil_is_held(kernel, raw, tmp_path):
    with support.stuck(kernel, tmp_path) as cell:
        raw.send("control", "kernel_info_request")
        assert raw.receive("control")["content"]["status"] == "ok"
        raw.sockets["hb"].send(b"beat")
        assert raw.sockets["hb"].poll(20000)
        assert cell.free().status == "ok"


def test_busy_again_after_another_request_ended_within_a_cell(kernel, raw):
    msg_id = kernel.send("import time; time.sleep(0.6)")
    kernel.started(msg_id)
    raw.send("control", "kernel_info_request")
    assert raw.receive("control")
    kernel.finish(msg_id)
    states = [(m["parent_header"].get("msg_id") == msg_id, m["content"]["execution_state"])
              for m in kernel.log if m["msg_type"] == "status"]
    other_idle = states.index((False, "idle"), states.index((True, "busy")))
    assert states[other_idle + 1] == (True, "busy")
    assert states[-1] == (True, "idle")
