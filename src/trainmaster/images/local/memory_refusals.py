"""Refused requests for image jobs in memory, for tests; implements `ports.image.Refusals`.

It passes the contract suite of the real one, and must not be more lenient.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.images.domain.refusal import KEPT, Refusal
from trainmaster.ports.runtime import Clock


@dataclass(slots=True)
class MemoryRefusals:
    """Remembers refusals for a while, by name."""

    clock: Clock
    _noted: dict[str, Refusal] = field(default_factory=dict)

    def note(self, refusal: Refusal) -> None:
        """Remember it; see `ports.image.Refusals`."""
        self._noted[refusal.job] = replace(refusal, reason=refusal.reason[:MAX_REASON_LENGTH])

    def of(self, job: str) -> Refusal | None:
        """The newest of that name; see `ports.image.Refusals`."""
        found = self._noted.get(job)
        return None if found is None or found.at + KEPT <= self.clock.now() else found
