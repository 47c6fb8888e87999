"""Records of ended attempts: the commit that ends an attempt books it, once, and every pass reads it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from trainmaster.domain.capacity.refusals import Refusal, kind_of
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.elastic.scaling import ScalingCurve
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.errors import Fenced
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import NOT_PERMITTED
from trainmaster.domain.jobs.lifecycle import resizing
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_times import ALL
from trainmaster.domain.policy.settings import Budget, Policy, Share
from trainmaster.domain.records import Records, booked

HOUR = timedelta(hours=1)


def a_run(name="job1", seconds=3_600, end=None, **fields):
    """A job at work since `NOW`, and as it stands once it has ended."""
    running = b.a_running_job(name, **fields)
    end = end or (lambda job: lifecycle.observe(job, b.an_observation(job, status=Status.COMPLETED), b.at(seconds)))
    return running, end(running)


def stepped_aside(job):
    leaving = lifecycle.preempt(job, "job9", b.at(600))
    return leaving, lifecycle.observe(leaving, b.an_observation(leaving, status=Status.STOPPED), b.at(610))


def ended(store, name="job1", seconds=3_600, **fields):
    running, after = a_run(name, seconds, **fields)
    store.submit(running, b.a_request(name))
    assert store.transition([(running, after)])
    return running, after


def alike(found: Records, wanted: Records) -> bool:
    """The same within what a row rounds."""
    kinds, accounts = wanted.history.kinds, wanted.usage.accounts
    assert list(found.history.kinds) == list(kinds)
    for kind, sketch in kinds.items():
        assert found.history.kinds[kind].weights == pytest.approx(sketch.weights, abs=0.011 * len(kinds))
        assert found.history.kinds[kind].halved == sketch.halved
    assert found.history.pauses == pytest.approx(wanted.history.pauses, abs=0.06)
    assert found.history.curves.keys() == wanted.history.curves.keys()
    for kind, known in wanted.history.curves.items():
        curve = found.history.curves[kind].curve
        assert curve.serial == pytest.approx(known.curve.serial, abs=0.0001)
        assert curve.communication == pytest.approx(known.curve.communication, abs=0.000_001)
        assert found.history.curves[kind].jobs == known.jobs
    assert found.history.startups == pytest.approx(wanted.history.startups, abs=0.06)
    assert found.usage.accounts.keys() == accounts.keys()
    for share, account in accounts.items():
        known = found.usage.accounts[share]
        assert (abs(known.at - account.at) <= timedelta(seconds=0.06), known.period) == (True, account.period)
        assert known.faded == pytest.approx(account.faded, rel=1e-6, abs=0.5)
        assert known.gpu_seconds == pytest.approx(account.gpu_seconds, rel=1e-9, abs=0.5)
        assert known.dollars == pytest.approx(account.dollars, abs=0.0001)
    for times, expected in ((found.released, wanted.released), (found.freed, wanted.freed)):
        assert times.keys() == expected.keys()
        assert all(abs(times[pool] - at) <= timedelta(seconds=0.06) for pool, at in expected.items())
    return True


class RecordsContract:
    def test_records_alone_are_those_of_a_snapshot(self, store):
        assert store.records() == Records()
        ended(store)
        assert store.records() == store.read_snapshot().records != Records()

    def test_nothing_is_known_before_anything_has_ended(self, store):
        assert store.begin_pass().records == store.read_snapshot().records == Records()

    def test_an_end_is_booked_by_the_commit_that_tells_it(self, store, other_store):
        before, after = ended(store, share="vision", container_image="image")
        wanted = booked(Records(), before, after, Policy(), b.pools_of())
        assert wanted.usage.accounts["vision"].gpu_seconds > 0
        assert wanted.history.run_time(before, 0, 0.5) == pytest.approx(3_600, rel=0.5)
        assert alike(store.begin_pass().records, wanted)
        assert alike(other_store.read_snapshot().records, wanted)

    def test_an_end_frees_its_units_and_a_refused_start_frees_none(self, store):
        ended(store, "job1")
        freed = store.begin_pass().records.freed
        assert freed.keys() == {b.P5}
        waiting = b.a_job("job2")
        store.submit(waiting, b.a_request("job2"))
        started = lifecycle.start(waiting, {b.P5: 1}, (), b.at(9_000))
        refused = lifecycle.requeue_unlaunched(started, b.at(9_001), "ResourceLimitExceeded")
        assert store.transition([(waiting, started)])
        assert store.transition([(started, refused)])
        assert store.begin_pass().records.freed == freed

    def test_a_start_that_aws_refuses_for_what_the_job_is_holds_back_its_kind(self, store, other_store):
        waiting = b.a_job("job1")
        store.submit(waiting, b.a_request("job1"))
        started = lifecycle.start(waiting, {b.P5: 1}, (), b.at(1))
        refused = lifecycle.requeue_unlaunched(started, b.at(2), f"{NOT_PERMITTED}iam:PassRole")
        assert store.transition([(waiting, started)])
        assert store.transition([(started, refused)])
        assert other_store.begin_pass().records.refusals == {kind_of(waiting): Refusal("job1", b.at(2))}
        again = lifecycle.start(refused, {b.P5: 1}, (), b.at(90))
        accepted = lifecycle.mark_launched(again, b.at(91))
        ended = lifecycle.observe(accepted, b.an_observation(accepted, status=Status.COMPLETED), b.at(600))
        for before, after in ((refused, again), (again, accepted), (accepted, ended)):
            assert store.transition([(before, after)])
        assert other_store.begin_pass().records.refusals == {}

    def test_ends_add_up_in_the_order_in_which_they_came(self, store, other_store):
        wanted, stores = Records(), [store, other_store]
        for n in range(24):
            fields = {
                "share": f"share{n % 3}",
                "container_image": f"image{n % 5}",
                "units": {(b.P5, b.G5)[n % 2]: 1 + n % 4},
            }
            before, after = ended(stores[n % 2], f"job{n}", 100 * 1.5**n, **fields)
            wanted = booked(wanted, before, after, Policy(), b.pools_of())
        assert alike(store.begin_pass().records, wanted)

    def test_charges_follow_the_settings_in_force(self, store):
        pool = Pool("spot", 9, type_=b.P5, price=36.0)
        share = Share(name="vision", budget=Budget(dollars=1_000, period=HOUR))
        policy = Policy(shares={"vision": share}, usage_half_life=HOUR)
        store.set_settings(pools=[pool], policy=policy)
        before, after = ended(store, share="vision", units={"spot": 2})
        assert alike(store.begin_pass().records, booked(Records(), before, after, policy, {"spot": pool}))
        account = store.begin_pass().records.usage.accounts["vision"]
        assert account.dollars == pytest.approx(0, abs=0.001), "an hour begins with the end"
        assert account.faded < 2 * 8 * 3_600

    def test_when_a_made_pool_was_last_used_is_remembered_until_the_pool_is_gone(self, store, other_store):
        made = replace(b.a_pool(b.G5, 2), made_for="1 x (accelerators=1)", made_at=b.NOW)
        store.set_settings(pools=[b.a_pool(), made])
        for name, pool in (("job1", b.G5), ("job2", b.P5)):
            before, after = ended(store, name, units={pool: 1})
            wanted = booked(store.begin_pass().records, before, after, Policy(), b.pools_of(b.a_pool(), made))
        assert wanted.released == {b.G5: b.at(3_600)}
        assert store.begin_pass().records.released == other_store.read_snapshot().records.released == wanted.released
        store.set_settings(pools=[b.a_pool()])
        ended(store, "job3")
        assert store.begin_pass().records.released == {}

    @pytest.mark.parametrize(
        "step",
        [
            lambda job: (job, lifecycle.request_stop(job, b.at(5), "ada")),
            lambda job: (job, lifecycle.preempt(job, "job9", b.at(5))),
            lambda job: (job, replace(job, version=job.version + 1)),
        ],
    )
    def test_changes_that_end_no_attempt_are_not_booked(self, store, step):
        running = b.a_running_job()
        store.submit(running, b.a_request())
        assert store.transition([step(running)])
        assert store.begin_pass().records == Records()

    def test_a_job_that_was_cancelled_while_it_waited_teaches_nothing(self, store):
        job = b.a_job()
        store.submit(job, b.a_request())
        assert store.transition([(job, lifecycle.cancel(job, b.at(1), "ada"))])
        assert store.begin_pass().records == Records()

    def test_every_size_of_a_job_is_charged_once_by_the_commits_that_change_it(self, store, other_store):
        elastic = Elastic(min_instances=1, max_instances=4, hook=Hook.CUSTOM)
        job = b.a_running_job(elastic=elastic)
        store.set_settings(pools=[b.a_pool(cap=4)], policy=b.a_metered_policy("default"))
        store.submit(job, b.a_request())
        grown = resizing.resize(job, 3, Cause.GROW, b.at(100), until=b.at(900))
        done = resizing.complete_resize(grown, b.at(150), 3)
        shrunk = resizing.complete_resize(
            resizing.resize(done, 2, Cause.SHRINK, b.at(300), until=b.at(900)), b.at(400), 2
        )
        ended = lifecycle.observe(shrunk, b.an_observation(shrunk, status=Status.COMPLETED), b.at(1_000))
        charged = []
        for before, after in ((job, grown), (grown, done), (done, shrunk), (shrunk, ended)):
            assert store.transition([(before, after)])
            assert not store.transition([(before, after)])
            charged.append(other_store.begin_pass().records.usage.accounts["default"].gpu_seconds / 8)
        assert charged == pytest.approx([100, 250, 1_000, 2_200], abs=0.1)

    def test_an_attempt_that_goes_on_with_another_size_is_charged_and_what_the_resize_cost_is_learned(self, store):
        job = b.a_running_job(elastic=Elastic(min_instances=1, max_instances=3), container_image="image")
        store.set_settings(pools=[b.a_pool(cap=4)], policy=b.a_metered_policy("default"))
        store.submit(job, b.a_request())
        stopping = resizing.resize(job, 3, Cause.GROW, b.at(600), until=b.at(900))
        resumed = lifecycle.observe(stopping, b.an_observation(stopping, status=Status.STOPPED), b.at(660))
        work = b.an_observation(resumed, secondary="Training", started_at=b.at(780))
        done = lifecycle.observe(resumed, work, b.at(780))
        wanted = Records()
        for before, after in ((job, stopping), (stopping, resumed), (resumed, done)):
            assert store.transition([(before, after)])
            wanted = booked(wanted, before, after, b.a_metered_policy("default"), {b.P5: b.a_pool(cap=4)})
        found = store.begin_pass().records
        assert alike(found, wanted)
        assert found.usage.accounts["default"].gpu_seconds == pytest.approx(8 * (600 + 3 * 180), abs=1)
        assert found.history.pause(done) == pytest.approx(180)
        assert found.history.startup(job) == pytest.approx(0), "of the attempt that has ended; the next one is at work"
        assert not found.history.kinds, "it has not ended"

    def test_how_a_job_scales_is_stored_with_it_and_learned_for_its_kind_at_its_end(self, store, other_store):
        elastic, fields = Elastic(min_instances=1, max_instances=4), {"container_image": "image", "share": "vision"}
        job = b.resized(b.a_running_job(elastic=elastic, **fields), 2, 4)
        store.set_settings(pools=[b.a_pool(cap=4)])
        store.submit(job, b.a_request())
        curve = ScalingCurve(0.25)
        for size in (1, 2, 4):
            reported = lifecycle.record_speed(job, size, 100 * curve.speedup(size), b.at(100 * size))
            assert store.transition([(job, reported)])
            job = reported
        assert other_store.find(job.name).speeds == job.speeds
        assert not store.begin_pass().records.history.curves, "it has not ended"
        ended = lifecycle.observe(job, b.an_observation(job, status=Status.COMPLETED), b.at(1_000))
        assert store.transition([(job, ended)])
        found, wanted = other_store.begin_pass().records, booked(Records(), job, ended, Policy(), b.pools_of())
        assert alike(found, wanted)
        like = b.a_running_job("like", elastic=elastic, **fields)
        assert found.history.curve(like).speedup(4) == pytest.approx(curve.speedup(4), rel=0.1)
        assert found.history.tells_curve(like)

    def test_an_attempt_that_stepped_aside_is_charged_and_the_run_time_is_learned_at_the_end(self, store):
        leaving, waiting = stepped_aside(b.a_running_job())
        store.submit(leaving, b.a_request())
        assert store.transition([(leaving, waiting)])
        records = store.begin_pass().records
        assert records.usage.accounts["default"].faded == pytest.approx(610 * 8, rel=0.01)
        assert not records.history.kinds

    def test_several_ends_in_one_commit_are_all_booked(self, store):
        changes = [a_run(f"job{n}", 600 * (n + 1)) for n in range(5)]
        for before, _ in changes:
            store.submit(before, b.a_request(before.name))
        assert store.transition(changes)
        wanted = Records()
        for before, after in changes:
            wanted = booked(wanted, before, after, Policy(), b.pools_of())
        assert alike(store.begin_pass().records, wanted)

    def test_lost_transactions_are_not_booked(self, store):
        before, after = ended(store)
        records = store.begin_pass().records
        assert not store.transition([(before, after)])
        assert not store.transition([(before, lifecycle.fail(before, b.at(9), "it broke"))])
        fine, fine_after = a_run("fine")
        store.submit(fine, b.a_request("fine"))
        assert not store.transition([(fine, fine_after), (before, after)])
        assert store.begin_pass().records == records

    def test_an_overtaken_pass_books_nothing(self, store):
        running, after = a_run()
        store.submit(running, b.a_request())
        old = store.begin_pass().pass_number
        store.begin_pass()
        with pytest.raises(Fenced):
            store.transition([(running, after)], fence=old)
        assert store.begin_pass().records == Records()
        assert store.transition([(running, after)], fence=store.begin_pass().pass_number)
        assert store.begin_pass().records.history.kinds[ALL].total == pytest.approx(1)

    def test_kinds_and_strangers_are_bounded_for_any_submitter(self, store):
        for n in range(90):
            ended(store, f"job{n}", 60 + n, share=f"share{n}", container_image=f"image{n}")
        records = store.begin_pass().records
        assert 40 <= len(records.history.kinds) <= 48
        assert len(records.usage.accounts) <= 65
