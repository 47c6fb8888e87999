"""How far into a lane a pass reads: as far as jobs could start, never as far as the queue is deep.

It must not read anything: stores ask it while they read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainmaster.domain.capacity import Pool, Units
from trainmaster.domain.catalogue import Catalogue
from trainmaster.domain.image.demand import wanted
from trainmaster.domain.image.endpoint import POOL_PREFIX
from trainmaster.domain.job import Job
from trainmaster.domain.resolving import Offers, resolved

FIRST = 32
"""Waiting jobs that are read of every lane, unless it is one of an endpoint."""
FIRST_OF_ENDPOINT = 16
"""Those of a lane of image jobs. Every endpoint has a lane of its own, and a pass may need to look at a hundred."""
MOST = 1_000
"""Most that are read of any lane."""
SPARE = 8
"""Read beyond those that could start: heads may be backing off, or too large for what is free."""


def first_of(lane: str) -> int:
    """How many jobs of a lane are read in any case, given its name; a share may be called so that it has fewer."""
    return FIRST_OF_ENDPOINT if POOL_PREFIX in lane else FIRST


def heads_wanted(
    head: Job, pools: Mapping[str, Pool], active: Iterable[Job], foreign: Units, catalogue: Catalogue
) -> int:
    """How many jobs of a lane are worth reading, given its first one.

    Every job takes at least one unit, so no more can start than units are free, are being freed, or could be taken
    from jobs of lower priority, in the pools that the lane's jobs can run in.
    """
    names = resolved(head.demand, Offers(pools, catalogue)).pools
    within_reach = {name: pools[name].cap - foreign.get(name, 0) for name in names if name in pools}
    for job in active:
        if not (job.stopping or (job.priority < head.priority and job.preemptible)):
            for name, count in job.units.items():
                if name in within_reach:
                    within_reach[name] -= count
    # Jobs of a lane that work at endpoints all ask for at least half as much as the largest of them.
    least = 1 if head.image_work is None else 1 << (wanted(head.image_work).bit_length() - 1)
    could_start = -(-sum(max(0, units) for units in within_reach.values()) // least)
    return max(FIRST if head.image_work is None else FIRST_OF_ENDPOINT, min(MOST, could_start + SPARE))
