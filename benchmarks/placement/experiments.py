"""The experiments: loads on clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from random import Random

from benchmarks.placement import loads
from benchmarks.placement.clusters import Cluster, Setting, cluster, gang_cluster
from benchmarks.placement.figures import of_run
from benchmarks.placement.loads import Load
from benchmarks.placement.simulation import Run
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Placement, Policy, Share

POLICIES = tuple(placement.value for placement in Placement)
REFERENCE = Placement.RANDOM.value
"""Reference of the article's gains: Ray's own policy."""
ARTICLE_POLICIES = tuple(policy for policy in POLICIES if policy != Placement.BEST_FIT.value)
MAX_ACTIONS = 100_000
"""Starts in one pass: all that fit, since no Lambda time limit applies."""
NODES = (4, 40, 400)
GANG_LOAD = 1.3
"""Exceeds the pools' capacity while gangs arrive, so that gangs wait and packing determines how long. On 400 nodes all
gangs have arrived before the first have filled the pools: few wait, and the longest gang alone ends last."""
Make = Callable[[Random, Cluster], Load]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One row of a table: a load on a cluster.

    Attributes:
        experiment: experiment of the article that it repeats.
        point: position on the figure's axis, in words.
        x: the same as a number.
        make: makes the load from a seed's random numbers.
        policy: settings besides the placement. Tasks start as soon as they fit, as Ray's do; gangs wait under the
            default order, which prevents starvation.
    """

    experiment: str
    setting: str
    nodes: int
    point: str
    x: float
    cluster: Cluster
    make: Make
    policy: Policy = Policy(reservations=0, max_actions=MAX_ACTIONS)  # noqa: RUF009 -- a frozen value

    @property
    def key(self) -> str:
        """Unique key of the cell."""
        return f"{self.experiment}, {self.setting}, {self.nodes} nodes, {self.point}"


def cells(experiments: tuple[str, ...], nodes: tuple[int, ...]) -> list[Cell]:
    """Return the cells of these experiments on clusters of these sizes; table 3 has three nodes, as in the article."""
    found = (cell for name in experiments for cell in EXPERIMENTS[name](name))
    return [cell for cell in found if cell.nodes in nodes or cell.experiment == "table 3"]


def run_cell(cell: Cell, policy: str, seed: int) -> dict[str, float]:
    """Return the figures of one run. All policies get the same load for a seed."""
    load = cell.make(Random(f"{cell.key} {seed}"), cell.cluster)
    settings = _with(cell.policy, Placement(policy))
    return of_run(Run(load, cell.cluster, settings, seed).play(), cell.cluster)


def _with(policy: Policy, placement: Placement) -> Policy:
    return Policy(
        placement=placement,
        reservations=policy.reservations,
        shares=policy.shares,
        max_actions=policy.max_actions,
    )


def _table_2(name: str) -> Iterator[Cell]:
    for nodes, setting in (*((4, setting) for setting in Setting), (40, Setting.UNEQUAL), (400, Setting.UNEQUAL)):
        yield Cell(
            experiment=name,
            setting=setting,
            nodes=nodes,
            point="40 tasks, one by one",
            x=1,
            cluster=cluster(nodes, setting),
            make=lambda rng, _: loads.one_by_one(rng, 40),
        )


def _figure_4(name: str) -> Iterator[Cell]:
    for nodes, setting, parallelisms in (
        (4, Setting.COUNTERS, (30,)),
        (4, Setting.SHARED, (10, 30, 100)),
        (4, Setting.UNEQUAL, (10, 30, 100)),
        (40, Setting.UNEQUAL, (100, 300, 1000)),
        (400, Setting.UNEQUAL, (1000,)),
    ):
        for parallelism in parallelisms:
            yield Cell(
                experiment=name,
                setting=setting,
                nodes=nodes,
                point=f"{parallelism} equal tasks at once",
                x=parallelism,
                cluster=cluster(nodes, setting),
                make=lambda rng, _, many=parallelism: loads.equal_at_once(rng, many),  # type: ignore[misc]
            )


def _figure_5(name: str) -> Iterator[Cell]:
    for nodes, setting, parallelism in (
        (4, Setting.UNEQUAL, 10),
        *((40, Setting.UNEQUAL, parallelism) for parallelism in (10, 50, 100, 200, 300, 700)),
        (40, Setting.SHARED, 100),
        (40, Setting.COUNTERS, 100),
        (400, Setting.UNEQUAL, 1000),
    ):
        yield Cell(
            experiment=name,
            setting=setting,
            nodes=nodes,
            point=f"{parallelism} unequal tasks at once",
            x=parallelism,
            cluster=cluster(nodes, setting),
            make=lambda rng, _, many=parallelism: loads.unequal_at_once(rng, many),  # type: ignore[misc]
        )


def _figure_6(name: str) -> Iterator[Cell]:
    """Yield the cells of figure 6. Larger clusters have larger tables in more parts of the same work."""
    for join, (nodes, sizes) in product((False, True), ((4, (1, 3, 5, 7)), (40, (10, 30, 50, 70)), (400, (100,)))):
        for gigabytes in sizes:
            yield Cell(
                experiment=name,
                setting=Setting.UNEQUAL,
                nodes=nodes,
                point=f"{'join' if join else 'selection'}, {gigabytes} GB",
                x=gigabytes,
                cluster=cluster(nodes, Setting.UNEQUAL),
                make=lambda rng, where, size=gigabytes, both=join: loads.queries(  # type: ignore[misc]
                    rng, size, join=both, larger=len(where.pools) // 4
                ),
            )


def _table_3(name: str) -> Iterator[Cell]:
    """Yield the cells of table 3: the submitting host is the first of three nodes, and is preferred."""
    local = Policy(
        reservations=0,
        max_actions=MAX_ACTIONS,
        shares={DEFAULT_SHARE: Share(name=DEFAULT_SHARE, prefers=("ml.node-000",))},
    )
    for count in (50, 200):
        for first, policy in (("local first", local), ("no node first", Policy(reservations=0))):
            yield Cell(
                experiment=name,
                setting=Setting.SHARED,
                nodes=3,
                point=f"{count} tasks, {first}",
                x=count,
                cluster=cluster(3, Setting.SHARED),
                make=lambda rng, where, many=count: loads.arriving(rng, many, where.slots, 0.45),  # type: ignore[misc]
                policy=policy,
            )


def _gangs(name: str) -> Iterator[Cell]:
    for nodes, count, two_types in (
        (4, 120, False),
        (4, 120, True),
        (40, 240, True),
        (400, 1400, True),
    ):
        yield Cell(
            experiment=name,
            setting=Setting.COUNTERS,
            nodes=nodes,
            point=f"{count} gangs, {'two types' if two_types else 'one type'}",
            x=nodes,
            cluster=gang_cluster(nodes, two_types=two_types),
            make=lambda rng, where, many=count, both=two_types: loads.gangs(  # type: ignore[misc]
                rng, many, where.slots, GANG_LOAD, two_types=both
            ),
            policy=Policy(max_actions=MAX_ACTIONS),
        )


EXPERIMENTS: dict[str, Callable[[str], Iterator[Cell]]] = {
    "table 2": _table_2,
    "figure 4": _figure_4,
    "figure 5": _figure_5,
    "figure 6": _figure_6,
    "table 3": _table_3,
    "gangs": _gangs,
}
