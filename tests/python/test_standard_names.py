"""Names of the array API 2025.12 have the standard's signatures; every name has a text with an example that holds."""
import builtins
import doctest
import importlib.util
import inspect
import pathlib
import re
import warnings

import pytest

import drupe
import drupe.array as da

ROOT = pathlib.Path(__file__).parents[2]

# As the standard writes them: names before a bracket share what is in it. What is indented belongs to the line before.
STANDARD = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty ones zeros(shape, *, dtype=None, device=None)
empty_like ones_like zeros_like(x, /, *, dtype=None, device=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing="xy")
tril triu(x, /, *, k=0)
from_dlpack(x, /, *, device=None, copy=None)
astype(x, dtype, /, *, copy=True, device=None)
can_cast(from_, to, /)
finfo iinfo(type, /)
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan
  log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan
  tanh trunc(x, /)
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
  floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
  minimum multiply nextafter not_equal pow remainder subtract(x1, x2, /)
clip(x, /, min=None, max=None)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
matmul(x1, x2, /)
matrix_transpose(x, /)
tensordot(x1, x2, /, *, axes=2)
vecdot(x1, x2, /, *, axis=-1)
broadcast_arrays(*arrays)
broadcast_shapes(*shapes)
broadcast_to(x, /, shape)
concat stack(arrays, /, *, axis=0)
expand_dims(x, /, axis)
flip(x, /, *, axis=None)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None)
squeeze(x, /, axis)
tile(x, repetitions, /)
unstack(x, /, *, axis=0)
argmax argmin count_nonzero(x, /, *, axis=None, keepdims=False)
nonzero(x, /)
searchsorted(x1, x2, /, *, side="left", sorter=None)
where(condition, x1, x2, /)
isin(x1, x2, /, *, invert=False)
unique_all unique_counts unique_inverse unique_values(x, /)
sort argsort(x, /, *, axis=-1, descending=False, stable=True)
cumulative_sum cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
max min mean all any(x, /, *, axis=None, keepdims=False)
prod sum(x, /, *, axis=None, dtype=None, keepdims=False)
std var(x, /, *, axis=None, correction=0.0, keepdims=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft(x, /, *, n=None, axis=-1, norm="backward")
fft.fftn fft.ifftn fft.rfftn fft.irfftn(x, /, *, s=None, axes=None, norm="backward")
fft.fftfreq fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.fftshift fft.ifftshift(x, /, *, axes=None)
linalg.cholesky(x, /, *, upper=False)
linalg.cross(x1, x2, /, *, axis=-1)
linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.slogdet linalg.svdvals
  linalg.matrix_transpose(x, /)
linalg.diagonal(x, /, *, offset=0)
linalg.matmul linalg.outer linalg.solve(x1, x2, /)
linalg.matrix_norm(x, /, *, keepdims=False, ord="fro")
linalg.matrix_power(x, n, /)
linalg.matrix_rank linalg.pinv(x, /, *, rtol=None)
linalg.qr(x, /, *, mode="reduced")
linalg.svd(x, /, *, full_matrices=True)
linalg.tensordot(x1, x2, /, *, axes=2)
linalg.trace(x, /, *, offset=0, dtype=None)
linalg.vecdot(x1, x2, /, *, axis=-1)
linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
Array.to_device(device, /, *, stream=None)
Array.__array_namespace__(*, api_version=None)
Array.__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
Array.__dlpack_device__()
__array_namespace_info__()
"""
ATTRIBUTES = "dtype device mT ndim shape size T"
OPERATORS = """
__getitem__ __setitem__ __bool__ __complex__ __float__ __index__ __int__ __abs__ __invert__ __neg__ __pos__ __add__
__and__ __eq__ __floordiv__ __ge__ __gt__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __or__ __pow__
__rshift__ __sub__ __truediv__ __xor__ __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__
__ror__ __rpow__ __rrshift__ __rsub__ __rtruediv__ __rxor__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imod__
__imul__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__
"""
CONSTANTS = "e inf nan newaxis pi"
INFO = {"capabilities": "()", "default_device": "()", "default_dtypes": "(*, device=None)", "devices": "()",
        "dtypes": "(*, device=None, kind=None)"}


def standard():
    for line in STANDARD.replace("\n  ", " ").strip().split("\n"):
        names, _, parameters = line.partition("(")
        for name in names.split():
            yield name, inspect.signature(eval(f"lambda {parameters[:-1]}: None"))


def found(name):
    """The object of a dotted name in drupe.array."""
    thing = da
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def check(ours, theirs, name):
    """The standard's calls are possible, and parameters that the standard does not know go by name."""
    parameters = [p for p in ours.parameters.values() if p.name != "self"]
    by_place = [p for p in theirs.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    for wanted, got in zip(by_place, parameters):
        if wanted.kind is wanted.POSITIONAL_ONLY:
            assert got.kind in (got.POSITIONAL_ONLY, got.POSITIONAL_OR_KEYWORD), (name, got)
        else:
            assert (got.name, got.kind) == (wanted.name, wanted.kind), name
        assert wanted.default is wanted.empty or got.default == wanted.default, (name, got)
    assert len(by_place) <= len(parameters), name
    named = {p.name: p for p in parameters}
    for wanted in theirs.parameters.values():
        if wanted.kind is wanted.KEYWORD_ONLY:
            got = named[wanted.name]
            assert got.kind in (got.KEYWORD_ONLY, got.POSITIONAL_OR_KEYWORD), (name, got)
            assert got.default == wanted.default, (name, got)
    for extra in parameters[len(by_place):]:
        assert extra.default is not extra.empty or extra.kind in (extra.VAR_KEYWORD, extra.VAR_POSITIONAL), name


@pytest.mark.parametrize("name, theirs", standard(), ids=[name for name, _ in standard()])
def test_signatures(name, theirs):
    check(inspect.signature(found(name)), theirs, name)


def test_attributes_and_operators():
    x = da.ones((2, 2))
    for name in ATTRIBUTES.split():
        assert getattr(x, name) is not None
    for name in OPERATORS.split():
        assert hasattr(da.Array, name), name
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2025.12") is da
    for name in CONSTANTS.split():
        assert name in da.__all__ and (getattr(da, name) is None) == (name == "newaxis")
    assert da.__array_api_version__ == "2025.12"
    info = da.__array_namespace_info__()
    for name, text in INFO.items():
        assert str(inspect.signature(getattr(info, name))) == text


def test_names_to_use_instead():
    """What is refused with advice is not there, and second names are."""
    from drupe.array import _refused

    assert not {name for name in _refused.INSTEAD if hasattr(da, name)}
    for name, other in _refused.ALIASES.items():
        assert getattr(da, name) is getattr(da, other)
    with pytest.raises(AttributeError, match="select"):
        getattr(da, "piecewise")


def test_a_version_that_is_not_there():
    with pytest.raises(ValueError, match="2025.12"):
        da.ones(2).__array_namespace__(api_version="2999.12")


MODULES = {"": da, "linalg.": da.linalg, "fft.": da.fft, "random.": da.random}
CLASSES = {"Array.": da.Array, "DType.": da.DType, "random.Generator.": da.random.Generator,
           "random.SeedSequence.": da.random.SeedSequence,
           "__array_namespace_info__().": type(da.__array_namespace_info__())}


def explained():
    """All that has a text of its own, by name: functions, classes and modules, and public members of classes; what has
    several names once. Numbers and data types have none: DType has that of the types."""
    seen = {}
    for prefix, module in MODULES.items():
        for name in module.__all__:
            thing = getattr(module, name)
            if not (isinstance(thing, (float, da.DType)) or thing is None):
                seen.setdefault(id(thing), (prefix + name, thing))
    for prefix, kind in CLASSES.items():
        for name in dir(kind):
            thing = inspect.getattr_static(kind, name)
            if not name.startswith("_"):
                seen.setdefault(id(thing), (prefix + name, thing))
    return sorted(seen.values(), key=lambda pair: pair[0])


def test_what_is_explained():
    """The names that the next test has are those of methods, attributes and classes, too."""
    names = {name for name, _ in explained()}
    assert {"Array", "Array.sum", "Array.shape", "Array.ndim", "Array.mT", "Array.sycl_queue", "DType.kind", "finfo",
            "sin", "concat", "linalg", "linalg.LinAlgError", "linalg.eig", "fft.fft", "random.Generator.device",
            "random.SeedSequence.spawn", "__array_namespace_info__().dtypes"} <= names


@pytest.mark.parametrize("name, thing", explained(), ids=[name for name, _ in explained()])
def test_texts_have_examples_that_hold(name, thing):
    text = inspect.cleandoc(thing.__doc__ or "")
    assert ">>> " in text, f"{name} has no example"
    names = {name: getattr(da, name) for name in da.__all__ if name not in vars(builtins)}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    told = []
    with warnings.catch_warnings():
        runner.run(parser.get_doctest(text, {**names, "da": da, "drupe": drupe}, name, None, 0), out=told.append)
    assert not runner.failures, "".join(told)


def test_the_document_lists_every_name():
    """docs/arrays.md has a row for each public name, made of its text."""
    spec = importlib.util.spec_from_file_location("array_names", ROOT / "tools/array_names.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run tools/array_names.py"
    listed = set(re.findall(r"`(\w+)`", tool.table()))
    assert not {name for name in da.__all__ if not isinstance(getattr(da, name), da.DType)
                and not inspect.ismodule(getattr(da, name))} - listed
