"""Answers made of domain values, member for member as they travel."""

from __future__ import annotations

import json

import pytest

from builders import (
    G5,
    NOW,
    P5,
    UNTIL,
    a_cancelled_job,
    a_demand,
    a_held_job,
    a_job,
    a_preempted_job,
    a_preempting_job,
    a_starting_job,
    an_ended_job,
    at,
)
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.reasons import REASONS as REGISTRY
from trainmaster.domain.reasons import capacity, rules
from trainmaster.handlers.models.reasons import reason_view
from trainmaster.handlers.views import jobs
from trainmaster.service.explain.explain import Explanation
from trainmaster.service.submit import Submission

UNTIL_TEXT = "2026-11-21T13:00:00Z"


def as_json(view):
    return json.loads(view.model_dump_json(by_alias=True, exclude_unset=True))


REASONS = {
    capacity.WaitsForCapacity(P5, 2, 1): {
        "message": "waits for 1 of 2 x ml.p5.48xlarge: 1 free for it now",
        "pool": P5,
        "needed": 2,
        "free": 1,
        "expected": None,
        "overdue": None,
        "quota": None,
    },
    capacity.WaitsForCapacity(P5, 2, 1, UNTIL, "a"): {
        "message": f"waits for 1 of 2 x ml.p5.48xlarge: 1 free for it now, expected by {UNTIL_TEXT}; "
        "a has run for longer than expected",
        "pool": P5,
        "needed": 2,
        "free": 1,
        "expected": UNTIL_TEXT,
        "overdue": "a",
        "quota": None,
    },
    capacity.WaitsForCapacity(P5, 2, 1, quota=2): {
        "message": "waits for 1 of 2 x ml.p5.48xlarge: 1 free for it now; "
        "the account's quota of 2 x ml.p5.48xlarge is below the pool's cap",
        "pool": P5,
        "needed": 2,
        "free": 1,
        "expected": None,
        "overdue": None,
        "quota": 2,
    },
    capacity.WaitsForRelease((G5, P5), UNTIL): {
        "message": f"waits for jobs that are stopping on {G5}, {P5}; reserved for it until {UNTIL_TEXT}",
        "pools": [G5, P5],
        "until": UNTIL_TEXT,
    },
    capacity.Preempts(("a", "b"), UNTIL): {
        "message": f"preempts a, b; the capacity is reserved for it until {UNTIL_TEXT}",
        "victims": ["a", "b"],
        "shrinks": [],
        "until": UNTIL_TEXT,
    },
    capacity.Shrinks(("a",), UNTIL): {
        "message": f"shrinks a; the capacity is reserved for it until {UNTIL_TEXT}",
        "shrinks": ["a"],
        "until": UNTIL_TEXT,
    },
    capacity.EndsWarmPool(("a", "b"), UNTIL): {
        "message": f"ends the warm pools of a, b; reserved for it until {UNTIL_TEXT}",
        "trainingJobs": ["a", "b"],
        "until": UNTIL_TEXT,
    },
    capacity.Infeasible("accelerators=8", 6, 4): {
        "message": "infeasible: needs 6 x (accelerators=8), the largest pool of such instances has 4",
        "resources": "accelerators=8",
        "needed": 6,
        "largest": 4,
        "expansion": "",
        "atZero": False,
    },
    capacity.Infeasible("vcpus=8", 1, 0, "the settings do not allow ml.c5.2xlarge"): {
        "message": "infeasible: needs 1 x (vcpus=8), no pool has such instances; the queue creates no pool for it: "
        "the settings do not allow ml.c5.2xlarge",
        "resources": "vcpus=8",
        "needed": 1,
        "largest": 0,
        "expansion": "the settings do not allow ml.c5.2xlarge",
        "atZero": False,
    },
    capacity.Infeasible("vcpus=8", 1, 0, at_zero=True): {
        "message": "infeasible: needs 1 x (vcpus=8), every pool of such instances has a cap of 0",
        "resources": "vcpus=8",
        "needed": 1,
        "largest": 0,
        "expansion": "",
        "atZero": True,
    },
    capacity.CanNeverFit("plan-a", 1, 0, at_zero=True): {
        "message": "can never fit: needs 1 x plan-a, the pool's cap is 0",
        "pool": "plan-a",
        "needed": 1,
        "cap": 0,
        "expansion": "",
        "atZero": True,
    },
    rules.Draining((P5,)): {
        "message": f"can run only in {P5}, which is draining and starts no jobs",
        "pools": [P5],
    },
    rules.Draining((G5, P5)): {
        "message": f"can run only in {G5}, {P5}, which are draining and start no jobs",
        "pools": [G5, P5],
    },
    capacity.Behind("a", P5): {
        "message": f"waits behind a, which is ahead of it in the queue for {P5}",
        "job": "a",
        "pool": P5,
    },
    capacity.ReservedForOther("a", P5, UNTIL, 8, 4): {
        "message": f"waits for 4 of 8 x {P5}: reserved for a until {UNTIL_TEXT}",
        "job": "a",
        "pool": P5,
        "until": UNTIL_TEXT,
        "needed": 8,
        "free": 4,
    },
    capacity.ReservedForOther("a", P5, None, 1): {
        "message": f"waits for 1 of 1 x {P5}: reserved for a",
        "job": "a",
        "pool": P5,
        "until": None,
        "needed": 1,
        "free": 0,
    },
    capacity.Protected(("a", "b"), UNTIL): {
        "message": f"cannot preempt a, b before {UNTIL_TEXT}: minimum run time",
        "jobs": ["a", "b"],
        "until": UNTIL_TEXT,
    },
    capacity.PreemptsLater(UNTIL): {
        "message": f"may preempt from {UNTIL_TEXT} on: a new job first waits for capacity to become free",
        "until": UNTIL_TEXT,
    },
    capacity.BackingOff(UNTIL, "no capacity"): {
        "message": f"retried at {UNTIL_TEXT}: no capacity",
        "until": UNTIL_TEXT,
        "cause": "no capacity",
    },
    capacity.BehindBackingOff("b", P5, UNTIL): {
        "message": f"waits behind b, which goes first and starts again at {UNTIL_TEXT}: "
        f"SageMaker had no capacity for it in {P5}",
        "job": "b",
        "pool": P5,
        "until": UNTIL_TEXT,
    },
    capacity.KindRefused("b", UNTIL): {
        "message": "waits because AWS refused to start b, a job like this one; "
        f"at most two of them are tried a minute, next at {UNTIL_TEXT}",
        "job": "b",
        "until": UNTIL_TEXT,
    },
    capacity.QuotaTooSmall(P5, 3, 2, UNTIL): {
        "message": f"needs 3 x {P5}, more than the account's quota of 2 x {P5}; a start is tried again at {UNTIL_TEXT}",
        "pool": P5,
        "needed": 3,
        "quota": 2,
        "until": UNTIL_TEXT,
    },
    capacity.NextPass(): {"message": "waits for the next pass: this one has reached its limit of actions"},
    capacity.NotConsideredYet(): {"message": "not considered yet: too many jobs are ahead of it in its lane"},
    capacity.CanNeverFit(P5, 3, 2): {
        "message": f"can never fit: needs 3 x {P5}, the pool's cap is 2",
        "pool": P5,
        "needed": 3,
        "cap": 2,
        "expansion": "",
        "atZero": False,
    },
    rules.ShareFull("vision", P5, 4, "borrow limit"): {
        "message": f"share vision may have 4 x {P5}, its borrow limit",
        "share": "vision",
        "pool": P5,
        "limit": 4,
        "bound": "borrow limit",
    },
    rules.UserFull("ada", P5, 2): {
        "message": f"user ada may have 2 x {P5}, the share's cap for one user",
        "user": "ada",
        "pool": P5,
        "limit": 2,
    },
    rules.BudgetSpent("vision", 100.5, 100.0, "GPU-hours", UNTIL): {
        "message": f"share vision has spent 100.5 of its 100.0 GPU-hours; the next period begins at {UNTIL_TEXT}",
        "share": "vision",
        "spent": 100.5,
        "budget": 100.0,
        "unit": "GPU-hours",
        "until": UNTIL_TEXT,
    },
    rules.GroupFull("sweep", 20): {
        "message": "group sweep is at its limit of 20 running jobs",
        "group": "sweep",
        "limit": 20,
    },
    rules.PlanClosed("plan", UNTIL, "it is not active yet"): {
        "message": f"cannot use plan: it is not active yet; available from {UNTIL_TEXT}",
        "pool": "plan",
        "until": UNTIL_TEXT,
        "cause": "it is not active yet",
    },
    rules.NotInService("endpoint/ships/blue", "Creating"): {
        "message": "waits for endpoint/ships/blue to be in service; its service is Creating",
        "pool": "endpoint/ships/blue",
        "cause": "Creating",
    },
    rules.NotBefore(UNTIL): {"message": f"starts no earlier than {UNTIL_TEXT}, as requested", "until": UNTIL_TEXT},
    rules.WaitsForJobs(("a", "b")): {"message": "waits for jobs a, b to end", "jobs": ["a", "b"]},
    rules.Held("ada"): {"message": "held by ada until it is released", "by": "ada"},
}


@pytest.mark.parametrize(("reason", "expected"), REASONS.items(), ids=lambda each: type(each).__name__)
def test_a_reason_has_its_type_its_words_and_its_own_members(reason, expected):
    assert as_json(reason_view(reason)) == {"type": type(reason).__name__} | expected


def test_every_reason_of_the_plan_can_travel():
    assert REGISTRY.keys() == {type(reason).__name__ for reason in REASONS}


def test_a_job_in_one_of_several_pools_shows_its_alternatives():
    job = a_job(demand=a_demand({P5: 2, G5: 1}, {G5: 4}))
    shown = as_json(jobs.job_view(job))
    assert (shown["pools"], shown["demand"]) == ([G5, P5], [{P5: 2, G5: 1}, {G5: 4}])


def test_a_job_by_resources_shows_them_and_which_type_each_attempt_got():
    asked = Resources(accelerators=8, memory_gib=1.5, accelerator="nvidia")
    job = a_job(demand=Demand(({P5: 2},), queue_selects_pool=True, resources=asked, instances=2))
    shown = as_json(jobs.job_view(lifecycle.start(job, {"wide": 2}, (), at(60), instance_type=P5)))
    assert shown["resources"] == {
        "accelerators": 8,
        "acceleratorMemoryGib": 0,
        "vcpus": 0,
        "memoryGib": 1.5,
        "accelerator": "nvidia",
    }
    assert (shown["instances"], shown["attempts"][0]["instanceType"]) == (2, P5)


def test_a_job_of_several_attempts_shows_them_oldest_first():
    resumed = lifecycle.start(a_preempted_job("job1", now=at(10)), {P5: 1}, (), at(60))
    shown = as_json(jobs.job_view(resumed))
    assert (shown["jobState"], shown["trainingJobName"]) == ("starting", "job1-qstamp-2")
    first, second = shown["attempts"]
    assert first == {
        "number": 1,
        "trainingJobName": "job1",
        "units": {P5: 1},
        "instanceType": None,
        "outcome": "preempted",
        "createdAt": "2026-11-21T12:00:10Z",
        "launched": True,
        "startedAt": "2026-11-21T12:00:10Z",
        "endedAt": "2026-11-21T12:00:10Z",
        "interruptions": 0,
        "reason": "preempted for job9",
    }
    assert second == {
        "number": 2,
        "trainingJobName": "job1-qstamp-2",
        "units": {P5: 1},
        "instanceType": None,
        "outcome": "active",
        "createdAt": "2026-11-21T12:01:00Z",
        "launched": False,
        "startedAt": None,
        "endedAt": None,
        "interruptions": 0,
        "reason": None,
    }


@pytest.mark.parametrize(
    ("job", "state", "failure"),
    [
        (a_job(), "pending", None),
        (a_starting_job(), "starting", None),
        (a_preempting_job(), "preempting", None),
        (a_preempted_job(), "preempted", None),
        (a_held_job(), "held", None),
        (a_cancelled_job(), "cancelled", None),
        (an_ended_job(), "completed", None),
        (an_ended_job(status=Status.STOPPED), "stopped", "stopped outside the queue"),
        (an_ended_job(status=Status.FAILED), "failed", "SageMaker gave no reason"),
    ],
    ids=lambda each: str(each)[:9],
)
def test_a_job_shows_its_state_and_why_it_failed(job, state, failure):
    shown = as_json(jobs.job_view(job))
    assert (shown["jobState"], shown["failureReason"]) == (state, failure)
    assert (shown["reason"] is not None) == (state == "held")


def test_a_held_job_names_its_holder():
    shown = as_json(jobs.job_view(a_held_job(who="ada")))
    assert shown["reason"] == {"type": "Held", "message": "held by ada until it is released", "by": "ada"}


def test_the_plans_fields_of_a_job_are_shown():
    explanation = Explanation(None, 40, starts=False, reason=capacity.Behind("a", P5), estimated_start=None)
    shown = as_json(jobs.job_view(a_job(), jobs.queue_status_of(explanation)))
    assert (shown["position"], shown["positionAtLeast"], shown["estimatedStart"]) == (None, 40, None)
    assert shown["reason"]["type"] == "Behind"


def test_a_submission_of_a_job_that_does_not_wait_has_no_place_in_the_queue():
    shown = as_json(jobs.submission_view(Submission(a_starting_job(), new=False, explanation=None, warnings=("w",))))
    assert (shown["position"], shown["reason"], shown["wouldPreempt"], shown["warnings"]) == (None, None, [], ["w"])


@pytest.mark.parametrize(
    ("starts", "reason", "decision"),
    [
        (True, None, "start"),
        (False, capacity.Preempts(("a",), UNTIL), "preempt"),
        (False, capacity.Behind("a", P5), "wait"),
        (False, None, "wait"),
    ],
)
def test_a_plan_is_to_start_to_preempt_or_to_wait(starts, reason, decision):
    explanation = Explanation(1, None, starts=starts, reason=reason, estimated_start=NOW)
    assert jobs.plan_view(explanation, ["w"]).decision == decision


def test_times_keep_their_microseconds():
    job = a_job(entry_time=NOW.replace(microsecond=123456))
    assert as_json(jobs.job_view(job))["entryTime"] == "2026-11-21T12:00:00.123456Z"


def test_attempts_that_are_not_kept_one_by_one_are_shown_as_sums():
    outcomes = {Outcome.RESIZED: 8, Outcome.PREEMPTED: 1}
    earlier = AttemptTotals(outcomes=outcomes, began_at=at(0), at_work=3_600.0, longest=1_800.0, served=7_200.0)
    shown = as_json(jobs.job_view(a_job(attempt_totals=earlier)))
    assert shown["earlierAttempts"] == {
        "count": 9,
        "outcomes": {"resized": 8, "preempted": 1},
        "beganAt": "2026-11-21T12:00:00Z",
        "atWorkSeconds": 3_600.0,
        "instanceSeconds": 7_200.0,
    }
