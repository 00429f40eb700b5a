"""Checked mode: mistakes that no device reports."""
from drupe import _engine
from drupe.compiler import careful


class checked:
    """Find mistakes in the device work of a block of code.

        with drupe.checked():
            queue.submit(kernel, ...)

    Two submissions, or a submission and the host, that touch the same bytes without anything that orders them, raise
    CheckError where the second is submitted, whether they met this time or not; the message names both places.
    Kernels that write before or behind memory that was allocated in the block raise it at the next wait, at the
    latest at the end of the block; so do freed memory that is used again, and misaligned pointers. On the device
    "host", in a notebook or after drupe.contain_faults(), kernels that only read there raise it, too. Array
    operations check every index. Everything is slower meanwhile. DRUPE_LAYERS=check does it for a whole process."""

    def __enter__(self):
        _engine._check_begin()
        careful.checked(1)
        return self

    def __exit__(self, kind, error, traceback):
        careful.checked(-1)
        try:
            _engine._check_end()
        except _engine.CheckError:
            if kind is None:
                raise

    @property
    def findings(self):
        """How many mistakes this process has found."""
        return _engine._check_findings()
