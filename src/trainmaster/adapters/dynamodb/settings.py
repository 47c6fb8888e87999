"""The settings' one row: pools and policy as people set them, on top of what the deployment says.

Pools that were set are in force while the deployment's own parameter is the one under which they were set, so that the
last change wins; a policy is in force until another one is set. What the manager has done to its own pools is a row
beside it, which no pass reads, written in the transaction that does it. It must not check what settings mean.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.adapters.dynamodb.rows import STATE, Key, Row, keyed
from trainmaster.adapters.dynamodb.table import ABSENT, Guard, Table
from trainmaster.domain.capacity.pool_history import MAX_EVENTS, PoolEvent
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.document import document, value_of
from trainmaster.domain.errors import Throttled, VersionConflict
from trainmaster.domain.policy.document import differences, policy_of
from trainmaster.domain.policy.settings import Policy
from trainmaster.ports.store import QueueSettings

SETTINGS: Key = (STATE, "pools")
EVENTS: Key = ("pools", "history")
"""In a partition of its own, since passes read all of `STATE`."""
_ROUNDS = 10
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, zlib.error)
"""What rows of our making do not meet; a later version's, or a damaged one, may."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a deployment says of the settings.

    Attributes:
        pools: of its `Pools` parameter.
        parameter: that parameter as text; "" in a function that does not know it, for which stored pools are in force.
        policy: what it sets of the policy.
    """

    pools: Mapping[str, Pool]
    parameter: str
    policy: Policy

    def in_force(self, row: Row | None) -> QueueSettings:
        """The settings of the row, as far as they are in force, and of the deployment."""
        if row is None:
            return QueueSettings(self.pools, self.policy, 0, self.policy)
        policy, version = self._policy_of(row), int(row["version"]["N"])
        if self.parameter and row["parameter"]["S"] != self.parameter:
            return QueueSettings(self.pools, policy, version + 1, self.policy)
        return QueueSettings({pool.name: pool for pool in _pools_of(row)}, policy, version, self.policy)

    def change(
        self,
        table: Table,
        pools: Sequence[Pool] | None,
        policy: Policy | None,
        version: int | None,
        noted: Sequence[PoolEvent] = (),
    ) -> QueueSettings:
        """Replace what is given, as long as nobody else does, and note it; see `ports.Store`."""
        for _ in range(_ROUNDS):
            stored = table.get(SETTINGS)
            now = self.in_force(stored)
            if version not in (None, now.version):
                raise VersionConflict(
                    f"The settings have version {now.version} by now.", field="version", hint="Read them again first."
                )
            row = self._row(
                now.pools.values() if pools is None else pools,
                now.policy if policy is None else policy,
                now.version + 1,
            )
            guard = Guard("version", int(stored["version"]["N"])) if stored else ABSENT
            if _noted(table, row, guard, noted) if noted else table.replace(row, guard):
                return self.in_force(row)
        raise Throttled("others keep changing the settings")

    def _row(self, pools: Iterable[Pool], policy: Policy, version: int) -> Row:
        return keyed(
            SETTINGS,
            pools=_text([document(pool, sparse=True) for pool in pools]),
            policy=_text(differences(policy, self.policy)),
            version=version,
            parameter=self.parameter,
        )

    def _policy_of(self, row: Row) -> Policy:
        """Rows of before there was a policy have none."""
        return policy_of(json.loads(row["policy"]["S"]), self.policy) if "policy" in row else self.policy


def history_of(row: Row | None) -> tuple[PoolEvent, ...]:
    """The history of such a row, the oldest first.

    Nothing, with a warning, where it cannot be read: no pass may fail for what is only told to people. The next event
    begins it anew.
    """
    if row is None:
        return ()
    try:
        events = json.loads(zlib.decompress(bytes(row["events"]["B"])))
        return tuple(value_of(PoolEvent, event) for event in events)
    except _UNREADABLE as error:
        log.warning("the history of pools cannot be read; it begins anew", extra={"cause": repr(error)})
        return ()


def _noted(table: Table, row: Row, guard: Guard, noted: Sequence[PoolEvent]) -> bool:
    """Write the settings with their history, both or none; whether that won.

    Whoever writes the history counts up the version of the settings, so that one guard is enough: it was read after it.
    """
    events = (*history_of(table.get(EVENTS)), *noted)[-MAX_EVENTS:]
    text = _text([document(event, sparse=True) for event in events])
    history = keyed(EVENTS, events=zlib.compress(text.encode(), level=9))
    return not table.commit([table.putting(row, guard), table.putting(history)])


def _pools_of(row: Row) -> list[Pool]:
    """Rows of before pools had kinds have lists of name, cap and whether foreign jobs count."""
    listed = json.loads(row["pools"]["S"])
    return [value_of(Pool, pool) if isinstance(pool, dict) else Pool(*pool) for pool in listed]


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
