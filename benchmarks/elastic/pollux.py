"""Allocation after Pollux: every 60 seconds, the allocation that maximizes the fitness of the whole pool.

Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI 2021, section 4.2. As in
the paper: the fitness is the power mean, p = -1, over all jobs of their speed-up relative to a fair share of the pool.
The speed-up of a job that would be reallocated is multiplied by (T - R d) / (T + d), with its age T, its reallocations
so far R, and the cost of one, d. No job gets more than twice the GPUs that it has ever had, since its curve is unknown
beyond that. It begins with its smallest size.

Different from the paper:

- A greedy local search replaces the genetic one, with three moves: free GPUs go where they help most; jobs shrink for a
  job that has none; GPUs move between two jobs. It is deterministic, and near enough for one pool without placement.
- Goodput is throughput: traces have no gradient noise, so there is no batch size to adapt. The other policies do not
  have that part of Pollux's gains either.
- A job without GPUs would make the mean 0, so it counts with a hundredth of the fair share.
- Half of the jobs have one size: running ones keep it. Their fair share is a share of the time.

The allocator does not know how long a job runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.elastic.pool_simulation import PoolSimulation

PERIOD_SECONDS = 60.0
IDLE_SECONDS = 3600.0
"""Interval without arrivals and ends, when only ages change: shorter ones take hours and change little."""
STARVED = 0.01
MIN_FACTOR = 0.01
MAX_MOVES = 50
MAX_WAITING = 30
"""Maximum waiting jobs for which others are shrunk."""
STEPS = (1, 2, 4, 8)


class Pollux:
    """The allocator."""

    period = PERIOD_SECONDS
    idle = IDLE_SECONDS

    def __init__(self) -> None:
        self._most: dict[int, int] = {}

    def allocate(self, pool: PoolSimulation) -> Mapping[int, int]:
        """Return the best allocation that the three moves find, starting with the current one."""
        search = Search(pool, {index: 2 * self._most.get(index, 0) for index in pool.left})
        search.fill()
        search.make_room()
        search.exchange()
        search.fill()
        for index, size in search.sizes.items():
            self._most[index] = max(size, self._most.get(index, 0))
        return search.sizes


@dataclass(slots=True)
class Search:
    """A local search for sizes.

    Attributes:
        pool: the simulation.
        bounds: largest size that each job may try; less than its smallest size if it may try only that.
        sizes: the sizes found so far.
    """

    pool: PoolSimulation
    bounds: Mapping[int, int]
    sizes: dict[int, int] = field(init=False)
    free: int = field(init=False)
    _fair: float = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = dict(self.pool.sizes)
        self.free = self.pool.settings.cap - sum(self.sizes.values())
        self._fair = self.pool.settings.cap / max(len(self.pool.left), 1)

    def cost(self, index: int, size: int) -> float:
        """Return the job's term in the sum of the harmonic mean, at this size; less is better."""
        job = self.pool.jobs[index]
        if not size:
            return 1 / STARVED
        if not job.elastic:
            return min(1.0, self._fair / job.trace.gpus)
        fair = job.speed(min(self._fair, job.sizes[-1]))
        return fair / (job.speed(size) * self._factor(index, size))

    def _factor(self, index: int, size: int) -> float:
        """Return the part of its speed-up that a reallocation leaves; 1 for none, and for a first start."""
        now = self.pool.sizes.get(index, 0)
        if size == now or not (now or self.pool.held_before(index)):
            return 1.0
        age = self.pool.now - self.pool.jobs[index].trace.submit
        delay = self.pool.settings.resize_cost
        return max(MIN_FACTOR, (age - self.pool.resized[index] * delay) / (age + delay))

    def fill(self) -> None:
        """Give free GPUs to the jobs that gain most, as long as there is a gain."""
        while self.free:
            best = max(self._gains(self.free), default=None)
            if best is None or best[0] <= 0:
                return
            self._set(-best[1], best[2])

    def make_room(self) -> None:
        """Shrink other jobs for a job without GPUs, if the mean gains by it."""
        for index in self.pool.waiting[:MAX_WAITING]:
            if index not in self.sizes:
                self._make_room_for(index, self.pool.jobs[index].sizes[0])

    def exchange(self) -> None:
        """Move GPUs to the jobs that gain most from those that lose least, as long as the mean gains by it."""
        for _ in range(MAX_MOVES):
            moves = [move for step in STEPS for move in self._moves(step)]
            if not moves:
                return
            _, giver, given, taker, taken = max(moves)
            self._set(giver, given)
            self._set(taker, taken)

    def _gains(self, free: int) -> Iterator[tuple[float, int, int]]:
        """Yield the gain of each larger size for each GPU, the negated index of the job, and the size."""
        for index in self.pool.left:
            now = self.sizes.get(index, 0)
            for size in self._larger(index, now, now + free):
                gain = self.cost(index, now) - self.cost(index, size)
                yield gain / (size - now), -index, size

    def _larger(self, index: int, now: int, most: int) -> Iterator[int]:
        """Yield the sizes that a job may try next."""
        job = self.pool.jobs[index]
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
            if self.pool.jobs[index].elastic and size > self.pool.jobs[index].sizes[0]:
                yield self.cost(index, size - 1) - self.cost(index, size), index

    def _moves(self, step: int) -> Iterator[tuple[float, int, int, int, int]]:
        """Yield the best move of `step` GPUs: gain, giver and its size, taker and its size."""
        able = [index for index in self.sizes if self.pool.jobs[index].elastic]
        givers = [index for index in able if self.sizes[index] - step >= self.pool.jobs[index].sizes[0]]
        takers = [
            index
            for index in able
            if self.sizes[index] + step <= min(self.bounds[index], self.pool.jobs[index].sizes[-1])
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
