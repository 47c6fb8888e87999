"""Contract of every store for the pause of the manager, and for comparisons with SageMaker."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audit_contract import ENTRY, listed

import builders as b
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import Fenced, Paused
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.restore import MAX_LISTED, Difference, DifferenceKind, Restore
from trainmaster.ports.store import Pause

DIFFERENCE = Difference(
    job="job1", training_job="job1", kind=DifferenceKind.LOST, stored="", status="InProgress", action="adopt"
)
PAUSE = Pause("restore", "arn:aws:iam::111122223333:user/ann", b.NOW)


class PauseContract:
    """A subclass gives `engine`."""

    def test_no_pass_begins_while_the_manager_is_paused(self, engine):
        store = engine.open()
        assert (store.pause(), store.is_paused()) == (None, False)
        before = store.begin_pass().pass_number
        store.set_pause(PAUSE)
        with pytest.raises(Paused, match="restore"):
            store.begin_pass()
        assert (store.pause(), store.is_paused()) == (PAUSE, True)
        store.set_pause(None)
        assert store.begin_pass().pass_number > before
        assert (store.pause(), store.is_paused()) == (None, False)

    def test_a_pause_fences_the_pass_that_runs(self, engine):
        store, job = engine.open(), b.a_job("job1")
        store.submit(job, b.a_request("job1"))
        number = store.begin_pass().pass_number
        engine.open().set_pause(PAUSE)
        with pytest.raises(Fenced):
            store.transition([(job, lifecycle.hold(job, b.NOW, "ada"))], fence=number)
        assert store.find("job1") == job

    def test_another_store_learns_of_the_pause_with_its_next_pass(self, engine):
        store, other = engine.open(), engine.open()
        store.begin_pass()
        other.set_pause(PAUSE)
        with pytest.raises(Paused):
            store.begin_pass()
        assert store.is_paused()

    def test_resuming_twice_and_pausing_twice_change_nothing_more(self, engine):
        store = engine.open()
        store.set_pause(None)
        store.set_pause(PAUSE)
        store.set_pause(PAUSE)
        assert store.pause() == PAUSE
        store.set_pause(None)
        store.set_pause(None)
        assert store.pause() is None

    def test_the_newest_comparison_is_kept(self, engine):
        store = engine.open()
        assert store.restore() is None
        store.save_restore(Restore(asked_at=b.NOW))
        asked = Restore(asked_at=b.at(1), asked_by=Caller(PAUSE.by, "10.0.0.7"), adopt=True, since=b.at(-9))
        newest = replace(asked, compared_at=b.at(2), differences=(DIFFERENCE,), left_out=3, failed=("x",))
        store.save_restore(newest)
        assert engine.open().restore() == newest

    def test_a_comparison_of_the_greatest_size_is_kept(self, engine):
        store = engine.open()
        names = [f"{number:04d}-" + "x" * 58 for number in range(MAX_LISTED)]
        differences = tuple(replace(DIFFERENCE, job=name, training_job=name) for name in names)
        newest = Restore(asked_at=b.NOW, differences=differences, adopted=tuple(names), failed=tuple(names))
        store.save_restore(newest)
        assert store.restore() == newest

    def test_pauses_and_comparisons_are_stored_with_their_entries(self, engine):
        store = engine.open()
        store.set_pause(PAUSE, audit=[ENTRY])
        store.save_restore(Restore(asked_at=b.NOW), audit=[replace(ENTRY, at=b.at(1))])
        store.set_pause(None, audit=[replace(ENTRY, at=b.at(2))])
        store.add_audit(replace(ENTRY, at=b.at(3)))
        assert [entry.at for entry in listed(engine.open())] == [b.at(minute) for minute in (3, 2, 1, 0)]
        assert (store.pause(), store.restore()) == (None, Restore(asked_at=b.NOW))
