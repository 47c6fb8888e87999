"""Held jobs, found by what they wait for, and lanes that change with what a job has received.

A job is found by its name wherever that takes it: from one place among the held to another, into the queue at another
entry time, into another lane.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders as b
from trainmaster.domain.capacity.read_limits import FIRST, SPARE
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, Change, JobState, ParentRule
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Status

HELD = Filter(states=frozenset({JobState.HELD}))


def hold_if_needed(name, *, seconds=None, after=(), **fields):
    """A job that its own times and parents hold."""
    not_before = None if seconds is None else b.at(seconds)
    return lifecycle.hold_if_needed(b.a_job(name, not_before=not_before, after=tuple(after), **fields), b.NOW)


def stored(store, *jobs):
    for job in jobs:
        store.submit(job, b.a_request(job.name))
    return jobs


def names(store, which, limit=100):
    """Names in a listing, page by page."""
    page = store.list_jobs(which, limit=limit)
    listed = [*page.jobs]
    while page.cursor:
        page = store.list_jobs(which, limit=limit, cursor=page.cursor)
        listed += page.jobs
    assert all(map(which.matches, listed))
    return [job.name for job in listed]


def moved(store, before, after):
    assert store.transition([(before, after)])
    assert store.find(before.name) == after
    return after


def worked(job, start, seconds, units=None):
    """The job started, and preempted after so long at work; each step as (before, after)."""
    started = lifecycle.start(job, units or {b.P5: 1}, (), b.at(start))
    observed = b.an_observation(started, secondary="Training", started_at=b.at(start))
    running = lifecycle.observe(started, observed, b.at(start))
    leaving = lifecycle.preempt(running, "job9", b.at(start + seconds))
    stopped = b.an_observation(leaving, status=Status.STOPPED)
    waiting = lifecycle.observe(leaving, stopped, b.at(start + seconds))
    return [(job, started), (started, running), (running, leaving), (leaving, waiting)]


class KnownParentsContract:
    @pytest.mark.parametrize("others", [0, 30])
    def test_one_read_leaves_out_only_jobs_that_no_job_runs_after(self, store, others):
        ended = ["parent", "second", "childless"]
        stored(store, *map(b.an_ended_job, ended))
        stored(store, hold_if_needed("child", after=["parent"]), hold_if_needed("0", after=["second", "childless-too"]))
        stored(store, *(hold_if_needed(f"timed{n}", seconds=60 + n) for n in range(3)))
        stored(store, *(b.a_held_job(f"aside{n}") for n in range(others)))
        found = store.parents_among(ended)
        assert {"parent", "second"} <= found <= set(ended)
        assert others or found == {"parent", "second"}
        assert store.parents_among([]) == frozenset()


class DueContract:
    def test_those_whose_time_has_come_are_listed_the_longest_due_first(self, store):
        stored(
            store,
            hold_if_needed("later", seconds=61),
            hold_if_needed("second", seconds=60),
            hold_if_needed("first", seconds=3.000001),
            hold_if_needed("a-third", seconds=60, share="research"),
        )
        assert names(store, Filter(due=b.NOW)) == []
        assert names(store, Filter(due=b.at(3))) == []
        assert names(store, Filter(due=b.at(3.000001))) == ["first"]
        assert names(store, Filter(due=b.at(60.5))) == ["first", "a-third", "second"]
        assert names(store, Filter(due=b.at(60.5), share="default")) == ["first", "second"]
        assert names(store, Filter(due=b.at(1e9))) == ["first", "a-third", "second", "later"]

    def test_jobs_held_by_a_user_or_a_parent_are_never_due(self, store):
        by_person = lifecycle.hold(hold_if_needed("by-person", seconds=1), b.at(0.5), "ada")
        stored(
            store,
            by_person,
            b.a_held_job("by-person-only"),
            hold_if_needed("by-parent", seconds=1, after=["job1"]),
            replace(b.a_held_job("of-old"), held_by=None),
            hold_if_needed("due", seconds=1),
            b.a_job("waits", not_before=b.at(-1)),
        )
        assert names(store, Filter(due=b.at(10))) == ["due"]

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_they_are_walked_page_by_page(self, store, limit):
        stored(store, *(hold_if_needed(f"job{n}", seconds=10 - n) for n in range(9)), b.a_held_job("held"))
        assert names(store, Filter(due=b.at(8)), limit) == [f"job{n}" for n in range(8, 1, -1)]

    def test_a_cursor_of_another_listing_leads_to_nothing_more(self, store):
        stored(store, hold_if_needed("due", seconds=1), hold_if_needed("later", seconds=9), b.a_held_job("held"))
        cursor = store.list_jobs(HELD, limit=2).cursor
        assert store.list_jobs(Filter(due=b.at(2)), limit=2, cursor=cursor).jobs == ()

    def test_all_held_jobs_are_listed_those_that_a_time_holds_first(self, store):
        held = stored(
            store,
            hold_if_needed("z-first", seconds=1),
            hold_if_needed("b-second", seconds=2),
            b.a_held_job("a-third"),
            hold_if_needed("b-fourth", after=["job1"]),
        )
        for limit in (1, 3, 100):
            assert names(store, HELD, limit) == [job.name for job in held]

    def test_a_job_is_found_wherever_its_holds_take_it(self, store):
        (job,) = stored(store, hold_if_needed("job1", seconds=50, after=["parent"]))
        assert store.find("job1") == job
        parent = b.an_ended_job("parent")
        timed = moved(store, job, lifecycle.apply_parent_end(job, parent, b.at(1)))
        assert names(store, Filter(due=b.at(50))) == ["job1"]
        by_person = moved(store, timed, lifecycle.hold(timed, b.at(2), "ada"))
        assert names(store, Filter(due=b.at(50))) == []
        timed = moved(store, by_person, lifecycle.release(by_person, b.at(3), "ada"))
        assert names(store, Filter(due=b.at(50))) == ["job1"]
        waiting = moved(store, timed, lifecycle.enqueue_if_due(timed, b.at(60)))
        assert (waiting.state, waiting.entry_time) == (JobState.PENDING, b.at(50))
        assert names(store, HELD) == []
        assert store.begin_pass().waiting == (waiting,)
        moved(store, waiting, lifecycle.hold(waiting, b.at(61), "ada"))

    def test_an_entry_time_that_has_moved_orders_the_queue(self, store):
        early, late = stored(store, hold_if_needed("early", seconds=30), b.a_job("late", entry_time=b.at(10)))
        early = moved(store, early, lifecycle.enqueue_if_due(early, b.at(31)))
        assert store.begin_pass().waiting == (late, early)
        started = lifecycle.start(early, {b.P5: 1}, (), b.at(32))
        moved(store, early, started)

    def test_a_long_history_keeps_its_times_when_the_entry_moves(self, store):
        (job,) = stored(store, hold_if_needed("job1", seconds=500))
        lines = list(job.history)
        for n in range(60):
            after = lifecycle.reprioritize(job, n + 1, b.at(n), "ada")
            lines.append(after.history[-1])
            job = moved(store, job, after)
        entered = moved(store, job, lifecycle.enqueue_if_due(job, b.at(500)))
        for n in range(60):
            entered = moved(store, entered, lifecycle.reprioritize(entered, n, b.at(n), "ada"))
        assert list(store.find("job1").history)[: len(lines)] == lines


class ParentContract:
    def test_each_parent_finds_its_children_by_name(self, store):
        stored(
            store,
            hold_if_needed("child2", after=["one", "two"]),
            hold_if_needed("child1", after=["two"], share="research"),
            lifecycle.hold(hold_if_needed("child3", after=["two", "three"]), b.NOW, "ada"),
            hold_if_needed("timed", seconds=5),
            b.a_held_job("held"),
        )
        assert names(store, Filter(parent="one")) == ["child2"]
        assert names(store, Filter(parent="two")) == ["child1", "child2", "child3"]
        assert names(store, Filter(parent="two", share="research")) == ["child1"]
        assert names(store, Filter(parent="three")) == ["child3"]
        assert names(store, Filter(parent="tw")) == names(store, Filter(parent="missing")) == []
        assert names(store, Filter(states=ENDED, parent="one")) == []
        assert names(store, Filter(due=b.at(9), parent="one")) == []

    @pytest.mark.parametrize("limit", [1, 2, 5])
    def test_many_children_are_walked_page_by_page(self, store, limit):
        children = [f"child{n:03d}" for n in range(12)]
        stored(store, *(hold_if_needed(name, after=["one"], priority=n) for n, name in enumerate(children)))
        assert names(store, Filter(parent="one"), limit) == children

    def test_a_parent_that_has_ended_does_not_find_its_children_any_more(self, store):
        (child,) = stored(store, hold_if_needed("child", after=["one", "two"]))
        child = moved(store, child, lifecycle.apply_parent_end(child, b.an_ended_job("one"), b.at(1)))
        assert (names(store, Filter(parent="one")), names(store, Filter(parent="two"))) == ([], ["child"])
        child = moved(store, child, lifecycle.apply_parent_end(child, b.an_ended_job("two"), b.at(20)))
        assert names(store, Filter(parent="two")) == []
        assert (child.state, child.entry_time) == (JobState.PENDING, b.at(20))
        assert store.begin_pass().waiting == (child,)

    @pytest.mark.parametrize("rule", [ParentRule.CANCEL, ParentRule.FAIL])
    def test_a_child_that_ends_is_found_by_no_parent(self, store, rule):
        (child,) = stored(store, hold_if_needed("child", after=["one", "two"], if_parent_fails=rule))
        failed = b.an_ended_job("one", status=Status.FAILED)
        moved(store, child, lifecycle.apply_parent_end(child, failed, b.at(1)))
        assert names(store, Filter(parent="one")) == names(store, Filter(parent="two")) == []

    def test_a_lost_change_leaves_children_where_they_are(self, store):
        (child,) = stored(store, hold_if_needed("child", after=["one"]))
        held = moved(store, child, lifecycle.hold(child, b.at(1), "ada"))
        assert not store.transition([(child, lifecycle.apply_parent_end(child, b.an_ended_job("one"), b.at(2)))])
        assert store.list_jobs(Filter(parent="one"), limit=5).jobs == (held,)

    def test_the_most_parents_that_a_job_may_have_are_kept(self, store):
        parents = [f"parent{n}" for n in range(16)]
        (child,) = stored(store, hold_if_needed("child", after=parents))
        assert all(names(store, Filter(parent=name)) == ["child"] for name in parents)
        moved(store, child, lifecycle.cancel(child, b.at(1), "ada"))
        assert all(names(store, Filter(parent=name)) == [] for name in parents)


class LaneContract:
    def test_a_job_that_has_received_service_waits_in_a_lane_of_its_own(self, store):
        first, second = stored(store, b.a_job("first"), b.a_job("second", entry_time=b.at(1)))
        for before, after in worked(first, 10, 5_000):
            moved(store, before, after)
        served = store.find("first")
        assert served.lane != second.lane
        assert store.begin_pass().waiting == (served, second)
        for before, after in worked(served, 6_000, 100_000):
            moved(store, before, after)
        longer = store.find("first")
        assert longer.lane not in (served.lane, second.lane)
        assert names(store, Filter()) == ["first", "second"]

    def test_a_pass_reads_a_fresh_job_behind_more_served_ones_than_it_reads_of_a_lane(self, store):
        served = stored(store, *(b.a_job(f"served{n:02}", entry_time=b.at(n)) for n in range(FIRST + 8)))
        for job in served:
            for before, after in worked(job, 100, 5_000):
                moved(store, before, after)
        (fresh,) = stored(store, b.a_job("fresh", entry_time=b.at(1_000)))
        waiting = store.begin_pass().waiting
        assert len(waiting) == b.a_pool().cap + SPARE + 1
        assert waiting[-1] == fresh

    def test_a_changed_priority_follows_into_the_lane_of_those_that_have_run(self, store):
        (job,) = stored(store, b.a_job("job1", priority=3))
        *steps, (leaving, waiting) = worked(job, 0, 700)
        for before, after in steps:
            moved(store, before, after)
        raised = moved(store, leaving, lifecycle.reprioritize(leaving, 8, b.at(650), "ada"))
        waiting = lifecycle.observe(raised, b.an_observation(raised, status=Status.STOPPED), b.at(700))
        waiting = moved(store, raised, waiting)
        lowered = moved(store, waiting, lifecycle.reprioritize(waiting, -8, b.at(800), "ada"))
        assert store.begin_pass().waiting == (lowered,)
        held = moved(store, lowered, lifecycle.hold(lowered, b.at(900), "ada"))
        moved(store, held, lifecycle.release(held, b.at(901), "ada"))

    def test_sizes_and_groups_have_lanes_of_their_own(self, store):
        jobs = stored(
            store,
            b.a_job("plain"),
            b.a_job("large", units={b.P5: 8}),
            b.a_job("sweep", group="a#b", max_concurrent=2),
            b.a_job("other", group="a%23b", max_concurrent=2),
        )
        assert len({job.lane for job in jobs}) == 4
        assert store.begin_pass().waiting == tuple(sorted(jobs, key=lambda job: job.order))
        for job in jobs:
            moved(store, job, lifecycle.reprioritize(job, 5, b.at(1), "ada"))

    def test_a_job_that_ends_is_found_whatever_lane_it_last_waited_in(self, store):
        (job,) = stored(store, b.a_job("job1", history=(Change(b.NOW, None, JobState.PENDING, "submitted"),)))
        for before, after in worked(job, 0, 9_000):
            moved(store, before, after)
        waiting = store.find("job1")
        moved(store, waiting, lifecycle.cancel(waiting, b.at(9_001), "ada"))


class HeldContract(DueContract, KnownParentsContract, ParentContract, LaneContract):
    """All of the above."""
