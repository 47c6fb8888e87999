"""Pages: every job once, in order, each with a true word about why it waits, from one reading of the queue."""

from __future__ import annotations

import pytest

from api_world import RESEARCH, ApiWorld
from builders import (
    G5,
    P5,
    a_held_job,
    a_job,
    a_pool,
    a_preempted_job,
    a_running_job,
    a_starting_job,
    an_ended_job,
    at,
    pools_of,
)
from samples import sample
from trainmaster.service.explain.explain import MAX_DEEP_JOBS

DEEP = 80
READ_OF_A_LANE = 32


@pytest.fixture
def deep():
    """Two lanes: one far deeper than a pass reads, one short of lower priority behind it."""
    world = ApiWorld(pools=pools_of(a_pool(P5, 2), a_pool(G5, 1)))
    world.seed(*(a_running_job(f"running-{n}", priority=9) for n in range(2)))
    world.seed(*(a_job(f"deep-{n:03}", priority=5, entry_time=at(n)) for n in range(DEEP)))
    world.seed(*(a_job(f"low-{n}", priority=1, units={G5: 1}, entry_time=at(n)) for n in range(3)))
    world.store.calls.clear()
    return world


def pages(world, path, **query):
    cursor = {}
    while True:
        page = world.get(path, **query, **cursor).body
        yield page
        if page["nextCursor"] is None:
            return
        cursor = {"cursor": page["nextCursor"]}


def names(jobs):
    return [job["jobName"] for job in jobs]


@pytest.mark.parametrize("limit", sample(["7", "100", "1", "50"], 2))
def test_the_queue_pages_through_every_waiting_job_once_in_order(deep, limit):
    jobs = [job for page in pages(deep, "/queue", limit=limit) for job in page["jobs"]]
    assert names(jobs) == [f"deep-{n:03}" for n in range(DEEP)] + [f"low-{n}" for n in range(3)]
    assert [job["position"] for job in jobs] == list(range(1, DEEP + 4))
    assert all(job["positionAtLeast"] is None for job in jobs)


def test_a_page_reads_the_queue_once_whatever_is_on_it(deep):
    """And once more, deeper than a pass, where jobs on it lie deeper."""
    for path in ("/queue", "/jobs"):
        deep.store.calls.clear()
        assert len(deep.get(path, limit="100").body["jobs"]) > DEEP
        assert deep.store.calls["read_snapshot"] == 2
        assert deep.store.calls["list_jobs"] == 1
        assert deep.store.calls["find"] == 0


def test_a_page_of_jobs_that_a_pass_reads_is_told_without_reading_deeper(deep):
    assert names(deep.get("/queue", limit="10").body["jobs"])[-1] == "deep-009"
    assert deep.store.calls["read_snapshot"] == 1


def test_a_page_without_waiting_jobs_reads_no_queue_but_the_records_for_expected_ends(deep):
    deep.get("/jobs/low-0")  # the first request also checks the table's schema
    deep.store.calls.clear()
    assert names(deep.get("/jobs", state="running").body["jobs"]) == ["running-0", "running-1"]
    assert deep.store.calls == {"list_jobs": 1, "records": 1, "changes": 1}
    deep.store.calls.clear()
    assert deep.get("/jobs/running-0").body["expectedEnd"] is not None
    assert deep.store.calls == {"find": 1, "request_of": 1, "records": 1}


def test_a_running_job_tells_its_expected_end_with_its_range(deep):
    ends = {
        (job["jobState"], *(job[f"expectedEnd{part}"] is not None for part in ("Low", "", "High")))
        for page in (deep.get("/jobs", limit="100"), deep.get("/queue"), deep.get("/jobs", state="running"))
        for job in page.body["jobs"]
    }
    assert ends == {("running", True, True, True), ("pending", False, False, False)}
    job = deep.get("/jobs/running-1").body
    assert job["expectedEndLow"] < job["expectedEnd"] == job["expectedEndHigh"]


def test_jobs_beyond_what_a_pass_looks_at_are_told_so_and_when_they_will_start(deep):
    jobs = {job["jobName"]: job for page in pages(deep, "/queue") for job in page["jobs"]}
    last_read, first_beyond = jobs[f"deep-{READ_OF_A_LANE - 1:03}"], jobs[f"deep-{READ_OF_A_LANE:03}"]
    assert last_read["reason"]["type"] == "WaitsForCapacity"
    assert first_beyond["reason"]["type"] == "NotConsideredYet"
    assert "too many jobs are ahead of it in its lane" in first_beyond["reason"]["message"]
    assert last_read["estimatedStart"] <= first_beyond["estimatedStart"]
    assert first_beyond["position"] == READ_OF_A_LANE + 1


def test_a_job_of_a_short_lane_is_considered_though_deep_ones_come_before_it(deep):
    low = {job["jobName"]: job for page in pages(deep, "/queue") for job in page["jobs"]}["low-0"]
    assert low["reason"] is None
    assert low["estimatedStart"] == "2026-11-21T12:00:00Z"


def test_every_waiting_job_has_a_reason_or_starts(deep):
    for path in ("/queue", "/jobs"):
        for page in pages(deep, path):
            waiting = [job for job in page["jobs"] if job["jobState"] in ("pending", "preempted")]
            assert all(job["reason"] or job["jobName"] == "low-0" for job in waiting)


@pytest.mark.parametrize("path", ["/jobs/deep-070", "/jobs"])
def test_elsewhere_too_a_deep_job_has_its_position_and_a_start(deep, path):
    body = deep.get(path, **({"limit": "100"} if path == "/jobs" else {})).body
    (job,) = [each for each in body.get("jobs", [body]) if each["jobName"] == "deep-070"]
    assert (job["position"], job["positionAtLeast"]) == (71, None)
    assert job["reason"]["type"] == "NotConsideredYet"
    assert job["estimatedStartLow"] <= job["estimatedStart"] <= job["estimatedStartHigh"]


def test_behind_a_cut_lane_positions_count_what_a_pass_does_not_read(deep):
    job = deep.get("/jobs/low-1").body
    assert (job["position"], job["positionAtLeast"]) == (DEEP + 2, None)
    assert job["estimatedStart"] is not None


@pytest.fixture(scope="module")
def deepest():
    """A lane so deep that not even an answer reads all of it."""
    world = ApiWorld(pools=pools_of(a_pool(P5, 1), a_pool(G5, 1)))
    world.seed(a_running_job("running", priority=9))
    world.seed(*(a_job(f"deep-{n:04}", priority=5, entry_time=at(n)) for n in range(MAX_DEEP_JOBS + 50)))
    world.seed(*(a_job(f"low-{n}", priority=1, units={G5: 1}, entry_time=at(n)) for n in range(2)))
    return world


@pytest.mark.parametrize("name", [f"deep-{MAX_DEEP_JOBS + 49:04}", "low-1"])
def test_a_job_deeper_than_that_is_told_the_least_that_its_position_can_be(deepest, name):
    job = deepest.get(f"/jobs/{name}").body
    assert job["position"] is None
    assert job["positionAtLeast"] > MAX_DEEP_JOBS
    assert job["estimatedStart"] is None


def test_what_short_lanes_leave_unread_is_read_of_longer_ones():
    world = ApiWorld(pools=pools_of(a_pool(P5, 2)))
    world.seed(a_running_job("running", priority=9))
    of_share = {"short": 40, "long": MAX_DEEP_JOBS - 50}
    for share, count in of_share.items():
        world.seed(*(a_job(f"{share}-{n:04}", share=share, units={P5: 2}, entry_time=at(n)) for n in range(count)))
    last = world.get(f"/jobs/long-{of_share['long'] - 1:04}").body
    assert (last["position"], last["positionAtLeast"]) == (sum(of_share.values()), None)


def test_a_submission_into_a_deep_lane_is_told_no_position_that_is_not_sure(deep):
    deep.clock.sleep(DEEP)
    body = deep.submit("last", priority=5).body
    assert body["position"] is None
    assert body["positionAtLeast"] > READ_OF_A_LANE
    assert body["reason"]
    assert body["estimatedStart"] is None


def test_an_empty_queue_still_shows_its_pools():
    page = ApiWorld().get("/queue").body
    assert (page["jobs"], page["nextCursor"], [pool["name"] for pool in page["pools"]]) == ([], None, [P5])


@pytest.fixture
def mixed():
    world = ApiWorld(pools=pools_of(a_pool(P5, 2), a_pool(G5, 1)))
    world.seed(
        a_starting_job("starting", share="red", submitted_by=RESEARCH),
        a_running_job("running"),
        a_job("pending", units={G5: 1}),
        a_preempted_job("preempted", share="red"),
        a_held_job("held"),
        an_ended_job("completed", now=at(1), entry_time=at(0.5), submitted_by=RESEARCH),
        an_ended_job("older", share="red"),
    )
    return world


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["running", "starting", "pending", "preempted", "held", "completed", "older"]),
        ({"state": "running"}, ["running"]),
        ({"state": "pending,preempted"}, ["pending", "preempted"]),
        ({"state": ["pending", "running,held"]}, ["running", "pending", "held"]),
        ({"state": "completed"}, ["completed", "older"]),
        ({"state": " running , "}, ["running"]),
        ({"state": "failed"}, []),
        ({"share": "red"}, ["starting", "preempted", "older"]),
        ({"share": "missing"}, []),
        ({"pool": G5}, ["pending"]),
        ({"mine": "true"}, ["starting", "completed"]),
        ({"mine": "true", "share": "red"}, ["starting"]),
        ({"mine": "false", "share": "red"}, ["starting", "preempted", "older"]),
        ({"since": at(0.5).isoformat()}, ["completed"]),
        ({"prefix": "compl"}, ["completed"]),
        ({"prefix": "COMPL"}, []),
        ({"kind": "training", "share": "red"}, ["starting", "preempted", "older"]),
        ({"kind": "another"}, []),
        ({"since": at(9).isoformat()}, []),
        (
            {"pool": P5, "share": "red", "state": "starting,older,completed".replace("older,", "")},
            ["starting", "older"],
        ),
    ],
)
@pytest.mark.parametrize("limit", ["1", "50"])
def test_jobs_are_filtered(mixed, query, expected, limit):
    assert [name for page in pages(mixed, "/jobs", limit=limit, **query) for name in names(page["jobs"])] == expected


def test_a_caller_without_a_principal_has_no_jobs_of_their_own(mixed):
    refused = mixed.event("GET", "/jobs", query={"mine": "true"}, caller="arn:aws:sts::111122223333:unknown/x")
    assert (refused.status, refused.body["error"]["field"]) == (400, "mine")
    assert "the queue cannot tell which jobs are yours" in refused.body["error"]["message"]


@pytest.mark.parametrize("query", [{"state": "pending,running"}, {"state": "held"}])
def test_an_event_without_multiple_values_is_read_alike(mixed, query):
    reply = mixed.event("GET", "/jobs", query=query, multiValueQueryStringParameters=None)
    assert reply.body == mixed.get("/jobs", **query).body
    assert reply.body["jobs"]
