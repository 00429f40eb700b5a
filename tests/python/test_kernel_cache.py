"""What the passes made of a kernel comes from the disk cache in the next process, if all that they read is the same."""
import os
import re

import pytest
from kernel_caching import KERNEL, runner

@pytest.fixture
def process(fresh, tmp_path, device):
    """Run text in a process with a cache of its own; what it prints."""
    return runner(fresh, tmp_path, device.filter_string)


@pytest.fixture
def on_host(fresh, tmp_path):
    """The same on `host`, where the device makes no difference."""
    return runner(fresh, tmp_path, "host")


# --- Another process ---------------------------------------------------------------------------------------

SCRIPT = """\
import collections
import math

import drupe
from kernels_helper import bent

Pair = collections.namedtuple("Pair", "low high")
STEPS, RANGE = 3, Pair(0.5, 7)


@drupe.device_func
def clipped(x, ends):
    return min(max(x, ends.low), ends.high)


@drupe.kernel
def steps(item, out, n, scale):
    i = item.get_id(0)
    total = 0.0
    for k in range(STEPS):
        total += clipped(bent(k * scale), RANGE) * math.pi
    if i < n:
        out[i] = total
"""
HELPER = "import math\n\nSHIFT = 2\n\n\ndef bent(x):\n    return math.sqrt(x + SHIFT)\n"
LAUNCH = """
    import os, sys
    import drupe, drupe.array as da
    import kernels_script
    out = da.zeros(4, device=os.environ["PLACE"])
    drupe.call_kernel(kernels_script.steps, drupe.Range(4), out, 3, 1.5)
    print(out.asnumpy().tolist(), *("drupe.compiler." + one in sys.modules for one in ("passes", "lower", "text")))
    drupe._engine._cache_flush(60)
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "kernels_script.py").write_text(SCRIPT)
    (tmp_path / "kernels_helper.py").write_text(HELPER)


def test_the_next_process_needs_no_passes(process, files, tmp_path):
    first = process(LAUNCH, begin="")
    again = process(LAUNCH, begin="")
    assert first.endswith("True True True\n")
    assert again == first.replace("True", "False")
    (tmp_path / "kernels_helper.py").write_text(HELPER.replace("SHIFT = 2", "SHIFT = 7"))
    other = process(LAUNCH, begin="")
    assert other.endswith("True True True\n") and other != first


def test_numpy_is_not_imported_for_it(process, tmp_path):
    """Where the passes have asked NumPy what a dtype is, its version counts."""
    (tmp_path / "kernels_script.py").write_text(SCRIPT.partition("import collections")[0] + """\
import drupe
from drupe import kernel_api as kapi


@drupe.kernel
def steps(item, out, n, scale):
    own = kapi.PrivateArray(2, "float32")
    own[1] = scale
    out[item.get_id(0)] = own[1]
""")
    text = LAUNCH.replace("print(out.asnumpy().tolist(), ", "print('numpy' in sys.modules, out[2], ")
    assert process(text, begin="") == "True 1.5 True True True\n"
    assert process(text, begin="") == "False 1.5 False False False\n"


def test_inspect_after_a_hit(process, files):
    text = LAUNCH + """
    for stage in (None, "names", "types", "tree", "text"):
        print(repr(kernels_script.steps.inspect(stage=stage)))
    """
    shown = [process(text, begin="").partition("\n")[2] for _ in range(2)]
    for one in range(2):  # on `host` the better tier may have come meanwhile
        shown[one] = re.sub("quick tier .libtcc.|C compiler", "a tier", shown[one])
    assert shown[0] == shown[1] and "STEPS = 3" in shown[0]


# --- What the passes read ----------------------------------------------------------------------------------

# what changes: (what stands before the kernel, what stands there then, VALUE, the results)
CHANGES = {
    "a global": ("N = 3", "N = 4", "N", (3, 4)),
    "a global that does not fit the first text": ("N = 7", "N = numpy.int8(7)", "N * out.size * 10", (280, 24)),
    "the sign of zero": ("Z = 0.0", "Z = -0.0", "math.copysign(2.0, Z)", (2, -2)),
    "the type of a global": ("N = 7", "N = 7.5", "N // 2", (3, 3)),
    "a number of NumPy": ("N = numpy.float64(0.1)", "N = numpy.float32(0.1)", "N",
                          (0.1, float.fromhex("0x1.99999ap-4"))),
    "a tuple": ("T = (1, (2, 3))", "T = (1, (2, 4))", "T[1][1]", (3, 4)),
    "the order of a named tuple": (
        "import collections\nP = collections.namedtuple('P', 'a b')\np = P(1, 2)",
        "import collections\nP = collections.namedtuple('P', 'b a')\np = P(1, 2)", "p.a", (1, 2)),
    "a text": ("MODE = 'fast'", "MODE = 'slow'", "1 if MODE == 'fast' else 2", (1, 2)),
    "a dtype": ("D = numpy.float32", "D = numpy.float64", "1.0 if out.dtype == D else 2.0", (2, 1)),
    "what a function of a library is": ("f = math.sqrt", "f = math.fabs", "f(4.0)", (2, 4)),
    "a name that hides a builtin": ("", "def max(a, b):\n    return a - b", "max(5, 2)", (5, 3)),
    "an enumeration": ("import enum\nclass E(enum.IntEnum):\n    A = 1",
                       "import enum\nclass E(enum.IntEnum):\n    A = 2", "E.A.value", (1, 2)),
    "which member it is": ("import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\nM = E.A",
                           "import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\nM = E.B",
                           "1 if M == E.A else 2", (1, 2)),
    "a class of names": ("class C:\n    n = 1", "class C:\n    n = 2", "C.n", (1, 2)),
    "a function": ("def f(x):\n    return x + 1", "def f(x):\n    return x + 2", "f(1)", (2, 3)),
    "a function of the same code": ("def f(x):\n    y = x\n    return y", "def f(x):\n    y = x  # more\n    return y",
                                    "f(1)", (1, 1)),
    "a device function": ("@drupe.device_func\ndef f(x):\n    return x + 1",
                          "@drupe.device_func\ndef f(x):\n    return x + 2", "f(1)", (2, 3)),
    "what a function calls": ("def g(x):\n    return x + 1\ndef f(x):\n    return g(x)",
                              "def g(x):\n    return x + 2\ndef f(x):\n    return g(x)", "f(1)", (2, 3)),
    "what a function reads": ("N = 1\ndef f(x):\n    return x + N", "N = 2\ndef f(x):\n    return x + N", "f(1)",
                              (2, 3)),
    "a default": ("def f(x, y=1):\n    return x + y", "def f(x, y=2):\n    return x + y", "f(1)", (2, 3)),
    "which function a name is": ("def f(x):\n    return x\ng = f", "def f(x):\n    return x\ndef g(x):\n    return x",
                                 "1 if f == g else 2", (1, 2)),
    "a closure": ("def make(n):\n    def f(x):\n        return x + n\n    return f\nf = make(1)",
                  "def make(n):\n    def f(x):\n        return x + n\n    return f\nf = make(2)", "f(1)", (2, 3)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_a_miss(on_host, what):
    before, after, value, (first, then) = CHANGES[what]
    texts = [head + "\n" + KERNEL.replace("VALUE", value) for head in (before, after)]
    on_host(f"""
        for text, expected in zip({texts!r}, {[first, then]!r}):
            for count in (1, 0, 0):
                before = len(ran)
                assert launched(define(text)["k"]) == [expected] * 4
                assert len(ran) - before == count, (len(ran) - before, count, text)
    """)


def test_modules_of_others(on_host):
    """A function, and a number, of another module; and a module whose names a kernel reads."""
    on_host(f"""
        text = "import helper\\nfrom helper import f\\n" + {KERNEL.replace("VALUE", "f(helper.N)")!r}
        for body, expected in (("N = 1\\ndef f(x):\\n    return x + 1", 2), ("N = 5\\ndef f(x):\\n    return x + 1", 6),
                               ("N = 5\\ndef f(x):\\n    return x + 2", 7)):
            module("helper", body)
            for count in (1, 0):
                assert passes_of(lambda: launched(define(text)["k"])) == count
                assert launched(define(text)["k"]) == [expected] * 4
    """)


def test_the_end_of_a_function(on_host):
    """The same lines, and one more behind them, which may belong to the function or not."""
    text = KERNEL.replace("VALUE", "1")
    on_host(f"""
        for more, expected, count in (("", 1, 1), ("", 1, 0), ("\\n# a comment\\n    out[0] = 2\\n", 2, 1),
                                      ("\\n# a comment\\nx = 1\\n", 1, 1), ("\\n# a comment\\nx = 1\\n", 1, 0)):
            kernel = define({text!r} + more)["k"]
            assert passes_of(launched, kernel) == count, more
            assert launched(kernel)[0] == expected
    """)


def test_lines_count_where_messages_have_them(on_host):
    plain = KERNEL.replace("VALUE", "1")
    checked = plain + "    assert out[0] < 2\n"
    on_host(f"""
        for text, count in (({plain!r}, 0), ({checked!r}, 1)):
            assert passes_of(launched, define(text)["k"]) == 1
            assert passes_of(launched, define(text)["k"]) == 0
            assert passes_of(launched, define("\\n" + text)["k"]) == count
            assert passes_of(launched, define("\\n" + text)["k"]) == 0
    """)


def test_what_it_is_compiled_for(process):
    """Types of arguments, kinds of ranges, checked mode."""
    process("""
        text = "@drupe.kernel\\ndef k(item, out, x):\\n    out[0] = x\\n"
        Pair = collections.namedtuple("Pair", "a b")
        ways = [((1,), {}), ((True,), {}), ((1.5,), {}), ((numpy.float32(1),), {}), ((numpy.int8(1),), {}),
                ((1,), {"dtype": "int32"}), ((1,), {"dtype": "float32"}), ((1,), {"space": drupe.Range(2, 2)}),
                ((1,), {"space": drupe.NdRange(4, 2)})]
        for count in (1, 0):
            for args, named in ways:
                assert passes_of(launched, define(text)["k"], *args, **named) == count, (count, args, named)
            strided = da.ones((4, 4), device=place)[:, 1]
            pair = "@drupe.kernel\\ndef k(item, out, p, s):\\n    out[0] = p.a + s[0]\\n"
            assert passes_of(launched, define(pair)["k"], Pair(1, 2), strided) == count
            assert passes_of(launched, define(pair)["k"], Pair(1, 2.5), strided) == count
            assert passes_of(launched, define(pair)["k"], Pair(1, 2), strided.copy()) == count
            with drupe.checked():
                assert passes_of(launched, define(text)["k"], 1) == count
            kernel = drupe.kernel(define(text)["k"].py_func, checked=True)
            assert passes_of(launched, kernel, 1, dtype="int8") == count
        # Classes that look alike are not one class.
        both = "@drupe.kernel\\ndef k(item, out, p):\\n    q = P(1, 2)\\n    q = p\\n    out[0] = q.a\\n"
        for kind, count in ((Pair, 1), (collections.namedtuple("Pair", "a b"), 1), (Pair, 1), (Pair, 0)):
            names = define(both)
            names["P"] = kind
            assert passes_of(launched, names["k"], Pair(3, 4)) == count
    """)


FACTORY = """
def add(x, y):
    return x + y

def sub(x, y):
    return x - y

def make(op, n):
    @drupe.kernel
    def k(item, out):
        out[item.get_id(0)] = op(1, n)
    return k
"""


def test_factories_have_entries_of_their_own(on_host):
    """Kernels that differ by what their closures hold are all found."""
    on_host(f"""
        for count in (4, 0):
            names = define({FACTORY!r})
            made = [names["make"](names[op], n) for op in ("add", "sub") for n in (1, 2)]
            before = len(ran)
            assert [launched(one)[0] for one in made] == [2, 3, 0, -1]
            assert len(ran) - before == count
    """)


def test_what_cannot_be_told_is_not_kept(on_host):
    """Objects whose ways no fact tells: the passes run each time."""
    on_host(f"""
        heads = {{
            "1 if odd == 'x' else 2": "class Odd:\\n    def __eq__(self, other):\\n        return True\\nodd = Odd()",
            "space.n": "import types\\nspace = types.SimpleNamespace(n=1)",
            "1 if A == 'x' else 2": "import enum\\nclass E(enum.Enum):\\n    A = 1\\n    def __eq__(self, other):\\n"
                                    "        return True\\nA = E.A",
            "info.eps": "info = numpy.finfo('float32')"}}
        for value, head in heads.items():
            text = head + "\\n" + {KERNEL!r}.replace("VALUE", value)
            for _ in range(2):
                assert passes_of(launched, define(text)["k"]) == 1, value
        def wrapped(function):
            function.__wrapped__ = define("def k(item, out):\\n    out[0] = 5\\n")["k"]
            return function
        names = define({KERNEL.replace("VALUE", "1")!r})
        for _ in range(2):
            assert passes_of(launched, drupe.kernel(wrapped(names["k"].py_func))) == 1
    """)


# --- Entries -----------------------------------------------------------------------------------------------

def test_versions(on_host, tmp_path):
    """Another compiler, another NumPy, another Python: nothing that the others made."""
    on_host(f"""
        text = {KERNEL.replace("VALUE", "1")!r}
        assert passes_of(launched, define(text)["k"]) == 1
        assert passes_of(launched, define(text)["k"]) == 0
        cached._numpy, before = (lambda: [1, 2, 3]), cached._numpy
        assert passes_of(launched, define(text)["k"]) == 1
        cached._numpy = before
        assert passes_of(launched, define(text)["k"]) == 1
        mine, cached._compiler = cached._compiler, [["lower.py", 1, 2, 3]]
        for _ in range(2):  # and it keeps nothing: the files are others than those that it has loaded
            assert passes_of(launched, define(text)["k"]) == 1
        cached._compiler = mine
        assert passes_of(launched, define(text)["k"]) == 0
    """)
    folder = tmp_path / "compiler"
    (folder / "clib").mkdir(parents=True)
    from drupe.compiler import cached

    assert cached.fingerprint(str(tmp_path / "nowhere")) is None
    seen = [cached.fingerprint(str(folder))]
    for name, text in (("a.py", "1"), ("clib/a.c", "1"), ("a.py", "23"), ("clib/a.c", "")):
        (folder / name).write_text(text)
        seen.append(cached.fingerprint(str(folder)))
    os.utime(folder / "a.py", ns=(1, 1))
    seen.append(cached.fingerprint(str(folder)))
    (folder / "__pycache__").mkdir()
    assert cached.fingerprint(str(folder)) == seen[-1]
    assert len({str(one) for one in seen}) == len(seen)


def test_entries_that_are_wrong(on_host):
    """Whatever an entry holds, the result is right."""
    on_host(f"""
        text = "def f(x):\\n    return x + 1\\n" + {KERNEL.replace("VALUE", "f(2)")!r}
        entries = {{}}
        add = _engine._cache_add
        _engine._cache_add = lambda key, value: (entries.__setitem__(key, value), add(key, value))
        assert launched(define(text)["k"]) == [3] * 4
        (key, whole), = entries.items()
        entry = json.loads(whole)
        bad = [b"", b"x", b"\\xff\\x00", b"[]", b"{{}}", b"null", whole[:-1], whole[:len(whole) // 2]]
        bad += [json.dumps({{name: value for name, value in entry.items() if name != left}}).encode() for left in entry]
        for step in (["source"], ["source", 0, 1, 2, 3, 4, 5], ["source", 77, 0, 1, 1, False], ["nothing", 0], [], 7,
                     ["name", 0, "nobody"], ["attribute", 0, "nothing"]):
            bad.append(json.dumps({{**entry, "reads": [[step, 1], *entry["reads"]]}}).encode())
        bad += [json.dumps({{**entry, "text": entry["text"][:1]}}).encode(),
                json.dumps({{**entry, "reads": {{"a": 1}}}}).encode()]
        for one in bad:
            add(key, one)
            _engine._cache_flush(60)
            assert passes_of(lambda: launched(define(text)["k"])) == 1, one
        folder = os.path.join(os.environ["DRUPE_CACHE_DIR"], "programs")
        for name in os.listdir(folder):
            if name.endswith(".bin"):
                os.truncate(os.path.join(folder, name), 200)
        assert passes_of(lambda: launched(define(text)["k"])) == 1
        assert passes_of(lambda: launched(define(text)["k"])) == 0
    """)


def test_switched_off(on_host, tmp_path):
    on_host(f"""
        for _ in range(2):
            assert passes_of(launched, define({KERNEL.replace("VALUE", "1")!r})["k"]) == 1
    """, DRUPE_CACHE="0")
    assert not (tmp_path / "cache").exists()


# --- A hit is as a compilation -----------------------------------------------------------------------------

FAILING = """
def inner(x, n):
    assert x < 3 or n > 0, "too large"
    return x

@drupe.kernel
def k(item, out, n):
    i = item.get_id(0)
    out[i + n] = inner(i, n)

@drupe.kernel
def wrong(item, out):
    out[item.get_id(0)] = [1]
"""


def test_errors_are_the_same(process):
    """What a failed assert and a bad index say, and what the passes refuse; and what a replay needs."""
    text = f"""
        from drupe.simulator import replay
        for checked, n in ((False, 0), (True, 0), (True, 4)):
            try:
                launched(drupe.kernel(define({FAILING!r})["k"].py_func, checked=checked), n)
            except drupe.HostTaskError as error:
                launch, failure = replay.of_error(error)
                print(error, failure.line, n or failure.work_item, launch.changed, sep="; ")
            try:
                replay.run(launch, failure)
            except Exception as error:
                print(type(error).__name__, error)
        try:
            launched(define({FAILING!r})["wrong"])
        except drupe.KernelError as error:
            print(error)
        print("passes:", len(ran))
    """
    # Of four work-items that fail any can be the first on a GPU.
    shown = [re.sub("the index [4-7] is(.*) in work-item [0-3]", r"the index is\1 in a work-item", process(text))
             for _ in range(3)]
    assert "work-item 3, line 3 of k(): assert x < 3" in shown[0] and "    ^" in shown[0]
    assert "the index is outside of a dimension of 4 elements, in a work-item, line 9" in shown[0]
    assert shown[0].endswith("passes: 3\n")
    assert shown[1] == shown[2] == shown[0].replace("passes: 3", "passes: 1")


def test_globals_are_watched(on_host):
    on_host(f"""
        text = "N = 3\\nimport helper\\n" + {KERNEL.replace("VALUE", "N + helper.M")!r}
        module("helper", "M = 10")
        assert launched(define(text)["k"]) == [13] * 4
        names, before = define(text), len(ran)
        kernel = names["k"]
        assert launched(kernel) == launched(kernel) == [13] * 4 and len(ran) == before
        names["N"] = 4
        assert launched(kernel) == [14] * 4 and len(ran) == before + 1
        sys.modules["helper"].M = 20
        assert launched(kernel) == [24] * 4 and len(ran) == before + 2
        names["N"], sys.modules["helper"].M = 3, 10
        assert launched(kernel) == [13] * 4
    """)


def test_builtins_that_globals_hide_later(on_host):
    """In the process that has launched it, whether the passes have run or not; and back again."""
    on_host(f"""
        text = {KERNEL.replace("VALUE", "abs(4.0)")!r}
        for count in (2, 0):
            names, before = define(text), len(ran)
            kernel = names["k"]
            assert launched(kernel) == launched(kernel) == [4] * 4
            names["abs"] = math.sqrt
            assert launched(kernel) == launched(kernel) == [2] * 4
            del names["abs"]
            assert launched(kernel) == [4] * 4 and len(ran) == before + count
    """)


def test_threads(process):
    process(f"""
        text = "def f(x):\\n    return x + 1\\n" + {KERNEL.replace("VALUE", "f(2)")!r}
        for _ in range(3):
            shared, results, ready = define(text)["k"], [], threading.Barrier(4)
            kernels = [shared, shared, define(text)["k"], define(text)["k"]]
            def work(kernel):
                out = da.zeros(4, device=place)
                ready.wait()
                drupe.call_kernel(kernel, drupe.Range(4), out)
                results.append(out.asnumpy().tolist())
            threads = [threading.Thread(target=work, args=(one,)) for one in kernels]
            for one in threads: one.start()
            for one in threads: one.join()
            assert results == [[3.0] * 4] * 4
            _engine._cache_flush(60)
        assert 1 <= len(ran) <= 3
    """)
