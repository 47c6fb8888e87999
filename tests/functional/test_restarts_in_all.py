"""`max-total-restarts` counts over the life of a job: what each attempt has used is noted when it ends, and told on."""

from __future__ import annotations

import pytest

import builders as b
from api_world import StillClock
from trainmaster.domain.elastic.rendezvous import RendezvousState
from trainmaster.domain.elastic.sizes import Elastic, Hook, RestartBudget
from trainmaster.domain.errors import Throttled
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.observation import Status
from trainmaster.local.memory.rendezvous import MemoryRendezvousControl
from trainmaster.local.memory.store import MemoryStore
from trainmaster.service.attempt_request import base_request, request_of_member
from trainmaster.service.context import ManagerContext
from trainmaster.service.observe import observe
from trainmaster.worker.container.restart_budget import FULL_RESTART_PREFIX, RestartAction
from trainmaster.worker.container.restart_budget import RestartBudget as WorkerBudget

TOTAL = RestartBudget(max_total_restarts=5, restarts_before_full=2, max_full_restarts=9)


class Confirming:
    """A launcher that describes each training job as it was last reported."""

    def __init__(self):
        self.described = {}

    def describe(self, name):
        return self.described[name]


class Life:
    """A job whose attempts the test ends; each has a rendezvous under its own name."""

    def __init__(self, budget=TOTAL):
        elastic = Elastic(min_instances=1, max_instances=4, hook=Hook.MEMBERS, budget=budget)
        clock = StillClock(b.at(100))
        self.rendezvous, self.store = MemoryRendezvousControl(), MemoryStore(default_pools=b.pools_of(), now=clock.now)
        self.manager_context = ManagerContext(
            self.store, Confirming(), clock, rendezvous=self.rendezvous, table="queue"
        )
        self.store.submit(b.a_job(elastic=elastic), b.a_request("job1"))

    @property
    def job(self):
        return self.store.find("job1")

    def observe(self, seen):
        """Report what SageMaker confirms."""
        self.manager_context.launcher.described[seen.training_job_name] = seen
        return observe(self.manager_context, seen)

    def start(self):
        """The next attempt, at work with one member; what it was told."""
        before = self.job
        job = lifecycle.mark_launched(lifecycle.start(before, {b.P5: 2}, (), b.at(100)))
        (member,) = job.attempt.members
        job = lifecycle.mark_member_launched(job, member.training_job_name)
        job = lifecycle.observe(job, b.an_observation(job, secondary="Training", started_at=b.at(100)), b.at(100))
        assert self.store.transition([(before, job)])
        told = base_request(self.manager_context, job, job.attempt)["Environment"]
        assert told == request_of_member(self.manager_context, job, job.attempt)["Environment"]
        return WorkerBudget.from_environment(told)

    def ends(self, restarts, reason="ClientError: no", status=Status.FAILED):
        """The newest attempt ends, its member with it, after its nodes have counted so many restarts."""
        attempt = self.job.attempt
        if restarts is not None:
            stands = (
                RendezvousState(round=9, complete=True, restarts=restarts) if isinstance(restarts, int) else restarts
            )
            self.rendezvous.set_state(attempt.training_job_name, stands)
        own = b.an_observation(self.job, status=status, failure_reason=reason)
        self.observe(own)
        for member in attempt.members:
            self.observe(b.an_observation(status=status, training_job_name=member.training_job_name))
        self.observe(own)
        return self.job


IN_FULL = f"AlgorithmError: {FULL_RESTART_PREFIX}: 3 restarts within 3600 seconds, 2 allowed before it"


def test_restarts_before_a_full_restart_count_in_the_next_attempt():
    life = Life()
    assert life.start().used == 0
    assert life.ends(3, IN_FULL).state is JobState.PENDING
    assert life.start().used == 3
    assert life.ends(2, IN_FULL).state is JobState.PENDING
    last = life.start()
    assert (last.max_total_restarts, last.used) == (5, 5)
    assert last.evaluate([100.0], 1, 100.0)[0] is RestartAction.FAIL


def test_restarts_before_a_preemption_count_and_the_preemption_does_not():
    life = Life()
    life.start()
    before = life.job
    assert life.store.transition([(before, lifecycle.preempt(before, "job9", b.at(200)))])
    assert life.ends(1, None, Status.STOPPED).state is JobState.PREEMPTED
    assert life.start().used == 1


@pytest.mark.parametrize("unknown", [None, "no state of ours"])
def test_a_full_restart_counts_as_one_if_its_restarts_cannot_be_read(unknown):
    life = Life()
    life.start()
    life.ends(unknown, IN_FULL)
    assert life.start().used == 1


@pytest.mark.parametrize(("said", "counted"), [(-3, 0), (10**30, 1_000_000)])
def test_no_container_can_count_beyond_all_bounds(said, counted):
    life = Life()
    life.start()
    assert life.ends(said).attempt.restarts == counted


def test_an_end_whose_count_cannot_be_asked_for_now_is_taken_over_later():
    life = Life()
    life.start()

    class Busy:
        def get(self, run):
            raise Throttled("too many requests")

    calm, life.manager_context = (
        life.manager_context,
        ManagerContext(life.store, Confirming(), life.manager_context.clock, rendezvous=Busy()),
    )
    with pytest.raises(Throttled):
        life.ends(3, IN_FULL)
    assert life.job.state is JobState.RUNNING
    life.manager_context = calm
    life.ends(3, IN_FULL)
    assert life.start().used == 3


def test_restarts_are_not_read_without_a_total_limit():
    life = Life(RestartBudget(restarts_before_full=2, max_full_restarts=9))
    life.start()
    life.ends(3, IN_FULL)
    told = life.start()
    assert (told.used, told.restarts_before_full, life.job.past[0].restarts) == (0, 2, 1)
