"""A job keeps its newest attempts one by one and sums of the others: nothing that decisions depend on is lost."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

import builders as b
from samples import sample
from trainmaster.adapters.dynamodb.rows import job_of, row_of
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook, RestartBudget
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import FULL_RESTART, Outcome
from trainmaster.domain.jobs.attempt_totals import MAX_PAST_ATTEMPTS, AttemptTotals
from trainmaster.domain.jobs.deadline import latest_start
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.lifecycle import transition
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.policy.settings import Budget, Policy, Share
from trainmaster.domain.records import Records, booked
from trainmaster.planner.placement.plan_windows import checkpoint_interval

ELASTIC = Elastic(min_instances=1, max_instances=4, hook=Hook.RESTART)
IN_FULL = f"AlgorithmError: {FULL_RESTART}: 4 restarts within 3600 seconds, 3 allowed"
LEARNED = History().after(b.an_ended_job(now=b.at(-9_000)))
# One period for all, so that all is added up.
POLICY = Policy(shares={"default": Share(name="default", budget=Budget(dollars=1e9, period=timedelta(days=40_000)))})
PRICE = 3.0
ITEM = 400 * 1024
"""Bytes that an item of DynamoDB holds at most."""


class Books:
    """A job through its changes, with what the queue remembers of it; each second is charged by the test too."""

    def __init__(self) -> None:
        self.job = b.a_running_job(elastic=ELASTIC)
        self.records, self.pools = Records(), b.pools_of(replace(b.a_pool(cap=4), price=PRICE))

    def turn(self, after: Job | None) -> None:
        assert after is not None
        self.records = booked(self.records, self.job, after, POLICY, self.pools)
        # A store keeps old lines of a history apart.
        self.job = after if len(after.history) < 200 else replace(after, history=after.history[-20:])

    def resize(self, size: int, at: float) -> None:
        """Asked at this second, it ends 60 seconds later, and works with its new size 40 seconds after that."""
        self.turn(lifecycle.resize(self.job, size, Cause.GROW, b.at(at), until=b.at(at + 900)))
        self.turn(lifecycle.observe(self.job, b.an_observation(self.job, status=Status.STOPPED), b.at(at + 60)))
        self.turn(lifecycle.mark_launched(self.job))
        working = b.an_observation(self.job, secondary="Training", started_at=b.at(at + 100))
        self.turn(lifecycle.observe(self.job, working, b.at(at + 100)))


@pytest.mark.parametrize("most", sample([1_000, 10_000]))
def test_thousands_of_resizes_keep_the_item_small_and_the_totals_right(most):
    books = Books()
    for number in range(most):
        books.resize(3 if number % 2 == 0 else 1, 1_000 * (number + 1))
    completed = b.an_observation(books.job, status=Status.COMPLETED)
    books.turn(lifecycle.observe(books.job, completed, b.at(1_000 * most + 1_000)))
    job, row = books.job, row_of(books.job)
    assert len(row["job"]["B"]) < ITEM / 40
    assert job_of(row) == job
    assert (len(job.past), job.attempt_totals.count, job.attempt.number) == (
        MAX_PAST_ATTEMPTS,
        most - MAX_PAST_ATTEMPTS,
        most + 1,
    )
    assert job.attempt_totals.outcomes == {Outcome.RESIZED: most - MAX_PAST_ATTEMPTS}
    assert (job.attempt.resizes, job.preemptions) == (most, 0)
    # The first works for 1060 seconds, the last for 900, each of the others, in turn with three and with one, for 960.
    others = most // 2
    assert job.at_work == pytest.approx(1_060 + (most - 1) * 960 + 900)
    assert job.served == pytest.approx(1_060 + others * 3 * 960 + (others - 1) * 960 + 900)
    # Three are held from the decision to grow until those that are too many have stopped, and are charged for so long.
    dollars = books.records.usage.accounts["default"].dollars
    assert dollars == pytest.approx((1_000 + others * (3 * 1_060 + 940)) * PRICE / 3600)


def past_attempts(count: int, seed: int):
    rng = random.Random(seed)
    moment = 0.0
    for number in range(1, count + 1):
        moment += rng.uniform(60, 5_000)
        ran = rng.choice([None, rng.uniform(1, 4_000)])
        outcome = rng.choice([Outcome.RESIZED, Outcome.PREEMPTED, Outcome.FAILED, Outcome.RETURNED, Outcome.RECLAIMED])
        yield b.an_attempt(
            number,
            units={b.P5: rng.randint(1, 4)},
            outcome=outcome,
            created_at=b.at(moment),
            started_at=None if ran is None else b.at(moment),
            ended_at=b.at(moment + (ran or 10)),
            served=rng.choice([0.0, 33.5]),
            saves_every=rng.choice([None, None, timedelta(seconds=rng.randint(30, 900))]),
            restarts=rng.randint(0, 3),
            reason=rng.choice([IN_FULL, "AlgorithmError: no", None]),
        )
        moment += ran or 10


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_asked_of_a_job_has_the_answer_that_all_of_its_attempts_give(seed):
    budget = RestartBudget(restarts_before_full=1, max_full_restarts=seed % 7, period=timedelta(hours=seed))
    elastic = replace(ELASTIC, hook=Hook.MEMBERS, budget=budget)
    every = tuple(past_attempts(60 + 7 * seed, seed))
    folded = b.a_job(elastic=elastic)
    for attempt in every:
        folded = replace(folded, **transition.archive_attempt(folded, attempt))
    naive = b.a_job(elastic=elastic, past=every)
    assert len(folded.past) == MAX_PAST_ATTEMPTS < len(naive.past)
    now = every[-1].ended_at
    for ask in (
        lambda job: job.served,
        lambda job: job.at_work,
        lambda job: job.worked,
        lambda job: job.preemptions,
        lambda job: job.restarts,
        lambda job: job.lane,
        transition.waiting_state,
        checkpoint_interval,
        lambda job: latest_start(replace(job, deadline=b.at(10**9)), LEARNED),
        lambda job: full_restart(job, now),
    ):
        assert ask(folded) == ask(naive)


def full_restart(job: Job, now):
    """State and reason of the job after its nodes ask for a full restart in another attempt."""
    job = lifecycle.mark_launched(lifecycle.start(job, {b.P5: 1}, (), now))
    seen = b.an_observation(job, status=Status.FAILED, failure_reason=IN_FULL)
    after = lifecycle.observe(job, seen, now + timedelta(seconds=60))
    return after.state, after.history[-1].reason


def test_a_job_whose_only_preemption_is_long_ago_waits_as_one_that_was_preempted():
    job = b.a_job(past=(), attempt_totals=AttemptTotals(outcomes={Outcome.PREEMPTED: 1, Outcome.FAILED: 3}))
    assert transition.waiting_state(job) is JobState.PREEMPTED


def test_the_last_failure_tells_how_many_there_were_before_those_that_it_names():
    job = b.a_running_job(
        attempt_totals=AttemptTotals(outcomes={Outcome.FAILED: 3, Outcome.RETURNED: 2, Outcome.RESIZED: 9})
    )
    seen = b.an_observation(job, status=Status.FAILED, failure_reason="AlgorithmError: no")
    assert "; 5 more)" in lifecycle.observe(job, seen, b.at(60)).failure
