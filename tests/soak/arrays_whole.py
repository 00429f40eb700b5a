"""More steps of random programs: index arrays, reductions, order, what joins and arranges."""
import re

import numpy as np

from arrays_numpy import top
from arrays_program import LARGEST, Line
from arrays_steps import add, kind

INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")


@add
class Whole:
    def places(self, queue, shape, length):
        n = self.n
        dtype = n.choice([one for one in INTEGERS if length <= np.iinfo(one).max] if queue == "host" else ["int64"])
        return "q(%d, xp.indices(%r, %r, %d, %d))" % (queue, dtype, shape, length, n.randrange(1 << 20))

    def fancy_key(self, a, queue):
        """An index by arrays, or by a mask; the text and the picked shape's size are NumPy's matter."""
        n, key = self.n, []
        if not a.ndim or not a.size or n.random() < 0.3:
            axes = n.randrange(a.ndim + 1)
            return "q(%d, xp.values('bool', %r, %d)), ..." % (queue, a.shape[:axes], n.randrange(1 << 20))
        common = n.choice(((), (3,), (1,), (2, 3), (0,), (4, 1)))
        for length in a.shape:
            way = n.randrange(5)
            if way < 2:
                shape = common if n.random() < 0.6 else common[1:] if n.random() < 0.5 else ()
                key.append(self.places(queue, shape, length))
            elif way == 2:
                key.append(str(n.randrange(-length, length)))
            elif way == 3:
                key.append("::%d" % n.choice((-2, -1, 1, 2)))
            else:
                key.append(":")
        if n.random() < 0.15:
            key.insert(n.randrange(len(key) + 1), "None")
        return ", ".join(key + ["..."])

    def fancy_get(self):
        name, a = self.any()
        if name is None:
            return None
        queue = self.queue_of[name]
        key = self.fancy_key(a, queue)
        # Plain slices among the keys make a view.
        return self.new("%s[%s]" % (name, key), queue, False, view="q(" not in key)

    def fancy_set(self):
        name, a = self.writable()
        if name is None:
            return None
        queue = self.queue_of[name]
        key = self.fancy_key(a, queue)
        if self.n.random() < 0.5:
            return Line("%s[%s] = %s" % (name, key, self.whole(a)), writes=name, queue=queue)
        try:
            shape = eval("a[%s]" % key, {**self.names, "a": a}).shape
        except IndexError:
            return None
        value = "q(%d, %s)" % (queue, self.values(shape, a.dtype.name))
        return Line("%s[%s] = %s" % (name, key, value), writes=name, queue=queue)

    def lost(self):
        """An index out of bounds: reading and writing fail late, and what was to be written is as before."""
        name, a = self.writable(ndim=1)
        if name is None or not a.size or self.queue_of[name] == 0:
            return None  # what other threads have on the shared queue would fail with it
        queue = self.queue_of[name]
        at = self.n.choice((a.shape[0], -a.shape[0] - 1, 1 << 40))
        return Line("xp.lost(%s, q(%d, np.array([0, %d])))" % (name, queue, at), writes=name, queue=queue)

    def exchanged(self):
        """The same elements by other ways."""
        name, a = self.any()
        if name is None or a.size > 5000 or name in self.shared:
            return None  # what others read meanwhile is not to be exported: it could be written
        return self.new("xp.%s(%s)" % (self.n.choice(("pickled", "exported", "viewed")), name), self.queue_of[name])

    def named(self):
        """Functions with NumPy's names that are made of others."""
        text, kinds, ndim, ulps, scale = self.n.choice(NAMED)
        name, a = self.any(kinds=kinds, ndim=ndim)
        if name is None or not a.size or a.size > 20000:
            return None
        if ulps and a.dtype == "float16" or a.dtype.kind in "fc" and "X" in text and not np.isfinite(a).all():
            return None
        text = re.sub(r"\bAXIS\b", str(self.axis(a) if a.ndim else 0), re.sub(r"\b[xX]\b", name, text))
        return self.new(text, self.queue_of[name], False, ulps=ulps, scale=re.sub(r"\bx\b", name, scale), view=True)

    def take(self):
        name, a = self.any(ndim=1)
        if name is None:
            return None
        axis, queue, n = self.axis(a), self.queue_of[name], self.n
        if not a.shape[axis]:
            return None
        if n.random() < 0.4:
            shape = list(a.shape)
            shape[axis] = n.randrange(4)
            return self.new("xp.take_along_axis(%s, %s, axis=%d)" % (
                name, self.places(queue, tuple(shape), a.shape[axis]), axis), queue)
        shape = n.choice(((3,), (), (0,), (2, 2)))
        return self.new("xp.take(%s, %s, axis=%d)" % (name, self.places(queue, shape, a.shape[axis]), axis), queue)

    def find(self):
        name, a = self.any(ndim=1)
        if name is None:
            return None
        text = self.n.choice(("xp.nonzero(%s)", "xp.count_nonzero(%s)", "xp.flatnonzero(%s)", "xp.argwhere(%s).copy()"))
        return self.new(text % name, self.queue_of[name])

    # --- reductions

    def over(self, a):
        n = self.n
        axes = None if n.random() < 0.3 else tuple(n.sample(range(a.ndim), n.randrange(a.ndim + 1)))
        return axes, "axis=%r, keepdims=%r" % (axes, n.random() < 0.3)

    def reduce(self):
        name, a = self.any()
        if name is None:
            return None
        axes, options = self.over(a)
        which = self.n.choice(("sum", "prod", "any", "all") if a.dtype.kind == "c" else
                              ("sum", "prod", "max", "min", "any", "all"))
        if which in ("max", "min") and 0 in (a.shape if axes is None else [a.shape[i] for i in axes]):
            return None
        how = {}
        if a.dtype.kind in "fc" and which in ("sum", "prod"):
            if which == "prod" and overflows(a):
                return None
            # A sum of n elements is off by an ulp of the largest partial sum for each of them at most.
            how = dict(ulps=4, scale="%s.size * top(%s)" % (name, name)) if which == "sum" else \
                dict(ulps=4 * a.size + 4)
        return self.new("xp.%s(%s, %s)" % (which, name, options), self.queue_of[name], **how)

    def mean(self):
        name, a = self.any(kinds="biuf")
        if name is None or not a.size:
            return None
        axes, options = self.over(a)
        which = self.n.choice(("mean", "var", "std"))
        # A variance is a sum of squares of differences, whose rounding std's root makes larger near zero.
        scale = {"mean": "%s.size * top(%s)", "var": "%s.size * top(%s) ** 2", "std": "1e3 * %s.size * top(%s)"}[which]
        if which == "std" and np.isfinite(a.astype("float64")).all() and np.min(np.var(
                a.astype("float64"), axis=axes)) < 1e-3:
            return None
        return self.new("xp.%s(%s, %s)" % (which, name, options), self.queue_of[name], ulps=8,
                        scale=scale % (name, name))

    def scan(self):
        name, a = self.any(ndim=1)
        if name is None:
            return None
        which, how = self.n.choice(("cumulative_sum", "cumulative_prod")), {}
        initial = self.n.choice(("", ", include_initial=True"))
        if a.dtype.kind in "fc":
            if a.dtype == "float16" or which == "cumulative_prod" and overflows(a):
                return None
            # Each step may add an ulp of what there is so far.
            how = dict(ulps=1, scale="%s.size ** 2 * top(%s)" % (name, name)) if which == "cumulative_sum" else \
                dict(ulps=4 * a.size + 4)
        return self.new("xp.%s(%s, axis=%d%s)" % (which, name, self.axis(a), initial), self.queue_of[name], **how)

    # --- order

    def sorted(self):
        name, a = self.any(ndim=1)
        if name is None:
            return None
        axis, n = self.axis(a), self.n
        which = n.choice(("sort", "argsort", "argmax", "argmin"))
        if which[:3] == "arg" and which[3] == "m":
            if 0 in a.shape or a.dtype.kind == "c":
                return None
            return self.new("xp.%s(%s, axis=%s, keepdims=%r)" % (which, name, n.choice((axis, None)),
                                                                 n.random() < 0.3), self.queue_of[name])
        options = ""
        if which == "sort" and n.random() < 0.3 and not (a.dtype.kind in "fc" and np.isnan(a).any()):
            options = ", descending=True"
        return self.new("xp.%s(%s, axis=%d%s)" % (which, name, axis, options), self.queue_of[name])

    def distinct(self):
        name, a = self.any()
        if name is None:
            return None
        text = self.n.choice(("xp.unique_values(%s)", "xp.unique_all(%s)", "xp.unique_counts(%s)",
                              "xp.unique_inverse(%s)"))
        return self.new(text % name, self.queue_of[name])

    def search(self):
        name, a = self.any(kinds="biuf", ndim=1)
        if name is None or not a.size:
            return None
        queue = self.queue_of[name]
        other, b = self.any(queue=queue, kinds="biuf")
        if np.result_type(a, b).kind == "f" and a.dtype.kind + b.dtype.kind != "ff":
            return None  # integers that are no floats: NumPy compares them as what they are
        if self.n.random() < 0.4:
            return self.new("xp.isin(%s, %s)" % (name, other), queue) if b.size else None
        return self.new("xp.searchsorted(xp.sort(%s.reshape(-1)), %s, side=%r)" % (
            name, other, self.n.choice(("left", "right"))), queue)

    # --- choosing, joining, arranging

    def where(self):
        name, a = self.any()
        if name is None:
            return None
        queue = self.queue_of[name]
        other, b = self.fitting(a, queue)
        if other is None:
            return None
        condition, c = self.fitting(np.broadcast_to(0, np.broadcast_shapes(a.shape, b.shape)), queue)
        if condition is None:
            return None
        y = other if self.n.random() < 0.7 else self.whole(a)
        return self.new("xp.where(%s, %s, %s)" % (condition, name, y), queue)

    def clip(self):
        name, a = self.any(kinds="iuf")
        if name is None:
            return None
        low, high = ("0", "3") if a.dtype.kind == "u" else ("-2", "3") if a.dtype.kind == "i" else ("-1.5", "4")
        low, high = self.n.choice(((low, high), (low, "None"), ("None", high), (high, low)))
        return self.new("xp.clip(%s, %s, %s)" % (name, low, high), self.queue_of[name])

    def joined(self):
        name, a = self.any(ndim=1)
        if name is None or a.size > LARGEST // 8:
            return None
        queue = self.queue_of[name]
        other, b = self.any(queue=queue)
        if self.n.random() < 0.4 or b.shape != a.shape:
            other = "%s[::-1]" % name
        elif "c" in (a.dtype.kind, b.dtype.kind) and kind(a, b) != "c":
            return None
        which = self.n.choice(("concat", "stack"))
        axis = self.axis(a) if which == "concat" else self.n.randrange(-a.ndim - 1, a.ndim + 1)
        return self.new("xp.%s([%s, %s, %s], axis=%d)" % (which, name, other, name, axis), queue)

    def arranged(self):
        n, (name, a) = self.n, self.any(ndim=1)
        if name is None or a.size > LARGEST // 8:
            return None
        axis, queue = self.axis(a), self.queue_of[name]
        ways = ["xp.roll(%s, %d, axis=%s)" % (name, n.randrange(-9, 9), n.choice((axis, None))),
                "xp.repeat(%s, %d, axis=%s)" % (name, n.randrange(4), n.choice((axis, None))),
                "xp.tile(%s, %r)" % (name, n.choice((2, (2, 1), (0,)))),
                "xp.repeat(%s, %s, axis=%d)" % (name, "q(%d, xp.indices('uint8', (%d,), 4, %d))" % (
                    queue, a.shape[axis], n.randrange(1 << 20)), axis)]
        if a.ndim >= 2:
            ways += ["xp.%s(%s, k=%d)" % (n.choice(("tril", "triu")), name, n.randrange(-2, 3)),
                     "xp.diagonal(%s)" % name]
        if a.dtype.kind in "iuf":
            ways.append("xp.diff(%s, axis=%d)" % (name, axis))
        text = n.choice(ways)
        return self.new(text, queue, False, view="diagonal" in text)

    def matmul(self):
        name, a = self.any(ndim=1)
        if name is None or a.size > LARGE_MATRIX or a.dtype.kind in "fc" and not np.isfinite(a).all():
            return None
        queue = self.queue_of[name]
        other, b = self.any(queue=queue, ndim=1)
        inner = a.shape[-1] == b.shape[-2 if b.ndim > 1 else -1]
        if not inner or b.size > LARGE_MATRIX or b.dtype.kind in "fc" and not np.isfinite(b).all():
            if a.ndim != 2:
                return None
            other, b = "xp.matrix_transpose(%s)" % name, a.T
        # Each element is a sum of as many products as the axis is long; each may add an ulp of what there is so far.
        how = dict(ulps=4, scale="%s.shape[-1] ** 2 * top(%s) * top(%s)" % (name, name, other)) \
            if kind(a, b) in "fc" else {}
        return self.new("xp.matmul(%s, %s)" % (name, other), queue, **how)


# A text (X: finite elements only), kinds, dimensions at least, ulps, and the scale of what is added up.
NAMED = [
    ("xp.median(X, axis=AXIS)", "iuf", 1, 4, "top(x)"), ("xp.quantile(X, 0.3, axis=AXIS)", "f", 1, 8, "top(x)"),
    ("xp.nansum(x, axis=AXIS)", "iu", 1, 0, "0"), ("xp.nanmax(X, axis=AXIS)", "f", 1, 0, "0"),
    ("xp.ptp(X, axis=AXIS)", "iuf", 1, 0, "0"), ("xp.average(X, axis=AXIS)", "f", 1, 8, "x.size * top(x)"),
    ("xp.flip(x)", "biufc", 1, 0, "0"), ("xp.rot90(x)", "biufc", 2, 0, "0"), ("xp.fliplr(x)", "biufc", 2, 0, "0"),
    ("xp.moveaxis(x, AXIS, 0)", "biufc", 1, 0, "0"), ("xp.swapaxes(x, AXIS, 0)", "biufc", 1, 0, "0"),
    ("xp.count_nonzero(x, axis=AXIS)", "biufc", 1, 0, "0"), ("xp.ediff1d(x)", "iu", 1, 0, "0"),
    ("xp.pad(x, 2)", "biufc", 1, 0, "0"), ("xp.pad(x, 1, mode='edge')", "biufc", 1, 0, "0"),
    ("xp.pad(x, 1, mode='wrap')", "biufc", 1, 0, "0"), ("xp.atleast_2d(x)", "biufc", 0, 0, "0"),
    ("xp.ravel(x)", "biufc", 0, 0, "0"), ("xp.squeeze(x[None], axis=0)", "biufc", 0, 0, "0"),
    ("xp.isclose(x, x)", "biufc", 0, 0, "0"), ("xp.array_equal(x, x)", "biufc", 0, 0, "0"),
    ("xp.nan_to_num(x)", "biuf", 0, 0, "0"), ("xp.fmod(x, 3)", "iu", 0, 0, "0"), ("xp.fmax(x, 2)", "iuf", 0, 0, "0"),
    ("xp.fmin(x, 2)", "iuf", 0, 0, "0"), ("xp.heaviside(x, 0.5)", "f", 0, 0, "0"),
    ("xp.trunc(X) // 3", "f", 0, 0, "0"), ("xp.trunc(X) % 3", "f", 0, 0, "0"),
    ("xp.outer(x, x[..., :2])", "biu", 1, 0, "0"), ("xp.kron(x, x[..., :2])", "iu", 1, 0, "0"),
    ("xp.vecdot(x, x)", "iu", 1, 0, "0"),
    ("xp.tensordot(x, x, axes=x.ndim)", "iu", 1, 0, "0"), ("xp.trapezoid(X, axis=AXIS)", "f", 1, 8, "x.size * top(x)"),
    ("xp.insert(x, 0, x[..., 0:1] if x.ndim == 1 else 1, axis=AXIS)", "biuf", 1, 0, "0"),
    ("xp.delete(x, 0, axis=AXIS)", "biufc", 1, 0, "0"), ("xp.append(x, x)", "biufc", 0, 0, "0"),
    ("xp.bincount(xp.abs(x).astype('uint8').reshape(-1))", "iu", 0, 0, "0"),
    ("xp.histogram(x.reshape(-1), bins=5, range=(-10, 10))[0]", "iu", 0, 0, "0"),
    ("xp.lexsort((x.reshape(-1), x.reshape(-1)[::-1]))", "biuf", 1, 0, "0"),
    ("xp.nancumsum(x, axis=AXIS)", "iu", 1, 0, "0"), ("xp.signbit(xp.copysign(x, -1.0))", "f", 0, 0, "0"),
    ("xp.logical_xor(x, xp.flip(x))", "biufc", 0, 0, "0"),
    ("xp.convolve(x.reshape(-1)[:40], x.reshape(-1)[:3])", "iu", 0, 0, "0"),
    ("xp.einsum('...i,...i->...', x, x)", "iu", 1, 0, "0"), ("xp.unstack(x, axis=AXIS)", "biufc", 1, 0, "0"),
    ("xp.union1d(x, x[..., :1])", "biu", 1, 0, "0"), ("xp.setdiff1d(x, x[..., :1])", "biu", 1, 0, "0")]
LARGE_MATRIX = 4000  # elements


def overflows(a):
    """Whether products of elements may be infinite on the way, in one order or another."""
    return a.dtype == "float16" or a.size * np.log10(max(top(a), 1)) > 30 or a.size > 200
