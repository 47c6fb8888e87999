"""Jobs that cannot start now: however many of them wait, they hide no other job of their lane."""

from __future__ import annotations

import json

import pytest
from botocore.awsrequest import AWSResponse

from builders import ADA, P5, Caller
from trainmaster.domain.capacity.read_limits import FIRST
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Order, Policy, Share
from trainmaster.service.capacity.pools import set_pools
from trainmaster.service.submit import submit
from world import BRISK, World, a_request

SWEEP = 3 * FIRST
SHARED = {"Key": "trainmaster:share", "Value": "team"}
CREATE = "before-call.sagemaker.CreateTrainingJob"
FORBIDDEN = "arn:aws:iam::111122223333:role/forbidden"


def submit_as(world, user, name, **fields):
    request = a_request(name, **fields)
    request["Tags"].append(SHARED)
    submit(world.api_context, Caller(f"arn:aws:iam::111122223333:user/{user}"), world.admission, request)


class Refusing:
    """SageMaker where the manager may not pass a role; counts the starts that it refuses."""

    def __init__(self, world):
        self.count, self.events = 0, world.sagemaker.meta.events
        self.events.register(CREATE, self)

    def __call__(self, params, **_):
        if json.loads(params["body"]).get("RoleArn") != FORBIDDEN:
            return None
        self.count += 1
        error = {"Code": "AccessDeniedException", "Message": f"not authorized to perform iam:PassRole on {FORBIDDEN}"}
        parsed = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}
        return AWSResponse("https://refused.test", 400, {}, None), parsed

    def permit(self):
        self.events.unregister(CREATE, self)


def running(world):
    return {job.name for job in world.api_context.store.read_snapshot().active if job.state is JobState.RUNNING}


@pytest.mark.parametrize("order", Order)
def test_behind_the_sweep_of_a_user_at_his_limit_others_start_at_once(order):
    policy = Policy(order=order, shares={"team": Share(name="team", max_per_user={P5: 2})})
    world = World(pools=f"{P5}=4", policy=policy, profile=BRISK)
    for number in range(SWEEP):
        submit_as(world, "ada", f"sweep{number:03}", training_seconds=4_000)
    submit_as(world, "bob", "the-only-one", training_seconds=4_000)
    world.run(60)
    assert running(world) == {"sweep000", "sweep001", "the-only-one"}


def sweep_of_a_forbidden_role(world, **fields):
    for number in range(SWEEP):
        world.submit_request(a_request(f"sweep{number:03}", training_seconds=600, **fields) | {"RoleArn": FORBIDDEN})


@pytest.mark.parametrize("order", Order)
def test_behind_a_sweep_whose_role_is_refused_others_start_at_once(order):
    world = World(pools=f"{P5}=4", policy=Policy(order=order), profile=BRISK)
    refusing = Refusing(world)
    sweep_of_a_forbidden_role(world)
    world.submit("the-only-one", training_seconds=4_000)
    world.run(60)
    assert running(world) == {"the-only-one"}
    world.run(540)
    assert running(world) == {"the-only-one"}
    assert refusing.count <= 2 * 10, "a minute, one that was refused before and one that was not"
    assert all(world.job(f"sweep{number:03}").state is JobState.PENDING for number in range(SWEEP))


def test_a_refused_sweep_starts_as_soon_as_its_role_is_permitted():
    world = World(pools=f"{P5}=4", profile=BRISK)
    refusing = Refusing(world)
    sweep_of_a_forbidden_role(world)
    world.run(600)
    refusing.permit()
    world.run(120)
    assert len(running(world)) == 4
    world.run_until_ended(*(f"sweep{number:03}" for number in range(SWEEP)))


def test_a_refused_kind_preempts_no_job_and_keeps_no_instances_idle():
    world = World(pools=f"{P5}=4", profile=BRISK)
    Refusing(world)
    small = [f"small{number}" for number in range(12)]
    for name in small:
        world.submit(name, training_seconds=900)
    world.run(60)
    sweep_of_a_forbidden_role(world, priority=9, count=4)
    world.run_until_ended(*small, limit=3 * 1_000)
    attempts = [world.job(name).attempt.number for name in small]
    assert sorted(attempts) == [1] * 8 + [2] * 4, "only the first of the sweep, of which nothing was known, preempts"


@pytest.mark.parametrize("order", Order)
def test_behind_a_sweep_that_sagemaker_rejects_others_start_at_once(order):
    world = World(pools=f"{P5}=4", policy=Policy(order=order), profile=BRISK)
    world.simulator.faults.inject("CreateTrainingJob", "ValidationException", times=SWEEP)
    for number in range(SWEEP):
        world.submit(f"sweep{number:03}")
    world.submit("the-only-one", training_seconds=4_000)
    world.run(60)
    assert running(world) == {"the-only-one"}
    assert all(world.job(f"sweep{number:03}").state is JobState.FAILED for number in range(SWEEP))


@pytest.mark.parametrize("order", Order)
def test_behind_a_sweep_for_which_the_pool_is_too_small_others_start_at_once(order):
    world = World(pools=f"{P5}=7", policy=Policy(order=order), profile=BRISK)
    for number in range(SWEEP):
        world.submit(f"sweep{number:03}", count=7)
    world.submit("the-only-one", count=5, training_seconds=4_000)
    set_pools(world.api_context, ADA, [Pool(P5, 5)])
    world.run(60)
    assert running(world) == {"the-only-one"}


@pytest.mark.parametrize("order", Order)
def test_behind_a_sweep_for_which_the_quota_is_too_small_others_start(order):
    world = World(pools=f"{P5}=8", policy=Policy(order=order), profile=BRISK, limits={P5: 4})
    for number in range(SWEEP):
        world.submit(f"sweep{number:03}", count=7)
    world.submit("the-only-one", count=4, training_seconds=4_000)
    world.run(600)
    assert running(world) == {"the-only-one"}


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("held", [0, 4], ids=["never", "not now"])
def test_behind_a_sweep_that_the_share_may_not_have_others_start_at_once(order, held):
    policy = Policy(order=order, shares={"team": Share(name="team", max={P5: 5 + held})})
    world = World(pools=f"{P5}=16", policy=policy, profile=BRISK)
    if held:
        submit_as(world, "eve", "holder", count=held, training_seconds=40_000)
        world.run(60)
    for number in range(SWEEP):
        submit_as(world, "ada", f"sweep{number:03}", count=7)
    submit_as(world, "bob", "the-only-one", count=4, training_seconds=4_000)
    world.run(60)
    assert running(world) - {"holder"} == {"the-only-one"}
