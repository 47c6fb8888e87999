"""One DynamoDB table: guarded writes that return whether they won, reads, and retries.

The only module that calls the client.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from botocore.exceptions import ClientError

from trainmaster.adapters.aws_errors import AWS_ERRORS
from trainmaster.adapters.dynamodb.control.schema import ATTRIBUTE, SCHEMA, Schema
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
"""One write of a transaction, in the client's format."""
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
        attribute: the attribute that must equal `number`; None: the row must not exist.
    """

    attribute: str | None = None
    number: int = 0

    def condition(self) -> dict[str, Any]:
        """Return the condition as arguments of a write, with placeholders because many names are reserved words."""
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
    """A table by name, and its pauses between tries.

    Args:
        client: the low-level client.
        sleep: waits that many seconds.
        rng: spreads the pauses of writers that met on a row.
        new_token: returns a client request token that was never used before.
        schema: the schema of its rows; None for a table that others write too, whose rows have no version.

    Every call raises `Throttled`, `Unavailable`, `NotPermitted`; writes also `TooLarge`, reads `UnsupportedSchema`.
    """

    client: DynamoDBClient
    name: str
    sleep: Callable[[float], None]
    rng: random.Random = field(default_factory=random.Random)
    new_token: Callable[[], str] = lambda: str(uuid.uuid4())
    schema: Schema | None = SCHEMA

    def put_action(self, row: Row, guard: Guard | None = None) -> Action:
        """Return the action of a transaction that writes the row."""
        return {"Put": {"TableName": self.name, "Item": self._stamped(row), **(guard.condition() if guard else {})}}

    def update_action(
        self,
        row: Row,
        *,
        remove: Sequence[str] = (),
        add: Mapping[str, int] | None = None,
        guard: Guard | None = None,
    ) -> Action:
        """Return the action of a transaction that sets the row's attributes and keeps others, but for `remove`.

        Numbers of `add` are added to those of the row, which are 0 if they do not exist.
        """
        update = self._update(row, remove)
        for name, number in (add or {}).items():
            update["UpdateExpression"] += f" ADD #{name} :{name}"
            update["ExpressionAttributeNames"][f"#{name}"] = name
            update["ExpressionAttributeValues"][f":{name}"] = {"N": str(number)}
        if guard is not None:
            condition = guard.condition()
            update["ConditionExpression"] = condition["ConditionExpression"]
            update["ExpressionAttributeNames"] |= condition.get("ExpressionAttributeNames", {})
            update["ExpressionAttributeValues"] |= condition.get("ExpressionAttributeValues", {})
        return {"Update": update}

    def update(self, row: Row, *, remove: Sequence[str] = ()) -> None:
        """Set the row's attributes, and keep others, but for `remove`; the row need not exist."""
        self._with_retries(lambda: self.client.update_item(**self._update(row, remove)))

    def _update(self, row: Row, remove: Sequence[str]) -> Any:
        values = {name: value for name, value in self._stamped(row).items() if name not in ("pk", "sk")}
        names = {f"#{name}": name for name in (*values, *remove)}
        removed = " REMOVE " + ", ".join(f"#{name}" for name in remove) if remove else ""
        return {
            "TableName": self.name,
            "Key": {"pk": row["pk"], "sk": row["sk"]},
            "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in values) + removed,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {f":{name}": value for name, value in values.items()},
        }

    def delete_action(self, key: Key, guard: Guard | None = None) -> Action:
        """Return the action of a transaction that deletes the row."""
        return {"Delete": {"TableName": self.name, "Key": _key(key), **(guard.condition() if guard else {})}}

    def commit(self, actions: Sequence[Any]) -> frozenset[int]:
        """Write all or nothing; return the numbers of the guards that failed, none if it is written.

        The token makes it safe that botocore repeats the call after a lost answer: the second answer has the first
        one's result. After a cancelled transaction, the next try is a new transaction.
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

        return self._with_retries(write)

    def replace(self, row: Row, guard: Guard) -> bool:
        """Write one row if its guard holds; return True if it is written. Costs half as much as a transaction."""
        sent_before = False
        row = self._stamped(row)

        def write() -> bool:
            nonlocal sent_before
            try:
                self.client.put_item(
                    TableName=self.name, Item=row, ReturnValuesOnConditionCheckFailure="ALL_OLD", **guard.condition()
                )
            except ClientError as error:
                # The guard of a retried request may fail on the first one's own write, whose answer was lost.
                sent_before = sent_before or was_retried(error)
                if not is_guard_failure(error):
                    raise
                stored: Any = error.response.get("Item")
                return sent_before and stored == row
            return True

        return self._with_retries(write)

    def put(self, row: Row) -> None:
        """Write one row unconditionally."""
        self._with_retries(lambda: self.client.put_item(TableName=self.name, Item=self._stamped(row)))

    def delete(self, key: Key) -> None:
        """Delete one row, if it exists."""
        self._with_retries(lambda: self.client.delete_item(TableName=self.name, Key=_key(key)))

    def set(self, key: Key, **values: str | int | bytes) -> None:
        """Set these attributes of one row, which need not exist; other attributes stay."""
        row = keyed(key, **values)
        self._with_retries(
            lambda: self.client.update_item(
                TableName=self.name,
                Key=_key(key),
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
                ExpressionAttributeNames={f"#{name}": name for name in values},
                ExpressionAttributeValues={f":{name}": row[name] for name in values},
            )
        )

    def increment(self, row: Row, attribute: str, *also: str, unless: str) -> int | None:
        """Add one to a number, and to those of `also`, from 0 if they do not exist, and set the row's attributes.

        Returns the new number; None if the row has the attribute `unless`, or a newer schema. A retried request may
        add two.
        """
        version = 0 if self.schema is None else self.schema.version
        sets = {name: value for name, value in row.items() if name not in ("pk", "sk")}
        sets[ATTRIBUTE] = {"N": str(version)}
        names = {f"#{name}": name for name in (attribute, *also, *sets, unless)}

        def add() -> int | None:
            try:
                answer = self.client.update_item(
                    TableName=self.name,
                    Key={"pk": row["pk"], "sk": row["sk"]},
                    UpdateExpression="ADD "
                    + ", ".join(f"#{name} :one" for name in (attribute, *also))
                    + " SET "
                    + ", ".join(f"#{name} = :{name}" for name in sets),
                    ConditionExpression=(
                        f"attribute_not_exists(#{unless}) AND "
                        f"(attribute_not_exists(#{ATTRIBUTE}) OR #{ATTRIBUTE} <= :{ATTRIBUTE})"
                    ),
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues={
                        ":one": {"N": "1"},
                        **{f":{name}": value for name, value in sets.items()},
                    },
                    ReturnValues="UPDATED_NEW",
                )
            except ClientError as error:
                if is_guard_failure(error):
                    return None
                raise
            return int(answer["Attributes"][attribute]["N"])

        return self._with_retries(add)

    def get(self, key: Key, *, consistent: bool = True) -> Row | None:
        """Return one row, strongly consistent unless the caller accepts one of a moment ago for half the units."""
        answer = self._with_retries(
            lambda: self.client.get_item(TableName=self.name, Key=_key(key), ConsistentRead=consistent)
        )
        row = answer.get("Item")
        return None if row is None else self._upgraded(row)

    def batch_get(self, keys: Sequence[Key], *, consistent: bool = True) -> list[Row]:
        """Return those of at most 100 rows that exist, in no order; each is read as `get` reads one."""
        rows, left = self._batch_get({"Keys": [_key(key) for key in keys], "ConsistentRead": consistent})
        for pause in self._pauses():
            if not left:
                return rows
            self.sleep(pause)
            more, left = self._batch_get(left)
            rows += more
        if left:
            raise Throttled("DynamoDB keeps returning unprocessed keys")
        return rows

    def query(  # noqa: PLR0913 -- options of one call
        self,
        partition: str,
        *,
        after: str = "",
        until: str = "",
        limit: int | None = None,
        consistent: bool = True,
        newest_first: bool = False,
    ) -> tuple[list[Row], bool]:
        """Return one page of a partition, in the order of `sk`, and whether there may be more.

        Args:
            partition: `pk`.
            after: only rows after this `sk`, which need not exist.
            until: only rows before this `sk`; if `after` is given too, a row at `until` itself may be returned.
            limit: maximum number of rows.
            consistent: True for a strongly consistent read.
            newest_first: True for the opposite order.
        """
        # A key condition has one range, and BETWEEN includes its ends, so the row at `after` is dropped here.
        between = bool(after and until)
        condition = "pk = :pk" + _range(after, until)
        values = {":pk": {"S": partition}}
        values |= {name: {"S": key} for name, key in ((":after", after), (":until", until)) if key}
        room = None if limit is None else limit + between
        order = {"ScanIndexForward": False} if newest_first else {}
        rows, more = self._page(condition, values, limit=room, ConsistentRead=consistent, **order)
        kept = [row for row in rows if row["sk"]["S"] != after]
        return kept[:limit], more or len(kept) > len(kept[:limit])

    def query_ended(
        self, *, since: str = "", before: str = "", limit: int, newest_first: bool = True
    ) -> tuple[list[Row], bool]:
        """Return one page of the index of ended jobs, and whether there may be more.

        Eventually consistent.

        Args:
            since: only rows whose `finishedAt` is not less.
            before: only rows whose `finishedAt` is less.
            limit: maximum number of rows.
            newest_first: False for the opposite order.
        """
        condition, values = "finishedIn = :in", {":in": {"S": FINISHED}}
        values |= {name: {"S": key} for name, key in ((":since", since), (":before", before)) if key}
        # BETWEEN includes its ends, so the row at `before` is dropped here.
        between = bool(since and before)
        if between:
            condition += " AND finishedAt BETWEEN :since AND :before"
        elif since or before:
            condition += " AND finishedAt >= :since" if since else " AND finishedAt < :before"
        order = {"IndexName": FINISHED_INDEX, "ScanIndexForward": not newest_first}
        rows, more = self._page(condition, values, limit=limit + between, **order)
        kept = [row for row in rows if row["finishedAt"]["S"] != before]
        return kept[:limit], more or len(kept) > limit

    def all_rows(self, partition: str, *, after: str = "", until: str = "", consistent: bool = True) -> Iterator[Row]:
        """Yield all rows of a partition between two keys, in order, page by page."""
        more = True
        while more:
            rows, more = self.query(partition, after=after, until=until, consistent=consistent)
            yield from rows
            after = rows[-1]["sk"]["S"] if rows else after

    def _batch_get(self, wanted: Any) -> tuple[list[Row], Any]:
        answer = self._with_retries(lambda: self.client.batch_get_item(RequestItems={self.name: wanted}))
        rows = [self._upgraded(row) for row in answer["Responses"].get(self.name, [])]
        return rows, answer.get("UnprocessedKeys", {}).get(self.name)

    def _page(self, condition: str, values: Any, *, limit: int | None, **options: Any) -> tuple[list[Row], bool]:
        if limit is not None:
            options["Limit"] = limit
        answer = self._with_retries(
            lambda: self.client.query(
                TableName=self.name, KeyConditionExpression=condition, ExpressionAttributeValues=values, **options
            )
        )
        return [self._upgraded(row) for row in answer["Items"]], "LastEvaluatedKey" in answer

    def _stamped(self, row: Row) -> Row:
        return row if self.schema is None else self.schema.stamped(row)

    def _upgraded(self, row: Row) -> Row:
        return row if self.schema is None else self.schema.upgraded(row)

    def _with_retries(self, call: Callable[[], _T]) -> _T:
        """Return the call's answer, retrying a few times if it only met another writer."""
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
        """Yield the pauses between tries: exponential, with full jitter so that two writers do not meet again."""
        for number in range(_TRIES - 1):
            yield self.rng.uniform(0, min(_MAX_PAUSE_LENGTH, _FIRST_PAUSE * 2**number))


def _range(after: str, until: str) -> str:
    if after and until:
        return " AND sk BETWEEN :after AND :until"
    return " AND sk > :after" if after else " AND sk < :until" if until else ""


def _key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
