"""How the queue chooses among pools that could all hold a job: the placement policies, each a pure function.

From Liu et al., "Heterogeneous Task Scheduling Framework in Emerging Distributed Computing Systems" (Journal of
Software 33(3), 2022), section 3.2, where a node is a pool here, and `best-fit`. It must not look at jobs, nor know what
kept other pools from being in question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.domain.plan import Cursors
from trainmaster.domain.policy import Placement

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
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


def choose(policy: Placement, nodes: Sequence[Node], cursors: Cursors, rng: Random) -> Chosen:
    """The pool in which the policy puts a job.

    Args:
        policy: of the queue.
        nodes: at least one.
        cursors: where the policies that go round have got to.
        rng: for those that draw.
    """
    return _POLICIES[policy](nodes, cursors, rng)


def _best_fit(nodes: Sequence[Node], _cursors: Cursors, _rng: Random) -> Chosen:
    """The pool whose instances have least to spare, then the one that is left fullest: large holes stay for gangs."""
    return Chosen(min(nodes, key=lambda node: (node.surplus, node.left, node.name)).name)


_POLICIES: Mapping[Placement, Callable[[Sequence[Node], Cursors, Random], Chosen]] = {Placement.BEST_FIT: _best_fit}
