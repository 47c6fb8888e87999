"""Keeps the effective batch, and the order of the data, the same whatever the size of the world.

A step is one batch of the whole world. Which samples it has depends on its number alone; the ranks share them out, some
with one more than others where it does not divide. `Part.weight` makes the average of the ranks' gradients the exact
mean over the batch. Pure arithmetic; it must not know torch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One rank's part of a batch.

    Attributes:
        start, size: which samples of the batch it has: `batch[start:start + size]`.
        weight: what the rank's mean loss is to be multiplied by, so that the ranks' average is the batch's mean.
    """

    start: int
    size: int
    weight: Fraction


def part_of(batch: int, world: int, rank: int) -> Part:
    """What this rank has of a batch: sizes differ by one at most, the first ranks have the larger parts.

    DistributedDataParallel sums the gradients of all ranks and divides by their number. A rank whose loss is the mean
    of its `size` samples, times `weight = size * world / batch`, so adds exactly its samples' share of the mean.

    Raises `ValueError` where some rank would have no sample, or there is no such rank.
    """
    if not 0 <= rank < world:
        raise ValueError(f"there is no rank {rank} in a world of {world}")
    if batch < world:
        raise ValueError(f"a batch of {batch} leaves ranks of a world of {world} without a sample")
    least, more = divmod(batch, world)
    size = least + (rank < more)
    return Part(start=rank * least + min(rank, more), size=size, weight=Fraction(size * world, batch))


def slices(part: Part, most: int) -> Iterator[tuple[slice, Fraction]]:
    """The part in pieces of at most `most` samples, for gradient accumulation; each with its own weight.

    The weights add up to the part's: the loss of a piece is its mean, times its weight, and backward adds them up.

    Raises `ValueError` for pieces of less than one sample.
    """
    if most < 1:
        raise ValueError("a piece has one sample at least")
    for start in range(part.start, part.start + part.size, most):
        end = min(start + most, part.start + part.size)
        yield slice(start, end), part.weight * Fraction(end - start, part.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """In which order samples are seen: every one once an epoch, shuffled anew for each.

    Batches follow one another without a gap, so a batch may have the last samples of an epoch and the first of the
    next: all batches are of one size, and the same for every world and after every resume.

    Attributes:
        samples: how many there are.
        batch: samples a step, of the whole world.
        seed: of the shuffling.
    """

    samples: int
    batch: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises `ValueError` where there is nothing to see."""
        if self.samples < 1 or self.batch < 1:
            raise ValueError("there is one sample at least, and one in each batch")

    def at(self, step: int) -> list[int]:
        """The samples of a step, counted from 0."""
        first = step * self.batch
        epochs: dict[int, list[int]] = {}
        found = []
        for place in range(first, first + self.batch):
            epoch, inside = divmod(place, self.samples)
            if epoch not in epochs:
                epochs[epoch] = self._shuffled(epoch)
            found.append(epochs[epoch][inside])
        return found

    def _shuffled(self, epoch: int) -> list[int]:
        """Takes time in proportion to the number of samples; a program that has many keeps one epoch's at hand."""
        order = list(range(self.samples))
        random.Random(f"{self.seed}/{epoch}").shuffle(order)  # noqa: S311  # repeatable, not secret
        return order
