"""GET /usage: hours, dollars, waits, preemptions and lost work by share, pool and user, by the shipped handler."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_world import ApiWorld
from builders import G5, NOW, P5, a_job, a_running_job, an_observation
from samples import examples
from trainmaster.client.views.usage import joined
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.observation import Status

M5 = "ml.m5.large"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
POOLS = {P5: Pool(P5, 8, price=10.0), G5: Pool(G5, 8, price=1.0), M5: Pool(M5, 8)}
EVERYTHING = {"from": (NOW - 30 * DAY).isoformat()}
ADDED = ("instanceHours", "acceleratorHours", "dollars", "lostInstanceHours", "unpricedInstanceHours")
COUNTED = ("jobs", "submitted", "started", "completed", "failed", "stopped", "cancelled", "preemptions")


def a_world(*jobs):
    world = ApiWorld(pools=POOLS)
    world.seed(*jobs)
    return world


def usage_of(world, **query):
    reply = world.get("/usage", **{name: str(value) for name, value in query.items()})
    assert reply.status == 200, reply.body
    return reply.body


def groups(found):
    return {group["name"]: group for group in found["groups"]}


def of(found, *members):
    return tuple(found[member] for member in members)


def ended(name, ago, hours=1.0, status=Status.COMPLETED, **fields):
    """A job that ran for so many hours and ended so many hours ago."""
    fields = {"entry_time": NOW - (ago + hours) * HOUR, **fields}
    job = a_running_job(name, now=NOW - (ago + hours) * HOUR, **fields)
    return lifecycle.observe(job, an_observation(job, status=status), NOW - ago * HOUR)


def preempted(name, ago, hours, saved_ago=None, **fields):
    """A job that waits again: its only attempt ran for so many hours, and ended by a preemption."""
    job = a_running_job(name, now=NOW - (ago + hours) * HOUR, **fields)
    if saved_ago is not None:
        job = replace(job, attempt=replace(job.attempt, saved_at=NOW - saved_ago * HOUR))
    job = lifecycle.preempt(job, "winner", NOW - ago * HOUR)
    return lifecycle.observe(job, an_observation(job, status=Status.STOPPED), NOW - ago * HOUR)


class TestHours:
    def test_ended_and_running_attempts_count_within_the_period(self):
        world = a_world(
            ended("old", 5, 2, units={P5: 2}, share="vision"),
            a_running_job("runs", units={P5: 1}, share="speech", now=NOW - 3 * HOUR, entry_time=NOW - 4 * HOUR),
        )
        found = usage_of(world)
        assert of(groups(found)["vision"], "instanceHours", "acceleratorHours", "dollars") == (4, 32, 40)
        assert of(groups(found)["speech"], "instanceHours", "dollars", "jobs", "completed") == (3, 30, 1, 0)
        assert of(found["total"], "name", "instanceHours", "completed", "submitted") == (None, 7, 1, 2)
        cut = usage_of(world, **{"from": (NOW - 6 * HOUR).isoformat(), "to": (NOW - 2 * HOUR).isoformat()})
        assert {name: group["instanceHours"] for name, group in groups(cut).items()} == {"vision": 2, "speech": 1}

    def test_the_sizes_of_an_elastic_job_count_each_for_its_time(self):
        elastic = Elastic(min_instances=2, max_instances=8, hook=Hook.CUSTOM, target="x")
        job = a_running_job("wide", units={P5: 4}, elastic=elastic, now=NOW - 4 * HOUR)
        job = lifecycle.resize(job, 2, Cause.SHRINK, NOW - 3 * HOUR, until=NOW)
        job = lifecycle.complete_resize(job, NOW - 2 * HOUR, 2)
        assert usage_of(a_world(job))["total"]["instanceHours"] == pytest.approx(4 * 2 + 2 * 2)

    def test_prices_and_accelerators_are_of_pools_and_then_of_types(self):
        world = ApiWorld(pools={P5: Pool(P5, 8)})
        world.seed(ended("cpu", 1, 2, units={M5: 1}), ended("gpu", 1, 2, units={G5: 1}))
        found = groups(usage_of(world, by="pool"))
        assert of(found[M5], "instanceHours", "acceleratorHours") == (2, 0)
        assert of(found[G5], "acceleratorHours") == (2,)
        for group in found.values():
            assert group["unpricedInstanceHours"] == (0 if group["dollars"] else 2)

    def test_attempts_that_a_job_no_longer_lists_are_told(self):
        totals = AttemptTotals(outcomes={"resized": 3}, began_at=NOW - 9 * HOUR)
        job = replace(a_running_job("long", now=NOW - HOUR), attempt_totals=totals)
        assert usage_of(a_world(job))["total"]["unlistedAttempts"] == 3


class TestEvents:
    def test_a_preemption_loses_the_work_since_the_newest_checkpoint(self):
        world = a_world(
            preempted("kept", 2, 4, saved_ago=3, units={P5: 2}, checkpointed=True),
            preempted("lost", 2, 4, units={G5: 1}),
        )
        found = groups(usage_of(world, by="pool"))
        assert of(found[P5], "preemptions", "lostInstanceHours", "lostAcceleratorHours") == (1, 2, 16)
        assert of(found[G5], "preemptions", "lostInstanceHours") == (1, 4)

    def test_waits_are_those_of_first_starts_in_the_period(self):
        jobs = [ended(f"j{n}", 5, 1, entry_time=NOW - 6 * HOUR - n * timedelta(minutes=1)) for n in range(20)]
        found = usage_of(a_world(*jobs, a_job("waits", entry_time=NOW - HOUR)))["total"]
        assert of(found, "waitP50Seconds", "waitP95Seconds", "started", "submitted") == (540, 1080, 20, 21)
        assert found["waits"] == [60.0 * n for n in range(20)]
        later = usage_of(a_world(*jobs), **{"from": (NOW - HOUR).isoformat()})["total"]
        assert of(later, "waits", "waitP50Seconds") == ([], None)

    def test_ends_are_counted_by_their_state(self):
        world = a_world(
            ended("good", 1),
            ended("bad", 1, status=Status.FAILED),
            lifecycle.cancel(a_job("gone", entry_time=NOW - HOUR), NOW - HOUR / 2, "ann"),
            ended("before", 200),
        )
        found = usage_of(world)["total"]
        assert of(found, "completed", "failed", "stopped", "cancelled", "jobs") == (1, 1, 0, 1, 2)

    def test_unknown_users_are_named_so(self):
        world = a_world(ended("a", 1, submitted_by=""), ended("b", 1, submitted_by="arn:x"))
        assert list(groups(usage_of(world, by="user"))) == ["arn:x", "unknown"]


@st.composite
def histories(draw):
    jobs = []
    for number in range(draw(st.integers(1, 8))):
        pools = draw(st.sets(st.sampled_from([P5, G5, M5]), min_size=1, max_size=2))
        fields = {
            "units": {pool: draw(st.integers(1, 3)) for pool in sorted(pools)},
            "share": draw(st.sampled_from(["a", "b"])),
            "submitted_by": draw(st.sampled_from(["ann", "bob", ""])),
            "priority": draw(st.sampled_from([-3, 0, 10])),
        }
        make = draw(st.sampled_from([ended, preempted, None]))
        ago, hours = draw(st.integers(0, 30)), draw(st.integers(1, 9))
        name = f"j{number}"
        running = a_running_job(name, now=NOW - hours * HOUR, entry_time=NOW - 10 * HOUR, **fields)
        jobs.append(running if make is None else make(name, ago, hours, **fields))
    return jobs


@examples(40, deadline=None)
@given(histories(), st.integers(1, 4))
def test_sums_agree_whatever_they_are_grouped_by_and_however_they_are_read(jobs, limit):
    world = a_world(*jobs)
    reports = {by: usage_of(world, by=by, **EVERYTHING) for by in ("share", "pool", "user", "priority")}
    total = reports["share"]["total"]
    for by, report in reports.items():
        assert report["total"] == total
        for member in ADDED:
            added = sum(group[member] for group in report["groups"])
            assert added == pytest.approx(total[member], abs=1e-4)
        for member in COUNTED:
            counted = sum(group[member] for group in report["groups"])
            assert counted >= total[member] if by == "pool" else counted == total[member]
        parts = usage_of(world, by=by, limit=limit, **EVERYTHING)
        while parts["nextCursor"]:
            following = usage_of(world, by=by, limit=limit, cursor=parts["nextCursor"], **EVERYTHING)
            assert following["jobsRead"] <= limit
            parts = joined(parts, following)
        for got, expected in zip([parts["total"], *parts["groups"]], [total, *report["groups"]], strict=True):
            assert {**got, **dict.fromkeys(ADDED)} == {**expected, **dict.fromkeys(ADDED)} | {
                "lostAcceleratorHours": pytest.approx(expected["lostAcceleratorHours"])
            }
            assert of(got, *ADDED) == pytest.approx(of(expected, *ADDED))


class TestParts:
    def test_jobs_that_move_between_parts_count_once(self):
        runs = a_running_job("runs", units={P5: 1}, now=NOW - 2 * HOUR)
        world = a_world(runs, ended("old", 3, 1), ended("older", 4, 1))
        first = usage_of(world, limit=1)
        assert (first["jobsRead"], first["total"]["instanceHours"]) == (1, 2)
        world.clock.sleep(60)
        done = lifecycle.observe(runs, an_observation(runs, status=Status.COMPLETED), world.clock.now())
        assert world.memory.transition([(runs, done)])
        whole = first
        while whole["nextCursor"]:
            whole = joined(whole, usage_of(world, limit=1, cursor=whole["nextCursor"]))
        assert of(whole["total"], "jobs", "instanceHours", "completed") == (3, 4, 2)

    @pytest.mark.parametrize("cursor", ["x", "WzFd", "WyIyMDI2LTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwzLCIiXQ", "bnVsbA"])
    def test_wrong_cursors_are_refused(self, cursor):
        reply = a_world().get("/usage", cursor=cursor)
        assert (reply.status, reply.body["error"]["field"]) == (400, "cursor")

    @pytest.mark.parametrize(
        "query", [{"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, {"limit": "0"}, {"limit": "501"}]
    )
    def test_wrong_periods_and_limits_are_refused(self, query):
        assert a_world().get("/usage", **query).status == 400
        assert a_world().get("/usage", **{"from": "2020-01-01T00:00:00Z"}).status == 400
