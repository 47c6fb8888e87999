"""Contract of every store for callbacks: each is stored with its job, and changed under the guard of its version."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import builders as b
from trainmaster.domain.events.callback import TASK, Callback
from trainmaster.domain.events.publication import BUS, Publication
from trainmaster.domain.events.types import EventType
from trainmaster.domain.jobs import lifecycle


def a_callback(name="job1", token="AAAA+/==", due=60, **fields):
    return Callback(name, TASK, token, interval=60, due=b.at(due), **fields)


def enter(store, name="job1", **fields):
    job = b.a_job(name, callback=TASK)
    store.submit(job, b.a_request(name), callback=a_callback(name, **fields))
    return job


class CallbackContract:
    """A subclass gives `store` and `engine`."""

    def test_a_callback_is_stored_with_its_job_alone(self, store):
        assert store.callback("job1") is None
        job = enter(store)
        assert store.callback("job1") == a_callback()
        assert store.find("job1") == job
        store.submit(job, b.a_request("job1"), callback=a_callback(token="other"))
        assert store.callback("job1") == a_callback(), "the first one stays"

    def test_those_that_are_due_are_the_earliest_first(self, store):
        for name, due in (("job1", 60), ("job2", 30), ("job3", 90), ("job4", 60)):
            enter(store, name, due=due)
        assert [each.job for each in store.callbacks_due(b.at(60))] == ["job2", "job1", "job4"]
        store.replace_callback(store.callback("job2"), store.callback("job2").after_heartbeat(b.at(60)))
        assert [each.job for each in store.callbacks_due(b.at(60))] == ["job1", "job4"]
        assert store.callback("job2").due == b.at(60) + timedelta(seconds=60)

    def test_one_without_heartbeats_is_never_due(self, store):
        store.submit(b.a_job("job1"), b.a_request("job1"), callback=Callback("job1", "step", "0123456789"))
        assert store.callbacks_due(b.at(10**8)) == ()
        assert store.callback("job1") == Callback("job1", "step", "0123456789")

    def test_a_change_needs_the_version(self, store):
        enter(store)
        first = store.callback("job1")
        second = replace(first, token="second", version=2)
        assert store.replace_callback(first, second)
        assert not store.replace_callback(first, replace(first, token="third", version=2))
        assert not store.replace_callback(first, None)
        assert store.callback("job1") == second
        assert store.replace_callback(second, None)
        assert store.callback("job1") is None
        assert not store.replace_callback(second, None)
        assert not store.replace_callback(first, second), "one that is deleted stays so"

    def test_the_end_of_its_job_is_in_the_outbox_without_a_subscription(self, engine):
        for published in ((), (EventType.ENDED,)):
            store = engine.open(publication=Publication(frozenset(published)))
            name = f"job{len(published)}"
            job = enter(store, name)
            assert store.transition([(job, ended := lifecycle.cancel(job, b.at(5), "ada"))])
            (entry,) = [
                entry for row in store.outbox(limit=9) for entry in row.entries if entry.detail["jobName"] == name
            ]
            assert entry.to == (*([BUS] if published else []), TASK)
            assert (entry.detail["type"], entry.detail["to"]) == ("ended", ended.state)
