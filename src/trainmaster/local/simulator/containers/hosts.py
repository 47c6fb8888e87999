"""The instances of a job as its containers see them: names, types, groups, and an address of their own each.

All of them are processes on one machine, so they tell each other apart by loopback addresses (127.0.x.y), of which
Linux answers every one without being told. It must not start anything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainmaster.local.simulator.service.demand import worst_case
from trainmaster.local.simulator.service.job import TrainingJob

ONE_GROUP = "homogeneousCluster"
"""What SageMaker calls the only group of a job without groups."""
MAX_BYTE = 254
"""Of the last two bytes of an address 1 to 254 are used: 127.0.0.x stays what everybody else on the machine has."""


@dataclass(frozen=True, slots=True)
class Host:
    """One instance: `algo-1` of this type, in this instance group."""

    name: str
    instance_type: str
    group: str


def hosts_of(job: TrainingJob) -> tuple[Host, ...]:
    """The instances of a job that runs, in the order of their groups; a serverless job has one of no known type."""
    groups = job.request.get("ResourceConfig", {}).get("InstanceGroups")
    if groups:
        kinds = [(each["InstanceType"], each["InstanceGroupName"], each["InstanceCount"]) for each in groups]
    else:
        held = job.instances or worst_case(job.alternatives) or {"local": 1}
        kinds = [(instance_type, ONE_GROUP, count) for instance_type, count in held.items()]
    each_one = [(instance_type, group) for instance_type, group, count in kinds for _ in range(count)]
    return tuple(Host(f"algo-{at}", *kind) for at, kind in enumerate(each_one, start=1))


class LoopbackAddresses:
    """Loopback addresses that no two instances have at once.

    Args:
        first: where to begin, so that two simulators on one machine seldom give out the same.
    """

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._taken: set[str] = set()
        self._lock = threading.Lock()

    def allocate(self, count: int) -> list[str]:
        """So many addresses, those given back longest ago first: what still lingers on a port troubles nobody.

        Raises `OSError` where there are not so many left.
        """
        with self._lock:
            if len(self._taken) + count > MAX_BYTE * MAX_BYTE:
                raise OSError("no loopback address is left")
            return [self._next_free() for _ in range(count)]

    def release(self, addresses: Iterable[str]) -> None:
        """These are free again."""
        with self._lock:
            self._taken.difference_update(addresses)

    def _next_free(self) -> str:
        while True:
            third, fourth = divmod(self._next % (MAX_BYTE * MAX_BYTE), MAX_BYTE)
            self._next += 1
            address = f"127.0.{third + 1}.{fourth + 1}"
            if address not in self._taken:
                self._taken.add(address)
                return address


def host_names(hosts: Sequence[Host]) -> list[str]:
    """Their names as `resourceconfig.json` lists them: sorted as texts, so that algo-10 comes before algo-2."""
    return sorted(host.name for host in hosts)
