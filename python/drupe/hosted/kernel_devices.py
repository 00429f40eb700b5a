"""What lies and runs on the devices of a kernel, for its session: only where they are used already."""
import sys

from . import words


def opened():
    return "drupe._engine" in sys.modules


def work():
    engine = sys.modules.get("drupe._engine")
    return engine is not None and engine._view_works()


def park():
    """Move what lies on devices to the host. Why that cannot be, or "", and how many bytes there are."""
    if not opened():
        return "", 0  # nothing lies there
    from . import parking

    try:
        report = parking.park(automatic=False)  # it comes back with the lease, and not before
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error), 0
    return words.stays(report), report.nbytes


def unpark():
    """Bring it back. How many bytes came, in which time."""
    if not opened():
        return 0, 0.0
    from . import parking

    report = parking.unpark()
    return report.nbytes, report.seconds
