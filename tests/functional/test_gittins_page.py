"""`docs/explanation/gittins.md`: its worked example and its picture are what the code computes."""

from __future__ import annotations

import runpy
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, P5, a_job, a_pool, a_preempted_job, a_running_job, a_snapshot, at
from doc_pages import DOCS, plain, section, table
from trainmaster.domain.jobs.run_times import History, RestartCost
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.records import Records
from trainmaster.planner.orders.gittins.boost import boost, horizon, work
from trainmaster.planner.orders.gittins.learned import LearnedLifetimes
from trainmaster.planner.orders.gittins.order import GittinsRanking

PAGE = DOCS / "explanation" / "gittins.md"
POLICY = Policy(order=Order.GITTINS)
CAP = 1


def seconds(text):
    """A duration of the page: `40 h`, `10 min`, `-`."""
    number, _, unit = text.partition(" ")
    return float(number) * {"h": 3_600, "min": 60, "d": 86_400}[unit] if unit else 0.0


def shown(span):
    """A duration as the page writes it."""
    return f"{span / 3_600:.1f} h" if span >= 3_600 else f"{span / 60:.1f} min"


@pytest.fixture(scope="module")
def example():
    return section(PAGE, "A worked example")


@pytest.fixture(scope="module")
def snapshot(example):
    history = History()
    for count, took in table(example, "ended jobs"):
        for number in range(int(count)):
            job = a_running_job(f"{took}{number}", now=at(0), entry_time=at(0), units={P5: 1})
            ended = replace(job.attempt, ended_at=at(seconds(took)))
            history = history.after(replace(job, attempt=ended, state="completed", ended_at=ended.ended_at), 1)
    jobs = [job_of(*map(plain, row)) for row in table(example, "job")]
    pool = replace(a_pool(P5, CAP), accelerators_per_unit=1)
    active, waiting = [job for job in jobs if job.units], [job for job in jobs if not job.units]
    found = a_snapshot(pools=[pool], active=active, waiting=waiting, policy=POLICY)
    return replace(found, records=Records(history=replace(history, restarts=RestartCost(1e9, 0))))


def job_of(name, state, entered, worked):
    entry, ran = NOW - timedelta(seconds=seconds(entered)), timedelta(seconds=seconds(worked))
    fields = {"units": {P5: 1}, "entry_time": entry}
    if state == "runs":
        return a_running_job(name, now=NOW - ran, **fields)
    if not ran:
        return a_job(name, **fields)
    job = a_preempted_job(name, now=entry, **fields)
    return replace(job, attempt=replace(job.attempt, started_at=entry, ended_at=entry + ran))


def computed(snapshot):
    """The rows of the page's second table, in the order of the ranking."""
    jobs = (*snapshot.active, *snapshot.waiting)
    learned, parameters = LearnedLifetimes.of(snapshot, NOW), POLICY.gittins
    expected = {job.name: learned.lifetimes(job).expected(job.worked_by(NOW)) for job in jobs}
    span = horizon(parameters.average_weight, sum(left for _, left in expected.values()) / CAP)
    rows = {}
    for job in jobs:
        index, left = expected[job.name]
        needed = work(index, 1, CAP) / (parameters.switch_ratio if job.units else 1)
        arrived, earlier = (NOW - job.entry_time).total_seconds(), boost(needed, span)
        rows[job.name] = (
            arrived + earlier,
            [shown(each) for each in (index, left, needed, earlier, arrived + earlier)],
        )
    ordered = sorted(rows, key=lambda name: -rows[name][0])
    return span, [[f"`{name}`", *rows[name][1]] for name in ordered]


def test_the_places_of_the_example_are_computed_so(example, snapshot):
    span, rows = computed(snapshot)
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    assert table(example, "place") == [[str(n), *row] for n, row in enumerate(rows, start=1)], f"{shown(span)}\n{text}"
    assert f"horizon is {shown(span)}" in " ".join(example.split())


def test_the_order_considers_the_jobs_in_these_places(example, snapshot):
    ranking = GittinsRanking(snapshot, NOW)
    names = [plain(row[1]) for row in table(example, "place")]
    jobs = sorted((*snapshot.active, *snapshot.waiting), key=ranking.rank, reverse=True)
    assert [job.name for job in jobs] == names


def test_the_picture_is_the_code_s():
    drawn = runpy.run_path(str(DOCS.parent / "scripts" / "boost_picture.py"))
    assert (DOCS / "explanation" / "gittins-boost.svg").read_text() == drawn["picture"]()
