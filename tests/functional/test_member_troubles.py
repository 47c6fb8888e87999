"""Members of one job never end a manager's pass: neither those that cannot be created, nor those that are gone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import ADA, P5
from elastic_world import BY_DECREE, EAGER, ElasticWorld
from trainmaster.domain.elastic.rendezvous import Node, RendezvousState, Role
from trainmaster.domain.elastic.sizes import Cause
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable, UnreadableRendezvous
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.service import resizing
from trainmaster.service.change import cancel
from trainmaster.service.observe import apply_observation, deleted
from trainmaster.service.run_pass import run_pass
from world import a_request


class Refusing:
    """A launcher that may not create members, for whatever reason."""

    def __init__(self, inner, trouble):
        self._inner, self._trouble = inner, trouble

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def create(self, job, attempt, request, *, retry=False):
        if "-m" in attempt.training_job_name:
            raise self._trouble("not now")
        return self._inner.create(job, attempt, request, retry=retry)


@pytest.mark.parametrize("trouble", [NotPermitted, Unavailable, Throttled])
def test_a_member_that_cannot_be_created_now_ends_no_pass(trouble):
    world = ElasticWorld(policy=EAGER, pools=f"{P5}=4")
    world.elastic("elastic", "members", max_instances=3, training_seconds=600)
    world.submit("after", priority=-1, training_seconds=600)
    application = world.application()
    application.__dict__["launcher"] = Refusing(application.launcher, trouble)
    report = run_pass(application.manager_context)
    assert report.throttled is (trouble is Throttled)
    assert report.started == (["elastic"] if trouble is Throttled else ["elastic", "after"])
    assert not any(member.launched for member in world.job("elastic").attempt.members)
    world.run_until(lambda: world.job("elastic").state is JobState.RUNNING and len(world.names("elastic")) == 3)
    assert world.job("elastic").attempt.size == 3


class Slow:
    """A rendezvous that takes so long to answer that another manager goes on meanwhile."""

    def __init__(self, inner, meanwhile):
        self._inner, self._meanwhile = inner, meanwhile

    def set(self, run, control):
        self._inner.set(run, control)

    def get(self, run):
        self._meanwhile()
        return RendezvousState(round=1, complete=True)


def test_a_slow_manager_leaves_members_alone_that_another_has_buried():
    world = ElasticWorld(policy=EAGER, pools=f"{P5}=4")
    world.elastic("elastic", "members", max_instances=3, training_seconds=4000)
    world.run_until(lambda: world.job("elastic").state is JobState.RUNNING and len(world.names("elastic")) == 3)
    running, now = world.job("elastic"), world.now()
    job = lifecycle.resize(running, 1, Cause.SHRINK, now, until=now + timedelta(minutes=5))
    assert world.api_context.store.transition([(running, job)])
    manager_context = world.application().manager_context
    buried = replace(
        manager_context, rendezvous=Slow(world.rendezvous, lambda: world.run_until(lambda: not members_of(world)))
    )
    assert resizing.advance(buried, job) == world.job("elastic")
    assert members_of(world) == ()


def test_a_departed_node_stays_drained_until_its_training_job_ends():
    """Else its container could join again while others are on their way out, and take the new world down with it."""
    world = ElasticWorld(policy=EAGER, pools=f"{P5}=4")
    world.elastic("elastic", "members", max_instances=3, training_seconds=4000)
    world.run_until(lambda: world.job("elastic").state is JobState.RUNNING and len(world.names("elastic")) == 3)
    running, now = world.job("elastic"), world.now()
    job = lifecycle.resize(running, 1, Cause.SHRINK, now, until=now + timedelta(minutes=5))
    assert world.api_context.store.transition([(running, job)])
    base, gone, stays = job.attempt.training_job_names
    nodes = [Node(training_job_name=name, host="algo-1", role=Role.MEMBER, rank=0) for name in (base, stays)]
    world.meeting.set_state("elastic", RendezvousState(round=2, complete=True, nodes=tuple(nodes)))
    manager_context = world.application().manager_context
    for _ in range(2):
        job = resizing.advance(manager_context, job)
        assert set(world.meeting.controls["elastic"].drain) == {gone, stays}
    assert [member.stop_sent for member in job.attempt.members] == [True, False]
    # SageMaker's report of its end removes it from the list.
    job = apply_observation(manager_context, job, deleted(gone))
    resizing.advance(manager_context, job)
    assert world.meeting.controls["elastic"].drain == (stays,)


def members_of(world):
    return world.job("elastic").attempt.members


class TestStrangers:
    """Another person's training job has the name of a member."""

    NAME = "elastic-qstamp-1-m1"

    def world(self):
        world = ElasticWorld(policy=BY_DECREE, pools=f"{P5}=4", events=lambda number, event: [])
        world.elastic("elastic", "members", max_instances=3, training_seconds=20_000)
        world.run_until(lambda: world.job("elastic").state is JobState.RUNNING)
        request = {**a_request(self.NAME, training_seconds=90_000), "Tags": []}
        world.simulator.call("CreateTrainingJob", **request)
        world.decreed["elastic"] = 2
        world.run_until(lambda: members_of(world))
        (member,) = members_of(world)
        assert (member.training_job_name, member.launched) == (self.NAME, False)
        return world

    def status(self, world):
        return world.simulator.call("DescribeTrainingJob", TrainingJobName=self.NAME)["TrainingJobStatus"]

    def test_it_is_not_stopped_with_the_job(self):
        world = self.world()
        cancel(world.api_context, ADA, "elastic")
        world.run_until(lambda: world.job("elastic").state is JobState.STOPPED)
        world.run(1200)
        assert self.status(world) == "InProgress"

    def test_the_job_goes_on_without_the_member(self):
        world = self.world()
        world.run(1200)
        assert (members_of(world), world.job("elastic").state) == ((), JobState.RUNNING)
        assert self.status(world) == "InProgress"


class UnreadableMeeting:
    """A rendezvous that none of our nodes has written."""

    def set(self, run, control):
        """It is said beside what is there."""

    def get(self, run):
        raise UnreadableRendezvous("The state of a rendezvous cannot be read: ValueError.")


def test_a_rendezvous_that_cannot_be_read_ends_no_pass_and_holds_a_member_no_longer_than_its_time():
    world = ElasticWorld(policy=BY_DECREE, pools=f"{P5}=4")
    world.elastic(
        "elastic", "members", max_instances=3, training_seconds=4000, options={"graceful_shutdown_timeout": 60}
    )
    world.run_until(lambda: world.job("elastic").state is JobState.RUNNING)
    world.decreed["elastic"] = 2
    world.run_until(lambda: world.size("elastic") == 2 and world.job("elastic").state is JobState.RUNNING)
    world.rendezvous = UnreadableMeeting()
    world.decreed["elastic"] = 1
    world.submit("after", priority=-1, training_seconds=60)
    world.run_until(lambda: world.job("after").state is JobState.RUNNING)
    assert (world.job("elastic").state, world.size("elastic")) == (JobState.RESIZING, 2), "others start meanwhile"
    world.run_until(lambda: world.size("elastic") == 1)
    assert world.job("elastic").state is JobState.RUNNING
