"""JSON text of messages: encoding never fails a reply, and what it yields is valid JSON in valid UTF-8.

The C encoder does the usual case; what it refuses (odd keys, NaN, cycles) goes through `clean` first.
"""
import base64
import datetime
import json
import numbers

_MAX_DEPTH = 100
_class_name = type.__dict__["__name__"].__get__  # a metaclass may have another, which fails


def default(value):
    """A JSON value for an object that JSON does not know."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    return _text(value)


def _text(value):
    """str(), whatever the value does."""
    try:
        return str(value)
    except BaseException as error:
        return "<%s: %s in __str__>" % (_class_name(type(value)), _class_name(type(error)))


def error_content(error, traceback):
    """What messages say of an exception."""
    return {"ename": _class_name(type(error)), "evalue": _text(error), "traceback": traceback}


def error_line(error):
    """The exception in one line."""
    return "%s: %s" % (_class_name(type(error)), _text(error))


def clean(value, above=()):
    """A copy of `value` in which JSON has nothing to refuse; not-a-number and infinities become text, and so does what
    cannot be copied. `above`: the ids of the containers that hold it, so that one inside itself is cut off."""
    try:
        return _copy(value, above)
    except Exception as error:
        return "<%s: %s>" % (_class_name(type(value)), error_line(error))


def _copy(value, above):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if number - number == 0 else repr(number)
    if len(above) >= _MAX_DEPTH or id(value) in above:
        return "..."
    above = (*above, id(value))
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _text(key): clean(item, above) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(item, above) for item in value]
    return clean(default(value), above)


def _encoder():
    """value -> text. The C encoder as json.JSONEncoder calls it, but made once: what encode() does around it costs more
    than a short message. It looks for no cycles; they end as RecursionError."""
    options = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":"), "default": default}
    make = json.encoder.c_make_encoder
    if make is None:
        return json.JSONEncoder(**options).encode
    encode = make(None, default, json.encoder.encode_basestring, None, ":", ",", False, False, False)
    return lambda value: "".join(encode(value, 0))


_encode = _encoder()
_scan = json.JSONDecoder().scan_once  # (text, start) -> (value, end); the server has seen that brackets pair


def dumps(value):
    """JSON as UTF-8 bytes."""
    try:
        text = _encode(value)
    except Exception:  # any: a value's own methods are called
        text = _encode(clean(value))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return well_formed(text).encode("utf-8")


def loads(data):
    """What a client sent; an object, whatever it was."""
    if not data or data == b"{}":
        return {}
    text = str(data, "utf-8", "surrogatepass")
    try:
        value, _ = _scan(text, 0) if text[0] == "{" else (json.loads(text), 0)
    except StopIteration:
        value = json.loads(text)  # says what is wrong
    return value if isinstance(value, dict) else {}


def well_formed(text):
    """`text` with every lone surrogate replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
