"""The names of lanes, both directions: what a lane is called, and what a name says of the jobs that wait there.

It must not know how jobs become parts of a name (`job.Job.lane` does), nor how stores write names as keys.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SIGNS = re.compile(r"[~+^@]")
"""What separates the parts. Names of shares, groups and people's pools have none; URLs of models may have any."""
_BEHIND = r"(?:\+(?P<served>[0-9]+))?(?:\^(?P<due>[0-9-]+))?(?:@(?P<group>[^~+^@]+))?"
_NAME = re.compile(rf"(?P<share>[^/]*)/(?:(?P<named>.*)~(?P<size>[0-9]+)|(?P<plain>[^~+^@]*)){_BEHIND}", re.DOTALL)


class LaneParts(NamedTuple):
    """What a lane's name is made of.

    Attributes:
        share: the jobs' share.
        pools: those that they can run in (`capacity.Demand.lane`).
        size: what they ask for lies between this power of two and the next.
        served: octave of what they have received; 0 for nothing.
        due: day of their deadline, `2026-01-31`; "" for none.
        group: their group; "" for none.
    """

    share: str
    pools: str
    size: int = 0
    served: int = 0
    due: str = ""
    group: str = ""


def lane_name(parts: LaneParts) -> str:
    """What the lane is called; no other one is called so."""
    # Behind a URL with signs the size is always written: the last `~` then is where the pools end.
    size = f"~{parts.size}" if parts.size > 0 or _SIGNS.search(parts.pools) else ""
    served, due = f"+{parts.served}" if parts.served else "", f"^{parts.due}" if parts.due else ""
    return f"{parts.share}/{parts.pools}{size}{served}{due}" + (f"@{parts.group}" if parts.group else "")


def lane_parts(name: str) -> LaneParts | None:
    """What `lane_name` made the name of; None for what is no name of a lane."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    pools = found["plain"] if found["named"] is None else found["named"]
    size, served = int(found["size"] or 0), int(found["served"] or 0)
    return LaneParts(found["share"], pools, size, served, found["due"] or "", found["group"] or "")
