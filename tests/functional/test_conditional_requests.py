"""`ETag` and `If-None-Match`: a caller that polls an unchanged queue gets 304, and each change another answer."""

from __future__ import annotations

import pytest

from api_world import CONTEXT, ApiWorld, read, rest_event
from builders import NOW, P5, a_job, a_running_job, at
from trainmaster.domain.capacity.units import Pool
from trainmaster.ports.store import Changes

ROUTES = ("/jobs", "/queue", "/pools", "/schedule", "/shares")


def ask(world, path, tag=None, **query):
    event = rest_event("GET", path, query=query)
    event["headers"] |= {} if tag is None else {"if-none-match": tag}
    return read(world.app.resolve(event, CONTEXT))


def tag_of(reply):
    return {name.lower(): value for name, value in reply.headers.items()}.get("etag")


@pytest.fixture
def world():
    world = ApiWorld(pools={P5: Pool(P5, 2)})
    world.seed(a_running_job("runs"), a_job("waits", units={P5: 2}))
    return world


@pytest.mark.parametrize("path", ROUTES)
def test_an_unchanged_queue_is_told_without_being_read(world, path):
    tag = tag_of(ask(world, path))
    world.store.calls.clear()
    reply = ask(world, path, tag)
    assert (reply.status, tag_of(reply)) == (304, tag)
    assert world.store.calls == {"changes": 1}
    assert ask(world, path, f'"other", {tag}').status == 304
    assert ask(world, path, '"other"').status == 200


CHANGES = {
    "a submission": lambda world: world.submit("new"),
    "a hold": lambda world: world.patch("/jobs/waits", {"hold": True}),
    "a priority": lambda world: world.patch("/jobs/waits", {"priority": 5}),
    "a cancellation": lambda world: world.delete("/jobs/waits"),
    "a stop": lambda world: world.delete("/jobs/runs"),
    "settings": lambda world: world.put("/settings", {"order": "fair"}),
    "a pool": lambda world: world.patch(f"/pools/{P5}", {"cap": 1}),
    "a start": lambda world: world.seed(a_running_job("other")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_each_change_that_pages_show_is_told(world, change):
    tags = {path: tag_of(ask(world, path)) for path in ROUTES}
    change(world)
    for path, tag in tags.items():
        assert ask(world, path, tag).status == 200


def test_an_answer_within_seconds_of_a_change_has_no_tag(world):
    world.submit("new")
    assert tag_of(ask(world, "/queue")) is None
    world.clock.sleep(5)
    tag = tag_of(ask(world, "/queue"))
    assert ask(world, "/queue", tag).status == 304


def test_callers_that_may_not_read_are_refused_before():
    world = ApiWorld(settings=dict.fromkeys(("viewers", "admins"), ("arn:aws:iam::111122223333:role/ann",)))
    assert ask(world, "/queue", "*").status == 403


def test_a_change_is_settled_once_every_read_has_it():
    changed = Changes("x", NOW)
    assert [changed.settled(at(seconds)) for seconds in (-9, -1, 0, 4, 5, 60)] == [True, *[False] * 3, True, True]
    assert Changes("x", None).settled(NOW)
