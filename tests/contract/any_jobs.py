"""Hypothesis strategies: any job that could be stored, in any state, with any text that a row can hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from trainmaster.domain.capacity import Demand
from trainmaster.domain.job import Attempt, Change, Hold, Job, JobState, Outcome

texts = st.text(max_size=20)
keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
names = st.from_regex(r"[a-zA-Z0-9](-{0,2}[a-zA-Z0-9]){0,20}", fullmatch=True)
times = st.integers(0, 4 * 10**15).map(lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))
spans = st.timedeltas(timedelta(0), timedelta(days=365))
units = st.dictionaries(keys, st.integers(1, 1_000), min_size=1, max_size=3)
priorities = st.integers(-1_000_000, 1_000_000)

attempts = st.builds(
    Attempt,
    number=st.integers(1, 99),
    training_job_name=names,
    units=units,
    created_at=times,
    choices=st.lists(keys, max_size=3).map(tuple),
    outcome=st.sampled_from(Outcome),
    launched=st.booleans(),
    started_at=st.none() | times,
    stop_asked_at=st.none() | times,
    stop_sent=st.booleans(),
    freed_for=st.none() | names,
    ended_at=st.none() | times,
    reason=st.none() | texts,
)
changes = st.builds(
    Change,
    at=times,
    before=st.none() | st.sampled_from(JobState),
    after=st.sampled_from(JobState),
    reason=texts,
    attempt=st.none() | st.integers(1, 99),
)
jobs = st.builds(
    Job,
    name=names,
    entry_time=times,
    priority=priorities,
    demand=st.lists(units, min_size=1, max_size=3).map(lambda alternatives: Demand(tuple(alternatives))),
    digest=texts,
    state=st.sampled_from(JobState),
    version=st.integers(1, 10**9),
    share=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    preemptible=st.booleans(),
    max_runtime=spans,
    max_pending=st.none() | spans,
    keep_alive=st.booleans(),
    submitted_by=st.none() | texts,
    attempt=st.none() | attempts,
    past=st.lists(attempts, max_size=2).map(tuple),
    hold=st.none() | st.builds(Hold, units=units, until=times),
    retry_at=st.none() | times,
    returns=st.integers(0, 99),
    stop_requested=st.booleans(),
    failure=st.none() | texts,
    ended_at=st.none() | times,
    history=st.lists(changes, max_size=4).map(tuple),
)
