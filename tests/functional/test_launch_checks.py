"""The rules on callers apply again at each launch: the queue launches nothing for people who have left."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from builders import ADA, P5, ROLE
from elastic_world import BY_DECREE, ElasticWorld
from other_kind import a_batch
from trainmaster.domain.access.request_policy import RequestPolicy
from trainmaster.domain.jobs.job import JobState
from trainmaster.local.memory.permissions import Grant, MemoryPermissions
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.launch_check import LaunchNotAllowedError, check_launch
from trainmaster.service.change import change
from world import World

pytestmark = pytest.mark.usefixtures("quiet")
JOBS = "arn:aws:sagemaker:us-east-1:111122223333:training-job/"
GONE, SILENT = (), (Grant(answer=None),)


class Checks:
    """A world whose manager asks about callers; a test changes the answers."""

    def __init__(self, **options):
        super().__init__(**options)
        self.permissions = MemoryPermissions()
        self.rules = CallerRules(allowed_roles=("*",), permissions=self.permissions, training_jobs=JOBS)

    def application(self):
        application = super().application()
        application.__dict__["caller_rules"] = self.rules
        return application


class CheckedWorld(Checks, World):
    pass


class CheckedElasticWorld(Checks, ElasticWorld):
    pass


def held(world, name="job1"):
    job = world.job(name)
    assert job.state is JobState.HELD, job.state
    return job.held_by


def test_a_submitter_who_may_no_longer_create_it_launches_nothing():
    world = CheckedWorld()
    world.permissions.grants = [Grant(action="iam:PassRole")]
    world.submit("job1")
    world.run(700)
    assert "may not use sagemaker:CreateTrainingJob" in held(world)
    assert (world.opened, world.job("job1").units) == ([], {})


def test_a_later_attempt_is_checked_like_the_first():
    world = CheckedWorld(pools=f"{P5}=1")
    world.submit("job1", training_seconds=900)
    world.run(200)
    world.permissions.grants = [Grant(resource=f"{JOBS}job2"), Grant(action="iam:PassRole", resource=ROLE)]
    world.submit("job2", priority=9, training_seconds=60)
    world.run_until_ended("job2")
    world.run(200)
    assert "may not use" in held(world)
    assert world.opened == ["job1", "job2"]


def test_a_released_job_is_checked_again_and_continues():
    world = CheckedWorld()
    world.permissions.grants = []
    world.submit("job1", training_seconds=60)
    world.run(10)
    change(world.api_context, ADA, "job1", hold=False)
    world.run(10)
    assert held(world)
    world.permissions.grants = [Grant()]
    change(world.api_context, ADA, "job1", hold=False)
    world.run_until_ended("job1")
    assert world.job("job1").state is JobState.COMPLETED


@pytest.mark.parametrize("rules", [{"allowed_roles": ()}, {"request_policy": RequestPolicy(network_isolation=True)}])
def test_a_deployment_that_has_become_stricter_launches_nothing_against_its_rules(rules):
    world = CheckedWorld()
    world.rules = replace(world.rules, **rules)
    world.submit("job1")
    world.run(10)
    assert "the queue (" in held(world)
    assert world.opened == []


def test_a_silent_iam_stops_no_launch_on_the_day_of_the_submission():
    world = CheckedWorld()
    world.permissions.grants = list(SILENT)
    world.submit("job1", training_seconds=60)
    world.run_until_ended("job1")
    assert world.job("job1").state is JobState.COMPLETED


def test_later_the_job_waits_until_iam_answers():
    world = CheckedWorld(pools=f"{P5}=1")
    world.submit("long", training_seconds=90_000)
    world.submit("job1", priority=-1, training_seconds=60)
    world.permissions.grants = list(SILENT)
    world.run(90_500, step=3600)
    world.run_until_ended("long")
    world.run(300)
    job = world.job("job1")
    assert (job.state, world.opened) == (JobState.PENDING, ["long"])
    assert "not permitted: " in job.history[-1].reason
    world.permissions.grants = [Grant()]
    world.run_until_ended("job1", limit=8000)


def test_a_repeated_launch_that_was_accepted_stands():
    world = CheckedWorld()
    world.simulator.faults.inject("CreateTrainingJob", "InternalFailure", executed=True)
    world.submit("job1", training_seconds=60)
    world.settle()
    world.permissions.grants = []
    world.run_until_ended("job1")
    assert (world.job("job1").state, world.opened) == (JobState.COMPLETED, ["job1"])


def test_one_that_may_have_been_accepted_keeps_its_units_and_is_then_held():
    world = CheckedWorld()
    world.simulator.faults.inject("CreateTrainingJob", "InternalFailure")
    world.submit("job1", training_seconds=60)
    world.settle()
    world.permissions.grants = []
    world.run(400)
    assert world.job("job1").units == {P5: 1}
    world.run(400)
    assert held(world)
    assert (world.opened, world.job("job1").units) == ([], {})


def test_no_member_is_launched_either_and_the_job_goes_on():
    world = CheckedElasticWorld(policy=BY_DECREE, pools=f"{P5}=4")
    world.elastic("elastic", "members", max_instances=3, training_seconds=900)
    world.run_until(lambda: world.job("elastic").state is JobState.RUNNING)
    world.permissions.grants = []
    world.decreed["elastic"] = 2
    world.run(300)
    assert (world.names("elastic"), world.job("elastic").state) == (["elastic"], JobState.RUNNING)


def test_the_questions_name_the_principal_and_the_job():
    world = CheckedWorld()
    world.submit("job1", training_seconds=60)
    world.run_until_ended("job1")
    asked = [(caller, action, resource) for caller, action, resource, _ in world.permissions.asked]
    ada = ADA.principal
    assert asked == [(ada, "iam:PassRole", ROLE), (ada, "sagemaker:CreateTrainingJob", f"{JOBS}job1")]


@pytest.mark.parametrize("objection", [None, "its submitter has left"])
def test_a_job_of_another_kind_is_checked_by_its_kind(objection):
    world = CheckedWorld()
    world.rules = replace(world.rules, allowed_roles=())
    context = replace(
        world.application().manager_context, kinds={"batch": SimpleNamespace(objection=lambda _: objection)}
    )
    with nullcontext() if objection is None else pytest.raises(LaunchNotAllowedError, match="has left"):
        check_launch(context, a_batch(), {})
