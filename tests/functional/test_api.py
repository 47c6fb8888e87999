"""Every route of the API, from the proxy event to the last member of its answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api_world import ALICE, RESEARCH, ApiWorld
from builders import (
    G5,
    NOW,
    P5,
    ROLE,
    UNTIL,
    a_held_job,
    a_job,
    a_pool,
    a_preempting_job,
    a_request,
    a_running_job,
    an_ended_job,
    at,
    pools_of,
)
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.units import PlanStatus

UNTIL_FREE = "2026-11-22T12:00:00Z"


@pytest.fixture
def world():
    return ApiWorld()


@pytest.fixture
def busy(world):
    """The article's scene before job4 comes: job1 and job2 run, job3 waits."""
    world.seed(
        a_running_job("job1", priority=1, entry_time=at(-40)),
        a_running_job("job2", priority=2, entry_time=at(-20)),
        a_job("job3", priority=1, entry_time=at(-10)),
    )
    return world


def starts(expected, low=None, high=None):
    """The range in which a job starts; a moment where only one is given."""
    return {
        "estimatedStart": expected,
        "estimatedStartLow": low or expected,
        "estimatedStartHigh": high or expected,
    }


NO_START = starts(None)
NOW_TEXT = "2026-11-21T12:00:00Z"
UNTIL_QUICK = "2026-11-21T13:12:00Z"
"""Time at which a twentieth of the day has passed: the only estimate for a job without any history."""


def a_view(name, **changes):
    """A pending job of one P5 as the API shows it."""
    return {
        "jobName": name,
        "kind": "training",
        "jobState": "pending",
        "priority": 0,
        "share": "default",
        "entryTime": "2026-11-21T12:00:00Z",
        "pools": [P5],
        "demand": [{P5: 1}],
        "resources": None,
        "instances": None,
        "preemptible": True,
        "position": None,
        "positionAtLeast": None,
        "reason": None,
        **NO_START,
        **dict.fromkeys(("expectedEnd", "expectedEndLow", "expectedEndHigh")),
        "deadline": None,
        "endedAt": None,
        "submittedBy": None,
        "failureReason": None,
        "trainingJobName": None,
        "attempts": [],
        "earlierAttempts": None,
        "elastic": None,
        "details": None,
    } | changes


def an_attempt_view(name, **changes):
    return {
        "number": 1,
        "trainingJobName": name,
        "units": {P5: 1},
        "instanceType": None,
        "outcome": "active",
        "createdAt": "2026-11-21T12:00:00Z",
        "launched": True,
        "startedAt": "2026-11-21T12:00:00Z",
        "endedAt": None,
        "interruptions": 0,
        "reason": None,
    } | changes


def a_running_view(name, **changes):
    running = {"jobState": "running", "trainingJobName": name, "attempts": [an_attempt_view(name)]}
    return a_view(name, **(running | changes))


A_PLAN = {
    "wouldTake": {},
    "wouldCreateNone": None,
    "positionAtLeast": None,
    "reason": None,
    "wouldPreempt": [],
    "wouldStart": [],
    "wouldDelay": [],
    "wouldCreate": [],
    "expansionEnabled": False,
    "wouldChange": [],
    "madeDollarsPerHour": {"now": 0.0, "then": 0.0},
    "deadline": None,
    "scaling": None,
    "warnings": [],
}
ENDS = {"expectedEnd": UNTIL_FREE, "expectedEndLow": UNTIL_QUICK, "expectedEndHigh": UNTIL_FREE}
JOB1 = a_running_view("job1", priority=1, entryTime="2026-11-21T11:59:20Z", **ENDS)
JOB2 = a_running_view("job2", priority=2, entryTime="2026-11-21T11:59:40Z", **ENDS)
JOB3 = a_view(
    "job3",
    priority=1,
    entryTime="2026-11-21T11:59:50Z",
    position=1,
    reason={
        "type": "WaitsForCapacity",
        "message": f"waits for 1 of 1 x {P5}: 0 free for it now, expected by {UNTIL_FREE}",
        "pool": P5,
        "needed": 1,
        "free": 0,
        "expected": UNTIL_FREE,
        "overdue": None,
        "quota": None,
    },
    **starts(UNTIL_FREE, low=UNTIL_QUICK),
)
OF_P5 = {
    "onDemandPrice": SHIPPED[P5].price,
    "vcpus": 192,
    "memoryGib": SHIPPED[P5].memory_gib,
    "accelerators": 8,
    "accelerator": "nvidia",
    "acceleratorMemoryGib": 640.0,
}
POOL = {
    "name": P5,
    "instanceType": P5,
    "kind": "on-demand",
    "trainingPlanArn": None,
    "planStatus": None,
    "startsAt": None,
    "endsAt": None,
    "state": "in use",
    "madeFor": None,
    "madeAt": None,
    "price": 0.0,
    **OF_P5,
    "cap": 2,
    "quota": None,
    "quotaAt": None,
    "used": 2,
    "stopping": 0,
    "beyondMinimum": 0,
    "held": 0,
    "external": 0,
    "warm": 0,
    "free": 0,
    "load": None,
    "countExternal": False,
    "waiting": 1,
    "waitingUnits": 1,
    "waitingMore": False,
    "weight": 1.0,
    "setting": {"instanceType": P5, "cap": 2, "countExternal": False},
}


# ---------------------------------------------------------------- POST /add-job


def test_a_submitted_job_waits_for_the_next_pass(world):
    reply = world.post("/add-job", a_request("job1", priority=100))
    assert reply.status == 202
    assert reply.body == a_view("job1", priority=100, position=1, submittedBy=RESEARCH, **starts(NOW_TEXT)) | {
        "submittedBefore": False,
        "warnings": [],
        "wouldPreempt": [],
    }
    assert world.publisher.wakes == [0]


def test_a_submission_returns_its_victims_and_warnings(busy):
    reply = busy.post("/add-job", a_request("job4", priority=3, checkpoint=False))
    assert reply.status == 202
    assert reply.body["wouldPreempt"] == ["job1"]
    assert reply.body["reason"] == {
        "type": "Preempts",
        "message": "preempts job1; the capacity is reserved for it until 2026-11-21T13:00:00Z",
        "victims": ["job1"],
        "shrinks": [],
        "until": "2026-11-21T13:00:00Z",
    }
    (warning,) = reply.body["warnings"]
    assert "CheckpointConfig" in warning


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("not-before", "2026-11-21T13:00:00Z", "starts no earlier than 2026-11-21T13:00:00Z, as requested"),
        ("after", "job0", "waits for job job0 to end"),
    ],
)
def test_a_submitted_job_that_waits_for_a_time_or_a_job_says_so(world, option, value, told):
    world.seed(a_running_job("job0"))
    reply = world.post("/add-job", a_request("job1", options={option: value}))
    assert (reply.status, reply.body["jobState"]) == (202, "held")
    assert reply.body["reason"]["message"] == told


def test_the_same_submission_again_gives_the_same_answer(world):
    first = world.post("/add-job", a_request("job1"))
    again = world.post("/add-job", dict(reversed(a_request("job1").items())))
    assert (first.status, again.status) == (202, 200)
    assert again.body == first.body | {"submittedBefore": True}


def test_the_same_submission_of_a_job_that_runs_tells_how_it_stands(world):
    world.post("/add-job", a_request("job1"))
    waiting = world.memory.find("job1")
    running = a_running_job("job1", digest=waiting.digest, submitted_by=RESEARCH)
    assert world.memory.transition([(waiting, running)])
    again = world.post("/add-job", a_request("job1"))
    assert again.status == 200
    assert again.body == a_running_view("job1", submittedBy=RESEARCH) | {
        "submittedBefore": True,
        "warnings": [],
        "wouldPreempt": [],
    }


def test_the_same_name_with_another_body_is_refused_and_changes_nothing(world):
    world.post("/add-job", a_request("job1"))
    reply = world.post("/add-job", a_request("job1", priority=1))
    assert reply.kind == (409, "NameTaken", "TrainingJobName")
    assert world.get("/jobs/job1").body["priority"] == 0


@pytest.mark.parametrize("body", [a_request("job1"), a_request("job1", priority=7)], ids=["new", "again or taken"])
def test_a_submission_reads_no_more_than_the_use_case_does(world, body):
    world.seed(a_job("other"))
    world.get("/jobs/other")  # the first request also checks the table's schema
    world.store.calls.clear()
    world.post("/add-job", body)
    assert world.store.calls == {"settings": 1, "submit": 1, "read_snapshot": 1}


def test_a_request_as_large_as_sagemaker_takes_is_taken(world):
    request = a_request(
        "big",
        HyperParameters={f"parameter-{n:03}": chr(33 + n % 90) * 2500 for n in range(100)},
        Environment={f"VARIABLE_{n:03}": "v" * 512 for n in range(100)},
    )
    assert world.post("/add-job", request).status == 202
    assert world.get("/jobs/big").body["jobDetails"] == request


# ---------------------------------------------------------------- POST /plan


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (
            1,
            {
                "decision": "wait",
                "position": 2,
                "reason": {
                    "type": "WaitsForCapacity",
                    "message": f"waits for 1 of 1 x {P5}: 0 free for it now, expected by {UNTIL_FREE}",
                    "pool": P5,
                    "needed": 1,
                    "free": 0,
                    "expected": UNTIL_FREE,
                    "overdue": None,
                    "quota": None,
                },
                "wouldPreempt": [],
                "wouldStart": [],
                "wouldDelay": [],
                **starts(UNTIL_FREE, low=UNTIL_QUICK),
            },
        ),
        (
            3,
            {
                "decision": "preempt",
                "position": 1,
                "reason": {
                    "type": "Preempts",
                    "message": "preempts job1; the capacity is reserved for it until 2026-11-21T13:00:00Z",
                    "victims": ["job1"],
                    "shrinks": [],
                    "until": "2026-11-21T13:00:00Z",
                },
                "wouldPreempt": ["job1"],
                "wouldStart": [],
                "wouldDelay": [],
                **starts("2026-11-21T12:03:00Z", low="2026-11-21T12:00:18Z", high="2026-11-21T12:05:24Z"),
            },
        ),
    ],
)
def test_a_plan_tells_what_would_happen_and_stores_nothing(busy, priority, expected):
    reply = busy.post("/plan", a_request("new", priority=priority))
    assert (reply.status, reply.body) == (200, A_PLAN | expected)
    assert busy.get("/jobs/new").kind == (404, "JobNotFound", "name")
    assert busy.publisher.wakes == []


def test_a_plan_lists_delayed_jobs_and_their_delays(busy):
    """The new job outlives job2, so job1, which it preempts, resumes before job3 can start."""
    request = a_request("new", priority=3) | {"StoppingCondition": {"MaxRuntimeInSeconds": 2 * 86_400}}
    plan = busy.post("/plan", request).body
    assert plan["wouldPreempt"] == ["job1"]
    (delay,) = plan["wouldDelay"]
    assert (delay["jobName"], delay["expectedStart"]) == ("job3", UNTIL_FREE)
    assert delay["wouldStart"] == "2026-11-23T12:00:00Z"
    assert delay["bySeconds"] == 86_400


def test_a_plan_for_a_free_pool_is_to_start(world):
    reply = world.post("/plan", a_request("new"))
    assert reply.body == A_PLAN | starts(NOW_TEXT) | {
        "decision": "start",
        "position": 1,
        "wouldStart": ["new"],
        "wouldTake": {P5: 1},
    }


# ---------------------------------------------------------------- GET /jobs, /jobs/{name}, /queue


def test_jobs_are_listed_active_first_then_waiting_held_and_ended(busy):
    busy.seed(a_held_job("job5"), an_ended_job("job0", entry_time=at(-90)))
    reply = busy.get("/jobs")
    assert reply.status == 200
    held = {"type": "Held", "message": "held by tester until it is released", "by": "tester"}
    ended = [an_attempt_view("job0", outcome="completed", endedAt="2026-11-21T12:00:00Z", reason="completed")]
    assert reply.body == {
        "jobs": [
            JOB2,
            JOB1,
            JOB3,
            a_view("job5", jobState="held", reason=held),
            a_view(
                "job0",
                jobState="completed",
                entryTime="2026-11-21T11:58:30Z",
                endedAt="2026-11-21T12:00:00Z",
                trainingJobName="job0",
                attempts=ended,
            ),
        ],
        "nextCursor": None,
    }


def test_a_job_is_shown_with_its_history_and_its_request(busy):
    reply = busy.get("/jobs/job1")
    assert reply.status == 200
    noon = "2026-11-21T12:00:00Z"
    takes, works = f"takes 1 x {P5}", "instances at work"
    assert reply.body == JOB1 | {
        "history": [
            {"at": JOB1["entryTime"], "from": None, "to": "pending", "reason": "submitted", "attempt": None},
            {"at": noon, "from": "pending", "to": "starting", "reason": takes, "attempt": 1},
            {"at": noon, "from": "starting", "to": "running", "reason": works, "attempt": 1},
        ],
        "jobDetails": a_request("job1"),
        "redacted": [],
        "why": None,
    }


def test_a_waiting_job_is_shown_with_its_standing(busy):
    shown = busy.get("/jobs/job3").body
    assert {name: shown[name] for name in JOB3} == JOB3


def test_the_queue_shows_the_reason_of_each_waiting_job(busy):
    reply = busy.get("/queue")
    assert reply.status == 200
    assert reply.body == {"jobs": [JOB3], "nextCursor": None, "pools": [POOL]}


# ---------------------------------------------------------------- cancelling and changing a job


def test_a_waiting_job_is_cancelled_at_once(busy):
    reply = busy.delete("/jobs/job3")
    assert reply.status == 200
    ended = {"jobState": "cancelled", "endedAt": "2026-11-21T12:00:00Z", "position": None, "reason": None}
    assert reply.body == JOB3 | ended | NO_START
    assert busy.get("/jobs/job3").body["history"][-1]["reason"] == f"cancelled by {ALICE}"
    assert busy.publisher.wakes == [0]


@pytest.mark.parametrize(("job", "line"), [("job3", "cancelled by"), ("job1", "stop requested by")])
def test_a_cancellation_may_have_a_reason_for_the_history(busy, job, line):
    assert busy.event("DELETE", f"/jobs/{job}", query={"reason": "wrong\ndata"}).status in (200, 202)
    assert busy.get(f"/jobs/{job}").body["history"][-1]["reason"] == f"{line} {ALICE}: wrong data"


def test_the_reason_of_a_cancellation_is_not_longer_than_reasons_may_be(busy):
    reply = busy.event("DELETE", "/jobs/job3", query={"reason": "x" * 1025})
    assert (reply.status, reply.body["error"]["field"]) == (400, "reason")


def test_a_held_job_is_cancelled_at_once(world):
    world.seed(a_held_job("job1"))
    reply = world.delete("/jobs/job1")
    assert (reply.status, reply.body["jobState"]) == (200, "cancelled")


def test_a_running_job_is_asked_to_stop(busy):
    first, again = busy.delete("/jobs/job1"), busy.delete("/jobs/job1")
    assert (first.status, first.body) == (202, JOB1 | dict.fromkeys(ENDS))
    assert (again.status, again.body) == (202, first.body)
    assert busy.memory.find("job1").stop_requested


def test_a_preempting_job_can_be_stopped_for_good(world):
    world.seed(a_preempting_job("job1"))
    assert world.delete("/jobs/job1").status == 202


@pytest.mark.parametrize("stop_requested", [False, True])
def test_an_ended_job_cannot_be_cancelled(world, stop_requested):
    world.seed(an_ended_job("job1", stop_requested=stop_requested))
    assert world.delete("/jobs/job1").kind == (409, "IllegalTransition", "jobState")


def test_a_job_gets_another_priority_and_another_place(busy):
    busy.seed(a_job("job4", priority=2, entry_time=NOW))
    reply = busy.patch("/jobs/job3", {"priority": 2})
    assert (reply.status, reply.body["priority"], reply.body["position"]) == (200, 2, 1)
    assert reply.body["reason"]["victims"] == ["job1"]
    assert [job["jobName"] for job in busy.get("/queue").body["jobs"]] == ["job3", "job4"]


def test_a_job_is_held_and_released(busy):
    held = busy.patch("/jobs/job3", {"hold": True, "priority": 5})
    assert held.status == 200
    assert held.body == JOB3 | {
        "jobState": "held",
        "priority": 5,
        "position": None,
        "reason": {"type": "Held", "message": f"held by {ALICE} until it is released", "by": ALICE},
        **NO_START,
    }
    assert busy.get("/queue").body["jobs"] == []
    released = busy.patch("/jobs/job3", {"hold": False, "priority": 1})
    assert (released.status, released.body) == (200, JOB3)


# ---------------------------------------------------------------- /pools


def test_pools_are_shown_with_what_becomes_of_them(busy):
    busy.seed(a_preempting_job("job0", units={G5: 3}))
    reply = busy.put(
        "/pools",
        {
            "pools": [
                {"instanceType": P5, "cap": 2, "countExternal": False},
                {"instanceType": G5, "cap": 4, "countExternal": True},
            ],
            "version": 0,
        },
    )
    shown = {pool["name"]: pool for pool in reply.body["pools"]}
    figures = {"cap": 4, "used": 3, "stopping": 3, "held": 0, "external": 0, "warm": 0, "free": 1, "waiting": 0}
    assert figures.items() <= shown[G5].items()
    assert (shown[G5]["accelerators"], shown[G5]["countExternal"]) == (1, True)
    assert 0 < shown[G5]["weight"] < shown[P5]["weight"]
    assert (reply.status, list(shown), shown[P5], reply.body["version"]) == (200, [G5, P5], POOL, 1)
    assert busy.get("/pools").body == reply.body
    assert busy.publisher.wakes == [0]


def test_a_cap_can_be_lowered_below_what_is_used(busy):
    reply = busy.put("/pools", {"pools": [{"instanceType": P5, "cap": 1, "countExternal": False}]})
    assert reply.body["pools"] == [POOL | {"cap": 1, "setting": POOL["setting"] | {"cap": 1}}]


PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"


def test_pools_of_one_type_have_kinds_and_names(world):
    asked = [
        {"instanceType": P5, "cap": 2},
        {"instanceType": P5, "cap": 8, "kind": "spot", "price": 31.5},
        {"instanceType": P5, "cap": 4, "kind": "training-plan", "trainingPlanArn": PLAN, "name": "spring"},
        {"instanceType": G5, "cap": 1, "name": "small", "accelerators": 2},
    ]
    shown = world.put("/pools", {"pools": asked}).body["pools"]
    told = ("name", "instanceType", "kind", "trainingPlanArn", "price", "accelerators")
    assert [tuple(pool[member] for member in told) for pool in shown] == [
        (P5, P5, "on-demand", None, 0.0, 8),
        (f"{P5}.spot", P5, "spot", None, 31.5, 8),
        ("small", G5, "on-demand", None, 0.0, 2),
        ("spring", P5, "training-plan", PLAN, 0.0, 8),
    ]


def test_training_plan_details_survive_a_change_of_the_pools(world):
    plan = {"instanceType": P5, "cap": 4, "kind": "training-plan", "trainingPlanArn": PLAN}
    world.put("/pools", {"pools": [plan]})
    known = {"plan_status": PlanStatus.ACTIVE, "starts_at": NOW, "ends_at": UNTIL}
    world.memory.set_settings(pools=[replace(pool, **known) for pool in world.memory.settings().pools.values()])
    (shown,) = world.put("/pools", {"pools": [plan | {"cap": 2, "name": "spring"}]}).body["pools"]
    assert (shown["name"], shown["cap"], shown["planStatus"], shown["endsAt"]) == (
        "spring",
        2,
        "Active",
        "2026-11-21T13:00:00Z",
    )
    other = plan | {"trainingPlanArn": PLAN.replace("spring", "autumn")}
    (shown,) = world.put("/pools", {"pools": [other]}).body["pools"]
    assert shown["planStatus"] is None


def test_pools_are_changed_only_from_the_version_that_was_read(world):
    world.put("/pools", {"pools": [], "version": 0})
    assert world.put("/pools", {"pools": [], "version": 0}).kind == (409, "VersionConflict", "version")


def test_external_units_are_shown_for_pools_that_count_them():
    world = ApiWorld(pools=pools_of(a_pool(P5, 2, count_external=True), a_pool(G5, 2)))
    world.memory.update_external_jobs({"theirs": ExternalJob({P5: 1, G5: 1})})
    shown = {pool["name"]: (pool["external"], pool["free"]) for pool in world.get("/pools").body["pools"]}
    assert shown == {P5: (1, 1), G5: (0, 2)}


# ---------------------------------------------------------------- who asks


def test_the_caller_comes_from_iam(world):
    world.event("POST", "/add-job", a_request("job1"), caller="arn:aws:iam::111122223333:user/bob")
    assert world.get("/jobs/job1").body["submittedBy"] == "arn:aws:iam::111122223333:user/bob"


def test_a_mapping_gives_callers_their_own_roles():
    mapping = {"arn:aws:sts::111122223333:assumed-role/research": ("arn:aws:iam::*:role/training",)}
    world = ApiWorld(settings={"allowed_roles": ("*",), "role_mapping": mapping})
    assert world.post("/add-job", a_request("job1")).status == 202
    others = "arn:aws:iam::111122223333:user/bob"
    refused = world.event("POST", "/add-job", a_request("job2"), caller=others)
    assert refused.kind == (403, "RoleNotAllowed", "RoleArn")
    assert others in refused.error["message"]
    assert ROLE in refused.error["message"]
    assert world.event("POST", "/add-job", a_request("job2"), caller=None).status == 403
