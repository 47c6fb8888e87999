"""Hypothesis strategies: any job that could be stored, in any state, with any text that a row can hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from other_kind import BatchWork
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.elastic.scaling import Speed, Speeds
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook, Member, Resizing, RestartBudget
from trainmaster.domain.jobs.attempt import Attempt, Outcome, Release
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.job import Change, Job, JobState, ParentRule, Reservation
from trainmaster.domain.policy.settings import FailureClass, PreemptionOverrides
from trainmaster.domain.requests.notify import NOTIFY_WORDS

texts = st.text(max_size=20)
keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
names = st.from_regex(r"[a-zA-Z0-9](-{0,2}[a-zA-Z0-9]){0,20}", fullmatch=True)
times = st.integers(0, 4 * 10**15).map(lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))
spans = st.timedeltas(timedelta(0), timedelta(days=365))
units = st.dictionaries(keys, st.integers(1, 1_000), min_size=1, max_size=3)
priorities = st.integers(-1_000_000, 1_000_000)

_MEMBERS = {"added": None, "addedToo": [1, {"of": "text"}]}
_ATTRIBUTES = {"added": {"S": "text"}}
added_members = st.sampled_from([{}, _MEMBERS])
_added_to_jobs = st.sampled_from([{}, {"job": _MEMBERS}, {"row": _ATTRIBUTES}, {"job": _MEMBERS, "row": _ATTRIBUTES}])
"""Members and attributes that a newer release may store with a job."""

MEMBER = dict[str, st.SearchStrategy[Any]](
    # Names as the queue gives them are kept as a number, others are not.
    training_job_name=names | st.builds("{}-qstamp-{}-m{}".format, names, st.integers(1, 9), st.integers(1, 99)),
    created_at=times,
    launched=st.booleans(),
    started_at=st.none() | times,
    drain_asked_at=st.none() | times,
    left_at=st.none() | times,
    stop_sent=st.booleans(),
    called_at=st.none() | times,
)
RESIZING = dict[str, st.SearchStrategy[Any]](
    before=st.integers(1, 99),
    after=st.integers(1, 99),
    cause=st.sampled_from(Cause),
    asked_at=times,
    until=times,
    freed_for=st.none() | names,
    hook_called=st.booleans(),
    given_up=st.booleans(),
)
BUDGET = dict[str, st.SearchStrategy[Any]](
    max_restarts=st.none() | st.integers(0, 99),
    period=spans,
    max_total_restarts=st.none() | st.integers(0, 99),
    restarts_before_full=st.none() | st.integers(0, 99),
    max_full_restarts=st.integers(0, 99),
)
ELASTIC = dict[str, st.SearchStrategy[Any]](
    min_instances=st.integers(1, 99),
    max_instances=st.integers(1, 99),
    step=st.integers(1, 9),
    values=st.lists(st.integers(1, 99), max_size=3).map(tuple),
    hook=st.sampled_from(Hook),
    target=texts,
    scaling_timeout=spans,
    graceful_shutdown_timeout=spans,
    faulty_scale_down_timeout=spans,
    scale_up_snooze=spans,
    budget=st.builds(RestartBudget, **BUDGET),
)

BATCH_WORK = dict[str, st.SearchStrategy[Any]](
    service=keys, calls=st.integers(1, 10_000), done=st.integers(0, 10_000), failed=st.integers(0, 10_000)
)

ATTEMPT = dict[str, st.SearchStrategy[Any]](
    number=st.integers(1, 99),
    training_job_name=names
    | st.builds(BatchWork.run_name, names, st.integers(1, 3))
    | st.sampled_from(["batch:job1", "batch:job1-qstamp-2"]),
    units=units,
    created_at=times,
    choices=st.lists(keys, max_size=3).map(tuple),
    outcome=st.sampled_from(Outcome),
    launched=st.booleans(),
    started_at=st.none() | times,
    stop_asked_at=st.none() | times,
    stop_sent=st.booleans(),
    freed_for=st.none() | names,
    saved_at=st.none() | times,
    saves_every=st.none() | spans,
    interruptions=st.integers(0, 9),
    reclaimed_at=st.none() | times,
    warm_until=st.none() | times,
    ended_at=st.none() | times,
    reason=st.none() | texts,
    instance_type=texts,
    members=st.lists(st.builds(Member, **MEMBER), max_size=3).map(tuple),
    joined=st.integers(0, 99),
    resizing=st.none() | st.builds(Resizing, **RESIZING),
    sized_at=st.none() | times,
    served=st.floats(0, 1e12),
    resizes=st.integers(0, 99),
    faulty_since=st.none() | times,
    wanted=st.integers(0, 99),
    base_ended_at=st.none() | times,
    called_at=st.none() | times,
    stop_called_at=st.none() | times,
    refused=texts,
    launched_at=st.none() | times,
    stopped_outside=st.booleans(),
    end_reported_at=st.none() | times,
    successor=texts,
    base_lost=st.none() | texts,
    given_up=st.booleans(),
    restarts=st.integers(0, 99),
    given=st.integers(0, 999),
    releases=st.lists(st.builds(Release, times, st.integers(0, 999)), max_size=3).map(tuple),
    turned_down=st.dictionaries(keys, times, max_size=2),
    unknown=added_members,
)
attempts = st.builds(Attempt, **ATTEMPT)
TOTALS = dict[str, st.SearchStrategy[Any]](
    outcomes=st.dictionaries(st.sampled_from(Outcome), st.integers(1, 9_999), max_size=4),
    began_at=st.none() | times,
    at_work=st.floats(0, 1e12),
    longest=st.floats(0, 1e12),
    served=st.floats(0, 1e12),
    restarts=st.integers(0, 99),
    saves_every=st.none() | spans,
    full=st.lists(times, max_size=3).map(tuple),
)
preemption_overrides = st.builds(
    PreemptionOverrides,
    min_runtime=st.none() | spans,
    cooldown=st.none() | spans,
    delay=st.none() | spans,
    max_preemptions=st.none() | st.integers(0, 99),
)
counts = st.dictionaries(st.sampled_from(FailureClass), st.integers(0, 99), max_size=4)
changes = st.builds(
    Change,
    at=times,
    before=st.none() | st.sampled_from(JobState),
    after=st.sampled_from(JobState),
    reason=texts,
    attempt=st.none() | st.integers(1, 99),
    size=st.none() | st.integers(1, 99),
)
gib = st.integers(0, 999_999).map(lambda tenths: tenths / 10)
resources = st.builds(
    Resources,
    accelerators=st.integers(0, 1_000),
    accelerator_memory_gib=gib,
    vcpus=st.integers(0, 10_000),
    memory_gib=gib,
    accelerator=st.sampled_from(["", "nvidia", "aws"]),
)
demands = st.builds(
    Demand, st.lists(units, min_size=1, max_size=3).map(tuple), queue_selects_pool=st.booleans()
) | st.builds(
    Demand,
    # No pool may have what is asked for.
    st.lists(units, max_size=3).map(tuple),
    queue_selects_pool=st.just(True),
    resources=resources,
    instances=st.integers(1, 1_000),
    listed=st.integers(0, 3),
)
SPEED = dict[str, st.SearchStrategy[Any]](
    instances=st.integers(1, 1_000),
    rate=st.floats(1e-9, 1e12),
    reports=st.integers(1, 8),
    latest=st.lists(st.floats(1e-9, 1e12), max_size=3).map(tuple),
    measured_at=times,
)
JOB = dict[str, st.SearchStrategy[Any]](
    name=names,
    entry_time=times,
    priority=priorities,
    demand=demands,
    digest=texts,
    state=st.sampled_from(JobState),
    version=st.integers(1, 10**9),
    share=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    preemptible=st.booleans(),
    max_runtime=spans,
    max_pending=st.none() | spans,
    keep_alive=st.booleans(),
    warm_pool_key=texts,
    submitted_by=st.none() | texts,
    attempt=st.none() | attempts,
    past=st.lists(attempts, max_size=2).map(tuple),
    attempt_totals=st.builds(AttemptTotals, **TOTALS),
    reservation=st.none() | st.builds(Reservation, units=units, until=times),
    retry_at=st.none() | times,
    capacity_failures=st.integers(0, 99),
    stop_requested=st.booleans(),
    failure=st.none() | texts,
    ended_at=st.none() | times,
    history=st.lists(changes, max_size=4).map(tuple),
    container_image=texts,
    checkpointed=st.booleans(),
    preemption_overrides=preemption_overrides,
    not_before=st.none() | times,
    deadline=st.none() | times,
    after=st.lists(names, max_size=3, unique=True).map(tuple),
    if_parent_fails=st.sampled_from(ParentRule),
    group=st.none() | keys,
    max_concurrent=st.none() | st.integers(1, 99),
    retries=counts,
    failures=counts,
    held_by=st.none() | texts,
    infeasible=st.booleans(),
    callback=st.sampled_from(["", "task", "step"]),
    notify=st.lists(st.sampled_from(NOTIFY_WORDS), unique=True).map(tuple),
    elastic=st.none() | st.builds(Elastic, **ELASTIC),
    speeds=st.builds(Speeds, keys, st.lists(st.builds(Speed, **SPEED), max_size=3).map(tuple)),
    work=st.none() | st.builds(BatchWork, **BATCH_WORK),
    unknown=_added_to_jobs,
)
jobs = st.builds(Job, **JOB)
