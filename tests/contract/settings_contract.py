"""Pools and their precedence, and training jobs that did not come from the queue."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from trainmaster.domain.capacity.external import ExternalJob, Origin
from trainmaster.domain.capacity.pool_history import MAX_EVENTS, PoolAction, PoolEvent
from trainmaster.domain.capacity.units import Kind, PlanStatus, Pool
from trainmaster.domain.errors import VersionConflict
from trainmaster.domain.policy.settings import (
    Budget,
    FailureClass,
    Lending,
    Limits,
    Order,
    Placement,
    Policy,
    Preemption,
    Retry,
    Share,
    WhenSpent,
    default_retries,
)

A_POLICY = Policy(
    order=Order.FAIR,
    reservations=3,
    patience=timedelta(days=2),
    preemption=Preemption(timedelta(minutes=10), timedelta(hours=1), timedelta(seconds=0.5), None),
    limits=Limits(min_max_preemptions=4),
    shares={
        "vision": Share(
            name="vision",
            nominal={b.P5: 2},
            lends={b.P5: 1},
            borrows={b.G5: 7},
            weight=2.5,
            max={b.P5: 3},
            max_per_user={b.P5: 1},
            budget=Budget(gpu_hours=100, dollars=9_000.5, period=timedelta(days=7), when_spent=WhenSpent.REFUSE),
            submitters=("arn:aws:sts::111122223333:assumed-role/vision-*",),
            prefers=(b.G5, b.P5),
        ),
        "équipe#1": Share(name="équipe#1", lending=Lending.RESERVE),
    },
    usage_half_life=timedelta(days=3),
    retries={**default_retries(), FailureClass.SERVICE: Retry(9, timedelta(seconds=5), timedelta(hours=1))},
    placement=Placement.ROUND_ROBIN,
    cpu_weight=0.25,
    max_actions=20,
)
"""Something else than the default in every part."""
AN_EVENT = PoolEvent(
    at=b.at(0.25),
    action=PoolAction.EXPAND,
    pool="p5.made",
    instance_type=b.P5,
    before=1,
    after=3,
    dollars_per_hour=196.64,
    made_for="1 x (accelerators=8)",
    jobs=("job1", "job2"),
    job_count=7,
    why="jobs wait",
)


class SettingsContract:
    def test_the_deployments_pools_apply_until_a_user_changes_them(self, store, other_store):
        before = store.settings()
        assert before.pools == b.pools_of(b.a_pool(cap=2))
        changed = store.set_settings(
            pools=[b.a_pool(cap=5), b.a_pool(b.G5, 8, count_external=True)], version=before.version
        )
        assert changed.pools == b.pools_of(b.a_pool(cap=5), b.a_pool(b.G5, 8, count_external=True))
        assert changed.version > before.version
        assert store.settings() == other_store.settings() == changed
        assert store.begin_pass().pools == store.read_snapshot().pools == changed.pools

    def test_all_pools_are_replaced(self, store):
        store.set_settings(pools=[b.a_pool(b.G5)])
        assert set(store.set_settings(pools=[]).pools) == set(store.begin_pass().pools) == set()

    def test_a_change_of_pools_that_others_changed_meanwhile_is_refused(self, store, other_store):
        seen = store.settings().version
        others = other_store.set_settings(pools=[b.a_pool(cap=7)], version=seen)
        with pytest.raises(VersionConflict):
            store.set_settings(pools=[b.a_pool(cap=3)], version=seen)
        assert store.settings() == others
        assert store.set_settings(pools=[b.a_pool(cap=3)], version=others.version).pools[b.P5].cap == 3

    def test_without_a_version_the_last_change_wins(self, store, other_store):
        other_store.set_settings(pools=[b.a_pool(cap=7)])
        assert store.set_settings(pools=[b.a_pool(cap=3)]).pools == other_store.settings().pools

    def test_a_new_deployment_overrides_what_was_set_before_and_is_overridden_again(self, engine):
        old = engine.open(pools=[b.a_pool(cap=2)], parameter="two")
        set_before = old.set_settings(pools=[b.a_pool(cap=5)])
        new = engine.open(pools=[b.a_pool(cap=9)], parameter="nine")
        deployed = new.settings()
        assert deployed.pools[b.P5].cap == 9
        assert deployed.version > set_before.version
        assert new.begin_pass().pools[b.P5].cap == 9
        with pytest.raises(VersionConflict):
            new.set_settings(pools=[b.a_pool(cap=4)], version=set_before.version)
        set_after = new.set_settings(pools=[b.a_pool(cap=4)], version=deployed.version)
        assert new.settings() == set_after
        assert set_after.version > deployed.version

    def test_changes_of_managed_pools_are_recorded_with_the_write_and_read_on_request(self, store, other_store):
        before = store.settings()
        changed = store.set_settings(pools=[b.a_pool(cap=5)], version=before.version, events=[AN_EVENT])
        assert changed.history == store.settings().history == ()
        assert other_store.settings(history=True) == replace(changed, history=(AN_EVENT,))
        assert other_store.settings(catalogue=False, history=True).history == (AN_EVENT,)
        gone = replace(AN_EVENT, at=b.at(9), action=PoolAction.RETIRE, before=5, after=0, jobs=(), job_count=0)
        store.set_settings(pools=[], events=[gone])
        assert store.settings(history=True).history == (AN_EVENT, gone)
        store.set_settings(pools=[b.a_pool(cap=1)])
        assert store.settings(history=True).history == (AN_EVENT, gone)

    def test_lost_writes_are_not_recorded(self, store, other_store):
        seen = store.settings().version
        other_store.set_settings(pools=[b.a_pool(cap=7)], version=seen)
        with pytest.raises(VersionConflict):
            store.set_settings(pools=[b.a_pool(cap=3)], version=seen, events=[AN_EVENT])
        assert store.settings(history=True).history == ()

    def test_of_the_history_the_newest_are_kept(self, store):
        many = [replace(AN_EVENT, after=number) for number in range(MAX_EVENTS + 3)]
        for event in many[:3]:
            store.set_settings(pools=[], events=[event])
        store.set_settings(pools=[], events=many[3:])
        assert store.settings(history=True).history == tuple(many[3:])

    def test_deploying_the_same_parameter_again_changes_nothing(self, engine):
        was = engine.open().set_settings(pools=[b.a_pool(cap=5)])
        assert engine.open().settings() == was

    def test_everything_that_a_pool_can_be_is_kept(self, store, other_store):
        plan = Pool(
            "plan",
            4,
            type_=b.P5,
            kind=Kind.TRAINING_PLAN,
            plan_arn="arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring",
            starts_at=b.at(0.5),
            ends_at=b.UNTIL,
            price=98.32,
            accelerators_per_unit=8,
            plan_status=PlanStatus.SCHEDULED,
        )
        spot = Pool("spot", 8, True, type_=b.P5, kind=Kind.SPOT)
        odd = Pool(
            "odd",
            2,
            type_="ml.x9.large",
            draining=True,
            made_for="accelerators=8",
            made_at=b.NOW,
            vcpus=96,
            memory_gib=768.5,
            accelerator="acme",
            accelerator_memory_gib=640.25,
        )
        store.set_settings(pools=[plan, spot, odd])
        assert other_store.settings().pools == b.pools_of(plan, spot, odd)
        assert other_store.begin_pass().pools == b.pools_of(plan, spot, odd)

    def test_a_policy_is_in_force_from_the_moment_at_which_it_is_set(self, store, other_store):
        assert store.settings().policy == store.begin_pass().policy == Policy()
        set_ = store.set_settings(policy=A_POLICY)
        assert set_.policy == A_POLICY
        assert store.settings() == other_store.settings() == set_
        assert store.begin_pass().policy == other_store.read_snapshot().policy == A_POLICY
        assert store.set_settings(policy=Policy()).policy == other_store.settings().policy == Policy()

    def test_omitted_values_stay(self, store, other_store):
        store.set_settings(policy=A_POLICY)
        with_pools = other_store.set_settings(pools=[b.a_pool(cap=5)])
        assert with_pools.policy == A_POLICY
        other = replace(A_POLICY, reservations=4)
        assert store.set_settings(policy=other).pools == with_pools.pools
        both = store.set_settings(pools=[b.a_pool(cap=6)], policy=A_POLICY)
        assert (both.pools, both.policy) == (b.pools_of(b.a_pool(cap=6)), A_POLICY)
        assert other_store.settings() == both
        assert store.set_settings() == replace(both, version=both.version + 1)

    def test_pools_and_policy_have_one_version(self, store, other_store):
        seen = store.settings().version
        now = other_store.set_settings(pools=[b.a_pool(cap=5)], version=seen)
        with pytest.raises(VersionConflict) as refusal:
            store.set_settings(policy=A_POLICY, version=seen)
        assert refusal.value.field == "version"
        assert store.settings() == now
        assert store.set_settings(policy=A_POLICY, version=now.version).version > now.version

    def test_a_policy_outlives_a_new_deployment_whose_pools_override_what_was_set(self, engine):
        engine.open(parameter="two").set_settings(pools=[b.a_pool(cap=5)], policy=A_POLICY)
        new = engine.open(pools=[b.a_pool(cap=9)], parameter="nine")
        assert (new.settings().pools[b.P5].cap, new.settings().policy) == (9, A_POLICY)
        again = new.set_settings(policy=Policy())
        assert (again.pools[b.P5].cap, again.policy) == (9, Policy())

    def test_the_deployments_policy_applies_until_a_user_sets_one(self, engine):
        day, week = Policy(reservation_timeout=timedelta(days=1)), Policy(reservation_timeout=timedelta(days=7))
        old = engine.open(policy=day)
        assert old.begin_pass().policy == day
        old.set_settings(policy=replace(day, reservations=3))
        assert engine.open(policy=week).settings().policy == replace(week, reservations=3)
        old.set_settings(policy=replace(day, reservation_timeout=timedelta(hours=2)))
        assert engine.open(policy=week).settings().policy == replace(week, reservation_timeout=timedelta(hours=2))

    def test_external_jobs_come_change_and_go(self, store, other_store):
        assert store.update_external_jobs({}) == {}
        both = {"a": ExternalJob({b.P5: 1}), "b": ExternalJob({b.G5: 2, b.P5: 1})}
        assert store.update_external_jobs(both) == both
        larger, largest = {"b": ExternalJob({b.G5: 3})}, {"b": ExternalJob({b.G5: 4})}
        assert other_store.update_external_jobs(larger, gone=["a", "unknown"]) == larger
        assert store.update_external_jobs({}) == larger
        assert store.update_external_jobs(largest, gone=["b"]) == largest

    def test_external_units_count_in_the_pools_that_count_them(self, store):
        store.set_settings(pools=[b.a_pool(), b.a_pool(b.G5, 8, count_external=True)])
        jobs = {"a": {b.P5: 1, b.G5: 2}, "b": {b.G5: 3}, "c": {"ml.none": 1}}
        store.update_external_jobs({name: ExternalJob(units) for name, units in jobs.items()})
        assert store.begin_pass().external == {b.G5: 5}
        assert store.read_snapshot().external == {b.G5: 5}

    def test_orphans_count_in_every_pool(self, store):
        store.set_settings(pools=[b.a_pool(), b.a_pool(b.G5, 8, count_external=True)])
        jobs = {
            "a": ExternalJob({b.P5: 1, b.G5: 2}, Origin.ORPHAN),
            "b": ExternalJob({b.P5: 3}, Origin.STOPPED_ORPHAN),
            "c": ExternalJob({b.P5: 5, b.G5: 1}, Origin.UNKNOWN),
        }
        assert store.update_external_jobs(jobs) == jobs
        assert store.update_external_jobs({}) == jobs
        assert store.begin_pass().external == {b.P5: 4, b.G5: 3}
        assert store.read_snapshot().external == {b.P5: 4, b.G5: 3}

    def test_external_jobs_are_no_jobs_of_ours(self, store):
        store.update_external_jobs({"job1": ExternalJob({b.P5: 1})})
        assert store.find("job1") is None
        snapshot = store.begin_pass()
        assert (snapshot.active, snapshot.waiting) == ((), ())
