"""Which cells may use a device: in doubt all of them."""
import importlib
import math
import os
import types

import numpy
import pytest

from drupe.hosted.touches import may_use_devices

LIBRARY = types.ModuleType("somebodys")
NAMES = {"n": 3, "text": "a", "data": [1, 2, {"a": 1.5}], "table": numpy.ones(3), "objects": numpy.array([object()]),
         "numpy": numpy, "library": LIBRARY, "function": lambda: None, "thing": object(), "sqrt": math.sqrt,
         "hidden": [[[[object()]]]], "os": os, "importlib": importlib}
HARMLESS = ["", "1 + 1", "x = n * 2\nprint(x)", "text.upper()", "import os\nos.getpid()", "os.environ",
            "[one for one in data if one]", "def f(a):\n    return a + n", "sum(data[:2])", "for i in range(3):\n    i",
            "from math import sqrt\nsqrt(2)", "len(table) + 0", "numpy.add(n, 1)", "sqrt(n)",
            "try:\n    1\nexcept ValueError as error:\n    error"]
DOUBTFUL = ["import drupe", "from drupe import array", "function()", "thing", "library.f()", "%time 1", "eval('x')",
            "unknown", "hidden", "objects[0]", "import cupy", "importlib", "def f(:", "from . import x",
            "def f():\n    return thing", "get_ipython()", "numpy.add(n, thing)", "x = function\nx()"]


@pytest.mark.parametrize("code", HARMLESS)
def test_harmless(code):
    assert not may_use_devices(code, NAMES)


@pytest.mark.parametrize("code", DOUBTFUL)
def test_doubtful(code):
    assert may_use_devices(code, NAMES)
