"""What people see of the broker's state: of others' leases the sums only, unless they are admins."""
import dataclasses
import time

from drupe._units import size


@dataclasses.dataclass
class Device:
    """One device, and who has how much of it."""

    id: str
    kind: str
    name: str
    parts: int
    memory: int
    mine: int = 0  # parts
    others: int = 0
    mine_memory: int = 0  # bytes of shares; parts have theirs by being parts
    others_memory: int = 0
    shared: bool = False  # by shares of its memory
    owners: dict = dataclasses.field(default_factory=dict)  # "m" or "o" by the number of a part, where it is known

    @property
    def free(self):
        return not (self.mine or self.others or self.shared)

    @property
    def strip(self):
        """A letter for each part: mine, others', free. The parts whose number is not known come first."""
        known = [self.owners.get(part, "-") for part in range(self.parts)]
        hidden = self.mine + self.others - sum(letter != "-" for letter in known)
        for part in range(self.parts):
            if hidden > 0 and known[part] == "-":
                known[part], hidden = "o", hidden - 1
        return "".join(known)

    @property
    def state(self):
        if self.free:
            return "free"
        full = self.mine + self.others >= self.parts
        if self.shared:
            full = self.mine_memory + self.others_memory >= self.memory
        return "in use" if full else "partly in use"


def devices(state, user=None):
    """The devices as the asker has them or, in an admin's state, as `user` does."""
    made = {}
    for one in state.get("devices", []):
        device = made[one["id"]] = Device(one["id"], one["kind"], one["name"], one["parts"], one["memory"])
        used = one["mine"]["parts"] + one["others"]["parts"]
        memory = one["mine"]["memory"] + one["others"]["memory"]
        device.shared = bool(memory) and not used
        if user is None:
            device.mine, device.others = one["mine"]["parts"], one["others"]["parts"]
        else:
            device.others = used
        if device.shared:
            device.mine_memory = one["mine"]["memory"] if user is None else 0
            device.others_memory = memory - device.mine_memory
    for lease in state.get("leases", []):
        own = user is None or lease["user"] == user
        for take in lease["devices"]:
            device = made.get(take["id"])
            if device is None:
                continue
            device.owners.update((part, "m" if own else "o") for part in take["parts"])
            if own and user is not None:
                device.mine += len(take["parts"])
                device.others -= len(take["parts"])
                if device.shared:
                    device.mine_memory += take["memory"]
                    device.others_memory -= take["memory"]
    return list(made.values())


def whole(state):
    """How many parts each device has, by its id."""
    return {one["id"]: one["parts"] for one in state.get("devices", [])}


def takes(lease, parts):
    """The devices of a lease in words."""
    words = []
    for take in lease["devices"]:
        text = take["name"]
        if not take["parts"]:
            text = f"{size(take['memory'])} of {text}"
        elif len(take["parts"]) < parts.get(take["id"], 1):
            text = f"{len(take['parts'])} of {parts[take['id']]} parts of {text}"
        words.append(text)
    return ", ".join(words) or "none"


def lease_state(lease):
    if lease.get("parked"):
        return "parked"
    return "busy" if lease.get("idle") is None else f"idle for {lease['idle'] / 60:.0f} min"


def page(seen, user, admin):
    """What the page "Devices" draws, for one user."""
    if "error" in seen:
        return {"error": seen["error"], "now": time.time()}
    state, load = seen["state"], seen["load"]
    shown = devices(state, user)
    parts = whole(state)
    mine = [lease for lease in state["leases"] if lease["user"] == user]
    visible = state["leases"] if admin else mine
    rows = [{**_who(lease, user), "devices": takes(lease, parts), "since": lease["begin"], "ends": lease["ends"],
             "state": lease_state(lease), "label": lease["label"] or ""} for lease in visible]
    others = len(state["leases"]) - len(mine) + state.get("left_out", 0)
    if others and not admin:
        rows.append(_others(shown))
    queue = [{**_who(ticket, user), "position": ticket["position"], "wants": ticket["profile"] or ticket["label"] or "",
              "since": seen["time"] - ticket["waited"]}
             for ticket in state["waiting"] if admin or ticket["user"] == user]
    return {"error": None, "now": time.time(), "summary": summary(shown, state["queue"]), "leases": rows,
            "queue": queue, "waiting": state["queue"],
            "devices": [{"id": one.id, "name": one.name, "kind": one.kind, "parts": one.parts, "mine": one.mine,
                         "others": one.others, "strip": one.strip, "state": one.state, "load": load.get(one.id),
                         "metered": one.id in load,
                         "memory": {"total": one.memory, "mine": one.mine_memory, "others": one.others_memory,
                                    "shared": one.shared}} for one in shown]}


def _who(one, user):
    return {"mine": one["user"] == user, "user": "you" if one["user"] == user else one["user"]}


def _others(shown):
    """Of other users only how much they have."""
    words = [f"{size(one.others_memory)} of {one.name}" if one.shared
             else one.name if one.others >= one.parts else f"{one.others} of {one.parts} parts of {one.name}"
             for one in shown if one.others or one.others_memory]
    return {"mine": False, "user": "other users", "devices": ", ".join(words) or "none", "since": None, "ends": None,
            "state": "", "label": ""}


def summary(shown, waiting):
    """One sentence: what is free, and who waits."""
    free = sum(one.free for one in shown)
    words = [f"{len(shown)} {'device' if len(shown) == 1 else 'devices'}",
             "none is free" if not free and shown else f"{free} free"]
    partly = sum(one.state == "partly in use" for one in shown)
    if partly:
        words[1:] = [f"{free} free", f"{partly} partly"]
    return " · ".join([*words, "nobody waits" if not waiting else f"{waiting} {'waits' if waiting == 1 else 'wait'}"])


def lines(state):
    """The same for a terminal."""
    shown, parts = devices(state), whole(state)
    table = [("device", "state", "parts", "memory", "name")]
    table += [(one.id, one.state, f"{one.mine + one.others}/{one.parts}", size(one.memory) if one.memory else "?",
               one.name) for one in shown]
    yield from columns(table)
    yield ""
    leases = [("lease", "user", "pid", "state", "devices", "label")]
    leases += [(lease["lease"], lease["user"], str(lease["pid"]), lease_state(lease), takes(lease, parts),
                lease["label"] or "") for lease in state["leases"]]
    yield from columns(leases) if len(leases) > 1 else ["no lease of yours"]
    yield ""
    yield f"{state['queue']} wait"
    yield from (f"{one['position']}. {one['user']}: {one['profile'] or one['label'] or one['ticket']}, "
                f"for {one['waited']:.0f} s" for one in state["waiting"])


def columns(table):
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
