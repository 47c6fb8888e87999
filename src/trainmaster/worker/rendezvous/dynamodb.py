"""The rows of a rendezvous in DynamoDB (docs/reference/rendezvous.md).

That of the state is read whole and written by compare-and-set; each node announces itself in a row of its own.

`st` contains the state as bytes, `rev` its revision, `control` the queue's requirements, `expires` the time at which
DynamoDB may delete the row. One strongly consistent GetItem reads both the state and the control. Each has a signature
with the secret of the run; what does not verify was written by another job and is not used.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.worker.container.aws import REGION, make_client
from trainmaster.worker.rendezvous.errors import TableMissing, Unreachable, Unverified
from trainmaster.worker.rendezvous.run import Run
from trainmaster.worker.rendezvous.state import Token
from trainmaster.worker.rendezvous.watching.presence import WATCHERS_SHARD

RETENTION_SECONDS = 30 * 24 * 3600
"""Seconds for which a row stays after the last write; a training job can take 28 days (MaxRuntimeInSeconds)."""
ANNOUNCEMENT_SECONDS = 24 * 3600
"""Seconds for which a row of announcements stays after its last write, which a live node repeats every second."""
_ENDPOINT = "endpoint"
"""Sort key of the address of the first rank, in the watchers' partition; names of nodes have a slash."""
CLIENT_CONFIG = Config(connect_timeout=2, read_timeout=4, retries={"mode": "standard", "total_max_attempts": 2})
"""Timeouts and tries of a client for single calls: a fence, torch's own handler."""
ENGINE_CLIENT_CONFIG = Config(connect_timeout=1, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 1})
"""The same for the engine, which retries itself: a node sends no heartbeat during a call, and is dead after 5 s."""


_NO_NETWORK = "in private subnets, the VPC needs an endpoint for DynamoDB or a NAT gateway"
_HINTS = {
    "AccessDeniedException": "attach the policy RendezvousPolicyArn of the queue's stack to the role of the job",
    "NoCredentialsError": "a job with EnableNetworkIsolation has no credentials",
    "ConnectTimeoutError": _NO_NETWORK,
    "EndpointConnectionError": _NO_NETWORK,
}
"""Usual causes, by error code of DynamoDB or class of botocore."""


@dataclass(frozen=True, slots=True)
class TableAddress:
    """Address of the rendezvous table.

    Attributes:
        table: name of the table.
        region: AWS Region; None for the environment's.
    """

    table: str
    region: str | None = None

    @classmethod
    def parse(cls, endpoint: str) -> TableAddress:
        """Parse `TABLE` or `REGION/TABLE`, as in `torchrun --rdzv-endpoint`.

        Raises:
            ValueError: it is neither.
        """
        region, _, table = endpoint.rpartition("/")
        if not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}", table) or (region and not REGION.fullmatch(region)):
            raise ValueError(f"the rendezvous endpoint must be TABLE or REGION/TABLE, not {endpoint!r}")
        return cls(table, region or None)


def dynamodb_client(
    region: str | None = None, environ: Mapping[str, str] | None = None, *, config: Config = CLIENT_CONFIG
) -> Any:
    """Return a client that responds or fails within seconds; see `container.aws.make_client`."""
    return make_client("dynamodb", region, environ, config=config)


class DynamoStateStore:
    """The rows of one run; implements `state.GroupStore`. Tokens are revisions, from 1.

    Args:
        client: a low-level DynamoDB client with suitable timeouts, see `dynamodb_client`.
        table: name of the table.
        run: the run.
        now: seconds since 1970; sets when the row expires.
    """

    def __init__(self, client: Any, table: str, run: Run, *, now: Callable[[], float] = time.time) -> None:
        self._client = client
        self._now = now
        self._run = run
        self._control: str | None = None
        self._endpoint: str | None = None
        self._table = table
        self._row: dict[str, Any] = {
            "TableName": table,
            "Key": {"pk": {"S": run.partition}, "sk": {"S": "state"}},
        }

    @property
    def control(self) -> str | None:
        """The newest control of the queue that was read and verifies; None before the first."""
        return self._control

    def get_state(self, *, consistent: bool = True) -> tuple[bytes, Token] | None:
        """Return the state and its token; see `state.GroupStore`.

        Raises:
            Unreachable: DynamoDB did not respond, or rejected the request; also if the row does not verify.
        """
        try:
            response = self._client.get_item(**self._row, ConsistentRead=consistent)
        except (BotoCoreError, ClientError) as error:
            raise _unreachable(error) from error
        return self._parse_row(response.get("Item", {}))

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Store the state; see `state.StateStore`.

        If the response of a successful write is lost and botocore retries it, the result is a failed write: the stored
        state then contains the change already.

        Raises:
            Unreachable: DynamoDB did not respond, or rejected the request; also if the row does not verify.
        """
        revision = 0 if token is None else token
        if type(revision) is not int or (token is not None and revision < 1):
            return _conflict(self.get_state())
        try:
            self._client.update_item(**self._row, **self._update_arguments(state, revision))
        except ClientError as error:
            if not _is_conflict(error):
                raise _unreachable(error) from error
            row: Any = error.response.get("Item", {})
            return _conflict(self._parse_row(row))
        except BotoCoreError as error:
            raise _unreachable(error) from error
        return state, revision + 1, True

    @property
    def endpoint(self) -> str | None:
        """The endpoint that `publish` has stored, as of the last read of the watchers' announcements."""
        return self._endpoint

    def announcements(self, shard: int) -> Mapping[str, str]:
        """Return the announcements in a partition that verify, by the names of their nodes; see `state.GroupStore`.

        Raises:
            Unreachable: DynamoDB did not respond, or rejected the request.
        """
        found: dict[str, str] = {}
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": self._run.announcements(shard)}},
            "ConsistentRead": True,
        }
        while True:
            response = self._call(self._client.query, **request)
            found |= self._verified(response.get("Items", []))
            if "LastEvaluatedKey" not in response:
                break
            request["ExclusiveStartKey"] = response["LastEvaluatedKey"]
        if shard == WATCHERS_SHARD:
            self._endpoint = found.pop(_ENDPOINT, None)
        return found

    def announce(self, shard: int, name: str, text: str) -> None:
        """Store a node's announcement; see `state.GroupStore`. Raises `Unreachable`."""
        self._call(self._client.update_item, **self._announcement(shard, name, text))

    def withdraw(self, shard: int, name: str) -> None:
        """Delete a node's announcement; see `state.GroupStore`. Raises `Unreachable`."""
        self._call(self._client.delete_item, TableName=self._table, Key=self._key(shard, name))

    def publish(self, endpoint: str, round_: int) -> None:
        """Store the address of the first rank of a round; see `state.GroupStore`. Raises `Unreachable`."""
        request = self._announcement(WATCHERS_SHARD, _ENDPOINT, endpoint)
        request["UpdateExpression"] += ", #round = :round"
        request["ExpressionAttributeNames"]["#round"] = "round"
        request["ExpressionAttributeValues"][":round"] = {"N": str(round_)}
        try:
            self._client.update_item(**request, ConditionExpression="attribute_not_exists(#round) OR #round <= :round")
        except (BotoCoreError, ClientError) as error:
            if not _is_conflict(error):
                raise _unreachable(error) from error

    def _key(self, shard: int, name: str) -> dict[str, Any]:
        return {"pk": {"S": self._run.announcements(shard)}, "sk": {"S": name}}

    def _announcement(self, shard: int, name: str, text: str) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "Key": self._key(shard, name),
            "UpdateExpression": "SET #said = :said, #mac = :mac, #expires = :expires",
            "ExpressionAttributeNames": {"#said": "said", "#mac": "mac", "#expires": "expires"},
            "ExpressionAttributeValues": {
                ":said": {"S": text},
                ":mac": {"B": self._run.sign_announcement(name, text)},
                ":expires": {"N": str(int(self._now()) + ANNOUNCEMENT_SECONDS)},
            },
        }

    def _verified(self, rows: list[Mapping[str, Any]]) -> dict[str, str]:
        """Return the texts of the rows that nodes of the run have written, by sort key."""
        found = {}
        for row in rows:
            name, text, mac = row["sk"]["S"], row.get("said", {}).get("S"), row.get("mac", {}).get("B")
            is_ours = text is not None and mac is not None
            if is_ours and hmac.compare_digest(bytes(mac), self._run.sign_announcement(name, text)):
                found[name] = text
        return found

    def _call(self, call: Callable[..., Any], **request: Any) -> Any:
        try:
            return call(**request)
        except (BotoCoreError, ClientError) as error:
            raise _unreachable(error) from error

    def _parse_row(self, row: Mapping[str, Any]) -> tuple[bytes, Token] | None:
        self._read_control(row)
        if not row.keys() & {"st", "rev", "mac"}:
            return None
        try:
            state, revision, mac = bytes(row["st"]["B"]), int(row["rev"]["N"]), bytes(row["mac"]["B"])
        except (KeyError, TypeError, ValueError) as error:
            raise Unverified("the row of the rendezvous is not one that a node of this run wrote") from error
        if not hmac.compare_digest(mac, self._run.sign_state(state, revision)):
            raise Unverified("the state of the rendezvous is not signed with the secret of this run")
        return state, revision

    def _read_control(self, row: Mapping[str, Any]) -> None:
        """Note the row's control; one that is missing or does not verify leaves the last one in force."""
        text, mac = row.get("control", {}).get("S"), row.get("controlMac", {}).get("B")
        if text is not None and mac is not None and hmac.compare_digest(bytes(mac), self._run.sign_control(text)):
            self._control = text

    def _update_arguments(self, state: bytes, revision: int) -> dict[str, Any]:
        numbers = {":next": revision + 1, ":expires": int(self._now()) + RETENTION_SECONDS}
        if revision:
            numbers[":rev"] = revision
        return {
            "UpdateExpression": "SET #st = :st, #rev = :next, #mac = :mac, #expires = :expires",
            "ConditionExpression": "#rev = :rev" if revision else "attribute_not_exists(#rev)",
            "ExpressionAttributeNames": {f"#{name}": name for name in ("st", "rev", "mac", "expires")},
            "ExpressionAttributeValues": {
                ":st": {"B": state},
                ":mac": {"B": self._run.sign_state(state, revision + 1)},
                **{name: {"N": str(number)} for name, number in numbers.items()},
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def _conflict(stored: tuple[bytes, Token] | None) -> tuple[bytes, Token, bool] | None:
    return None if stored is None else (*stored, False)


def _is_conflict(error: Exception) -> bool:
    return _code(error) == "ConditionalCheckFailedException"


def _unreachable(error: Exception) -> Unreachable:
    kind = TableMissing if _code(error) == "ResourceNotFoundException" else Unreachable
    hint = _HINTS.get(_code(error) or type(error).__name__, "")
    return kind(f"DynamoDB: {type(error).__name__}: {error}{hint and f' ({hint})'}")


def _code(error: Exception) -> str | None:
    return error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
