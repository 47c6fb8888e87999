"""Features of an image's result as records of Kinesis data streams, each a FeatureCollection of one feature.

    {"type": "FeatureCollection", "features": [...], "trainmaster": {"job": ..., "feature": 7, "features": 240, ...}}

ModelRunner's sink sends the same records, without `trainmaster`, and with the job's ID as partition key, too. Kinesis
stores a record again if a request is repeated; `job` and `feature` (from 0) identify it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainmaster.adapters.aws_errors import AWS_ERRORS, AwsError, code_of, message_of, to_domain_error
from trainmaster.domain.errors import (
    InvalidRequest,
    NotPermitted,
    RequestRefused,
    ServiceError,
    Throttled,
    Unavailable,
)
from trainmaster.domain.text import one_line
from trainmaster.images.domain.request import MAX_BATCH, StreamOutput
from trainmaster.images.pixels.features.features import Feature

MAX_RECORD = 1024 * 1024
"""Maximum bytes of a record with its partition key: the default of a stream (`MaxRecordSizeInKiB`)."""
MAX_REQUEST = 5 * 1024 * 1024
"""Maximum bytes of a PutRecords request; streams with the default record size take no more."""
_THROTTLES = frozenset({"ProvisionedThroughputExceededException", "KMSThrottlingException", "LimitExceededException"})
"""Kinesis' error codes of throttling, beside those of all AWS services."""
_TRIES = 6
"""Consecutive requests of which no record is stored before the sending fails: about half a minute."""
_FIRST_PAUSE, _MAX_PAUSE = 0.5, 8.0


def records_of(features: Sequence[Feature], metadata: dict[str, Any]) -> list[bytes]:
    """Return a result's records. `trainmaster` is a foreign member, as RFC 7946 (6.1) allows."""
    whole = metadata | {"features": len(features)}
    documents = (
        {"type": "FeatureCollection", "features": [each], "trainmaster": whole | {"feature": number}}
        for number, each in enumerate(features)
    )
    return [json.dumps(each, separators=(",", ":")).encode() for each in documents]


class FeatureStream:
    """A stream that receives the features of a job.

    Args:
        kinesis: returns the boto3 Kinesis client of a role, the queue's own for None; raises as `RoleClients.client`.
        job: the job's name.
        output: the stream.
        sleep: waits that many seconds.
    """

    def __init__(
        self, kinesis: Callable[[str | None], Any], job: str, output: StreamOutput, sleep: Callable[[float], None]
    ) -> None:
        self._kinesis = kinesis
        self._job = job
        self._output = output
        self._sleep = sleep

    def send(self, records: Sequence[bytes], keep_alive: Callable[[], None]) -> None:
        """Send all records; those that Kinesis does not store are sent again.

        Args:
            records: see `records_of`.
            keep_alive: called before each request; whatever it raises ends the sending.

        Raises `InvalidRequest` for a stream or role that cannot be used and for a record that is too large, before the
        first is sent; `Throttled`, `Unavailable` if the stream stores none for too long.
        """
        self._check_sizes(records)
        for batch in self._batches(records):
            self._send(batch, keep_alive)

    def _check_sizes(self, records: Sequence[bytes]) -> None:
        size = max(map(len, records), default=0) + len(self._job)
        if size > MAX_RECORD:
            raise InvalidRequest(
                f"a feature has {size} bytes, more than a record of a stream ({MAX_RECORD}); it is in the result in S3",
                field="outputs",
            )

    def _batches(self, records: Sequence[bytes]) -> Iterator[list[bytes]]:
        most = min(self._output.batch_size, MAX_BATCH)
        batch: list[bytes] = []
        size = 0
        for each in records:
            length = len(each) + len(self._job)
            if len(batch) == most or size + length > MAX_REQUEST:
                yield batch
                batch, size = [], 0
            batch.append(each)
            size += length
        if batch:
            yield batch

    def _send(self, batch: list[bytes], keep_alive: Callable[[], None]) -> None:
        tries = 0
        while batch:
            keep_alive()
            left, error = self._put(batch)
            tries = tries + 1 if len(left) == len(batch) else 0
            if error is not None and tries == _TRIES:
                raise error
            if left:
                self._sleep(min(_FIRST_PAUSE * 2**tries, _MAX_PAUSE))
            batch = left

    def _put(self, batch: list[bytes]) -> tuple[list[bytes], ServiceError | None]:
        """Return the records that were not stored, and the reason of the first."""
        stream = self._output.stream
        target = {"StreamARN": stream} if stream.startswith("arn:") else {"StreamName": stream}
        entries = [{"Data": each, "PartitionKey": self._job} for each in batch]
        try:
            answer = self._kinesis(self._output.role).put_records(Records=entries, **target)
        except AWS_ERRORS as error:
            found = self._translated(error)
            if isinstance(found, InvalidRequest):
                raise found from error
            return batch, found
        except NotPermitted as error:
            raise self._closed(error) from error
        failed = [(each, said) for each, said in zip(batch, answer["Records"], strict=True) if said.get("ErrorCode")]
        errors = (_record_error(said) for _, said in failed)
        return [each for each, _ in failed], next(errors, None)

    def _translated(self, error: AwsError) -> InvalidRequest | ServiceError:
        if code_of(error) in _THROTTLES:
            return Throttled(f"{self._output.stream}: {one_line(f'{code_of(error)}: {message_of(error)}')}")
        found = to_domain_error(error)
        return self._closed(found) if isinstance(found, NotPermitted | RequestRefused) else found

    def _closed(self, error: ServiceError) -> InvalidRequest:
        """Return the error of a stream or role that is missing or closed, which is not worth a retry."""
        under = f" under {self._output.role}" if self._output.role else ""
        return InvalidRequest(f"features cannot be sent to {self._output.stream}{under}: {error}", field="outputs")


def _record_error(said: Mapping[str, Any]) -> ServiceError:
    """Return the error of a record that was not stored: throttling, or a failure inside Kinesis."""
    text = one_line(f"{said['ErrorCode']}: {said.get('ErrorMessage', '')}")
    return Throttled(text) if said["ErrorCode"] in _THROTTLES else Unavailable(text)
