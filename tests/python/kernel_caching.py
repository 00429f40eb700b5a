"""Processes that share a disk cache, and tell which kernels went through the passes: for test_kernel_cache*.py."""
import textwrap

BEGIN = """
    import collections, enum, json, linecache, math, os, sys, threading, types
    import numpy
    import drupe, drupe.array as da
    from drupe import _engine
    from drupe.compiler import cached, launch, passes

    ran = []  # the kernels that went through the passes
    run_passes = passes.run
    passes.run = lambda function, target: (ran.append(function.__name__), run_passes(function, target))[1]
    place = os.environ["PLACE"]

    def define(text, name="<cell>"):
        "The names that a text defines, as a new cell would."
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        names = {"__name__": "cell", "drupe": drupe, "numpy": numpy, "math": math}
        exec(compile(text, name, "exec"), names)
        return names

    def module(name, text):
        sys.modules[name] = made = types.ModuleType(name)
        made.__dict__.update(define(text, name), __name__=name)

    def launched(kernel, *args, dtype="float64", space=drupe.Range(4)):
        "What it writes; then what is to be kept has been written."
        out = da.zeros(4, dtype=dtype, device=place)
        try:
            drupe.call_kernel(kernel, space, out, *args)
            return out.asnumpy().tolist()
        finally:
            _engine._cache_flush(60)

    def passes_of(function, *args, **named):
        before = len(ran)
        function(*args, **named)
        return len(ran) - before
"""
KERNEL = """
@drupe.kernel
def k(item, out):
    out[item.get_id(0)] = VALUE
"""


def runner(fresh, folder, place):
    """A function that runs text in a process with a cache of its own, and gives what it prints."""
    def run(text, begin=BEGIN, **environment):
        settings = {"DRUPE_CACHE": "1", "DRUPE_CACHE_DIR": str(folder / "cache"), "PLACE": place,
                    "PYTHONPATH": str(folder), **environment}
        result = fresh(textwrap.dedent(begin) + textwrap.dedent(text), **settings)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run
