"""The cells of the soak: a seeded mix of what people run. The same list goes to the kernel and to a bare shell."""
import random

_KINDS = (
    ("pass", 10),
    ("value = {i} * 2", 10),
    ("{i} + 1", 8),
    ("'x' * 200", 4),
    ("print('line', {i})", 12),
    ("for j in range(20): print(j, end=' ')", 4),
    ("import sys; print('to stderr', file=sys.stderr)", 4),
    ("import os; os.write(1, b'descriptor\\n');", 3),
    ("def f(x):\n    return x + {i}\nresult = [f(j) for j in range(10)]", 6),
    ("1/0", 3),
    ("undefined_{small}", 2),
    ("this is not python", 2),
    ("raise ValueError('number {i}')", 2),
    ("from IPython.display import display\ndisplay({{'text/plain': 'shown {i}'}}, raw=True)", 4),
    ("from IPython.display import HTML\nHTML('<b>{i}</b>')", 2),
    ("import asyncio\nawait asyncio.sleep(0)", 3),
    ("async def g():\n    await asyncio.sleep(0)\n    return {i}\nimport asyncio\nprint(await g())", 2),
    ("import asyncio\ntask = asyncio.create_task(asyncio.sleep(0))\nawait task", 2),
    ("import threading\nt = threading.Thread(target=print, args=('thread',))\nt.start(); t.join()", 2),
    ("x = input('say: ')\nprint(x)", 2),
    ("%timeit -n1 -r1 pass", 1),
    ("%%capture kept\nprint('captured')", 1),
    ("data = bytearray(100000); del data", 2),
    ("class C{small}:\n    def __repr__(self):\n        return 'C'\nC{small}()", 2),
    ("import gc; len(gc.get_objects()) > 0", 1),
    ("_", 1),
)

# Between cells: (kind of request, its content); a bare shell answers what it can.
_REQUESTS = (
    ("complete_request", {"code": "impo", "cursor_pos": 4}),
    ("complete_request", {"code": "import sys; sys.std", "cursor_pos": 19}),
    ("inspect_request", {"code": "print", "cursor_pos": 3, "detail_level": 0}),
    ("is_complete_request", {"code": "for i in range(3):"}),
    ("comm_info_request", {}),
    ("history_request", {"hist_access_type": "tail", "n": 5, "output": False, "raw": True}),
)


def steps(count, seed, history=True):
    """Yield ("cell", code, options) `count` times, and ("ask", type, content) or ("comm", n) between."""
    rng = random.Random(seed)
    templates = [template for template, weight in _KINDS for _ in range(weight)]
    for i in range(count):
        store = history and rng.random() < 0.9
        yield "cell", rng.choice(templates).format(i=i, small=i % 50), {"store_history": store}
        if rng.random() < 0.03:
            yield "ask", *rng.choice(_REQUESTS)
        if rng.random() < 0.02:
            yield "comm", i
