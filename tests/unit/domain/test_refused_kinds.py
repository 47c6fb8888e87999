"""Refused kinds: one refusal holds the kind back, one acceptance frees it, and old ones are forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import NOW, P5, a_job, a_running_job, an_observation, at
from trainmaster.domain.capacity.refusals import (
    KEPT_FOR,
    MAX_KINDS,
    TRIED_EVERY,
    Refusal,
    RefusedKinds,
    after_end,
    kind_of,
)
from trainmaster.domain.jobs.attempt import NAME_TAKEN, NOT_PERMITTED, OUR_FAULT
from trainmaster.domain.jobs.lifecycle import mark_launched, observe, requeue_unlaunched, start
from trainmaster.domain.jobs.observation import Status


def refused(name="job1", when=NOW, reason=f"{NOT_PERMITTED}iam:PassRole", **fields):
    job = a_job(name, **fields)
    return requeue_unlaunched(start(job, {P5: 1}, (), when), when, reason)


def after(*jobs, before=None):
    found = before or {}
    for job in jobs:
        found = after_end(found, job, job.attempt)
    return found


def accepted(name, when):
    return mark_launched(start(a_job(name), {P5: 1}, (), when), when)


@pytest.mark.parametrize(
    ("reason", "noted"),
    [
        (f"{NOT_PERMITTED}iam:PassRole", True),
        (f"{OUR_FAULT}KeyError", True),
        (f"{NAME_TAKEN}job1-1", False),
        ("InsufficientCapacityError", False),
    ],
)
def test_only_refusals_that_would_meet_similar_jobs_are_noted(reason, noted):
    job = refused(reason=reason)
    assert after(job) == ({kind_of(job): Refusal("job1", NOW)} if noted else {})


def test_the_last_refusal_of_each_kind_counts():
    one, other, later = refused("job1"), refused("job2", submitted_by="bob"), refused("job3", at(60))
    found = after(one, other, later)
    assert found == {kind_of(one): Refusal("job3", at(60)), kind_of(other): Refusal("job2", NOW)}
    assert found[kind_of(one)].next_try == at(60) + TRIED_EVERY


@pytest.mark.parametrize("field", ["share", "submitted_by", "container_image", "warm_pool_key"])
def test_kinds_differ_in_what_a_permission_may_depend_on(field):
    assert kind_of(a_job("job1", **{field: "other"})) != kind_of(a_job("job1")) == kind_of(a_job("job2", priority=3))


def test_no_two_parts_of_a_kind_run_together():
    assert kind_of(a_job("job1", share="a", submitted_by="b\nc")) != kind_of(
        a_job("job1", share="a\nb", submitted_by="c")
    )


def test_the_kinds_refused_last_are_kept():
    jobs = [refused(f"job{n}", at(n), submitted_by=f"user{n}") for n in range(MAX_KINDS + 5)]
    assert after(*jobs).keys() == {kind_of(job) for job in jobs[5:]}
    late = refused("late", at(30) + KEPT_FOR, submitted_by="late")
    assert after(late, before=after(*jobs)).keys() == {kind_of(late)}


@pytest.mark.parametrize(("seconds", "still"), [(0, True), (1, False)], ids=["begun before", "begun after"])
def test_an_accepted_start_frees_its_kind(seconds, still):
    found, active = after(refused()), accepted("job2", at(seconds))
    assert bool(RefusedKinds.of(found, [active], at(90)).refusal(a_job("job3"))) is still
    ended = observe(active, an_observation(active, status=Status.COMPLETED), at(600))
    assert bool(after_end(found, ended, ended.attempt)) is still


def test_a_start_that_sagemaker_has_not_accepted_yet_frees_nothing():
    starting = start(a_job("job2"), {P5: 1}, (), at(5))
    assert RefusedKinds.of(after(refused()), [starting], at(9)).refusal(a_job("job3")) == Refusal("job1", NOW)


def test_other_kinds_are_free():
    kinds = RefusedKinds.of(after(refused()), [a_running_job("other", submitted_by="bob")], at(9))
    assert kinds.refusal(a_job("job2", submitted_by="bob")) is None
    assert kinds.refusal(a_job("job2")) == Refusal("job1", NOW)


def test_a_refusal_is_forgotten_after_an_hour():
    found = after(refused())
    assert RefusedKinds.of(found, (), NOW + KEPT_FOR).refusal(a_job("job2")) is not None
    assert RefusedKinds.of(found, (), NOW + KEPT_FOR + timedelta(seconds=1)).refusal(a_job("job2")) is None
