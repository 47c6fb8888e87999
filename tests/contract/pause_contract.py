"""Contract of every store for the pause of the manager, and for comparisons with SageMaker."""

from __future__ import annotations

import pytest

import builders as b
from trainmaster.domain.errors import Fenced, Paused
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.restore import Difference, DifferenceKind, Restore
from trainmaster.ports.store import Pause

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
        difference = Difference(
            job="job1", training_job="job1", kind=DifferenceKind.LOST, stored="", status="InProgress", action="adopt"
        )
        newest = Restore(asked_at=b.at(1), adopt=True, compared_at=b.at(2), differences=(difference,), failed=("x",))
        store.save_restore(newest)
        assert engine.open().restore() == newest
