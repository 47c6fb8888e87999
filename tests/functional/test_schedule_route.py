"""GET /schedule: past attempts, running jobs and planned starts by pool, as the shipped handler gives them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from api_world import ApiWorld
from builders import G5, NOW, P5, a_held_job, a_job, a_running_job, an_observation, at
from trainmaster.domain.capacity.external import ExternalJob
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Reservation
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import Order, Policy

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def a_world(*jobs, pools=None, **fields):
    world = ApiWorld(pools=pools or {P5: Pool(P5, 2)}, **fields)
    world.seed(*jobs)
    return world


def schedule_of(world, **query):
    reply = world.get("/schedule", **query)
    assert reply.status == 200, reply.body
    return reply.body


def an_ended(name, ago, **fields):
    """A job that ran for an hour and ended so many hours ago."""
    job = a_running_job(name, now=NOW - (ago + 1) * HOUR, **fields)
    return lifecycle.observe(job, an_observation(job, status=Status.COMPLETED), NOW - ago * HOUR)


def intervals_of(world, pool=P5, **query):
    return next(each["intervals"] for each in schedule_of(world, **query)["pools"] if each["name"] == pool)


def moment(text):
    return None if text is None else datetime.fromisoformat(text)


def brief(interval):
    hours = [None if interval[end] is None else (moment(interval[end]) - NOW) / HOUR for end in ("from", "until")]
    return interval["kind"], interval["jobName"], interval["units"], *hours


class TestTheThreeParts:
    def test_what_ran_runs_and_will_run(self):
        world = a_world(
            an_ended("old", 3, units={P5: 2}),
            a_running_job("runs", units={P5: 2}, max_runtime=4 * HOUR, now=NOW - HOUR, preemptible=False),
            a_job("waits", units={P5: 1}, max_runtime=5 * HOUR, share="vision", priority=7),
        )
        past, running, planned, reserved = intervals_of(world)
        assert brief(running) == ("running", "runs", 2, -1.0, 3.0)
        assert (running["attempt"], running["jobState"], running["outcome"]) == (1, "running", None)
        assert brief(planned)[:3] == ("planned", "waits", 1)
        assert (planned["share"], planned["priority"], planned["attempt"]) == ("vision", 7, None)
        assert (past["kind"], past["jobName"], past["units"], past["outcome"]) == ("past", "old", 2, "completed")
        assert brief(reserved)[1:] == brief(planned)[1:]

    def test_a_reservation_lasts_as_long_as_the_job_is_expected_to(self):
        waits = a_job("waits", units={P5: 2}, max_runtime=5 * HOUR)
        world = a_world(a_running_job("runs", units={P5: 1}, max_runtime=4 * HOUR, preemptible=False), waits)
        world.memory.set_settings(policy=Policy(order=Order.BACKFILL))
        found = {each["kind"]: brief(each)[1:] for each in intervals_of(world)}
        assert found["reserved"] == found["planned"] == ("waits", 2, 4.0, 9.0)

    def test_planned_starts_are_those_of_the_queue_and_of_why(self):
        jobs = [a_job(f"w{i}", units={P5: 1 + i % 2}, entry_time=at(i), max_runtime=(1 + i) * HOUR) for i in range(6)]
        world = a_world(a_running_job("runs", units={P5: 2}, max_runtime=4 * HOUR), *jobs)
        found = {each["jobName"]: each for each in intervals_of(world) if each["kind"] == "planned"}
        queued = world.get("/queue").body["jobs"]
        assert len(queued) == 6
        for job in (*queued, world.get("/jobs/w3", why="true").body):
            planned = found[job["jobName"]]
            ranges = [(job["estimatedStart"], job["estimatedStartLow"], job["estimatedStartHigh"])]
            assert [(planned["from"], planned["fromLow"], planned["fromHigh"])] == ranges

    def test_a_job_has_an_interval_in_each_pool_that_it_holds(self):
        world = a_world(a_running_job("both", units={P5: 1, G5: 3}), pools={P5: Pool(P5, 2), G5: Pool(G5, 4)})
        assert [each["units"] for pool in (P5, G5) for each in intervals_of(world, pool)] == [1, 3]

    def test_a_job_without_a_pool_has_none(self):
        world = a_world(a_job("never", units={P5: 9}))
        assert intervals_of(world) == []


class TestThePast:
    def test_the_sizes_of_an_elastic_attempt_follow_one_another(self):
        elastic = Elastic(min_instances=2, max_instances=8, hook=Hook.CUSTOM, target="x")
        job = a_running_job("wide", units={P5: 4}, elastic=elastic, now=NOW - 4 * HOUR)
        job = lifecycle.resize(job, 2, Cause.SHRINK, NOW - 3 * HOUR, until=NOW)
        job = lifecycle.complete_resize(job, NOW - 2 * HOUR, 2)
        sizes = [brief(each)[:4] for each in intervals_of(a_world(job, pools={P5: Pool(P5, 8)}))]
        assert sizes == [("past", "wide", 4, -4.0), ("running", "wide", 2, -2.0)]

    def test_attempts_of_held_jobs_and_of_removed_pools_are_there(self):
        preempted = lifecycle.preempt(a_running_job("back", units={G5: 1}, now=NOW - 2 * HOUR), "x", NOW - HOUR)
        waiting = lifecycle.observe(preempted, an_observation(preempted, status=Status.STOPPED), NOW - HOUR)
        world = a_world(lifecycle.hold(waiting, NOW, "ann"))
        (pool,) = [each for each in schedule_of(world)["pools"] if each["name"] == G5]
        assert (pool["cap"], pool["kind"]) == (None, None)
        assert [brief(each)[:3] for each in pool["intervals"]] == [("past", "back", 1)]

    def test_only_what_overlaps_the_period_is_listed(self):
        ended = [an_ended(f"e{i}", i, units={P5: 1}) for i in range(1, 40, 3)]
        world = a_world(*ended, a_running_job("runs", units={P5: 1}))
        day = {each["jobName"] for each in intervals_of(world)}
        assert "e1" in day
        assert "e37" not in day
        early = schedule_of(world, **{"from": (NOW - 41 * HOUR).isoformat(), "to": (NOW - 30 * HOUR).isoformat()})
        assert {each["jobName"] for each in early["pools"][0]["intervals"]} == {"e31", "e34", "e37"}

    def test_a_period_ahead_reads_no_ended_jobs(self):
        world = a_world(an_ended("old", 1, units={P5: 1}))
        world.store.calls.clear()
        schedule_of(world, **{"from": at(1).isoformat()})
        assert "list_jobs" not in world.store.calls


class TestCapacity:
    def test_external_jobs_holds_and_training_plans_are_shown(self):
        plan = Pool(
            "plan", 4, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn="arn:x", starts_at=at(-60), ends_at=NOW + 10 * HOUR
        )
        reserved = lifecycle.reserve(a_job("next", units={P5: 1}), Reservation({P5: 1}, at(600)))
        world = a_world(reserved, a_held_job("held"), pools={P5: Pool(P5, 2), "plan": plan})
        world.memory.update_external_jobs({"other": ExternalJob({P5: 1})})
        kinds = {each["kind"]: brief(each)[1:] for each in intervals_of(world)}
        assert kinds["external"] == (None, 1, 0.0, None)
        assert kinds["held"] == ("next", 1, 0.0, 600 / 3600)
        assert [brief(each) for each in intervals_of(world, "plan")] == [("closed", None, 4, 9.5, None)]


class TestTheRequest:
    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"from": at(5).isoformat(), "to": at(5).isoformat()}, "to"),
            ({"from": at(0).isoformat(), "to": at(32 * 86_400).isoformat()}, "from"),
            ({"from": "2026-11-21T12:00:00"}, "from"),
            ({"limit": "0"}, "limit"),
            ({"limit": "1001"}, "limit"),
            ({"since": at(0).isoformat()}, "since"),
        ],
    )
    def test_a_wrong_period_or_limit_is_refused(self, query, field):
        reply = a_world().get("/schedule", **query)
        assert (reply.status, reply.error["field"]) == (400, field)

    @pytest.mark.parametrize(
        ("path", "name"),
        [
            *[("/schedule", "from"), ("/schedule", "to"), ("/usage", "from"), ("/usage", "to")],
            *[("/jobs", "since"), ("/audit", "since"), ("/audit", "until")],
        ],
    )
    @pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"])
    def test_a_time_that_the_queue_cannot_store_is_refused(self, path, name, time):
        reply = a_world().get(path, **{name: time})
        assert (reply.status, reply.error["field"]) == (400, name)
        assert reply.error["message"] == f"{name} should be in the years 1970 to 8999."

    def test_one_pool_can_be_asked_for(self):
        world = a_world(pools={P5: Pool(P5, 2), G5: Pool(G5, 4)})
        assert [each["name"] for each in schedule_of(world, pool=G5)["pools"]] == [G5]
        assert schedule_of(world, pool="none")["pools"] == []

    def test_the_intervals_furthest_from_now_are_left_out_and_counted(self):
        ended = [an_ended(f"e{i}", i, units={P5: 1}) for i in range(1, 7)]
        (pool,) = schedule_of(a_world(*ended, a_running_job("runs", units={P5: 1})), limit="3")["pools"]
        assert [each["jobName"] for each in pool["intervals"]] == ["e2", "e1", "runs"]
        assert pool["leftOut"] == 4

    def test_intervals_of_many_pools_share_the_response(self):
        pools = {f"p{i}": Pool(f"p{i}", 99, type_=P5) for i in range(100)}
        jobs = [a_running_job(f"r{i}", units=dict.fromkeys(pools, 1)) for i in range(50)]
        found = schedule_of(a_world(*jobs, pools=pools))["pools"]
        assert {(len(pool["intervals"]), pool["leftOut"]) for pool in found} == {(40, 10)}

    def test_jobs_beyond_those_that_are_read_are_told(self):
        jobs = [a_job(f"w{i:04}", units={P5: 2}, entry_time=at(i), max_runtime=DAY) for i in range(700)]
        assert schedule_of(a_world(*jobs))["more"] is True
        assert schedule_of(a_world(*jobs[:3]))["more"] is False
