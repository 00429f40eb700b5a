"""A hub of the soak of hosted kernels: it starts sessions as it is told, and tells what happens to them.

Lines of JSON come in: {"begin": N}, {"take": N, ...} a kernel that an earlier life of this hub has left, {"wake": N}.
At the end of the input it waits for its sessions, and ends.
"""
import asyncio
import json
import os
import random
import sys
import time

from drupe.hosted.session import Session
from hosted_life import Life


def say(number, event, **more):
    os.write(1, json.dumps({"at": time.monotonic(), "session": number, "event": event, **more}).encode() + b"\n")


def slow_down(rng):
    """Put time between a kernel's start and its lease: a busy machine does, and faults shall hit it."""
    adopt = Session.adopt

    async def later(self, pid):
        if pid != os.getpid():
            say(None, "launched", pid=pid)
            await asyncio.sleep(rng.choice((0, 0, 0.2)))
        await adopt(self, pid)

    Session.adopt = later


async def main(options):
    slow_down(random.Random(options["seed"]))
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    lives, tasks = {}, set()
    while line := await reader.readline():
        command = json.loads(line)
        if "wake" in command:
            if command["wake"] in lives:
                lives[command["wake"]].wake.set()
            continue
        number = command.get("begin", command.get("take"))
        lives[number] = life = Life(number, options, say)
        task = asyncio.create_task(life.run(command if "take" in command else None))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
