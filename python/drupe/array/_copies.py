"""Operations that the host computes for a device whose memory it cannot address, on copies."""
import warnings

from drupe import _engine


class HostCopyWarning(UserWarning):
    """An operation has no kernel for the device: the host computed it, on copies there and back.

    It comes once in a process. allow_host_copies(False) makes such operations an error.

    >>> import warnings
    >>> warnings.simplefilter("ignore", HostCopyWarning)
    """


def allow_host_copies(allow=True, /):
    """Whether the host may compute, on copies, what has no kernel for a GPU; returns what was set before.

    At first it may, and the first such operation of the process is a HostCopyWarning. Where it may not, such an
    operation is an UnsupportedError. The environment variable DRUPE_HOST_COPIES=0 forbids it from the start. Devices
    that share the host's memory need no copies, and nothing changes there.

    >>> before = da.allow_host_copies(True)
    >>> da.allow_host_copies(before)
    True
    """
    return _engine._host_copies(allow)


def tell(label):
    """The engine has computed this for the first time."""
    warnings.warn(f"{label} has no kernel for this device: the host computes it, on copies there and back. This is "
                  "told once. drupe.array.allow_host_copies(False) makes it an error.", HostCopyWarning, stacklevel=3)
