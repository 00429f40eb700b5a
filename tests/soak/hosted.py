"""./dev soak hosted [--sessions N] [--seed S] [--minutes M]: a day of a machine that many share, in minutes.

Sessions come, wait for devices, compute, idle, crash and leave, while the broker, hubs and kernels are killed and
stopped. No lease may be lost, doubled or leaked, nobody may wait for what is free, and no value may be wrong.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

from hosted_check import Checker, serves
from hosted_faults import Faults
from hosted_world import DEVICES, HOUR, PROFILES, Hub, Service, Trace, alive

TICK = 0.05
AT_ONCE = 2  # sessions of a hub
MOST_PROBLEMS = 10
FORGIVEN = 30.0  # seconds after the broker was away, or a kernel was killed, in which sessions may say so
ORPHAN = 15.0  # seconds in which a kernel ends after its hub


@dataclasses.dataclass
class Session:
    """What is known of one."""

    hub: object
    state: str = ""  # the last event
    profile: str = ""
    pid: int = None
    lease: str = None
    use: tuple = None  # the lease and the parts that its last cell had in its environment
    ready: dict = None
    until: str = ""  # of "quiet"
    calm: float = None  # since when nobody wants what it has
    woken: bool = False


class World:
    """Everything together."""

    def __init__(self, folder, options):
        self.options, self.folder = options, folder
        self.trace, self.checker = Trace(), Checker()
        self.rng = random.Random(options.seed)
        self.problems, self.shown = [], None
        self.sessions, self.killed, self.orphans = {}, {}, {}
        self.next_session = 0
        self.service = Service(folder)
        self.service.start()
        self.hubs = [Hub(number, folder, options.seed, self.service.path) for number in range(options.hubs)]
        self.faults = Faults(self, random.Random(f"{options.seed}/faults"), options.pause, options.sessions > 50)

    def wrong(self, text):
        self.problems.append(text)
        self.trace.add("WRONG", text=text)
        print("  WRONG: " + text, flush=True)
        if self.shown is None:
            self.shown = list(self.trace.lines)

    # --- What faults do ----------------------------------------------------------------------------------------

    def kill_kernel(self, pid, why):
        self.trace.add(why, pid=pid)
        self.killed[pid] = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def kill_hub(self, hub, why="hub killed"):
        """Kernels that end with their hub have some time for that; the others are taken by its next life."""
        self.trace.add(why, hub=hub.number, pid=hub.process.pid)
        hub.kill()
        self._hear(hub, dead=True)
        left = {}
        for pid, ends in hub.kernels().items():
            session = next((number for number in hub.active if self.sessions[number].pid == pid
                            and self.sessions[number].state not in ("leaves", "restarts", "crashes", "died")), None)
            if ends:
                self.orphans[pid] = time.monotonic() + ORPHAN
                self.killed[pid] = time.monotonic()
            elif session is None or self.sessions[session].ready is None:
                self.kill_kernel(pid, "a kernel without a hub killed")
            else:
                left[session] = self.sessions[session].ready
        for number in hub.active - set(left):
            self.trace.add("lost with its hub", session=number)
            self.sessions[number].state = "lost"
        hub.active = set(left)
        hub.start()
        for number, ready in left.items():
            self.trace.add("taken over", session=number, pid=ready["pid"])
            self.sessions[number].state = "taken"
            hub.tell(take=number, **{name: ready[name] for name in ("connection", "pid")})

    # --- What sessions say -------------------------------------------------------------------------------------

    def _hear(self, hub, dead=False):
        launched = []
        for event in hub.heard():
            name, number = event.pop("event"), event.pop("session")
            del event["at"]
            self.trace.add(name, session=number, **{key: value for key, value in event.items()
                                                    if key not in ("connection", "size", "add", "stays")})
            if name == "launched":
                launched.append((hub.lives, event["pid"]))
            else:
                self._on_event(hub, number, name, event)
        for life, pid in launched:
            if self.options.faults and not dead and life == hub.lives:
                self.faults.launched(hub, pid)

    def _on_event(self, hub, number, name, event):
        session = self.sessions[number]
        if name == "wrong":
            self.wrong(f"session {number} ({session.profile}): {event['text']}")
        elif name == "died" and not event["asked"] and event["pid"] not in {None, *self.killed}:
            self.wrong(f"kernel {event['pid']} of session {number} has ended by itself, with status {event['status']}")
        elif name == "refused":
            self._judge(number, event["why"])
        elif name == "ready":
            session.ready, session.pid, session.lease = event, event["pid"], event["lease"]
        elif name == "used":
            session.use = (event["lease"], sorted(event["use"].split(",")))
        elif name == "quiet":
            session.until, session.calm, session.woken = event["until"], None, False
        elif name == "asks":
            session.profile, session.ready = event["profile"], None
        if name in ("refused", "asks", "restarts", "crashes", "ended"):
            session.lease = None
        if name not in ("quiet", "reply", "used", "wakes", "ready"):
            session.use = None
        if name not in ("wrong", "ready", "used"):
            session.state = name
        if name == "left":
            hub.active.discard(number)

    def _judge(self, number, why):
        """A session may get no device because the broker was away, or its kernel was killed."""
        now = time.monotonic()
        killed = any(now - at < FORGIVEN for at in self.killed.values())
        if now - self.service.disturbed > FORGIVEN and not ("hold its lease" in why and killed):
            self.wrong(f"session {number} was refused without a reason: {why}")

    def _wake(self, listing, now):
        """Sessions that rest until their device is another's, or nobody wants it."""
        leases = {one["lease"]: one for one in listing["leases"]}
        for number, session in self.sessions.items():
            if session.state != "quiet" or session.until != "wake" or session.woken:
                continue
            lease = leases.get(session.lease)
            wanted = lease is not None and any(serves(listing, lease, one) for one in listing["waiting"])
            if wanted:
                session.calm = None
            elif session.calm is None:
                session.calm = now + self.rng.uniform(0.5, 4)
            elif now > session.calm:
                session.woken = True
                session.hub.tell(wake=number)

    # --- The loop ----------------------------------------------------------------------------------------------

    def _fill(self, until):
        for hub in self.hubs:
            while (len(hub.active) < AT_ONCE and self.next_session < self.options.sessions
                   and time.monotonic() < until):
                number, self.next_session = self.next_session, self.next_session + 1
                self.sessions[number] = Session(hub)
                hub.active.add(number)
                hub.tell(begin=number)

    def _tick(self, faults=True):
        now = time.monotonic()
        self.service.tend(now)
        listing = self.service.list()
        for hub in self.hubs:
            if hub.process.poll() is not None:
                raise AssertionError(f"hub {hub.number} has ended: {(self.folder / 'hubs.log').read_text()[-2000:]}")
            self._hear(hub)
        for pid, until in list(self.orphans.items()):
            if not alive(pid):
                del self.orphans[pid]
            elif now > until:
                del self.orphans[pid]
                self.wrong(f"kernel {pid} outlives its hub")
                self.kill_kernel(pid, "orphan killed")
        if listing is None:
            self.checker.away()
        else:
            for text in self.checker.look(listing, self, now):
                self.wrong(text)
            self._wake(listing, now)
        if faults and self.options.faults:
            self.faults.tick(listing, now)
        time.sleep(TICK)
        return listing

    def run(self):
        """All sessions, from the first that comes to the last that leaves."""
        until = time.monotonic() + self.options.minutes * 60
        told = time.monotonic()
        while len(self.problems) < MOST_PROBLEMS:
            self._fill(until)
            if not any(hub.active for hub in self.hubs):
                break
            self._tick()
            if time.monotonic() > told + 30:
                told = time.monotonic()
                print(f"  {self.next_session} sessions, {self.service_faults()} faults, "
                      f"{self.checker.figures['leases']} leases", flush=True)
        if len(self.problems) < MOST_PROBLEMS:
            self._empty()
        for hub in self.hubs:
            hub.end()

    def _empty(self):
        """Nobody is there any more, and the hubs, who could hold leases, still live."""
        end = time.monotonic() + 40
        listing = None
        while time.monotonic() < end:
            listing = self._tick(faults=False) or listing
            if self.service.steady and listing and not listing["leases"] and not listing["waiting"]:
                break
        else:
            self.wrong(f"when all had left, {listing and listing['leases']} and {listing and listing['waiting']} "
                       "were left")
        missing = set(self.checker.parked) - self.service.accounted()
        if self.service.steady and missing:
            self.wrong(f"leases without a line of account: {sorted(missing)}")
        for device in listing["devices"] if listing else ():
            if device["free_parts"] != device["parts"] or device["free_memory"] != device["memory"]:
                self.wrong(f"when all had left, {device['id']} was in use")

    def service_faults(self):
        return sum(count for name, count in self.trace.counts.items() if "killed" in name or name.startswith("broker"))

    def end(self):
        self.service.end()
        for hub in self.hubs:
            if hub.process.poll() is None:
                hub.process.kill()
                hub.process.wait()
            for pid in hub.kernels():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


# --- From outside ----------------------------------------------------------------------------------------------


def prepare(folder):
    """Kernelspecs, and a file to lock for each part of a device."""
    os.chmod(folder, 0o755)
    (folder / "locks").mkdir()
    for device in DEVICES:
        for name in device["env"]["SOAK_USE"].split(","):
            (folder / "locks" / name).touch()
            os.chmod(folder / "locks" / name, 0o666)
    for name in PROFILES:
        spec = {"argv": [sys.executable, "-m", "drupe", "-f", "{connection_file}"], "display_name": name,
                "language": "python", "interrupt_mode": "message",
                "metadata": {"kernel_provisioner": {"provisioner_name": "drupe-provisioner",
                                                    "config": {"profile": name, "wait_seconds": 90,
                                                               "broker": str(folder / "broker.sock")}}}}
        (folder / "kernels" / name).mkdir(parents=True)
        (folder / "kernels" / name / "kernel.json").write_text(json.dumps(spec))


def report(world, seconds):
    counts, figures = world.trace.counts, world.checker.figures
    print(f"  {world.next_session} sessions in {seconds:.0f} s, {seconds / HOUR:.1f} hours in fast motion: "
          f"{counts['left']} left, {counts['lost with its hub']} ended with their hub, {counts['taken over']} were "
          f"taken over")
    print(f"  {figures['leases']} leases, {figures['at once']} at a time; {figures['in the queue']} in the queue; "
          f"{figures['parked']} times parked, {figures['resumed']} times resumed; {counts['moved']} cells met another "
          f"device; {counts['ended']} leases ended by time")
    print(f"  {counts['cell']} cells, {counts['reply']} answers; {counts['restarts']} restarts, {counts['crashes']} "
          f"crashes, {counts['gave up']} gave up, {counts['refused']} refused while the broker was away")
    faults = {name: count for name, count in counts.items()
              if "killed" in name or name.startswith("broker") or name == "journal torn"}
    print("  faults: " + ", ".join(f"{count} {name}" for name, count in sorted(faults.items())))
    print(f"  {figures['lists']} lists checked", flush=True)


def main(arguments):
    parser = argparse.ArgumentParser(prog="./dev soak hosted", description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--minutes", type=float, default=60, help="after them no session begins")
    parser.add_argument("--hubs", type=int, default=3, help="each has two sessions at a time")
    parser.add_argument("--pause", type=float, default=8, help="the most seconds between two faults")
    parser.add_argument("--no-faults", dest="faults", action="store_false")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # in order: nothing that it started is left
    print(f"soak hosted, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        prepare(pathlib.Path(folder))
        begin, world = time.monotonic(), World(pathlib.Path(folder), options)
        try:
            world.run()
            report(world, time.monotonic() - begin)
        finally:
            world.end()
            world.said = (world.folder / "hubs.log").read_text(errors="replace").splitlines()[-40:]
    if not world.problems:
        print("  all well")
        return 0
    print(f"  {len(world.problems)} wrong, seed {options.seed}. What happened before the first:")
    print("\n".join("    " + line for line in world.shown))
    print("  What hubs and kernels said last:")
    print("\n".join("    " + line for line in world.said))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
