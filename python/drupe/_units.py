"""Numbers for people, as in the pictures that are made in C: three digits that count, and a unit."""


def _digits(value, name):
    return "%.*f %s" % (2 if value < 9.995 else 1 if value < 99.95 else 0, value, name)


def _scaled(value, step, *names):
    """In the first unit in which it has three digits before the point, also when it is rounded."""
    *names, last = names
    for name in names:
        if value < step - 0.5:
            return _digits(value, name)
        value /= step
    return _digits(value, last)


def count(number):
    """1,000,000, as arrays print."""
    return f"{number:,}"


def size(nbytes):
    """Bytes."""
    return "%d B" % nbytes if nbytes < 1024 else _scaled(nbytes / 1024, 1024, "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def seconds(value):
    """A time."""
    if value < 999.5e-9:
        return ("%.0f ns" if value >= 99.95e-9 else "%.3g ns") % (value * 1e9)
    if value < 600:
        return _scaled(value * 1e6, 1000, "\u00b5s", "ms", "s")
    return _digits(value / 60, "min") if value < 7200 else _digits(value / 3600, "h")
