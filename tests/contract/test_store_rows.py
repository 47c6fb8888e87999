"""Rows, keys and cursors: whatever goes in comes out, and keys sort as jobs do."""

from __future__ import annotations

import json
import time
from dataclasses import fields, replace

import pytest
from any_jobs import ATTEMPT, BUDGET, ELASTIC, JOB, MEMBER, RESIZING, TOTALS, jobs, priorities, times
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import builders as b
from other_kind import a_batch
from trainmaster.adapters.dynamodb.codec import ATTEMPT_FIELDS, JOB_FIELDS, ROW_FIELDS
from trainmaster.adapters.dynamodb.control.schema import SCHEMA
from trainmaster.adapters.dynamodb.rows import (
    finished_at,
    history_of,
    history_row,
    job_of,
    job_text,
    keyed,
    lane_end,
    lane_key,
    lane_of,
    place,
    row_of,
    waiting_key,
)
from trainmaster.adapters.dynamodb.settings import SETTINGS, Deployed
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook, Member, Resizing, RestartBudget
from trainmaster.domain.errors import InvalidRequest, TooLarge
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.listing import Cursor
from trainmaster.domain.policy.settings import Policy
from trainmaster.ports.store import QueueSettings

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_any_job_has_every_member_that_a_job_can_have():
    parts = (
        (Elastic, ELASTIC),
        (RestartBudget, BUDGET),
        (Member, MEMBER),
        (Resizing, RESIZING),
        (AttemptTotals, TOTALS),
    )
    for kind, strategies in ((Job, JOB), (Attempt, ATTEMPT), *parts):
        assert strategies.keys() == {each.name for each in fields(kind) if each.init}


def test_every_field_of_a_job_and_of_an_attempt_is_in_the_codecs_tables_once():
    of_a_job, of_an_attempt = ({field.name for field in fields(kind)} for kind in (Job, Attempt))
    assert {stored.field for stored in JOB_FIELDS} == of_a_job - ROW_FIELDS - {"unknown"}
    assert {stored.field for stored in ATTEMPT_FIELDS} == of_an_attempt - {"number", "training_job_name", "unknown"}
    for table in (JOB_FIELDS, ATTEMPT_FIELDS):
        assert len({stored.key for stored in table}) == len(table)


@unhurried
@given(jobs)
def test_any_job_comes_back_from_its_row_as_it_was(job):
    assert job_of(row_of(job)) == job


@unhurried
@given(jobs)
def test_a_history_kept_apart_comes_back_as_it_was(job):
    """Its times count from the job's entry, which moves when a held job is let into the queue."""
    row = history_row(job, 0, job.history)
    assert history_of(row, b.at(1e6)) == job.history
    del row["entryTime"]
    assert history_of(row, job.entry_time) == job.history


@unhurried
@given(jobs)
def test_a_cursor_behind_any_job_comes_back_as_it_was(job):
    cursor = Cursor.behind(job)
    assert Cursor.read(cursor.text()) == cursor


@given(st.lists(st.tuples(priorities, times, st.text("ab-0", min_size=1, max_size=5)), min_size=2, max_size=8))
def test_keys_in_a_lane_sort_as_the_jobs_do(orders):
    ranked = [(-priority, entry, name) for priority, entry, name in orders]
    keys = [waiting_key("lane", order).encode() for order in ranked]
    assert sorted(keys) == [waiting_key("lane", order).encode() for order in sorted(ranked)]


@given(st.lists(st.tuples(times, st.text("ab-0", min_size=1, max_size=5)), min_size=2, max_size=8))
def test_keys_of_ended_jobs_sort_as_the_jobs_do(places):
    assert sorted(map(finished_at, places)) == [finished_at(place) for place in sorted(places)]


@unhurried
@given(jobs, jobs)
def test_a_lane_lies_between_its_ends_and_no_other_lane_does(one, other):
    one, other = replace(one, state=JobState.PENDING), replace(other, state=JobState.PENDING)
    lane = lane_key(one.lane)
    inside = lane < place(other)[1] < lane_end(lane)
    assert inside == (one.lane == other.lane)
    assert lane_of(row_of(other)) == lane_key(other.lane)


@pytest.mark.parametrize("priority", [1_000_001, -1_000_001])
def test_a_priority_that_keys_cannot_order_is_refused(priority):
    with pytest.raises(InvalidRequest):
        place(b.a_job(priority=priority))


def test_a_lane_too_long_for_a_key_is_refused():
    longest = place(b.a_job("j" * 63, share="s" * 685))[1]
    assert 780 < len(longest.encode()) < 1_024
    with pytest.raises(TooLarge) as caught:
        place(b.a_job(share="s" * 700))
    assert caught.value.field == "ResourceConfig"


def test_a_services_name_too_long_for_a_key_is_refused_by_the_field_that_names_it():
    with pytest.raises(TooLarge) as caught:
        place(a_batch(service="m" * 700))
    assert caught.value.field == "service"


def test_unknown_attributes_of_a_newer_version_are_kept():
    row = row_of(b.a_job("job1"))
    row["added"] = {"S": "later"}
    row["job"] = {"S": job_text(row).replace("{", '{"added":"later",', 1)}
    job = job_of(row)
    assert replace(job, unknown={}) == b.a_job("job1")
    again = row_of(replace(job, priority=7))
    assert again["added"] == {"S": "later"}
    assert json.loads(job_text(again))["added"] == "later"


def test_unknown_members_of_sizes_and_resizes_are_kept_where_they_have_names():
    budget = RestartBudget(max_restarts=3)
    job = b.a_running_job("job1", elastic=Elastic(min_instances=1, max_instances=3, hook=Hook.MEMBERS, budget=budget))
    job = resizing.resize(job, 2, Cause.GROW, b.at(10), until=b.at(20))
    row = row_of(job)
    text = job_text(row)
    for known, added in (
        ('"elastic":{', '"added":[1],'),
        ('"budget":{', '"added":"later",'),
        ('"attempt":{', '"added":null,'),
    ):
        assert known in text
        text = text.replace(known, known + added)
    for known, added in (
        ('"members":[[1,10,0', ',null,null,null,null,"later"'),
        ('"resizing":[1,2,"grow",10,20,0,null', ",7"),
    ):
        assert known in text
        text = text.replace(known, known + added)
    row["job"] = {"S": text}
    read = job_of(row)
    assert replace(read, unknown={}, attempt=replace(read.attempt, unknown={})) == job
    again = json.loads(job_text(row_of(read)))
    assert again["elastic"]["added"] == [1]
    assert again["elastic"]["budget"]["added"] == "later"
    assert again["attempt"]["added"] is None


def test_a_thousand_rows_are_read_in_an_instant():
    rows = [row_of(b.a_running_job(f"job{n:04d}", entry_time=b.at(-1.5))) for n in range(1_000)]
    began = time.process_time()
    assert len([job_of(row) for row in rows]) == 1_000
    assert time.process_time() - began < 0.5, "it takes about 15 ms on a quiet machine"


def test_a_settings_row_of_before_pools_had_kinds_and_there_was_a_policy_is_still_read():
    """As version 0.1 wrote it: schema 0."""
    row = keyed(SETTINGS, pools='[["ml.p5.48xlarge", 2], ["ml.g5.2xlarge", 8, true]]', version=7, parameter="two")
    row = SCHEMA.upgraded(row)
    deployed = Deployed({}, "two", Policy(reservations=3))
    pools = b.pools_of(Pool(b.P5, 2), b.a_pool(b.G5, 8, count_external=True))
    assert deployed.in_force(row) == QueueSettings(pools, deployed.policy, 7, deployed.policy)


def test_stored_pools_are_in_force_for_functions_that_do_not_know_the_pools_parameter():
    """Those of other kinds of jobs: an export cannot change while another stack imports it (ADR 19)."""
    row = keyed(SETTINGS, pools='[{"name":"ml.p5.48xlarge","cap":2}]', version=7, parameter="two")
    pools, nine = b.pools_of(Pool(b.P5, 2)), b.pools_of(b.a_pool(cap=9))
    assert Deployed({}, "", Policy()).in_force(row).pools == pools
    assert Deployed(nine, "nine", Policy()).in_force(row).pools == nine
