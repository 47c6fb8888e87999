"""Keeps the batch size and the order of the data the same in a world of any size.

A step is one batch of the whole world, and its samples depend only on the step's number. The ranks divide a batch;
unless it divides evenly, some get one sample more. `Part.weight` makes the average of the ranks' gradients the exact
mean over the batch. Needs neither torch nor JAX.
"""

from __future__ import annotations

import random
import threading
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

DIVIDED = threading.Event()
"""Set once this process has divided a batch over its world: its steps mean the same work at every size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One rank's part of a batch.

    Attributes:
        start, size: its samples, `batch[start:start + size]`.
        weight: factor for the rank's mean loss, with which the ranks' average is the batch's mean.
    """

    start: int
    size: int
    weight: Fraction


def part_of(batch: int, world: int, rank: int) -> Part:
    """Return a rank's part of a batch. Sizes differ by one at most; the first ranks have the larger parts.

    DistributedDataParallel sums the gradients of all ranks and divides by their number. A rank whose loss is the mean
    of its `size` samples, times `weight = size * world / batch`, therefore adds exactly its samples' share of the mean.

    Raises:
        ValueError: a rank would have no sample, or the rank does not exist.
    """
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} does not exist in a world of {world}")
    if batch < world:
        raise ValueError(f"a batch of {batch} is smaller than a world of {world}")
    DIVIDED.set()
    base, remainder = divmod(batch, world)
    size = base + (rank < remainder)
    return Part(start=rank * base + min(rank, remainder), size=size, weight=Fraction(size * world, batch))


def slices(part: Part, max_samples: int) -> Iterator[tuple[slice, Fraction]]:
    """Yield the part in slices of at most `max_samples` samples, for gradient accumulation, each with its own weight.

    The weights add up to the part's. Multiply the mean loss of each slice by its weight; backward adds the gradients.

    Raises:
        ValueError: `max_samples` is less than one.
    """
    if max_samples < 1:
        raise ValueError("max_samples must be at least 1")
    for start in range(part.start, part.start + part.size, max_samples):
        end = min(start + max_samples, part.start + part.size)
        yield slice(start, end), part.weight * Fraction(end - start, part.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of the samples: each one once per epoch, with a new shuffle for every epoch.

    Batches follow each other without a gap: a batch can contain the last samples of one epoch and the first of the
    next. All batches have the same size, and are the same in every world and after every resume. The orders of the two
    last epochs are kept in memory, with 8 bytes for each sample.

    Attributes:
        samples: number of samples.
        batch: samples per step, for the whole world.
        seed: seed of the shuffle.
    """

    samples: int
    batch: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise `ValueError` if there are no samples, or batches are empty."""
        if self.samples < 1 or self.batch < 1:
            raise ValueError("samples and batch must be at least 1")

    def at(self, step: int) -> list[int]:
        """Return the samples of a step, counted from 0."""
        first = step * self.batch
        places = (divmod(position, self.samples) for position in range(first, first + self.batch))
        return [_shuffled(self.samples, self.seed, epoch)[index] for epoch, index in places]


@lru_cache(maxsize=2)  # a batch can contain samples of two epochs
def _shuffled(samples: int, seed: int, epoch: int) -> array[int]:
    """Return an epoch's order, which takes about a second and 8 MB for each million samples."""
    order = array("Q", range(samples))
    random.Random(f"{seed}/{epoch}").shuffle(order)  # noqa: S311  # repeatable, not secret
    return order
