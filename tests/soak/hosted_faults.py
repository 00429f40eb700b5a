"""What goes wrong on the machine of the soak, at random: with the broker, with hubs, with kernels."""
import signal

from hosted_world import alive

BROKER = {"broker killed": 3, "broker ended": 1, "broker stopped": 2}
OTHERS = {"kernel killed": 3, "parked kernel killed": 1, "waiting kernel killed": 1, "hub killed": 1}
LONG_STOP = 12.0  # seconds: clients give up after ten


class Faults:
    """`pause`: the most seconds between two of them."""

    def __init__(self, world, rng, pause, long_stops):
        self.world, self.rng, self.pause = world, rng, pause
        self.kinds = {**BROKER, **OTHERS, **({"broker stopped for long": 0.4} if long_stops else {})}
        self.next = None

    def tick(self, listing, now):
        if self.next is None:
            self.next = now + self.rng.uniform(0.5, self.pause)
        if now < self.next or not self.world.service.steady:
            return
        self.next = now + self.rng.uniform(0.2, self.pause)
        kind = self.rng.choices(list(self.kinds), self.kinds.values())[0]
        if kind.startswith("broker"):
            self._broker(kind, listing)
        elif kind == "hub killed":
            self.world.kill_hub(self.rng.choice(self.world.hubs))
        elif listing is not None:
            self._kernel(kind, listing)

    def launched(self, hub, pid):
        """A kernel has no lease of its own yet."""
        draw = self.rng.random()
        if draw < 0.08:
            self.world.kill_kernel(pid, "kernel killed before it holds its lease")
        elif draw < 0.12:
            self.world.kill_hub(hub, "hub killed before a kernel holds its lease")

    def _broker(self, kind, listing):
        service, trace = self.world.service, self.world.trace
        if kind.startswith("broker stopped"):
            seconds = LONG_STOP if kind.endswith("long") else self.rng.uniform(0.1, 2.5)
            trace.add(kind, seconds=f"{seconds:.2f}")
            service.stop(seconds)
            return
        trace.add(kind)
        service.kill(signal.SIGKILL if kind == "broker killed" else signal.SIGTERM, self.rng.choice((0, 0.2, 1.5)))
        if kind == "broker killed" and self.rng.random() < 0.5:
            trace.add("journal torn")
            leases = [one["lease"] for one in (listing or {}).get("leases", ())]
            service.tear(self.rng.choice([None, *leases]))

    def _kernel(self, kind, listing):
        hubs = {hub.process.pid for hub in self.world.hubs}
        waiting = {one["lease"] for one in listing["waiting"]}
        pids = [one["pid"] for one in listing["leases"] if one["pid"] not in hubs and alive(one["pid"])
                and (kind != "parked kernel killed" or one["parked"])
                and (kind != "waiting kernel killed" or one["lease"] in waiting)]
        if pids:
            self.world.kill_kernel(self.rng.choice(pids), kind)
