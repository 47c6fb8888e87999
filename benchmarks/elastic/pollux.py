"""Allocation after Pollux: every 60 seconds, whatever maximises the fitness of the whole pool.

Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI 2021, section 4.2. As
there: the fitness is the power mean, p = -1, over all jobs of their speed-up against a fair share of the pool; a job
that would be reallocated counts (T - R d) / (T + d) of it, for its age T, its reallocations so far R and what one
costs, d; no job gets more than twice the GPUs that it has ever had, since beyond that nobody knows its curve; it
begins with its least.

Not as there:

- No genetic search but a greedy local one, by three moves: free GPUs go to whom they help most; others shrink for a
  job that has none; GPUs move between two. Deterministic, and near enough for one pool without placement.
- Goodput is throughput: a trace says nothing about gradient noise, so there is no batch size to adapt. That is a part
  of Pollux's gains, which nobody else gets here either.
- A job without GPUs would make the mean 0 whatever the others have: it counts with a hundredth of the fair share.
- Half of the jobs have one size: those that run keep it. Their fair share is a share of the time.

It must not know how long a job runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.elastic.pool_simulation import Yard

PERIOD_SECONDS = 60.0
IDLE_SECONDS = 3600.0
"""Where nothing comes or ends, only ages change: looking every minute would change little and take hours."""
STARVED = 0.01
LEAST_FACTOR = 0.01
MAX_MOVES = 50
MAX_WAITING = 30
"""Of those that wait, so many are tried to be made room for."""
STEPS = (1, 2, 4, 8)


class Pollux:
    """The allocator."""

    period = PERIOD_SECONDS
    idle = IDLE_SECONDS

    def __init__(self) -> None:
        self._most: dict[int, int] = {}

    def allocate(self, yard: Yard) -> Mapping[int, int]:
        """The best that three moves find, from how it is now."""
        search = Search(yard, {index: 2 * self._most.get(index, 0) for index in yard.left})
        search.fill()
        search.make_room()
        search.exchange()
        search.fill()
        for index, size in search.sizes.items():
            self._most[index] = max(size, self._most.get(index, 0))
        return search.sizes


@dataclass(slots=True)
class Search:
    """Sizes that get better move by move.

    Attributes:
        yard: as it is.
        bounds: the largest size that each job may try; less than its least for one that may try only that.
        sizes: as they would be.
    """

    yard: Yard
    bounds: Mapping[int, int]
    sizes: dict[int, int] = field(init=False)
    free: int = field(init=False)
    _fair: float = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = dict(self.yard.sizes)
        self.free = self.yard.terms.cap - sum(self.sizes.values())
        self._fair = self.yard.terms.cap / max(len(self.yard.left), 1)

    def cost(self, index: int, size: int) -> float:
        """What a job of that size adds to the harmonic mean's sum: less is better."""
        job = self.yard.jobs[index]
        if not size:
            return 1 / STARVED
        if not job.elastic:
            return min(1.0, self._fair / job.trace.gpus)
        fair = job.speed(min(self._fair, job.sizes[-1]))
        return fair / (job.speed(size) * self._factor(index, size))

    def _factor(self, index: int, size: int) -> float:
        """The part of its speed-up that a reallocation leaves; 1 for none, and for a first start."""
        now = self.yard.sizes.get(index, 0)
        if size == now or not (now or self.yard.held_before(index)):
            return 1.0
        age = self.yard.now - self.yard.jobs[index].trace.submit
        delay = self.yard.terms.resize_cost
        return max(LEAST_FACTOR, (age - self.yard.resized[index] * delay) / (age + delay))

    def fill(self) -> None:
        """Give free GPUs to whom each of them helps most, as long as it helps."""
        while self.free:
            best = max(self._gains(self.free), default=None)
            if best is None or best[0] <= 0:
                return
            self._set(-best[1], best[2])

    def make_room(self) -> None:
        """Shrink others for a job that has nothing, where the mean gains by it."""
        for index in self.yard.waiting[:MAX_WAITING]:
            if index not in self.sizes:
                self._make_room_for(index, self.yard.jobs[index].sizes[0])

    def exchange(self) -> None:
        """Move GPUs from whom they help least to whom they help most, as long as the mean gains by it."""
        for _ in range(MAX_MOVES):
            moves = [move for step in STEPS for move in self._moves(step)]
            if not moves:
                return
            _, giver, given, taker, taken = max(moves)
            self._set(giver, given)
            self._set(taker, taken)

    def _gains(self, free: int) -> Iterator[tuple[float, int, int]]:
        """What each larger size would gain for each GPU, with the job's place (earlier ones first) and the size."""
        for index in self.yard.left:
            now = self.sizes.get(index, 0)
            for size in self._larger(index, now, now + free):
                gain = self.cost(index, now) - self.cost(index, size)
                yield gain / (size - now), -index, size

    def _larger(self, index: int, now: int, most: int) -> Iterator[int]:
        """Sizes that a job may try next."""
        job = self.yard.jobs[index]
        if not now:
            if job.sizes[0] <= most:
                yield job.sizes[0]
        elif job.elastic:
            most = job.at_most(min(most, self.bounds[index]))
            yield from sorted({size for step in STEPS if (size := job.at_most(now + step)) <= most and size > now})

    def _make_room_for(self, index: int, least: int) -> None:
        before, price = dict(self.sizes), 0.0
        free = self.free
        while self.free < least:
            loss, giver = min(self._losses(), default=(0.0, -1))
            if giver < 0:
                break
            price += loss
            self._set(giver, self.sizes[giver] - 1)
        if self.free >= least and price < self.cost(index, 0) - self.cost(index, least):
            self._set(index, least)
        else:
            self.sizes, self.free = before, free

    def _losses(self) -> Iterator[tuple[float, int]]:
        for index, size in self.sizes.items():
            if self.yard.jobs[index].elastic and size > self.yard.jobs[index].sizes[0]:
                yield self.cost(index, size - 1) - self.cost(index, size), index

    def _moves(self, step: int) -> Iterator[tuple[float, int, int, int, int]]:
        """The best move of so many GPUs: what it gains, who gives and who takes, and their new sizes."""
        able = [index for index in self.sizes if self.yard.jobs[index].elastic]
        givers = [index for index in able if self.sizes[index] - step >= self.yard.jobs[index].sizes[0]]
        takers = [
            index
            for index in able
            if self.sizes[index] + step <= min(self.bounds[index], self.yard.jobs[index].sizes[-1])
        ]
        if not givers or not takers:
            return
        loss, giver = min((self._change(index, -step), index) for index in givers)
        gain, taker = min((self._change(index, step), index) for index in takers)
        if giver != taker and loss + gain < 0:
            yield -(loss + gain), giver, self.sizes[giver] - step, taker, self.sizes[taker] + step

    def _change(self, index: int, by: int) -> float:
        return self.cost(index, self.sizes[index] + by) - self.cost(index, self.sizes[index])

    def _set(self, index: int, size: int) -> None:
        self.free -= size - self.sizes.get(index, 0)
        self.sizes[index] = size
