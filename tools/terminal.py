"""Pictures in terminals that can show them.

A terminal is asked for what it can: the graphics of Kitty by a question of its own, Sixel among the attributes that
every terminal tells, which come last and end the answer. iTerm2 and WezTerm name themselves in the environment. Nothing
is asked, and nothing shown, where input or output is no terminal.
"""
import base64
import contextlib
import io
import os
import re
import select
import sys
import time

QUESTIONS = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\" b"\x1b[c"
ATTRIBUTES = re.compile(rb"\x1b\[\?([\d;]*)c")
CHUNK = 4096  # bytes of Kitty's messages
COLOURS = 128  # of a Sixel picture
WIDTH = 900  # most pixels of a line in Sixel
MUTE = ("", "dumb", "linux")  # values of TERM for terminals that would print a question


@contextlib.contextmanager
def _raw(descriptor):
    """Answers come at once, and are not echoed."""
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _answer(source, target, patience):
    """What the terminal answers within so many seconds."""
    answer, deadline = b"", time.monotonic() + patience
    with _raw(source):
        os.write(target, QUESTIONS)
        while not ATTRIBUTES.search(answer):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([source], [], [], left)[0]:
                return b""
            answer += os.read(source, 1000)
    return answer


def protocol(patience, environment=None):
    """"kitty", "iterm", "sixel", or None where pictures cannot be shown."""
    environment = os.environ if environment is None else environment
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or environment.get("TERM", "") in MUTE:
        return None
    if environment.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm"):
        return "iterm"
    sys.stdout.flush()
    try:
        answer = _answer(sys.stdin.fileno(), sys.stdout.fileno(), patience)
    except (OSError, ImportError):  # a terminal that cannot be set
        return None
    if b"\x1b_Gi=31;OK" in answer:
        return "kitty"
    attributes = ATTRIBUTES.search(answer)
    return "sixel" if attributes and b"4" in attributes[1].split(b";") else None


def _kitty(png):
    text = base64.standard_b64encode(png)
    parts = [text[at:at + CHUNK] for at in range(0, len(text), CHUNK)]
    heads = [b"a=T,f=100,m=%d" % (len(parts) > 1)] + [b"m=%d" % (at < len(parts) - 1) for at in range(1, len(parts))]
    return b"".join(b"\x1b_G" + head + b";" + part + b"\x1b\\" for head, part in zip(heads, parts))


def _iterm(png):
    return b"\x1b]1337;File=inline=1;size=%d:%s\x07" % (len(png), base64.standard_b64encode(png))


def _run(bits, count):
    """`count` columns of one sixel, which stands for six pixels below each other."""
    character = bytes([63 + bits])
    return character * count if count < 4 else b"!%d%s" % (count, character)


def _row(columns):
    """A list of sixels, equal neighbours told once."""
    parts, start = [], 0
    for at in range(1, len(columns) + 1):
        if at == len(columns) or columns[at] != columns[start]:
            parts.append(_run(columns[start], at - start))
            start = at
    return b"".join(parts)


def _sixel(png):
    import numpy as np
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    if picture.width > WIDTH:
        picture = picture.resize((WIDTH, max(1, picture.height * WIDTH // picture.width)))
    picture = picture.quantize(COLOURS)
    palette, pixels = picture.getpalette(), np.asarray(picture)
    parts = [b'\x1bP0;1q"1;1;%d;%d' % picture.size]
    for number in range(len(palette) // 3):
        colour = palette[3 * number:3 * number + 3]
        parts.append(b"#%d;2;%d;%d;%d" % (number, *(round(value / 2.55) for value in colour)))
    for top in range(0, picture.height, 6):
        band = pixels[top:top + 6]
        weights = (1 << np.arange(len(band)))[:, None]
        rows = [b"#%d%s" % (number, _row(((band == number) * weights).sum(axis=0).tolist()))
                for number in np.unique(band)]
        parts.append(b"$".join(rows) + b"-")
    return b"".join(parts) + b"\x1b\\"


def show(png, patience=0.5):
    """Show a picture below what was printed; False where the terminal cannot, or does not answer in so many seconds."""
    how = protocol(patience)
    if how is None:
        return False
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\n" + {"kitty": _kitty, "iterm": _iterm, "sixel": _sixel}[how](png) + b"\n")
    sys.stdout.buffer.flush()
    return True
