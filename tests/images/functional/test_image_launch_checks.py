"""`ImageAccess` applies again at each launch: nothing starts for callers who may not use what it needs."""

from __future__ import annotations

import pytest

from builders import ADA
from image_runs_world import QUEUES, ImageRunsWorld
from image_world import an_image_request
from trainmaster.domain.jobs.job import JobState
from trainmaster.service.change import change

pytestmark = pytest.mark.usefixtures("quiet")
ANN = "arn:aws:sts::111122223333:assumed-role/vision"
RULES = "arn:aws:iam::111122223333:role/vision model:ships image:s3://images/* output:s3://results/*"


class AccessWorld(ImageRunsWorld):
    """A world whose `ImageAccess` a test changes."""

    def allow(self, rules: str) -> None:
        self.job_kinds = {"image": {**QUEUES["image"], "IMAGE_ACCESS": rules}}

    def ask(self, name: str, count: int = 2, *, submitted_by: str | None = ANN, **fields) -> None:
        self.enter(name, count, request=an_image_request(name), submitted_by=submitted_by, **fields)


@pytest.fixture
def world():
    return AccessWorld()


def test_a_job_whose_submitter_may_use_its_resources_is_launched(world):
    world.allow(RULES)
    world.ask("scene")
    world.run_until_ended("scene")
    assert world.job("scene").state is JobState.COMPLETED


@pytest.mark.parametrize("rules", [RULES.replace("vision", "maps"), RULES.replace("model:ships", "model:planes")])
def test_a_deployment_that_has_become_stricter_holds_the_job_until_a_person_releases_it(world, rules):
    world.allow(rules)
    world.ask("scene")
    world.run(10)
    job = world.job("scene")
    assert (job.state, job.units, world.begun) == (JobState.HELD, {}, 0)
    assert f"{ANN} may not use the model ships through this queue" in job.held_by
    change(world.api_context, ADA, "scene", hold=False)
    world.run(10)
    assert world.job("scene").state is JobState.HELD
    world.allow(RULES)
    change(world.api_context, ADA, "scene", hold=False)
    world.run_until_ended("scene")
    assert world.job("scene").state is JobState.COMPLETED


def test_several_that_start_together_are_each_checked(world):
    world.allow(RULES)
    world.ask("ours")
    world.ask("theirs", submitted_by="arn:aws:sts::111122223333:assumed-role/maps")
    world.ask("unknown", submitted_by=None)
    world.run_until_ended("ours")
    assert world.states("ours", "theirs", "unknown") == {"ours": "completed", "theirs": "held", "unknown": "held"}


def test_a_later_attempt_is_checked_like_the_first():
    world = AccessWorld(takes=4, seconds=60)
    world.ask("scene", 6)
    world.run(30)
    world.allow(RULES)
    world.ask("urgent", 6, priority=9)
    world.allow("* model:none")
    world.run(2000)
    assert world.states("scene", "urgent") == {"scene": "held", "urgent": "held"}


def test_a_run_that_an_earlier_pass_has_created_goes_on(world):
    world.ask("scene", 2)
    world.run(5)
    assert world.begun
    world.allow("* model:none")
    world.run_until_ended("scene")
    assert world.job("scene").state is JobState.COMPLETED
