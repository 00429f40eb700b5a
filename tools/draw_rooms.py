"""The picture of the rooms, docs/internals/rooms.svg: tools/check_layers.py has it compared, and written by --draw.

An arrow stands for includes. One that others imply (A includes B, which includes C; A includes C too) is left out."""
import html
import pathlib

PICTURE = "docs/internals/rooms.svg"
# The panels: a title, and the folder whose rooms it shows; "" is the whole tree, in which these folders are one each.
HALLS = ("engine/core", "engine/python", "jkernel/server")
BOX, HIGH, GAP_X, GAP_Y, LEFT = 132, 30, 20, 52, 20


def hall_of(room):
    """The room itself, or the folder that it is a part of where that has a panel of its own."""
    return next((hall for hall in HALLS if room.startswith(hall + "/")), room)


def reach(start, graph, skip=None):
    """What can be reached from `start`, without the arrow start -> skip."""
    seen, todo = set(), [room for room in graph[start] if room != skip]
    while todo:
        room = todo.pop()
        if room not in seen:
            seen.add(room)
            todo += graph[room]
    return seen


def ranks_of(graph):
    """The row of each room: above all that it uses."""
    ranks = {}

    def rank(room, path):
        if room not in ranks:
            below = [rank(other, path | {room}) for other in graph[room] if other not in path | {room}]
            ranks[room] = max(below, default=-1) + 1
        return ranks[room]

    for room in graph:
        rank(room, frozenset())
    return ranks


def panel(title, rooms, arrows, top):
    """The lines of one panel, its width and its height."""
    graph = {room: sorted({b for a, b in arrows if a == room and b != room and b in rooms}) for room in rooms}
    ranks = ranks_of(graph)
    rows = [[room for room in rooms if ranks[room] == row] for row in range(max(ranks.values()) + 1)]
    places, width = {}, 0
    for row, names in enumerate(rows):
        for column, room in enumerate(names):
            y = top + 40 + (len(rows) - 1 - row) * (HIGH + GAP_Y)
            places[room] = (LEFT + (row % 2) * 46 + column * (BOX + GAP_X), y)
            width = max(width, places[room][0] + BOX + LEFT)
    lines = [f'<text class="title" x="{LEFT}" y="{top + 22}">{html.escape(title)}</text>']
    for room, others in graph.items():
        for other in others:
            if other in reach(room, graph, other):
                continue
            (x1, y1), (x2, y2) = places[room], places[other]
            lines.append(f'<line x1="{x1 + BOX // 2}" y1="{y1 + HIGH}" x2="{x2 + BOX // 2}" y2="{y2 - 2}"/>')
    prefix = title + "/"
    for room, (x, y) in places.items():
        lines.append(f'<rect x="{x}" y="{y}" width="{BOX}" height="{HIGH}" rx="4"/>')
        lines.append(f'<text x="{x + BOX // 2}" y="{y + 20}">{html.escape(room.removeprefix(prefix))}</text>')
    return lines, width, 40 + len(rows) * (HIGH + GAP_Y)


def picture(rooms, arrows):
    halls = list(dict.fromkeys(hall_of(room) for room in rooms))
    panels = [("The rooms", halls, {(hall_of(a), hall_of(b)) for a, b in arrows})]
    for hall in HALLS:
        inside = [room for room in rooms if room.startswith(hall + "/")]
        if inside:
            panels.append((hall, inside, arrows))
    body, width, top = [], 0, 0
    for title, inside, those in panels:
        lines, wide, high = panel(title, inside, those, top)
        body += lines
        width, top = max(width, wide), top + high
    head = ['<!-- Made by tools/check_layers.py; do not edit. -->',
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}">',
            '<style>text{font:12px sans-serif;text-anchor:middle}.title{font-weight:bold;text-anchor:start}'
            'rect{fill:#eef3f8;stroke:#456}line{stroke:#456;marker-end:url(#tip)}</style>',
            '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#456"/></marker>',
            f'<rect width="{width}" height="{top}" style="fill:#fff;stroke:none"/>']
    return "\n".join([*head, *body, "</svg>", ""])


def problems(root: pathlib.Path, rooms, arrows, write):
    """Nothing, or that the picture is another one; `write`: make it what it has to be."""
    text, path = picture(rooms, arrows), root / PICTURE
    if write:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if path.exists() and path.read_text() == text:
        return []
    return [f"{PICTURE} is not what the includes make it: run tools/check_layers.py --draw"]
