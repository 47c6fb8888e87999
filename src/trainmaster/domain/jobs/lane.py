"""Format and parse names of lanes; `job.Job.lane` provides the parts, stores write names as keys."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_SIGNS = re.compile(r"[~+^@]")
"""Separators of the parts. Names of shares, groups and configured pools contain none, URLs of models may."""
_BEHIND = r"(?:\+(?P<served>[0-9]+))?(?:\^(?P<due>[0-9-]+))?(?:@(?P<group>[^~+^@]+))?"
_NAME = re.compile(rf"(?P<share>[^/]*)/(?:(?P<named>.*)~(?P<size>[0-9]+)|(?P<plain>[^~+^@]*)){_BEHIND}", re.DOTALL)


class LaneParts(NamedTuple):
    """The parts of a lane's name.

    Attributes:
        share: the jobs' share.
        pools: the pools that they can run in (`capacity.Demand.lane`).
        size: their demand lies between this power of two and the next.
        served: class of received service; 0 for none.
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
    """Return the unique name of a lane."""
    # Behind a URL with signs the size is always written: the last `~` then is where the pools end.
    size = f"~{parts.size}" if parts.size > 0 or _SIGNS.search(parts.pools) else ""
    served, due = f"+{parts.served}" if parts.served else "", f"^{parts.due}" if parts.due else ""
    return f"{parts.share}/{parts.pools}{size}{served}{due}" + (f"@{parts.group}" if parts.group else "")


@lru_cache(maxsize=4096)
def lane_parts(name: str) -> LaneParts | None:
    """Return the parts of a lane's name; None if it is not one."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    pools = found["plain"] if found["named"] is None else found["named"]
    size, served = int(found["size"] or 0), int(found["served"] or 0)
    return LaneParts(found["share"], pools, size, served, found["due"] or "", found["group"] or "")
