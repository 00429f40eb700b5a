"""Random functions of a C library, called through drupe.native and through ctypes: the same bytes have to come back.

    python tests/soak/native.py [CALLS] [SEED]         or ./dev soak native; 100,000 calls unless a number is given

A function mixes the bytes of all its arguments into an array of 64-bit words, so an argument that arrives wrong or in
the wrong place shows. Calls go to the queues of several CPU devices, with arrays of drupe.array and of NumPy, and with
numbers by value and by address."""
import ctypes
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

SCALARS = {"int8_t": "int8", "uint8_t": "uint8", "int16_t": "int16", "uint16_t": "uint16", "int32_t": "int32",
           "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64", "float": "float32", "double": "float64",
           "_Bool": "bool"}
OUT = 8
HEAD = """#include <stdint.h>
#include <string.h>
static uint64_t mix(uint64_t h, const void *p, uint64_t n)
{
    const unsigned char *b = p;
    for (uint64_t i = 0; i < n; i++) h = (h ^ b[i]) * UINT64_C(1099511628211);
    return h;
}
"""


class Parameter:
    def __init__(self, dice):
        self.type = dice.choice(list(SCALARS))
        self.dtype = np.dtype(SCALARS[self.type])
        self.pointer = dice.random() < 0.5
        self.writes = self.pointer and dice.random() < 0.4

    @property
    def text(self):
        if not self.pointer:
            return self.type
        return self.type + " *" if self.writes else "const %s *" % self.type


class Function:
    """A function whose last parameters are the lengths of its arrays (by address where nothing is declared), and the
    words that it writes."""

    def __init__(self, number, dice):
        self.name = "f%d" % number
        self.declared = dice.random() < 0.7
        self.parameters = [Parameter(dice) for _ in range(dice.randint(0, 20 if self.declared else 6))]
        if not self.declared:
            for one in self.parameters:
                one.pointer = True
        self.result = dice.choice(list(SCALARS)) if self.declared and dice.random() < 0.3 else "void"

    @property
    def arrays(self):
        return [one for one in self.parameters if one.pointer]

    def source(self):
        by = "" if self.declared else "*"
        lines = ["%s %s(%s)" % (self.result, self.name, self.prototype(names=True)), "{", "uint64_t h = 7;"]
        for index, one in enumerate(self.parameters):
            length = "%sn%d * sizeof(%s)" % (by, index, one.type)
            if not one.pointer:
                lines.append("h = mix(h, &a%d, sizeof a%d);" % (index, index))
                continue
            lines.append("if (a%d) h = mix(h, a%d, %s); else h = mix(h, \"none\", 4);" % (index, index, length))
            if one.writes:
                lines.append("if (a%d) memset(a%d, (int)(h & 1), %s);" % (index, index, length))
        lines += ["for (int i = 0; i < %d; i++) out[i] = (h = mix(h, &i, sizeof i));" % OUT]
        if self.result != "void":
            lines.append("return (%s)(h & 1);" % self.result)
        return "\n".join(lines + ["}", ""])

    def prototype(self, names=False):
        words = [one.text + (" a%d" % index if names else "") for index, one in enumerate(self.parameters)]
        for index, one in enumerate(self.parameters):
            if one.pointer:
                words.append(("uint64_t" if self.declared else "const uint64_t *") + (" n%d" % index if names else ""))
        return ", ".join([*words, "uint64_t *out" if names else "uint64_t *"])


def values(one, dice):
    """What a parameter gets: a NumPy array, None, or a number."""
    info = None if one.dtype.kind in "bf" else np.iinfo(one.dtype)
    draw = {"b": lambda: dice.random() < 0.5, "f": lambda: dice.choice((0.5, -1e3, 3.25, 1e30))}.get(
        one.dtype.kind, lambda: dice.choice((info.min, info.max, 0, 1, dice.randint(info.min, info.max))))
    if not one.pointer:
        return one.dtype.type(draw())
    if dice.random() < 0.1:
        return None
    return np.array([draw() for _ in range(dice.choice((0, 1, 2, 7, 64)))], one.dtype)


def lengths_of(function, given):
    return [0 if one is None else len(one) for one, parameter in zip(given, function.parameters) if parameter.pointer]


def by_ctypes(code, function, given):
    out = np.zeros(OUT, np.uint64)
    numbers = [ctypes.c_uint64(one) for one in lengths_of(function, given)]
    words = []
    for one, parameter in zip(given, function.parameters):
        if not parameter.pointer:
            words.append(np.ctypeslib.as_ctypes_type(parameter.dtype)(one.item()))
        else:
            words.append(ctypes.c_void_p(None if one is None or not one.size else one.ctypes.data))
    words += numbers if function.declared else [ctypes.byref(one) for one in numbers]
    code.argtypes = None
    returns = None if function.result == "void" else np.dtype(SCALARS[function.result])
    code.restype = None if returns is None else np.ctypeslib.as_ctypes_type(returns)
    return code(*words, ctypes.c_void_p(out.ctypes.data)), out


def by_drupe(code, function, given, dice, queue):
    """(result, out, the arrays afterwards)"""
    import drupe.array as da

    direct = dice.random() < 0.3  # NumPy's own memory
    arrays = [one if one is None or not isinstance(one, np.ndarray) or direct else da.asarray(one, queue=queue)
              for one in given]
    words = [one.item() if isinstance(one, np.generic) and dice.random() < 0.5 else one for one in arrays]
    lengths = lengths_of(function, given)
    if not function.declared:
        lengths = [np.uint64(one) for one in lengths]
    out = np.zeros(OUT, np.uint64) if direct else da.zeros(OUT, dtype="uint64", queue=queue)
    result = None if function.result == "void" else np.zeros(1, SCALARS[function.result])
    keywords = {} if result is None else {"result": result}
    code(*words, *lengths, out, queue=queue, **keywords)
    queue.wait()
    return (None if result is None else result[0], np.asarray(out),
            [np.asarray(one) if isinstance(one, da.Array) else one for one in arrays])


def compare(function, given, before, dice, code, queue):
    expected, mine = [[None if one is None else np.copy(one) for one in before] for _ in range(2)]
    expected = [one.dtype.type(one[()]) if one is not None and one.ndim == 0 else one for one in expected]
    mine = [one.dtype.type(one[()]) if one is not None and one.ndim == 0 else one for one in mine]
    result, out = by_ctypes(code[0], function, expected)
    own_result, own_out, own = by_drupe(code[1], function, mine, dice, queue)
    problem = "%s(%s)%s with %r" % (function.name, function.prototype(), " declared" * function.declared, before)
    assert (out == own_out).all(), problem
    assert own_result is None or own_result == result, problem
    for one, two, parameter in zip(expected, own, function.parameters):
        if parameter.pointer and one is not None:
            assert one.tobytes() == np.asarray(two).tobytes(), problem


def run(calls, seed, folder, functions=200):
    """Compare so many calls; AssertionError tells the function and its arguments."""
    import drupe
    from drupe import native

    print("native: %d calls, seed %d" % (calls, seed), flush=True)
    dice = random.Random(seed)
    made = [Function(number, dice) for number in range(functions)]
    source, target = pathlib.Path(folder) / "random.c", pathlib.Path(folder) / "librandom.so"
    source.write_text(HEAD + "\n".join(one.source() for one in made))
    compiler = shutil.which("cc") or shutil.which("gcc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(target)], check=True)
    other, library = ctypes.CDLL(str(target)), native.load(target)
    code = {}
    for one in made:
        if one.declared:
            library.declare(one.name, "%s(%s)" % (one.result, one.prototype()))
        code[one.name] = getattr(other, one.name), getattr(library, one.name)
    queues = [drupe.Queue(one) for one in drupe.devices() if one.device_type.name == "cpu"]
    for _ in range(calls):
        function = dice.choice(made)
        given = [values(one, dice) for one in function.parameters]
        compare(function, given, given, dice, code[function.name], dice.choice(queues))
    library.unload()


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "little")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run(calls, seed, folder)
    print("native: no difference in %d calls, %.0f s" % (calls, time.monotonic() - began))


if __name__ == "__main__":
    main()
