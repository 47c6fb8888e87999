"""Bodies are read so that they have one meaning, and never repeated."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.domain.errors import InvalidRequest
from trainmaster.handlers.api.body import DEEPEST, as_json, parse_body
from trainmaster.handlers.api.paths import path_of

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(st.dictionaries(st.text(), VALUES))
@settings(deadline=None)
def test_an_object_is_read_as_it_was_written(value):
    assert parse_body(json.dumps(value)) == value


@given(st.text() | VALUES.map(json.dumps))
@settings(deadline=None)
def test_any_text_is_an_object_or_refused(text):
    with suppress(InvalidRequest):
        assert isinstance(parse_body(text), dict)


def nested(levels):
    return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)


def test_nesting_is_read_up_to_a_limit():
    assert parse_body(nested(DEEPEST))
    with pytest.raises(InvalidRequest, match="too deeply"):
        parse_body(nested(DEEPEST + 1))


@pytest.mark.parametrize("text", ['{"token": "hunter2"', '{"a": hunter2}', '"hunter2"', '["hunter2"]', "hunter2"])
def test_a_refusal_does_not_repeat_the_body(text):
    with pytest.raises(InvalidRequest) as refusal:
        parse_body(text)
    assert "hunter2" not in refusal.value.message + (refusal.value.hint or "")


def test_where_the_text_went_wrong_is_told():
    with pytest.raises(InvalidRequest, match=r"line 2, column 7"):
        parse_body('{"a": 1,\n "b": x}')


def test_a_key_that_is_there_twice_is_named():
    with pytest.raises(InvalidRequest, match="'priority' appears twice"):
        parse_body('{"a": {"priority": 1, "x": 2, "priority": 3}}')


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"a": NaN}', "a"),
        ('{"a": {"b": [1, 2.5, -Infinity]}}', "a.b[2]"),
        ('{"shares": {"v": {"weight": 1e999}}}', "shares.v.weight"),
        ('{"shares": {"v": {"nominal": {"ml.p5.48xlarge": -1e999}}}}', "shares.v.nominal.ml.p5.48xlarge"),
    ],
)
def test_invalid_numbers_are_named_by_their_path(text, field):
    with pytest.raises(InvalidRequest) as refusal:
        parse_body(text)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("given_", "read"),
    [
        ("application/json", "application/json"),
        ("Application/JSON ; charset=UTF-8", "application/json"),
        ("application/json-patch+json", "application/octet-stream"),
        ("application/x-www-form-urlencoded", "application/octet-stream"),
        ("", ""),
    ],
)
def test_a_media_type_is_json_or_something_else(given_, read):
    assert as_json({"headers": {"CONTENT-TYPE": given_}})["headers"] == {"CONTENT-TYPE": read}


def test_other_headers_and_members_stay():
    event = {"headers": {"Host": "h"}, "body": "b", "isBase64Encoded": False, "path": "/"}
    assert as_json(event) == event


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ((), None),
        (("cap",), "cap"),
        (("pools", 0, "cap"), "pools[0].cap"),
        (("pools", "a b"), "pools['a b']"),
        (("a.b",), "['a.b']"),
        (("shares", "a-b", "lends", "ml.p5.48xlarge"), "shares.a-b.lends.ml.p5.48xlarge"),
        (("é",), "['\\xe9']"),
        (("x" * 64,), "x" * 64),
        (("x" * 65,), f"['{'x' * 57}...']"),
    ],
)
def test_a_place_in_a_body_is_written_as_a_path(where, path):
    assert path_of(where) == path
