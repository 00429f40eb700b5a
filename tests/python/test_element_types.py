"""Every type of elements against NumPy: names, numbers in and out, casts, parts of complex numbers, makers, limits."""
import array as stdarray
import operator

import element_types as types
import numpy as np
import pytest
from element_types import COMPLEX, FLOATS, INTEGERS, TYPES, UNSIGNED, close

import drupe
import drupe.array as da

if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    np._set_promotion_state("weak")  # the rules of NumPy 2, which the values are compared with

every_type = pytest.mark.every_type


@pytest.fixture
def host():
    return drupe.Device("host")


def some(dtype, n=7):
    """Numbers of a type, with its limits among those of integers."""
    if dtype == "bool":
        return np.arange(n) % 3 == 0
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return np.resize(np.array([info.min, info.max, 1, 0, 5, 100, 7], dtype), n)
    a = np.resize(np.array([0.5, -1.25, 3.0, 0.0, 100.0, -0.0, 7.5]), n)
    return (a + 1j * a[::-1] if dtype in COMPLEX else a).astype(dtype)


# --- Types and numbers ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_numpys(name):
    dtype, theirs = getattr(da, name), np.dtype(name)
    for same in (name, theirs, theirs.type, theirs.str, theirs.str.lstrip("<>|")):
        assert dtype == same and da.DType(same) is dtype
    assert (dtype.kind, dtype.itemsize, dtype.str, dtype.name) == (theirs.kind, theirs.itemsize, theirs.str, name)
    assert np.dtype(dtype) == theirs and hash(dtype) == hash(name)
    for other in TYPES:
        assert (dtype == other) == (name == other) and (dtype != getattr(da, other)) == (name != other)


def test_types_of_python():
    assert [da.DType(t).name for t in (bool, int, float, complex)] == ["bool", "int64", "float64", "complex128"]
    for wrong in ("float8", "complex256", "uint", ">c8", ">i2", np.longdouble, np.clongdouble, "datetime64[s]", "O"):
        with pytest.raises(TypeError, match="no data type of drupe.array. There are bool, int8 to int64"):
            da.DType(wrong)


@every_type
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_out(device, dtype):
    a = some(dtype)
    x = da.asarray(a, device=device)
    assert x.dtype == dtype and x.tolist() == a.tolist()
    assert [type(n) for n in x.tolist()] == [type(n) for n in a.tolist()]
    close(x, a)
    close(x[::-2].copy(), a[::-2])
    for i, number in enumerate(a.tolist()):
        one = x[i]
        assert one.item() == number and type(one.item()) is type(number)
        assert bool(one) is bool(number) and complex(one) == complex(number)
        if dtype in COMPLEX:
            for wrong in (float, int, operator.index):
                with pytest.raises(TypeError):
                    wrong(one)
            continue
        assert float(one) == float(number) and int(one) == int(number)
        if dtype in INTEGERS:
            assert operator.index(one) == number
        else:
            with pytest.raises(TypeError, match="only an integer array"):
                operator.index(one)
    assert str(x) == np.array2string(a, separator=", ") and f"dtype={dtype}" in repr(x)


@pytest.mark.parametrize("numbers, dtype", [
    (2**63, "uint64"), ([2**63, 2**64 - 1], "uint64"), ([2**63, 1, True], "uint64"), ([2**63, 1.5], "float64"),
    ([-2**63, 1], "int64"), (1j, "complex128"), ([1, 2j], "complex128"), ([True, 2.5, 1j], "complex128"),
    ([[1j], [2**63]], "complex128"), ([np.complex64(1j)], "complex128"), ([np.uint8(3), np.int8(-3)], "int64"),
    ([np.float16(1.5), 2], "float64"), ([np.uint64(2**63)], "uint64"), ([[], []], "float64")])
def test_the_type_of_numbers(device, numbers, dtype):
    x = da.asarray(numbers, device=device)
    assert x.dtype == dtype
    assert x.tolist() == np.asarray(numbers, dtype).tolist()


@pytest.mark.parametrize("wrong, error, words", [
    (2**64, OverflowError, "neither into int64 nor into uint64"), ([-2**63 - 1], OverflowError, "neither"),
    ([2**63, -1], OverflowError, 'together: pass dtype="float64"'), (b"ab", TypeError, r"text.*bytearray\(x\)"),
    ([b"ab"], TypeError, "text"), (np.ones(2, "g"), TypeError, 'longdouble .*astype."float64"'),
    (np.ones(2, "G"), TypeError, 'clongdouble .*astype."complex128"'), (np.ones(2, ">u2"), TypeError, "byte order"),
    (np.ones(2, ">c8"), TypeError, "byte order"), ([np.clongdouble(1)], TypeError, "clongdouble")])
def test_what_has_no_type(host, wrong, error, words):
    with pytest.raises(error, match=words):
        da.asarray(wrong, device=host)


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_in(host, dtype):
    """A type that is asked for takes the numbers that it has, by NumPy's rules."""
    numbers = [False, True, 2, 100, 0.0, 1.75, 65519.0, 65520.0, 1e-8, 1 + 2j, 0j, np.float16(2.5), np.uint8(7)]
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        numbers += [info.min, info.max, info.min - 1, info.max + 1, -1]
    for number in numbers:
        try:
            with np.errstate(all="ignore"):
                expected = np.asarray([number], dtype)
        except (OverflowError, TypeError) as error:
            with pytest.raises(OverflowError if isinstance(error, OverflowError) else TypeError):
                da.asarray([number], dtype=dtype, device=host)
        else:
            if isinstance(number, float) and dtype in INTEGERS and not info.min <= number <= info.max:
                with pytest.raises(ValueError, match="does not fit"):
                    da.asarray([number], dtype=dtype, device=host)
            else:
                close(da.asarray([number], dtype=dtype, device=host), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_that_are_no_integers_of_a_type(host, dtype):
    info = np.iinfo(dtype)
    for wrong in (np.nan, np.inf, -np.inf, 2.0 * float(info.max), float(info.min) * 2 - 2):
        for make in (lambda: da.asarray([wrong], dtype=dtype, device=host),
                     lambda: da.full(2, wrong, dtype=dtype, device=host)):
            with pytest.raises(ValueError):
                make()
    assert da.asarray([info.min + 0.0, -0.75], dtype=dtype, device=host).tolist() == [info.min, 0]


@pytest.mark.parametrize("code, dtype", [("b", "int8"), ("B", "uint8"), ("h", "int16"), ("H", "uint16"),
                                         ("i", "int32"), ("I", "uint32"), ("l", "int64"), ("L", "uint64"),
                                         ("q", "int64"), ("Q", "uint64"), ("f", "float32"), ("d", "float64")])
def test_buffers_of_other_libraries(device, code, dtype):
    numbers = stdarray.array(code, [0, 1, 100])
    for given in (numbers, memoryview(numbers)):
        x = da.asarray(given, device=device)
        assert x.dtype == np.asarray(numbers).dtype and x.tolist() == [0, 1, 100]
    if numbers.itemsize == np.dtype(dtype).itemsize:
        assert x.dtype == dtype
    assert da.asarray(bytearray(b"ab"), device=device).tolist() == [97, 98]


# --- Casts ------------------------------------------------------------------------------------------------------

def castable(source, target):
    """Numbers that a cast does not spoil, though it may round them."""
    if source == "bool":
        return np.array([True, False, True])
    low = -100 if "u" not in source[0] + target[0] and "bool" not in (source, target) else 0
    a = np.array([low, 0, 1, 2, 99, 127, 3])
    if source in FLOATS + COMPLEX:
        a = a + np.array([0, 0.75, 0.25, 0.5, 0.125, 0, 0.0625])
    return a.astype(source)


@every_type
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_casts(device, source, target):
    a = castable(source, target)
    x = da.asarray(a, device=device)
    if source in COMPLEX and target not in COMPLEX + ("bool",):
        y = da.zeros(a.shape, dtype=target, device=device)
        for wrong in (lambda: x.astype(target), lambda: operator.setitem(y, ..., x),
                      lambda: da.asarray(a, dtype=target, device=device), lambda: operator.setitem(y, 0, 1j)):
            with pytest.raises(TypeError, match=r"complex numbers do not fit into .*drupe\.array\.real\(x\)"):
                wrong()
        return
    close(x.astype(target), a.astype(target))
    close(x[::-2].astype(target), a[::-2].astype(target))
    y, expected = da.zeros(a.shape, dtype=target, device=device), a.astype(target)
    y[:] = x
    close(y, expected)
    close(da.asarray(a, dtype=target, device=device), expected)
    y[::2] = a[0].item()
    expected[::2] = a[0].item()
    close(y, expected)


@pytest.mark.parametrize("pair", [("int64", "int8"), ("int64", "uint8"), ("uint64", "int32"), ("int32", "uint64"),
                                  ("uint64", "float32"), ("uint64", "float64"), ("int64", "float32"),
                                  ("int16", "uint16"), ("uint32", "int32"), ("float64", "uint64")], ids="-".join)
def test_casts_at_the_limits(device, pair):
    """Integers lose their upper bits; floats that an integer type holds are cut."""
    source, target = pair
    a = some(source) if source in INTEGERS else np.array([0.0, 2.0**63, 2.0**64 - 2048, 1.9, 2.0**53 + 2])
    close(da.asarray(a, device=device).astype(target), a.astype(target))


def test_halves_are_rounded_as_in_numpy(device):
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16)
    x = da.asarray(halves, device=device)
    np.testing.assert_array_equal(x.asnumpy().view(np.uint16), bits)  # NaN too
    close(x.astype("float32"), halves.astype("float32"))
    finite = np.sort(halves[np.isfinite(halves)].astype("float32"))
    between = (finite[1:] + finite[:-1]) / 2  # of which each is rounded to the even one
    for a in (between, np.nextafter(between, np.float32(np.inf)), np.nextafter(between, np.float32(-np.inf)),
              np.array([65504, 65519.996, 65520, 1e30, -np.inf, np.nan, 2.0**-24, 2.0**-25, -2.0**-26], "float32")):
        with np.errstate(all="ignore"):
            close(da.asarray(a, device=device).astype("float16"), a.astype("float16"))
    numbers = [0.1, -2.5e-7, 65519.99, 65520.0, -1e300, 1e-8, float("nan")]
    with np.errstate(all="ignore"):
        close(da.asarray(numbers, dtype="float16", device=device), np.array(numbers, "float16"))
        for number in numbers:
            close(da.full(3, number, dtype="float16", device=device), np.full(3, number, "float16"))


# --- Parts of complex numbers -----------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", COMPLEX)
def test_parts_are_views(device, dtype):
    a = some(dtype, 24).reshape(2, 3, 4)
    x = da.asarray(a, device=device)
    for y, b in ((x, a), (x[1:, ::-2], a[1:, ::-2]), (x.T, a.T), (da.broadcast_to(x, (2, 2, 3, 4)),
                                                              np.broadcast_to(a, (2, 2, 3, 4)))):
        assert y.real.dtype == b.real.dtype and y.real.shape == b.shape and y.real.usm_data is not None
        close(y.real, b.real)
        close(y.imag, b.imag)
        close(da.real(y), b.real)
        close(da.imag(y), b.imag)
        close(da.conj(y), b.conj())
        close(y.imag + y.real, b.imag + b.real)
    x.real[0] = 5
    x.imag = x.real
    x.real += 1
    expected = a.real.copy()
    expected[0] = 5
    close(x, (expected + 1 + 1j * expected).astype(dtype))
    assert x.imag.strides == tuple(2 * n for n in x.strides) and x[0, 0, 1].imag.item() == 5
    with pytest.raises(AttributeError, match="deleted"):
        del x.real
    with pytest.raises(TypeError, match="complex numbers do not fit"):
        x.real = x


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64"])
def test_parts_of_real_numbers(device, dtype):
    a = some(dtype)
    x = da.asarray(a, device=device)
    assert x.real is x
    close(x.imag, np.zeros_like(a))
    with pytest.raises(TypeError, match="no imaginary parts"):
        x.imag = 1
    if dtype != "bool":
        close(da.real(x), a)
        close(da.imag(x), a.imag)
        close(da.conj(x), a)


# --- Makers -----------------------------------------------------------------------------------------------------

@every_type
@pytest.mark.parametrize("dtype", TYPES)
def test_makers(device, dtype):
    close(da.zeros((2, 3), dtype=dtype, device=device), np.zeros((2, 3), dtype))
    close(da.ones(3, dtype=dtype, device=device), np.ones(3, dtype))
    close(da.ones(4, dtype=dtype, device=device)[::2], np.ones(2, dtype))
    close(da.eye(2, 3, dtype=dtype, device=device), np.eye(2, 3, dtype=dtype))
    number = some(dtype)[1].item()
    x = da.full((2, 2), number, dtype=dtype, device=device)
    close(x, np.full((2, 2), number, dtype))
    close(da.full_like(x, 1), np.ones((2, 2), dtype))
    x[:, 1] = number
    close(x, np.full((2, 2), number, dtype))
    if dtype not in ("bool", *COMPLEX):
        close(da.arange(5, dtype=dtype, device=device), np.arange(5, dtype=dtype))
        close(da.arange(100, 90, -3, dtype=dtype, device=device), np.arange(100, 90, -3, dtype=dtype))
        close(da.linspace(0, 10, 6, dtype=dtype, device=device), np.linspace(0, 10, 6, dtype=dtype), 1)


def test_numbers_that_full_takes(host):
    for number, dtype in ((True, "bool"), (3, "int64"), (2**63, "uint64"), (1.5, "float64"), (1j, "complex128"),
                          (np.complex64(2 + 1j), "complex128")):
        x = da.full(2, number, device=host)
        assert x.dtype == dtype and x.tolist() == [number] * 2
    for dtype, wrong in (("uint8", -1), ("uint8", 256), ("int8", 128), ("int64", 2**63), ("uint64", -1),
                         ("uint32", 2**32), ("int16", -2**15 - 1)):
        with pytest.raises(OverflowError):
            da.full(2, wrong, dtype=dtype, device=host)
        with pytest.raises(OverflowError):
            da.full_like(da.ones(2, dtype=dtype, device=host), wrong)
        with pytest.raises(OverflowError):
            da.ones(2, dtype=dtype, device=host)[0] = wrong
    for dtype in ("float64", "int8"):
        with pytest.raises(TypeError, match="complex"):
            da.full(2, 1j, dtype=dtype, device=host)


@pytest.mark.parametrize("args, dtype", [
    ((2**63, 2**63 + 3), None), ((2**64 - 1, 2**64 - 4, -1), None), ((0, 2**64 - 1, 2**62), None),
    ((250, 256), "uint8"),
    ((-128, 128, 51), "int8"), ((0, 2**64 - 1, 2**63), "uint64"), ((3, 0, -1), "uint16"), ((5, 5), "uint8")])
def test_ranges_of_unsigned_integers(device, args, dtype):
    expected = list(range(*args))
    x = da.arange(*args, dtype=dtype, device=device)
    assert x.dtype == (dtype or "uint64") and x.tolist() == expected


@pytest.mark.parametrize("args, dtype", [((0, 300), "uint8"), ((-1, 5), "uint64"), ((200,), "int8"),
                                         ((-1, 2**63 + 5, 2**62 + 1), None), ((5, -2, -1), "uint16")])
def test_ranges_that_do_not_fit(host, args, dtype):
    with pytest.raises(OverflowError, match="does not fit into u?int"):
        da.arange(*args, dtype=dtype, device=host)


@pytest.mark.parametrize("ends", [(0, 1j), (1 + 1j, 2), (-1j, 1j), (1 + 2j, 1 + 2j)])
@pytest.mark.parametrize("dtype", [None, *COMPLEX])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_of_complex_numbers(device, ends, dtype, endpoint):
    for num in (5, 1, 0):
        x = da.linspace(*ends, num, dtype=dtype, endpoint=endpoint, device=device)
        close(x, np.linspace(*ends, num, dtype=dtype, endpoint=endpoint), 4)
        assert not endpoint or num < 2 or x[-1].item() == ends[1]
    with pytest.raises(TypeError, match="complex dtype"):
        da.linspace(*ends, 3, dtype="float32", device=device)
    with pytest.raises(TypeError, match="real number"):
        da.arange(*ends, device=device)


# --- What types can do ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("a", TYPES)
def test_types_of_two(a, host):
    for b in TYPES:
        expected = np.result_type(a, b)
        assert da.result_type(a, b) == expected, (a, b)
        assert da.can_cast(getattr(da, a), getattr(da, b)) == (expected == b)
    for number in (True, 3, 2.5, 1j, np.float16(1), np.uint8(3), np.complex64(1)):
        weak = number if type(number) in (bool, int, float, complex) else number.item()
        assert da.result_type(a, number) == np.result_type(np.ones(2, a), weak), (a, number)
        assert da.result_type(da.ones(2, dtype=a, device=host), number) == np.result_type(np.ones(2, a), weak)


@pytest.mark.parametrize("name", TYPES)
def test_limits(name, host):
    dtype = getattr(da, name)
    if name in FLOATS + COMPLEX:
        ours, theirs = da.finfo(dtype), np.finfo(name)
        for key in ("bits", "max", "min", "eps", "smallest_normal"):
            assert getattr(ours, key) == getattr(theirs, key) and type(getattr(ours, key)) in (int, float), key
        assert ours.dtype == theirs.dtype and da.finfo(da.ones(1, dtype=name, device=host)).dtype == theirs.dtype
    elif name in INTEGERS:
        ours, theirs = da.iinfo(dtype), np.iinfo(name)
        assert (ours.bits, ours.min, ours.max, ours.dtype) == (theirs.bits, theirs.min, theirs.max, name)
    for function, takes in ((da.finfo, FLOATS + COMPLEX), (da.iinfo, INTEGERS)):
        if name not in takes:
            with pytest.raises(ValueError, match=name):
                function(dtype)


def test_kinds():
    kinds = {"bool": ("bool",), "signed integer": types.SIGNED, "unsigned integer": UNSIGNED, "integral": INTEGERS,
             "real floating": FLOATS, "complex floating": COMPLEX, "numeric": TYPES[1:]}
    info = da.__array_namespace_info__()
    for kind, names in kinds.items():
        assert {name for name in TYPES if da.isdtype(getattr(da, name), kind)} == set(names)
        assert set(info.dtypes(device="host", kind=kind)) == set(names) - {"float16"}  # which the standard lacks
    assert set(info.dtypes(device="host")) == set(TYPES) - {"float16"}
    assert set(info.dtypes(device="host", kind=("bool", "complex floating"))) == {"bool", *COMPLEX}


def test_what_a_device_has(device):
    info = da.__array_namespace_info__()
    wide = device.has_aspect_fp64
    assert ("float64" in info.dtypes(device=device)) == ("complex128" in info.dtypes(device=device)) == wide
    assert info.default_dtypes(device=device) == {
        "real floating": da.float64 if wide else da.float32,
        "complex floating": da.complex128 if wide else da.complex64, "integral": da.int64, "indexing": da.int64}


@pytest.mark.parametrize("dtype", TYPES)
def test_fills_of_memory(host, dtype):
    number = some(dtype)[1].item()
    x = da.zeros(5, dtype=dtype, device=host)
    host.queue.fill(x, number, dtype=dtype).wait()
    close(x, np.full(5, number, dtype))
