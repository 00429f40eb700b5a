"""Kernels in Python that a reviewer broke: what names stand for, the order of evaluation, bounds that were not true."""
import enum

import numpy
import pytest

import drupe
import drupe.array as da
from drupe.compiler.messages import KernelError
from drupe.kernel_api import AtomicRef, PrivateArray


class _Item:
    def __init__(self, place):
        self.place = place

    def get_id(self, dim):
        return self.place


@drupe.device_func
def bump(a, i):
    a[i] = a[i] + 1
    return a[i]


@drupe.device_func
def early(a, j):
    if a[0] > 1e9:
        return 0.0
    return a[j]


@drupe.device_func
def square(x):
    return x*x


@drupe.device_func
def cube(x):
    return x*x*x


# --- What a name stands for ---

def tuple_of_itself(item, a, o):
    t = (1, 2)
    for k in range(5):
        t = (t[1], t[0] + t[1])
    o[0], o[1] = t


def transposed_again(item, a, o):
    m = a
    m = m.T
    o[0], o[1], o[2] = m.shape[0], m.shape[1], m[2, 1]


def swapped_by_three(item, a, o):
    src = a[0]
    dst = a[1]
    for k in range(1):
        old = src
        src = dst
        dst = old
    src[0] = 100
    dst[1] = 200


def kept_view(item, a, o):
    m = a[0]
    first = m
    m = m[1:]
    o[0], o[1], o[2], o[3] = first[0], m[0], len(first), len(m)


def rows_while_it_changes(item, a, o):
    v = a
    for row in v:
        v = v[1:]
        o[0] += row[0]
    o[1] = len(v)


def found_in_a_tuple(item, a, o):
    for k in (1, 2, 3):
        if a[0, 2] == k:
            found = k
    o[0] = found


def names_like_ours(item, a, o):
    _t1 = 3.0
    square1_x = 5.0
    _t1 += a[0, 1]
    square1_x += 1.0
    y = square(a[0, 2] + 1) + max(a[0, 1] + 1, a[0, 2] + 1)
    o[0], o[1] = square1_x + y, _t1


def names_like_those_of_parts(item, a, o):
    t = (o[0] + 1, 2.0)
    t_0 = 50.0
    a_shape0 = 3
    a_shape0 += 1
    t_0 += 1
    t = (t[1], 3.0)
    o[0], o[1] = t_0, len(a)*10 + a_shape0


# --- Order ---

def read_before_a_call(item, a, o):
    o[0] = a[0, 0]*10 + bump(a[0], 0)
    o[1] = a[0, 1] < bump(a[0], 1)
    t = (a[0, 2], bump(a[0], 2))
    o[2], o[3] = t
    o[4 + 0*int(bump(a[1], 0))] = a[1, 0]
    o[5] = a[int(a[0, 0] - 1), int(bump(a[0], 0)) - 2]


def augmented_by_a_call(item, a, o):
    o[0] += bump(o, 0)


def third_of_a_chain(item, a, o):
    if 0 < a[0, 2] < 1 < bump(o, 0):
        o[1] = 1


def break_in_the_else_of_while(item, a, o):
    for k in range(3):
        j = 0
        while bump(a[0], 0) < 5 and j < 10:
            j += 1
        else:
            break
        o[0] += 100
    o[1] = k


# --- Bounds ---

def constants_of_two_calls(item, a, o):
    o[0] = early(a[1], 2)
    o[1] = early(a[1], -1)


def narrower_bound(item, a, o):
    u = numpy.uint32(a[0, 0] + 4294967295)
    o[numpy.int32(u)] = 7
    o[1] = numpy.int32(u)//2


def narrower_variable(item, a, o):
    i = item.get_id(0)
    x = numpy.int8(3)
    if i == 0:
        x = numpy.int8(a[0, 0] - 2)
    o[x] = 5


# --- Arguments by name ---

def by_name(item, a, o):
    for i, v in enumerate((5, 6), start=1):
        o[i] = v
    o[0] = sum((1, 2), start=10)
    z = complex(real=1.0, imag=2.0)
    o[3] = z.imag


def is_true(item, a, o):
    if (1 < 2) is True:
        o[0] = 1
    if (1 < 2) is not False:
        o[1] = 1


RIGHT = [tuple_of_itself, transposed_again, swapped_by_three, kept_view, rows_while_it_changes, found_in_a_tuple,
         names_like_ours, names_like_those_of_parts, read_before_a_call, augmented_by_a_call, third_of_a_chain,
         break_in_the_else_of_while,
         constants_of_two_calls, narrower_bound, narrower_variable, by_name, is_true]


@pytest.mark.parametrize("function", RIGHT, ids=lambda one: one.__name__)
def test_it_is_what_python_does(function, queue):
    a, o = numpy.arange(6.0).reshape(2, 3), numpy.zeros(6)
    on_device = [da.asarray(one, queue=queue) for one in (a, o)]
    drupe.call_kernel(drupe.kernel(function), drupe.Range(1), *on_device)
    function(_Item(0), a, o)
    assert [one.tolist() for one in on_device] == [a.tolist(), o.tolist()]


@drupe.device_func
def second(v):
    if v[0] > 1e9:
        return 0.0
    return v[1]


def strides_of_two_calls(item, o):
    p = PrivateArray(6, numpy.float64)
    q = PrivateArray(9, numpy.float64)
    for i in range(6):
        p[i] = i
    for i in range(9):
        q[i] = i
    o[0] = second(p[::2])
    o[1] = second(q[::3])


def place_of_a_reference(item, o):
    j = 3
    if o[0] == 0:
        j = 2
    ref = AtomicRef(o, j)
    j = 0
    ref.fetch_add(3)


@pytest.mark.parametrize("function, right", [(strides_of_two_calls, [2, 3, 0, 0]),
                                             (place_of_a_reference, [0, 0, 3, 0])])
def test_device_things(function, right, queue):
    o = da.zeros(4, dtype="int32", queue=queue)
    drupe.call_kernel(drupe.kernel(function), drupe.Range(1), o)
    assert o.tolist() == right


# --- What is refused, and was wrong ---

def key_of_max(item, o):
    o[0] = max(-o[1], o[2], key=abs)


def slice_of_a_tuple(item, o):
    o[0] = len((1, 2, 3)[0:int(o[1])])


def another_function(item, o):
    t = (square, 1.0)
    if o[0] > 0:
        t = (cube, 1.0)
    o[0] = t[0](o[0])


def longer_tuple(item, o):
    t = ((1, 2), 3)
    if o[0] > 0:
        t = ((1, 2, 3), 3)
    o[0] = len(t[0])


@drupe.device_func
def add_early(ref, x):
    if x > 5:
        return 1.0
    ref.fetch_add(1.0)
    return 0.0


def reference_to_c(item, o):
    o[1] = add_early(AtomicRef(o, 0), o[2])


def too_few(item, o):
    o[0] = max()


def too_few_of_a_method(item, o):
    o[0] = o[1].astype()


def range_of_floats(item, o):
    for i in range(1.5):
        o[0] = i


def order_of_texts(item, o):
    if "a" < "b":
        o[0] = 1


@drupe.device_func
def sometimes(x):
    if x > 1:
        return 1.0
    return


def number_or_nothing(item, o):
    o[0] = sometimes(o[1])


@pytest.mark.parametrize("function, code", [(number_or_nothing, "DK016"), (too_few, "DK008"),
                                            (too_few_of_a_method, "DK008"),
                                            (range_of_floats, "DK012"), (order_of_texts, "DK012"),
                                            (key_of_max, "DK008"), (slice_of_a_tuple, "DK014"),
                                            (another_function, "DK006"), (longer_tuple, "DK006"),
                                            (reference_to_c, "DK016")])
def test_refused(function, code):
    with pytest.raises(KernelError, match=code):
        drupe.call_kernel(drupe.kernel(function), drupe.Range(1), da.zeros(4))


# --- Launches ---

class Letter(enum.IntEnum):
    B = 1


@drupe.kernel(checked=True)
def by_letter(item, o, letter):
    o[letter] = 3


def test_a_checked_kernel_takes_a_derived_number():
    o = da.zeros(3)
    drupe.call_kernel(by_letter, drupe.Range(1), o, Letter.B)
    assert o.tolist() == [0, 3, 0]


@drupe.kernel(checked=True)
def chained(item, o, j):
    if 0 <= j < 4 <= o[j]:
        o[0] = 9
    o[1] = 5


def test_a_chain_looks_at_no_index_that_does_not_count():
    o = da.zeros(4)
    drupe.call_kernel(chained, drupe.Range(1), o, 4)
    assert o.tolist() == [0, 5, 0, 0]


ZERO = 0.0


@drupe.kernel
def zero(item, o):
    o[0] = ZERO


def test_a_global_of_the_other_zero(monkeypatch):
    o = da.zeros(1)
    drupe.call_kernel(zero, drupe.Range(1), o)
    monkeypatch.setitem(globals(), "ZERO", -0.0)
    drupe.call_kernel(zero, drupe.Range(1), o)
    assert numpy.signbit(o.tolist()[0])
