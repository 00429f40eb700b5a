"""What __sycl_usm_array_interface__ covers."""
import operator


def _need(good, what):
    if not good:
        raise ValueError(f"__sycl_usm_array_interface__ has no usable '{what}'")


def _item_size(typestr):
    """Of "<f4" or "|u1"."""
    _need(isinstance(typestr, str), "typestr")
    kind, size = typestr.lstrip("<>|=")[:1], typestr.lstrip("<>|=")[1:]
    _need(kind in "biufcV" and size.isdecimal() and 1 <= int(size) <= 4096, "typestr")
    return int(size)


def _numbers(given, what):
    _need(isinstance(given, tuple) and len(given) <= 64, what)
    return [operator.index(one) for one in given]


def span(interface):
    """The address and the number of the bytes that it covers, from the first one of an element to the last."""
    _need(isinstance(interface, dict), "data")
    data, shape, strides, offset = map(interface.get, ("data", "shape", "strides", "offset"))
    _need(isinstance(data, tuple) and data, "data")
    size = _item_size(interface.get("typestr"))
    shape = _numbers(shape, "shape")
    _need(all(length >= 0 for length in shape), "shape")
    low = high = 0 if offset is None else operator.index(offset)  # in elements, as the strides are
    if strides is not None:
        strides = _numbers(strides, "strides")
        _need(len(strides) == len(shape), "strides")
    else:
        strides, step = [], 1
        for length in reversed(shape):
            strides.insert(0, step)
            step *= length
    if 0 in shape:
        return data[0], 0
    for length, stride in zip(shape, strides):
        low, high = low + min(0, (length - 1) * stride), high + max(0, (length - 1) * stride)
    _need((high - low + 1) * size < 2**63, "strides")
    _need(0 <= data[0] + low * size < 2**64, "data")
    return data[0] + low * size, (high - low + 1) * size
