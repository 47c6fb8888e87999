"""Sizes of the attempts of other kinds' jobs over time: finished parts give their units back to others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from builders import an_observation, at
from other_kind import a_batch
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import MAX_RELEASES
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.past_intervals import past_sizes, present_since
from trainmaster.domain.jobs.work import Progress

POOL = "batch/echo"


def started(name, calls, units, now):
    job = lifecycle.start(a_batch(name, calls), {POOL: units}, (), now)
    return lifecycle.observe(job, an_observation(job, secondary="Training", started_at=now), now)


def reported(job, left, now, *, status=Status.IN_PROGRESS):
    """The job after a report that so many of its calls are left."""
    done = job.work.calls - left
    secondary = "Training" if status is Status.IN_PROGRESS else ""
    seen = an_observation(job, status=status, secondary=secondary, progress=Progress(done=done, left=left))
    return lifecycle.observe(job, seen, now) or job


def ended(job, now):
    return reported(job, 0, now, status=Status.COMPLETED)


def spans(job):
    return [(size.units[POOL], size.since, size.until) for size in past_sizes(job, job.attempt)]


def test_an_attempt_holds_less_from_the_time_at_which_its_parts_are_done():
    job = started("a", 8, 8, at(0))
    assert (spans(job), present_since(job.attempt)) == ([], at(0))
    job = reported(job, 5, at(10))
    assert (spans(job), present_since(job.attempt)) == ([(8, at(0), at(10))], at(10))
    job = ended(reported(job, 1, at(20)), at(30))
    assert spans(job) == [(8, at(0), at(10)), (5, at(10), at(20)), (1, at(20), at(30))]


def test_an_attempt_that_gets_more_holds_it_from_then_on():
    job = lifecycle.widen(started("a", 80, 2, at(0)), {POOL: 40}, at(10))
    assert (spans(job), present_since(job.attempt)) == ([(2, at(0), at(10))], at(10))
    assert job.history[-1].reason == "has 40 requests at batch/echo now, since nothing else waits for them"
    job = ended(reported(lifecycle.widen(job, {POOL: 60}, at(20)), 10, at(30)), at(40))
    assert spans(job) == [(2, at(0), at(10)), (40, at(10), at(20)), (60, at(20), at(30)), (10, at(30), at(40))]


def test_an_attempt_that_has_given_back_and_gets_some_again_has_all_its_sizes():
    job = reported(started("a", 80, 40, at(0)), 20, at(10))
    assert spans(lifecycle.widen(job, {POOL: 30}, at(20))) == [(40, at(0), at(10)), (20, at(10), at(20))]


def test_an_attempt_that_gives_nothing_back_holds_all_until_its_end():
    assert spans(ended(started("a", 20, 8, at(0)), at(30))) == [(8, at(0), at(30))]


@given(st.integers(1, 5_000), st.data())
def test_sizes_are_few_and_close_to_what_is_held(size, data):
    job, now, held = started("a", size, size, at(0)), 0, [(0, size)]
    for left in sorted(data.draw(st.sets(st.integers(0, size - 1), max_size=60)), reverse=True):
        now += 1
        job = reported(job, left, at(now))
        held.append((now, left))
    job = ended(job, at(now + 1))
    assert len(job.attempt.releases) <= MAX_RELEASES
    found = spans(job)
    for moment, left in held:
        shown = sum(units for units, since, until in found if since <= at(moment) < until)
        assert left <= shown <= left + size // MAX_RELEASES


@given(st.lists(st.tuples(st.integers(1, 12), st.lists(st.integers(1, 12), max_size=4)), min_size=1, max_size=12))
def test_jobs_that_follow_one_another_never_take_more_than_their_service(jobs):
    cap, now, running, done = 12, 0, [], []
    for calls, ends in jobs:
        while sum(sum(job.units.values()) for job in running) + calls > cap:
            now += 1
            first, *others = running
            left = first.work.calls - first.work.done - 1
            running = [reported(first, left, at(now)), *others] if left else others
            done += [] if left else [ended(first, at(now))]
        running.append(started(f"j{len(running) + len(done)}", calls, calls, at(now)))
        for fewer in ends:
            now += 1
            last = running[-1]
            left = max(last.work.calls - last.work.done - fewer, 1)
            running[-1] = reported(last, left, at(now))
    end = at(now + 1)
    lane = [span for job in (*done, *running) for span in spans(job)]
    lane += [(sum(job.units.values()), present_since(job.attempt), end) for job in running]
    for moment in range(now + 1):
        assert sum(units for units, since, until in lane if since <= at(moment) < until) <= cap


def test_a_release_does_not_change_what_an_attempt_began_with():
    job = reported(started("a", 8, 8, at(0)), 5, at(10))
    assert (job.attempt.given, job.units, job.attempt.held_since) == (8, {POOL: 5}, at(0))
    assert replace(job.attempt, releases=()).held_since == at(0)
