"""All passes, one after the other: from a function and the types of its arguments to a Variant that is not built."""
from drupe.compiler import analysis, kernels, masks, text, text_c99, tree, types
from drupe.compiler.messages import KernelError
from drupe.compiler.variants import Variant

ROUNDS = 500  # what a loop counts for whose length is not known
_GRAIN, _LANES = 20_000, 24  # operations that are worth a chunk of the host's work-items; of vectors, about as many
_MOST_PARAMETERS = 64  # of a kernel on host, with those that launches add (DRUPE_HOST_PARAMS)


def run(function, target):
    """The Variant for a variants.Target. Raises KernelError."""
    made = lowered(function, target)
    shown = text.render(made, target.language)
    if target.language == "c99" and len(shown.params) > _MOST_PARAMETERS:
        raise KernelError("DK018", "%s passes %d pointers and numbers to a kernel, and %s() needs %d." % (
            target.device_name, _MOST_PARAMETERS, made.name, len(shown.params)), "An array takes one and one for each "
            "size and stride that is asked for. Pass fewer arrays, or numbers in an array.")
    written = [(one.source[1], one.name) for one in made.params
               if one.buffer is not None and one.source[0] == "pointer" and not one.buffer.readonly]
    each = sum(cost(stmt) for stmt in made.body)
    return Variant(shown, cost=each, grain=_grain(made, each), failures=made.failures, written=written,
                   watched=made.watched, sources=made.sources, lowered=lambda: made)


def _grain(made, each):
    """Work-items of a chunk on the host. Those that become vectors take much less time than they have operations."""
    plain = all(map(_is_brief, analysis.everything(made))) and text_c99.independent(made.body)
    return max(1, _GRAIN*(_LANES if plain else 1) // max(1, each))


def _is_brief(node):
    """Whether it takes a vector no longer than what it counts for. Elements at places that were read wait for memory,
    and quotients that are rounded down are functions."""
    if isinstance(node, tree.Call):
        return tree.is_cheap(node) and node.name not in ("floordiv", "mod") and node.type not in types.COMPLEX and \
            not any(one.type in types.COMPLEX for one in node.args)
    if isinstance(node, (tree.Load, tree.Store)):
        return not any(isinstance(one, tree.Load) for one in analysis.nodes(node.index))
    return not isinstance(node, (tree.For, tree.While))


def lowered(function, target):
    """The tree.Function of which the text is made."""
    made = kernels.lower(function, target.kinds, dims=target.dims, grouped=target.grouped, fp64=target.fp64,
                         device_name=target.device_name, checked=target.checked, dialect=target.dialect)
    if target.language == "opencl" and made.barriers:
        masks.mask(made)
    return made


def cost(node):
    """Operations of a statement, where a loop whose length is not known runs for a fixed number of rounds."""
    total = 1
    for child in tree.children(node):
        total += cost(child)
    if isinstance(node, tree.For):
        ends = [one.value for one in (node.start, node.stop, node.step) if isinstance(one, tree.Const)]
        return total * (max(1, len(range(*ends))) if len(ends) == 3 else ROUNDS)
    return total * (ROUNDS if isinstance(node, tree.While) else 1)
