"""Whatever is sent, the API answers it or refuses it in the one shape; it never fails."""

from __future__ import annotations

import base64
import copy
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from api_world import ApiWorld
from builders import a_job, a_request, a_running_job
from samples import examples

WITH_BODY = st.sampled_from(
    [("POST", "/add-job"), ("POST", "/plan"), ("PATCH", "/jobs/job1"), ("PATCH", "/jobs/job2"), ("PUT", "/pools")]
)
WORDS = st.sampled_from(
    ["priority", "hold", "pools", "version", "cap", "instanceType", "countExternal", "ml.p5.48xlarge", "job1", "Key"]
)
# Half surrogates too: JSON can escape them, and nothing else can hold them.
TEXTS = st.text(st.characters(exclude_categories=())) | WORDS
NUMBERS = st.integers() | st.integers(10**300, 10**301) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
REQUEST = a_request("new", priority=3, options={"preemptible": "true"}, Environment={"A": "b"})
NAMES = st.text(st.characters(exclude_characters="/"), min_size=1)


def places(value, path=()):
    """Every place in a JSON value, as the keys that lead there."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


@st.composite
def broken_requests(draw):
    """A good request with one to three of its places holding something else."""
    request = copy.deepcopy(REQUEST)
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(list(places(request))[1:]))
        holder = request
        for key in path:
            holder = holder[key]
        holder[last] = draw(VALUES)
    return request


def a_world():
    world = ApiWorld()
    world.seed(a_job("job1"), a_running_job("job2"))
    return world


def answered(reply):
    """The answer is a success, or a refusal in the one shape that says what is wrong."""
    if 200 <= reply.status < 300:
        assert "error" not in reply.body
    else:
        assert 400 <= reply.status < 500, reply.body
        assert reply.error["type"]
        assert reply.error["message"]
    return reply


@given(WITH_BODY, VALUES)
@settings(deadline=None)
def test_any_json_is_answered(route, body):
    answered(a_world().event(*route, json.dumps(body)))


@given(broken_requests(), st.sampled_from(["/add-job", "/plan"]))
@examples(300, deadline=None)
def test_any_request_like_a_good_one_is_answered_and_stored_only_when_accepted(request_, path):
    world = a_world()
    reply = answered(world.post(path, request_))
    stored = {job["jobName"] for job in world.get("/jobs").body["jobs"]} - {"job1", "job2"}
    assert bool(stored) == (path == "/add-job" and reply.status == 202)


@given(WITH_BODY, st.text() | st.binary().map(lambda raw: base64.b64encode(raw).decode()), st.booleans())
@settings(deadline=None)
def test_any_text_is_answered(route, body, encoded):
    answered(a_world().event(*route, body, isBase64Encoded=encoded))


@given(st.sampled_from(["GET", "DELETE", "PATCH", "POST", "BREW"]), NAMES)
@settings(deadline=None)
def test_any_name_is_answered(method, name):
    reply = answered(a_world().event(method, f"/jobs/{name}", {"priority": 1}))
    assert reply.status in (200, 202, 400, 404, 405)


@given(
    st.sampled_from(["/jobs", "/queue", "/pools", "/jobs/job1"]),
    st.dictionaries(
        st.sampled_from(["state", "share", "pool", "limit", "cursor"]) | st.text(min_size=1),
        st.text() | st.lists(st.text(), min_size=1, max_size=3) | st.integers(0, 99).map(str),
        max_size=3,
    ),
)
@settings(deadline=None)
def test_any_query_is_answered(path, query):
    assert answered(a_world().get(path, **query)).status in (200, 400)
