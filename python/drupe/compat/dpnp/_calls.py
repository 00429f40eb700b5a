"""How functions of drupe.array are called as NumPy's and dpnp's are: names and places of arguments, devices, queues."""
import functools
import inspect

import numpy

from drupe import _engine
from drupe.compat import NotProvided

_PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def behind(given):
    """Drupe's queue, device or array for one of dpctl's."""
    return getattr(given, "_drupe", given)


def check_limitations(subok=False, like=None, initial=None, where=True):
    """NotImplementedError for arguments of NumPy that dpnp does not take either."""
    for name, value, usual in (("subok", subok, False), ("like", like, None), ("initial", initial, None),
                               ("where", where, True)):
        if value is not usual:
            raise NotProvided("%s= is taken with %r only: leave it out" % (name, usual))


def placed(function):
    """A function that makes arrays, with sycl_queue=, device= of dpctl's objects, like= and subok=."""
    @functools.wraps(function)
    def made(*args, device=None, sycl_queue=None, like=None, subok=False, **options):
        check_limitations(subok=subok, like=like)
        args = [behind(one) for one in args]
        queue, device = behind(sycl_queue), behind(device)
        if isinstance(device, _engine.Queue):  # dpnp takes a queue for a device
            queue, device = device, None
        if queue is not None:
            options["queue"] = queue
        if device is not None:
            options["device"] = device
        return function(*args, **options)

    return made


def as_numpys(ours, numpys):
    """A function of ours that takes arguments in the places, and by the names, that NumPy's has. What ours does not
    take is refused, unless it is what NumPy takes by default."""
    if any(not callable(one) or isinstance(one, (type, numpy.ufunc)) for one in (ours, numpys)):
        return ours
    mine, theirs = _signature(ours), _signature(numpys)
    if mine is None or theirs is None or _kinds(mine, inspect.Parameter.VAR_POSITIONAL):
        return ours
    places, names = _kinds(mine, *_PLACES), _kinds(theirs, *_PLACES)
    if places == names[:len(places)] and len(places) == len(names) and not _kinds(mine, _PLACES[0]):
        return ours
    return _adapted(ours, mine, theirs, places, names)


def _signature(function):
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _kinds(signature, *kinds):
    return [one.name for one in signature.parameters.values() if one.kind in kinds]


def _adapted(ours, mine, theirs, places, names):
    most, renamed = len(places), dict(zip(names, places))
    fixed = set(_kinds(mine, inspect.Parameter.POSITIONAL_ONLY))
    other = {name for name in theirs.parameters if name not in mine.parameters or name in renamed and
             (renamed[name] != name or name in fixed)}

    @functools.wraps(ours)
    def called(*args, **options):
        if len(args) <= most and other.isdisjoint(options):
            return ours(*args, **options)
        given = dict(zip(names, args), **{name: options.pop(name) for name in list(options) if name in other})
        args, behind_them = [], False
        for at, name in enumerate(names):
            if name not in given:
                behind_them = behind_them or at < most
                continue
            value = given.pop(name)
            if at < most and not behind_them:
                args.append(value)
            elif at < most and places[at] not in fixed:
                options[places[at]] = value
            elif at >= most and name in mine.parameters:
                options[name] = value
            elif not _is_usual(theirs.parameters[name], value):
                raise NotProvided("%s() takes no %s= here: leave it out" % (ours.__name__, name))
        for name, value in given.items():
            if not _is_usual(theirs.parameters[name], value):
                raise NotProvided("%s() takes no %s= here: leave it out" % (ours.__name__, name))
        return ours(*args, **options)

    return called


def _is_usual(parameter, value):
    usual = parameter.default
    return value is usual or isinstance(usual, (bool, int, str)) and type(usual) is type(value) and usual == value or \
        isinstance(value, type(numpy._NoValue)) or value is None and parameter.name in ("out", "initial")
