"""Refused requests for image jobs in memory, for tests; implements `images.ports.Refusals`.

The contract suite holds it to the behavior of the DynamoDB implementation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.images.domain.refusal import RETENTION, Refusal
from trainmaster.ports.runtime import Clock


@dataclass(slots=True)
class MemoryRefusals:
    """Stores refusals for a while, by name."""

    clock: Clock
    _noted: dict[str, Refusal] = field(default_factory=dict)

    def note(self, refusal: Refusal) -> None:
        """Store it; see `images.ports.Refusals`."""
        self._noted[refusal.job] = replace(refusal, reason=refusal.reason[:MAX_REASON_LENGTH])

    def of(self, job: str) -> Refusal | None:
        """Return the newest of that name; see `images.ports.Refusals`."""
        found = self._noted.get(job)
        return None if found is None or found.at + RETENTION <= self.clock.now() else found
