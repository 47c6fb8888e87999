"""Starts in several pools are committed together, but no more in a pool than have been tried there."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from builders import G5, P5
from trainmaster.planner.schedule import schedule
from trainmaster.service.apply_plan import PassReport, apply_plan
from world import BRISK, World

EACH = 7


class CountingStore:
    """A store that counts transitions."""

    def __init__(self, store: Any) -> None:
        self.store, self.transitions = store, 0

    def __getattr__(self, verb: str) -> Any:
        self.transitions += verb == "transition"
        return getattr(self.store, verb)


def applied(**options):
    """Apply one pass's plan for seven jobs in each of two pools; return its report and its number of transactions."""
    world = World(pools=f"{P5}={EACH},{G5}={EACH}", profile=BRISK, **options)
    for number in range(EACH):
        world.submit(f"p5-{number}", kind=P5)
        world.submit(f"g5-{number}", kind=G5)
    manager_context = world.application().manager_context
    counting = CountingStore(manager_context.store)
    snapshot = counting.begin_pass()
    plan = schedule(snapshot, world.clock.now(), random.Random(1))
    report = PassReport(snapshot.pass_number, plan=plan)
    apply_plan(replace(manager_context, store=counting, pools=snapshot.pools), snapshot, report)
    return report, counting.transitions


def started_of(report, kind):
    return [name for name in report.started if name.startswith(kind)]


def test_starts_in_two_pools_share_transactions():
    report, transactions = applied()
    # One, one, two and three in each pool; the launches of each batch are confirmed by one more transaction.
    assert transactions == 2 * 4
    for kind in ("p5", "g5"):
        assert started_of(report, kind) == [f"{kind}-{number}" for number in range(EACH)]


def test_a_full_pool_costs_one_refused_start_and_the_other_pool_none():
    report, _ = applied(limits={P5: 0})
    assert report.requeued == started_of(report, "p5") == ["p5-0"]
    assert started_of(report, "g5") == [f"g5-{number}" for number in range(EACH)]
