"""Jobs' lives through every verb of a store."""

from __future__ import annotations

import builders as b
from trainmaster.domain.capacity.external import ExternalJob, Origin
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Status
from trainmaster.ports.store import Store


def a_life(store: Store) -> list[object]:
    """A job's life through every kind of write, and what each call answered."""
    job, long = b.a_job("job1"), b.a_job("job2", history=tuple(b.a_job("job2").history * 41))
    child = lifecycle.hold_if_needed(b.a_job("child", after=("job1", "job2"), not_before=b.at(60)), b.NOW)
    answers: list[object] = [
        store.submit(job, b.a_request("job1")) is job,
        store.submit(b.a_job("job1", priority=5), b.a_request("job1")) == job,
        store.submit(child, b.a_request("child")) is child,
        store.submit(long, b.a_request("job2", Environment={"NOISE": "".join(map(chr, range(32, 12_000)))})) is long,
        store.set_settings(pools=[b.a_pool(cap=9)], version=store.settings().version).pools,
        store.update_external_jobs({"other": ExternalJob({b.P5: 1}), "another": ExternalJob({b.P5: 1}, Origin.ORPHAN)}),
        store.update_external_jobs({}, gone=["other"]),
    ]
    snapshot = store.begin_pass()
    started = lifecycle.start(job, {b.P5: 1}, (), b.at(1))
    launched = lifecycle.mark_launched(started)
    running = lifecycle.observe(launched, b.an_observation(launched, secondary="Training"), b.at(2))
    ended = lifecycle.observe(running, b.an_observation(running, status=Status.COMPLETED), b.at(3))
    raised = lifecycle.reprioritize(long, 5, b.at(1), "ada")
    waits = lifecycle.apply_parent_end(child, ended, b.at(4))
    freed = lifecycle.apply_parent_end(waits, b.an_ended_job("job2"), b.at(5))
    answers += [
        store.transition(
            [(job, started), (long, lifecycle.reserve(long, b.a_reservation()))], fence=snapshot.pass_number
        ),
        store.transition([(started, launched)]),
        store.transition([(launched, running)]),
        store.transition([(running, ended)]),
        store.transition([(job, lifecycle.cancel(job, b.at(4), "bob"))]),
        store.transition([(lifecycle.reserve(long, b.a_reservation()), raised)]),
        store.transition([(child, waits)]),
        store.list_jobs(Filter(parent="job2"), limit=10).jobs,
        store.transition([(waits, freed)]),
        store.list_jobs(Filter(due=b.at(61)), limit=10).jobs,
        store.transition([(freed, lifecycle.enqueue_if_due(freed, b.at(61)))]),
        store.find("child"),
        store.find("job1"),
        store.find("job2"),
        store.request_of("job2"),
        store.list_jobs(Filter(), limit=10).jobs,
        store.read_snapshot().waiting,
        store.begin_pass().records,
    ]
    return answers
