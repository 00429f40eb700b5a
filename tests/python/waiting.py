"""For tests of expressions that wait to be computed."""
import numpy as np
import pytest

import drupe
import drupe.array as da

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


@pytest.fixture
def work(queue):
    return Work(queue)


@pytest.fixture
def values():
    return np.arange(N, dtype=np.float64) - N // 3


@pytest.fixture
def x(queue, values):
    made = da.asarray(values, queue=queue)
    queue.wait()
    return made


@pytest.fixture
def run(fresh):
    """Run a text in a process of its own where all that can wait does, and what it prints."""
    def in_process(text, timeout=100, **environment):
        result = fresh("import numpy as np\nimport drupe, drupe.array as da\n" + text, timeout=timeout,
                       **{**ALL, **environment})
        assert result.returncode == 0, f"ended with {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return in_process
