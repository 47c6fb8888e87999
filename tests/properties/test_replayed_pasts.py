"""A replay of the past reproduces it: the simulated queue does again what it did, for any jobs and settings."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api_world import ApiWorld
from builders import NOW, P5
from samples import examples
from trainmaster.domain.access.redaction import redacted_request
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.policy.settings import Order, Policy, Preemption, Share
from trainmaster.handlers.views.jobs import detail_view
from trainmaster.local.replay.drafts.queue import DraftReplay, JobOutcome
from trainmaster.local.replay.drafts.week import policies_of, week_of

CAP = 4
PERIOD = timedelta(days=2)
minutes = st.integers(1, 240).map(lambda count: timedelta(minutes=count))


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Jobs that never waited, as the API would show them: the first past."""
    return [
        a_view(number, draw(minutes), draw(minutes), draw(st.integers(1, CAP)), draw(st.booleans()))
        | {"priority": draw(st.sampled_from([0, 0, 5, 9])), "share": draw(st.sampled_from("ab"))}
        for number in range(draw(st.integers(1, 8)))
    ]


def a_view(number: int, entered: timedelta, worked: timedelta, count: int, saves: bool) -> dict[str, Any]:
    name, entry = f"job{number}", NOW - PERIOD + entered
    attempt = {
        "number": 1,
        "units": {P5: count},
        "outcome": "completed",
        "createdAt": entry.isoformat(),
        "startedAt": entry.isoformat(),
        "endedAt": (entry + worked).isoformat(),
    }
    details = {"ResourceConfig": {"InstanceType": P5, "InstanceCount": count, "VolumeSizeInGB": 30}}
    details |= {"AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"}}
    details |= {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}, "Tags": []}
    details |= {"CheckpointConfig": {"S3Uri": "s3://bucket/one-for-all"}} if saves else {}
    return {
        "jobName": name,
        "jobState": "completed",
        "entryTime": entry.isoformat(),
        "preemptible": True,
        "expectedEnd": None,
        "endedAt": (entry + worked).isoformat(),
        "submittedBy": None,
        "failureReason": None,
        "earlierAttempts": None,
        "history": [],
        "attempts": [attempt],
        "jobDetails": details,
    }


def document(jobs: list[dict[str, Any]], policy: Policy) -> dict[str, Any]:
    pools = ApiWorld(pools={P5: Pool(P5, CAP)}).get("/pools").body["pools"]
    in_force = settings_document(policy)
    made = {"since": (NOW - PERIOD).isoformat(), "at": NOW.isoformat(), "settings": in_force, "draft": in_force}
    return json.loads(json.dumps(made | {"pools": pools, "jobs": jobs, "leftOut": {}}))


def replayed(jobs: list[dict[str, Any]], policy: Policy) -> tuple[DraftReplay, dict[str, JobOutcome]]:
    given_ = document(jobs, policy)
    replay = DraftReplay(week_of(given_), policies_of(given_)[0])
    return replay, {each.past.job.name: each for each in replay.run()}


def view_of(replay: DraftReplay, name: str) -> dict[str, Any]:
    """The job as GET /jobs/{name} shows it."""
    job = replay.store.find(name)
    assert isinstance(job, Job)
    request = redacted_request(replay.store.request_of(name), private=False)
    return json.loads(detail_view(job, request, None).model_dump_json(by_alias=True))


def told(outcome: JobOutcome) -> tuple[Any, ...]:
    return outcome.wait, outcome.completion, outcome.preemptions, outcome.dollars


ROOMY = Preemption(cooldown=timedelta(0))
POLICIES = [
    *(Policy(order=order, preemption=ROOMY) for order in Order),
    Policy(preemption=Preemption(min_runtime=timedelta(hours=1))),
    Policy(preemption=ROOMY, shares={"a": Share(name="a", nominal={P5: 3}), "b": Share(name="b", weight=2.0)}),
]


def check(jobs: list[dict[str, Any]], policy: Policy) -> None:
    first, outcomes = replayed(jobs, policy)
    _, again = replayed([view_of(first, name) for name in outcomes], policy)
    for name, outcome in outcomes.items():
        assert outcome.completion
        assert told(again[name]) == pytest.approx(told(outcome), abs=2), name


@settings(max_examples=8)
@given(jobs=histories(), policy=st.sampled_from(POLICIES))
def test_a_replay_of_what_the_queue_did_does_it_again(jobs, policy):
    check(jobs, policy)


@pytest.mark.slow
@examples(150)
@given(jobs=histories(), policy=st.sampled_from(POLICIES))
def test_a_replay_of_what_the_queue_did_does_it_again_for_many(jobs, policy):
    check(jobs, policy)
