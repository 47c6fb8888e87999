"""The worked example of `docs/explanation/placement.md`: its jobs are planned, its numbers are computed.

The page is the test's input: pools, jobs and settings are read from its tables, and what comes of them is compared.
"""

from __future__ import annotations

import json
import random
import re
from datetime import timedelta
from fractions import Fraction

import pytest

from builders import NOW, a_job, a_snapshot
from doc_pages import DOCS, Row, plain, section, table
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.plan import Plan, Start, Wait
from trainmaster.domain.policy.document import policy_of
from trainmaster.domain.policy.settings import Placement, Policy
from trainmaster.planner.placement.policies import CandidatePool, chances, smooth_round
from trainmaster.planner.schedule import schedule

PAGE = DOCS / "explanation" / "placement.md"
NUMBERS = section(PAGE, "The article's numbers")
EXAMPLE = section(PAGE, "A worked example")
JOBS = table(EXAMPLE, "job")


def resources(tag: str) -> Resources:
    """Resources that a job of the page requests."""
    given = dict(part.split("=") for part in plain(tag).split(","))
    return Resources(**{name: float(value) if name.endswith("gib") else int(value) for name, value in given.items()})


def jobs():
    for minute, (name, instances, tag, _) in enumerate(JOBS):
        demand = Demand((), queue_selects_pool=True, resources=resources(tag), instances=int(instances))
        yield a_job(plain(name), demand=demand, entry_time=NOW + timedelta(minutes=minute))


def pools() -> list[Pool]:
    return [Pool(plain(name), int(cap)) for name, cap, *_ in table(EXAMPLE, "pool")]


def plan(policy: Policy) -> Plan:
    read = a_snapshot(pools={pool.name: pool for pool in pools()}, waiting=list(jobs()), policy=policy)
    return schedule(read, NOW + timedelta(minutes=len(JOBS)), random.Random(1))


def told(decided: Plan) -> dict[str, str]:
    """Outcome of each job, in the words of the page, which leave out the time."""
    words = {}
    for decision in decided.decisions:
        if isinstance(decision, Start):
            words[decision.job.name] = f"starts in {next(iter(decision.units))}"
        elif isinstance(decision, Wait):
            words[decision.job.name] = decision.reason.message().partition(", expected by")[0]
    return words


def said(rows: list[Row]) -> dict[str, str]:
    return {plain(row[0]): row[-1] for row in rows}


def test_the_chances_of_the_article_are_what_the_policies_give():
    rows = [[*map(int, row[:4]), *map(Fraction, row[4:])] for row in table(NUMBERS, "node")]
    assert [free for _, _, _, free, _, _ in rows] == [total - load for _, total, load, *_ in rows]
    contenders = [
        CandidatePool(name=str(name), total=Fraction(total), free=Fraction(free)) for name, total, _, free, _, _ in rows
    ]
    assert chances(Placement.PICK_KX, contenders) == [row[4] for row in rows]
    assert chances(Placement.RESOURCE_PICK_KX, contenders) == [row[5] for row in rows]


def test_a_round_of_the_articles_weights_goes_as_the_page_says():
    rows = [(name, *map(Fraction, weights)) for name, *weights in table(NUMBERS, "pool")]
    raised = {name: last + initial for name, last, initial, *_ in rows}
    assert raised == {name: weight for name, _, _, weight, _ in rows}
    chosen, after = smooth_round({row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows})
    assert (chosen, after) == ("4", {row[0]: row[4] for row in rows})
    assert f"{float(sum(row[2] for row in rows)):g}" in NUMBERS.partition("| pool |")[0]


def test_the_pools_of_the_page_are_in_the_catalogue():
    for name, _, *figures in table(EXAMPLE, "pool"):
        kind = Catalogue().type_of(plain(name))
        assert kind is not None
        known = (kind.accelerators, kind.accelerator_memory_gib, kind.vcpus, kind.memory_gib)
        assert tuple(map(float, figures)) == pytest.approx(known), name


def test_every_job_of_the_example_gets_the_place_or_the_reason_that_the_page_says():
    assert told(plan(Policy())) == said(JOBS)


def test_with_expansion_the_pools_are_made_that_the_page_says_and_the_jobs_get_what_it_says():
    given = json.loads(re.search(r"`(\{.*\})`", EXAMPLE).group(1))
    policy = policy_of(given, Policy())
    decided = plan(policy)
    made = [
        [f"`{each.pool.name}`", str(each.pool.cap), *(f"`{job}`" for job in each.jobs), f"{each.dollars_per_hour:.2f}"]
        for each in decided.expansions
    ]
    assert made == table(EXAMPLE, "managed pool")
    changed = table(EXAMPLE, "job then")
    before, after = told(plan(Policy())), told(decided)
    assert {name: words for name, words in after.items() if words != before[name]} == said(changed)
