"""dpctl's errors. What Drupe's own error says is their text, and the error itself their cause."""
import contextlib

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


@contextlib.contextmanager
def raises(kind, *caught):
    """Drupe's errors as dpctl's."""
    try:
        yield
    except (DeviceError, *caught) as error:
        raise kind(str(error)) from error
