"""The JSON of messages, without a kernel: all that Python holds becomes valid JSON; what clients send is read alike."""
import json

import pytest

from drupe.jupyter import jsontext


class Odd:
    def __str__(self):
        raise ValueError


def strict(text):
    def refuse(name):
        raise AssertionError(name)

    return json.loads(text.decode("utf-8"), parse_constant=refuse)


@pytest.mark.parametrize("value", [
    {"a": [1, 2.5, None, True, "\u00e9\U0001f600"]}, {"b": {}}, "text", 3, None, [], {"long": 10**30},
])
def test_json_values_come_back(value):
    assert strict(jsontext.dumps(value)) == value


def test_what_json_refuses_becomes_text():
    value = {"nan": float("nan"), 1: "key", (1, 2): b"x", "odd": Odd(), "set": {1}, "\ud800": "\ud800"}
    found = strict(jsontext.dumps(value))
    assert found["nan"] == "nan" and found["1"] == "key" and found["(1, 2)"] == "eA==" and found["set"] == [1]
    assert found["odd"] == "<Odd: ValueError in __str__>" and found["\ufffd"] == "\ufffd"


def test_cycles_and_depths_end():
    inner = {}
    inner["inner"] = [inner]
    assert "..." in str(strict(jsontext.dumps(inner)))
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert strict(jsontext.dumps({"deep": deep}))
    shared = [1]
    assert strict(jsontext.dumps([shared, shared])) == [[1], [1]]


@pytest.mark.parametrize("text", ['{"a":1}', '  {"a": {"b": [null, true]}} ', "{}", '{"s":"\\ud83d\\ude00 \\ud800"}',
                                  "\n{ }"])
def test_objects_are_read_as_json_reads_them(text):
    assert jsontext.loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", ["", "[1]", '"x"', "3", "null"])
def test_anything_else_is_an_empty_object(text):
    assert jsontext.loads(text.encode()) == {}


@pytest.mark.parametrize("data", [b'{"a":', b'{"a" 1}', b"{'a': 1}", b'{"a":"\xff"}'])
def test_broken_text_is_a_value_error(data):
    with pytest.raises(ValueError):
        jsontext.loads(data)
