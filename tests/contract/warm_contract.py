"""Warm pools in every Store: left with the attempt, changed and forgotten by passes alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders as b
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.errors import Fenced
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Status

OLD = WarmPool("old", {b.P5: 2}, "fit", b.UNTIL)
FULL = WarmPool("full", {b.P5: 1, b.G5: 3}, "", b.UNTIL, -5, "job9-qstamp-2", b.at(0.25))


def a_keeper(store, name="job1", **fields):
    """A running job that will leave a warm pool."""
    job = b.a_running_job(name, keep_alive=True, warm_pool_key="fit", priority=3, **fields)
    store.submit(job, b.a_request(name))
    return job


def completed(job):
    return lifecycle.observe(job, b.an_observation(job, status=Status.COMPLETED, warm_until=b.UNTIL), b.at(60))


class WarmContract:
    def test_an_attempt_leaves_its_warm_pool_in_the_commit_that_ends_it(self, store, other_store):
        job = a_keeper(store)
        assert store.read_snapshot().warm == ()
        assert store.transition([(job, completed(job))])
        left = WarmPool("job1", {b.P5: 1}, "fit", b.UNTIL, priority=3)
        assert store.read_snapshot().warm == other_store.begin_pass().warm == (left,)

    def test_a_commit_that_loses_leaves_none(self, store):
        job = a_keeper(store)
        store.transition([(job, lifecycle.request_stop(job, b.NOW, "ada"))])
        assert not store.transition([(job, completed(job))])
        assert store.read_snapshot().warm == ()

    def test_a_job_that_waits_again_leaves_one_too(self, store):
        job = b.a_preempting_job("job1", keep_alive=True)
        store.submit(job, b.a_request("job1"))
        ended = lifecycle.observe(job, b.an_observation(job, status=Status.STOPPED), b.at(60))
        assert store.transition([(job, ended)])
        (left,) = store.begin_pass().warm
        assert (left.training_job_name, left.ending_since) == ("job1", b.at(60))

    def test_passes_write_and_forget_them(self, store, other_store):
        fence = store.begin_pass().pass_number
        assert store.transition([], fence=fence, warm=[OLD, FULL])
        assert other_store.read_snapshot().warm == (FULL, OLD)
        used = replace(OLD, used_by="job1", unused_since=b.at(5), until=b.at(7))
        assert store.transition([], fence=fence, warm=[used], ended_warm=["full", "never was"])
        assert other_store.read_snapshot().warm == (used,)

    def test_one_is_used_with_the_start_of_a_job_or_not_at_all(self, store):
        job = b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        fence = store.begin_pass().pass_number
        started = lifecycle.start(job, {b.P5: 1}, (), b.NOW)
        held = lifecycle.hold(job, b.NOW, "ada")
        store.transition([(job, held)])
        assert not store.transition([(job, started)], fence=fence, warm=[OLD])
        assert store.read_snapshot().warm == ()
        back = lifecycle.release(held, b.NOW, "ada")
        store.transition([(held, back)])
        again = lifecycle.start(back, {b.P5: 1}, (), b.NOW)
        assert store.transition([(back, again)], fence=fence, warm=[OLD])
        assert (store.read_snapshot().warm, store.find("job1")) == ((OLD,), again)

    @pytest.mark.parametrize("change", [{"warm": [OLD]}, {"ended_warm": ["full"]}])
    def test_an_overtaken_pass_neither_writes_nor_forgets_any(self, store, other_store, change):
        first = store.begin_pass().pass_number
        store.transition([], fence=first, warm=[FULL])
        other_store.begin_pass()
        with pytest.raises(Fenced):
            store.transition([], fence=first, **change)
        assert store.read_snapshot().warm == (FULL,)

    def test_they_are_not_jobs(self, store):
        fence = store.begin_pass().pass_number
        store.transition([], fence=fence, warm=[OLD])
        assert store.find("old") is None
        snapshot = store.read_snapshot()
        assert (snapshot.active, snapshot.waiting, snapshot.external) == ((), (), {})
