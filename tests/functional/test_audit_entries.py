"""Every change through the API leaves an audit entry of its caller; what changes nothing leaves none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api_world import ALICE, RESEARCH, ApiWorld, rest_event
from builders import G5, NOW, P5, a_custom_resize, a_pool, a_request, a_running_job, pools_of
from trainmaster.domain.errors import Throttled
from trainmaster.domain.jobs.job import JobState
from trainmaster.service.resizing.contract import token_of


@pytest.fixture
def world():
    return ApiWorld(pools=pools_of(a_pool(P5, 2), a_pool(G5, 4)))


def entries(world, **query):
    reply = world.get("/audit", **query)
    assert reply.status == 200
    return reply.body["entries"]


def recorded(world, **query):
    """The newest first: action, job, before and after."""
    return [(each["action"], each["job"], each["before"], each["after"]) for each in entries(world, **query)]


def test_an_entry_tells_who_when_and_from_where(world):
    world.submit("job1")
    (entry,) = entries(world)
    assert entry["at"] == "2026-11-21T12:00:01Z"
    assert (entry["principal"], entry["arn"]) == (RESEARCH, ALICE)
    assert (entry["sourceIp"], entry["userAgent"]) == ("10.0.0.7", "trainmaster/1.0")
    assert entry["requestId"] == rest_event("GET", "/")["requestContext"]["requestId"]


def test_a_submission_names_what_it_asks_for_and_not_its_request(world):
    world.submit("job1", priority=7, Environment={"SECRET": "hush"}, HyperParameters={"lr": "0.1"})
    ((action, job, before, after),) = recorded(world)
    assert (action, job, before) == ("submit", "job1", {})
    assert (after["state"], after["priority"], after["share"], len(after["digest"])) == ("pending", 7, "default", 64)
    assert after.keys() == {"state", "priority", "share", "digest"}


def test_a_repeated_submission_leaves_no_second_entry(world):
    world.submit("job1")
    assert world.post("/add-job", a_request("job1")).status == 200
    assert len(entries(world)) == 1


def test_one_change_of_priority_and_hold_leaves_an_entry_for_each(world):
    world.submit("job1")
    world.patch("/jobs/job1", {"priority": 5, "hold": True})
    assert sorted(recorded(world))[:2] == [
        ("hold", "job1", {"heldBy": None, "state": "pending"}, {"heldBy": ALICE, "state": "held"}),
        ("priority", "job1", {"priority": 0}, {"priority": 5}),
    ]


def test_a_release_and_a_cancellation_leave_theirs(world):
    world.submit("job1")
    world.patch("/jobs/job1", {"hold": True})
    world.patch("/jobs/job1", {"hold": False})
    world.delete("/jobs/job1")
    states = [(action, before.get("state"), after.get("state")) for action, _, before, after in recorded(world)]
    assert sorted(states) == [
        ("cancel", "pending", "cancelled"),
        ("hold", "pending", "held"),
        ("release", "held", "pending"),
        ("submit", None, "pending"),
    ]


def test_a_requested_stop_leaves_an_entry(world):
    world.seed(a_running_job("job1"))
    world.delete("/jobs/job1")
    ((action, job, before, after),) = recorded(world)
    assert (action, job) == ("cancel", "job1")
    assert (before["stopRequested"], after["stopRequested"]) == (False, True)


def test_an_answer_to_a_resize_leaves_an_entry(world):
    job = a_custom_resize()
    world.seed(job)
    token = token_of(job.name, job.attempt.number, job.attempt.resizing.asked_at)
    answer = {"token": token, "outcome": "refused", "reason": "busy"}
    assert world.post(f"/jobs/{job.name}/resize", answer).status == 200
    ((action, name, before, after),) = recorded(world)
    assert (action, name) == ("resize-answer", job.name)
    assert (before["state"], after["state"]) == (JobState.RESIZING, JobState.RUNNING)


def test_settings_and_shares_leave_what_changed_in_them(world):
    world.put("/settings", {"order": "fair", "shares": {"vision": {"weight": 2}}})
    ((action, job, before, after),) = recorded(world)
    assert (action, job, before) == ("settings", None, {"order": "backfill", "shares": "{}"})
    assert (after["order"], after["shares.vision.weight"]) == ("fair", 2)


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        (lambda w: w.put("/pools/g6", {"instanceType": "ml.g6.2xlarge", "cap": 3}), None, 3),
        (lambda w: w.patch(f"/pools/{P5}", {"cap": 9}), 2, 9),
        (lambda w: w.delete(f"/pools/{G5}"), 4, None),
    ],
    ids=["set", "change", "remove"],
)
def test_pools_leave_what_changed_in_them(world, change, before, after):
    assert change(world).status == 200
    ((action, _, was, now),) = recorded(world)
    assert action == "pools"
    assert [value for path, value in was.items() if path.endswith(".cap")] == [before][: before is not None]
    assert [value for path, value in now.items() if path.endswith(".cap")] == [after][: after is not None]


def test_pauses_leave_who_paused_and_why_and_a_resume_of_nothing_leaves_none(world):
    world.delete("/pause")
    world.put("/pause", {"reason": "restore"})
    world.put("/pause", {"reason": "upgrade"})
    world.delete("/pause")
    world.delete("/pause")
    at = "2026-11-21T12:00:00+00:00"
    whole = [{"reason": reason, "by": RESEARCH, "at": at} for reason in ("restore", "upgrade")]
    assert sorted(recorded(world), key=str) == [
        ("pause", None, {"reason": "restore"}, {"reason": "upgrade"}),
        ("pause", None, {}, whole[0]),
        ("resume", None, whole[1], {}),
    ]


def test_a_request_for_a_restore_leaves_an_entry(world):
    assert world.post("/restore", {"adopt": True}).status == 409
    world.put("/pause", {"reason": "restore"})
    assert world.post("/restore", {"adopt": True}).body["restore"]["askedBy"] == RESEARCH
    assert recorded(world, action="restore") == [("restore", None, {}, {"adopt": True})]


def test_each_page_of_an_export_leaves_an_entry(world):
    for number in range(3):
        world.submit(f"job{number}", Environment={"API_TOKEN": "hush"})
    cursor = world.get("/export", limit="2").body["nextCursor"]
    world.get("/export", limit="2", cursor=cursor)
    pages = [after for _, _, _, after in recorded(world, action="export")]
    assert sorted(pages, key=str) == [
        {"jobs": 1, "first": "job2", "last": "job2"},
        {"jobs": 2, "first": "job0", "last": "job1"},
    ]
    assert entries(world, action="export")[0]["principal"] == RESEARCH


def test_nothing_is_exported_if_its_entry_cannot_be_stored(world):
    world.submit("job1")
    world.store.failing["add_audit"] = Throttled("busy")
    assert world.get("/export").status == 429


def test_an_import_leaves_an_entry_for_each_part(world):
    world.submit("job1", priority=3)
    document = world.get("/export").body
    other = ApiWorld(pools=pools_of(a_pool(P5, 1)))
    part = {"trainmasterExport": 1, "settings": {"order": "fair"}, "pools": document["pools"], "jobs": document["jobs"]}
    assert other.post("/import", part).body["done"], "the import itself"
    assert sorted(action for action, *_ in recorded(other)) == ["import", "pools", "settings"]
    ((_, job, before, after),) = recorded(other, action="import")
    assert (job, before, after["priority"], after["submittedBy"]) == ("job1", {}, 3, RESEARCH)


def test_a_refused_change_leaves_no_entry(world):
    assert world.delete("/jobs/nothing").status == 404
    assert world.put("/settings", {"order": "odd"}).status == 400
    assert world.patch(f"/pools/{P5}", {"cap": 3, "version": 99}).status == 409
    assert entries(world) == []


def test_a_change_that_cannot_be_stored_leaves_no_entry(world):
    world.submit("job1")
    world.store.failing["transition"] = Throttled("busy")
    assert world.delete("/jobs/job1").status == 429
    assert [action for action, *_ in recorded(world)] == ["submit"]


def test_entries_are_filtered_and_come_in_pages(world):
    for number in range(5):
        world.submit(f"job{number}")
        world.clock.sleep(60)
    world.patch("/jobs/job3", {"priority": 1})
    assert len(entries(world, job="job3")) == 2
    assert len(entries(world, action="priority")) == 1
    assert len(entries(world, who="research")) == 6
    assert entries(world, who="another person") == []
    since, until = (NOW + timedelta(minutes=1)).isoformat(), (NOW + timedelta(minutes=3)).isoformat()
    assert [each["job"] for each in entries(world, since=since, until=until)] == ["job2", "job1"]
    first = world.get("/audit", limit="4").body
    rest = world.get("/audit", limit="4", cursor=first["nextCursor"]).body
    assert (len(first["entries"]), len(rest["entries"]), rest["nextCursor"]) == (4, 2, None)


@pytest.mark.parametrize(
    "query",
    [{"since": "2026-11-21"}, {"action": "start"}, {"cursor": "forged"}, {"limit": "0"}, {"by": "ada"}],
    ids=str,
)
def test_an_invalid_query_is_refused_by_its_parameter(world, query):
    assert world.get("/audit", **query).kind == (400, "InvalidRequest", next(iter(query)))


def test_entries_beyond_the_retention_are_not_listed(world):
    world.submit("job1")
    world.clock.sleep(timedelta(days=401).total_seconds())
    assert entries(world) == []


def test_callers_without_a_name_are_recorded_as_such(world):
    world.post("/add-job", a_request("job1"), caller=None)
    assert [(each["principal"], each["arn"]) for each in entries(world)] == [(None, None)]
