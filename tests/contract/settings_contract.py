"""Pools and their precedence, and training jobs that did not come from the queue."""

from __future__ import annotations

import pytest

import builders as b
from trainmaster.domain.errors import VersionConflict


class SettingsContract:
    def test_the_deployments_pools_hold_until_somebody_changes_them(self, store, other_store):
        before = store.pools()
        assert before.by_name == b.pools_of(b.a_pool(cap=2))
        changed = store.set_pools([b.a_pool(cap=5), b.a_pool(b.G5, 8, count_foreign=True)], version=before.version)
        assert changed.by_name == b.pools_of(b.a_pool(cap=5), b.a_pool(b.G5, 8, count_foreign=True))
        assert changed.version > before.version
        assert store.pools() == other_store.pools() == changed
        assert store.begin_pass().pools == store.survey().pools == changed.by_name

    def test_all_pools_are_replaced(self, store):
        store.set_pools([b.a_pool(b.G5)])
        assert set(store.set_pools([]).by_name) == set(store.begin_pass().pools) == set()

    def test_a_change_of_pools_that_others_changed_meanwhile_is_refused(self, store, other_store):
        seen = store.pools().version
        others = other_store.set_pools([b.a_pool(cap=7)], version=seen)
        with pytest.raises(VersionConflict):
            store.set_pools([b.a_pool(cap=3)], version=seen)
        assert store.pools() == others
        assert store.set_pools([b.a_pool(cap=3)], version=others.version).by_name[b.P5].cap == 3

    def test_without_a_version_the_last_change_wins(self, store, other_store):
        other_store.set_pools([b.a_pool(cap=7)])
        assert store.set_pools([b.a_pool(cap=3)]).by_name == other_store.pools().by_name

    def test_a_new_deployment_overrides_what_was_set_before_and_is_overridden_again(self, engine):
        old = engine.open(pools=[b.a_pool(cap=2)], parameter="two")
        set_before = old.set_pools([b.a_pool(cap=5)])
        new = engine.open(pools=[b.a_pool(cap=9)], parameter="nine")
        deployed = new.pools()
        assert deployed.by_name[b.P5].cap == 9
        assert deployed.version > set_before.version
        assert new.begin_pass().pools[b.P5].cap == 9
        with pytest.raises(VersionConflict):
            new.set_pools([b.a_pool(cap=4)], version=set_before.version)
        set_after = new.set_pools([b.a_pool(cap=4)], version=deployed.version)
        assert new.pools() == set_after
        assert set_after.version > deployed.version

    def test_deploying_the_same_parameter_again_changes_nothing(self, engine):
        was = engine.open().set_pools([b.a_pool(cap=5)])
        assert engine.open().pools() == was

    def test_foreign_jobs_come_change_and_go(self, store, other_store):
        assert store.note_foreign({}) == {}
        known = store.note_foreign({"a": {b.P5: 1}, "b": {b.G5: 2, b.P5: 1}})
        assert known == {"a": {b.P5: 1}, "b": {b.G5: 2, b.P5: 1}}
        assert other_store.note_foreign({"b": {b.G5: 3}}, gone=["a", "unknown"]) == {"b": {b.G5: 3}}
        assert store.note_foreign({}) == {"b": {b.G5: 3}}
        assert store.note_foreign({"b": {b.G5: 4}}, gone=["b"]) == {"b": {b.G5: 4}}

    def test_foreign_units_count_in_the_pools_that_count_them(self, store):
        store.set_pools([b.a_pool(), b.a_pool(b.G5, 8, count_foreign=True)])
        store.note_foreign({"a": {b.P5: 1, b.G5: 2}, "b": {b.G5: 3}, "c": {"ml.none": 1}})
        assert store.begin_pass().foreign == {b.G5: 5}
        assert store.survey().foreign == {b.G5: 5}

    def test_foreign_jobs_are_no_jobs_of_ours(self, store):
        store.note_foreign({"job1": {b.P5: 1}})
        assert store.find("job1") is None
        snapshot = store.begin_pass()
        assert (snapshot.active, snapshot.waiting) == ((), ())
