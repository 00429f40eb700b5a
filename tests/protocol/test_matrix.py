"""Every request on shell and on control, with contents as they should be and as they should not: always busy, at most
one reply, idle, and messages that JupyterLab accepts."""
import json

import pytest

OUTPUTS = {"stream": {"name": str, "text": str}, "display_data": {"data": dict, "metadata": dict},
           "update_display_data": {"data": dict, "metadata": dict},
           "execute_result": {"data": dict, "metadata": dict, "execution_count": int},
           "execute_input": {"code": str, "execution_count": int},
           "error": {"ename": str, "evalue": str, "traceback": list}, "clear_output": {"wait": bool},
           "comm_open": {"comm_id": str, "target_name": str, "data": dict}, "comm_msg": {"comm_id": str, "data": dict},
           "comm_close": {"comm_id": str}}
REPLIES = {
    "execute_request": {"execution_count": int, "payload": list, "user_expressions": dict},
    "inspect_request": {"found": bool, "data": dict, "metadata": dict},
    "complete_request": {"matches": list, "cursor_start": int, "cursor_end": int, "metadata": dict},
    "history_request": {"history": list},
    "is_complete_request": {},
    "comm_info_request": {"comms": dict},
    "kernel_info_request": {"protocol_version": str, "implementation": str, "implementation_version": str,
                            "language_info": dict, "banner": str, "help_links": list, "supported_features": list},
    "connect_request": {"shell_port": int, "iopub_port": int, "stdin_port": int, "control_port": int, "hb_port": int},
    "interrupt_request": {},
}
FULL = [
    ("execute_request", {"code": "1", "silent": False, "store_history": True, "user_expressions": {"a": "2"},
                         "allow_stdin": False, "stop_on_error": False}),
    ("execute_request", {"code": "1/0", "silent": True, "store_history": False, "user_expressions": {"a": "2"},
                         "allow_stdin": True, "stop_on_error": False}),
    ("inspect_request", {"code": "print", "cursor_pos": 3, "detail_level": 0, "omit_sections": ["Type"]}),
    ("complete_request", {"code": "pri", "cursor_pos": 3}),
    ("history_request", {"output": True, "raw": True, "hist_access_type": "tail", "n": 3}),
    ("history_request", {"output": False, "raw": False, "hist_access_type": "range", "session": 0, "start": 1,
                         "stop": 2}),
    ("history_request", {"output": True, "raw": True, "hist_access_type": "search", "pattern": "1*", "n": 3,
                         "unique": True}),
    ("is_complete_request", {"code": "for x in y:"}),
    ("comm_info_request", {"target_name": "jupyter.widget"}),
    ("kernel_info_request", {}),
    ("connect_request", {}),
    ("interrupt_request", {}),
    ("comm_open", {"comm_id": "m", "target_name": "none", "data": {}}),
    ("comm_msg", {"comm_id": "m", "data": {}}),
    ("comm_close", {"comm_id": "m", "data": {}}),
    ("no_such_request", {"a": 1}),
]
ODD = [None, True, -7, 2**70, 1.5, "", "\ud800", "x\0y", [], ["x"], {}, {"x": None}]
VALUES = {"status": ("ok", "error", "aborted"),
          "is_complete": ("complete", "incomplete", "invalid", "unknown", "error")}


def contents(full):
    """`full`; with each field missing, or odd; with a field nobody knows; nothing."""
    yield full
    yield {}
    yield {**full, "unknown_field": {"x": [None]}}
    for name in full:
        yield {key: value for key, value in full.items() if key != name}
        for odd in ODD:
            yield {**full, name: odd}


def check_shape(message):
    """What JupyterLab checks of every message before it takes it."""
    header = message["header"]
    for name in ("username", "version", "session", "msg_id", "msg_type", "date"):
        assert header.get(name) or name == "username", (name, header)
    assert isinstance(header["username"], str)
    assert isinstance(message["metadata"], dict) and isinstance(message["content"], dict)
    for name, kind in OUTPUTS.get(message["msg_type"], {}).items():
        assert isinstance(message["content"].get(name), kind), message
    if message["msg_type"] == "status":
        assert message["content"]["execution_state"] in ("busy", "idle")


def check_reply(kind, reply):
    check_shape(reply)
    content, asked = reply["content"], kind.replace("_request", "")
    assert reply["msg_type"] == asked + "_reply"
    assert content["status"] in VALUES.get(asked, VALUES["status"]), content
    if content["status"] == "error":
        assert isinstance(content["ename"], str) and isinstance(content["evalue"], str)
        assert all(isinstance(line, str) for line in content["traceback"])
        assert len(content["evalue"]) > 3, content  # says what is wrong
        if kind == "execute_request":
            assert isinstance(content["execution_count"], int)
    else:
        for name, expected in REPLIES[kind].items():
            assert isinstance(content.get(name), expected), (name, content)


def exchange(raw, channel, kind, content):
    """Send, and take everything up to idle and the reply."""
    msg_id = raw.send(channel, kind, json.dumps(content).encode())  # lone surrogates escaped, as from JavaScript
    published = []
    while not published or published[-1]["content"].get("execution_state") != "idle":
        message = raw.receive("iopub")
        assert message is not None, "no idle for %s %r" % (kind, content)
        if message["parent_header"].get("msg_id") == msg_id:
            published.append(message)
    reply = raw.receive(channel) if kind in REPLIES else None
    assert (reply is None) == (kind not in REPLIES)
    assert reply is None or reply["parent_header"]["msg_id"] == msg_id, "a reply to something else"
    return published, reply


@pytest.mark.parametrize("channel", ["shell", "control"])
@pytest.mark.parametrize("kind, full", FULL, ids=["%s-%d" % (kind, i) for i, (kind, _) in enumerate(FULL)])
def test_every_request(raw, channel, kind, full):
    good = None
    for number, content in enumerate(contents(full)):
        published, reply = exchange(raw, channel, kind, content)
        states = [m["content"]["execution_state"] for m in published if m["msg_type"] == "status"]
        assert states == ["busy", "idle"] and published[0]["msg_type"] == published[-1]["msg_type"] == "status"
        for message in published:
            check_shape(message)
        if reply is not None:
            check_reply(kind, reply)
            if number == 0:
                good = reply["content"]["status"]
    assert good != "error" or full.get("code") == "1/0", "the good one failed"
    # and no reply is left over
    after = raw.send(channel, "kernel_info_request")
    assert raw.receive(channel)["parent_header"]["msg_id"] == after


@pytest.mark.parametrize("content, words", [
    ({}, "code as text"), ({"code": None}, "code as text"), ({"code": 5}, "code as text"),
    ({"code": "1", "user_expressions": [1]}, "user_expressions"),
])
def test_what_an_execute_request_lacks_is_named(kernel, content, words):
    assert words in kernel.ask("execute_request", content)["evalue"]


@pytest.mark.parametrize("kind, content, words", [
    ("complete_request", {"code": 5}, "code must be text"),
    ("is_complete_request", {"code": []}, "code must be text"),
    ("history_request", {"hist_access_type": "guess"}, "tail, range or search"),
    ("history_request", {"hist_access_type": 3}, "must be text"),
    ("history_request", {"n": "many"}, "n must be an integer"),
    ("history_request", {"n": True}, "n must be an integer"),
    ("history_request", {"n": -1}, "negative"),
    ("history_request", {"hist_access_type": "range", "session": "x"}, "session must be an integer"),
    ("history_request", {"hist_access_type": "search", "pattern": 4}, "pattern must be text"),
])
def test_bad_fields_are_named(kernel, kind, content, words):
    reply = kernel.ask(kind, content)
    assert reply["status"] == "error" and words in reply["evalue"]
