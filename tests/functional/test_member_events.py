"""Events about members of elastic jobs lead to the job, with any contents; members are never taken for strangers."""

from __future__ import annotations

import pytest

import builders as b
from api_world import StillClock
from trainmaster.adapters.sagemaker.observation import observation_of_event
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.local.memory.store import MemoryStore
from trainmaster.ports.sagemaker import OpenJob, OpenJobsPage, Owner
from trainmaster.service.capacity.external import find_external_jobs
from trainmaster.service.context import ManagerContext
from trainmaster.service.observe import observe

QUEUE = "sagemaker-queue"
NAME = "job1"


class Listing:
    """A launcher that only lists; its `identify` takes every job for a stranger."""

    def __init__(self, *names, ended=""):
        self.names, self.asked, self.ended, self.described = names, [], ended, {}

    def describe(self, name):
        return self.described.get(name)

    def list_open_jobs(self, since, token=None):
        return OpenJobsPage(self.names)

    def identify(self, name):
        self.asked.append(name)
        return None if name == self.ended else OpenJob(name, b.at(190), {b.P5: 1}, Owner.OTHER)


def an_event(name, status, secondary="", tags=None):
    tagged = {"Tags": tags} if tags is not None else {}
    detail = {"TrainingJobName": name, "TrainingJobStatus": status, "SecondaryStatus": secondary or status, **tagged}
    return {"detail-type": "SageMaker Training Job State Change", "detail": detail}


def growing(name=NAME):
    job = b.a_running_job(name, elastic=Elastic(min_instances=1, max_instances=3, hook=Hook.MEMBERS))
    job = resizing.resize(job, 2, Cause.GROW, b.at(100), until=b.at(1_000))
    (member,) = job.attempt.members
    return resizing.mark_member_launched(job, member.training_job_name), member.training_job_name


def context_with(job, *, pools=None, launcher=None):
    clock = StillClock(b.at(200))
    store = MemoryStore(default_pools=pools or b.pools_of(), now=clock.now)
    store.submit(job, b.a_request(job.name))
    return ManagerContext(store, launcher or Listing(), clock)


def tags_of(name):
    return {"trainmaster:queue": QUEUE, "trainmaster:job": name, "trainmaster:attempt": "1"}


@pytest.mark.parametrize("tagged", [True, False])
def test_a_member_at_work_completes_the_growth(tagged):
    job, member = growing()
    manager_context = context_with(job)
    event = an_event(member, "InProgress", "Training", tags_of(NAME) if tagged else None)
    assert not observe(manager_context, observation_of_event(event, QUEUE)), "nothing has become free"
    stored = manager_context.store.find(NAME)
    assert (stored.state, stored.units) == (JobState.RUNNING, {b.P5: 2})


def test_a_member_of_a_job_with_the_longest_name_is_found_by_its_tags():
    name = "j" * 63
    job, member = growing(name)
    assert len(member) <= 63
    manager_context = context_with(job)
    observe(manager_context, observation_of_event(an_event(member, "InProgress", "Training", tags_of(name)), QUEUE))
    assert manager_context.store.find(name).state is JobState.RUNNING


def test_a_members_end_frees_its_instance_and_leaves_the_job_alone():
    job, member = growing()
    launcher = Listing()
    launcher.described[member] = Observation(training_job_name=member, status=Status.FAILED)
    manager_context = context_with(resizing.mark_member_started(job, member, b.at(150), b.at(150)), launcher=launcher)
    assert observe(manager_context, observation_of_event(an_event(member, "Failed", tags=tags_of(NAME)), QUEUE))
    stored = manager_context.store.find(NAME)
    assert (stored.state, stored.units, stored.attempt.wanted) == (JobState.RUNNING, {b.P5: 1}, 2)
    assert not observe(manager_context, observation_of_event(an_event(member, "Failed", tags=tags_of(NAME)), QUEUE)), (
        "told twice"
    )
    assert manager_context.store.find(NAME) == stored


def test_a_members_late_end_does_not_touch_a_job_that_has_ended():
    job, member = growing()
    ended = lifecycle.fail(job, b.at(150), "it broke")
    manager_context = context_with(job)
    assert manager_context.store.transition([(job, ended)])
    assert not observe(manager_context, observation_of_event(an_event(member, "Stopped", tags=tags_of(NAME)), QUEUE))
    assert manager_context.store.find(NAME) == ended


def test_a_member_of_another_queue_is_not_ours():
    _, member = growing()
    assert observation_of_event(an_event(member, "Stopped", tags={"trainmaster:queue": "other"}), QUEUE) is None


def test_members_are_no_strangers_in_pools_that_count_those():
    job, member = growing()
    pools = b.pools_of(b.a_pool(cap=4, count_external=True))
    gone_member = "job1-qstamp-1-m9"
    launcher = Listing(NAME, member, gone_member, "stranger", ended=gone_member)
    manager_context = context_with(job, pools=pools, launcher=launcher)
    assert find_external_jobs(manager_context, manager_context.store.begin_pass()) == {b.P5: 1}
    assert launcher.asked == [gone_member, "stranger"]
