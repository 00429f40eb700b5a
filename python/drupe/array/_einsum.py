"""Einstein's summation: it becomes diagonals, sums and matrix products of two operands at a time."""
import math

from drupe import _engine
from drupe.array._products import _arrays, total

_ops = _engine.operations
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def einsum(subscripts, /, *operands, optimize=True):
    """Sums of products by Einstein's convention: a letter for each axis, "..." for axes that broadcast. Letters that
    are missing behind "->" are summed over; without "->" those that occur twice are. Also einsum(x, [0, 1], y, [1, 2],
    [0, 2]), with numbers for letters.

    ValueError if the letters do not fit the shapes. `optimize` False takes the operands from left to right.

    >>> da.einsum("ij,jk->ik", da.ones((2, 3)), da.ones((3, 4))).shape
    (2, 4)
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    _arrays("einsum", *operands)
    terms, output = _parse(subscripts, [x.ndim for x in operands])
    sizes = {}
    for labels, x in zip(terms, operands):
        for label, length in zip(labels, x.shape):
            if sizes.get(label, 1) != 1 and length not in (1, sizes[label]):
                raise ValueError(f"einsum: the axes called {_name(label)} have sizes {sizes[label]} and {length}")
            sizes[label] = max(sizes.get(label, 1), length) if length else 0
    parts = [_single(x, labels, sizes) for x, labels in zip(operands, terms)]
    parts = [_sum_alone(part, output, parts[:i] + parts[i + 1:]) for i, part in enumerate(parts)]
    while len(parts) > 1:
        i, j = _cheapest(parts, output, sizes) if optimize and len(parts) > 2 else (0, 1)
        a, b = parts[i], parts[j]
        parts = [part for k, part in enumerate(parts) if k not in (i, j)]
        kept = set(output).union(*(labels for _, labels in parts))
        parts.insert(0, _pair(a, b, kept, sizes))
    x, labels = parts[0]
    return _arrange(x, labels, output, sizes)


def _name(label):
    return repr(label) if isinstance(label, str) else "..."


def _from_lists(arguments):
    """The text and the operands of the form with lists of numbers."""
    letters = sorted(_LETTERS)
    output = arguments[-1] if len(arguments) % 2 else None
    pairs = arguments[:-1] if len(arguments) % 2 else arguments
    if len(arguments) < 2 or not all(isinstance(x, (list, tuple)) for x in pairs[1::2]):
        raise TypeError("einsum takes a text such as 'ij,jk->ik' and arrays, or arrays each with a list of numbers")

    def text(labels):
        return "".join("..." if label is Ellipsis else letters[label] for label in labels)

    terms = ",".join(text(labels) for labels in pairs[1::2])
    return terms + ("" if output is None else "->" + text(output)), pairs[0::2]


def _parse(subscripts, ndims):
    """Labels of the axes of each operand and of the result: letters, and (n,) for axis n from the end of "..."."""
    text = subscripts.replace(" ", "")
    inputs, arrow, result = text.partition("->")
    inputs = inputs.split(",")
    if len(inputs) != len(ndims):
        raise ValueError(f"einsum: {subscripts!r} is for {len(inputs)} operands, and there are {len(ndims)}")
    terms = []
    most = 0
    for term, ndim in zip(inputs, ndims):
        labels, dots = _labels(term, subscripts)
        rest = ndim - len(labels)
        if rest < 0 or (rest and dots is None):
            raise ValueError(f"einsum: {term!r} does not fit an array with {ndim} dimensions")
        if dots is not None:
            most = max(most, rest)
            labels[dots:dots] = [(n,) for n in range(rest, 0, -1)]
        terms.append(labels)
    wide = [(n,) for n in range(most, 0, -1)]
    every = [label for labels in terms for label in labels]
    if not arrow:
        letters = sorted(label for label in set(every) if isinstance(label, str) and every.count(label) == 1)
        return terms, wide + letters
    output, dots = _labels(result, subscripts)
    if dots is not None:
        output[dots:dots] = wide
    for label in output:
        if output.count(label) > 1 or label not in every:
            raise ValueError(f"einsum: {_name(label)} of the result " +
                             ("occurs twice" if output.count(label) > 1 else "is in no operand"))
    if dots is None and wide:
        raise ValueError(f"einsum: the result in {subscripts!r} needs '...', as operands have axes there")
    return terms, output


def _labels(term, subscripts):
    """The letters of a term, and where its dots are or None."""
    before, dots, after = term.partition("...")
    labels = list(before + after)
    for label in labels:
        if label not in _LETTERS:
            raise ValueError(f"einsum: {label!r} in {subscripts!r} is no letter")
    return labels, len(before) if dots else None


def _single(x, labels, sizes):
    """An operand whose labels differ; axes of size 1 that others have longer are left out."""
    keep = [not (length == 1 and sizes[label] != 1) for label, length in zip(labels, x.shape)]
    if not all(keep):
        x = x[tuple(slice(None) if kept else 0 for kept in keep)]
        labels = [label for label, kept in zip(labels, keep) if kept]
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ValueError(f"einsum: the axes called {_name(label)} have sizes {x.shape[first]} and "
                                 f"{x.shape[second]}")
            rest = [a for a in range(x.ndim) if a not in (first, second)]
            x = _engine._diagonal(_engine.permute_dims(x, (*rest, first, second)), 0)
            labels = [labels[a] for a in rest] + [label]
    return x, labels


def _sum_alone(part, output, others):
    """Sum over what no other operand and not the result has."""
    x, labels = part
    used = set(output).union(*(other for _, other in others))
    alone = tuple(a for a, label in enumerate(labels) if label not in used)
    return total(x, alone), [label for label in labels if label in used]


def _cheapest(parts, output, sizes):
    """The two operands whose product has the fewest elements more than they have."""
    best = None
    for i in range(len(parts)):
        for j in range(i + 1, len(parts)):
            a, b = parts[i][1], parts[j][1]
            kept = set(output).union(*(labels for k, (_, labels) in enumerate(parts) if k not in (i, j)))
            result = math.prod(sizes[label] for label in (set(a) | set(b)) & kept)
            spared = math.prod(sizes[label] for label in a) + math.prod(sizes[label] for label in b)
            work = math.prod(sizes[label] for label in set(a) | set(b))
            if best is None or (result - spared, work) < best[0]:
                best = (result - spared, work), (i, j)
    return best[1]


def _pair(a, b, kept, sizes):
    """The product of two operands, summed over what both have and nobody else."""
    (x, left), (y, right) = a, b
    both = [label for label in left if label in right]
    stack = [label for label in both if label in kept]
    inner = [label for label in both if label not in kept]
    rows = [label for label in left if label not in both]
    columns = [label for label in right if label not in both]
    labels = stack + rows + columns
    shape = tuple(sizes[label] for label in labels)

    def groups(*each):
        return tuple(math.prod(sizes[label] for label in group) for group in each)

    if not inner:
        x = _order(x, left, stack + rows).reshape(tuple(sizes[n] for n in stack + rows) + (1,) * len(columns))
        y = _order(y, right, stack + columns).reshape(groups(*([n] for n in stack)) + (1,) * len(rows) +
                                                      tuple(sizes[n] for n in columns))
        return _ops["logical_and" if x.dtype.kind == y.dtype.kind == "b" else "multiply"](x, y), labels
    apart = tuple(sizes[label] for label in stack)
    x = _order(x, left, stack + rows + inner).reshape(apart + groups(rows, inner))
    y = _order(y, right, stack + inner + columns).reshape(apart + groups(inner, columns))
    return _engine.matmul(x, y).reshape(shape), labels


def _order(x, labels, wanted):
    return x if labels == wanted else _engine.permute_dims(x, tuple(labels.index(label) for label in wanted))


def _arrange(x, labels, output, sizes):
    """The axes in the order of the result."""
    alone = tuple(a for a, label in enumerate(labels) if label not in output)
    x, labels = total(x, alone), [label for label in labels if label in output]
    present = [label for label in output if label in labels]
    x = _order(x, labels, present)
    if len(present) < len(output):  # axes of size 1 everywhere but in operands that left them out
        x = _engine.broadcast_to(x.reshape(tuple(sizes[label] if label in present else 1 for label in output)),
                                 tuple(sizes[label] for label in output)).copy()
    return x
