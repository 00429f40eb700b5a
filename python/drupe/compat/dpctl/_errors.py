"""dpctl's errors. What Drupe's own error says is their text."""
from drupe._engine import DeviceError


class SyclDeviceCreationError(Exception):
    """There is no such device."""


class SyclSubDeviceCreationError(Exception):
    """The device cannot be divided like that."""


class SyclContextCreationError(Exception):
    """These devices have no common context."""


class SyclQueueCreationError(Exception):
    """There is no such queue."""


class SyclKernelSubmitError(Exception):
    """The kernel was not submitted."""


class SyclKernelInvalidRangeError(Exception):
    """A range has one to three dimensions."""


class raises:  # noqa: N801 (reads as a word of the language in `with raises(...):`)
    """A block in which Drupe's errors, and those of other classes that are named, become dpctl's. What was raised is
    the attribute `drupe_error`: as the cause it would show the same text twice."""

    def __init__(self, kind, *caught):
        self._kind = kind
        self._caught = (DeviceError, *caught)

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _traceback):
        __tracebackhide__ = True
        if isinstance(error, self._caught):
            made = self._kind(str(error))
            made.drupe_error = error
            raise made from None
