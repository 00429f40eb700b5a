"""Host tasks and callbacks that wait for a device: the next ones go on meanwhile."""
import contextvars
import threading

import drupe
from drupe import _engine


def test_a_task_that_waits_for_one_that_waits(device):
    """Each waits on a thread of its own: the first goes on when its device is done, whoever waits for it."""
    first, second, other = drupe.Queue(device), drupe.Queue(device), drupe.Queue(device)
    gate = _engine._event_open("gate")
    held = other.barrier(wait_for=[gate])
    begun = threading.Event()

    def waits():
        begun.set()
        held.wait()

    one = first.host_task(waits)
    begun.wait()
    two = second.host_task(one.wait)
    gate._finish()
    two.wait(timeout=60)
    assert one.done


def test_hundreds_of_tasks_that_wait(device):
    queue, other = drupe.Queue(device, in_order=False), drupe.Queue(device)
    gate = _engine._event_open("gate")
    held = other.barrier(wait_for=[gate])
    tasks = [queue.host_task(held.wait) for _ in range(400)]
    gate._finish()
    for task in tasks:
        task.wait(timeout=60)


def test_callbacks_that_share_a_context(queue):
    context = contextvars.copy_context()
    gate = _engine._event_open("gate")
    event = queue.barrier(wait_for=[gate])
    later = drupe.Queue(queue.device).barrier(wait_for=[gate])
    called, done = [], threading.Semaphore(0)

    def call(name):
        later.wait()
        called.append(name)
        done.release()

    for name in "ab":
        event.add_done_callback(lambda event, name=name: call(name), context=context)
    gate._finish()
    assert done.acquire(timeout=60) and done.acquire(timeout=60)
    assert sorted(called) == ["a", "b"]
