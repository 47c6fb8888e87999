"""Find which shares lend the units that others borrow.

Units of a pool are alike, so nothing records whose units a job holds: borrowers take units that no share owns first,
then those that shares lend, in proportion to what each of them has idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """Units of a pool that a share owns and holds.

    Attributes:
        own: its own units (`Entitlement.own`).
        kept: those of them that others may not use (`Entitlement.kept`).
        used: held by its active jobs.
        held: freed for its waiting jobs.
    """

    own: int = 0
    kept: int = 0
    used: int = 0
    held: int = 0

    @property
    def borrowed(self) -> int:
        """The units that its jobs use beyond its own."""
        return max(self.used - self.own, 0)

    @property
    def lendable(self) -> int:
        """Its own units that are idle and that others may use."""
        return max(min(self.own - self.used - self.held, self.own - self.kept), 0)


def lent_units(claims: Mapping[str, Claim], unowned: int) -> dict[str, int]:
    """Return the units of a pool that each share lends, by share; `unowned` are usable units that no share owns.

    They are fewer than the borrowed ones if a cap or an entitlement was lowered below what jobs hold.
    """
    rooms = {name: claim.lendable for name, claim in claims.items()}
    capacity = sum(rooms.values())
    lent = min(max(sum(claim.borrowed for claim in claims.values()) - unowned, 0), capacity)
    if not lent:
        return dict.fromkeys(rooms, 0)
    parts = {name: lent * room // capacity for name, room in rooms.items()}
    remainders = sorted(rooms, key=lambda name: (-(lent * rooms[name] % capacity), name))
    for name in remainders[: lent - sum(parts.values())]:
        parts[name] += 1
    return parts
