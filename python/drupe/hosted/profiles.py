"""The page on which a user chooses a profile before a server starts."""
from html import escape

from drupe.hosted import view

_STYLE = '<div class="drupe-hosted">{}</div>'


def unavailable(error):
    """In place of the profiles: what the broker's absence means."""
    return _STYLE.format(f'<p class="spawn-error-msg alert alert-danger">There are no devices to choose from: '
                         f'{escape(str(error))}</p>')


def form(state, offered, chosen=None):
    """A card for each profile; one that can be had is chosen. `state` is of list(), `offered` of profiles()."""
    shown = view.devices(state)
    possible = [one["name"] for one in offered if _there(one, shown)]
    if chosen not in possible:
        chosen = possible[0] if possible else None
    cards = "".join(_card(one, shown, one["name"] == chosen) for one in offered)
    if not cards:
        cards = '<p>The broker has no profiles; its administrator adds some to its configuration.</p>'
    return _STYLE.format(f'<div class="drupe-profiles" role="radiogroup" aria-label="Profiles">{cards}</div>')


def _card(profile, shown, checked):
    there, name = _there(profile, shown), escape(profile["name"])
    state, style = "not on this machine", "drupe-lacks"
    if there:
        state, style = ("free now", "drupe-free") if can_have(profile, shown) else ("in use: you would wait", "")
    marks = " disabled" if not there else " checked" if checked else ""
    return (f'<label class="drupe-profile"><input type="radio" name="profile" value="{name}" required{marks}>'
            f'<div class="drupe-card"><div class="drupe-card-head"><span class="drupe-chip">{name}</span>'
            f'<span class="drupe-state {style}">{state}</span></div>'
            f'<div class="drupe-profile-title">{escape(profile["title"])}</div>'
            f'<div class="drupe-card-name">{escape(_detail(profile, shown))}</div></div></label>')


def _there(profile, shown):
    return len(_fit(profile, shown)) >= profile["devices"]


def _fit(profile, shown):
    """The devices that could serve the profile if they were free."""
    return [one for one in shown if profile["kind"] in ("any", one.kind) and one.parts >= profile["parts"]
            and (not profile["memory"] or one.memory >= profile["memory"])]


def can_have(profile, shown):
    """Whether the profile could be had at once, if nobody else asked."""
    able = 0
    for one in _fit(profile, shown):
        if profile["memory"] and not profile["parts"]:
            left = one.memory - one.mine_memory - one.others_memory
            able += not (one.mine or one.others) and left >= profile["memory"]
        else:
            able += not one.shared and one.parts - one.mine - one.others >= (profile["parts"] or one.parts)
    return able >= profile["devices"]


def _detail(profile, shown):
    """Which devices these are, and for how long."""
    fit = _fit(profile, shown)
    names = list(dict.fromkeys(one.name for one in fit))
    words = [" or ".join(names[:3]) + (" …" if len(names) > 3 else "")]
    if len(fit) < profile["devices"]:
        words = [_lack(profile, shown, len(fit))]
    if profile["seconds"]:
        words.append(f"for {_time(profile['seconds'])} at most")
    return ", ".join(words)


def _lack(profile, shown, able):
    kinds = sum(profile["kind"] in ("any", one.kind) for one in shown)
    word = {"cpu": "processor", "gpu": "GPU"}.get(profile["kind"], "device")
    if not kinds:
        return f"there is no {word}"
    return f"no {word} has so much" if not able else f"there {'is' if able == 1 else 'are'} only {able}"


def _time(seconds):
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:g} s"
