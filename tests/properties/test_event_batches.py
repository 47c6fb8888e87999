"""The events of a batch, applied at once, leave what they leave one by one, however they are divided into batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

import builders as b
from api_world import CountingStore, StillClock
from samples import examples
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.errors import Unavailable
from trainmaster.domain.events.publication import Publication
from trainmaster.domain.events.types import EventType
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.local.memory.store import MemoryStore
from trainmaster.ports.sagemaker import Creator, OpenJob, Owner
from trainmaster.service.context import ManagerContext
from trainmaster.service.observe import observe, observe_batch

SHARES = ("vision", "speech")
NOW = b.at(400)


def growing(name):
    job = b.a_running_job(name, elastic=Elastic(min_instances=1, max_instances=3, hook=Hook.MEMBERS))
    job = resizing.resize(job, 2, Cause.GROW, b.at(100), until=b.at(1_000))
    return resizing.mark_member_launched(job, job.attempt.members[0].training_job_name)


def a_child(name, *parents):
    return b.a_job(name, after=parents, state=JobState.HELD)


JOBS = [
    b.a_starting_job("starting", share="vision"),
    b.a_launched_job("launched", share="speech"),
    b.a_running_job("running", share="vision", keep_alive=True, warm_pool_key="same"),
    b.a_preempting_job("preempting"),
    b.a_custom_resize("resizing", share="vision"),
    growing("growing"),
    b.a_job("waiting"),
    b.an_ended_job("ended"),
    a_child("after-running", "running"),
    a_child("after-ended", "ended"),
    a_child("after-two", "running", "launched"),
]
BEFORE = {
    "launched": b.a_starting_job("launched", share="speech"),
    "running": b.a_launched_job("running", share="vision", keep_alive=True, warm_pool_key="same"),
    "preempting": b.a_running_job("preempting"),
    "growing": b.a_running_job("growing", elastic=JOBS[5].elastic),
    "ended": b.a_running_job("ended"),
}
"""Earlier states of some of the jobs."""
MEMBER = JOBS[5].attempt.members[0].training_job_name
NAMES = [*(job.name for job in JOBS[:8]), MEMBER, "strange"]
OUR_FAULT, USERS_FAULT = "InternalServerError: try again", "AlgorithmError: exit code 1"


def reports(name):
    """Return reports about a training job: with the tag that names its job, or of one that has none."""
    owner = "growing" if name == MEMBER else name
    return st.builds(
        Observation,
        training_job_name=st.just(name),
        job_name=st.sampled_from([None, owner]) if name != MEMBER else st.just(owner),
        status=st.sampled_from(Status),
        secondary=st.sampled_from(["Training", "Starting"]),
        failure_reason=st.sampled_from([None, OUR_FAULT, USERS_FAULT]),
        started_at=st.sampled_from([None, b.at(200)]),
        stopping_since=st.sampled_from([None, b.at(300)]),
    )


few_jobs = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2)
"""Several reports about the same job are what a batch could confuse."""
anything = few_jobs.flatmap(lambda names: st.lists(st.sampled_from(names).flatmap(reports), max_size=12))
truths = st.fixed_dictionaries({name: st.none() | st.just(Unavailable("not now")) | reports(name) for name in NAMES})


class StillSageMaker:
    """SageMaker in one state, which counts what it is asked to change."""

    def __init__(self, truth, creator):
        self.truth, self.of, self.calls = truth, creator, Counter()

    def describe(self, name):
        if isinstance(self.truth[name], Unavailable):
            raise self.truth[name]
        return self.truth[name]

    def creator(self, job, attempt):
        return self.of

    def identify(self, name):
        self.calls["identify", name] += 1
        return OpenJob(name, b.at(190), {b.P5: 1}, Owner.OTHER)


class LaggingStore:
    """A store in which eventually consistent reads of these jobs are a change behind."""

    def __init__(self, store, lagging):
        self._store = store
        self._before = {name: BEFORE.get(name) for name in lagging}

    def __getattr__(self, verb):
        return getattr(self._store, verb)

    def find_active(self, names):
        found = dict(self._store.find_active(names))
        for name in self._before.keys() & names:
            found.pop(name, None)
            if self._before[name] is not None and self._before[name].units:
                found[name] = self._before[name]
        return found

    def transition(self, changes, **more):
        won = self._store.transition(changes, **more)
        self._before |= {job.name: job for job, _ in changes if won and job.name in self._before}
        return won


def a_context(truth, creator):
    store = MemoryStore(
        default_pools=b.pools_of(),
        policy=b.a_metered_policy(*SHARES),
        publication=Publication(frozenset(EventType)),
        now=lambda: NOW,
    )
    for job in JOBS:
        store.submit(job, b.a_request(job.name))
    return ManagerContext(store, StillSageMaker(truth, creator), StillClock(NOW))


def left_by(context, worth, *, in_order=True):
    """Return everything that events change, in a form that can be compared; averages only if jobs ended in order."""
    store = context.store
    rows = store.outbox(limit=1_000)
    snapshot = store.read_snapshot()
    entries = sorted((entry for row in rows for entry in row.entries), key=repr)
    records = replace(snapshot.records, usage=None) if in_order else snapshot.records.history.kinds
    usage = {share: replace(each, faded=round(each.faded, 6)) for share, each in store.records().usage.accounts.items()}
    jobs = [store.find(job.name) for job in JOBS]
    return jobs, snapshot.warm, entries, records, usage, worth


def one_by_one(context, events):
    return sum(observe(context, seen) for seen in events) > 0


def in_batches(context, events, cuts):
    worth = False
    for first, last in pairwise([0, *sorted(cuts), len(events)]):
        freed, left = observe_batch(context, events[first:last])
        alone = sum(observe(context, events[first + place]) for place in left)
        worth |= freed or alone > 0
    return worth


COMPLETED = Observation(training_job_name="running", status=Status.COMPLETED)
TRAINS = Observation(training_job_name="launched", status=Status.IN_PROGRESS, secondary="Training")
FAILED = Observation(training_job_name="launched", status=Status.FAILED, failure_reason=OUR_FAULT)


@examples(100)
@given(
    truth=truths,
    creator=st.sampled_from(Creator),
    events=anything,
    cuts=st.sets(st.integers(1, 11)),
    lagging=st.sets(st.sampled_from(NAMES[:8])),
)
@example(
    truth=dict.fromkeys(NAMES) | {"running": COMPLETED, "launched": FAILED},
    creator=Creator.ATTEMPT,
    events=[TRAINS, COMPLETED, FAILED, COMPLETED, TRAINS],
    cuts=set(),
    lagging=set(),
)
@example(
    truth=dict.fromkeys(NAMES),
    creator=Creator.ATTEMPT,
    events=[TRAINS, FAILED],
    cuts=set(),
    lagging=set(),
)
@example(
    truth=dict.fromkeys(NAMES) | {"running": COMPLETED},
    creator=Creator.ATTEMPT,
    events=[replace(TRAINS, training_job_name=MEMBER, job_name="growing"), COMPLETED],
    cuts={1},
    lagging={"growing", "running"},
)
@example(
    truth=dict.fromkeys(NAMES),
    creator=Creator.ATTEMPT,
    events=[replace(COMPLETED, training_job_name=MEMBER, job_name="growing")],
    cuts=set(),
    lagging={"growing"},
)
def test_a_batch_leaves_what_its_events_leave_one_by_one(truth, creator, events, cuts, lagging):
    """Also if the batch's read is behind; then its reports are applied alone, after those of other jobs.

    A late report of an attempt whose end the read has not seen yet then does not look like one of an orphan.
    """
    alone, together = a_context(truth, creator), a_context(truth, creator)
    together = replace(together, store=LaggingStore(together.store, lagging))
    expected = left_by(alone, one_by_one(alone, events), in_order=not lagging)
    worth = in_batches(together, events, {cut for cut in cuts if cut < len(events)})
    assert left_by(together, worth, in_order=not lagging) == expected
    calls, expected_calls = together.launcher.calls, alone.launcher.calls
    assert calls <= expected_calls if lagging else calls == expected_calls


def test_a_batch_needs_one_read_and_one_transaction():
    names = [f"job{number}" for number in range(8)]
    ends = [Observation(training_job_name=name, status=Status.COMPLETED) for name in names]
    context = a_context({end.training_job_name: end for end in ends}, Creator.ATTEMPT)
    for name in names:
        context.store.submit(b.a_running_job(name), b.a_request(name))
    counting = CountingStore(context.store)
    freed, left = observe_batch(replace(context, store=counting), ends)
    assert (freed, left) == (True, [])
    assert counting.calls == {"find_active": 1, "is_paused": 1, "transition": 1, "parents_among": 1}
    assert {context.store.find(name).state for name in names} == {JobState.COMPLETED}
