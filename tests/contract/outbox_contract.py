"""Contract of every store for the outbox: each commit of a published change adds its events in the same transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from trainmaster.domain.errors import Fenced
from trainmaster.domain.events.publication import BUS, TOPIC, Publication
from trainmaster.domain.events.types import EventType
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import Budget
from trainmaster.domain.shares import thresholds
from trainmaster.domain.shares.usage import Spent

DAY = timedelta(days=1)
PUBLISHED = Publication(frozenset({EventType.INFEASIBLE, EventType.FEASIBLE, EventType.BUDGET}))


def told(store):
    return [(entry.detail["type"], entry.detail["sequence"]) for row in store.outbox(limit=9) for entry in row.entries]


class OutboxContract:
    """A subclass gives `engine`."""

    @pytest.fixture
    def publishing(self, engine):
        """A store of a deployment that publishes verdicts and budgets."""
        return engine.open(publication=PUBLISHED)

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
        assert publishing.transition([(job, lifecycle.reprioritize(job, 7, b.at(5), "ann"))])
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


def budgets_told(store):
    details = [entry.detail for row in store.outbox(limit=50) for entry in row.entries]
    return sorted((each["periodEnd"][:10], each["share"], each["threshold"]) for each in details)


def reached(percent, *, hours=100.0, at=b.NOW, share="vision"):
    used = Spent(percent * 36.0 * hours)
    found = thresholds.reached(share, Budget(gpu_hours=hours, period=DAY), used, at)
    assert found is not None
    return found


class ThresholdContract:
    """A subclass gives `engine`, and the `publishing` store."""

    def test_each_threshold_is_told_once_in_a_period(self, publishing, engine):
        other = engine.open(publication=PUBLISHED)
        for store, percent in ((publishing, 81), (other, 85), (publishing, 120), (other, 130), (publishing, 81)):
            store.publish_thresholds([reached(percent)])
        today = [("2026-11-22", "vision", 80), ("2026-11-22", "vision", 100)]
        assert budgets_told(publishing) == today
        assert publishing.begin_pass().records.told["vision"].percent == 100
        publishing.publish_thresholds([reached(100, at=b.NOW + DAY)])
        assert budgets_told(publishing) == [*today, ("2026-11-23", "vision", 80), ("2026-11-23", "vision", 100)]

    def test_another_budget_begins_again_and_ended_periods_are_forgotten(self, publishing):
        publishing.publish_thresholds([reached(90), reached(90, share="speech")])
        publishing.publish_thresholds([reached(90, hours=200.0)])
        assert [share for _, share, _ in budgets_told(publishing)] == ["speech", "vision", "vision"]
        publishing.publish_thresholds([reached(90, at=b.NOW + DAY)])
        assert set(publishing.records().told) == {"vision"}

    def test_what_was_told_stays_as_attempts_end(self, publishing):
        publishing.publish_thresholds([reached(90)])
        told = publishing.begin_pass().records.told
        running = b.a_running_job()
        publishing.submit(running, b.a_request())
        after = lifecycle.observe(running, b.an_observation(running, status=Status.COMPLETED), b.at(60))
        assert publishing.transition([(running, after)])
        records = publishing.begin_pass().records
        assert records.told == told
        assert records.usage.accounts

    def test_a_deployment_without_these_events_notes_nothing(self, store):
        store.publish_thresholds([reached(90)])
        assert not store.outbox(limit=1)
        assert store.begin_pass().records.told == {}
