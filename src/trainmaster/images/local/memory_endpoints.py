"""Endpoints as last described, in memory, for tests and replays; implements `images.ports.KnownEndpoints`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import RLock

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.images.domain.endpoint import Endpoint
from trainmaster.images.domain.endpoint_set import Caps, default_caps, endpoint_pools, needed


@dataclass(frozen=True, slots=True)
class MemoryEndpoints:
    """Endpoints by key, and the pools that jobs need of them.

    Attributes:
        caps: what endpoints take of image jobs' requests.
        stored: the endpoints; hand the same to several objects that share a table.
    """

    caps: Caps = default_caps
    stored: dict[str, Endpoint] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    def known(self, keys: Collection[str]) -> Mapping[str, Endpoint]:
        """Return the stored endpoints among these."""
        with self._lock:
            return {key: self.stored[key] for key in keys if key in self.stored}

    def remember(self, endpoint: Endpoint, before: Endpoint | None) -> bool:
        """Store an endpoint in place of `before`; return False if another is stored by now."""
        with self._lock:
            if self.stored.get(endpoint.key) != before:
                return False
            self.stored[endpoint.key] = endpoint
            return True

    def of(self, jobs: Iterable[Job]) -> dict[str, Pool]:
        """Return the pools of the endpoints that these jobs need."""
        return endpoint_pools(needed(jobs), self.stored, self.caps)

    def discover(self) -> MemoryEndpoints:
        """Return the discovery for one snapshot."""
        return self
