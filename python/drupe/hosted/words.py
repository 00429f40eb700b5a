"""Sentences about leases, as notebooks show them."""
import time

from .client import device_title as device


def span(seconds):
    """A time in words: "45 s", "12 min", "3 h 5 min"."""
    seconds = max(0, round(seconds))
    if seconds < 90:
        return "%d s" % seconds
    minutes = round(seconds / 60)
    if minutes < 90:
        return "%d min" % minutes
    hours, minutes = divmod(minutes, 60)
    return "%d h %d min" % (hours, minutes) if minutes else "%d h" % hours


def amount(count):
    """Bytes in words."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1000 or unit == "GiB":
            return "%d %s" % (count, unit) if unit == "B" else "%.1f %s" % (count, unit)
        count /= 1024


def warning(seconds):
    return "This session's device goes back in %s. drupe.hosted.extend() asks for more." % _long(seconds)


def _long(seconds):
    minutes = round(seconds / 60)
    if seconds < 90:
        return "%d second%s" % (seconds, "" if seconds == 1 else "s")
    return "%d minutes" % minutes


def extended(seconds):
    return "This session keeps its device for %s." % span(seconds)


def waiting(position):
    """`position`: in the queue, from 1."""
    place = "%d before you" % (position - 1) if position > 1 else "you are next"
    return "Waiting for a device: %s. Interrupt the cell to give up." % place


def parked(count):
    text = "The device is with others now, because they waited and this notebook was idle."
    if not count:
        return text + " It comes back when a cell needs it."
    return text + (" What was on it (%s) is safe in host memory. Both come back when a cell needs the device."
                   % amount(count))


def was_away(away):
    return "The device was with others for %s." % span(away)


def came_back(away, count, seconds):
    text = was_away(away)
    if count:
        text = "%s; %s came back in %.1f s." % (text[:-1], amount(count), seconds)
    return text


OVER = "The time of this session's device is over."
IN_USE = "Memory of this kernel stays on the device until the work that uses it is over."


def stays(report):
    """What of a device's memory cannot leave it and what to do, from what park() reports; "": all of it left."""
    if not report.holders:
        return " ".join(report.reasons)
    most = report.holders[:3]
    places = ", ".join(amount(one.nbytes) + (" of %s" % one.place if one.place else "") for one in most)
    more = "" if len(most) == len(report.holders) else " and more"
    return ("Memory cannot leave the device, because a view, another library or another process uses it: %s%s. Delete "
            "what uses it." % (places, more))


def ended(why, holds):
    """`holds`: what is still on the device."""
    return ("The lease of this kernel has ended (%s). Its device is another's now.%s Cells that use no device still "
            "run: save what you need. For another lease, stop the server on the hub's page and start it again."
            % (why, " %s" % holds if holds else ""))


class Described(dict):
    """A lease, as the broker lists it, that shows itself in a line."""

    def __repr__(self):
        devices = ", ".join(device(one) for one in self.get("devices", ())) or "no device at the moment"
        ends = self.get("ends")
        last = "without an end" if ends is None else "for %s" % span(ends - time.time())
        others = self.get("waiting", 0)
        wait = "nobody waits" if not others else "%d wait%s" % (others, "s" if others == 1 else "")
        return "Lease %s: %s, %s; %s" % (self.get("lease"), devices, last, wait)
