"""Elastic jobs whose base SageMaker loses: the members carry on, and other members replace what is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import ADA, P5
from elastic_world import BY_DECREE, EAGER, ElasticWorld, elastic_request
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import FailureClass, Policy
from trainmaster.local.simulator import Profile
from trainmaster.service.change import cancel
from world import BRISK

pytestmark = pytest.mark.usefixtures("quiet")


def a_world(*, policy: Policy = EAGER, cap: int = 3, profile: Profile = BRISK, **arguments) -> ElasticWorld:
    return ElasticWorld(policy=policy, pools=f"{P5}={cap}", profile=profile, **arguments)


def runs_with(world: ElasticWorld, size: int) -> bool:
    return world.job("elastic").state is JobState.RUNNING and world.size("elastic") == size


def at_work(world: ElasticWorld) -> bool:
    attempt = world.job("elastic").attempt
    return attempt is not None and all(member.started_at for member in attempt.members)


def begun(world: ElasticWorld, size: int = 3, **more) -> None:
    more = {"max_instances": size, "training_seconds": 900} | more
    world.elastic("elastic", "members", **more)
    if world.api_context.store.settings().policy.resizes.enabled is False:
        world.run_until(lambda: world.job("elastic").state is JobState.RUNNING)
        if not runs_with(world, size):
            world.decreed["elastic"] = size
    world.run_until(lambda: runs_with(world, size) and at_work(world))


def replaced(world: ElasticWorld) -> bool:
    """Return whether a member has replaced the first base, and another member works."""
    return world.job("elastic").attempt.successor != "" and runs_with(world, 3) and at_work(world)


def reasons(world: ElasticWorld) -> list[str]:
    return [line.reason for line in world.job("elastic").history]


def member(number: int) -> str:
    return f"elastic-qstamp-1-m{number}"


def completed_at_once(world: ElasticWorld) -> None:
    """It completes as its first attempt, over no cap, and nothing stays."""
    world.run_until_ended("elastic")
    job = world.job("elastic")
    assert (job.state, [each.number for each in job.attempts]) == (JobState.COMPLETED, [1])
    assert ([*job.failures], job.preemptions) == ([FailureClass.SERVICE], 0)
    assert (world.doubles, world.torn, world.in_use()) == (set(), set(), {})


def test_the_members_carry_on_and_another_replaces_it_in_the_same_attempt():
    world = a_world()
    begun(world)
    world.simulator.fail("elastic")
    world.run_until(lambda: world.names("elastic") == [member(1), member(2), member(3)])
    world.run_until(lambda: runs_with(world, 3))
    assert world.training_jobs["elastic"]["TrainingJobStatus"] == "Failed"
    assert world.training_jobs[member(3)]["Environment"]["TRAINMASTER_RUN"] == "elastic"
    assert world.job("elastic").attempt.faulty_since is None
    completed_at_once(world)
    assert "resizes, 2 -> 3 instances: replaces a lost member" in reasons(world)
    assert world.peaks[P5] == 3


def test_a_second_loss_is_replaced_too():
    world = a_world()
    begun(world)
    world.simulator.fail("elastic")
    world.run_until(lambda: replaced(world))
    world.simulator.fail(member(1))
    world.run_until(lambda: world.names("elastic") == [member(2), member(3), member(4)])
    assert world.job("elastic").attempt.base_name == member(2)
    completed_at_once(world)


def test_without_a_replacement_it_continues_with_the_members():
    world = a_world(policy=BY_DECREE)
    begun(world)
    world.simulator.fail("elastic")
    world.run_until(lambda: reasons(world)[-1] == "continues with 2 of 3 instances")
    assert runs_with(world, 2)
    completed_at_once(world)


def test_where_sagemaker_has_no_instances_it_continues_with_the_members():
    world = a_world()
    begun(world)
    world.simulator.set_limit(P5, 2)
    world.simulator.fail("elastic")
    world.run_until(lambda: "continues with 2 of 3 instances" in reasons(world))
    completed_at_once(world)


def test_below_its_minimum_it_waits_for_the_replacement():
    world = a_world(cap=4)
    begun(world, 4, min_instances=3)
    world.simulator.fail("elastic")
    world.run_until(lambda: world.names("elastic") == [member(number) for number in (1, 2, 3, 4)])
    world.run_until(lambda: runs_with(world, 4))
    completed_at_once(world)


def test_below_its_minimum_without_instances_it_starts_again_later():
    world = a_world(cap=4)
    begun(world, 4, min_instances=3)
    world.simulator.set_limit(P5, 1)
    world.simulator.fail("elastic")
    world.run_until(lambda: world.job("elastic").state is JobState.PENDING, limit=300)
    job = world.job("elastic")
    assert (job.attempt.outcome, job.failures, world.in_use()) == (Outcome.FAILED, {FailureClass.SERVICE: 1}, {})
    assert "is stopped to start again: 1 of at least 3 instances are left" in reasons(world)
    world.simulator.set_limit(P5, 4)
    world.run_until_ended("elastic")
    assert [each.outcome for each in world.job("elastic").attempts][-1] is Outcome.COMPLETED


def test_below_its_minimum_it_does_not_wait_longer_than_its_nodes_do():
    world = a_world(cap=4, profile=replace(BRISK, pending_seconds=50_000))
    begun(world, 4, min_instances=3)
    world.simulator.set_capacity(P5, 1)
    world.simulator.fail("elastic")
    lost = world.now()
    world.run_until(lambda: world.job("elastic").state is JobState.PENDING)
    assert 480 < (world.now() - lost).total_seconds() <= 600
    assert world.job("elastic").failures == {FailureClass.SERVICE: 1}


def test_a_better_job_takes_what_is_lost_and_the_members_carry_on():
    world = a_world(policy=EAGER)
    begun(world)
    world.submit("urgent", count=1, priority=5, training_seconds=60)
    world.simulator.fail("elastic")
    world.run_until_ended("urgent")
    world.run_until(lambda: runs_with(world, 3))
    completed_at_once(world)


def test_preempted_afterwards_it_stops_as_a_whole_and_resumes():
    world = a_world()
    begun(world, training_seconds=600)
    world.simulator.fail("elastic")
    world.run_until(lambda: replaced(world))
    world.submit("urgent", count=3, priority=5, training_seconds=100)
    world.run_until(lambda: world.job("urgent").state is JobState.RUNNING)
    assert (world.job("elastic").state, world.names("elastic")) == (JobState.PREEMPTED, [])
    world.run_until_ended("urgent", "elastic")
    job = world.job("elastic")
    assert [each.outcome for each in job.attempts] == [Outcome.PREEMPTED, Outcome.COMPLETED]
    assert (job.failures, world.peaks[P5]) == ({FailureClass.SERVICE: 1}, 3)


@pytest.mark.parametrize("after", [0, 10, 30, 60])
def test_cancelled_afterwards_all_of_it_stops(after):
    world = a_world()
    begun(world)
    world.simulator.fail("elastic")
    world.run(after)
    cancel(world.api_context, ADA, "elastic")
    world.run_until_ended("elastic")
    assert (world.job("elastic").state, world.in_use()) == (JobState.STOPPED, {})


def test_a_stop_of_the_new_base_in_the_console_ends_the_job():
    world = a_world()
    begun(world)
    world.simulator.fail("elastic")
    world.run_until(lambda: replaced(world))
    world.simulator.call("StopTrainingJob", TrainingJobName=member(1))
    world.run_until_ended("elastic")
    assert (world.job("elastic").state, world.in_use()) == (JobState.STOPPED, {})


def test_the_loss_is_found_without_any_event():
    world = a_world(events=lambda number, event: [])
    begun(world)
    world.simulator.fail("elastic")
    world.run_until(lambda: world.job("elastic").attempt.base_name == member(1))
    completed_at_once(world)


def test_its_warm_pool_counts_until_it_ends():
    world = a_world(cap=4)
    world.submit_request(keeping_warm())
    world.run_until(lambda: runs_with(world, 3) and at_work(world))
    world.simulator.fail("elastic")
    world.run_until_ended("elastic")
    assert world.job("elastic").state is JobState.COMPLETED
    assert world.peaks[P5] <= 4


def keeping_warm():
    request = elastic_request("elastic", "members", max_instances=3, training_seconds=600)
    return request | {"ResourceConfig": request["ResourceConfig"] | {"KeepAlivePeriodInSeconds": 600}}
