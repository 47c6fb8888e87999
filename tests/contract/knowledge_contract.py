"""Contract of a Store for data besides jobs and settings: the catalogue of instance types, and placement's cursors."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from trainmaster.domain.capacity.catalogue import Catalogue, ReportedQuota
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.errors import Fenced
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.plan import Cursors

NEW = InstanceType(
    name="ml.new.8xlarge",
    vcpus=32,
    memory_gib=244.5,
    accelerators=4,
    accelerator="amd",
    accelerator_memory_gib=178.81,
    network_gbps=12.5,
    efa=2,
    price=0.7364,
)
LEARNED = Catalogue(
    {NEW.name: NEW, b.P5: replace(SHIPPED[b.P5], efa=64)},
    {b.P5: 4, b.G5: 0},
    b.NOW + timedelta(microseconds=123_457),
    {b.P5: 55.04, NEW.name: 0.1},
    b.NOW + timedelta(hours=1),
    {b.P5: ReportedQuota(2, b.NOW), f"{b.G5}.spot": ReportedQuota(0, b.NOW + timedelta(microseconds=500_001))},
)
CURSORS = Cursors("b", {"a": 8.2, "b": -7.8, "équipe": 1 / 3})


def a_start(store, name="job1"):
    """A waiting job and the same started, and the pass in which that is to be."""
    job = b.a_job(name)
    store.submit(job, b.a_request(name))
    fence = store.begin_pass().pass_number
    return job, lifecycle.start(job, {b.P5: 1}, (), b.NOW), fence


class KnowledgeContract:
    def test_at_first_nothing_is_learned_and_what_ships_is_known(self, store):
        for found in (store.settings(), store.read_snapshot(), store.begin_pass()):
            assert found.catalogue == Catalogue()
            assert found.catalogue.type_of(b.P5) == SHIPPED[b.P5]

    def test_the_learned_catalogue_is_read_with_settings_and_snapshots(self, store, other_store):
        store.save_catalogue(LEARNED)
        assert store.settings().catalogue == other_store.settings().catalogue == LEARNED
        assert store.read_snapshot().catalogue == other_store.begin_pass().catalogue == LEARNED

    def test_settings_can_be_read_without_what_was_learned(self, store):
        store.save_catalogue(LEARNED)
        assert store.settings(catalogue=False) == replace(store.settings(), catalogue=Catalogue())

    def test_the_last_one_to_learn_replaces_the_others(self, store, other_store):
        store.save_catalogue(LEARNED)
        later = Catalogue({}, {b.P5: 5}, b.at(86_400))
        other_store.save_catalogue(later)
        assert store.settings().catalogue == store.begin_pass().catalogue == later
        store.save_catalogue(Catalogue())
        assert other_store.settings().catalogue == Catalogue()

    def test_it_has_no_part_in_the_settings_version_and_outlives_their_changes(self, store):
        before = store.settings()
        store.save_catalogue(LEARNED)
        assert store.settings() == replace(before, catalogue=LEARNED)
        changed = store.set_settings(pools=[b.a_pool(cap=7)], version=before.version)
        assert changed.catalogue == LEARNED
        assert changed == store.settings()

    def test_it_outlives_a_new_deployment(self, engine):
        engine.open(parameter="two").save_catalogue(LEARNED)
        assert engine.open(pools=[b.a_pool(cap=9)], parameter="nine").settings().catalogue == LEARNED

    def test_learning_overtakes_no_pass(self, store):
        job, started, fence = a_start(store)
        store.save_catalogue(LEARNED)
        assert store.transition([(job, started)], fence=fence)

    def test_every_type_that_there_is_can_be_learned_at_once(self, store):
        everything = {name: replace(kind, efa=kind.efa + 1) for name, kind in SHIPPED.items()}
        store.save_catalogue(Catalogue(everything, dict.fromkeys(SHIPPED, 20), b.NOW))
        assert store.read_snapshot().catalogue == Catalogue(everything, dict.fromkeys(SHIPPED, 20), b.NOW)


class CursorContract:
    def test_cursors_are_where_placement_has_got_to(self, store, other_store):
        assert store.begin_pass().cursors == Cursors()
        job, started, fence = a_start(store)
        assert store.transition([(job, started)], fence=fence, cursors=CURSORS)
        assert store.read_snapshot().cursors == other_store.begin_pass().cursors == CURSORS
        assert store.find("job1") == started

    def test_where_none_are_given_they_stay(self, store):
        job, started, fence = a_start(store)
        store.transition([], fence=fence, cursors=CURSORS)
        assert store.transition([(job, started)], fence=fence)
        assert store.begin_pass().cursors == CURSORS

    def test_they_may_go_back_to_the_beginning(self, store):
        store.transition([], fence=store.begin_pass().pass_number, cursors=CURSORS)
        store.transition([], fence=store.begin_pass().pass_number, cursors=Cursors())
        assert store.begin_pass().cursors == Cursors()

    def test_they_are_lost_with_the_transition_that_loses(self, store):
        job, started, fence = a_start(store)
        store.transition([(job, lifecycle.hold(job, b.NOW, "ada"))])
        assert not store.transition([(job, started)], fence=fence, cursors=CURSORS)
        assert store.begin_pass().cursors == Cursors()

    @pytest.mark.parametrize("alone", [False, True])
    def test_an_overtaken_pass_moves_none(self, store, other_store, alone):
        job, started, fence = a_start(store)
        other_store.begin_pass()
        with pytest.raises(Fenced):
            store.transition([] if alone else [(job, started)], fence=fence, cursors=CURSORS)
        assert store.begin_pass().cursors == Cursors()
        assert store.find("job1") == job
