"""The rendezvous of elastic jobs in memory, for tests and replays; implements `ports.RendezvousControl`.

It passes the contract suite of the real one. It must not play the nodes: tests write what nodes would.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trainmaster.domain.elastic.rendezvous import Control, RendezvousState, group_of


@dataclass(slots=True)
class MemoryRendezvousControl:
    """Groups by run.

    Attributes:
        controls: what the queue has asked of each run, by run.
    """

    controls: dict[str, Control] = field(default_factory=dict)
    _groups: dict[str, RendezvousState | str | bytes] = field(default_factory=dict)

    def get(self, run: str) -> RendezvousState | None:
        """Return its state; see `ports.RendezvousControl`. Raises `UnreadableRendezvous` for malformed text."""
        found = self._groups.get(run)
        return group_of(found) if isinstance(found, str | bytes) else found

    def set(self, run: str, control: Control) -> None:
        """Ask this of its nodes; see `ports.RendezvousControl`."""
        self.controls[run] = control

    def set_state(self, run: str, group: RendezvousState | str | bytes) -> None:
        """From now on this is how the run's nodes stand, as a value or in their own writing."""
        self._groups[run] = group
