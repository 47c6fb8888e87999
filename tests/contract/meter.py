"""Cost of a DynamoDB client's calls, as DynamoDB itself reports it (`ReturnConsumedCapacity`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})


@dataclass(slots=True)
class Cost:
    read_units: float = 0
    write_units: float = 0
    calls: int = 0


class Meter:
    """Counts from the moment at which it is attached to a client."""

    def __init__(self, client: Any) -> None:
        self.total = Cost()
        client.meta.events.register("provide-client-params.dynamodb.*", _ask)
        client.meta.events.register("after-call.dynamodb.*", self._count)

    @contextmanager
    def measured(self) -> Iterator[Cost]:
        """Measure the cost of the block."""
        before = (self.total.read_units, self.total.write_units, self.total.calls)
        cost = Cost()
        yield cost
        cost.read_units = self.total.read_units - before[0]
        cost.write_units = self.total.write_units - before[1]
        cost.calls = self.total.calls - before[2]

    def _count(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        reported = parsed.get("ConsumedCapacity") or []
        units = sum(one["CapacityUnits"] for one in (reported if isinstance(reported, list) else [reported]))
        self.total.calls += 1
        if model.name in _READS:
            self.total.read_units += units
        else:
            self.total.write_units += units


def _ask(params: dict[str, Any], model: Any, **_: Any) -> None:
    if "ReturnConsumedCapacity" in model.input_shape.members:
        params["ReturnConsumedCapacity"] = "INDEXES"
