"""The search for the cheapest set of candidates that frees enough, without redundant ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.planner.preemption.candidates import Candidate, Permits, max_useful
from trainmaster.planner.preemption.eligible import EligibleCandidates, Preemptor

MAX_EXACT_STEPS = 20_000
"""Steps of the exact search: enough for about 100 units of one pool. Beyond it, the search is approximate."""
MAX_EXHAUSTIVE = 12
"""Candidates up to which every set is tried, if permission depends on which others are taken."""
MAX_NODES = 10_000
"""Steps of that search: all that it can need."""
MAX_SEARCHED, MAX_NODES_OF_MANY = 40, 1_500
"""For more candidates: how many are searched, and in how many steps (some milliseconds)."""


def by_rank_and_cost(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates by rank, cost and name."""
    return sorted(candidates, key=lambda c: c.order)


def relevant(candidates: Iterable[Candidate], missing: Units) -> list[Candidate]:
    """Return those that a cheapest set may need, by name: of candidates that free the same, only the cheapest few."""
    counts: dict[tuple[int, ...], int] = {}
    kept = []
    for candidate in sorted(candidates, key=lambda c: (c.cost, c.job.name)):
        freed = tuple(min(candidate.units.get(pool, 0), count) for pool, count in missing.items())
        counts[freed] = counts.get(freed, 0) + 1
        if any(freed) and counts[freed] <= max_useful(candidate, missing):
            kept.append(candidate)
    return sorted(kept, key=lambda c: c.job.name)


def cheapest(candidates: Iterable[Candidate], missing: Units) -> list[Candidate]:
    """Return the cheapest set that frees `missing`, if only what each candidate frees matters.

    Exact as long as that takes at most `MAX_EXACT_STEPS`: among sets of equal cost the smallest, then the first by
    name. Beyond that, approximate. Empty if all together do not suffice.
    """
    items = relevant(candidates, missing)
    exact = len(items) * prod(count + 1 for count in missing.values()) <= MAX_EXACT_STEPS
    return by_rank_and_cost(_exact(items, missing) if exact else _approximate(items, missing))


def _exact(items: Sequence[Candidate], missing: Units) -> list[Candidate]:
    """Return the cheapest set by dynamic programming over what is still missing; items are sorted by name."""
    pools = sorted(missing)
    done = (0,) * len(pools)
    best: dict[tuple[int, ...], tuple[float, int, tuple[int, ...]]] = {tuple(missing[p] for p in pools): (0.0, 0, ())}
    for rank, item in enumerate(items):
        frees = tuple(item.units.get(pool, 0) for pool in pools)
        for left, (cost, count, taken) in list(best.items()):
            after = tuple(max(a - b, 0) for a, b in zip(left, frees, strict=True))
            new = (cost + item.cost, count + 1, (*taken, rank))
            if after != left and (after not in best or new < best[after]):
                best[after] = new
    return [items[rank] for rank in best[done][2]] if done in best else []


def _approximate(items: Sequence[Candidate], missing: Units) -> list[Candidate]:
    """Return the cheapest candidates for each freed unit, without the most expensive redundant ones."""
    taken = take_in_order(sorted(items, key=by_the_unit(missing)), missing)
    return drop_redundant(sorted(taken, key=lambda c: (c.cost, c.job.name)), missing)


def by_the_unit(missing: Units) -> Callable[[Candidate], tuple[float, str]]:
    """Return a sort key: the cost of a candidate for each unit that it frees."""
    return lambda c: (c.cost / sum(c.units.get(pool, 0) for pool in missing), c.job.name)


def take_in_order(ordered: Iterable[Candidate], missing: Units, permits: Permits | None = None) -> list[Candidate]:
    """Return the first that free missing units and are permitted; empty if they do not free all."""
    left = dict(missing)
    taken: list[Candidate] = []
    jobs: list[Job] = []
    for candidate in ordered:
        helps = any(left.get(pool, 0) > 0 for pool in candidate.units)
        if helps and (permits is None or permits(candidate.job, jobs)):
            taken.append(candidate)
            jobs.append(candidate.job)
            left = {pool: count - candidate.units.get(pool, 0) for pool, count in left.items()}
            if all(count <= 0 for count in left.values()):
                return taken
    return []


def drop_redundant(taken: Sequence[Candidate], missing: Units, permits: Permits | None = None) -> list[Candidate]:
    """Return the set without redundant candidates, tested from its end; the rest stays permitted in its order."""
    kept = list(taken)
    spare = {pool: sum(c.units.get(pool, 0) for c in taken) - count for pool, count in missing.items()}
    for candidate in reversed(taken):
        if any(candidate.units.get(pool, 0) > left for pool, left in spare.items()):
            continue
        without = [other for other in kept if other is not candidate]
        if permitted(without, permits):
            kept = without
            spare = {pool: left - candidate.units.get(pool, 0) for pool, left in spare.items()}
    return kept


def swap_in_lower_ranks(
    taken: Sequence[Candidate], candidates: Sequence[Candidate], preemptor: Preemptor
) -> list[Candidate]:
    """Return the set with each victim replaced if lower-ranked candidates could take its place.

    A lower-ranked job may have been spared because it loses more work. But if the victim could preempt it in its turn,
    the next pass would, and two jobs would stop for one.
    """
    missing, permits = preemptor.missing, preemptor.permits
    for victim in reversed(by_rank_and_cost(taken)):
        others = [other for other in taken if other is not victim]
        lower = [c for c in candidates if c.rank < victim.rank and c not in taken and _same_rules(c, victim, permits)]
        left = {pool: count - sum(c.units.get(pool, 0) for c in others) for pool, count in missing.items()}
        left = {pool: count for pool, count in left.items() if count > 0}
        if left and lower and frees(lower, left):
            swapped = own_first([*others, *cheapest(lower, left)], preemptor)
            if permitted(swapped, permits):
                return swap_in_lower_ranks(drop_redundant(swapped, missing, permits), candidates, preemptor)
    return list(taken)


def _same_rules(candidate: Candidate, victim: Candidate, permits: Permits | None) -> bool:
    """Return True if rank alone decides between the two."""
    return permits is None or candidate.job.share == victim.job.share


def frees(taken: Sequence[Candidate], missing: Units) -> bool:
    """Return True if these together free what is missing."""
    return all(sum(c.units.get(pool, 0) for c in taken) >= count for pool, count in missing.items())


def permitted(taken: Sequence[Candidate], permits: Permits | None) -> bool:
    """Return True if each of these is permitted after those before it."""
    if permits is None:
        return True
    jobs = [candidate.job for candidate in taken]
    return all(permits(job, jobs[:index]) for index, job in enumerate(jobs))


def best_set(eligible: EligibleCandidates, preemptor: Preemptor) -> list[Candidate]:
    """Return the cheapest set that frees all that is missing and in which each is permitted after those before it.

    The cheapest set of individually permitted candidates is mostly permitted as a whole. If it is not, all sets are
    tried for few candidates, and otherwise some sets and several orders. The final set is checked against every rule
    again.
    """
    missing, permits = preemptor.missing, preemptor.permits
    candidates = eligible.candidates(missing)
    taken = own_first(cheapest(candidates, missing), preemptor)
    if permits is not None and not permitted(taken, permits):
        taken = _best_of_orders(eligible, preemptor, permits)
    taken = swap_in_lower_ranks(taken, candidates, preemptor)
    return taken if permitted(taken, permits) else []


def own_first(candidates: Iterable[Candidate], preemptor: Preemptor) -> list[Candidate]:
    """Return the candidates in the order in which they are preempted: those of the preemptor's share first."""
    if preemptor.permits is None:
        return by_rank_and_cost(candidates)
    return sorted(candidates, key=lambda c: (c.job.share != preemptor.share, *c.order))


def _best_of_orders(eligible: EligibleCandidates, preemptor: Preemptor, permits: Permits) -> list[Candidate]:
    """Return the best set that a search and several orders find."""
    missing, everyone = preemptor.missing, own_first(eligible.all_of_any_rank(), preemptor)
    few = len(everyone) <= MAX_EXHAUSTIVE
    ordered = everyone if few else own_first(eligible.for_search(missing), preemptor)
    orders = list(_orders(ordered, preemptor))
    # Some sets are permitted in one order only: with few candidates, every order is searched.
    searched = (
        Search(order[:MAX_SEARCHED], missing, permits, MAX_NODES if few else MAX_NODES_OF_MANY).run()
        for order in (orders if few else orders[:1])
    )
    found = (drop_redundant(take_in_order(order, missing, permits), missing, permits) for order in orders)
    legal = [taken for taken in (*searched, *found) if taken and permitted(taken, permits)]
    return min(legal, key=lambda taken: (max(c.rank for c in taken), sum(c.cost for c in taken)), default=[])


def _orders(candidates: Sequence[Candidate], preemptor: Preemptor) -> Iterator[Sequence[Candidate]]:
    """Yield orders: by rank; the largest first, and last, since either may spoil the other; by cost of a unit."""
    missing = preemptor.missing
    by_unit = by_the_unit(missing)
    yield candidates

    def size(candidate: Candidate) -> int:
        return sum(candidate.units.get(pool, 0) for pool in missing)

    yield sorted(candidates, key=lambda c: (c.job.share != preemptor.share, -size(c), c.order))
    yield sorted(candidates, key=lambda c: (c.job.share != preemptor.share, size(c), c.order))
    yield sorted(candidates, key=lambda c: (c.job.share != preemptor.share, by_unit(c)))


@dataclass(slots=True)
class Search:
    """A search over sets of candidates in their order, so that each is permitted after those before it."""

    ordered: Sequence[Candidate]
    missing: Units
    permits: Permits
    nodes: int
    best: tuple[float, int, list[str]] | None = None
    found: list[Candidate] = field(default_factory=list)

    def run(self) -> list[Candidate]:
        """Return the cheapest permitted set of the lowest cutoff that frees enough; empty if there is none."""
        for cutoff in sorted({candidate.rank for candidate in self.ordered}):
            within = [candidate for candidate in self.ordered if candidate.rank <= cutoff]
            self._try(within, dict(self.missing), [], 0.0)
            if self.found:
                break
        return self.found

    def _try(self, rest: Sequence[Candidate], left: dict[str, int], taken: list[Candidate], cost: float) -> None:
        if all(count <= 0 for count in left.values()):
            key = (cost, len(taken), sorted(c.job.name for c in taken))
            if self.best is None or key < self.best:
                self.best, self.found = key, taken
            return
        if self.nodes <= 0 or not frees(rest, left) or (self.best is not None and cost > self.best[0]):
            return
        self.nodes -= 1
        first, others = rest[0], rest[1:]
        helps = any(left.get(pool, 0) > 0 for pool in first.units)
        if helps and self.permits(first.job, [c.job for c in taken]):
            after = {pool: count - first.units.get(pool, 0) for pool, count in left.items()}
            self._try(others, after, [*taken, first], cost + first.cost)
        self._try(others, left, taken, cost)
