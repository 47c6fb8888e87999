"""The instances of a job as its containers see them: names, types, instance groups, loopback addresses.

All containers are processes on one machine, which distinguish each other by loopback addresses (127.0.x.y). Linux
accepts all of these without configuration.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainmaster.local.simulator.service.demand import worst_case
from trainmaster.local.simulator.service.job import TrainingJob

ONE_GROUP = "homogeneousCluster"
"""SageMaker's name for the only group of a job without instance groups."""
MAX_BYTE = 254
"""The last two bytes of an address are 1 to 254; 127.0.0.x is left to other programs."""


@dataclass(frozen=True, slots=True)
class Host:
    """One instance: `algo-1` of this type, in this instance group."""

    name: str
    instance_type: str
    group: str


def hosts_of(job: TrainingJob) -> tuple[Host, ...]:
    """Return the instances of a running job in the order of its groups; one of unknown type for a serverless job."""
    groups = job.request.get("ResourceConfig", {}).get("InstanceGroups")
    if groups:
        kinds = [(each["InstanceType"], each["InstanceGroupName"], each["InstanceCount"]) for each in groups]
    else:
        held = job.instances or worst_case(job.alternatives) or {"local": 1}
        kinds = [(instance_type, ONE_GROUP, count) for instance_type, count in held.items()]
    each_one = [(instance_type, group) for instance_type, group, count in kinds for _ in range(count)]
    return tuple(Host(f"algo-{at}", *kind) for at, kind in enumerate(each_one, start=1))


class LoopbackAddresses:
    """Loopback addresses, each used by one instance at a time.

    Args:
        first: offset of the first address, so that two simulators on one machine rarely allocate the same.
    """

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._taken: set[str] = set()
        self._lock = threading.Lock()

    def allocate(self, count: int) -> list[str]:
        """Return this many addresses, least recently released first, since ports may linger.

        Raises `OSError` if too few are left.
        """
        with self._lock:
            if len(self._taken) + count > MAX_BYTE * MAX_BYTE:
                raise OSError("no loopback address is left")
            return [self._next_free() for _ in range(count)]

    def release(self, addresses: Iterable[str]) -> None:
        """Release the addresses."""
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
    """Return the names as in `resourceconfig.json`: sorted as text, so algo-10 precedes algo-2."""
    return sorted(host.name for host in hosts)
