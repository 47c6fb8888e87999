"""The rendezvous of elastic jobs in memory, for tests and replays; implements `ports.RendezvousControl`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from trainmaster.domain.elastic.rendezvous import Control, RendezvousState, Run, SpeedReport, group_of, speed_of


@dataclass(slots=True)
class MemoryRendezvousControl:
    """States and controls by the name of the run.

    Attributes:
        controls: the last control that the queue set for each run.
        speeds: the last report of each run's nodes, as stored text.
    """

    controls: dict[str, Control] = field(default_factory=dict)
    speeds: dict[str, str] = field(default_factory=dict)
    _groups: dict[str, RendezvousState | str | bytes] = field(default_factory=dict)

    def get(self, run: Run) -> RendezvousState | None:
        """Return the state of a run; see `ports.RendezvousControl`. Raises `UnreadableRendezvous` if malformed."""
        found = self._groups.get(run.name)
        return group_of(found) if isinstance(found, str | bytes) else found

    def set(self, run: Run, control: Control) -> None:
        """Set the control of a run; see `ports.RendezvousControl`."""
        self.controls[run.name] = control

    def speed(self, run: Run) -> SpeedReport | None:
        """Return the report of a run; see `ports.RendezvousControl`. Raises `UnreadableRendezvous` if malformed."""
        text = self.speeds.get(run.name)
        return None if text is None else speed_of(text)

    def key(self, run: Run) -> str:
        """Return the secret of a run; see `ports.RendezvousControl`."""
        return hashlib.sha256(f"{run.role}\n{run.name}".encode()).hexdigest()

    def set_state(self, run: str, group: RendezvousState | str | bytes) -> None:
        """Set the state of a run as its nodes would, as a value or as stored text."""
        self._groups[run] = group
