"""For tests of expressions that wait to be computed."""
import numpy as np

import drupe

N = 40_000  # elements: enough for operations to wait
ALL = {"DRUPE_FUSE_ABOVE": "0"}  # the environment of a process where all that can wait does


class Work:
    """The kernels that were submitted to a queue since the last look."""

    def __init__(self, queue):
        self.queue, self.last = queue, 0
        self.new()

    def new(self):
        records = drupe.trace(after=self.last)
        self.last = records[-1]["id"] if records else self.last
        return [record["label"] for record in records
                if record["queue"] == self.queue.number and record["operation"] == "kernel"]


def same(x, a):
    """The same bits."""
    got = x.asnumpy()
    assert got.dtype == a.dtype and got.shape == a.shape
    assert got.tobytes() == np.ascontiguousarray(a).tobytes()
