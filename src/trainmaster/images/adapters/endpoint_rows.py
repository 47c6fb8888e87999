"""Endpoints as rows of the table, in a partition of their own; a pass reads only those that its jobs need."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.adapters.dynamodb.rows import Key, Row, keyed
from trainmaster.adapters.dynamodb.table import ABSENT, MAX_GOT, Guard, Table
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.document import document, keep_unknown, value_of
from trainmaster.domain.errors import TooLarge
from trainmaster.domain.jobs.job import Job
from trainmaster.images.domain.endpoint import Endpoint
from trainmaster.images.domain.endpoint_set import Caps, default_caps, endpoint_pools, needed

ENDPOINTS = "endpoints"
_MAX_KEY_LENGTH = 1_024
"""Bytes of a sort key (DynamoDB developer guide, "Quotas")."""


@dataclass(frozen=True, slots=True)
class DynamoEndpoints:
    """The endpoints in the queue's table; implements `images.ports.KnownEndpoints`.

    Attributes:
        table: the table.
        caps: computes the caps of an endpoint's variants.
    """

    table: Table
    caps: Caps = default_caps

    def known(self, keys: Collection[str]) -> Mapping[str, Endpoint]:
        """Return the stored endpoints among these; see the port."""
        return known_endpoints(self.table, keys)

    def remember(self, endpoint: Endpoint, before: Endpoint | None) -> bool:
        """Store an endpoint in place of `before`; see the port. Raises `TooLarge`."""
        return remember(self.table, endpoint, before)

    def discover(self) -> EndpointPools:
        """Return the discovery for one snapshot."""
        return EndpointPools(self.known, self.caps)


@dataclass(slots=True)
class EndpointPools:
    """The pools of endpoints while a snapshot is read; each endpoint is read once.

    Attributes:
        known: reads the stored endpoints of these keys.
        caps: computes the caps of an endpoint's variants.
    """

    known: Callable[[Collection[str]], Mapping[str, Endpoint]]
    caps: Caps
    _found: dict[str, Endpoint] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)

    def of(self, jobs: Iterable[Job]) -> dict[str, Pool]:
        """Return the pools of the endpoints that these jobs need; nothing is read without image jobs."""
        asked = needed(jobs)
        if new := asked.keys() - self._asked:
            self._found |= self.known(new)
            self._asked |= new
        return endpoint_pools(asked, self._found, self.caps) if asked else {}


def known_endpoints(table: Table, keys: Collection[str]) -> dict[str, Endpoint]:
    """Return the stored endpoints of these keys, strongly consistent."""
    wanted = [endpoint_key(key) for key in sorted(set(keys)) if 0 < len(key.encode()) <= _MAX_KEY_LENGTH]
    parts = (wanted[first : first + MAX_GOT] for first in range(0, len(wanted), MAX_GOT))
    found = (endpoint_of(row) for part in parts for row in table.batch_get(part))
    return {endpoint.key: endpoint for endpoint in found}


def remember(table: Table, endpoint: Endpoint, before: Endpoint | None) -> bool:
    """Store an endpoint in place of `before`; see `images.ports.KnownEndpoints`. Raises `TooLarge`."""
    if len(endpoint.key.encode()) > _MAX_KEY_LENGTH:
        raise TooLarge("The endpoint's name is too long for the queue.", field="imageProcessor.name")
    row = table.get(endpoint_key(endpoint.key))
    if (None if row is None else endpoint_of(row)) != before:
        return False
    revision = 0 if row is None else int(row["rev"]["N"])
    after = endpoint_row(endpoint, revision + 1, row)
    return table.replace(after, Guard("rev", revision) if revision else ABSENT)


def endpoint_key(key: str) -> Key:
    """Return the key of an endpoint's row."""
    return (ENDPOINTS, key)


def endpoint_row(endpoint: Endpoint, revision: int, before: Row | None = None) -> Row:
    """Return the row of an endpoint, with what a newer release stored in the row before it."""
    stored = {} if before is None else json.loads(before["endpoint"]["S"])
    values = keep_unknown(Endpoint, document(endpoint, sparse=True), stored)
    row = keyed(endpoint_key(endpoint.key), endpoint=json.dumps(values, separators=(",", ":")), rev=revision)
    return {**(before or {}), **row}


def endpoint_of(row: Row) -> Endpoint:
    """Return the endpoint of such a row."""
    return value_of(Endpoint, json.loads(row["endpoint"]["S"]))
