"""Placement policies: strategies that choose among pools which could all hold a job, and their registry.

`best-fit` is ours; the others are those of Liu et al., "Heterogeneous Task Scheduling Framework in Emerging Distributed
Computing Systems" (Journal of Software 33(3), 2022), section 3.2, where a node is a pool here.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, TypeVar

from trainmaster.domain.plan import Cursors

if TYPE_CHECKING:
    from random import Random

Number = TypeVar("Number", float, Fraction)
"""The numbers of the formulas: floats in a pass, fractions where results have to be exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePool:
    """A pool that could hold a job, as the policies see it.

    Attributes:
        name: the pool.
        total: capacity (T in the article): accelerators, or vCPUs if the job asks for no accelerators.
        free: the part of `total` that no job holds (A = T - L).
        weight: the initial weight (W_ini, equation 6).
        surplus: what its instances have beyond the request, the most expensive resource first; compared in that order.
        left: instances that stay free beside the job.
    """

    name: str
    total: float
    free: float
    weight: float = 0.0
    surplus: tuple[float, ...] = ()
    left: int = 0


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """The chosen pool, and the cursors after the choice; None if the policy keeps none."""

    name: str
    cursors: Cursors | None = None


class PlacementPolicy(Protocol):
    """A strategy that chooses among pools.

    Candidates come sorted by name, at least one, so that equal arguments give an equal answer.

    Attributes:
        name: the value of the setting `placement`.
        deterministic: whether the candidates alone decide: no draw and no cursor.
        weighted: whether the policy reads `CandidatePool.weight`.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 -- see the class

    @property
    def deterministic(self) -> bool: ...  # noqa: D102

    @property
    def weighted(self) -> bool: ...  # noqa: D102

    def choose(self, pools: Sequence[CandidatePool], cursors: Cursors, rng: Random) -> PoolChoice:
        """Return the pool for a job that starts now. A policy that draws takes exactly one number from `rng`."""

    def choose_queue(self, pools: Sequence[CandidatePool], point: float) -> str:
        """Return the pool in which a job waits that fits nowhere now; `point`, from 0 to below 1, replaces the draw."""


def choose(policy: str, pools: Sequence[CandidatePool], cursors: Cursors, rng: Random) -> PoolChoice:
    """Return the pool in which the policy puts a job that starts now; ties go to the first by name.

    Args:
        policy: the setting of the queue.
        pools: at least one, in any order.
        cursors: positions of the round-robin policies.
        rng: for policies that draw.
    """
    return POLICIES[policy].choose(sorted(pools, key=_name), cursors, rng)


def choose_queue(policy: str, pools: Sequence[CandidatePool], point: float) -> str:
    """Return the pool in which a job waits that fits nowhere now (algorithm 2, lines 7 to 11).

    The policy decides on totals. Free capacity does not count: it is too small everywhere and changes with every pass.
    Without load, `pick-kx` treats all pools alike; `resource-pick-kx`, which cannot schedule without free capacity (the
    article, below algorithm 3), uses the totals. A waiting job has no turn yet, so a round-robin policy draws by what
    it gives each pool eventually.

    Args:
        policy: the setting of the queue.
        pools: at least one, each large enough if nothing else ran.
        point: from 0 to below 1, in place of a draw; the same in every pass, so that the answer is the same.
    """
    return POLICIES[policy].choose_queue(sorted(pools, key=_name), point)


def chances(policy: str, pools: Sequence[CandidatePool]) -> list[float]:
    """Return the probabilities with which a policy that draws chooses each pool for a job that starts now.

    P_j = X_j / sum of all X (equation 1), and P'_j = A_j / sum of all A (equations 4 and 5). Exact if the pools'
    numbers are fractions. Raises `KeyError` for a policy that does not draw.
    """
    drawing = POLICIES[policy]
    if not isinstance(drawing, DrawPolicy):
        raise KeyError(policy)
    parts = drawing.parts(pools)
    in_all = sum(parts)
    return [part / in_all for part in parts]


# -- formulas of the article -----------------------------------------------------------------------------------------


def loads_elsewhere(loads: Sequence[Number]) -> list[Number]:
    """Return X_j, the part of all load that is on pools other than j: (L_total - L_j) / L_total (equations 2 and 3).

    Raises `ZeroDivisionError` without any load, for which the equations are undefined.
    """
    in_all = sum(loads)
    return [(in_all - load) / in_all for load in loads]


def initial_weight(cpu: Number, gpu: Number, memory: Number, alpha: Number) -> Number:
    """Return W_ini = 0.9 (alpha CPU + beta GPU) + 0.1 MEM, with alpha + beta = 1 (equation 6)."""
    return (9 * (alpha * cpu + (1 - alpha) * gpu) + memory) / 10


def smooth_round(last: Mapping[str, Number], initial: Mapping[str, Number]) -> tuple[str, dict[str, Number]]:
    """Return the choice and all weights after one round of smooth weighted round robin (equations 7 to 9, algorithm 4).

    Args:
        last: weights after the previous round; absent pools have 0.
        initial: W_ini of the candidates, at least one. The sum of all weights stays the same.
    """
    now = {name: last.get(name, 0) + weight for name, weight in initial.items()}
    target = min(now, key=lambda name: (-now[name], name))
    return target, {**last, **now, target: now[target] - sum(initial.values())}


# -- parts of a draw -------------------------------------------------------------------------------------------------

Parts = Callable[[Sequence[CandidatePool]], list[float]]
"""A function that gives each pool its part of the chances."""


def _name(pool: CandidatePool) -> str:
    return pool.name


def _draw(pools: Sequence[CandidatePool], parts: Sequence[float], point: float) -> str:
    """Return the pool whose part of the whole contains the point; never a pool without a part."""
    ends = list(accumulate(parts))
    last = max(index for index, part in enumerate(parts) if part > 0)
    return pools[bisect(ends, point * ends[-1], hi=last)].name


def _even(pools: Sequence[CandidatePool]) -> list[float]:
    """Return equal parts: Ray's own policy (section 1)."""
    return [1.0] * len(pools)


def _by_load(pools: Sequence[CandidatePool]) -> list[float]:
    """Return larger parts for pools with less of the load (equations 1 to 3).

    Equal parts where the equations are undefined: without load, or with one pool.
    """
    loads = [max(pool.total - pool.free, 0) for pool in pools]
    return loads_elsewhere(loads) if len(pools) > 1 and any(loads) else _even(pools)


def _by_free(pools: Sequence[CandidatePool]) -> list[float]:
    """Return larger parts for pools with more free capacity (equations 4 and 5, algorithm 3).

    By the totals if nothing is free, which the article leaves undefined.
    """
    free = [pool.free for pool in pools]
    return free if any(free) else _by_total(pools)


def _by_total(pools: Sequence[CandidatePool]) -> list[float]:
    totals = [pool.total for pool in pools]
    return totals if any(totals) else _even(pools)


def _by_weight(pools: Sequence[CandidatePool]) -> list[float]:
    """Return the weights; equal parts if all are unknown, or else the first by name would be chosen every time."""
    weights = [pool.weight for pool in pools]
    return weights if any(weights) else _even(pools)


# -- the policies ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawPolicy:
    """A policy that draws: `random`, `pick-kx`, `resource-pick-kx`.

    Attributes:
        name: the value of the setting.
        parts: the parts of the chances for a job that starts now.
        queue_parts: the same for a job that waits.
    """

    name: str
    parts: Parts
    queue_parts: Parts
    deterministic: bool = False
    weighted: bool = False

    def choose(self, pools: Sequence[CandidatePool], _cursors: Cursors, rng: Random) -> PoolChoice:
        """Return a pool drawn by its part."""
        return PoolChoice(_draw(pools, self.parts(pools), rng.random()))

    def choose_queue(self, pools: Sequence[CandidatePool], point: float) -> str:
        """Return the pool at the point of the whole."""
        return _draw(pools, self.queue_parts(pools), point)


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """`round-robin`: the next pool by name after the last one; a name keeps its place as pools come and go."""

    name: str = "round-robin"
    deterministic: bool = False
    weighted: bool = False

    def choose(self, pools: Sequence[CandidatePool], cursors: Cursors, _rng: Random) -> PoolChoice:
        """Return the next pool, and the cursor on it."""
        name = next((pool.name for pool in pools if pool.name > cursors.last), pools[0].name)
        return PoolChoice(name, replace(cursors, last=name))

    def choose_queue(self, pools: Sequence[CandidatePool], point: float) -> str:
        """Return the pool at the point; each has an equal part."""
        return _draw(pools, _even(pools), point)


@dataclass(frozen=True, slots=True)
class SmoothWeightedRoundRobin:
    """`smooth-weighted-round-robin`: the pool that is heaviest at present (algorithm 4)."""

    name: str = "smooth-weighted-round-robin"
    deterministic: bool = False
    weighted: bool = True

    def choose(self, pools: Sequence[CandidatePool], cursors: Cursors, _rng: Random) -> PoolChoice:
        """Return the heaviest pool, and the weights after its turn."""
        initial = dict(zip((pool.name for pool in pools), _by_weight(pools), strict=True))
        name, weights = smooth_round(cursors.weights, initial)
        return PoolChoice(name, replace(cursors, weights=weights))

    def choose_queue(self, pools: Sequence[CandidatePool], point: float) -> str:
        """Return the pool at the point; each has a part by its weight."""
        return _draw(pools, _by_weight(pools), point)


@dataclass(frozen=True, slots=True)
class BestFit:
    """`best-fit`: the pool whose instances have the least surplus, then the fullest; large holes stay for gangs."""

    name: str = "best-fit"
    deterministic: bool = True
    weighted: bool = False

    def choose(self, pools: Sequence[CandidatePool], _cursors: Cursors, _rng: Random) -> PoolChoice:
        """Return the best fit."""
        return PoolChoice(self._best(pools))

    def choose_queue(self, pools: Sequence[CandidatePool], _point: float) -> str:
        """Return the best fit."""
        return self._best(pools)

    @staticmethod
    def _best(pools: Sequence[CandidatePool]) -> str:
        return min(pools, key=lambda pool: (pool.surplus, pool.left, pool.name)).name


POLICIES: dict[str, PlacementPolicy] = {
    policy.name: policy
    for policy in (
        DrawPolicy("random", _even, _even),
        RoundRobin(),
        DrawPolicy("pick-kx", _by_load, _even),
        DrawPolicy("resource-pick-kx", _by_free, _by_total),
        SmoothWeightedRoundRobin(),
        BestFit(),
    )
}
"""The policies by the value of the setting `placement`."""
