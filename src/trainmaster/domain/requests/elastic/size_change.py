"""Other bounds for an elastic job that is in the queue, within the sizes that its request allows."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.requests.elastic.bounds import sizes_problem

MINIMUM, MAXIMUM = "minInstances", "maxInstances"
"""Names of the bounds in a change of a job."""


@dataclass(frozen=True, slots=True)
class SizeBounds:
    """Bounds of a job's size, instances; None leaves the present one."""

    minimum: int | None = None
    maximum: int | None = None

    @property
    def field(self) -> str | None:
        """The name of the first bound that is given; None if none is."""
        return next((name for name, _ in self.given()), None)

    def given(self) -> Iterator[tuple[str, int]]:
        """Yield name and value of each bound that is given."""
        for name, bound in ((MINIMUM, self.minimum), (MAXIMUM, self.maximum)):
            if bound is not None:
                yield name, bound

    def apply(self, elastic: Elastic) -> Elastic:
        """Return the job's sizes within these bounds; step, or listed values, stay as submitted.

        Raises `InvalidRequest` for a bound that no step leads to, or that the values lack; for a minimum above the
        maximum; for too many sizes.
        """
        for name, bound in self.given():
            if not elastic.could_have(bound):
                raise _not_a_size(elastic, name, bound)
        low = elastic.min_instances if self.minimum is None else self.minimum
        high = elastic.max_instances if self.maximum is None else self.maximum
        if low > high:
            wrong = f"The minimum number of instances, {low}, is more than the maximum, {high}."
            other = MINIMUM if self.minimum is None else MAXIMUM
            raise InvalidRequest(wrong, field=self.field, hint=f"Change {other} as well, or specify another bound.")
        if not elastic.values and (many := sizes_problem(low, high, elastic.step)) is not None:
            raise InvalidRequest(many, field=self.field, hint="Specify bounds that are closer to each other.")
        return replace(elastic, min_instances=low, max_instances=high)


SAME_BOUNDS = SizeBounds()


def _not_a_size(elastic: Elastic, name: str, bound: int) -> InvalidRequest:
    near = " or ".join(map(str, _nearest(elastic, bound)))
    if elastic.values:
        wrong = f"{bound} is not one of the sizes that the job's request lists."
    else:
        wrong = f"No number of steps of {elastic.step} leads from {elastic.min_instances} instances to {bound}."
    return InvalidRequest(wrong, field=name, hint=f"Specify {near}.")


def _nearest(elastic: Elastic, bound: int) -> tuple[int, ...]:
    """Return the possible sizes below and above a number of instances."""
    if elastic.values:
        place = bisect(elastic.values, bound)
        return elastic.values[max(place - 1, 0) : place + 1]
    below = bound - (bound - elastic.min_instances) % elastic.step
    return tuple(size for size in (below, below + elastic.step) if size >= 1)
