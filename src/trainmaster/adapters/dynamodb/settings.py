"""The settings' one row: pools and policy set through the API, over the deployment's own.

Pools set through the API are in force while the deployment's parameter is the one under which they were set, so that
the last change wins. A policy is in force until another one is set. The history of the manager's changes to its own
pools is a row beside it, outside what passes read, written in the same transaction.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.adapters.dynamodb.encoding.compression import inflate
from trainmaster.adapters.dynamodb.reading import read, read_or
from trainmaster.adapters.dynamodb.rows import MAX_TEXT_BYTES, STATE, Key, Row, keyed
from trainmaster.adapters.dynamodb.table import ABSENT, Action, Guard, Table
from trainmaster.domain.capacity.pool_history import MAX_EVENTS, PoolEvent
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.document import Document, document, keep_unknown, value_of
from trainmaster.domain.errors import Throttled, VersionConflict
from trainmaster.domain.policy.document import differences, policy_of
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.value_types import check_fields
from trainmaster.ports.store import QueueSettings

SETTINGS: Key = (STATE, "pools")
EVENTS: Key = ("pools", "history")
"""In a partition of its own, because passes read all of `STATE`."""
_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Deployed:
    """The settings of a deployment.

    Attributes:
        pools: the pools in its `Pools` parameter.
        parameter: that parameter as text; "" in a function that does not know it, which then uses the stored pools.
        policy: its policy settings.
    """

    pools: Mapping[str, Pool]
    parameter: str
    policy: Policy

    def in_force(self, row: Row | None) -> QueueSettings:
        """Return the settings in force from the row and the deployment.

        Raises `UnreadableRow`: to start jobs under other caps than the ones that were set could cost money.
        """
        if row is None:
            return QueueSettings(self.pools, self.policy, 0, self.policy)
        return read(row, self._in_force)

    def _in_force(self, row: Row) -> QueueSettings:
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
        others: Callable[[int], Sequence[Action]],
    ) -> QueueSettings:
        """Replace the given settings under the version that was read; see `ports.Store`.

        `others` returns further writes of the same transaction from the new version, after the settings were read.
        """
        for _ in range(_ROUNDS):
            stored = table.get(SETTINGS)
            now = self.in_force(stored)
            if version not in (None, now.version):
                raise VersionConflict(
                    f"The settings now have version {now.version}.", field="version", hint="Read them again first."
                )
            row = self._changed(
                stored,
                now.pools.values() if pools is None else pools,
                now.policy if policy is None else policy,
                now.version + 1,
            )
            guard = Guard("version", int(stored["version"]["N"])) if stored else ABSENT
            more = others(now.version + 1)
            if not table.commit([table.put_action(row, guard), *more]) if more else table.replace(row, guard):
                return self.in_force(row)
        raise Throttled("other callers keep changing the settings")

    def _changed(self, stored: Row | None, pools: Iterable[Pool], policy: Policy, version: int) -> Row:
        """Return the row of these settings, with what a newer release stored in the present one."""
        pools_before = {} if stored is None else {pool["name"]: pool for pool in json.loads(stored["pools"]["S"])}
        documents = [keep_unknown(Pool, document(pool, sparse=True), pools_before.get(pool.name, {})) for pool in pools]
        policy_before = {} if stored is None or "policy" not in stored else json.loads(stored["policy"]["S"])
        row = keyed(
            SETTINGS,
            pools=_text(documents),
            policy=_text(keep_unknown(Policy, differences(policy, self.policy), policy_before)),
            version=version,
            parameter=self.parameter,
        )
        return {**(stored or {}), **row}

    def _policy_of(self, row: Row) -> Policy:
        """Return the row's policy over the deployment's; the oldest rows have none."""
        return policy_of(json.loads(row["policy"]["S"]), self.policy) if "policy" in row else self.policy


def history_of(row: Row | None) -> tuple[PoolEvent, ...]:
    """Return the pool events in the row, the oldest first.

    Empty, with a warning, if the row is unreadable: no pass may fail for information. The next event starts a new
    history.
    """
    return tuple(event for event, _ in _events_of(row))


def _events_of(row: Row | None) -> tuple[tuple[PoolEvent, Document], ...]:
    """Return the events in the row with their documents, which a newer release may have extended."""
    return read_or(row, _read_events, ())


def _read_events(row: Row) -> tuple[tuple[PoolEvent, Document], ...]:
    events = json.loads(inflate(row["events"]["B"], MAX_TEXT_BYTES))
    found = tuple((value_of(PoolEvent, event), event) for event in events)
    for event, _ in found:
        check_fields(event)
    return found


def history_actions(table: Table, events: Sequence[PoolEvent]) -> list[Action]:
    """Return the write of the history with these events, for the transaction of the settings.

    Every writer of the history also increments the settings' version, and the history was read after it, so the guard
    of the settings is enough.
    """
    if not events:
        return []
    before = [event for _, event in _events_of(table.get(EVENTS))]
    text = _text([*before, *(document(event, sparse=True) for event in events)][-MAX_EVENTS:])
    return [table.update_action(keyed(EVENTS, events=zlib.compress(text.encode(), level=9)))]


def _pools_of(row: Row) -> list[Pool]:
    return [value_of(Pool, pool) for pool in json.loads(row["pools"]["S"])]


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
