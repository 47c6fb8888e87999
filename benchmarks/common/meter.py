"""Counts DynamoDB calls and request units by step, as the engine reports them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})

WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


@dataclass(slots=True)
class Cost:
    """Request units and calls.

    Attributes:
        reads: read request units.
        writes: write request units, those of indexes among them.
        calls: requests, whether or not they succeeded.
        refused: requests with an error response; AWS charges for failed conditions, which the engine does not report.
    """

    reads: float = 0
    writes: float = 0
    calls: float = 0
    refused: float = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Cost)))

    def over(self, count: float) -> Cost:
        """Return the cost divided by `count`."""
        return Cost(*(getattr(self, f.name) / count for f in fields(Cost)))


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum."""
    result = Cost()
    for cost in costs:
        result = result + cost
    return result


class Meter:
    """Counts the calls of a DynamoDB client, each for the current step."""

    def __init__(self, client: Any) -> None:
        self.by_step: dict[str, Cost] = defaultdict(Cost)
        self.now = "other"
        client.meta.events.register("provide-client-params.dynamodb.*", _ask_for_capacity)
        client.meta.events.register("after-call.dynamodb.*", self._count)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count calls inside the block for this step."""
        before, self.now = self.now, name
        try:
            yield
        finally:
            self.now = before

    def reset(self) -> dict[str, Cost]:
        """Return the costs since the last reset, by step."""
        spent, self.by_step = dict(self.by_step), defaultdict(Cost)
        return spent

    def _count(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        reported = parsed.get("ConsumedCapacity") or []
        units = sum(one["CapacityUnits"] for one in (reported if isinstance(reported, list) else [reported]))
        refused = 1 if "Error" in parsed else 0
        reads = model.name in READS
        spent = Cost(reads=units if reads else 0, writes=0 if reads else units, calls=1, refused=refused)
        self.by_step[self.now] = self.by_step[self.now] + spent


class WritesByPartition:
    """Counts the write units that a client asks for, by partition, for items of one kilobyte at most.

    Attributes:
        units: write units by the part of the partition key before its first "#".
    """

    def __init__(self, client: Any) -> None:
        self.units: Counter[str] = Counter()
        client.meta.events.register("provide-client-params.dynamodb.*", self._count)

    def _count(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        actions = params.get("TransactItems", [{model.name: params}] if model.name in WRITES else [])
        for action in actions:
            (write,) = action.values()
            partition = write.get("Item", write.get("Key"))["pk"]["S"].partition("#")[0]
            self.units[partition] += 2 if "TransactItems" in params else 1


def _ask_for_capacity(params: dict[str, Any], model: Any, **_: Any) -> None:
    if "ReturnConsumedCapacity" in model.input_shape.members:
        params["ReturnConsumedCapacity"] = "INDEXES"
