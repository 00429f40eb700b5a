"""drupe.Range and drupe.NdRange: what they hold, what they refuse, and what they are to Python's own functions."""
import copy
import gc
import pickle

import numpy
import pytest

import drupe
from drupe import NdRange, Range, _engine


@pytest.mark.parametrize("sizes", [(7,), (4, 5), (2, 3, 4), (0,), (3, 0, 2)])
def test_a_range_is_a_tuple_of_its_sizes(sizes):
    one = Range(*sizes)
    assert one == sizes and isinstance(one, tuple) and list(one) == list(sizes) and hash(one) == hash(sizes)
    assert one.ndim == len(one) == len(sizes) and one.size() == numpy.prod(sizes)
    assert (one.dim0, one.dim1, one.dim2) == (*sizes, -1, -1)[:3]
    assert [one.get(i) for i in range(one.ndim)] == list(sizes)
    assert repr(one) == f"Range({', '.join(map(str, sizes))})" and eval(repr(one)) == one
    with pytest.raises(IndexError):
        one.get(len(sizes))


def test_sizes_are_ints_of_python():
    one = Range(numpy.int32(3), dim1=True, dim2=numpy.uint64(5))
    assert one == (3, 1, 5) and {type(size) for size in one} == {int}
    assert Range(dim0=3, dim1=None) == Range(3) == (3,)
    assert Range(2 ** 40, 2 ** 40, 0).size() == Range(0, 2 ** 40, 2 ** 40).size() == 0
    large = 2 ** 62
    assert Range(large).dim0 is large


@pytest.mark.parametrize("args, error, text", [
    ((), TypeError, "missing required argument 'dim0'"),
    ((1, 2, 3, 4), TypeError, "at most 3"),
    ((1.5,), TypeError, "dim0 of a Range must be an integer, not float"),
    (("3",), TypeError, "not str"),
    ((None,), TypeError, "not NoneType"),
    ((3, None, 4), TypeError, "dim1 of a Range must be an integer, not NoneType"),
    ((3, -1), ValueError, "dim1 of a Range must not be negative, and -1 is"),
    ((2 ** 63,), OverflowError, None),
    ((2 ** 31, 2 ** 31, 2), OverflowError, "fewer than 2"),
])
def test_what_a_range_refuses(args, error, text):
    with pytest.raises(error, match=text):
        Range(*args)
    with pytest.raises(error, match=text):
        Range.__new__(Range, *args)


def test_keywords_and_other_ways_to_make_one():
    with pytest.raises(TypeError, match="'dim3'; there are: dim0, dim1, dim2"):
        Range(1, dim3=2)
    with pytest.raises(TypeError, match="multiple values"):
        Range(1, dim0=2)
    with pytest.raises(TypeError):
        tuple.__new__(Range, (1,))
    with pytest.raises(TypeError):
        Range.more = 1
    assert type(Range(3, 4)[:]) is tuple


@pytest.mark.parametrize("first, second", [(Range(8, 6), Range(4, 3)), ((8, 6), [4, 3]), (Range(8, 6), (4, 3))])
def test_an_nd_range_has_two_ranges(first, second):
    one = NdRange(first, second)
    assert one.global_range == one.get_global_range() == (8, 6) and type(one.global_range) is Range
    assert one.local_range == one.get_local_range() == (4, 3) and type(one.local_range) is Range
    assert one == NdRange(global_size=(8, 6), local_size=(4, 3)) and hash(one) == hash(NdRange((8, 6), (4, 3)))
    assert one != NdRange((8, 6), (2, 3)) and one != ((8, 6), (4, 3)) and not one == NdRange(8, 4)
    assert eval(repr(one)) == one
    assert NdRange(8, numpy.int64(4)).local_range == (4,)


@pytest.mark.parametrize("args, error, text", [
    ((8,), TypeError, "missing required argument 'local_size'"),
    ((8, "4"), TypeError, "local_size must be an integer or a sequence"),
    ((8.0, 4), TypeError, "global_size must be"),
    (((), ()), ValueError, "global_size needs 1 to 3"),
    (((1, 1, 1, 1), 1), ValueError, "at most 3"),
    (((8, 8), 4), ValueError, "local_size has 1 dimension and global_size 2"),
    ((8, 0), ValueError, "local_size is 0 in dimension 0"),
    (((8, 7), (4, 4)), ValueError, "in dimension 1 local_size, 4, does not divide global_size, 7; round that up to 8"),
    ((4, 8), ValueError, "does not divide"),
    ((-8, 4), ValueError, "negative"),
])
def test_what_an_nd_range_refuses(args, error, text):
    with pytest.raises(error, match=text):
        NdRange(*args)


@pytest.mark.parametrize("one", [Range(3), Range(3, 4, 5), NdRange(8, 4), NdRange((8, 6), (4, 3))])
def test_copies(one):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(one, protocol))
        assert again == one and type(again) is type(one)
    assert copy.copy(one) == one == copy.deepcopy(one) and type(copy.deepcopy(one)) is type(one)
    assert {one: 1}[copy.copy(one)] == 1


def test_they_end():
    gc.collect()
    before = {name: _engine._live()[name] for name in ("Range", "NdRange")}
    kept = [NdRange(8, 4), Range(5)]
    assert _engine._live()["Range"] == before["Range"] + 3 and _engine._live()["NdRange"] == before["NdRange"] + 1
    with pytest.raises(ValueError):
        NdRange(8, 3)
    del kept
    assert {name: _engine._live()[name] for name in before} == before


def test_they_are_the_engines():
    assert drupe.Range is _engine.Range and drupe.NdRange is _engine.NdRange
