"""Ended jobs are purged by their owners and by admins; others, and jobs that have not ended, are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api_world import ALICE, ApiWorld
from builders import NOW, ROLE, a_cancelled_job, a_held_job, a_job, a_request, a_running_job
from trainmaster.domain.access.caller import principal_of
from trainmaster.domain.errors import Throttled
from trainmaster.domain.jobs.listing import Filter
from trainmaster.service.auditing.retention import MAX_PURGED, PURGE_MINUTES, purge_expired, purge_is_due
from trainmaster.service.dependencies import sweep_is_due

ADMIN = "arn:aws:sts::111122223333:assumed-role/platform/eve"
BOB = "arn:aws:sts::111122223333:assumed-role/web/bob"


@pytest.fixture
def world():
    return ApiWorld(settings={"allowed_roles": (ROLE,), "admins": (principal_of(ADMIN),)})


def purge(world, name="job1", caller=ALICE):
    return world.event("DELETE", f"/jobs/{name}", query={"purge": "true"}, caller=caller)


def ended(name="job1"):
    return a_cancelled_job(name, now=NOW, submitted_by=principal_of(ALICE))


@pytest.mark.parametrize("caller", [ALICE, ADMIN])
def test_an_ended_job_is_purged_with_an_audit_entry(world, caller):
    world.seed(ended())
    reply = purge(world, caller=caller)
    assert (reply.status, reply.body["jobName"], reply.body["jobState"]) == (200, "job1", "cancelled")
    assert world.event("GET", "/jobs/job1", caller=ADMIN).status == 404
    assert world.event("GET", "/jobs", caller=ADMIN).body["jobs"] == []
    (entry,) = world.event("GET", "/audit", caller=ADMIN).body["entries"]
    assert (entry["action"], entry["job"], entry["arn"], entry["after"]) == ("purge", "job1", caller, {})
    assert entry["before"]["state"] == "cancelled"


def test_others_cannot_purge_a_job(world):
    world.seed(ended())
    assert purge(world, caller=BOB).kind == (403, "AccessDenied", "name")
    assert world.memory.find("job1") is not None


@pytest.mark.parametrize("state", [a_job, a_running_job, a_held_job])
def test_a_job_that_has_not_ended_is_refused_and_goes_on(world, state):
    job = state("job1", submitted_by=principal_of(ALICE))
    world.seed(job)
    assert purge(world).kind == (409, "IllegalTransition", "jobState")
    assert world.memory.find("job1") == job


def test_a_job_for_whose_end_others_wait_is_refused(world):
    world.seed(ended(), a_held_job("job2", after=("job1",)))
    assert purge(world).kind == (409, "IllegalTransition", "name")


def test_a_purged_job_is_not_submitted_again_and_cannot_be_a_parent(world):
    world.seed(ended())
    purge(world)
    assert world.post("/add-job", a_request("job1")).kind == (409, "NameTaken", "TrainingJobName")
    child = a_request("job2", Tags=[{"Key": "trainmaster:after", "Value": "job1"}])
    assert world.post("/add-job", child).kind == (400, "InvalidRequest", "Tags[0].Value")


def test_purging_twice_finds_nothing_the_second_time(world):
    world.seed(ended())
    assert [purge(world, caller=ADMIN).status for _ in range(2)] == [200, 404]


# ---------------------------------------------------------------- retention

WEEK = timedelta(days=7)


def left(world):
    return sorted(job.name for job in world.memory.list_jobs(Filter(), limit=1000).jobs)


def test_jobs_beyond_their_retention_are_deleted_and_no_others(world):
    world.seed(ended("old"), a_cancelled_job("new", now=NOW + timedelta(days=1)))
    world.seed(*(state(state.__name__.replace("_", "-")) for state in (a_job, a_running_job, a_held_job)))
    purge_expired(world.memory, NOW + WEEK + timedelta(seconds=1), WEEK)
    assert left(world) == ["a-held-job", "a-job", "a-running-job", "new"]
    purge_expired(world.memory, NOW + 100 * WEEK, WEEK)
    assert left(world) == ["a-held-job", "a-job", "a-running-job"]


def test_a_job_that_others_wait_for_is_kept(world):
    world.seed(ended("parent"), a_held_job("child", after=("parent",)))
    purge_expired(world.memory, NOW + 2 * WEEK, WEEK)
    assert left(world) == ["child", "parent"]


def test_many_jobs_are_deleted_in_rounds(world):
    world.seed(*(ended(f"job{number}") for number in range(MAX_PURGED + 5)))
    purge_expired(world.memory, NOW + 2 * WEEK, WEEK)
    assert len(left(world)) == 5


def test_a_fault_of_one_job_and_an_error_of_aws_end_no_pass(world):
    world.seed(ended("job1"), ended("job2"))
    world.store.failing["purge"] = Throttled("busy")
    purge_expired(world.store, NOW + 2 * WEEK, WEEK)
    world.store.failing["purge"] = KeyError("a fault of ours")
    faults = []
    purge_expired(world.store, NOW + 2 * WEEK, WEEK, faults)
    assert (faults, left(world)) == (["job1", "job2"], ["job1", "job2"])


def test_a_round_is_due_once_in_ten_minutes_and_in_no_minute_of_the_sweep():
    minutes = [NOW + timedelta(minutes=number) for number in range(60)]
    assert sum(map(purge_is_due, minutes)) == 60 // PURGE_MINUTES
    assert not [minute for minute in minutes if purge_is_due(minute) and sweep_is_due(minute)]
