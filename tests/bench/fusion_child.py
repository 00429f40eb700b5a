"""One contestant of ./dev bench fusion in a process of its own: `fusion_child.py JOB CONTESTANT FOLDER [TEXT [SMALL]]`.

Prints {title: {"seconds", "first", "peak"}} as JSON and saves what was computed in FOLDER/values.npz, thinned out, for
the parent to compare. A contestant is "numpy", a device's filter string, either with " unfused" behind it, which the
parent makes true by the environment, or a name of expressions.PEERS.
"""
import json
import os
import sys
import time

import numpy

import expressions
import fusion_calls
import loops
import whole

KEPT = 20000       # elements of a result that are compared
PATIENCE = 0.6     # seconds for the repetitions of one row
MOST = 30          # repetitions
ROUNDS, TOLD = 1000, 10
SIZES = (1, 10, 100, 1000, 10000)
# --clock cpu: the processor time of all threads, which says more than time does where others use the machine.
clock = time.process_time if os.environ.get("DRUPE_BENCH_CLOCK") == "cpu" else time.perf_counter


class Place:
    """A library on a device: what makes its arrays, and what waits until they are computed."""

    def __init__(self, contestant):
        where = contestant.partition(" ")[0]
        if where == "numpy":
            self.xp, self.array, self.wait, self.host = numpy, numpy.array, lambda: None, numpy.asarray
            return
        import drupe
        import drupe.array
        self.xp, self.host = drupe.array, self.values
        self.array = drupe.array.asarray
        self.default = drupe.device(drupe.Device(where))
        self.default.__enter__()
        self.wait = drupe.array.zeros(1).queue.wait

    def values(self, value):
        return value.asnumpy() if isinstance(value, self.xp.Array) else numpy.asarray(value)


def thinned(value):
    """What is compared of an array: its shape, its sum, and elements all over it."""
    value = numpy.asarray(value)
    flat = value.reshape(-1).astype("complex128" if value.dtype.kind == "c" else "float64", copy=False)
    step = -(-flat.size // KEPT) or 1
    return numpy.concatenate([numpy.array(value.shape + (0,)) * 1.0, flat[::step]])


def repeated(compute, count=1):
    """(seconds of the first run, of the best one after it, the first one's result)."""
    begun = clock()
    result = compute()
    first, best, spent = clock() - begun, float("inf"), 0.0
    for _ in range(MOST):
        begun = clock()
        for _ in range(count):
            compute()
        taken = clock() - begun
        best, spent = min(best, taken / count), spent + taken
        if spent > PATIENCE:
            break
    return first, best, result


# --- the jobs: each yields (title, figures, results) --------------------------------------------------------


def run_expressions(contestant, wanted, small):
    place = None if contestant in expressions.PEERS[1:] else Place(contestant)
    for title in expressions.EXPRESSIONS:
        for dtype in ("float64", "float32"):
            full = title + ", " + dtype
            if wanted not in full:
                continue
            given = expressions.arrays(title, 1000 if small else 10**7, dtype)
            first, best, result = repeated(expressions.maker(contestant, title, given, dtype, place))
            values = numpy.asarray(result) if place is None else place.host(result)
            if values.dtype != dtype:
                raise TypeError("%s computes %s in %s" % (contestant, full, values.dtype))
            yield full, {"first": first, "seconds": best}, [values]


def measured(place, prepare, run, n, warm):
    """With small arrays first, so that what is loaded once is there; then the memory and the times."""
    def settled(given):
        result = run(place.xp, **given)
        place.wait()
        return result

    def made(size):
        return {name: place.array(value) for name, value in prepared[size].items()}

    prepared = {size: prepare(numpy.random.default_rng(3), size) for size in (warm, n)}
    for _ in range(3):
        settled(made(warm))
    before = loops.forget_peak()
    given = made(n)
    place.wait()
    begun = clock()
    result = settled(given)
    first, peak = clock() - begun, loops.peak_bytes() - before
    _, best, _ = repeated(lambda: settled(given))
    results = result if isinstance(result, tuple) else (result,)
    return {"first": first, "seconds": best, "peak": peak}, [place.host(one) for one in results]


def run_programs(contestant, wanted, small):
    place = Place(contestant)
    prepare, run, warm, large, _ = whole.PROGRAMS[wanted]
    yield wanted, *measured(place, prepare, run, warm if small else large, warm)


def jacobi(xp, u):
    """Laplace's equation between fixed edges: 20 rounds, each of which looks how far it still moved."""
    u = u.copy()
    for number in range(20):
        new = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        moved = float(xp.max(xp.abs(new - u[1:-1, 1:-1])))
        u[1:-1, 1:-1] = new
        if moved < 1e-6:
            break
    return u, moved, number


def run_jacobi(contestant, _, small):
    yield "Jacobi", *measured(Place(contestant), lambda rng, n: {"u": rng.random((n, n))}, jacobi,
                              50 if small else 2000, 50)


def run_loop(contestant, _, small):
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        def told(xp, x):
            for number in range(ROUNDS // (50 if small else 1)):
                x = x * 0.5 + 1
                if number % TOLD == 0:
                    print(x, file=nowhere)
            return x

        yield "loop", *measured(Place(contestant), lambda rng, n: {"x": rng.random(n)}, told,
                                1000 if small else 10**6, 1000)


def run_small(contestant, wanted, small):
    """What one addition takes until it is done."""
    place = Place(contestant)
    for size in SIZES:
        title = "x + y, %d element%s" % (size, "s" * (size > 1))
        if wanted in title:
            x, y = (place.array(numpy.arange(size) * step) for step in (0.5, 0.25))

            def settled():
                result = x + y
                place.wait()
                return result
            first, best, result = repeated(settled, 20 if small else max(2000, 20000 // size))
            yield title, {"first": first, "seconds": best}, [place.host(result)]


def run_libraries(contestant, wanted, small):
    place = Place(contestant)
    made = fusion_calls.arrays(1000 if small else fusion_calls.COUNT)
    given = {name: place.array(value) for name, value in made.items()}
    for library, text in (("sklearn", fusion_calls.SKLEARN), ("scipy", fusion_calls.SCIPY)):
        calls = [one for one in fusion_calls.listed(text) if wanted in library + "." + one]
        if not calls:
            continue
        names = {**fusion_calls.names(library), **given}
        if library == "sklearn" and place.xp is not numpy:
            import sklearn
            sklearn.set_config(array_api_dispatch=True)
        for call in calls:
            code = compile(call, "call", "eval")

            def settled():
                result = eval(code, names)
                place.wait()
                return result
            first, best, result = repeated(settled)
            yield (library + "." + call, {"first": first, "seconds": best},
                   [place.host(one) for one in fusion_calls.values_of(result)])


JOBS = {"expressions": run_expressions, "jacobi": run_jacobi, "loop": run_loop, "programs": run_programs,
        "small": run_small, "libraries": run_libraries}


def main(job, contestant, folder, wanted="", small=""):
    import warnings
    warnings.simplefilter("ignore")
    if contestant.partition(" ")[0] not in ("jax", "numba", "numexpr"):  # who reserve what they do not use
        loops.keep_the_machine()
    found, values = {}, {}
    for title, figures, results in JOBS[job](contestant, wanted, small):
        found[title] = figures
        for place, result in enumerate(results):
            values["%s/%d" % (title.replace("/", "÷"), place)] = thinned(result)
    numpy.savez(os.path.join(folder, "values.npz"), **values)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
