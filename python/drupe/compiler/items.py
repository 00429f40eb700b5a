"""Where a work-item is: methods of Item, NdItem, Group and SubGroup."""
from drupe.compiler import tree
from drupe.compiler.messages import KernelError
from drupe.compiler.values import Known, Place, constant, integer

# kind → method → what it asks, for a dimension or, with "linear", for all of them.
_ASKS = {
    "Item": {"get_id": "global_id", "get_range": "global_size", "get_linear_id": "linear global",
             "get_linear_range": "total global"},
    "NdItem": {"get_global_id": "global_id", "get_local_id": "local_id", "get_global_range": "global_size",
               "get_local_range": "local_size", "get_global_linear_id": "linear global",
               "get_local_linear_id": "linear local", "get_global_linear_range": "total global",
               "get_local_linear_range": "total local"},
    "Group": {"get_group_id": "group_id", "get_group_range": "group_count", "get_local_range": "local_size",
              "get_group_linear_id": "linear group", "get_group_linear_range": "total group",
              "get_local_linear_range": "total local"},
    "SubGroup": {"get_local_id": "sub_group_local_id", "get_local_linear_id": "sub_group_local_id",
                 "get_local_range": "sub_group_size", "get_local_linear_range": "sub_group_size",
                 "get_max_local_range": "sub_group_size",
                 "get_group_id": "sub_group_id", "get_group_linear_id": "sub_group_id",
                 "get_group_range": "sub_group_count", "get_group_linear_range": "sub_group_count"},
}
METHODS = frozenset(name for asks in _ASKS.values() for name in asks) | {"get_group", "get_sub_group"}


def place_method(low, owner, name, args):
    """owner.name(*args)"""
    if owner.kind == "NdItem" and name == "get_group":
        return Place("Group", owner.dims)
    if owner.kind == "NdItem" and name == "get_sub_group":
        return Place("SubGroup", 1)
    if owner.kind == "Group" and name == "leader":
        return Known(None)
    ask = _ASKS[owner.kind].get(name)
    if ask is None:
        remedy = ""
        if owner.kind == "Item" and name in _ASKS["NdItem"]:
            remedy = "Over a Range a kernel is given an Item, which has get_id(); over an NdRange an NdItem."
        raise KernelError("DK011", "%s has no method %s()." % ("An " + owner.kind if owner.kind == "Item" else
                                                              "A " + owner.kind, name),
                          remedy or "It has %s." % ", ".join(_ASKS[owner.kind]))
    if owner.kind == "SubGroup":
        return integer(tree.Query("int64", ask), 0)
    if ask.startswith("linear "):
        return integer(low.linear(ask.split()[1]), 0)
    if ask.startswith("total "):
        return low.total(ask.split()[1])
    return low.query(ask, args[0] if args else constant(0))
