"""Snapshots: what a pass sees of lanes, active jobs and pools."""

from __future__ import annotations

from datetime import timedelta

import pytest

import builders as b
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.capacity.read_limits import FIRST
from trainmaster.domain.capacity.rotation import IDLE_FOR, MAX_READ
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.policy.settings import Order, Policy, Share


def fill(store, jobs):
    for job in jobs:
        store.submit(job, b.a_request(job.name))
    return list(jobs)


def in_lane(count, *, prefix="job", **fields):
    return [b.a_job(f"{prefix}{n:04d}", entry_time=b.at(n), **fields) for n in range(count)]


class ReadingContract:
    def test_waiting_jobs_come_in_queue_order_over_all_lanes(self, store):
        jobs = fill(
            store,
            [
                b.a_job("late", entry_time=b.at(2)),
                b.a_job("low", priority=-1_000_000, units={b.G5: 1}),
                b.a_job("early", entry_time=b.at(-2), units={b.G5: 1}),
                b.a_job("a-same-time", entry_time=b.at(2), share="research"),
                b.a_job("high", priority=1_000_000, entry_time=b.at(9)),
                b.a_job("micro", entry_time=b.at(1.999999)),
                b.a_job("minus", priority=-1),
                b.a_job("ten", priority=10),
                b.a_job("nine", priority=9),
            ],
        )
        assert store.begin_pass().waiting == tuple(sorted(jobs, key=lambda job: job.order))
        assert store.read_snapshot().waiting == store.begin_pass().waiting

    def test_a_pass_sees_active_and_waiting_jobs_apart(self, store):
        running, preempting = b.a_running_job("running"), b.a_preempting_job("preempting")
        pending, preempted = b.a_job("pending"), b.a_preempted_job("preempted", entry_time=b.at(-1))
        fill(store, [running, preempting, pending, preempted, b.a_held_job("held"), b.an_ended_job("ended")])
        snapshot = store.begin_pass()
        assert {job.name: job for job in snapshot.active} == {"running": running, "preempting": preempting}
        assert snapshot.waiting == (preempted, pending)
        assert not snapshot.cut_lanes

    def test_a_deep_lane_is_read_at_its_head_only(self, store):
        jobs = fill(store, in_lane(40))
        lone = b.a_job("lone", units={b.G5: 1}, priority=-5)
        store.submit(lone, b.a_request("lone"))
        snapshot = store.begin_pass()
        assert snapshot.waiting == (*jobs[:32], lone)
        assert snapshot.cut_lanes == {jobs[0].lane}
        assert store.read_snapshot().cut_lanes == {jobs[0].lane}

    def test_a_lane_that_is_read_to_its_end_is_not_cut(self, store):
        jobs = fill(store, in_lane(32))
        snapshot = store.begin_pass()
        assert snapshot.waiting == tuple(jobs)
        assert not snapshot.cut_lanes

    def test_an_answer_reads_lanes_as_deep_as_it_asks(self, store):
        jobs, short = fill(store, in_lane(90)), fill(store, in_lane(40, prefix="short", share="b"))
        snapshot = store.read_snapshot(depth=50)
        assert {job.name for job in snapshot.waiting} == {job.name for job in (*jobs[:50], *short)}
        assert snapshot.cut_lanes == {jobs[0].lane}
        assert not store.read_snapshot(depth=90).cut_lanes
        assert len(store.read_snapshot(depth=1).waiting) == len(store.read_snapshot().waiting) == 64
        assert len(store.begin_pass().waiting) == 64

    def test_a_lane_is_read_as_far_as_jobs_could_start(self, engine):
        store = engine.open(pools=[b.a_pool(cap=50)], parameter="fifty")
        fill(store, in_lane(4, prefix="run-", state=b.JobState.RUNNING, attempt=b.an_attempt(), priority=9))
        weak = in_lane(3, prefix="weak", state=b.JobState.RUNNING, attempt=b.an_attempt(), priority=-1)
        fixed = in_lane(2, prefix="fix", state=b.JobState.RUNNING, attempt=b.an_attempt(), preemptible=False)
        stopping = b.an_attempt(stop_asked_at=b.NOW)
        fill(store, [*weak, *fixed, b.a_job("going", state=b.JobState.RUNNING, attempt=stopping, priority=9)])
        jobs = fill(store, in_lane(60))
        snapshot = store.begin_pass()
        # 50 units, 6 of them held by jobs that cannot be made to go, and 8 to spare.
        assert snapshot.waiting == tuple(jobs[: 50 - 6 + 8])
        assert snapshot.cut_lanes == {jobs[0].lane}

    @pytest.mark.parametrize(("days", "read"), [(-1, 250), (0, 250), (1, 250), (2, FIRST)])
    def test_a_lane_of_jobs_that_are_due_soon_is_read_deeper(self, engine, days, read):
        store = engine.open(now=lambda: b.NOW)
        jobs = fill(store, in_lane(260, deadline=b.NOW + timedelta(days=days)))
        assert store.begin_pass().waiting == store.read_snapshot().waiting == tuple(jobs[:read])

    @pytest.mark.parametrize(("waiting", "cut"), [(58, False), (59, True)])
    def test_a_deep_lane_is_cut_only_where_it_has_more(self, engine, waiting, cut):
        store = engine.open(pools=[b.a_pool(cap=50)], parameter="fifty")
        jobs = fill(store, in_lane(waiting))
        snapshot = store.begin_pass()
        assert snapshot.waiting == tuple(jobs[:58])
        assert bool(snapshot.cut_lanes) is cut

    def test_jobs_of_a_user_at_his_limit_take_no_place_of_others(self, engine):
        limiting = Policy(shares={"team": Share(name="team", max_per_user={b.P5: 1})})
        store = engine.open(pools=[b.a_pool(cap=4)], parameter="four", policy=limiting)
        ada, bob = ({"share": "team", "submitted_by": name} for name in ("ada", "bob"))
        fill(store, [b.a_running_job("held", **ada)])
        full = fill(store, in_lane(70, prefix="full", **ada))
        others = fill(store, [b.a_job(f"other{n:02d}", entry_time=b.at(100 + n), **bob) for n in range(40)])
        for snapshot in (store.begin_pass(), store.read_snapshot()):
            assert snapshot.waiting == (*full[:32], *others[:32])
            assert snapshot.cut_lanes == {full[0].lane}

    @pytest.mark.parametrize(("waiting", "cut"), [(20, False), (33, True)])
    def test_a_lane_is_cut_where_jobs_of_a_full_user_are_left_out(self, engine, waiting, cut):
        limiting = Policy(shares={"team": Share(name="team", max_per_user={b.P5: 1})})
        store = engine.open(pools=[b.a_pool(cap=4)], parameter="four", policy=limiting)
        ada, bob = ({"share": "team", "submitted_by": name} for name in ("ada", "bob"))
        fill(store, [b.a_running_job("held", **ada)])
        full = fill(store, in_lane(waiting, prefix="full", **ada))
        others = fill(store, [b.a_job(f"other{n:02d}", entry_time=b.at(100 + n), **bob) for n in range(20)])
        snapshot = store.begin_pass()
        assert snapshot.waiting == (*full[:32], *others)
        assert bool(snapshot.cut_lanes) is cut

    def test_external_units_are_not_counted_on(self, engine):
        store = engine.open(pools=[b.a_pool(cap=50, count_external=True)], parameter="fifty")
        store.update_external_jobs({"other": ExternalJob({b.P5: 10})})
        jobs = fill(store, in_lane(60))
        assert store.begin_pass().waiting == tuple(jobs[:48])

    def test_lanes_whose_names_are_alike_do_not_mix(self, store):
        shares = ["a", "a$", "a#b", "a%23b", "a!", "a/b", "b", "", "#", "$", "a#", "é", "\U0001f682", "~"]
        jobs = [
            b.a_job(f"job-{number}-{n:02d}", share=share, entry_time=b.at(number + 100 * n))
            for number, share in enumerate(shares)
            for n in range(34 if number % 3 == 0 else 2)
        ]
        fill(store, jobs)
        snapshot = store.begin_pass()
        by_lane = {}
        for job in jobs:
            by_lane.setdefault(job.lane, []).append(job)
        expected = [job for lane in by_lane.values() for job in lane[:32]]
        assert snapshot.waiting == tuple(sorted(expected, key=lambda job: job.order))
        assert snapshot.cut_lanes == {lane for lane, members in by_lane.items() if len(members) > 32}

    @pytest.mark.parametrize("entry", [1, 59_999_999, 86_400 * 365 * 100])
    def test_order_holds_at_the_ends_of_time_and_priority(self, store, entry):
        jobs = [
            b.a_job(f"{name}{priority}", priority=priority, entry_time=b.at(entry + later))
            for name in ("a", "aa", "b")
            for priority in (-1_000_000, -999_999, -1, 0, 1, 999_999, 1_000_000)
            for later in (0,)
        ]
        fill(store, jobs)
        assert store.begin_pass().waiting == tuple(sorted(jobs, key=lambda job: job.order))

    def test_a_snapshot_carries_what_it_needs_to_commit(self, store):
        fill(store, [b.a_job("job1"), b.a_running_job("job2")])
        snapshot = store.begin_pass()
        (waiting,), (active,) = snapshot.waiting, snapshot.active
        started = lifecycle.start(waiting, {b.P5: 1}, (), b.NOW)
        stepping = lifecycle.preempt(active, "job1", b.NOW)
        assert store.transition([(active, stepping), (waiting, started)], fence=snapshot.pass_number)
        assert (store.find("job1"), store.find("job2")) == (started, stepping)

    def test_behind_the_heads_of_lanes_jobs_are_read_in_turn_while_units_stay_idle(self, engine):
        clock = [b.NOW]
        store = engine.open(pools=[b.a_pool(cap=4)], parameter="four", now=lambda: clock[0])
        fill(store, [b.a_running_job("held", units={b.P5: 1})])
        jobs = fill(store, in_lane(FIRST + MAX_READ + 20))
        heads, first, rest = jobs[:FIRST], jobs[FIRST : FIRST + MAX_READ], jobs[FIRST + MAX_READ :]
        for seconds, in_turn in [(0, []), (240, []), (60, first), (1, []), (59, rest), (60, first), (60, rest)]:
            clock[0] += timedelta(seconds=seconds)
            snapshot = store.begin_pass()
            assert snapshot.waiting == (*heads, *in_turn)
            assert snapshot.in_turn == {job.name for job in in_turn}
            assert snapshot.cut_lanes == {jobs[0].lane}
            assert store.read_snapshot().waiting == tuple(heads)

    def test_under_fifo_the_same_jobs_are_read_in_turn_again(self, engine):
        clock = [b.NOW]
        fifo = Policy(order=Order.FIFO)
        store = engine.open(pools=[b.a_pool(cap=4)], parameter="four", policy=fifo, now=lambda: clock[0])
        jobs = fill(store, in_lane(FIRST + MAX_READ + 20))
        store.begin_pass()
        for _ in range(3):
            clock[0] += IDLE_FOR
            assert store.begin_pass().waiting == tuple(jobs[: FIRST + MAX_READ])

    @pytest.mark.parametrize(("held", "count"), [(4, 1), (1, 4)], ids=["full", "too few for the lane"])
    def test_no_job_is_read_in_turn_while_no_units_are_idle_that_it_could_use(self, engine, held, count):
        clock = [b.NOW]
        store = engine.open(pools=[b.a_pool(cap=4)], parameter="four", now=lambda: clock[0])
        fill(store, [b.a_running_job("held", units={b.P5: held})])
        jobs = fill(store, in_lane(FIRST + 20, units={b.P5: count}))
        for _ in range(12):
            assert store.begin_pass().waiting == tuple(jobs[:FIRST])
            clock[0] += timedelta(minutes=1)

    def test_units_that_are_free_now_and_then_are_not_idle(self, engine):
        clock = [b.NOW]
        store = engine.open(pools=[b.a_pool(cap=4, count_external=True)], parameter="four", now=lambda: clock[0])
        jobs = fill(store, in_lane(FIRST + 20))
        for minute in range(12):
            others = {"other": ExternalJob({b.P5: 4})}
            store.update_external_jobs(others if minute % 2 else {}, () if minute % 2 else ["other"])
            assert store.begin_pass().waiting == tuple(jobs[:FIRST])
            clock[0] += timedelta(minutes=1)

    def test_jobs_that_keep_waiting_are_not_read_in_turn(self, engine):
        clock = [b.NOW]
        store = engine.open(pools=[b.a_pool(cap=4)], parameter="four", now=lambda: clock[0])
        jobs = fill(store, in_lane(FIRST))
        fill(store, [b.a_job("later", entry_time=b.at(100), retry_at=b.NOW + timedelta(hours=1))])
        other = fill(store, [b.a_job("other", entry_time=b.at(101))])
        store.begin_pass()
        clock[0] += IDLE_FOR
        assert store.begin_pass().waiting == (*jobs, *other)
