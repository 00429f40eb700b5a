"""Who is believed and what is kept: identities that come back, sessions, replays, nulls, very large messages."""
import json

import psutil
import pytest
import support
import zmq
from jupyter_client.session import Session

BIG = 256 << 20


def endpoint(kernel, channel):
    info = kernel.manager.get_connection_info()
    return "tcp://%s:%d" % (info["ip"], info[channel + "_port"])


def dealer(context, kernel, channel, identity):
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    socket.routing_id = identity
    socket.connect(endpoint(kernel, channel))
    return socket


def session_of(kernel):
    info = kernel.manager.get_connection_info()
    return Session(key=info["key"], signature_scheme=info["signature_scheme"])


def receive(session, socket, timeout=support.TIMEOUT):
    assert socket.poll(timeout * 1000), "nothing came"
    _, frames = session.feed_identities(socket.recv_multipart())
    return session.deserialize(frames)


@pytest.fixture
def context():
    made = zmq.Context()
    yield made
    made.destroy(linger=0)


@pytest.mark.parametrize("channel", ["shell", "control"])
def test_a_client_comes_back_under_its_old_identity(kernel, context, channel):
    """As when its connection broke and the kernel has not noticed: the old one is still there."""
    session = session_of(kernel)
    sockets = []
    for _ in range(3):
        sockets.append(dealer(context, kernel, channel, b"the-client"))
        session.send(sockets[-1], "kernel_info_request")
        assert receive(session, sockets[-1])["msg_type"] == "kernel_info_reply"
    assert not sockets[0].poll(200)


def test_a_question_follows_the_client_that_came_back(kernel, context):
    session = session_of(kernel)
    shell = dealer(context, kernel, "shell", b"asker")
    gone, back = (dealer(context, kernel, "stdin", b"asker") for _ in range(2))
    # An answer that nobody asked for is dropped; it makes sure that the second connection is the later one.
    session.send(gone, "input_reply", {"value": "stale"})
    session.send(back, "input_reply", {"value": "stale"})
    kernel.run("import time; time.sleep(0.3)")
    session.send(shell, "execute_request", {"code": "input('? ')", "allow_stdin": True})
    asked = [socket for socket in (back, gone) if socket.poll(support.TIMEOUT * 1000 if socket is back else 200)]
    assert asked == [back]
    receive(session, back)
    session.send(back, "input_reply", {"value": "here"})
    assert receive(session, shell)["content"]["status"] == "ok"


def test_one_session_on_every_channel_and_a_new_one_per_process(fresh):
    def sessions():
        msg_id = fresh.send("print(input('? '))", allow_stdin=True)
        found = {fresh.client.get_stdin_msg(timeout=support.TIMEOUT)["header"]["session"]}
        fresh.client.input("x")
        run = fresh.finish(msg_id)
        found |= {message["header"]["session"] for message in (*run.messages, run.message)}
        message = fresh.client.session.msg("kernel_info_request")
        fresh.client.control_channel.send(message)
        found.add(fresh.client.get_control_msg(timeout=support.TIMEOUT)["header"]["session"])
        return found

    first = sessions()
    fresh.manager.restart_kernel()
    fresh.client.wait_for_ready(timeout=support.TIMEOUT)
    second = sessions()
    assert len(first) == len(second) == 1 and first != second and "" not in first | second


def test_nothing_is_null_where_an_object_belongs(kernel, context):
    """A request full of nulls is served, and what the kernel sends has {} in every empty place."""
    info = kernel.manager.get_connection_info()
    session = session_of(kernel)
    shell = dealer(context, kernel, "shell", b"nulls")
    iopub = context.socket(zmq.SUB)
    iopub.linger = 0
    iopub.subscribe(b"")
    iopub.connect(endpoint(kernel, "iopub"))
    assert iopub.poll(support.TIMEOUT * 1000)
    seen = [iopub.recv_multipart()]  # the welcome, which has no parent
    header = session.msg_header("execute_request")
    parts = [session.pack(header), b"null", b"null", session.pack({"code": "print('x'); 1"})]
    shell.send_multipart([b"<IDS|MSG>", session.sign(parts), *parts])
    assert shell.poll(support.TIMEOUT * 1000)
    seen.append(shell.recv_multipart())
    idle = False
    while not idle:
        assert iopub.poll(support.TIMEOUT * 1000)
        seen.append(iopub.recv_multipart())
        idle = b'"idle"' in seen[-1][-1] and header["msg_id"].encode() in seen[-1][-3]
    assert info["key"] and len(seen) >= 7
    for frames in seen:
        at = frames.index(b"<IDS|MSG>")
        for part in frames[at + 2:at + 6]:
            assert isinstance(json.loads(part), dict), part
        assert json.loads(frames[at + 2])["version"] == "5.6"


def test_replays_are_refused_on_every_channel(kernel, context):
    """Also when what is repeated was first sent to another channel."""
    session = session_of(kernel)
    shell, control = (dealer(context, kernel, channel, b"parrot") for channel in ("shell", "control"))
    frames = session.serialize(session.msg("kernel_info_request"))
    shell.send_multipart(frames)
    assert receive(session, shell)["msg_type"] == "kernel_info_reply"
    for socket in (shell, control):
        socket.send_multipart(frames)
        assert not socket.poll(300)


# --- 256 MiB -------------------------------------------------------------------------------------------------

def memory_of(kernel):
    return psutil.Process(kernel.pid).memory_info().rss


def settled(kernel, before):
    """What a large message took is given back."""
    support.wait_until(lambda: memory_of(kernel) < before + (64 << 20), what="the memory to come back")


@pytest.mark.skipif(psutil.virtual_memory().available < 4 << 30, reason="needs 4 GiB of memory")
def test_a_buffer_of_256_mib(fresh, context):
    fresh.run("import comm\ndef opened(c, message):\n    @c.on_msg\n    def got(message):\n"
              "        data = message['buffers'][0]\n        print(len(data), bytes(data[:2]), bytes(data[-2:]))\n"
              "comm.get_comm_manager().register_target('big', opened)")
    session = session_of(fresh)
    shell = dealer(context, fresh, "shell", b"heavy")
    session.send(shell, "comm_open", {"comm_id": "c", "target_name": "big", "data": {}})
    fresh.run("pass")
    before = memory_of(fresh)
    data = bytearray(BIG)
    data[:2], data[-2:] = b"ab", b"yz"
    sent = session.send(shell, "comm_msg", {"comm_id": "c", "data": {}}, buffers=[data])
    run = fresh.finish_idle(sent["header"]["msg_id"])
    assert run.text() == "%d b'ab' b'yz'\n" % BIG
    del data
    settled(fresh, before)
    assert fresh.run("6*7").result == "42"


@pytest.mark.skipif(psutil.virtual_memory().available < 4 << 30, reason="needs 4 GiB of memory")
def test_a_content_of_256_mib(fresh, context):
    session = session_of(fresh)
    shell = dealer(context, fresh, "shell", b"heavy")
    fresh.run("pass")
    before = memory_of(fresh)
    parts = [session.pack(session.msg_header("execute_request")), b"{}", b"{}",
             b'{"code": "6*7", "padding": "%s"}' % (b"x" * BIG)]
    shell.send_multipart([b"<IDS|MSG>", session.sign(parts), *parts], copy=False)
    del parts
    assert receive(session, shell, 120)["content"]["status"] == "ok"
    assert fresh.run("6*7").result == "42"
    settled(fresh, before)
