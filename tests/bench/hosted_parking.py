"""How long the next in line waits for the device of a session that is idle and has a gibibyte on it.

A real kernel holds a lease of a real broker; its cell fills 1 GiB of the device. It is idle for longer than its
profile's time when the next asks. The clock runs from that request until the lease is granted: the broker asks the
kernel to park, the kernel moves its memory to the host and says so. Then the device is given back, and a cell of the
kernel that adds up the memory is timed: it waits for its turn, and the memory comes back."""
import argparse
import pathlib
import sys
import tempfile
import time

import client

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "hosted"))
from brokers import Broker  # noqa: E402

IDLE = 0.2  # seconds of the profile
REST = 2.0  # until the session has been idle for longer than that, seen from the broker
CONFIG = {"devices": [{"id": "device", "kind": "cpu", "name": "The only one", "env": {"DRUPE_DEVICES": "*"}}],
          "profiles": {"whole": {"kind": "cpu", "devices": 1, "idle": IDLE}}}
FILL = """
import drupe, drupe.array as da
for _ in range(3):  # so that the machine has handed out the memory once
    x = None
    x = da.ones({count}, dtype="float64", device="{device}")
    x.queue.wait()
drupe.hosted.park("{device}", automatic=False); drupe.hosted.unpark("{device}")
float(x[:10].sum())
"""


def measure(device="host", gib=1.0, rounds=5):
    """Seconds until the next has the device, and of the cell by which it comes back: two lists."""
    count = int(gib * (1 << 30)) // 8
    handed, back = [], []
    with tempfile.TemporaryDirectory() as folder, Broker(folder, CONFIG) as broker:
        asker = broker.client()
        lease = asker.ask("lease", want={"profile": "whole"})["lease"]
        settings = {"DRUPE_LEASE": lease, "DRUPE_BROKER": broker.path}
        with client.Kernel("drupe", pathlib.Path(folder), settings=settings) as kernel:
            asker.ask("adopt", lease=lease, holder={"pid": kernel.process.pid})
            kernel.ready()
            kernel.execute("import drupe.hosted" + FILL.format(count=count, device=device))
            for _ in range(rounds):
                time.sleep(REST)
                begin = time.perf_counter()
                answer = asker.ask("lease", want={"profile": "whole"}, wait=True)
                event = answer if "lease" in answer else asker.event("granted")
                handed.append(time.perf_counter() - begin)
                asker.ask("return", lease=event["lease"])
                back.append(kernel.execute("assert float(x.sum()) == %d" % count)[0])
    return handed, back


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="host")
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name, seconds in zip(("the next has the device", "the session has it back"),
                             measure(options.device, options.gib, options.rounds)):
        print("%-26s %s s" % (name, " ".join("%.3f" % one for one in seconds)))
