"""One table of DynamoDB: guarded writes that answer won or lost, reads, and how often to try.

The only module that calls the client. It must not know jobs.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from botocore.exceptions import ClientError

from trainmaster.adapters.aws_errors import AWS_ERRORS
from trainmaster.adapters.dynamodb.errors import (
    failed_guards,
    is_cancelled,
    is_guard_failure,
    is_retryable,
    to_domain_error,
    was_retried,
)
from trainmaster.adapters.dynamodb.rows import FINISHED, FINISHED_INDEX, Key, Row, keyed
from trainmaster.domain.errors import Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Action: TypeAlias = dict[str, Any]
"""One write of a transaction, as the client takes it."""
MAX_ACTIONS = 100
"""Writes and checks of one transaction (DynamoDB developer guide, TransactWriteItems)."""
MAX_GOT = 100
"""Rows of one BatchGetItem (DynamoDB developer guide, "Service quotas")."""
_T = TypeVar("_T")

_TRIES = 6
_FIRST_PAUSE = 0.02
_MAX_PAUSE_LENGTH = 1.0


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on a row.

    Attributes:
        attribute: what must equal `number`; None: the row must not be there.
    """

    attribute: str | None = None
    number: int = 0

    def condition(self) -> dict[str, Any]:
        """The condition as arguments of a write; names go by placeholders because many are reserved words."""
        if self.attribute is None:
            return {"ConditionExpression": "attribute_not_exists(pk)"}
        return {
            "ConditionExpression": "#guarded = :expected",
            "ExpressionAttributeNames": {"#guarded": self.attribute},
            "ExpressionAttributeValues": {":expected": {"N": str(self.number)}},
        }


ABSENT = Guard()


@dataclass(frozen=True, slots=True)
class Table:
    """A table by name, and how to wait between tries.

    Args:
        client: the low-level client.
        sleep: waits that many seconds.
        rng: spreads the waits of those who met on a row.
        new_token: a client request token that nobody has used before.

    Every call raises `Throttled`, `Unavailable`, `NotPermitted`; writes also `TooLarge`.
    """

    client: DynamoDBClient
    name: str
    sleep: Callable[[float], None]
    rng: random.Random = field(default_factory=random.Random)
    new_token: Callable[[], str] = lambda: str(uuid.uuid4())

    def putting(self, row: Row, guard: Guard | None = None) -> Action:
        """Part of a transaction: write the row."""
        return {"Put": {"TableName": self.name, "Item": row, **(guard.condition() if guard else {})}}

    def deleting(self, key: Key, guard: Guard | None = None) -> Action:
        """Part of a transaction: delete the row."""
        return {"Delete": {"TableName": self.name, "Key": _key(key), **(guard.condition() if guard else {})}}

    def checking(self, key: Key, guard: Guard) -> Action:
        """Part of a transaction: only the guard."""
        return {"ConditionCheck": {"TableName": self.name, "Key": _key(key), **guard.condition()}}

    def commit(self, actions: Sequence[Any]) -> frozenset[int]:
        """Write all or nothing; returns which guards failed, by number: none where it is written.

        The token makes it safe that botocore asks again when an answer was lost: the second answer tells what the
        first request did. After an answer that nothing happened, the next try is another transaction.
        """
        token = self.new_token()

        def write() -> frozenset[int]:
            nonlocal token
            try:
                self.client.transact_write_items(TransactItems=actions, ClientRequestToken=token)
            except ClientError as error:
                if failed := failed_guards(error):
                    return failed
                if is_cancelled(error):
                    token = self.new_token()
                raise
            return frozenset()

        return self._patiently(write)

    def replace(self, row: Row, guard: Guard) -> bool:
        """Write one row if its guard holds; whether it is written. Half the price of a transaction."""
        sent_before = False

        def write() -> bool:
            nonlocal sent_before
            try:
                self.client.put_item(
                    TableName=self.name, Item=row, ReturnValuesOnConditionCheckFailure="ALL_OLD", **guard.condition()
                )
            except ClientError as error:
                # The guard of a repeated request may fail on what the first one wrote: its answer was lost.
                sent_before = sent_before or was_retried(error)
                if not is_guard_failure(error):
                    raise
                stored: Any = error.response.get("Item")
                return sent_before and stored == row
            return True

        return self._patiently(write)

    def put(self, row: Row) -> None:
        """Write one row, whatever was there."""
        self._patiently(lambda: self.client.put_item(TableName=self.name, Item=row))

    def delete(self, key: Key) -> None:
        """Delete one row, if it is there."""
        self._patiently(lambda: self.client.delete_item(TableName=self.name, Key=_key(key)))

    def set(self, key: Key, **values: str | int) -> None:
        """Set these attributes of one row, whether or not it is there; what else it holds stays as it is."""
        row = keyed(key, **values)
        self._patiently(
            lambda: self.client.update_item(
                TableName=self.name,
                Key=_key(key),
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
                ExpressionAttributeNames={f"#{name}": name for name in values},
                ExpressionAttributeValues={f":{name}": row[name] for name in values},
            )
        )

    def count_up(self, key: Key, attribute: str) -> int:
        """Add one to a number, from 0 where there is none; returns the new one. A repeated request may add two."""
        answer = self._patiently(
            lambda: self.client.update_item(
                TableName=self.name,
                Key=_key(key),
                UpdateExpression="ADD #counted :one",
                ExpressionAttributeNames={"#counted": attribute},
                ExpressionAttributeValues={":one": {"N": "1"}},
                ReturnValues="UPDATED_NEW",
            )
        )
        return int(answer["Attributes"][attribute]["N"])

    def get(self, key: Key) -> Row | None:
        """One row, strongly consistent."""
        answer = self._patiently(lambda: self.client.get_item(TableName=self.name, Key=_key(key), ConsistentRead=True))
        return answer.get("Item")

    def get_all(self, keys: Sequence[Key]) -> list[Row]:
        """Those of at most 100 rows that are there, each strongly consistent, in no order."""
        rows, left = self._got({"Keys": [_key(key) for key in keys], "ConsistentRead": True})
        for pause in self._pauses():
            if not left:
                return rows
            self.sleep(pause)
            more, left = self._got(left)
            rows += more
        if left:
            raise Throttled("DynamoDB keeps leaving rows unread")
        return rows

    def query(
        self,
        partition: str,
        *,
        after: str = "",
        until: str = "",
        limit: int | None = None,
        consistent: bool = True,
    ) -> tuple[list[Row], bool]:
        """One page of a partition, in the order of `sk`, and whether there may be more.

        Args:
            partition: `pk`.
            after: only rows behind this `sk`, which need not be there.
            until: only rows before this `sk`; it must not be there.
            limit: most rows that are read.
            consistent: whether strongly.
        """
        # A key condition takes one range; BETWEEN includes its ends, so the row at `after` is left out afterwards.
        between = bool(after and until)
        condition = "pk = :pk" + _range(after, until)
        values = {":pk": {"S": partition}}
        values |= {name: {"S": key} for name, key in ((":after", after), (":until", until)) if key}
        room = None if limit is None else limit + between
        rows, more = self._page(condition, values, limit=room, ConsistentRead=consistent)
        kept = [row for row in rows if row["sk"]["S"] != after]
        return kept[:limit], more or len(kept) > len(kept[:limit])

    def finished(self, *, before: str = "", limit: int) -> tuple[list[Row], bool]:
        """One page of the index of ended jobs, newest first, and whether there may be more; never strongly consistent.

        Args:
            before: only rows whose `finishedAt` is less.
            limit: most rows that are read.
        """
        condition, values = "finishedIn = :in", {":in": {"S": FINISHED}}
        if before:
            condition, values = f"{condition} AND finishedAt < :before", {**values, ":before": {"S": before}}
        return self._page(condition, values, limit=limit, IndexName=FINISHED_INDEX, ScanIndexForward=False)

    def every(self, partition: str, *, after: str = "", until: str = "", consistent: bool = True) -> Iterator[Row]:
        """All rows of a partition between two keys, in order, page by page."""
        more = True
        while more:
            rows, more = self.query(partition, after=after, until=until, consistent=consistent)
            yield from rows
            after = rows[-1]["sk"]["S"] if rows else after

    def _got(self, wanted: Any) -> tuple[list[Row], Any]:
        answer = self._patiently(lambda: self.client.batch_get_item(RequestItems={self.name: wanted}))
        return answer["Responses"].get(self.name, []), answer.get("UnprocessedKeys", {}).get(self.name)

    def _page(self, condition: str, values: Any, *, limit: int | None, **how: Any) -> tuple[list[Row], bool]:
        if limit is not None:
            how["Limit"] = limit
        answer = self._patiently(
            lambda: self.client.query(
                TableName=self.name, KeyConditionExpression=condition, ExpressionAttributeValues=values, **how
            )
        )
        return answer["Items"], "LastEvaluatedKey" in answer

    def _patiently(self, call: Callable[[], _T]) -> _T:
        """The call's answer, asking again a few times where it only met another writer."""
        pauses = self._pauses()
        while True:
            try:
                return call()
            except AWS_ERRORS as error:
                pause = next(pauses, None)
                if pause is None or not is_retryable(error):
                    raise to_domain_error(error) from error
            self.sleep(pause)

    def _pauses(self) -> Iterator[float]:
        """How long to wait between tries: exponential, drawn from the whole span so that two do not meet again."""
        for number in range(_TRIES - 1):
            yield self.rng.uniform(0, min(_MAX_PAUSE_LENGTH, _FIRST_PAUSE * 2**number))


def _range(after: str, until: str) -> str:
    if after and until:
        return " AND sk BETWEEN :after AND :until"
    return " AND sk > :after" if after else " AND sk < :until" if until else ""


def _key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
