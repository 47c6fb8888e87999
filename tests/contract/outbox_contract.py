"""Contract of every store for the outbox: each commit of a published change adds its events in the same transaction."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders as b
from trainmaster.domain.errors import Fenced
from trainmaster.domain.events.publication import BUS, TOPIC, Publication
from trainmaster.domain.events.types import EventType
from trainmaster.domain.jobs import lifecycle

VERDICTS = Publication(frozenset({EventType.INFEASIBLE, EventType.FEASIBLE}))


def told(store):
    return [(entry.detail["type"], entry.detail["sequence"]) for row in store.outbox(limit=9) for entry in row.entries]


class OutboxContract:
    """A subclass gives `engine`."""

    @pytest.fixture
    def publishing(self, engine):
        """A store of a deployment that publishes verdicts."""
        return engine.open(publication=VERDICTS)

    def test_each_change_of_a_verdict_is_one_event_of_its_commit(self, publishing):
        job = b.a_job()
        publishing.submit(job, b.a_request())
        fence = publishing.begin_pass().pass_number
        never = lifecycle.set_infeasible(job, b.at(5), "infeasible: no pool")
        assert publishing.transition([(job, never)], fence=fence)
        assert not publishing.transition([(job, never)], fence=fence), "another manager was first"
        assert publishing.begin_pass().waiting == (never,)
        again = lifecycle.set_feasible(never, b.at(9))
        with pytest.raises(Fenced):
            publishing.transition([(never, again)], fence=fence)
        assert told(publishing) == [("infeasible", 2)]
        assert publishing.transition([(never, again)])
        assert told(publishing) == [("infeasible", 2), ("feasible", 3)]
        assert publishing.find(job.name) == again

    def test_a_start_that_ends_a_verdict_tells_both(self, engine):
        store = engine.open(publication=Publication(frozenset(EventType)))
        job = replace(b.a_job(), infeasible=True)
        store.submit(job, b.a_request())
        store.transition([(job, lifecycle.start(lifecycle.set_feasible(job, b.at(5)), {b.P5: 1}, (), b.at(5)))])
        assert told(store)[1:] == [("feasible", 2), ("starting", 3)]

    def test_a_line_of_history_without_a_change_of_the_verdict_is_no_event(self, publishing):
        job = b.a_job()
        publishing.submit(job, b.a_request())
        assert publishing.transition([(job, lifecycle.reprioritise(job, 7, b.at(5), "ann"))])
        assert told(publishing) == []

    def test_a_job_that_asks_for_it_is_told_of_alone(self, engine):
        store = engine.open(publication=Publication(notifies=True))
        for name, words in (("job1", ("infeasible",)), ("job2", ("end",))):
            job = b.a_job(name, notify=words)
            store.submit(job, b.a_request(name))
            store.transition([(job, lifecycle.set_infeasible(job, b.at(5), "infeasible: no pool"))])
        ((entry,),) = [row.entries for row in store.outbox(limit=9)]
        assert (entry.to, entry.detail["jobName"]) == ((TOPIC,), "job1")

    def test_a_row_is_gone_once_all_its_entries_are_settled(self, publishing):
        job = b.a_job()
        publishing.submit(job, b.a_request())
        publishing.transition([(job, lifecycle.set_infeasible(job, b.at(5), "infeasible: no pool"))])
        (row,) = publishing.outbox(limit=9)
        assert [entry.to for entry in row.entries] == [(BUS,)]
        for _ in range(2):
            publishing.settle_outbox(row, [])
        assert not publishing.outbox(limit=9)
