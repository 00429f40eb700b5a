"""What must always hold on a machine that leases its devices: told from the broker's list, as an administrator sees it,
from the processes, and from what the sessions say. Nothing here is the broker's own judgement."""
import collections

from hosted_world import PROFILES, alive

# Seconds in which the broker answers, after which something that may last for a moment is wrong.
HOLDER_GONE = 2.0
HUB_HOLDS = 20.0
HEAD_WAITS = 3.0
LEASE_MISSING = 2.0
LEASE_LEFT = 4.0
OTHER_PARTS = 1.0
IDLE_HOLDS = 35.0


def serves(listing, lease, ticket):
    """Whether a lease has devices of the kind that a ticket waits for."""
    kinds = {one["kind"] for one in lease["devices"]}
    return lease["lease"] != ticket["lease"] and PROFILES[profile_of(listing, ticket)]["kind"] in kinds


def profile_of(listing, ticket):
    """What somebody waits for; who resumes has it in the lease."""
    if ticket["profile"]:
        return ticket["profile"]
    return next(one["profile"] for one in listing["leases"] if one["lease"] == ticket["lease"])


def fits(listing, profile):
    """Whether it could be granted now."""
    want = PROFILES[profile]

    def free(device):
        if device["kind"] != want["kind"]:
            return False
        if "memory" in want:
            return device["free_memory"] >= want["memory"] and device["free_parts"] in (0, device["parts"])
        return device["free_parts"] >= want.get("parts", device["parts"])

    return sum(map(free, listing["devices"])) >= want.get("devices", 1)


def parts_of(lease):
    """As SOAK_USE names them; a share of a device is on its one part."""
    return sorted(f"{take['id']}.{part}" for take in lease["devices"] for part in take["parts"] or [0])


class Checker:
    """Looks at one list after the other; look() brings what is wrong."""

    def __init__(self):
        self.lasted = {}  # seconds, by what has lasted so long
        self.told = set()
        self.parked = {}  # whether, by lease
        self.figures = collections.Counter()
        self._at = None

    def away(self):
        """The broker does not answer: that time does not count."""
        self._at = None

    def look(self, listing, world, now):
        step = 0 if self._at is None else min(now - self._at, 0.25)  # what a busy machine took is nobody's fault
        self._at = now
        self._count(listing)
        found = dict(self._passing(listing, world))
        self.lasted = {key: self.lasted.get(key, 0) + step for key in found}
        problems = [text for key, (most, text) in found.items() if self.lasted[key] > most]
        new = [text for text in [*self._sums(listing), *problems] if text not in self.told]
        self.told.update(new)
        return new

    def _count(self, listing):
        self.figures["lists"] += 1
        for one in listing["leases"]:
            before = self.parked.get(one["lease"])
            self.figures["leases"] += before is None
            self.figures["parked"] += one["parked"] and not before
            self.figures["resumed"] += bool(before) and not one["parked"]
            self.parked[one["lease"]] = one["parked"]
        self.figures["at once"] = max(self.figures["at once"], len(listing["leases"]))
        self.figures["in the queue"] = max(self.figures["in the queue"], len(listing["waiting"]))

    # --- In each list ------------------------------------------------------------------------------------------

    def _sums(self, listing):
        parts, shares = collections.defaultdict(list), collections.Counter()
        for lease in listing["leases"]:
            name = f"lease {lease['lease']} of {lease['pid']}"
            if bool(lease["devices"]) == lease["parked"]:
                yield f"{name} is {'' if lease['parked'] else 'not '}parked and has {len(lease['devices'])} devices"
            elif not lease["parked"] and len(lease["devices"]) != PROFILES[lease["profile"]].get("devices", 1):
                yield f"{name} has {len(lease['devices'])} devices"
            for take in lease["devices"]:
                parts[take["id"]] += take["parts"]
                if not take["parts"]:
                    shares[take["id"]] += take["memory"]
        for device in listing["devices"]:
            name, taken, shared = device["id"], parts[device["id"]], shares[device["id"]]
            if len(set(taken)) != len(taken):
                yield f"parts of {name} are in two leases: {sorted(taken)}"
            if taken and shared:
                yield f"{name} is used by parts and by shares"
            if shared > device["memory"]:
                yield f"{shared} of {device['memory']} bytes of {name} are leased"
            told = device["mine"]["parts"] + device["others"]["parts"]
            if told != len(taken) or device["free_parts"] != (0 if shared else device["parts"] - len(taken)):
                yield f"{name}: {told} parts in use and {device['free_parts']} free are told; leases have {len(taken)}"
            if shared and device["memory"] - device["free_memory"] != shared:
                yield f"{name}: {device['free_memory']} bytes free are told; leases have {shared}"

    # --- For a moment only -------------------------------------------------------------------------------------

    def _passing(self, listing, world):
        """What may be so for a moment: a key, the most seconds, and the sentence."""
        leases = {one["lease"]: one for one in listing["leases"]}
        hubs = {hub.process.pid for hub in world.hubs}
        for name, one in leases.items():
            if not alive(one["pid"]):
                yield ("gone", name), (HOLDER_GONE, f"lease {name} outlives its holder {one['pid']}")
            if one["pid"] in hubs:
                yield ("hub", name), (HUB_HOLDS, f"lease {name} ({one['label']}) stays with the hub {one['pid']}")
        for ticket in listing["waiting"]:
            profile = profile_of(listing, ticket)
            if ticket["position"] == 1 and fits(listing, profile):
                yield ("head", ticket["ticket"]), (HEAD_WAITS, f"ticket {ticket['ticket']} waits first in the queue "
                                                               f"although {profile!r} is free")
        for number, session in world.sessions.items():
            yield from self._session(listing, leases, number, session)

    def _session(self, listing, leases, number, session):
        lease = leases.get(session.lease)
        if session.state == "left":
            if lease is not None:
                yield ("left", number), (LEASE_LEFT, f"session {number} has left, its lease {session.lease} is there")
            return
        if session.state not in ("reply", "quiet", "wakes", "cell") or session.lease is None:
            return
        if lease is None and session.profile != "timed" and alive(session.pid):
            yield ("lost", number), (LEASE_MISSING, f"kernel {session.pid} of session {number} has lost its lease "
                                                    f"{session.lease}")
        if lease is not None and lease["pid"] != session.pid and alive(session.pid):
            yield ("held", number), (LEASE_MISSING, f"lease {session.lease} of session {number} is held by "
                                                    f"{lease['pid']}, not by its kernel {session.pid}")
        if lease is not None and not lease["parked"] and session.use not in (None, (lease["lease"], parts_of(lease))):
            yield ("use", number), (OTHER_PARTS, f"kernel {session.pid} of session {number} uses {session.use}, its "
                                                 f"lease {lease['lease']} has {parts_of(lease)}")
        wanted = [one["ticket"] for one in listing["waiting"] if lease is not None and serves(listing, lease, one)]
        if session.state == "quiet" and wanted and alive(session.pid):
            yield ("idle", number), (IDLE_HOLDS, f"kernel {session.pid} of session {number} is idle and keeps its "
                                                 f"devices, while {wanted} wait for them")
