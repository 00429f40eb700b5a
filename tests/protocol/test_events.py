"""Events of devices in cells: awaited without blocking the kernel, callbacks while it is idle, interrupts."""
import pytest
import support
from test_subshell import create, delete, send

SETUP = """
import asyncio, drupe, threading, time
import testwork; from drupe import _engine
queue = drupe.Queue("host")
"""


@pytest.fixture(scope="module")
def kernel(spec_folder):
    kernel = support.Kernel(spec_folder, {"DRUPE_SUBSHELLS": "1"})
    assert kernel.run(SETUP).status == "ok"
    yield kernel
    kernel.close()


def test_await_in_a_cell(kernel):
    result = kernel.run("""
ticks = []
async def tick():
    while True:
        ticks.append(1)
        if len(ticks) == 4:
            gate._finish()
        await asyncio.sleep(0.01)
task = asyncio.ensure_future(tick())
gate = _engine._event_open("gate")
event = testwork.task(queue, 0, None, [gate])
await event
task.cancel()
print(event.status, len(ticks) > 3)
""")
    assert result.text() == "complete True\n"


def test_await_raises_in_its_cell(kernel):
    result = kernel.run("await testwork.task(queue, 0.05, 'the belt tore')")
    assert result.status == "error" and result.reply["ename"].endswith("InternalError")
    assert "the belt tore" in result.reply["evalue"]
    assert kernel.run("queue.wait(); print('well')").text() == "well\n"


def test_await_in_subshells_at_a_time(kernel):
    shell = create(kernel)
    other = send(kernel, shell, "await testwork.task(drupe.Queue('host'), 0.5); "
                                "print('other', threading.current_thread())")
    mine = kernel.run("await testwork.task(queue, 0.05); print('mine', threading.current_thread())")
    assert mine.text().startswith("mine <_MainThread")
    assert "subshell" in kernel.finish(other).text()
    delete(kernel, shell)


def test_callback_while_idle_belongs_to_its_cell(kernel, gate):
    kernel.run("""
hold = _engine._event_open("hold")
def release():
    %s
    hold._finish()
threading.Thread(target=release).start()
""" % gate.wait.replace("\n", "\n    "))
    sent = kernel.send("""
event = testwork.task(queue, 0, None, [hold])
event.add_done_callback(lambda event: print("told", event.status, flush=True))
""")
    result = kernel.finish(sent)
    assert result.status == "ok" and "told" not in result.text()
    gate.open()
    message = kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "told" in m["content"]["text"])
    assert message["content"]["text"] == "told complete\n"
    assert message["parent_header"]["msg_id"] == sent


def test_host_task_while_idle_and_its_failure(kernel):
    result = kernel.run("""
seen = []
first = testwork.task(queue, 0.3)
task = queue.host_task(seen.append, (1,))
bad = queue.host_task(lambda: 1 / 0)
""")
    assert result.status == "ok"
    result = kernel.run("""
await task
try:
    await bad
except drupe.DeviceError as error:
    print(seen, "ZeroDivisionError" in str(error))
""")
    assert result.text() == "[1] True\n"
    kernel.run("try: queue.wait()\nexcept drupe.DeviceError: pass")


def test_interrupted_await_leaves_the_work(kernel):
    sent = kernel.send("gate = _engine._event_open('gate')\nevent = testwork.task(queue, 0, None, [gate])\n"
                       "print('begun', flush=True)\nawait event")
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "begun" in m["content"]["text"])
    kernel.interrupt()
    result = kernel.finish(sent)
    assert result.status == "error" and result.reply["ename"] in ("KeyboardInterrupt", "CancelledError")
    assert kernel.run("gate._finish(); await event; print(event.status)").text() == "complete\n"
