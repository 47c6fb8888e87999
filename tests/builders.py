"""Builders of domain values for tests: every argument has a default, so a test names only what it is about.

States are reached through `lifecycle`, so that every built job is one that could exist. It must not touch any
store, launcher or clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.capacity.units import Demand, Pool, Units
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Change, Job, JobState, Reservation
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Budget, Policy, Share

P5 = "ml.p5.48xlarge"
G5 = "ml.g5.2xlarge"
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
ROLE = "arn:aws:iam::111122223333:role/training"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.5.1-gpu-py311"
ADA = Caller("arn:aws:iam::111122223333:user/ada")
UNTIL = NOW + timedelta(hours=1)


def at(seconds: float) -> datetime:
    """A moment that many seconds after `NOW`."""
    return NOW + timedelta(seconds=seconds)


def a_demand(*alternatives: Units) -> Demand:
    """A demand that any one of the alternatives meets; one P5 instance where none is given."""
    return Demand(tuple(alternatives) or ({P5: 1},))


def a_pool(name: str = P5, cap: int = 2, *, count_external: bool = False) -> Pool:
    """A pool of two P5 instances."""
    return Pool(name, cap, count_external)


def pools_of(*pools: Pool) -> dict[str, Pool]:
    """Pools by name; the article's one pool of two P5 instances where none is given."""
    return {pool.name: pool for pool in pools or (a_pool(),)}


def a_job(
    name: str = "job1",
    *,
    priority: int = 0,
    entry_time: datetime = NOW,
    units: Units | None = None,
    demand: Demand | None = None,
    digest: str | None = None,
    **fields: Any,
) -> Job:
    """A pending job of one P5 instance; `units` is short for a demand of one alternative, `fields` are Job's own.

    Where it was given no history, it has the line that submitting writes.
    """
    state = fields.get("state", JobState.PENDING)
    fields.setdefault("history", (Change(entry_time, None, state, "submitted"),))
    return Job(
        name=name,
        priority=priority,
        entry_time=entry_time,
        demand=demand or a_demand(*([units] if units else [])),
        digest=digest or hashlib.sha256(name.encode()).hexdigest(),
        **fields,
    )


def a_starting_job(name: str = "job1", *, now: datetime = NOW, choices: tuple[str, ...] = (), **fields: Any) -> Job:
    """A job whose start is decided but not confirmed; it holds its first alternative."""
    job = a_job(name, **fields)
    return lifecycle.start(job, dict(job.demand.alternatives[0]), choices, now)


def a_launched_job(name: str = "job1", *, now: datetime = NOW, **fields: Any) -> Job:
    """A starting job that SageMaker is known to have."""
    return lifecycle.mark_launched(a_starting_job(name, now=now, **fields))


def a_running_job(name: str = "job1", *, now: datetime = NOW, **fields: Any) -> Job:
    """A job at work since `now`."""
    job = a_launched_job(name, now=now, **fields)
    return _must(lifecycle.observe(job, an_observation(job, secondary="Training", started_at=now), now))


def a_custom_resize(
    name: str = "job5", *, now: datetime = NOW, size: int = 2, target: str = "event", **fields: Any
) -> Job:
    """A job of one instance with a custom resize, asked for at `now`."""
    elastic = Elastic(min_instances=1, max_instances=4, hook=Hook.CUSTOM, target=target)
    running = a_running_job(name, now=now, elastic=elastic, **fields)
    until = now + timedelta(minutes=15)
    return lifecycle.resize(running, size, Cause.GROW, now, until=until)


def resized(job: Job, *sizes: int, now: datetime = NOW) -> Job:
    """An elastic job at work, once it has been resized to each of these sizes."""
    by_event = None if job.elastic is None else replace(job.elastic, hook=Hook.CUSTOM, target="event")
    changed = replace(job, elastic=by_event)
    for size in sizes:
        asked = lifecycle.resize(changed, size, Cause.GROW, now, until=now + timedelta(minutes=15))
        changed = lifecycle.complete_resize(asked, now, size)
    return replace(changed, elastic=job.elastic)


def a_preempting_job(name: str = "job1", *, beneficiary: str = "job9", now: datetime = NOW, **fields: Any) -> Job:
    """A job that was told to step aside and has not stopped yet."""
    return lifecycle.preempt(a_running_job(name, now=now, **fields), beneficiary, now)


def a_preempted_job(name: str = "job1", *, beneficiary: str = "job9", now: datetime = NOW, **fields: Any) -> Job:
    """A job that has stepped aside and waits again, with one past run."""
    job = a_preempting_job(name, beneficiary=beneficiary, now=now, **fields)
    return _must(lifecycle.observe(job, an_observation(job, status=Status.STOPPED), now))


def a_held_job(name: str = "job1", *, now: datetime = NOW, who: str = "tester", **fields: Any) -> Job:
    """A waiting job that is kept out of consideration."""
    return lifecycle.hold(a_job(name, **fields), now, who)


def an_ended_job(name: str = "job1", *, now: datetime = NOW, status: Status = Status.COMPLETED, **fields: Any) -> Job:
    """A job that ran and ended at `now`."""
    job = a_running_job(name, now=now, **fields)
    return _must(lifecycle.observe(job, an_observation(job, status=status), now))


def a_cancelled_job(name: str = "job1", *, now: datetime = NOW, who: str = "tester", **fields: Any) -> Job:
    """A job that was taken off the queue while it waited."""
    return lifecycle.cancel(a_job(name, **fields), now, who)


def an_attempt(
    number: int = 1, *, training_job_name: str = "job1", units: Units | None = None, **fields: Any
) -> Attempt:
    """An active attempt of one P5 instance, created at `NOW`."""
    fields.setdefault("created_at", NOW)
    return Attempt(number=number, training_job_name=training_job_name, units=dict(units or {P5: 1}), **fields)


def a_past_attempt(number: int = 1, *, outcome: Outcome = Outcome.PREEMPTED, **fields: Any) -> Attempt:
    """An attempt that ran for an hour and was preempted."""
    fields = {
        "launched": True,
        "started_at": NOW,
        "ended_at": UNTIL,
        "reason": "preempted for job9",
        **fields,
    }
    return an_attempt(number, outcome=outcome, **fields)


def a_reservation(units: Units | None = None, *, until: datetime = UNTIL) -> Reservation:
    """One P5 instance kept for an hour."""
    return Reservation(dict(units or {P5: 1}), until)


def an_observation(
    job: Job | None = None,
    *,
    status: Status = Status.IN_PROGRESS,
    training_job_name: str | None = None,
    **fields: Any,
) -> Observation:
    """A report about the newest attempt of `job`, or about any training job by name."""
    attempt = job.attempt if job is not None else None
    name = training_job_name or (attempt.training_job_name if attempt is not None else "job1")
    return Observation(training_job_name=name, status=status, **fields)


def a_metered_policy(*shares: str) -> Policy:
    """A policy under which all that these shares use from 2010 to 2049 counts in one period."""
    budget = Budget(gpu_hours=1e9, period=timedelta(days=40 * 365.25))
    return Policy(shares={name: Share(name=name, budget=budget) for name in shares})


def a_snapshot(
    *,
    pools: Iterable[Pool] | Mapping[str, Pool] | None = None,
    active: Sequence[Job] = (),
    waiting: Sequence[Job] = (),
    pass_number: int = 1,
    cut_lanes: Iterable[str] = (),
    external: Units | None = None,
    policy: Policy | None = None,
) -> Snapshot:
    """Snapshot for a pass: the article's one pool of two P5 instances and no jobs; `waiting` is put in queue order."""
    listed = list(pools.values()) if isinstance(pools, Mapping) else list(pools or ())
    return Snapshot(
        pass_number=pass_number,
        pools=pools_of(*listed),
        active=tuple(active),
        waiting=tuple(sorted(waiting, key=lambda job: job.order)),
        cut_lanes=frozenset(cut_lanes),
        external=dict(external or {}),
        policy=policy or Policy(),
    )


def a_request(
    name: str = "job1",
    *,
    instance_type: str = P5,
    count: int = 1,
    priority: int | None = None,
    options: Mapping[str, str] | None = None,
    checkpoint: bool = True,
    **members: Any,
) -> dict[str, Any]:
    """A CreateTrainingJob request; `options` become `trainmaster:` tags, `members` replace or add top-level ones."""
    tags = [{"Key": f"trainmaster:{key}", "Value": value} for key, value in (options or {}).items()]
    if priority is not None:
        tags.append({"Key": "priority", "Value": str(priority)})
    request: dict[str, Any] = {
        "TrainingJobName": name,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "RoleArn": ROLE,
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
        "ResourceConfig": {"InstanceType": instance_type, "InstanceCount": count, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "Tags": tags,
    }
    if checkpoint:
        request["CheckpointConfig"] = {"S3Uri": f"s3://bucket/checkpoints/{name}"}
    return request | members


def _must(job: Job | None) -> Job:
    assert job is not None, "the observation changed nothing, so the builder is wrong"
    return job
