"""dpctl, answered by Drupe."""
from drupe.compat import absent

_missing = absent(__name__, {"device_context": "Write `with drupe.device(which):`."})


def __getattr__(name):
    return _missing(name)
