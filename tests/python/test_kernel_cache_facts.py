"""What looks the same to the cache of the passes must be the same to the passes: pairs that nearly are."""
import pytest
from kernel_caching import KERNEL, runner


@pytest.fixture
def on_host(fresh, tmp_path):
    return runner(fresh, tmp_path, "host")


NUMBERS = """
import enum
class E(int, enum.Enum):
    def __new__(cls, value):
        self = int.__new__(cls, value * %d)
        self._value_ = value
        return self
    A = 1
class F(enum.IntEnum):
    TWO = 2
"""
SCALAR = "class F(numpy.float64):\n    def item(self):\n        return %d.0\nN = F(1.5)"
FUNCTION = "def g(x):\n    return x + 1\ndef h(x):\n    return x + 2\ndef f(x):\n    return x\nf._device_function = %s"
SUMS = "f(1) + 10 * g(1) + 100 * h(1)"
SQRT = "def sqrt(x):\n    return 2 * x\n"
WRAPPED = "import functools\n@functools.wraps(math.sqrt)\ndef sqrt(x):\n    return 2 * x\n"
TRACED = ("import functools\nclass Traced:\n    def __init__(self, f):\n        functools.update_wrapper(self, f)\n"
          "sqrt = Traced(math.sqrt)\n")
METHOD = "import types\ndef sqrt(x):\n    return 2 * x\nsqrt = types.MethodType(sqrt, 1)\n"
DEVICE = "def sqrt(x):\n    return 2 * x\nsqrt = drupe.device_func(sqrt)\n"
PAIR = "class P(tuple):\n    _fields = ('a', 'b')"
DEFAULT = ("def a(x):\n    return 1\ndef b(x):\n    return 2\n"
           "def f(x, g=%s):\n    return g(x)")
TRUNC = "import enum\nclass E(enum.Enum):\n    A = 1\n    def __hash__(self):\n        return 1\n%s"
FENCE = "drupe.kernel_api.atomic_fence(E.A, 1)\n    out[0] = 1"

# what differs: (what stands before the kernel, what stands there then, VALUE, the results; "" where it is refused)
PAIRS = {
    "dtypes of one width": ("D = numpy.dtype('l')", "D = numpy.dtype('q')", "1 if D.char == 'l' else 2", (1, 2)),
    "a member's number beside its value": (NUMBERS % 2, NUMBERS % 3, "1 if E.A == F.TWO else 2", (1, 2)),
    "a class of a number of NumPy's": (SCALAR % 2, SCALAR % 3, "N", (2, 3)),
    "halves of a character": (r"T = '\ud83d\ude00'", r"T = '\U0001f600'", r"1 if T == '\U0001f600' else 2", (2, 1)),
    "a class that is called tuple": (PAIR, "class tuple:\n    pass\n" + PAIR, "P(1, 2).a", (1, "")),
    "the device function of a function": (FUNCTION % "g", FUNCTION % "h", SUMS, (322, 323)),
    "a function in math": (SQRT, SQRT + "math.sqrt = sqrt", "math.sqrt(4.0)", (2, 8)),
    "a wrapper in math": (WRAPPED, WRAPPED + "math.sqrt = sqrt", "math.sqrt(4.0)", (2, "")),
    "an object in math": (TRACED, TRACED + "math.sqrt = sqrt", "math.sqrt(4.0)", (2, "")),
    "a method in math": (METHOD, METHOD + "math.sqrt = sqrt", "math.sqrt(4.0)", (2, "")),
    "a device function in math": (DEVICE, DEVICE + "math.sqrt = sqrt", "math.sqrt(4.0)", (2, 8)),
    "a class in NumPy": ("", "class float32:\n    pass\nnumpy.float32 = float32", "numpy.float32(1)", (1, "")),
    "a global that hides a builtin": ("", "abs = math.sqrt", "abs(4.0)", (4, 2)),
    "functions of one line": ("def f(x): return x + 1\ndef g(x): return x + 2",
                              "def f(x): return x + 1\ndef g(x): return x + 2\nf = g", "f(1)", (2, 3)),
    "a default that is a function": (DEFAULT % "a", DEFAULT % "b", "f(1)", (1, 2)),
}


@pytest.mark.parametrize("what", PAIRS)
def test_what_nearly_looks_the_same(on_host, what):
    before, after, value, expected = PAIRS[what]
    texts = [head + "\n" + KERNEL.replace("VALUE", value) for head in (before, after)]
    on_host(f"""
        for text, expected in zip({texts!r}, {expected!r}):
            for _ in range(2):
                try:
                    found = launched(define(text)["k"])
                except drupe.KernelError as error:
                    assert expected == "", error
                else:
                    assert found == [expected] * 4, (found, expected)
    """)


def test_ways_of_members_that_the_passes_use(on_host):
    """What int() makes of a member of an enumeration is nothing that a fact tells."""
    on_host(f"""
        head = {TRUNC!r} % "    def __int__(self):\\n        return 1\\n"
        text = head + {KERNEL!r}.replace("out[item.get_id(0)] = VALUE", {FENCE!r})
        for _ in range(2):
            assert passes_of(launched, define(text)["k"]) == 1
    """)


def test_a_module_is_no_dtype(on_host):
    """NumPy would ask it for what it calls dtype, of which the cache knows nothing."""
    text = ("import types\nm = types.ModuleType('m')\nm.dtype = numpy.dtype('int8')\n" + KERNEL).replace(
        "out[item.get_id(0)] = VALUE", "p = drupe.kernel_api.PrivateArray(2, m)\n    out[0] = p[0]")
    on_host(f"""
        try:
            launched(define({text!r})["k"])
        except drupe.KernelError as error:
            assert error.code == "DK014", error
        else:
            raise SystemExit("it was taken")
    """)


def test_what_changes_while_the_passes_run(on_host):
    """An attribute that another thread assigns between the passes and the facts: no entry tells the second value."""
    on_host(f"""
        text = "class C:\\n    n = 1\\n" + {KERNEL.replace("VALUE", "C.n")!r}
        counted = passes.run
        def run(function, target):
            made = counted(function, target)
            names["C"].n = 2
            return made
        passes.run, names = run, define(text)
        assert launched(names["k"]) == [1] * 4
        passes.run = counted
        for count in (1, 0):
            names = define(text)
            names["C"].n = 2
            assert passes_of(lambda: launched(names["k"])) == count
            assert launched(names["k"]) == [2] * 4
    """)


def test_objects_that_raise(on_host):
    """A global that is called as an attribute is called, and objects that answer every question with an error."""
    on_host(f"""
        class Proxy:
            @property
            def __class__(self):
                raise RuntimeError("no context")
            def __getattr__(self, name):
                raise RuntimeError("no context")
        for name in ("size", "get_id"):
            names = define({KERNEL.replace("VALUE", "out.size")!r})
            names[name] = Proxy()
            assert launched(names["k"]) == [4] * 4
    """)


def test_hostile_entries(on_host):
    """Nested without end, or with values of other types: the passes run."""
    on_host(f"""
        text, entries = {KERNEL.replace("VALUE", "1")!r}, {{}}
        add = _engine._cache_add
        _engine._cache_add = lambda key, value: (entries.__setitem__(key, value), add(key, value))
        assert launched(define(text)["k"]) == [1] * 4
        (key, whole), = entries.items()
        entry = json.loads(whole)
        bad = [b"[" * 200000, b'{{"reads":' * 100000, b'{{"cost": ' + b"9" * 100000 + b"}}"]
        for name, values in (("cost", ("1", None, 1.5, [1], True)), ("failures", (0, None, "x")),
                             ("written", (1, None))):
            bad += [json.dumps({{**entry, name: value}}).encode() for value in values]
        for at in range(6):
            for value in ({{}}, 1.5, [1]):
                parts = [*entry["text"][:at], value, *entry["text"][at + 1:]]
                bad.append(json.dumps({{**entry, "text": parts}}).encode())
        for one in bad:
            add(key, one)
            _engine._cache_flush(60)
            assert passes_of(lambda: launched(define(text)["k"])) == 1, one[:300]
    """)


def test_an_interrupt_in_a_lookup(on_host):
    """Ctrl+C while an entry is read: the launch ends, and the next one is as if nothing had been."""
    on_host(f"""
        text = {KERNEL.replace("VALUE", "1")!r}
        assert launched(define(text)["k"]) == [1] * 4
        def interrupted(key):
            raise KeyboardInterrupt
        kernel, find = define(text)["k"], _engine._cache_find
        _engine._cache_find = interrupted
        try:
            launched(kernel)
        except KeyboardInterrupt:
            _engine._cache_find = find
        assert not kernel.variants and passes_of(launched, kernel) == 0
    """)
