"""Loads that give all work-items of a row the same, on the host.

The last dimension of a Range is the innermost loop there. In `out[i, j] = a[i]*b[j]`, C reads a[i] again for each j, as
a store to `out` might have changed it. Work-items of a Range are independent: what one of them stores, another may see
or not. So one read for a row gives each of them what it may see.

Where all work-items of a row store to one element, as in `sums[i] += a[i, j]`, they are not independent. The host runs
them one after the other, and a read for the row would leave the last one's value alone.
"""
import collections

from drupe.compiler import analysis, tree

MOST_NODES = 40  # of a variable's expression: each use of it has a copy, and a chain of them would grow without end
_PLAIN = (tree.Const, tree.Var, tree.Query, tree.Unary, tree.Binary, tree.Cast, tree.Select, tree.Load)


def loads(function, body):
    """[(Load, the same load in terms of parameters and places alone)] of what each work-item surely reads before it
    stores anything, calls a function or may end, where the last dimension's place does not count."""
    known, sizes, found = {one.name: None for one in function.params if one.buffer is None}, {}, []
    outer = {one.buffer.name for one in function.params if one.buffer is not None and one.buffer.space == tree.GLOBAL}
    for name in analysis.assigned(body):
        known.pop(name, None)
    counts = collections.Counter(analysis.target(node) for node in analysis.nodes(*body))

    def is_same(node):
        if isinstance(node, tree.Var):
            return node.name in known
        if isinstance(node, tree.Query):
            return node.what == "global_size" or (node.what == "global_id" and node.dim < function.dims - 1)
        if isinstance(node, tree.Load) and node.buffer.name not in outer:
            return False
        plain = isinstance(node, _PLAIN) or (isinstance(node, tree.Call) and tree.is_cheap(node))
        return plain and all(is_same(child) for child in tree.children(node))

    def size(node):
        return sizes.get(node.name, 1) if isinstance(node, tree.Var) else 1 + sum(map(size, tree.children(node)))

    def in_outer_terms(node):
        def change(part):
            return known[part.name] if isinstance(part, tree.Var) and known[part.name] is not None else part

        return analysis.rebuilt(node, change)

    def take(node):
        """Add the loads of an expression, but not those that only some work-items come to."""
        if isinstance(node, tree.Load) and is_same(node):
            found.append((node, in_outer_terms(node)))
            return
        some = isinstance(node, tree.Select) or (isinstance(node, tree.Binary) and node.op in ("&&", "||"))
        for child in list(tree.children(node))[:1 if some else None]:
            take(child)

    for stmt in body:
        if not isinstance(stmt, (tree.Assign, tree.Store)) or analysis.calls(stmt):
            break
        for one in analysis.expressions(stmt):
            take(one)
        if isinstance(stmt, tree.Store):
            break
        if is_same(stmt.value) and counts[stmt.name] == 1 and size(stmt.value) <= MOST_NODES and \
                stmt.value.type == function.locals.get(stmt.name):
            known[stmt.name], sizes[stmt.name] = in_outer_terms(stmt.value), size(stmt.value)
    common = {node.buffer.name for node in analysis.nodes(*body)
              if isinstance(node, tree.Store) and is_same(node.index)}
    return [pair for pair in found if not any(
        isinstance(node, tree.Load) and node.buffer.name in common for node in tree.walk(pair[1]))]
