"""Ended jobs are purged by their owners and by admins; others, and jobs that have not ended, are refused."""

from __future__ import annotations

import pytest

from api_world import ALICE, ApiWorld
from builders import NOW, ROLE, a_cancelled_job, a_held_job, a_job, a_request, a_running_job
from trainmaster.domain.access.caller import principal_of

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
