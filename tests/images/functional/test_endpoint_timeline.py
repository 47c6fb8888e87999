"""The lane of an endpoint on the timeline: image jobs that follow one another never take more than it has."""

from __future__ import annotations

from datetime import datetime

from builders import NOW, P5, a_pool, at, pools_of
from image_api_world import ImageApiWorld
from image_builders import a_report, a_running_image, a_started_image, an_endpoint, must
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Status
from trainmaster.images.domain.endpoint import pool_name

SHIPS = pool_name("ships", "blue")


def lane(*jobs):
    world = ImageApiWorld(pools=pools_of(a_pool(P5, 2)))
    world.memory.remember(an_endpoint(takes=8), None)
    world.seed(*jobs)
    pools = world.get("/schedule").body["pools"]
    intervals = next(pool["intervals"] for pool in pools if pool["name"] == SHIPS)
    return [(each["kind"], each["units"], times(each["from"]), times(each["until"])) for each in intervals]


def times(text):
    return datetime.fromisoformat(text)


def test_a_job_that_starts_on_what_another_gave_back_does_not_overfill_the_lane():
    first = a_running_image("first", 8, now=at(-600))
    first = must(lifecycle.observe(first, a_report(first, done=1, left=4), at(-400)))
    first = must(lifecycle.observe(first, a_report(first, done=2, left=0, status=Status.COMPLETED), at(-200)))
    second = a_running_image("second", 4, now=at(-300))
    found = lane(first, second)
    assert [each[:3] for each in found] == [
        ("past", 8, at(-600)),
        ("past", 4, at(-400)),
        ("running", 4, at(-300)),
    ]
    for moment in (-600, -400, -300, -201, 0):
        assert sum(units for _, units, since, until in found if since <= at(moment) < until) <= 8


def test_the_earlier_sizes_of_a_running_job_are_its_past():
    job = a_running_image("first", 8, now=at(-600))
    job = must(lifecycle.observe(job, a_report(job, done=1, left=4), at(-400)))
    (past, running) = lane(job)
    assert past == ("past", 8, at(-600), at(-400))
    assert running[:3] == ("running", 4, at(-400))
    assert running[3] > NOW


def test_a_job_that_only_starts_has_no_past():
    assert [each[:3] for each in lane(a_started_image("first", 8, now=at(-5)))] == [("running", 8, at(-5))]
