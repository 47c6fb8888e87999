"""How the queue chooses among pools that could all hold a job: the placement policies, each a pure function.

From Liu et al., "Heterogeneous Task Scheduling Framework in Emerging Distributed Computing Systems" (Journal of
Software 33(3), 2022), section 3.2, where a node is a pool here, and `best-fit`. It must not look at jobs, nor know what
kept other pools from being in question.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from trainmaster.domain.plan import Cursors
from trainmaster.domain.policy.settings import Placement

if TYPE_CHECKING:
    from random import Random

Number = TypeVar("Number", float, Fraction)
"""What the formulas are reckoned in: floats in a pass; fractions, where they have to be exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A pool in question, as the policies see it.

    Attributes:
        name: the pool.
        total: what it has in all (T of the article): accelerators, or vCPUs where the job asks for no accelerators.
        free: what of that nobody holds (A = T - L).
        weight: its initial weight (W_ini, equation 6).
        surplus: what its instances have beyond what the job asks for, dearest kind first; compared in that order.
        left: instances that would stay free beside the job.
    """

    name: str
    total: float
    free: float
    weight: float = 0.0
    surplus: tuple[float, ...] = ()
    left: int = 0


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pool chosen, and how far the cursors have moved; None where the policy has none."""

    name: str
    cursors: Cursors | None = None


def choose(policy: Placement, contenders: Sequence[Contender], cursors: Cursors, rng: Random) -> Chosen:
    """The pool in which the policy puts a job that starts now.

    Equal arguments give an equal answer, in whatever order these come: ties go to the first by name. Policies that
    draw take exactly one number from `rng`.

    Args:
        policy: of the queue.
        contenders: at least one.
        cursors: where the policies that go round have got to.
        rng: for those that draw.
    """
    contenders = sorted(contenders, key=_name)
    if policy in _PARTS:
        return Chosen(_drawn(contenders, chances(policy, contenders), rng.random()))
    return _POLICIES[policy](contenders, cursors)


def chances(policy: Placement, contenders: Sequence[Contender]) -> list[float]:
    """With what probability a policy that draws puts a job that starts now in each of the pools.

    P_j = X_j / sum of all X (equation 1), and P'_j = A_j / sum of all A (equations 4 and 5). Exact where the pools'
    figures are fractions. Raises `KeyError` for a policy that does not draw.

    Args:
        policy: `random`, `pick-kx` or `resource-pick-kx`.
        contenders: at least one.
    """
    parts = _PARTS[policy](contenders)
    in_all = sum(parts)
    return [part / in_all for part in parts]


def choose_queue(policy: Placement, contenders: Sequence[Contender], point: float) -> str:
    """The pool in which a job waits that fits nowhere now (algorithm 2, lines 7 to 11): by the same policy, on totals.

    What is free does not count, since it is too little everywhere and another in the next pass; nothing is loaded
    then, so to `pick-kx` all pools are alike, and `resource-pick-kx`, which cannot schedule where nothing is free (the
    article, below algorithm 3), goes by the totals. A job that waits has no turn yet, so of the policies that go round
    it draws what they give each pool in the long run.

    Args:
        policy: of the queue.
        contenders: at least one, each large enough if nothing else ran.
        point: from 0 on, less than 1: what a policy that draws goes by. The same in every pass, so that the answer is.
    """
    contenders = sorted(contenders, key=_name)
    if policy is Placement.BEST_FIT:
        return _best_of(contenders).name
    return _drawn(contenders, _LONG_RUN[policy](contenders), point)


# -- the article's formulas ------------------------------------------------------------------------------------------


def loads_elsewhere(loads: Sequence[Number]) -> list[Number]:
    """X_j, the part of all load that is on other pools than j: (L_total - L_j) / L_total (equations 2 and 3).

    Raises `ZeroDivisionError` where nothing is loaded: the equations say nothing then.
    """
    in_all = sum(loads)
    return [(in_all - load) / in_all for load in loads]


def initial_weight(cpu: Number, gpu: Number, memory: Number, alpha: Number) -> Number:
    """W_ini = 0.9 (alpha CPU + beta GPU) + 0.1 MEM, with alpha + beta = 1 (equation 6)."""
    return (9 * (alpha * cpu + (1 - alpha) * gpu) + memory) / 10


def smooth_round(last: Mapping[str, Number], initial: Mapping[str, Number]) -> tuple[str, dict[str, Number]]:
    """One round of smooth weighted round robin (equations 7 to 9, algorithm 4): who is chosen, and all weights then.

    Args:
        last: weights after the round before; 0 where one is absent.
        initial: W_ini of the pools in question, at least one. The sum of all weights stays what it was.
    """
    now = {name: last.get(name, 0) + weight for name, weight in initial.items()}
    target = min(now, key=lambda name: (-now[name], name))
    return target, {**last, **now, target: now[target] - sum(initial.values())}


# -- the policies ----------------------------------------------------------------------------------------------------


def _name(contender: Contender) -> str:
    return contender.name


def _drawn(contenders: Sequence[Contender], parts: Sequence[float], point: float) -> str:
    """The pool on whose part of the whole a point of it lies; never one whose part is nothing."""
    ends = list(accumulate(parts))
    last = max(index for index, part in enumerate(parts) if part > 0)
    return contenders[bisect(ends, point * ends[-1], hi=last)].name


def _even(contenders: Sequence[Contender]) -> list[float]:
    """All alike: Ray's own policy (section 1)."""
    return [1.0] * len(contenders)


def _by_load(contenders: Sequence[Contender]) -> list[float]:
    """More where less of all load is (equations 1 to 3).

    All alike where the equations say nothing: nothing is loaded, or there is no other pool.
    """
    loads = [max(contender.total - contender.free, 0) for contender in contenders]
    return loads_elsewhere(loads) if len(contenders) > 1 and any(loads) else _even(contenders)


def _by_free(contenders: Sequence[Contender]) -> list[float]:
    """More where more is free (equations 4 and 5, algorithm 3).

    By the totals where nothing is free, which the article leaves undefined.
    """
    free = [contender.free for contender in contenders]
    return free if any(free) else _by_total(contenders)


def _by_total(contenders: Sequence[Contender]) -> list[float]:
    totals = [contender.total for contender in contenders]
    return totals if any(totals) else _even(contenders)


def _by_weight(contenders: Sequence[Contender]) -> list[float]:
    """All alike where nothing that counts is known of any: else the first by name would be chosen for ever."""
    weights = [contender.weight for contender in contenders]
    return weights if any(weights) else _even(contenders)


def _round_robin(contenders: Sequence[Contender], cursors: Cursors) -> Chosen:
    """The next by name after the last: a name keeps its place in the round, whichever pools come and go."""
    name = next((contender.name for contender in contenders if contender.name > cursors.last), contenders[0].name)
    return Chosen(name, replace(cursors, last=name))


def _smooth_weighted_round_robin(contenders: Sequence[Contender], cursors: Cursors) -> Chosen:
    """The heaviest at present (algorithm 4)."""
    initial = dict(zip((contender.name for contender in contenders), _by_weight(contenders), strict=True))
    name, weights = smooth_round(cursors.weights, initial)
    return Chosen(name, replace(cursors, weights=weights))


def _best_fit(contenders: Sequence[Contender], _cursors: Cursors) -> Chosen:
    return Chosen(_best_of(contenders).name)


def _best_of(contenders: Sequence[Contender]) -> Contender:
    """The pool whose instances have least to spare, then the one that is left fullest: large holes stay for gangs."""
    return min(contenders, key=lambda contender: (contender.surplus, contender.left, contender.name))


_PARTS: Mapping[Placement, Callable[[Sequence[Contender]], list[float]]] = {
    Placement.RANDOM: _even,
    Placement.PICK_KX: _by_load,
    Placement.RESOURCE_PICK_KX: _by_free,
}
"""The policies that draw: what part each pool has of their chances."""
_POLICIES: Mapping[Placement, Callable[[Sequence[Contender], Cursors], Chosen]] = {
    Placement.ROUND_ROBIN: _round_robin,
    Placement.SMOOTH_WEIGHTED_ROUND_ROBIN: _smooth_weighted_round_robin,
    Placement.BEST_FIT: _best_fit,
}
_LONG_RUN: Mapping[Placement, Callable[[Sequence[Contender]], list[float]]] = {
    Placement.RANDOM: _even,
    Placement.ROUND_ROBIN: _even,
    Placement.PICK_KX: _even,
    Placement.RESOURCE_PICK_KX: _by_total,
    Placement.SMOOTH_WEIGHTED_ROUND_ROBIN: _by_weight,
}
