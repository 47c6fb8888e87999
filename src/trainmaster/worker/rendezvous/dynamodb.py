"""The one row of a rendezvous in DynamoDB: read whole, written by compare-and-set.

`st` holds the state as bytes, `rev` its revision, `control` what the queue asks of the nodes (the queue writes it, and
they read both with one strongly consistent GetItem), `expires` when DynamoDB may delete the row. See
docs/reference/rendezvous.md. This must not look into the state, nor retry a write that another node has won.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.worker.rendezvous.errors import Corrupt, Unreachable
from trainmaster.worker.rendezvous.state import Token

KEPT = 30 * 24 * 3600
"""Seconds that a row stays after the last write; a training job may take 28 days (MaxRuntimeInSeconds)."""
PATIENCE = Config(connect_timeout=2, read_timeout=4, retries={"mode": "standard", "total_max_attempts": 2})
"""Seconds for one try, and how many, for whoever asks once: a fence, torch's own handler."""
BRISK = Config(connect_timeout=1, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 1})
"""The same for the engine, which tries again itself: its node does not beat while a call hangs, and is dead in 5 s."""
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_ARN = re.compile(rf"arn:[a-z-]+:sagemaker:({_REGION.pattern}):")


@dataclass(frozen=True, slots=True)
class Address:
    """Where rendezvous are kept.

    Attributes:
        table: name of the table.
        region: of AWS; None for that of the environment.
    """

    table: str
    region: str | None = None

    @classmethod
    def of(cls, endpoint: str) -> Address:
        """`TABLE` or `REGION/TABLE`, as in `torchrun --rdzv-endpoint`. Raises ValueError."""
        region, _, table = endpoint.rpartition("/")
        if not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}", table) or (region and not _REGION.fullmatch(region)):
            raise ValueError(f"a rendezvous endpoint is TABLE or REGION/TABLE, not {endpoint!r}")
        return cls(table, region or None)


def client_of(
    region: str | None = None, environ: Mapping[str, str] | None = None, *, patience: Config = PATIENCE
) -> Any:
    """A client that answers or gives up in seconds; credentials and endpoints are boto3's usual ones.

    Without a region it is boto3's own, else the container's, which boto3 does not look for: AWS_REGION, or that of
    TRAINING_JOB_ARN, which SageMaker always sets.
    """
    session = boto3.session.Session()
    given = os.environ if environ is None else environ
    region = region or session.region_name or given.get("AWS_REGION") or _region_in(given.get("TRAINING_JOB_ARN", ""))
    return session.client("dynamodb", region_name=region, config=patience)


def _region_in(arn: str) -> str | None:
    found = _ARN.match(arn)
    return found and found[1]


class DynamoStateStore:
    """The row of one run; implements `state.StateStore`. Tokens are revisions, from 1.

    Args:
        client: a low-level DynamoDB client; its time limits are the caller's choice, see `client_of`.
        table: name of the table.
        run: what the run is called; every node of it says the same.
        now: seconds since 1970; tells when the row expires, and nothing else.
    """

    def __init__(self, client: Any, table: str, run: str, *, now: Callable[[], float] = time.time) -> None:
        self._client = client
        self._now = now
        self._control: str | None = None
        self._row: dict[str, Any] = {
            "TableName": table,
            "Key": {"pk": {"S": f"rdzv#{run}"}, "sk": {"S": "state"}},
        }

    @property
    def control(self) -> str | None:
        """What the queue asks, as it stood at the last read or lost write."""
        return self._control

    def get_state(self) -> tuple[bytes, Token] | None:
        """See `state.StateStore`. Raises `Unreachable`, `Corrupt`."""
        try:
            answer = self._client.get_item(**self._row, ConsistentRead=True)
        except (BotoCoreError, ClientError) as error:
            raise _unreachable(error) from error
        return self._seen(answer.get("Item", {}))

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """See `state.StateStore`. Raises `Unreachable`, `Corrupt`.

        A write whose answer was lost, and which botocore sent again, is told as lost: what is stored then holds the
        change already.
        """
        revision = 0 if token is None else token
        if type(revision) is not int or (token is not None and revision < 1):
            return _lost(self.get_state())
        try:
            self._client.update_item(**self._row, **self._change(state, revision))
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") != "ConditionalCheckFailedException":
                raise _unreachable(error) from error
            row: Any = error.response.get("Item", {})
            return _lost(self._seen(row))
        except BotoCoreError as error:
            raise _unreachable(error) from error
        return state, revision + 1, True

    def _seen(self, row: Mapping[str, Any]) -> tuple[bytes, Token] | None:
        self._control = row.get("control", {}).get("S")
        if "st" not in row and "rev" not in row:
            return None
        try:
            return bytes(row["st"]["B"]), int(row["rev"]["N"])
        except (KeyError, TypeError, ValueError) as error:
            raise Corrupt(f"the row of the rendezvous is not as nodes write it: {error!r}") from error

    def _change(self, state: bytes, revision: int) -> dict[str, Any]:
        numbers = {":next": revision + 1, ":expires": int(self._now()) + KEPT}
        if revision:
            numbers[":rev"] = revision
        return {
            "UpdateExpression": "SET #st = :st, #rev = :next, #expires = :expires",
            "ConditionExpression": "#rev = :rev" if revision else "attribute_not_exists(#rev)",
            "ExpressionAttributeNames": {f"#{name}": name for name in ("st", "rev", "expires")},
            "ExpressionAttributeValues": {
                ":st": {"B": state},
                **{name: {"N": str(number)} for name, number in numbers.items()},
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def _lost(stored: tuple[bytes, Token] | None) -> tuple[bytes, Token, bool] | None:
    return None if stored is None else (*stored, False)


def _unreachable(error: Exception) -> Unreachable:
    return Unreachable(f"DynamoDB: {type(error).__name__}: {error}")
